"""How an attribute is read from the JSON object that it stands in, leniently.

A frame of a newer or older CLI may lack a field, or have null or something else in it.  None of
that is an error: where no fitting value is found, the attribute has its default.  The text of an
attribute's annotation says what fits: the few types that messages are made of stand in `_KINDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

import attrs

__all__ = [
    "Field",
    "default_of",
    "fields_of",
    "items",
    "kind",
    "look_up",
    "mapping",
    "number",
    "objects",
    "optional_text",
    "texts",
    "wire",
]


@attrs.frozen
class _Kind:
    # The JSON types that fit, as Python's; None if anything does.
    fits: tuple[type, ...] | None
    # What makes the attribute's value of one that fits; None if it is the value itself.
    make: Callable[[object], object] | None = None


@attrs.frozen
class Field:
    """How one attribute is read.

    Attributes:
      keys: What the wire may call it.
      fits: The JSON types that fit, as Python's; None if anything does.
      make: What makes the attribute's value of one that fits; None if it is the value itself.
      default: What it is where nothing fits, as attrs declares it.
      store: Sets it in an instance, which is frozen.
      within: The key of an object within where it is looked for next, and how.
    """

    keys: tuple[str, ...]
    fits: tuple[type, ...] | None
    make: Callable[[object], object] | None
    default: object
    store: Callable[[object, object], None]
    within: tuple[str, Field] | None = None


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
    "str": _Kind((str,)),
    "str | None": _Kind((str,)),
    "bool": _Kind((bool,)),
    "bool | None": _Kind((bool,)),
    "int | None": _Kind((int,)),
    "float | None": _Kind((int, float), number),
    "dict[str, object]": _Kind((dict,)),
    "Mapping[str, object]": _Kind((dict,)),
    "Mapping[str, object] | None": _Kind((dict,)),
    "tuple[str, ...]": _Kind((list,), texts),
    "tuple[Mapping[str, object], ...]": _Kind((list,), objects),
    "tuple[object, ...]": _Kind((list,), items),
    "object": _Kind(None),
}

# What an attribute that declares no default is where nothing fits; the others are tuples.
_NEUTRAL: Final[dict[str, object]] = {
    "str": "",
    "bool": False,
    "dict[str, object]": attrs.Factory(dict),
    "Mapping[str, object]": attrs.Factory(dict),
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
    return {_KIND: _Kind(fits, make)}


def fields_of(cls: type, inner: str | None) -> dict[str, Field]:
    """Tell how the attributes of an attrs class are read, by their names.

    Args:
      cls: The class.
      inner: The key of an object within the object whose fields are attributes as well.
    """
    found = {}
    for attribute in attrs.fields(cast("type[attrs.AttrsInstance]", cls)):
        metadata = attribute.metadata
        key = cast("str", metadata.get(_KEY, attribute.name))
        annotation = cast("str", attribute.type)
        how = cast("_Kind", metadata.get(_KIND) or _KINDS[annotation])
        default: object = attribute.default
        if default is attrs.NOTHING:
            default = _NEUTRAL.get(annotation, ())
        field = Field(
            keys=tuple(dict.fromkeys((key, _camel(key)))),
            fits=how.fits,
            make=how.make,
            default=default,
            store=getattr(cls, attribute.name).__set__,
        )
        if inner is not None:
            outer_keys = () if metadata.get(_INSIDE) else field.keys
            field = attrs.evolve(field, keys=outer_keys, within=(inner, field))
        found[attribute.name] = field
    return found


def look_up(field: Field, raw: dict[str, object]) -> object:
    """Find the value of an attribute in its object.

    Where it stands both in the object and in the one within, the outer one counts if it fits.
    """
    for key in field.keys:
        value = raw.get(key)
        # Null is like absent: it is the default of what it would fit.
        if value is not None and (field.fits is None or type(value) in field.fits):
            return value if field.make is None else field.make(value)
    if field.within is not None:
        key, field = field.within
        return look_up(field, mapping(raw.get(key)))
    return default_of(field.default)


def default_of(declared: object) -> object:
    """Return the value of an attribute's declared default."""
    factory: Callable[[], object] | None = getattr(declared, "factory", None)
    return declared if factory is None else factory()


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
