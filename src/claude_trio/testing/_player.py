"""Play a recording: compare what the host does with what it did, and do again what the CLI did.

Nothing here waits, keeps time or does I/O; times are inputs.  A recording is a row of deeds of the
CLI and of its host.  The CLI's are done as soon as it is their turn, and at one of the host's the
player waits for it.  So the CLI never answers what it was not told, and the host has always heard
what it had heard when it spoke.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs

from claude_trio._errors import ClaudeTrioError
from claude_trio._ndjson import object_or_empty
from claude_trio.testing._same import Ids, commute, lay_out
from claude_trio.testing._wire_log import parse_line, to_bytes, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from claude_trio.testing._redact import Redactor
    from claude_trio.testing._wire_log import Recording, Row

__all__ = ["Player", "ReplayMismatch"]

_Said: TypeAlias = "Mapping[str, object] | str"

_FAILED: Final = 1
# How the CLI exits where the recording breaks off, since its writer crashed.
_EXITS: Final = {"stdin_closed": 0, "SIGHUP": 129, "SIGINT": 0, "SIGKILL": -9, "SIGTERM": 143}


@final
class ReplayMismatch(ClaudeTrioError):
    """Tell that the host does something else than was recorded.

    Attributes:
      path: The recording.
      line: The line of it that the replay has come to; None at its end.
    """

    def __init__(self, message: str, *, path: Path, line: int | None) -> None:
        place = f"{path}, line {line}" if line is not None else f"{path}, at its end"
        super().__init__(f"{place}: {message}")
        self.path = path
        self.line = line


@final
@attrs.frozen
class _Deed:
    """What the CLI or its host did."""

    row: Row
    said: _Said | None = None
    """What the host said; None if it is the CLI's."""
    event: str | None = None
    """What the host did otherwise: ``stdin_closed``, or the name of a signal."""

    @property
    def is_hosts(self) -> bool:
        return self.said is not None or self.event is not None

    def __str__(self) -> str:
        return _words(self.said, self.event)


def _words(said: _Said | None, event: str | None) -> str:
    match event:
        case None:
            return "the host says\n" + "\n".join(lay_out(said))
        case "stdin_closed":
            return "the host closes stdin"
        case _:
            return f"the host sends {event}"


def _deeds(rows: Sequence[Row]) -> Iterator[_Deed]:
    for at, row in enumerate(rows):
        match row.way, row.event:
            case ("out" | "err", _) | ("ctl", "stdout_eof"):
                yield _Deed(row)
            case "ctl", "exit":
                yield _Deed(row)
                return
            case "ctl", "stdin_closed":
                yield _Deed(row, event="stdin_closed")
            case "ctl", "signal":
                yield _Deed(row, event=str(object_or_empty(row.frame).get("signal")))
            case "in", _ if (said := _said(rows[: at + 1], rows[at + 1 :])) is not None:
                yield _Deed(row, said=said)
            case _:
                pass  # What the CLI asked the API, say, or what it left behind.


def _said(before: Sequence[Row], after: Sequence[Row]) -> _Said | None:
    """Give what a row completes; None if it is blank, or a piece that a later row completes."""
    frame = before[-1].frame
    if not isinstance(frame, str) or not frame.strip():
        return None if isinstance(frame, str) else frame
    earlier = [r.frame for r in before[:-1] if r.way == "in" and isinstance(r.frame, str)]
    later = [r.frame for r in after if r.way == "in" and isinstance(r.frame, str)]
    if (whole := parse_line(frame)) is not None:
        return whole
    if later and parse_line(frame + later[0]) is not None:
        return None
    return (parse_line(earlier[-1] + frame) if earlier else None) or frame.strip()


