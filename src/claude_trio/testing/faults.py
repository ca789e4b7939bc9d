"""What a fake CLI can do wrong: small values for the ``faults`` of a `FakeClaude`.

Each function makes one fault; a fake has as many as its test wants.  Frames are counted as they
leave the fake, from one: its first is the answer to ``initialize``, unless it shakes hands with
in-process servers.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import attrs

__all__ = [
    "Fault",
    "answers_twice",
    "answers_wrong_id",
    "closes_stdout",
    "cuts_line",
    "deaf_to",
    "dies",
    "exits_with",
    "garbage",
    "giant_line",
    "holds_stdout",
    "in_pieces",
    "late",
    "lingers",
    "missing",
    "narrow_stdin",
    "noise",
    "pretends",
    "refuses_to_start",
    "repeats",
    "silent",
    "starts_after",
    "stderr",
    "stops_reading",
    "unknown_frames",
    "withdraws",
]

_PIPE: Final = 65536
"""How much a pipe of Linux holds."""
_NOISE: Final = (
    b"Debugger attached.",
    b"\x1b[31mred\x1b[0m",
    b"[1, 2]",
    b"nul\x00\xff",
    b"",
    b"  ",
)
_GARBAGE: Final = (b'{"type":"system","subtype":', b'{"type": 1e999, "a": [}', b"{" * 10_000)
_UNKNOWN: Final = (
    b'{"type":"weather","mood":"odd"}',
    b'{"type":"system","subtype":"weather","mood":"odd"}',
    b'{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"odd"}]}}',
    b'{"type":"control_response","response":{"subtype":"success","request_id":"nobody"}}',
    b'{"type":"control_cancel_request","request_id":"nobody"}',
)


@attrs.frozen(kw_only=True)
class Deaf:
    """It does not hear some things."""

    to: frozenset[str]


@attrs.frozen(kw_only=True)
class Answering:
    """It answers control requests in a wrong way."""

    subtypes: frozenset[str]
    seconds: float = 0.0
    pretends: bool = False
    wrong_id: bool = False
    twice: bool = False


@attrs.frozen(kw_only=True)
class Dying:
    """It exits where it should not."""

    code: int
    at: int | None
    torn: int | None


@attrs.frozen(kw_only=True)
class Inserting:
    """It writes lines that it should not."""

    at: int
    data: bytes


@attrs.frozen(kw_only=True)
class Cutting:
    """It writes less of a line than it should."""

    at: int
    keep: int


@attrs.frozen(kw_only=True)
class Silence:
    """It writes nothing more."""

    at: int
    closes: bool = False


@attrs.frozen(kw_only=True)
class Counting:
    """It writes frames of some kinds more or less often than once."""

    kinds: frozenset[str]
    times: int


@attrs.frozen(kw_only=True)
class Starting:
    """It does not start as it should."""

    after: float = 0.0
    words: str | None = None
    with_result: bool = False
    code: int = 1


@attrs.frozen(kw_only=True)
class Pipes:
    """Its pipes are not as they should be."""

    unread: int | None = None
    """From which line on it reads no more."""
    capacity: int | None = None
    """How many bytes stdin holds that were not read."""
    piece: int | None = None
    """How many bytes of stdout the host gets at a time."""
    held: float = 0.0
    """How long stdout stays open after the exit."""
    stderr: str = ""


@attrs.frozen(kw_only=True)
class Leaving:
    """It does not leave as it should."""

    code: int | None = None
    seconds: float = 0.0


@attrs.frozen(kw_only=True)
class Withdrawing:
    """It takes permission requests back."""

    seconds: float


Fault: TypeAlias = (
    Deaf
    | Answering
    | Dying
    | Inserting
    | Cutting
    | Silence
    | Counting
    | Starting
    | Pipes
    | Leaving
    | Withdrawing
)
"""One way in which a fake misbehaves."""


# -- what it does not hear, or answers wrongly


def deaf_to(*what: str) -> Fault:
    """Do not hear the end of stdin (``"eof"``), SIGTERM (``"term"``), or control requests.

    Args:
      *what: ``"eof"``, ``"term"``, or subtypes of control requests such as ``"interrupt"``.
    """
    return Deaf(to=frozenset(what))


def late(seconds: float, *subtypes: str) -> Fault:
    """Answer control requests so many seconds late; what they ask for is done at once.

    Args:
      seconds: How late.
      *subtypes: Which requests; without any, all of them.
    """
    return Answering(subtypes=frozenset(subtypes), seconds=seconds)


def pretends(*subtypes: str) -> Fault:
    """Answer control requests with a yes, and do nothing."""
    return Answering(subtypes=frozenset(subtypes), pretends=True)


def answers_wrong_id(*subtypes: str) -> Fault:
    """Answer control requests under an id that nobody has asked under."""
    return Answering(subtypes=frozenset(subtypes), wrong_id=True)


def answers_twice(*subtypes: str) -> Fault:
    """Answer control requests twice."""
    return Answering(subtypes=frozenset(subtypes), twice=True)


def withdraws(seconds: float = 0.0) -> Fault:
    """Take each permission request back after some seconds, and deny the call."""
    return Withdrawing(seconds=seconds)


# -- what it writes


def silent(at: int = 1) -> Fault:
    """Write nothing from the n-th frame on, but live, listen and work."""
    return Silence(at=at)


def closes_stdout(at: int = 1) -> Fault:
    """Close stdout in place of the n-th frame, and live on."""
    return Silence(at=at, closes=True)


def noise(at: int = 1) -> Fault:
    """Write lines that are no frames in front of the n-th frame: text, codes, blanks."""
    return Inserting(at=at, data=b"".join(line + b"\n" for line in _NOISE))


def garbage(at: int = 1) -> Fault:
    """Write lines that begin like frames and are none in front of the n-th frame."""
    return Inserting(at=at, data=b"".join(line + b"\n" for line in _GARBAGE))


def unknown_frames(at: int = 1) -> Fault:
    """Write frames of unknown types, subtypes, blocks and ids in front of the n-th frame."""
    return Inserting(at=at, data=b"".join(line + b"\n" for line in _UNKNOWN))


def giant_line(size: int, at: int = 1) -> Fault:
    """Write a frame of so many bytes that says nothing in front of the n-th frame."""
    head, tail = b'{"type":"keep_alive","filler":"', b'"}\n'
    return Inserting(at=at, data=head + b"x" * max(0, size - len(head) - len(tail)) + tail)


def cuts_line(at: int = 1, *, keep: int = 40) -> Fault:
    """Write only the first bytes of the n-th frame; its line ends there."""
    return Cutting(at=at, keep=keep)


def missing(*kinds: str) -> Fault:
    """Never write frames of these types or subtypes, such as ``"result"`` or ``"init"``."""
    return Counting(kinds=frozenset(kinds), times=0)


def repeats(*kinds: str) -> Fault:
    """Write frames of these types or subtypes twice."""
    return Counting(kinds=frozenset(kinds), times=2)


def in_pieces(size: int) -> Fault:
    """Let the host read so many bytes at a time, in the middle of lines and characters."""
    return Pipes(piece=size)


def stderr(text: str, times: int = 1) -> Fault:
    """Write to stderr when it starts: a few words, or a flood."""
    return Pipes(stderr=text * times)


# -- how it reads, starts and ends


def narrow_stdin(size: int) -> Fault:
    """Let the pipe of stdin hold so many bytes that were not read; without this, any number."""
    return Pipes(capacity=size)


def stops_reading(at: int = 1, *, size: int = _PIPE) -> Fault:
    """Read nothing more from the n-th line of stdin on.

    Args:
      at: The first line that it does not read.
      size: How many bytes the pipe takes before the host is stuck.
    """
    return Pipes(unread=at, capacity=size)


def starts_after(seconds: float) -> Fault:
    """Take so long to start."""
    return Starting(after=seconds)


def refuses_to_start(words: str, *, with_result: bool = False, code: int = 1) -> Fault:
    """Exit before ``initialize`` is answered.

    Args:
      words: What it says on stderr.
      with_result: Whether it says it in a result frame as well, as for an unknown session.
      code: The exit code.
    """
    return Starting(words=words, with_result=with_result, code=code)


def dies(code: int = 1, *, at: int | None = None, torn: int | None = None) -> Fault:
    """Exit at once, behind the n-th frame.

    Args:
      code: The exit code; negative for a signal.
      at: Behind which frame; None for the middle of the first turn.
      torn: How many bytes of that last frame are written; None for all.
    """
    return Dying(code=code, at=at, torn=torn)


def exits_with(code: int) -> Fault:
    """Exit with this code where the real one has 0, or 1 after an error."""
    return Leaving(code=code)


def lingers(seconds: float) -> Fault:
    """Take so long to exit when all is done."""
    return Leaving(seconds=seconds)


def holds_stdout(seconds: float = math.inf) -> Fault:
    """Leave a child behind that holds stdout open, as a daemon does."""
    return Pipes(held=seconds)
