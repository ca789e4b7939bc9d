"""JSON read leniently: a line to an object, and the object to the attributes of a message.

A frame of a newer or older CLI may lack a field, or have null or something else in it.  None of
that is an error: where no fitting value is found, the attribute has its default.  The text of an
attribute's annotation says what fits: the few types that messages are made of stand in `_KINDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import msgspec

if TYPE_CHECKING:
    from claude_trio._values import Field

__all__ = [
    "Lookup",
    "items",
    "kind",
    "look_up",
    "lookup_of",
    "mapping",
    "number",
    "objects",
    "optional_text",
    "parse_object",
    "texts",
    "wire",
]

_decode: Final = msgspec.json.Decoder(dict[str, object]).decode


def parse_object(line: bytes | str) -> dict[str, object]:
    """Parse a line that holds one JSON object.

    Half emojis (lone surrogates), ``NaN`` and numbers out of a float's range are taken as
    Python's `json` takes them; of a key that is there twice, the last counts.

    Args:
      line: The line, with or without its end; bytes are UTF-8, with or without a mark.

    Raises:
      ValueError: if it is no JSON object, or one that cannot be held: not UTF-8, nested too
        deeply, an integer of more digits than Python converts.
    """
    try:
        return _decode(line)
    except msgspec.ValidationError as error:
        # An array or a bare value, or a number that msgspec does not hold.
        if not _begins_object(line):
            raise ValueError(str(error)) from error
    except (ValueError, RecursionError):
        pass
    return _parse_slowly(line)


def _begins_object(line: bytes | str) -> bool:
    if isinstance(line, str):
        return line.lstrip().startswith("{")
    return line.lstrip().startswith(b"{")


def _parse_slowly(line: bytes | str) -> dict[str, object]:
    import json  # noqa: PLC0415  Hardly any program ever needs it, and it takes a while to import.

    text = line.decode() if isinstance(line, bytes) else line
    try:
        parsed: object = json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError("the JSON is not an object")
    return parsed


# The JSON types that fit, as Python's (None if anything does), and what makes the attribute's
# value of one that fits (None if it is the value itself).
_Kind: TypeAlias = tuple[tuple[type, ...] | None, Callable[[object], object] | None]
# A default, and what makes it if it is made anew for each.
_Default: TypeAlias = tuple[object, Callable[[], object] | None]


class Lookup:
    """How one attribute is read.

    Attributes:
      keys: What the wire may call it.
      fits: The JSON types that fit, as Python's; None if anything does.
      make: What makes the attribute's value of one that fits; None if it is the value itself.
      default: What it is where nothing fits.
      factory: What makes the default, if it is made anew for each.
      within: The key of an object within where it is looked for next, and how.
    """

    __slots__ = ("default", "factory", "fits", "keys", "make", "within")

    def __init__(
        self,
        keys: tuple[str, ...],
        kind: _Kind,
        default: _Default,
        within: tuple[str, Lookup] | None = None,
    ) -> None:
        self.keys = keys
        self.fits, self.make = kind
        self.default, self.factory = default
        self.within = within


def optional_text(value: object) -> str | None:
    """Return ``value`` if it is a string."""
    return value if isinstance(value, str) else None


def mapping(value: object) -> dict[str, object]:
    """Return ``value`` if it is an object, else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def items(value: object) -> tuple[object, ...]:
    """Return what is in a list."""
    return tuple(cast("list[object]", value)) if isinstance(value, list) else ()


def texts(value: object) -> tuple[str, ...]:
    """Return the strings of a list."""
    return tuple(x for x in items(value) if isinstance(x, str))


def objects(value: object) -> tuple[dict[str, object], ...]:
    """Return the objects of a list."""
    return tuple(cast("dict[str, object]", x) for x in items(value) if isinstance(x, dict))


def number(value: object) -> float | None:
    """Return ``value`` if it is a number, neither infinite nor too large to compute with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


# An attribute's annotation, and what fits it.  A bool is no number, and no string is one.
_KINDS: Final[dict[str, _Kind]] = {
    "str": ((str,), None),
    "str | None": ((str,), None),
    "bool": ((bool,), None),
    "bool | None": ((bool,), None),
    "int | None": ((int,), None),
    "float | None": ((int, float), number),
    "dict[str, object]": ((dict,), None),
    "Mapping[str, object]": ((dict,), None),
    "Mapping[str, object] | None": ((dict,), None),
    "tuple[str, ...]": ((list,), texts),
    "tuple[Mapping[str, object], ...]": ((list,), objects),
    "tuple[object, ...]": ((list,), items),
    "object": (None, None),
}

# What an attribute that declares no default is where nothing fits; the others are tuples.
_NEUTRAL: Final[dict[str, _Default]] = {
    "str": ("", None),
    "bool": (False, None),
    "dict[str, object]": (None, dict),
    "Mapping[str, object]": (None, dict),
}

_Metadata: TypeAlias = Mapping[str, object]
_KEY: Final = "claude_trio.key"
_KIND: Final = "claude_trio.kind"
_INSIDE: Final = "claude_trio.inside"


def wire(key: str, *, inside: bool = False) -> _Metadata:
    """Make the metadata of an attribute that the wire calls ``key``.

    Args:
      key: The wire's name for it.
      inside: Whether it stands in the object within only.
    """
    return {_KEY: key, _INSIDE: inside}


def kind(fits: tuple[type, ...], make: Callable[[object], object]) -> _Metadata:
    """Make the metadata of an attribute whose value ``make`` makes of one of these types."""
    return {_KIND: (fits, make)}


def lookup_of(field: Field, inner: str | None) -> Lookup:
    """Tell how an attribute is read.

    Args:
      field: The attribute.
      inner: The key of an object within its object whose fields are attributes as well.
    """
    metadata = cast("_Metadata", field.told.get("metadata", {}))
    key = cast("str", metadata.get(_KEY, field.name))
    keys = tuple(dict.fromkeys((key, _camel(key))))
    how = cast("_Kind", metadata.get(_KIND) or _KINDS[field.annotation])
    default: _Default = (field.default, field.factory)
    if field.required:
        default = _NEUTRAL.get(field.annotation, ((), None))
    lookup = Lookup(keys, how, default)
    if inner is None:
        return lookup
    return Lookup(() if metadata.get(_INSIDE) else keys, how, default, (inner, lookup))


def look_up(lookup: Lookup, raw: dict[str, object]) -> object:
    """Find the value of an attribute in its object.

    Where it stands both in the object and in the one within, the outer one counts if it fits.
    """
    for key in lookup.keys:
        value = raw.get(key)
        # Null is like absent: it is the default of what it would fit.
        if value is not None and (lookup.fits is None or type(value) in lookup.fits):
            return value if lookup.make is None else lookup.make(value)
    if lookup.within is not None:
        key, lookup = lookup.within
        return look_up(lookup, mapping(raw.get(key)))
    return lookup.default if lookup.factory is None else lookup.factory()


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
