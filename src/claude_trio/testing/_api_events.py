"""A scripted reply in the words of the Messages API: server-sent events, or one JSON object."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final, final

import attrs

from claude_trio.testing._replies import Text, Thinking, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._replies import Failure, Reply, Usage

__all__ = ["Ids", "MessageStream", "error_body", "error_event", "error_headers", "whole_message"]

_Json = dict[str, object]
_NO_INPUT: Final[_Json] = {}
_NO_CONTENT: Final[list[_Json]] = []


@final
class Ids:
    """Ids from counters, so that the same script gives the same conversation."""

    def __init__(self) -> None:
        self._counter = itertools.count(1)

    def make(self, prefix: str) -> str:
        """Make an id such as ``msg_00000001``."""
        return f"{prefix}_{next(self._counter):08}"


@final
class MessageStream:
    """One message as server-sent events.

    A block stays open until something else follows, so that a reply that breaks off, breaks off in
    the middle of its block.
    """

    def __init__(self, model: str, reply: Reply, ids: Ids) -> None:
        self._ids = ids
        self._envelope = _envelope(ids.make("msg"), model)
        self._reply = reply
        self._index = 0
        self._open: Text | Thinking | None = None

    def begin(self) -> bytes:
        """Give the events that come before any content."""
        message = self._envelope | {
            "content": _NO_CONTENT,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(self._reply.usage) | {"output_tokens": 1},
        }
        return _event("message_start", {"message": message})

    def add(self, part: Text | Thinking | ToolCall) -> bytes:
        """Give the events of a piece of content."""
        if isinstance(part, ToolCall):
            data = self._close()
            block = _tool_use(part, self._ids)
            text = json.dumps(block["input"])
            data += self._start({**block, "input": _NO_INPUT})
            data += self._delta({"type": "input_json_delta", "partial_json": text})
            return data + self._stop()
        data = b""
        if type(self._open) is not type(part):
            data = self._close() + self._start(_empty_block(part))
        self._open = part
        return data + self._delta(_delta_of(part))

    def end(self) -> bytes:
        """Give the events that end the message."""
        delta = {"stop_reason": _stop_reason(self._reply), "stop_sequence": None}
        data = self._close()
        data += _event("message_delta", {"delta": delta, "usage": _usage(self._reply.usage)})
        return data + _event("message_stop", {})

    def _start(self, block: Mapping[str, object]) -> bytes:
        return _event("content_block_start", {"index": self._index, "content_block": block})

    def _delta(self, delta: Mapping[str, object]) -> bytes:
        return _event("content_block_delta", {"index": self._index, "delta": delta})

    def _stop(self) -> bytes:
        data = _event("content_block_stop", {"index": self._index})
        self._index += 1
        return data

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        data = b""
        if isinstance(self._open, Thinking):
            data = self._delta({"type": "signature_delta", "signature": self._open.signature})
        self._open = None
        return data + self._stop()


def whole_message(model: str, reply: Reply, ids: Ids) -> bytes:
    """Give the message of a request that does not stream."""
    envelope = _envelope(ids.make("msg"), model)
    content: list[_Json] = []
    for part in reply.parts:
        match part:
            case Text(text=text):
                _run_on(content, "text", text)
            case Thinking(text=text, signature=signature):
                _run_on(content, "thinking", text)
                content[-1]["signature"] = signature
            case ToolCall():
                content.append(_tool_use(part, ids))
            case _:  # What takes time or goes wrong is no content.
                pass
    message = envelope | {
        "content": content,
        "stop_reason": _stop_reason(reply),
        "stop_sequence": None,
        "usage": _usage(reply.usage),
    }
    return json.dumps(message).encode()


def error_body(error_type: str, message: str) -> bytes:
    """Give the body of an error response."""
    return json.dumps(_error(error_type, message)).encode()


def error_headers(failure: Failure) -> dict[str, str]:
    """Give what an error response has in its headers, beside the usual."""
    if failure.retry_after is None:
        return {}
    # Never with an exponent, which is no number in a header.
    return {"retry-after": f"{failure.retry_after:.3f}".rstrip("0").rstrip(".")}


def error_event(failure: Failure) -> bytes:
    """Give the event of an error in the middle of a stream."""
    return _event("error", _error(failure.type, failure.message))


def _error(error_type: str, message: str) -> _Json:
    return {"type": "error", "error": {"type": error_type, "message": message}}


def _event(name: str, fields: Mapping[str, object]) -> bytes:
    data = json.dumps({"type": name, **fields})
    return f"event: {name}\ndata: {data}\n\n".encode()


def _envelope(message_id: str, model: str) -> _Json:
    return {"id": message_id, "type": "message", "role": "assistant", "model": model}


def _usage(usage: Usage) -> _Json:
    return attrs.asdict(usage)


def _stop_reason(reply: Reply) -> str:
    if reply.stop_reason is not None:
        return reply.stop_reason
    calls = any(isinstance(part, ToolCall) for part in reply.parts)
    return "tool_use" if calls else "end_turn"


def _tool_use(call: ToolCall, ids: Ids) -> _Json:
    return {
        "type": "tool_use",
        "id": ids.make("toolu") if call.id is None else call.id,
        "name": call.name,
        "input": dict(call.input),
    }


def _empty_block(part: Text | Thinking) -> _Json:
    if isinstance(part, Text):
        return {"type": "text", "text": ""}
    return {"type": "thinking", "thinking": "", "signature": ""}


def _delta_of(part: Text | Thinking) -> _Json:
    if isinstance(part, Text):
        return {"type": "text_delta", "text": part.text}
    return {"type": "thinking_delta", "thinking": part.text}


def _run_on(content: list[_Json], kind: str, text: str) -> None:
    """Add a text to the last block if it is of the same kind, else as a block of its own."""
    if content and content[-1]["type"] == kind:
        content[-1][kind] = f"{content[-1][kind]}{text}"
    else:
        content.append({"type": kind, kind: text})
