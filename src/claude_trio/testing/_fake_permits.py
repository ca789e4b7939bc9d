"""How a fake CLI finds out whether a tool call may run: hooks, rules, and the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import trio

from claude_trio._ndjson import object_or_empty
from claude_trio.testing._fake_asks import Answer
from claude_trio.testing._fake_hooks import Verdict
from claude_trio.testing._fake_rules import ALWAYS_ASKS, Ruling, is_known, suggestions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._fake_asks import Question
    from claude_trio.testing._fake_frames import Speaker
    from claude_trio.testing._fake_run import Run

__all__ = ["CallDenied", "CallPutOff", "Permit"]


class CallDenied(Exception):
    """The call may not run; the text is what the model is told."""


class CallPutOff(Exception):
    """A hook has put the call off, to be decided on after a resume."""


@final
class Permit:
    """What becomes of one call, until it runs."""

    def __init__(
        self, run: Run, speaker: Speaker, call_id: str, name: str, use: Mapping[str, object]
    ) -> None:
        self._run, self._speaker = run, speaker
        self._frames = run.frames
        self.call_id, self.name, self.use = call_id, name, use
        self.verdict = Verdict()

    @property
    def fields(self) -> dict[str, object]:
        """What a hook is told of the call."""
        return {"tool_name": self.name, "tool_input": self.use, "tool_use_id": self.call_id}

    async def wait(self) -> None:
        """Wait until the call may run; ``use`` is then what it runs with.

        Raises:
          CallDenied: if it may not.
          CallPutOff: if a hook defers it.
        """
        if not is_known(self.name):
            raise CallDenied(f"<tool_use_error>No such tool available: {self.name}")
        if self._run.hooks.has("PreToolUse", self.name):
            self.verdict = await self._run.hooks.fire(
                "PreToolUse", self._speaker, self.fields, self.name
            )
        verdict = self.verdict
        if verdict.use is not None:
            self.use = verdict.use
        if verdict.decision == "deny":
            self._note_denial()
            raise CallDenied(f"PreToolUse:{self.name} hook error: {verdict.reason}")
        if verdict.decision == "defer":
            raise CallPutOff
        match self._ruling():
            case Ruling.ALLOW:
                pass
            case Ruling.ASK if self._frames.launch.asks_host:
                await self._obey(await self._ask())
            case _:
                self._deny_unasked()

    def _ruling(self) -> Ruling:
        rules, verdict = self._run.rules, self.verdict
        if rules.denies(self.name, self.use):
            return Ruling.DENY
        if verdict.decision == "ask":
            return Ruling.ASK
        # A changed input without a decision is taken for an allowed one.
        if (verdict.decision or verdict.use is not None) and self.name not in ALWAYS_ASKS:
            return Ruling.ALLOW
        return rules.rule(self.name, self.use)

    def _deny_unasked(self) -> None:
        text = f"Permission to use {self.name} has been denied"
        self._frames.system(
            "permission_denied", tool_name=self.name, tool_use_id=self.call_id, message=text
        )
        self._note_denial()
        raise CallDenied(text)

    def _note_denial(self) -> None:
        if self._speaker.agent is None and self._run.turn is not None:
            denial = {"tool_name": self.name, "tool_use_id": self.call_id, "tool_input": self.use}
            self._run.turn.denials.append(denial)

    # -- the host is asked, and the hooks that may answer in its place

    async def _ask(self) -> Answer:
        answers: list[Answer] = []
        with self._run.asks.asking(self._speaker, **self._request()) as question:
            async with trio.open_nursery() as nursery:
                if self._run.hooks.has("PermissionRequest", self.name):
                    nursery.start_soon(self._ask_hooks, question, answers, nursery.cancel_scope)
                answers.append(await question.answer())
                nursery.cancel_scope.cancel()
        return answers[0]

    async def _ask_hooks(
        self, question: Question, answers: list[Answer], decided: trio.CancelScope
    ) -> None:
        fields = {**self.fields, "permission_suggestions": suggestions(self.name, self.use)}
        said = await self._run.hooks.fire("PermissionRequest", self._speaker, fields, self.name)
        if said.permission is not None and question.is_open:
            self._run.asks.withdraw(question)
            answers.append(Answer(response=said.permission))
            decided.cancel()

    def _request(self) -> dict[str, object]:
        request: dict[str, object] = {
            "subtype": "can_use_tool",
            "tool_name": self.name,
            "display_name": self.name,
            "input": self.use,
            "tool_use_id": self.call_id,
        }
        if isinstance(self.use.get("description"), str):
            request["description"] = self.use["description"]
        if self.verdict.decision == "ask":
            request |= {"decision_reason": self.verdict.reason, "decision_reason_type": "hook"}
        else:
            request["permission_suggestions"] = suggestions(self.name, self.use)
        if (found := self._run.servers.find(self.name)) is not None:
            request["mcp_server"] = {"name": found[0].name, "source": "sdk"}
        if self.name in ALWAYS_ASKS:
            request["requires_user_interaction"] = True
        if self._speaker.agent is not None:
            request["agent_id"] = self._speaker.agent.id
        return request

    async def _obey(self, answer: Answer) -> None:
        said = answer.response
        match said.get("behavior"):
            case "allow":
                self._run.rules.update(said.get("updatedPermissions"))
                self.use = object_or_empty(said.get("updatedInput")) or self.use
                return
            case "deny" if isinstance(said.get("message"), str):
                text = str(said["message"])
            case _ if answer.closed:
                text = "Tool permission request failed: stdin has ended"
            case _ if answer.error is not None:
                text = f"Tool permission request failed: {answer.error}"
            case _:
                text = "The answer to the permission request is invalid"
        self._note_denial()
        if said.get("interrupt") is True and self._speaker.agent is None:
            self._run.interrupt_turn()
            await trio.sleep_forever()  # Until the turn is cut off.
        raise CallDenied(text)
