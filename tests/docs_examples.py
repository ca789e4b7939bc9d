"""The Python programs in the README and the documentation, and a way to write them to files."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["examples", "write_examples"]

ROOT: Final = Path(__file__).parent.parent
_FENCED: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DIRECTIVE: Final = re.compile(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", re.MULTILINE)


def examples() -> Iterator[tuple[str, str]]:
    """Yield each program with a name that is good for a module too."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]:
        text = path.read_text(encoding="utf-8")
        for number, found in enumerate(
            (_FENCED if path.suffix == ".md" else _DIRECTIVE).findall(text)
        ):
            stem = re.sub(r"\W", "_", str(path.relative_to(ROOT).with_suffix("")))
            yield f"example_{stem}_{number}".lower(), textwrap.dedent(found)


def write_examples(folder: Path) -> None:
    """Write each program to a file of its own, for the type checkers."""
    for old in folder.glob("example_*.py"):
        old.unlink()
    for name, program in examples():
        (folder / f"{name}.py").write_text(program, encoding="utf-8")


if __name__ == "__main__":
    write_examples(Path(sys.argv[1]))
