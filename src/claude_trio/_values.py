"""Values: frozen attrs classes that share their methods, so that defining one costs very little.

attrs writes the methods of each class anew and compiles them.  That takes a third of a millisecond,
more for a class with many attributes, and of the hundred kinds of messages, options and decisions a
program makes a few.  So the classes here share one set of methods, which look at the declarations
when they run, and attrs is called in only when somebody asks it about such a class.

Nobody else need know.  To a type checker `frozen` and `field` are those of attrs; ``attrs.fields``,
``attrs.evolve``, ``attrs.asdict`` and ``inspect.signature`` say what they say of any attrs class;
and what `frozen` and `field` take here means what it means there, with two exceptions: instances
have no slots but those that the class itself declares, and a default is what it is, neither
converted nor validated.

The shared constructor takes twice as long as a compiled one.  What is made for each frame that
comes is therefore made without it (`claude_trio.messages`), or is a `Record`.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attrs import field, frozen

    _Validator: TypeAlias = Callable[[object, "Field", object], object]

__all__ = ["Field", "Record", "field", "fields_of", "frozen"]


class Record:
    """What is made so often that its constructor is written out: slots, and nothing else to run.

    Two are equal if they are of one class and their slots are equal.  Nothing but custom keeps one
    from being changed, so these stay inside of the library.
    """

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # As of anything that could be changed.

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
        return f"{type(self).__name__}({', '.join(shown)})"


class Field:
    """How one attribute of a value is declared.

    Attributes:
      name: Its name.
      annotation: Its type, as it is written.
      default: Its default; `attrs.NOTHING` if it has none or a factory.
      factory: What makes its default.
      converter: What makes the value of what is given.
      validator: What looks at it then; it gets this object where attrs gives an `attrs.Attribute`.
      kw_only: Whether the constructor takes it by keyword only.
      told: All that attrs is told of it.
    """

    __slots__ = (
        *("annotation", "converter", "default", "factory"),
        *("kw_only", "name", "told", "validator"),
    )

    def __init__(self, name: str, annotation: str, declared: object, *, kw_only: bool) -> None:
        told = declared if isinstance(declared, _Told) else {"default": declared}
        self.name = name
        self.annotation = annotation
        self.default = told.get("default", attrs.NOTHING)
        self.factory = cast("Callable[[], object] | None", told.get("factory"))
        self.converter = cast("Callable[[object], object] | None", told.get("converter"))
        self.validator = cast("_Validator | None", told.get("validator"))
        self.kw_only = kw_only or bool(told.get("kw_only"))
        self.told: Mapping[str, object] = {**told, "kw_only": self.kw_only, "type": annotation}

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is attrs.NOTHING and self.factory is None

    def make_default(self) -> object:
        """Return its default, made anew where a factory makes it."""
        return self.default if self.factory is None else self.factory()


class _Told(dict[str, object]):
    """What `field` was told."""


def _field(**told: object) -> object:
    return _Told(told)


# Of each class: its own attributes, with their types, what is declared of them, and whether they
# are given by keyword only.
_declared: Final[dict[type, dict[str, tuple[str, object, bool]]]] = {}
_fields: Final[dict[type, Mapping[str, Field]]] = {}


def _frozen(
    cls: type | None = None,
    *,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002  As attrs has it.
) -> object:
    if cls is None:
        return functools.partial(_frozen, kw_only=kw_only, eq=eq, repr=repr)
    own = dict(vars(cls))
    slots = own.get("__slots__", ())
    _declared[cls] = declared = {}
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation.startswith("ClassVar"):
            continue
        has_default = name in own and name not in slots
        declared[name] = (annotation, own[name] if has_default else attrs.NOTHING, kw_only)
        if has_default:
            delattr(cls, name)
    for name, method in (_METHODS | (_EQ if eq else {}) | (_REPR if repr else {})).items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def fields_of(cls: type) -> Mapping[str, Field]:
    """Tell how the attributes of a value are declared, its bases' first."""
    found = _fields.get(cls)
    if found is None:
        found = _fields[cls] = {
            name: Field(name, annotation, declared, kw_only=kw_only)
            for base in reversed(cls.__mro__)
            for name, (annotation, declared, kw_only) in _declared.get(base, {}).items()
        }
    return found


# -- what the constructor does


