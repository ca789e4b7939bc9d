"""One turn of a fake CLI: from its first frame to its result."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from claude_trio._ndjson import list_or_empty, object_or_empty
from claude_trio.testing import _fake_commands as commands
from claude_trio.testing._fake_frames import Speaker
from claude_trio.testing._fake_talk import ApiFailed, Ending, Talk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_trio.testing._fake_run import Run
    from claude_trio.testing._fake_tasks import Report

__all__ = ["Abort", "Prompt", "Turn"]

_MAIN: Final = Speaker()


class Abort(enum.Enum):
    """Why a turn is cut off."""

    INTERRUPT = enum.auto()
    URGENT_PROMPT = enum.auto()


@final
@attrs.frozen
class Prompt:
    """A prompt of the host."""

    frame: Mapping[str, object]

    @property
    def uuid(self) -> str | None:
        """Its id; None if it has none."""
        given = self.frame.get("uuid")
        return None if given is None else str(given)

    @property
    def content(self) -> object:
        """What it says, as it came."""
        return object_or_empty(self.frame.get("message")).get("content")

    @property
    def text(self) -> str:
        """What it says."""
        content = self.content
        if isinstance(content, str):
            return content
        texts = [object_or_empty(block).get("text") for block in list_or_empty(content)]
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def priority(self) -> object:
        """When it is to be taken."""
        return self.frame.get("priority")

    @property
    def command(self) -> str | None:
        """The slash command that it is; None if it is none."""
        plain = self.frame.get("client_composed") is True
        return None if plain else commands.name_of(self.text)


@final
class Turn:
    """A turn, which answers prompts, or a report of the CLI's own."""

    def __init__(self, run: Run, prompts: Sequence[Prompt], report: Report | None = None) -> None:
        self._run, self._frames = run, run.frames
        self._prompts, self._report = prompts, report
        self._folded: list[Prompt] = []
        self._abort: Abort | None = None
        self._scope = trio.CancelScope()
        self._begun = False
        self._started = trio.current_time()
        self.talk = Talk(run, _MAIN, run.model)
        self.denials: list[Mapping[str, object]] = []
        """The calls that were denied."""

    @property
    def is_cut_off(self) -> bool:
        """Whether it was aborted."""
        return self._abort is not None

    def cut_off(self, why: Abort) -> None:
        """Abort the turn; the first reason counts."""
        if self._abort is None:
            self._abort = why
            self._scope.cancel()

    def fold(self, prompts: Sequence[Prompt]) -> None:
        """Take prompts in that came meanwhile."""
        for prompt in prompts:
            if self._run.launch.replay:
                self._frames.replay(prompt.content, prompt.uuid)
            self._frames.lifecycle(prompt.uuid, "started")
        self._folded += prompts

    async def play(self) -> None:
        """Play the turn, to its result."""
        self._frames.answered = [p.uuid for p in self._prompts if p.uuid is not None]
        self._frames.told = 0
        self._announce()
        ending = Ending()
        with self._scope:
            ending = await self._answer()
        failed = self._scope.cancelled_caught
        if failed:
            ending = self._cut_off()
        fields = {**ending.fields}
        failed |= fields.pop("api_failed", False) is True
        self._settle(self._folded, failed=failed)
        self._frames.answered = []
        self._run.tell_result(self._result(fields))
        self._settle(self._prompts, failed=failed)
        if self._report is not None:
            self._frames.lifecycle(self._report.prompt, "completed")

    def _announce(self) -> None:
        for prompt in self._prompts:
            self._frames.lifecycle(prompt.uuid, "started")
        if self._report is not None and self._report.prompt is not None:
            self._frames.lifecycle(self._report.prompt, "started", wakeup_source="loop_wakeup")

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._frames.init(
                self._run.servers.tools,
                [{"name": s.name, "status": s.status, "source": "sdk"} for s in self._run.servers],
            )
            if self._run.launch.replay:
                self._frames.to_replay = [(p.content, p.uuid) for p in self._prompts]

    async def _answer(self) -> Ending:
        told = "\n".join(prompt.text for prompt in self._prompts)
        if self._report is not None:
            told = self._report.text
        await self._run.wait_servers()
        blocked = await self._ask_hooks(told)
        if blocked is not None:
            return blocked
        command = self._prompts[0].command if self._prompts else None
        if command is not None:
            return await commands.run_command(self._run, command, self._prompts[0], self._begin)
        self._begin()
        try:
            return await self.talk.answer(told)
        except ApiFailed as exc:
            return self._api_failed(exc)

    async def _ask_hooks(self, told: str) -> Ending | None:
        """Let the hooks see the prompt; return the end if they block it."""
        if not self._prompts or not self._run.hooks.has("UserPromptSubmit"):
            return None
        verdict = await self._run.hooks.fire("UserPromptSubmit", _MAIN, {"prompt": told})
        if verdict.decision == "deny":
            kind = "blocked_by_hook"
            text = f"UserPromptSubmit operation blocked by hook:\n{verdict.reason}"
        elif verdict.stop is not None:
            kind, text = "stopped_by_hook", f"Operation stopped by hook: {verdict.stop}"
        else:
            return None
        self._begin()
        self._frames.system(
            "informational",
            content=text,
            level="warning",
            prevent_continuation=True,
            prompt_submit_outcome={"kind": kind, "reason": verdict.reason or verdict.stop},
        )
        return commands.unsaid(text)

    def _cut_off(self) -> Ending:
        self._begin()
        if self._abort is Abort.URGENT_PROMPT:
            _where, text = self.talk.abort(tells=False)
            return Ending.good(text, "aborted_streaming")
        where, _text = self.talk.abort()
        return Ending.bad(
            "error_during_execution", f"aborted_{where}", "[ede_diagnostic] interrupted"
        )

    def _api_failed(self, exc: ApiFailed) -> Ending:
        detail = {"api_error_status": exc.status}
        kind = {} if exc.kind is None else {"api_error_type": exc.kind}
        message = {
            "id": self._frames.new_uuid(),
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": exc.text}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        more = {"error": exc.category, "is_api_error_message": True, **detail, **kind}
        self._frames.assistant(_MAIN, message, **more)
        self.talk.stop_reason = "stop_sequence"
        fields = {"subtype": "success", "is_error": True, "result": exc.text}
        reason = {"terminal_reason": exc.reason, "api_failed": True}
        return Ending(fields={**fields, **reason, **detail, **kind})

    def _settle(self, prompts: Sequence[Prompt], *, failed: bool) -> None:
        for prompt in prompts:
            self._frames.lifecycle(prompt.uuid, "cancelled" if failed else "completed")

    def _result(self, fields: Mapping[str, object]) -> dict[str, object]:
        uuids = [p.uuid for p in (*self._prompts, *self._folded) if p.uuid is not None]
        named = {"user_message_uuid": uuids[-1], "user_message_uuids": uuids} if uuids else {}
        origin = None if self._report is None else self._report.origin
        if self._prompts and object_or_empty(self._prompts[0].frame.get("origin")):
            origin = object_or_empty(self._prompts[0].frame.get("origin"))
        turns = {} if "num_turns" in fields else {"num_turns": self._frames.told + 1}
        milliseconds = round((trio.current_time() - self._started) * 1000)
        return {
            "stop_reason": self.talk.stop_reason,
            "permission_denials": self.denials,
            "duration_ms": milliseconds,
            "duration_api_ms": milliseconds,
            "queued_turn_count": 0,
            **turns,
            **({} if origin is None else {"origin": origin}),
            **named,
            **fields,
        }
