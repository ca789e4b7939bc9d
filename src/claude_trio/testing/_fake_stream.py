"""One message of a fake model, as it is streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, final

from claude_trio.testing._replies import Text, Thinking, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._fake_frames import Frames, Speaker
    from claude_trio.testing._replies import Reply

__all__ = ["Message", "usage_of"]


@final
class Message:
    """A message; each of its blocks is said as a whole as soon as it is complete."""

    def __init__(
        self, frames: Frames, speaker: Speaker, *, streams: bool, shows_text: bool
    ) -> None:
        self._frames, self._speaker = frames, speaker
        # Agents do not stream.
        self._streams = streams and speaker.agent is None
        self._shows_text = shows_text
        self.id = f"msg_fake{frames.number():06}"
        self.text = ""
        """The last block of text."""
        self.calls: list[tuple[str, ToolCall]] = []
        self.stop_reason = "end_turn"
        self.begun = False
        self.blocks = 0
        """How many blocks are complete."""
        self._open: Text | Thinking | None = None
        self._said = ""

    def add(self, part: Text | Thinking | ToolCall) -> None:
        """Stream a part."""
        self._begin()
        if isinstance(part, ToolCall):
            self._close()
            self._call(part)
            return
        kind = "text" if isinstance(part, Text) else "thinking"
        if type(part) is not type(self._open):
            self._close()
            self._open, self._said = part, ""
            self._event("content_block_start", content_block={"type": kind, kind: ""})
        if kind == "thinking" and self._speaker.agent is None:
            tokens = len(part.text) // 4 + 1
            self._frames.system(
                "thinking_tokens", estimated_tokens=tokens, estimated_tokens_delta=tokens
            )
        self._said += part.text
        if part.text:
            self._event("content_block_delta", delta={"type": f"{kind}_delta", kind: part.text})

    def finish(self, reply: Reply) -> None:
        """End the message."""
        self._begin()
        self._close()
        self.stop_reason = reply.stop_reason or ("tool_use" if self.calls else "end_turn")
        delta = {"stop_reason": self.stop_reason, "stop_sequence": None}
        self._event("message_delta", indexed=False, delta=delta, usage=usage_of(reply))
        self._event("message_stop", indexed=False)

    def break_off(self) -> None:
        """Close what is open, since the rest will not come."""
        if self.begun:
            if isinstance(self._open, Text):
                self._event("content_block_stop")
            self._event("message_stop", indexed=False)
        self._open = None

    def say_aborted(self) -> str:
        """Say the block of text that was cut off, and return it."""
        text = self._said if isinstance(self._open, Text) else ""
        if text and self._shows_text:
            self._say({"type": "text", "text": text}, aborted=True)
        return text

    def close_aborted(self) -> None:
        """End the stream of a message that was cut off."""
        if self._open is not None:
            self._event("content_block_stop")
            delta = {"stop_reason": None, "stop_sequence": None}
            self._event("message_delta", indexed=False, delta=delta)
            self._event("message_stop", indexed=False)
            self._open = None

    def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            if self._speaker.agent is None:
                self._frames.replay_prompts()
            message = {**self._envelope([]), "usage": {"output_tokens": 1}}
            self._event("message_start", indexed=False, message=message)

    def _close(self) -> None:
        part, self._open = self._open, None
        if part is None:
            return
        if isinstance(part, Text):
            self.text = self._said
            block: dict[str, object] = {"type": "text", "text": self._said}
        else:
            block = {"type": "thinking", "thinking": self._said, "signature": part.signature}
            if self._said:
                delta = {"type": "signature_delta", "signature": part.signature}
                self._event("content_block_delta", delta=delta)
        if self._shows_text and (self._said or isinstance(part, Thinking)):
            self._say(block)
        self._stop()

    def _call(self, call: ToolCall) -> None:
        call_id = call.id or f"toolu_fake{self._frames.number():06}"
        use = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.input}
        self._event("content_block_start", content_block={**use, "input": {}})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.input)}
        self._event("content_block_delta", delta=delta)
        agent = self._speaker.agent
        doing = str(call.input.get("description") or call.name)
        if agent is not None:
            agent.uses += 1
        # Which of the two is first depends on whether somebody waits for the agent.
        if agent is not None and not agent.backgrounded:
            self._frames.task_progress(agent, call.name, doing)
        self._say(use)
        if agent is not None and agent.backgrounded:
            self._frames.task_progress(agent, call.name, doing)
        self._stop()
        self.calls.append((call_id, call))

    def _stop(self) -> None:
        self._event("content_block_stop")
        self.blocks += 1

    def _say(self, block: Mapping[str, object], **more: object) -> None:
        message = {**self._envelope([block]), "context_management": None}
        self._frames.assistant(self._speaker, message, **more)

    def _envelope(self, content: list[Mapping[str, object]]) -> dict[str, object]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self._frames.model,
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 1},
        }

    def _event(self, kind: str, *, indexed: bool = True, **fields: object) -> None:
        if self._streams:
            index = {"index": self.blocks} if indexed else {}
            self._frames.event(self.id, {"type": kind, **index, **fields})


def usage_of(reply: Reply) -> dict[str, object]:
    """Say what a reply is said to have used, as the API does."""
    usage = reply.usage
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": usage.output_tokens,
    }
