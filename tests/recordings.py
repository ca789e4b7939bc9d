"""Where recorded conversations with the real CLI lie, and what stands in them.

A recording is a file of JSON lines: a header (``scenario``, ``cli_version``, ``argv``, ``env``,
``exit``), then rows ``{"t", "dir", "frame"}``.  A row has ``raw`` if its line is no JSON object
(``frame`` is then its text), and ``line`` if the line's own spelling matters.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KEPT", "recorded_output", "rows", "whole_set"]

ROOT: Final = Path(__file__).parent.parent
KEPT: Final = ROOT / "tests" / "recorded"
VARIABLE: Final = "CLAUDE_TRIO_RECORDINGS"


def whole_set() -> list[Path]:
    """Find every recording where the whole set is at hand, else those that are kept here.

    The whole set lies in the folder that the environment variable ``CLAUDE_TRIO_RECORDINGS``
    names, or in a folder ``wire`` of a neighbour of the checkout.
    """
    named = os.environ.get(VARIABLE)
    folders = [Path(named)] if named else sorted(ROOT.parent.glob("*/wire"))
    for folder in folders:
        if found := sorted(folder.glob("**/*.ndjson")):
            return found
    return sorted(KEPT.glob("**/*.ndjson"))


def rows(path: Path) -> Iterator[dict[str, object]]:
    """Read the rows of a recording, without its header."""
    with path.open("rb") as lines:
        next(lines)
        for line in lines:
            yield json.loads(line)


def recorded_output(path: Path) -> Iterator[tuple[bytes, dict[str, object]]]:
    """Read the lines that the CLI wrote, each with the frame that it is."""
    for row in rows(path):
        if row["dir"] == "out" and "raw" not in row:
            frame = cast("dict[str, object]", row["frame"])
            is_whole = row.keys().isdisjoint({"elided", "trimmed"})
            line = row.get("line") if is_whole else None
            yield line.encode() if isinstance(line, str) else _spelled(frame), frame


def _spelled(frame: dict[str, object]) -> bytes:
    try:
        return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half an emoji: it can be written as an escape only.
        return json.dumps(frame, separators=(",", ":")).encode()
