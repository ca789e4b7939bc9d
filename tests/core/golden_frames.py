"""The golden frames: one file for each kind, with the class and the attributes that it gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import attrs

from claude_trio.messages import WireObject

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GOLDENS", "Golden", "attribute_names", "line_of", "shown"]

FOLDER: Final = Path(__file__).parent.parent / "golden"


@attrs.frozen
class Golden:
    """A frame, and what it is to be decoded to."""

    name: str
    cls: str
    attributes: dict[str, object]
    frame: dict[str, object]

    def __str__(self) -> str:
        return self.name


def line_of(frame: dict[str, object]) -> bytes:
    """Spell a frame as the CLI does."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()


def attribute_names(cls: type[WireObject]) -> Iterator[str]:
    """Name the attributes that come from the wire: attrs' own, and those that are properties."""
    yield from attrs.fields_dict(cast("type[attrs.AttrsInstance]", cls))
    for name, value in vars(cls).items():
        if isinstance(value, property) and name not in {"raw", "text", "text_delta"}:
            yield name


def shown(value: object) -> object:
    """Show a message as JSON: its class, and the attributes that are not at their defaults."""
    if isinstance(value, tuple):
        return [shown(item) for item in value]
    if not isinstance(value, WireObject):
        return value
    fields = attrs.fields_dict(cast("type[attrs.AttrsInstance]", type(value)))
    result: dict[str, object] = {"class": type(value).__name__}
    for name in attribute_names(type(value)):
        found = getattr(value, name)
        default = fields[name].default if name in fields else None
        if default is attrs.NOTHING or found not in (default, None, (), {}):
            result[name] = shown(found)
    return result


def _load(path: Path) -> Golden:
    golden = json.loads(path.read_text(encoding="utf-8"))
    return Golden(path.stem, golden["class"], golden["attributes"], golden["frame"])


GOLDENS: Final = [_load(path) for path in sorted(FOLDER.glob("*.json"))]
