"""Values are attrs classes to whoever asks, and share their methods until somebody does."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import ClassVar

import attrs
import pytest

from claude_trio import _values
from claude_trio._values import Record, field, fields_of, frozen
from claude_trio.messages import AssistantMessage, StreamEvent, decode
from claude_trio.permissions import Allow, Deny, PermissionRequest, PermissionRule, Policy

# The same declarations twice: once for attrs itself, once for us.


def upper(value: str) -> str:
    return value.upper()


def not_empty(_self: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value:
        raise ValueError(f"{attribute.name} is empty")


@attrs.frozen
class TheirBase:
    kind: ClassVar[str] = "base"
    first: str = attrs.field(converter=upper, validator=not_empty)


@attrs.frozen
class Theirs(TheirBase):
    second: int = 2
    items: list[int] = attrs.field(factory=list, repr=False)
    third: float = attrs.field(default=0.5, kw_only=True, eq=False, metadata={"unit": "s"})


@frozen
class OurBase:
    kind: ClassVar[str] = "base"
    first: str = field(converter=upper, validator=not_empty)


@frozen
class Ours(OurBase):
    second: int = 2
    items: list[int] = field(factory=list, repr=False)
    third: float = field(default=0.5, kw_only=True, eq=False, metadata={"unit": "s"})


@frozen(kw_only=True)
class ByKeyword:
    one: int
    two: int = 2


@frozen(eq=False)
class Itself:
    one: int = 1


@frozen
class Checked:
    one: int = 1
    seen: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.seen.append("checked")

    def __repr__(self) -> str:
        return "its own"


def make(cls: Callable[..., object], *args: object, **given: object) -> object:
    return cls(*args, **given)


both = pytest.mark.parametrize("cls", [Theirs, Ours])


@both
def test_arguments_come_by_place_and_by_name(cls: type[Ours]) -> None:
    made = cls("a", 3, third=1.5)

    assert (made.first, made.second, made.items, made.third) == ("A", 3, [], 1.5)
    assert cls("a", second=3) == cls(first="a", second=3, items=[])


@both
@pytest.mark.parametrize(
    ("args", "given"),
    [
        ((), {}),
        ((), {"second": 1}),
        (("a",), {"fourth": 1}),
        (("a",), {"first": "a"}),
        (("a", 1, [], 1.5), {}),
        ((), {"frist": "a"}),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    cls: type[object], args: tuple[object, ...], given: dict[str, object]
) -> None:
    with pytest.raises(TypeError, match=cls.__name__):
        make(cls, *args, **given)


@both
def test_what_is_given_is_converted_and_then_validated(cls: type[Ours]) -> None:
    with pytest.raises(ValueError, match="first is empty"):
        cls("")


def test_a_default_is_neither_converted_nor_validated() -> None:
    @frozen
    class Lenient:
        word: str = field(default="", converter=upper, validator=not_empty)

    assert Lenient().word == ""
    with pytest.raises(ValueError, match="word is empty"):
        Lenient("")


def test_a_factory_makes_each_its_own() -> None:
    assert Ours("a").items is not Ours("a").items


def test_by_keyword_means_by_keyword() -> None:
    assert ByKeyword(one=1) == ByKeyword(two=2, one=1)
    with pytest.raises(TypeError, match="takes 0 arguments by their place"):
        make(ByKeyword, 1)


@both
def test_nothing_can_be_changed(cls: type[Ours]) -> None:
    made = cls("a")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.first = "b"  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del made.first
    with pytest.raises(AttributeError):
        setattr(made, "no_such_" + "thing", 1)
    assert made.first == "A"


@both
def test_equality_is_that_of_the_class_and_of_what_counts(cls: type[Ours]) -> None:
    assert cls("a", third=1) == cls("a", third=2)
    assert cls("a") != cls("b")
    assert cls("a") != ("A", 2, [])
    assert Theirs("a") != Ours("a")


def test_a_hash_is_that_of_what_counts() -> None:
    assert hash(ByKeyword(one=1)) == hash(ByKeyword(one=1))
    assert len({ByKeyword(one=1), ByKeyword(one=1), ByKeyword(one=2)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours("a"))


def test_one_without_equality_equals_itself() -> None:
    one = Itself()

    assert one == one  # noqa: PLR0124
    assert one != Itself()
    assert hash(one) != hash(Itself())


def test_repr_shows_what_may_be_shown() -> None:
    assert repr(Ours("a", items=[7])) == "Ours(first='A', second=2, third=0.5)"


def test_methods_of_the_class_itself_stay() -> None:
    assert repr(Checked()) == "its own"
    assert Checked().seen == ["checked"]


def test_a_changed_copy_is_checked_again() -> None:
    made = Ours("a")

    assert attrs.evolve(made, first="b").first == "B"
    with pytest.raises(ValueError, match="first is empty"):
        attrs.evolve(made, first="")
    replace: Callable[..., Ours] = getattr(made, "__replace__")  # noqa: B009
    assert replace(second=5) == Ours("a", 5)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_equal(way: Callable[[object], object]) -> None:
    made = PermissionRule(tool_name="Bash", rule_content="ls", raw={"a": 1})
    found = way(made)

    assert found == made
    assert isinstance(found, PermissionRule)
    assert found.raw == {"a": 1}


def test_attrs_is_told_the_same_of_both() -> None:
    theirs, ours = attrs.fields(Theirs), attrs.fields(Ours)

    assert all(map(attrs.has, (Theirs, Ours, OurBase)))
    for here, there in zip(ours, theirs, strict=True):
        for what in ("name", "default", "validator", "kw_only", "eq", "repr", "metadata", "type"):
            assert getattr(here, what) == getattr(there, what), what
        assert getattr(here, "converter", None) is getattr(there, "converter", None)
    assert attrs.fields(Ours).second.default == 2
    assert attrs.asdict(Ours("a")) == attrs.asdict(Theirs("a"))
    assert [one.name for one in attrs.fields(OurBase)] == ["first"]


def test_signature_and_patterns_are_those_of_attrs() -> None:
    assert str(inspect.signature(Ours)) == str(inspect.signature(Theirs))
    assert Ours.__match_args__ == Theirs.__match_args__ == ("first", "second", "items")
    match Allow({"command": "ls"}):
        case Allow(changed):
            assert changed == {"command": "ls"}
    match Deny("no", interrupt=True):
        case Deny(message, interrupt=True):
            assert message == "no"


def test_a_callable_instance_has_its_own_signature() -> None:
    async def opinion(request: PermissionRequest) -> None:
        return None

    assert list(inspect.signature(Policy(opinion)).parameters) == ["request"]
    assert list(inspect.signature(Policy).parameters) == ["opinion"]


def test_a_class_variable_is_no_attribute() -> None:
    assert list(fields_of(Ours)) == ["first", "second", "items", "third"]
    assert Ours.kind == "base"


def test_attrs_makes_no_class_that_nobody_asks_it_about() -> None:
    @frozen
    class Quiet:
        one: int = 1

    assert Quiet() == Quiet(1)
    assert repr(Quiet()) == "Quiet(one=1)"
    assert Quiet not in _values._made
    attrs.fields(Quiet)
    assert Quiet in _values._made


def test_slots_that_a_class_declares_stay() -> None:
    made = StreamEvent(event={})

    assert not hasattr(made, "__dict__")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.event = {}  # type: ignore[misc]


# -- what came is not read before somebody asks


def test_of_a_message_nothing_is_read_before_it_is_asked_for() -> None:
    message = decode(b'{"type":"assistant","uuid":"u","message":{"content":"hi","model":"m"}}')
    assert isinstance(message, AssistantMessage)

    assert vars(message) == {}
    assert message.model == "m"
    assert vars(message) == {"model": "m"}


def test_of_a_permission_request_nothing_is_read_before_it_is_asked_for() -> None:
    raw: Mapping[str, object] = {"tool_name": "Bash", "input": {"command": "ls"}}
    request = PermissionRequest.from_request("r1", raw)

    assert vars(request) == {"id": "r1", "raw": raw}
    assert request.tool_name == "Bash"
    assert vars(request) == {"id": "r1", "raw": raw, "tool_name": "Bash"}
    with pytest.raises(AttributeError, match="'PermissionRequest' object has no attribute"):
        getattr(request, "no_such_" + "thing")
    assert copy.deepcopy(request) == request


# -- records


class Told(Record):
    __slots__ = __match_args__ = ("word", "number")

    def __init__(self, word: str, number: int = 0) -> None:
        self.word = word
        self.number = number


class Other(Record):
    __slots__ = ("number", "word")

    def __init__(self, word: str, number: int = 0) -> None:
        self.word = word
        self.number = number


def test_records_are_equal_by_their_class_and_their_slots() -> None:
    assert Told("a", 1) == Told("a", 1)
    assert Told("a", 1) != Told("a", 2)
    assert Told("a", 1) != Told("b", 1)
    assert Told("a") != Other("a")
    assert (Told("a") == "a") is False


def test_records_are_shown_and_not_hashed() -> None:
    assert repr(Told("a", 1)) == "Told(word='a', number=1)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Told("a"))
