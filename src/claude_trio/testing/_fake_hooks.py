"""The hooks that the host has registered: a fake CLI calls them, and obeys what they answer."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from claude_trio._ndjson import list_or_empty, object_or_empty

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_trio.testing._fake_asks import Answer, Asks, Question
    from claude_trio.testing._fake_frames import Frames, Speaker

__all__ = ["Hooks", "Verdict"]

_TIMEOUT: Final = 600.0
# Deny is stronger than defer, and so on.
_DECISIONS: Final = ("deny", "defer", "ask", "allow")
_WITHOUT_MODE: Final = frozenset({"SubagentStart", "SessionStart", "SessionEnd"})
_PLAIN: Final = re.compile(r"[\w|]*")


@final
@attrs.define
class Verdict:
    """What all the hooks of one event say together.

    Attributes:
      decision: ``deny``, ``defer``, ``ask`` or ``allow``; empty without an opinion.
      reason: Why, in the words of the first who said so.
      use: What the tool is to be called with instead.
      stop: Why the turn is to end; None if it goes on.
      notes: What the user is to read.
      closed: Whether stdin ended before they answered.
      permission: What a hook of ``PermissionRequest`` decided.
    """

    decision: str = ""
    reason: str = ""
    use: Mapping[str, object] | None = None
    stop: str | None = None
    notes: list[str] = attrs.field(factory=list[str])
    closed: bool = False
    permission: Mapping[str, object] | None = None

    def decide(self, decision: str, reason: str) -> None:
        """Let a stronger decision win."""
        order = (*_DECISIONS, "")
        if order.index(decision) < order.index(self.decision):
            self.decision, self.reason = decision, reason


@final
@attrs.frozen(kw_only=True)
class _Callback:
    id: str
    matcher: str
    timeout: float
    blocks: bool
    """Whether a failure of the hook blocks what it was asked about."""

    def matches(self, word: str) -> bool:
        if self.matcher in {"", "*"}:
            return True
        if _PLAIN.fullmatch(self.matcher):
            return word in self.matcher.split("|")
        return re.fullmatch(self.matcher, word) is not None


@final
class Hooks:
    """All hooks, by their events."""

    def __init__(self, asks: Asks, frames: Frames) -> None:
        self._asks, self._frames = asks, frames
        self._callbacks: dict[str, list[_Callback]] = {}

    def register(self, hooks: object) -> bool:
        """Take the hooks of an ``initialize`` request in place of all others."""
        self._callbacks = {
            event: [
                callback
                for matcher in map(object_or_empty, list_or_empty(matchers))
                for callback in _callbacks(matcher)
            ]
            for event, matchers in object_or_empty(hooks).items()
        }
        return bool(self._callbacks)

    def has(self, event: str, word: str = "") -> bool:
        """Whether anybody hears of such an event."""
        return any(callback.matches(word) for callback in self._callbacks.get(event, ()))

    async def fire(
        self, event: str, speaker: Speaker, fields: Mapping[str, object], word: str = ""
    ) -> Verdict:
        """Call all hooks of an event that match a word, and wait for what they say together."""
        verdict = Verdict()
        told = self._common(event, speaker) | {"hook_event_name": event, **fields}
        request: dict[str, object] = {"subtype": "hook_callback", "input": told}
        # The conversation has one too where there is no tool.
        request["tool_use_id"] = fields.get("tool_use_id", self._frames.new_uuid())
        started = trio.current_time()
        with contextlib.ExitStack() as open_questions:
            asked: list[tuple[_Callback, Question]] = []
            for callback in self._callbacks.get(event, ()):
                if callback.matches(word):
                    asking = self._asks.asking(speaker, **request, callback_id=callback.id)
                    asked.append((callback, open_questions.enter_context(asking)))
            for callback, question in asked:
                await self._hear(event, verdict, callback, question, started + callback.timeout)
        return verdict

    async def _hear(
        self, event: str, verdict: Verdict, callback: _Callback, question: Question, at: float
    ) -> None:
        with trio.move_on_at(at):
            answer = await question.answer()
            self._weigh(event, verdict, callback, answer)
            return
        self._asks.withdraw(question)
        # An unanswered gate stays shut.
        verdict.decide("deny", f"{event} hook did not respond before its timeout")

    def _weigh(self, event: str, verdict: Verdict, callback: _Callback, answer: Answer) -> None:
        if answer.closed:
            verdict.closed = True
            verdict.decide("deny", "stdin has ended")
        elif answer.error is not None or not _is_sound(event, answer.response):
            self._frames.system(
                "informational",
                content=f"{event}: the host failed to answer {callback.id}: {answer.error}",
                level="warning",
                tag="hook_callback_failed",
            )
            if callback.blocks:
                verdict.decide("deny", f"[callback]: {answer.error}")
        elif answer.response.get("async") is not True:
            _apply(event, verdict, answer.response)

    def _common(self, event: str, speaker: Speaker) -> dict[str, object]:
        agent = speaker.agent
        mode = {} if event in _WITHOUT_MODE else {"permission_mode": self._frames.mode}
        return {
            "session_id": self._frames.session_id,
            "transcript_path": f"/home/user/.claude/projects/{self._frames.session_id}.jsonl",
            "cwd": self._frames.launch.cwd,
            "prompt_id": self._frames.prompt_id,
            **mode,
            "effort": {"level": "medium"},
            **({"agent_id": agent.id, "agent_type": "general-purpose"} if agent else {}),
        }


def _callbacks(matcher: Mapping[str, object]) -> Sequence[_Callback]:
    timeout = matcher.get("timeout")
    return [
        _Callback(
            id=str(id),
            matcher=str(matcher.get("matcher") or ""),
            timeout=float(timeout) if isinstance(timeout, int | float) else _TIMEOUT,
            blocks=matcher.get("onFailure") == "block",
        )
        for id in list_or_empty(matcher.get("hookCallbackIds"))  # noqa: A001
    ]


def _is_sound(event: str, response: Mapping[str, object]) -> bool:
    specific = object_or_empty(response.get("hookSpecificOutput"))
    return (
        isinstance(response.get("continue", True), bool)
        and response.get("decision", "block") in {"approve", "block"}
        and specific.get("hookEventName", event) == event
        and specific.get("permissionDecision", "deny") in _DECISIONS
    )


def _apply(event: str, verdict: Verdict, response: Mapping[str, object]) -> None:
    if response.get("continue") is False:
        verdict.stop = str(response.get("stopReason", ""))
    if response.get("decision") == "block":
        verdict.decide("deny", str(response.get("reason", "")))
    if isinstance(note := response.get("systemMessage"), str):
        verdict.notes.append(note)
    specific = object_or_empty(response.get("hookSpecificOutput"))
    if (decision := specific.get("permissionDecision")) is not None:
        verdict.decide(str(decision), str(specific.get("permissionDecisionReason", "")))
    if isinstance(specific.get("updatedInput"), dict):
        verdict.use = object_or_empty(specific["updatedInput"])
    if event == "PermissionRequest" and isinstance(specific.get("decision"), dict):
        verdict.permission = object_or_empty(specific["decision"])
