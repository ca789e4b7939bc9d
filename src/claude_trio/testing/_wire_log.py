"""The form of a recording: JSON lines, a header first, then a row for each thing that happened.

The header says ``scenario``, ``cli_version``, ``argv``, ``env`` (what was added to the
environment) and ``exit`` (negative: killed by that signal; null: not known).  A row is
``{"t", "dir", "frame"}``: seconds since the start; ``in`` (a line of stdin), ``out`` (of stdout),
``err`` (of stderr) or ``ctl`` (no line, but ``{"event": ...}``: ``stdin_closed``, ``signal``,
``stdout_eof``, ``exit``, and others that a replay has no use for).  ``raw`` marks a line that is no
JSON object, whose text ``frame`` is; ``line`` is how a frame was spelled, where JSON has more than
one way; ``cut`` marks a last line without its end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast, final

import attrs

from claude_trio._ndjson import object_or_empty

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = ["Recording", "Row", "load", "parse_line", "row_of_line", "to_bytes", "to_text"]


@final
@attrs.frozen(kw_only=True)
class Row:
    """One thing that happened."""

    number: int
    """Which line of the file it is; the header is line 1."""
    t: float
    way: str
    frame: Mapping[str, object] | str
    """A JSON object, or the text of a line that is none."""
    line: bytes
    """The line as it was, with its end; empty for ``ctl``."""

    @property
    def event(self) -> str | None:
        """What happened, for ``ctl``."""
        event = self.frame.get("event") if isinstance(self.frame, dict) else None
        return str(event) if self.way == "ctl" else None


@final
@attrs.frozen(kw_only=True)
class Recording:
    """What a file holds."""

    path: Path
    rows: tuple[Row, ...]


def load(path: str | PathLike[str]) -> Recording:
    """Read a recording.

    Not in a thread: a clock that jumps ahead when all tasks sleep does not see threads.  A last
    line that was not written to its end, because the writer crashed, is left out.

    Raises:
      OSError: if the file cannot be read.
      ValueError: if it is no recording.
    """
    path = Path(path)
    lines = path.read_bytes().split(b"\n")
    whole, torn = lines[:-1], lines[-1]
    rows: list[Row] = []
    header: Mapping[str, object] | None = None
    for number, line in enumerate(whole + ([torn] if torn else []), 1):
        told = parse_line(to_text(line))
        if told is None and line is torn:
            break
        if header is None:
            header = _checked(told, "argv", path, number)
        else:
            rows.append(_row(_checked(told, "dir", path, number), number))
    if header is None:
        raise ValueError(f"{path} holds no recording")
    return Recording(path=path, rows=tuple(rows))


def _checked(
    told: Mapping[str, object] | None, key: str, path: Path, number: int
) -> Mapping[str, object]:
    if told is None or key not in told:
        raise ValueError(f"{path}, line {number}: this is no line of a recording")
    return told


def _row(told: Mapping[str, object], number: int) -> Row:
    frame, t = told.get("frame"), told.get("t")
    body = frame if isinstance(frame, str) else object_or_empty(frame)
    # Where the frame was shortened, its spelling is that of the whole one.
    spelled = None if "elided" in told or "trimmed" in told else told.get("line")
    if not isinstance(spelled, str):
        spelled = body if isinstance(body, str) else _spelled(body)
    return Row(
        number=number,
        t=float(t) if isinstance(t, int | float) else 0.0,
        way=str(told["dir"]),
        frame=body,
        line=b"" if told["dir"] == "ctl" else to_bytes(spelled) + (b"" if "cut" in told else b"\n"),
    )


def row_of_line(line: bytes, frame: object, changed: object) -> dict[str, object]:
    """Say what a row holds of a line.

    Args:
      line: The line, without its end.
      frame: What it says; None if it is no object.
      changed: The same without its secrets; of a line that is no object, its text.
    """
    if frame is None:
        return {"frame": changed, "raw": True}
    text = to_text(line)
    # The spelling of what was redacted would give it away, and so would a name that comes twice.
    if frame == changed and text != _spelled(changed) and not _has_twins(text):
        return {"frame": changed, "line": text}
    return {"frame": changed}


def _spelled(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # Half an emoji: it can be written as an escape only.
        return json.dumps(value, separators=(",", ":"))
    return text


def _has_twins(text: str) -> bool:
    found = False

    def note(pairs: list[tuple[str, object]]) -> None:
        nonlocal found
        found = found or len(pairs) != len({name for name, _ in pairs})

    json.loads(text, object_pairs_hook=note)
    return found


def parse_line(text: str) -> dict[str, object] | None:
    """Read a line; None if it is no JSON object."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def to_text(line: bytes) -> str:
    """Give a line as text; bytes that are no UTF-8 come through."""
    return line.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """Give the bytes of what `to_text` made of them."""
    return text.encode("utf-8", "surrogateescape")