@final
@attrs.define(eq=False)
class Player:
    """Plays one recording, once.

    Attributes:
      out: What the CLI has written to stdout, until somebody takes it.
      stderr: What it has written to stderr.
      stdout_closed: Whether it has closed stdout.
      code: Its exit code, negative for a signal; None while it runs.
      mismatch: What the host did that was not recorded.
      left_early: Whether that is what a host does that leaves: an interrupt, EOF or a signal.
    """

    _recording: Recording
    _redactor: Redactor
    _patience: float
    """How much longer than it was recorded a deed of the host may take, in seconds."""
    _timing: bool
    """Whether the CLI takes the time that it took."""
    out: bytearray = attrs.field(factory=bytearray, init=False)
    stderr: str = attrs.field(default="", init=False)
    stdout_closed: bool = attrs.field(default=False, init=False)
    code: int | None = attrs.field(default=None, init=False)
    mismatch: ReplayMismatch | None = attrs.field(default=None, init=False)
    left_early: bool = attrs.field(default=False, init=False)
    _deeds: list[_Deed] = attrs.field(init=False)
    _ids: Ids = attrs.field(factory=Ids, init=False)
    _next: int = attrs.field(default=0, init=False)
    _done: set[int] = attrs.field(factory=set[int], init=False)
    """Deeds of the host that came early."""
    _now: float = attrs.field(default=0, init=False)
    """When the last deed was done, and when it was recorded."""
    _then: float = attrs.field(default=0, init=False)
    _pieces: list[bytes] = attrs.field(factory=list[bytes], init=False)

    def __attrs_post_init__(self) -> None:
        self._deeds = [*_deeds(self._recording.rows)]

    def begin(self, argv: Sequence[str], now: float) -> None:
        """Start, at a time in seconds."""
        self._now = now
        said = [row.frame for row in self._recording.rows if row.way == "out"]
        ids = (object_or_empty(frame).get("session_id") for frame in said)
        recorded = next((text for text in ids if isinstance(text, str)), None)
        if recorded is not None and (asked := _session_id(argv)) is not None:
            self._ids.bind(recorded, asked)
        self._go_on(now)

    def receive_data(self, data: bytes, now: float) -> None:
        """Take bytes of the host."""
        self._pieces.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._pieces).split(b"\n")
            self._pieces = [rest] if rest else []
            for line in lines:
                self._hear_line(line, now)

    def receive_eof(self, now: float) -> None:
        """Take the end of stdin; what has no end before it is a line."""
        self._hear_line(b"".join(self._pieces), now)
        self._pieces = []
        self._hear("stdin_closed", None, now)

    def receive_signal(self, name: str, now: float) -> None:
        """Take a signal."""
        self._hear(name, None, now)

    def tick(self, now: float) -> None:
        """Take the time, at `due_at` or later."""
        self._go_on(now)
        if self._expected is not None and now >= self.due_at:
            seconds = now - self._now
            self._fail(f"for {seconds:g} s nothing came; in the recording {self._expected}")

    @property
    def due_at(self) -> float:
        """When `tick` has something to do; infinity if only the host can."""
        if self.code is not None or self._next >= len(self._deeds):
            return math.inf
        deed = self._deeds[self._next]
        gap = max(0.0, deed.row.t - self._then)
        if deed.is_hosts:
            return self._now + gap + self._patience
        return self._now + (gap if self._timing else 0)

    @property
    def left(self) -> str | None:
        """What of the recording was not played; None if all was."""
        missing = [
            deed
            for at, deed in enumerate(self._deeds)
            if at >= self._next and deed.is_hosts and at not in self._done
        ]
        return f"it was not played to its end; next, {missing[0]}" if missing else None

    @property
    def line(self) -> int | None:
        """The line of the file that it has come to; None at its end."""
        at = self._next
        return self._deeds[at].row.number if at < len(self._deeds) else None

    # -- the host's deeds

    @property
    def _expected(self) -> _Deed | None:
        if self.code is not None or self._next >= len(self._deeds):
            return None
        return next((self._deeds[at] for at in self._candidates(None)), None)

    def _hear_line(self, line: bytes, now: float) -> None:
        text = to_text(line).strip()
        if text:
            frame = parse_line(text)
            told = self._redactor.text(text) if frame is None else self._redactor.value(frame)
            self._hear(None, told if isinstance(told, str) else object_or_empty(told), now)

    def _hear(self, event: str | None, said: _Said | None, now: float) -> None:
        if self.code is not None:
            return
        for at in self._candidates(said):
            if self._is_same(self._deeds[at], event, said):
                self._done.add(at)
                self._go_on(now)
                return
        if self._next >= len(self._deeds) and event is not None:
            self._exit(_EXITS.get(event, _FAILED))
        else:
            self._mismatch(event, said)

    def _candidates(self, said: _Said | None) -> Iterator[int]:
        """Find the deeds that may be meant: the host's next one, and those that may overtake it."""
        answers = object_or_empty(said).get("type") == "control_response"
        met = False
        for at in range(self._next, len(self._deeds)):
            deed = self._deeds[at]
            if not deed.is_hosts:
                if met and not answers:
                    return
                continue
            met = True
            if at not in self._done:
                yield at
            if not commute(deed.said, said):
                return

    def _is_same(self, deed: _Deed, event: str | None, said: _Said | None) -> bool:
        if deed.said is None or said is None:
            return deed.event is not None and deed.event == event
        return self._ids.same(self._told(deed), said)

    def _told(self, deed: _Deed) -> _Said:
        told = self._redactor.value(deed.said)
        return told if isinstance(told, str) else object_or_empty(told)

    # -- the CLI's deeds

    def _go_on(self, now: float) -> None:
        while self.code is None and self._next < len(self._deeds):
            deed = self._deeds[self._next]
            if deed.is_hosts:
                if self._next not in self._done:
                    return
                self._now = now
            elif self.due_at > now:
                return
            else:
                self._now = self.due_at if self._timing else now
                self._do(deed.row)
            self._then = deed.row.t
            self._next += 1

    def _do(self, row: Row) -> None:
        frame = object_or_empty(row.frame)
        match row.way, row.event:
            case "out", _:
                self.out += to_bytes(self._ids.say(to_text(row.line)))
            case "err", _:
                self.stderr += self._ids.say(f"{row.frame}\n")
            case _, "stdout_eof":
                self.stdout_closed = True
            case _:
                code = frame.get("code")
                self._exit(code if isinstance(code, int) else 0)

    def _exit(self, code: int) -> None:
        if self.code is None:
            self.code, self.stdout_closed = code, True

    # -- what was not recorded

    def _mismatch(self, event: str | None, said: _Said | None) -> None:
        asked = object_or_empty(object_or_empty(said).get("request"))
        self.left_early = event is not None or asked.get("subtype") == "interrupt"
        expected = self._expected
        if expected is None:
            self._fail(f"the recording breaks off here; now {_words(said, event)}")
        elif expected.said is not None and said is not None:
            difference = self._ids.difference(self._told(expected), said)
            self._fail(f"the host says something else than was recorded\n{difference}")
        else:
            self._fail(f"in the recording {expected}\nbut now {_words(said, event)}")

    def _fail(self, message: str) -> None:
        expected = self._expected
        line = self.line if expected is None else expected.row.number
        self.mismatch = ReplayMismatch(message, path=self._recording.path, line=line)
        self.stderr += f"{self.mismatch}\n"
        self._exit(_FAILED)


def _session_id(argv: Sequence[str]) -> str | None:
    words = [word for argument in argv for word in argument.split("=", 1)]
    at = words.index("--session-id") + 1 if "--session-id" in words else len(words)
    return words[at] if at < len(words) else None
