"""Bytes to JSON lines and back, with a limit on the length of a line.

A `LineFramer` cuts what was read into lines and knows nothing of their content.  `recover` looks
again at a line that turned out not to be a JSON object: it is noise, a line with something in
front of its object, or a loss that has to be reported.  `encode` makes the lines that we write.

Lines end at the byte 0x0A and nowhere else.  Every other byte that some reader takes for a line
end (U+2028, U+2029, U+0085, 0x0B, 0x0C, 0x1C to 0x1E) may stand raw inside a JSON string.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Final, TypeAlias, cast, final

import attrs
import msgspec

from claude_trio._errors import LocalProtocolError
from claude_trio.messages import SkippedLine, parse_object

__all__ = ["HEAD", "Line", "LineFramer", "encode", "list_or_empty", "object_or_empty", "recover"]

HEAD: Final = 200  # How many bytes of a skipped line are kept.

Line: TypeAlias = bytes | SkippedLine

# Small reads of one long line are joined as soon as they make a block.  So an unfinished line
# takes about its own size, however small the reads were, and each byte is copied twice at most.
_BLOCK: Final = 65536


def _check_limit(_: object, __: object, limit: int) -> None:
    if limit <= 0:
        raise ValueError(f"the limit of a line must be positive, not {limit}")


@final
@attrs.define(eq=False, repr=False)
class LineFramer:
    """Cut a stream of bytes into lines.

    Lines come without their LF, and without a CR or other white space before it; blank lines do
    not come at all.  A line longer than the limit is dropped while it comes, and reported once it
    is over.  The same bytes give the same lines, however they were cut into reads.

    Args:
      limit: The longest line that passes, in bytes, its LF not counted.

    Raises:
      ValueError: if ``limit`` is not positive.
    """

    _limit: int = attrs.field(validator=_check_limit)
    _blocks: list[bytes] = attrs.field(factory=list[bytes], init=False)
    _pieces: list[bytes] = attrs.field(factory=list[bytes], init=False)
    _pieces_size: int = attrs.field(default=0, init=False)
    _size: int = attrs.field(default=0, init=False)  # Of the unfinished line, the dropped included.
    _head: bytes = attrs.field(default=b"", init=False)
    _at_eof: bool = attrs.field(default=False, init=False)

    def receive_data(self, data: bytes) -> list[Line]:
        """Take bytes as they were read, and return the lines that they complete.

        Raises:
          LocalProtocolError: after `receive_eof`.
        """
        if self._at_eof:
            raise LocalProtocolError("there is no data after the end of the stream")
        if b"\n" not in data:
            self._keep(data)
            return []
        # `readlines` searches with memchr; `split` looks at each byte, for twice the time in all.
        lines = BytesIO(data).readlines()
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        first: list[Line] = []
        if self._size:
            self._keep(lines.pop(0)[:-1])
            first = self._take()
        self._keep(rest)
        if len(data) > self._limit:
            return first + [found for line in lines for found in self._finish(line[:-1])]
        return [*first, *filter(None, map(bytes.rstrip, lines))]

    def receive_eof(self) -> list[Line]:
        """Take the end of the stream, and return its last line if that had no end.

        A last line that begins like an object and is not one was cut off: it is a `SkippedLine`.
        """
        self._at_eof = True
        last = self._take() if self._size else []
        return [line if isinstance(line, SkippedLine) else recover(line) or line for line in last]

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if len(self._head) < HEAD:
            self._head += piece[: HEAD - len(self._head)]
        if self._size > self._limit:
            self._blocks.clear()
            self._pieces.clear()
            return
        self._pieces.append(piece)
        self._pieces_size += len(piece)
        if self._pieces_size >= _BLOCK:
            self._join()

    def _join(self) -> None:
        self._blocks.append(b"".join(self._pieces))
        self._pieces.clear()
        self._pieces_size = 0

    def _take(self) -> list[Line]:
        size, head = self._size, self._head
        self._join()
        line = b"".join(self._blocks)
        self._blocks.clear()
        self._size, self._head = 0, b""
        if size > self._limit:
            return [SkippedLine(size=size, head=head)]
        return self._finish(line)

    def _finish(self, line: bytes) -> list[Line]:
        if len(line) > self._limit:
            return [SkippedLine(size=len(line), head=line[:HEAD])]
        stripped = line.rstrip()
        return [stripped] if stripped else []


# What may stand before an object and is not text: white space and other control bytes, a byte
# order mark, and terminal control sequences (CSI; OSC, which end with BEL or ST; and the short
# ones).  `/clear` of some versions writes such sequences right in front of a frame.
_PREFIX: Final = rb"""(?: [\x00-\x1a\x1c-\x20\x7f]
           | \xef\xbb\xbf
           | \x1b \[ [0-?]* [ -/]* [@-~]
           | \x1b \] [^\x07\x1b]* (?: \x07 | \x1b \\ )
           | \x1b [ -/]* [0-Z\\^-~]
         )*+"""


# Compiled when it is needed, since hardly any program ever does and it takes a while.
@functools.cache
def _prefix() -> re.Pattern[bytes]:
    return re.compile(_PREFIX, re.VERBOSE)


def recover(line: bytes) -> Line | None:
    """Look again at a line that is no JSON object as it stands.

    Returns:
      The object alone, still as bytes, if terminal control sequences, white space or a byte order
      mark stand in front of it; a `SkippedLine` if it begins like an object, and is none; None if
      it is noise.
    """
    prefix = _prefix().match(line)
    inner = line[prefix.end() :] if prefix else line
    if not inner.startswith(b"{"):
        return None
    try:
        parse_object(inner)
    except ValueError:
        return SkippedLine(size=len(line), head=line[:HEAD])
    return inner


def object_or_empty(value: object) -> Mapping[str, object]:
    """Return a JSON object as it is, and an empty one for anything else."""
    # Nearly always it is a dict, and asking an abstract class takes five times as long.
    is_object = type(value) is dict or isinstance(value, Mapping)
    return cast("Mapping[str, object]", value) if is_object else {}


def list_or_empty(value: object) -> list[object]:
    """Return a JSON array as it is, and an empty one for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else []


