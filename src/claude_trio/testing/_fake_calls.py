"""How a fake CLI makes the tool calls of one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from claude_trio._ndjson import list_or_empty, object_or_empty
from claude_trio.testing._fake_permits import CallDenied, CallPutOff, Permit
from claude_trio.testing._fake_rules import is_safe_beside_others
from claude_trio.testing._fake_servers import ToolGone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_trio.testing._fake_frames import Speaker
    from claude_trio.testing._fake_run import Run
    from claude_trio.testing._replies import ToolCall

__all__ = ["Calls", "Outcome", "ToolError"]

_REJECTED: Final = "The user doesn't want to proceed with this tool use."


class ToolError(Exception):
    """Raised by the ``run_tool`` of a `FakeClaude`, it is the error that the model is told."""


@final
@attrs.define
class Outcome:
    """What the calls of one message have come to.

    Attributes:
      told: What the model is told: the last result.
      stopped: Whether a hook wants the turn to end.
      deferred: The call that a hook has put off.
      structured: The value that the model has given for the schema.
    """

    told: str = ""
    stopped: bool = False
    deferred: tuple[str, ToolCall] | None = None
    structured: Mapping[str, object] | None = None


@final
class Calls:
    """The calls of one conversation."""

    def __init__(self, run: Run, speaker: Speaker) -> None:
        self._run, self._speaker = run, speaker
        self._open: dict[str, ToolCall] = {}
        self.misfits = 0
        """How many values did not fit the schema."""

    async def make(self, calls: Sequence[tuple[str, ToolCall]]) -> Outcome:
        """Make all the calls of a message, those at the same time that may."""
        self._open = dict(calls)
        outcome = Outcome()
        waiting = list(calls)
        while waiting and outcome.deferred is None:
            beside = [waiting.pop(0)]
            while waiting and self._is_safe(*beside[0]) and self._is_safe(*waiting[0]):
                beside.append(waiting.pop(0))
            await self._make_beside(outcome, beside)
        if self._run.hooks.has("PostToolBatch"):
            batch = [
                {"tool_name": call.name, "tool_input": call.input, "tool_use_id": call_id}
                for call_id, call in calls
            ]
            await self._run.hooks.fire("PostToolBatch", self._speaker, {"tool_calls": batch})
        return outcome

    def reject(self) -> bool:
        """Say that the calls without a result were not wanted; return whether there were any."""
        for call_id in self._open:
            self._run.frames.tool_result(
                self._speaker,
                call_id,
                _REJECTED,
                failed=True,
                tool_use_result="User rejected tool use",
            )
        return bool(self._open)

    def _is_safe(self, _call_id: str, call: ToolCall) -> bool:
        return is_safe_beside_others(call.name) or self._run.servers.reads_only(call.name)

    async def _make_beside(self, outcome: Outcome, calls: Sequence[tuple[str, ToolCall]]) -> None:
        if len(calls) == 1:
            await self._make(outcome, *calls[0])
            return
        async with trio.open_nursery() as nursery:
            for call_id, call in calls:
                nursery.start_soon(self._make, outcome, call_id, call)
                # They begin in their order, whatever Trio's scheduler would make of it: behind
                # its second step, the first step of the task is surely done.
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()

    async def _make(self, outcome: Outcome, call_id: str, call: ToolCall) -> None:
        permit = Permit(self._run, self._speaker, call_id, call.name, call.input)
        content: object
        try:
            await permit.wait()
            content, failed = await self._perform(permit, call), False
        except CallPutOff:
            outcome.deferred = (call_id, call)
            return
        except (CallDenied, ToolError, ToolGone) as exc:
            content, failed = str(exc), True
            if not isinstance(exc, CallDenied):
                await self._after(permit, error=str(exc))
        else:
            await self._after(permit, tool_response=content)
        self._finish(outcome, permit, call, content, failed=failed)

    async def _after(self, permit: Permit, **given: object) -> None:
        """Let the hooks see what a tool has given."""
        event = "PostToolUseFailure" if "error" in given else "PostToolUse"
        if self._run.hooks.has(event, permit.name):
            fields = {**permit.fields, **given, "duration_ms": 1}
            fields |= {"is_interrupt": False} if "error" in given else {}
            verdict = await self._run.hooks.fire(event, self._speaker, fields, permit.name)
            permit.verdict.notes += verdict.notes
            if permit.verdict.stop is None:
                permit.verdict.stop = verdict.stop
        # Nobody may want to see it.

    def _finish(
        self, outcome: Outcome, permit: Permit, call: ToolCall, content: object, *, failed: bool
    ) -> None:
        frames, verdict = self._run.frames, permit.verdict
        for note in verdict.notes:
            frames.system("informational", content=note, level="notice")
        del self._open[permit.call_id]
        given = f"Error: {content}" if failed else content
        frames.tool_result(
            self._speaker, permit.call_id, content, failed=failed, tool_use_result=given
        )
        outcome.told = _text(content)
        outcome.stopped |= verdict.stop is not None
        if call.name == "StructuredOutput":
            self.misfits += failed
            outcome.structured = None if failed else permit.use

    # -- what a tool does

    async def _perform(self, permit: Permit, call: ToolCall) -> object:
        """Do what the tool does; return its result."""
        run, name, use = self._run, call.name, permit.use
        own: str | None = None
        match name:
            case "Agent" | "Task":
                return await run.tasks.run_agent(self._speaker, permit.call_id, call, use)
            case "Bash":
                own = await run.tasks.run_command(self._speaker, permit.call_id, use)
            case "ScheduleWakeup":
                own = run.tasks.schedule(use)
            case "EnterPlanMode":
                run.frames.tell_mode("plan")
            case "ExitPlanMode":
                run.frames.tell_mode("default")
            case "AskUserQuestion":
                own = _answers(use)
            case _ if (found := run.servers.find(name)) is not None:
                server, tool = found
                given = await server.call(self._speaker, tool, use, permit.call_id)
                return given or f"({name} completed with no output)"
            case _:
                pass
        if call.fails is not None:
            raise ToolError(call.fails)
        if call.returns is not None:
            return call.returns
        return run.run_tool(name, use) if own is None else own


def _answers(use: Mapping[str, object]) -> str:
    answers = object_or_empty(use.get("answers"))
    if not answers:
        return "The user did not answer the questions."
    said = ", ".join(f'"{question}"="{answer}"' for question, answer in answers.items())
    return f"Your questions have been answered: {said}"


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = [object_or_empty(block).get("text") for block in list_or_empty(content)]
    return "\n".join(text for text in texts if isinstance(text, str))
