"""What everything that came over the wire has in common.

A session brings thousands of frames, and of most of them a program looks at one or two fields.  So
a message that came holds nothing but the JSON object at first, and each attribute is
read when it is asked for first (`__getattr__` is what Python calls when an attribute is missing).
That makes a message for little more than the price of a dict.  One that is built by hand has all
its attributes from the start, as with any attrs class.
"""

from __future__ import annotations

import reprlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from claude_trio._values import fields_of, frozen

from ._fields import Lookup, kind, look_up, lookup_of, objects

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
            lookups = _lookups[cls]
            if name not in lookups:
                field = fields_of(cls).get(name)
                if field is None:
                    raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
                lookups[name] = lookup_of(field, cls._inner)
            value = look_up(lookups[name], self._source)
            _set(self, name, value)
            return value

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in fields_of(type(self)).values())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WireObject) and type(self) is type(other):
            return self._values() == other._values()
        return NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={_SHORT.repr(value)}"
            for field, value in zip(fields_of(type(self)).values(), self._values(), strict=False)
            if field.required or value != field.make_default()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[object, ...]:
        # The attributes by name, so that a pickle outlives a new one, and what `raw` is made of.
        values = {field.name: getattr(self, field.name) for field in fields_of(type(self)).values()}
        return _rebuild, (type(self), values, getattr(self, "_source", None))


@frozen(kw_only=True, eq=False, repr=False)
class SessionFrame(WireObject):
    """A message that names its session and has an id of its own.

    Attributes:
      uuid: Its own id.  Not guaranteed unique: an idle state may be repeated with the same one.
      session_id: The session that it belongs to.
    """

    uuid: str | None = None
    session_id: str | None = None


_lookups: Final[defaultdict[type, dict[str, Lookup]]] = defaultdict(dict)

_new: Final = object.__new__
_set: Final = object.__setattr__

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
