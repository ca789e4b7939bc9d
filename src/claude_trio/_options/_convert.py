"""What callers may give for an option, and what becomes of it.

A converter never fails: it turns what it knows into what is kept, and leaves the rest as it is.
The validators of `_check` then refuse that, and name the option.

What is kept belongs to the options alone: sequences become tuples, mappings are copied.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias, cast
from uuid import UUID

__all__ = [
    "PathLike",
    "StrPath",
    "copied",
    "json_mapping",
    "models",
    "optional_copied",
    "path",
    "paths",
    "plain",
    "program",
    "servers",
    "settings_or_path",
    "to_json",
    "uuid_text",
    "words",
    "words_or_word",
]


class PathLike(Protocol):
    """Something that names a path, as `pathlib.Path` does."""

    def __fspath__(self) -> str:
        """Return the path."""
        ...


StrPath: TypeAlias = str | PathLike


def _plain(value: object) -> object:
    return cast("object", value.value) if isinstance(value, enum.Enum) else value


def _path(value: object) -> object:
    return cast("PathLike", value).__fspath__() if hasattr(value, "__fspath__") else value


def _tuple(value: object, item: Callable[[object], object]) -> object:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return value
    return tuple([item(each) for each in cast("Iterable[object]", value)])


def _copy(value: object) -> object:
    return dict(cast("Mapping[object, object]", value)) if isinstance(value, Mapping) else value


def plain(value: str | None) -> str | None:
    """Take text, and the value of an enum's member."""
    return cast("str | None", _plain(value))


def path(value: StrPath | None) -> str | None:
    """Take the text of a path."""
    return cast("str | None", _path(value))


def words(value: Iterable[str] | None) -> tuple[str, ...] | None:
    """Make a tuple of a sequence; one string is no sequence of strings."""
    return cast("tuple[str, ...] | None", _tuple(value, _plain))


def words_or_word(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Make a tuple; one string is a tuple of one."""
    return words((value,) if isinstance(value, str) else value)


def models(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Make a tuple; one string may hold several models, with commas between."""
    return words(value.split(",") if isinstance(value, str) else value)


def paths(value: StrPath | Iterable[StrPath] | None) -> tuple[str, ...] | None:
    """Make a tuple of paths; one path is a tuple of one."""
    one = isinstance(value, str) or hasattr(value, "__fspath__")
    return cast("tuple[str, ...] | None", _tuple((value,) if one else value, _path))


def program(value: Iterable[StrPath] | None) -> tuple[str, ...] | None:
    """Make a tuple of a program and its arguments."""
    return cast("tuple[str, ...] | None", _tuple(value, _path))


def servers(
    value: Iterable[str | Mapping[str, object]] | None,
) -> tuple[str | Mapping[str, object], ...] | None:
    """Make a tuple of names and configurations."""
    return cast("tuple[str | Mapping[str, object], ...] | None", _tuple(value, _plain))


def uuid_text(value: str | UUID | None) -> str | None:
    """Spell a UUID as the CLI does."""
    if isinstance(value, UUID):
        return str(value)
    try:
        return str(UUID(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def copied(value: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """Copy a mapping."""
    return cast("Mapping[str, str | None]", _copy(value))


def optional_copied(value: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Copy a mapping that may be missing."""
    return cast("Mapping[str, str] | None", _copy(value))


def _unwrap(value: object) -> object:
    if isinstance(value, Mapping):
        return _copy(cast("object", value))
    raise TypeError(f"JSON has no {type(value).__name__}")


def to_json(value: object) -> str:
    """Write JSON as the command line and files carry it.

    Raises:
      TypeError: if JSON has no such value.
      ValueError: if it has no such number, or the value contains itself.
    """
    import json  # noqa: PLC0415  Few options need it, and it takes a while to import.

    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_unwrap
    )


def json_mapping(value: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Copy a JSON object to its depths."""
    if not isinstance(value, Mapping):
        return value
    import json  # noqa: PLC0415  As above.

    try:
        return cast("dict[str, object]", json.loads(to_json(value)))
    except (TypeError, ValueError, RecursionError):
        return value


def settings_or_path(
    value: Mapping[str, object] | StrPath | None,
) -> Mapping[str, object] | str | None:
    """Copy settings, or take the text of a path to them."""
    return json_mapping(value) if isinstance(value, Mapping) else path(value)
