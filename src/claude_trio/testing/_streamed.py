"""Secrets in what is streamed: a model says them in pieces, and no piece looks like one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, cast, final

import attrs

from claude_trio._ndjson import object_or_empty

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Held", "Streamed"]

_TEXTS: Final = ("text", "partial_json", "thinking")
_Piece: TypeAlias = tuple[dict[str, object], str, str]
"""What will be written of a piece, the name of its text there, and what the text was."""
_Block: TypeAlias = tuple[object, object]
"""Whose message it is in (an agent's, or None), and its index there."""


@final
@attrs.define(eq=False)
class Held:
    """What waits to be written."""

    way: str
    t: float
    changed: object
    """What it says, without its secrets."""
    frame: Mapping[str, object] | None = None
    """What it says; None if it is no object."""
    line: bytes = b""
    cut: bool = False
    """Whether it has no end."""


@final
@attrs.define(eq=False)
class Streamed:
    """Holds lines back while a block streams, and takes secrets out of the whole block.

    What is found goes into the first piece; the others are then empty.
    """

    _redact: Callable[[str], str]
    _held: list[Held] = attrs.field(factory=list[Held], init=False)
    _open: dict[_Block, list[_Piece]] = attrs.field(factory=dict, init=False)
    """The blocks that stream."""

    def add(self, line: Held) -> list[Held]:
        """Take a line; return those that can be written, in their order."""
        self._held.append(line)
        if line.way == "out" and line.frame is not None:
            self._look(line.frame, object_or_empty(line.changed))
        return [] if self._open else self.flush()

    def flush(self) -> list[Held]:
        """Hold nothing back any longer."""
        for block in list(self._open):
            self._close(block)
        held, self._held = self._held, []
        return held

    def _look(self, frame: Mapping[str, object], changed: Mapping[str, object]) -> None:
        agent, event = frame.get("parent_tool_use_id"), object_or_empty(frame.get("event"))
        block = (agent, event.get("index"))
        match frame.get("type"), event.get("type"):
            case "stream_event", "content_block_start":
                self._open[block] = []
            case "stream_event", "content_block_delta" if block in self._open:
                delta = object_or_empty(object_or_empty(changed.get("event")).get("delta"))
                for name, text in object_or_empty(event.get("delta")).items():
                    if name in _TEXTS and isinstance(text, str):
                        self._open[block].append((cast("dict[str, object]", delta), name, text))
            case "stream_event", "content_block_stop":
                self._close(block)
            case ("stream_event", "message_start" | "message_delta") | ("result", _):
                # What is cut off has no stop.
                for other in [other for other in self._open if other[0] == agent]:
                    self._close(other)
            case _:
                pass

    def _close(self, block: _Block) -> None:
        pieces = self._open.pop(block, [])
        whole = "".join([text for _, _, text in pieces])
        told = self._redact(whole)
        # A piece alone may look like a secret, and be none.
        texts = [text for _, _, text in pieces] if told == whole else [told]
        for number, (delta, name, _) in enumerate(pieces):
            delta[name] = texts[number] if number < len(texts) else ""