class _Plan:
    # What the constructor has to know of a class.
    def __init__(self, cls: type) -> None:
        self.name = cls.__name__
        self.fields = fields_of(cls)
        self.by_place = tuple(name for name, one in self.fields.items() if not one.kw_only)
        self.defaults = {
            name: one.default
            for name, one in self.fields.items()
            if one.default is not attrs.NOTHING
        }
        self.post_init = cast(
            "Callable[[object], None] | None", getattr(cls, "__attrs_post_init__", None)
        )

    def by_name(self, args: tuple[object, ...], given: dict[str, object]) -> dict[str, object]:
        if len(args) > len(self.by_place):
            raise TypeError(f"{self.name}() takes {len(self.by_place)} arguments by their place")
        named = dict(zip(self.by_place, args, strict=False))
        if given and (twice := named.keys() & given.keys()):
            raise TypeError(f"{self.name}() has two values for {min(twice)!r}")
        return named | given

    def complete(self, values: dict[str, object]) -> None:
        for name, one in self.fields.items():
            if name not in values:
                if one.required:
                    raise TypeError(f"{self.name}() needs the argument {name!r}")
                values[name] = one.make_default()


_plans: Final[dict[type, _Plan]] = {}


def _plan(cls: type) -> _Plan:
    found = _plans.get(cls)
    if found is None:
        found = _plans[cls] = _Plan(cls)
    return found


def _init(self: object, /, *args: object, **given: object) -> None:
    plan = _plan(type(self))
    fields = plan.fields
    if args:
        given = plan.by_name(args, given)
    if not given.keys() <= fields.keys():
        wrong = min(given.keys() - fields.keys())
        raise TypeError(f"{plan.name}() has no argument {wrong!r}")
    values = plan.defaults | given
    if len(values) < len(fields):
        plan.complete(values)
    for name, value in given.items():
        if (converter := fields[name].converter) is not None:
            values[name] = converter(value)
    vars(self).update(values)
    for name in given:
        if (validator := fields[name].validator) is not None:
            validator(self, fields[name], values[name])
    if plan.post_init is not None:
        plan.post_init(self)


# -- the other methods


def _refuse_change(_self: object, *_args: object) -> None:
    raise attrs.exceptions.FrozenInstanceError


def _replace(self: object, **changes: object) -> object:
    values = {name: getattr(self, name) for name in fields_of(type(self))}
    return type(self)(**values | changes)


def _compared(self: object) -> tuple[object, ...]:
    fields = fields_of(type(self)).values()
    return tuple([getattr(self, one.name) for one in fields if one.told.get("eq", True)])


def _eq(self: object, other: object) -> bool:
    return _compared(self) == _compared(other) if type(self) is type(other) else NotImplemented


def _hash(self: object) -> int:
    return hash((type(self), _compared(self)))


def _repr(self: object) -> str:
    fields = fields_of(type(self)).values()
    shown = [
        f"{one.name}={getattr(self, one.name)!r}" for one in fields if one.told.get("repr", True)
    ]
    return f"{type(self).__name__}({', '.join(shown)})"


# -- what attrs is asked


_made: Final[dict[type, type[attrs.AttrsInstance]]] = {}


def _made_by_attrs(cls: type) -> type[attrs.AttrsInstance]:
    """Let attrs make a class that is declared as ``cls`` is."""
    if cls not in _made:
        fields: dict[str, object] = {
            name: attrs.field(**one.told)  # type: ignore[call-overload]  # It is what it takes.
            for name, one in fields_of(cls).items()
        }
        made = attrs.make_class(cls.__name__, fields, eq=False, repr=False)
        _made[cls] = cast("type[attrs.AttrsInstance]", made)
    return _made[cls]


class _Asked:
    # An attribute of a class that is made when somebody asks for it.
    def __init__(self, make: Callable[[type], object], *, of_instances: bool = True) -> None:
        self.make = make
        self.of_instances = of_instances

    def __get__(self, instance: object, owner: type) -> object:
        if instance is not None and not self.of_instances:
            raise AttributeError
        return self.make(owner)


_METHODS: Final[dict[str, object]] = {
    "__init__": _init,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_change,
    "__replace__": _replace,
    "__match_args__": _Asked(lambda cls: _plan(cls).by_place),
    "__attrs_attrs__": _Asked(lambda cls: attrs.fields(_made_by_attrs(cls))),
    # An instance may be callable, and have a signature of its own.
    "__signature__": _Asked(lambda cls: inspect.signature(_made_by_attrs(cls)), of_instances=False),
}
_EQ: Final[dict[str, object]] = {"__eq__": _eq, "__hash__": _hash}
_REPR: Final[dict[str, object]] = {"__repr__": _repr}

if not TYPE_CHECKING:  # pragma: no branch
    field, frozen = _field, _frozen
