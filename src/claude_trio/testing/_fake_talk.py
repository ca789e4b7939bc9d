"""One conversation of a fake model: what it says, and the tools that it calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol, final

import trio

from claude_trio._ndjson import object_or_empty
from claude_trio.testing._replies import Cut, Failure, Hold, Pause, Reply, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from claude_trio.testing._fake_frames import Frames, Speaker

__all__ = ["ApiFailedError", "Office", "Talk", "seconds_of"]

_AGENT_TOOLS: Final = frozenset({"Agent", "Task"})
_SLEEP: Final = re.compile(r"\bsleep (\d+(?:\.\d+)?|inf)")
_REJECTED: Final = "The user doesn't want to proceed with this tool use."


class Office(Protocol):
    """What the conversations of one CLI share."""

    frames: Frames
    run_tool: Callable[[str, Mapping[str, object]], str]
    asks: Callable[[str], bool]

    async def ask(self, speaker: Speaker, call_id: str, call: ToolCall) -> Mapping[str, object]:
        """Ask the host, and wait for its answer."""
        ...

    async def run_agent(self, speaker: Speaker, call_id: str, call: ToolCall) -> str:
        """Run an agent, or start it in the background; return what its caller is told."""
        ...

    def start_shell(self, speaker: Speaker, call_id: str, use: Mapping[str, object]) -> str:
        """Start a command in the background; return what its caller is told."""
        ...

    def fold(self, told: str) -> str:
        """Let what has come meanwhile follow the result of a tool."""
        ...


class ApiFailedError(Exception):
    """The script says that the API fails."""

    def __init__(self, text: str, status: int | None) -> None:
        """Fail with the words that the user sees."""
        super().__init__(text)
        self.status = status


def seconds_of(use: Mapping[str, object]) -> float:
    """Say how long a command runs: ``sleep 5`` takes five seconds."""
    found = _SLEEP.search(str(use.get("command", "")))
    return float(found[1]) if found else 0


@final
class Talk:
    """The main conversation, or an agent's."""

    def __init__(self, office: Office, speaker: Speaker, reply: Callable[[str], Reply]) -> None:
        self._office, self._speaker, self._reply = office, speaker, reply
        self._frames = office.frames
        self._partial = ""
        self._open_calls: list[str] = []

    async def answer(self, told: str) -> str:
        """Answer what the model is told, with all the tools that this takes."""
        while True:
            said, calls = await self._stream(self._reply(told))
            if not calls:
                return said
            self._open_calls = [call_id for call_id, _ in calls]
            for call_id, call in calls:
                told = await self._call(call_id, call)
            if self._speaker.agent is None:
                told = self._office.fold(told)

    def fail(self, text: str) -> None:
        """Say that the API has failed."""
        self._say_text(f"msg_fake{self._frames.number():06}", text)

    def abort(self) -> str:
        """Say what an interrupt has cut off; return the word for where that was."""
        where = "tools" if self._open_calls else "streaming"
        if self._partial:
            block = {"type": "text", "text": self._partial}
            self._frames.assistant(self._speaker, "msg_fake_aborted", block, aborted=True)
        for call_id in self._open_calls:
            self._frames.tool_result(self._speaker, call_id, _REJECTED, failed=True)
        what = " for tool use" if self._open_calls else ""
        text = f"[Request interrupted by user{what}]"
        self._frames.user(self._speaker, {"type": "text", "text": text})
        return where

    # -- one message of the model

    async def _stream(self, reply: Reply) -> tuple[str, list[tuple[str, ToolCall]]]:
        message_id = f"msg_fake{self._frames.number():06}"
        self._event(message_id, {"type": "message_start", "message": {"id": message_id}})
        calls: list[tuple[str, ToolCall]] = []
        self._partial = ""
        for part in reply.parts:
            match part:
                case Text(text=text):
                    self._delta(message_id, text)
                case Pause(seconds=seconds):
                    await trio.sleep(seconds)
                case Hold(event=event):
                    await event.wait()
                case ToolCall():
                    calls.append((part.id or f"toolu_fake{self._frames.number():06}", part))
                case Thinking(text=text):
                    block = {"type": "thinking", "thinking": text}
                    self._frames.assistant(self._speaker, message_id, block)
                case Failure(status=status, message=text):
                    raise ApiFailedError(f"API Error: {status} {text}", status)
                case Cut():
                    raise ApiFailedError("API Error: the connection was reset", None)
        said, self._partial = self._partial, ""
        self._finish(message_id, said, calls)
        return said, calls  # noqa: ASYNC910  It is said at once.

    def _delta(self, message_id: str, text: str) -> None:
        if not self._partial:
            block = {"type": "text", "text": ""}
            start = {"type": "content_block_start", "index": 0, "content_block": block}
            self._event(message_id, start)
        self._partial += text
        delta = {"type": "text_delta", "text": text}
        self._event(message_id, {"type": "content_block_delta", "index": 0, "delta": delta})

    def _finish(self, message_id: str, said: str, calls: Sequence[tuple[str, ToolCall]]) -> None:
        # The whole block comes before the event that ends it.
        if said or not calls:
            self._say_text(message_id, said)
            self._event(message_id, {"type": "content_block_stop", "index": 0})
        for call_id, call in calls:
            use = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.input}
            self._frames.assistant(self._speaker, message_id, use)
        self._event(message_id, {"type": "message_stop"})

    def _say_text(self, message_id: str, text: str) -> None:
        agent = self._speaker.agent
        # What an agent in the foreground says is in the result of its call only.
        if agent is None or agent.backgrounded:
            self._frames.assistant(self._speaker, message_id, {"type": "text", "text": text})

    def _event(self, message_id: str, event: Mapping[str, object]) -> None:
        # Agents do not stream.
        if self._speaker.agent is None:
            self._frames.event(message_id, event)

    # -- its tools

    async def _call(self, call_id: str, call: ToolCall) -> str:
        if call.name in _AGENT_TOOLS:
            text, denied = await self._office.run_agent(self._speaker, call_id, call), False
        else:
            use, reason = await self._permitted(call_id, call)
            denied = use is None
            text = reason if use is None else await self._run(call_id, call.name, use)
        self._open_calls.remove(call_id)
        self._frames.tool_result(self._speaker, call_id, text, failed=denied)
        return text

    async def _permitted(
        self, call_id: str, call: ToolCall
    ) -> tuple[Mapping[str, object] | None, str]:
        """Return what the tool is to be called with, or None and the reason."""
        if not self._office.asks(call.name):
            return call.input, ""  # noqa: ASYNC910  Nobody is asked.
        envelope = await self._office.ask(self._speaker, call_id, call)
        decision = object_or_empty(envelope.get("response"))
        if decision.get("behavior") != "allow":
            return None, str(decision.get("message") or envelope.get("error"))
        return object_or_empty(decision.get("updatedInput")) or call.input, ""

    async def _run(self, call_id: str, name: str, use: Mapping[str, object]) -> str:
        if use.get("run_in_background"):
            return self._office.start_shell(self._speaker, call_id, use)  # noqa: ASYNC910  It returns at once.
        await trio.sleep(seconds_of(use))
        return self._office.run_tool(name, use)