def encode(frame: Mapping[str, object]) -> bytes:
    """Write a frame as one line with its LF.

    The line has no other LF or CR, and is valid JSON and valid UTF-8: a lone surrogate in a
    string becomes an escape.

    Raises:
      TypeError: if it holds something that JSON has no type for, or a key that is no string.
      ValueError: if it holds NaN or an infinity, or is nested too deeply.
    """
    try:
        _check(frame)
        return _encoder.encode(frame) + b"\n"
    except UnicodeEncodeError:
        return _encode_escaping(frame)
    except RecursionError:
        raise ValueError("the frame is nested too deeply to be written") from None


_PLAIN: Final = frozenset({str, int, bool, type(None)})


# msgspec writes NaN as null and bytes as base64, both without a word.  This walk refuses them and
# never looks into a string, so a large text costs nothing.
def _check(value: object) -> None:
    for inner in _inside(value):
        if type(inner) not in _PLAIN:
            _check(inner)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        keys = cast("dict[object, object]", value)
        # Nearly always every key is plain text, and a list is faster here than a generator.
        if not all([type(key) is str for key in keys]):  # noqa: C419
            for key in keys:
                if not isinstance(key, str):
                    raise TypeError(f"a key of a JSON object is a string, not {key!r}")
        return keys.values()
    if isinstance(value, (list, tuple)):
        return cast("Sequence[object]", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"JSON has no number {value!r}")
    if value is None or isinstance(value, (str, int, float)):
        return ()
    if isinstance(value, Mapping):
        return (dict(cast("Mapping[object, object]", value)),)
    raise TypeError(f"JSON has no type for {type(value).__qualname__}")


# Both encoders ask this for what they do not know and `_check` lets pass.
def _as_plain(value: object) -> object:
    match value:
        case Mapping():
            return dict(cast("Mapping[object, object]", value))
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case _:  # A subclass of float is all that is left.
            return float.__float__(cast("float", value))


_encoder: Final = msgspec.json.Encoder(enc_hook=_as_plain)


def _encode_escaping(frame: Mapping[str, object]) -> bytes:
    import json  # noqa: PLC0415  Hardly any program ever needs it, and it takes a while to import.

    text = json.dumps(frame, allow_nan=False, separators=(",", ":"), default=_as_plain)
    return text.encode("ascii") + b"\n"
