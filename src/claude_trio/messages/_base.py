"""What everything that came over the wire has in common.

A session brings thousands of frames, and of most of them a program looks at one or two fields.  So
a message that came holds nothing but the JSON object at first: its slots are empty, and each is
filled when it is asked for first (`__getattr__` is what Python calls when a slot is empty).  That
makes a message for little more than the price of a dict.  One that is built by hand has all its
slots filled by `__init__`, as with any attrs class.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, cast

import attrs

from ._fields import Field, default_of, fields_of, kind, look_up, objects

__all__ = ["SessionFrame", "WireObject", "of_wire", "parts", "set_source"]

_W = TypeVar("_W", bound="WireObject")


class WireObject:
    """One JSON object of the CLI: a message, a content block, or a part of one.

    The attributes are what we know of it, under Python's spelling.  An attribute whose field is
    absent, null or of an unexpected type has its default; `raw` tells which.  Of a list, the
    entries of an unexpected type are left out.

    Two are equal if they are of one class and their attributes are equal.  `raw` does not count,
    so that one built by hand equals one that came (except for those that we do not know: of them
    `raw` is all there is).  They can be hashed where every attribute can.  Copies and pickles
    keep `raw`; what `attrs.evolve` makes has none.
    """

    __slots__ = ("_source",)

    _source: bytes | dict[str, object]
    # The key of an object within the object whose fields are attributes as well.
    _inner: ClassVar[str | None] = None

    @property
    def raw(self) -> Mapping[str, object]:
        """All that came, unknown fields included; empty if it was built by hand.

        It is the decoder's own dict and shared by everybody who holds this object: read it only.
        """
        source = getattr(self, "_source", None)
        return source if isinstance(source, dict) else {}

    # Hidden from type checkers, which would take any misspelt attribute for one of these.
    if not TYPE_CHECKING:  # pragma: no branch

        def __getattr__(self, name: str) -> object:
            cls = type(self)
            fields = _fields.get(cls)
            if fields is None and name in attrs.fields_dict(cls):
                fields = _fields[cls] = fields_of(cls, cls._inner)
            if fields is None or name not in fields:
                raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
            field = fields[name]
            value = look_up(field, self._source)
            field.store(self, value)
            return value

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in _attributes(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WireObject) and type(self) is type(other):
            return self._values() == other._values()
        return NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={_SHORT.repr(value)}"
            for field, value in zip(_attributes(self), self._values(), strict=False)
            if field.default is attrs.NOTHING or value != default_of(field.default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[object, ...]:
        # The attributes by name, so that a pickle outlives a new one; attrs' own state methods
        # know nothing of the slot that holds `raw`.
        values = {field.name: getattr(self, field.name) for field in _attributes(self)}
        return _rebuild, (type(self), values, getattr(self, "_source", None))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SessionFrame(WireObject):
    """A message that names its session and has an id of its own.

    Attributes:
      uuid: Its own id.  Not guaranteed unique: an idle state may be repeated with the same one.
      session_id: The session that it belongs to.
    """

    uuid: str | None = None
    session_id: str | None = None


_fields: Final[dict[type, dict[str, Field]]] = {}

_new: Final = object.__new__

set_source: Final[Callable[[WireObject, bytes | dict[str, object]], None]] = vars(WireObject)[
    "_source"
].__set__
"""Set what `raw` is made of: the slot's own setter, since the classes are frozen."""


def of_wire(cls: type[_W], raw: dict[str, object]) -> _W:
    """Make a ``cls`` of a JSON object, which becomes its `raw`."""
    made = _new(cls)
    set_source(made, raw)
    return made


def parts(cls: type[WireObject]) -> Mapping[str, object]:
    """Make the metadata of an attribute that holds one ``cls`` for each object of a list."""
    return kind((list,), lambda value: tuple(of_wire(cls, x) for x in objects(value)))


def _attributes(of: WireObject) -> tuple[attrs.Attribute[object], ...]:
    return cast(
        "tuple[attrs.Attribute[object], ...]",
        attrs.fields(cast("type[attrs.AttrsInstance]", type(of))),
    )


def _rebuild(
    cls: Callable[..., WireObject],
    values: Mapping[str, object],
    source: bytes | dict[str, object] | None,
) -> WireObject:
    made = cls(**values)
    if source is not None:
        set_source(made, source)
    return made


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 80
        self.maxtuple = self.maxlist = self.maxdict = 4
        self.maxlevel = 3


_SHORT: Final = _Short()
