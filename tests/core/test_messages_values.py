"""Messages are values: equal by what they say, frozen, copied with all that came."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing
from collections.abc import Mapping
from typing import Final, cast

import attrs
import pytest

from claude_trio import messages
from claude_trio.messages import (
    AssistantMessage,
    ContentBlock,
    Message,
    PromptSuggestion,
    SkippedLine,
    StreamEvent,
    TaskStarted,
    TextBlock,
    ToolUseBlock,
    UnknownBlock,
    UnknownMessage,
    WireObject,
    decode,
    from_raw,
)
from tests.core.golden_frames import GOLDENS, Golden, attribute_names, line_of, shown

CLASSES: Final = sorted(
    {
        cls
        for cls in vars(messages).values()
        if inspect.isclass(cls) and issubclass(cls, WireObject) and cls is not WireObject
    },
    key=lambda cls: cls.__name__,
)
EXAMPLES: Final[dict[object, object]] = {str: "x", bool: True, dict: {}, Mapping: {}, tuple: ()}

each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
each_golden = pytest.mark.parametrize("golden", GOLDENS, ids=str)


def pickled(message: Message) -> Message:
    return cast("Message", pickle.loads(pickle.dumps(message)))


def fields(cls: type[WireObject]) -> tuple[attrs.Attribute[object], ...]:
    found: tuple[attrs.Attribute[object], ...]
    found = attrs.fields(cast("type[attrs.AttrsInstance]", cls))
    return found


def build(cls: type[WireObject]) -> WireObject:
    """Make one by hand, with as little as it takes."""
    hints = typing.get_type_hints(cls)
    needed = {
        field.name: EXAMPLES.get(typing.get_origin(hints[field.name]) or hints[field.name], None)
        for field in fields(cls)
        if field.default is attrs.NOTHING
    }
    make: typing.Callable[..., WireObject] = cls
    return make(**needed)


@each_class
def test_a_class_is_frozen_and_by_keyword(cls: type[WireObject]) -> None:
    made = build(cls)

    assert all(field.kw_only for field in fields(cls))
    for field in fields(cls):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(made, field.name, None)
    with pytest.raises(AttributeError):
        made.raw = {}  # type: ignore[misc]


@each_class
def test_one_built_by_hand_has_an_empty_raw_and_its_defaults(cls: type[WireObject]) -> None:
    made = build(cls)

    assert made.raw == {}
    assert made == build(cls)
    for field in fields(cls):
        getattr(made, field.name)


@each_class
def test_every_attribute_is_explained(cls: type[WireObject]) -> None:
    explained = "".join(inspect.cleandoc(base.__doc__ or "") for base in cls.__mro__[:-1])

    assert cls.__doc__
    assert [f.name for f in fields(cls) if f"\n  {f.name}: " not in explained] == []


@each_class
def test_an_attribute_that_does_not_exist_is_missing(cls: type[WireObject]) -> None:
    for made in (build(cls), pickle.loads(pickle.dumps(build(cls)))):
        assert not hasattr(made, "no_such_thing")
        with pytest.raises(AttributeError, match=f"'{cls.__name__}' object has no attribute"):
            getattr(made, "no_such_" + "thing")


@each_golden
@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle", "pickle, all read"])
def test_copies_and_pickles_keep_attributes_and_raw(golden: Golden, way: str) -> None:
    message = decode(line_of(golden.frame))
    if way == "pickle, all read":
        shown(message)
    ways: dict[str, typing.Callable[[Message], Message]] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }
    found = ways.get(way, pickled)(message)

    assert type(found) is type(message)
    assert found == message
    assert found.raw == golden.frame
    assert shown(found) == shown(message)


@each_golden
def test_repr_is_short_and_names_what_is_not_at_its_default(golden: Golden) -> None:
    message = decode(line_of(golden.frame))

    assert repr(message).startswith(f"{golden.cls}(")
    assert len(repr(message)) < 2500
    assert "raw" not in repr(message)


def test_repr_reads_like_the_call_that_makes_it() -> None:
    message = AssistantMessage(content=(TextBlock(text="hi"),), error="unknown", aborted=True)

    wanted = "AssistantMessage(content=(TextBlock(text='hi'),), error='unknown', aborted=True)"
    assert repr(message) == wanted


def test_one_that_came_equals_one_built_by_hand() -> None:
    came = from_raw({"type": "prompt_suggestion", "suggestion": "s", "zz": 1})

    assert came == PromptSuggestion(suggestion="s")
    assert came != PromptSuggestion(suggestion="t")
    assert hash(came) == hash(PromptSuggestion(suggestion="s"))
    assert came.raw != PromptSuggestion(suggestion="s").raw


def test_a_message_equals_nothing_of_another_class() -> None:
    text = TextBlock(text="a")

    assert text != UnknownBlock(type="text")
    assert text != "a"
    assert (ToolUseBlock(id="a", name="b", input={}) == object()) is False


def test_what_is_not_known_is_equal_by_raw() -> None:
    first = from_raw({"type": "new", "x": 1})

    assert first == from_raw({"type": "new", "x": 1})
    assert first != from_raw({"type": "new", "x": 2})
    assert first != UnknownMessage(type="new")


def test_events_are_equal_by_all_their_attributes() -> None:
    def event(**rest: object) -> Message:
        return decode(line_of({"type": "stream_event", "event": {}, **rest}))

    assert event() == StreamEvent(event={})
    assert event(uuid="a") == event(uuid="a", zz=1)
    assert event(uuid="a") != event(uuid="b")


def test_an_attribute_is_the_same_object_each_time() -> None:
    blocks = [{"type": "text", "text": "a"}]
    frame: dict[str, object] = {"type": "assistant", "message": {"content": blocks}}
    message = from_raw(frame)

    assert isinstance(message, AssistantMessage)
    assert message.content is message.content
    assert message.usage is message.usage
    assert message.raw is frame


def test_a_changed_copy_has_no_raw() -> None:
    came = from_raw({"type": "system", "subtype": "task_started", "task_id": "a", "uuid": "u"})
    assert isinstance(came, TaskStarted)
    changed = attrs.evolve(came, task_id="b")

    assert (changed.task_id, changed.uuid, changed.raw) == ("b", "u", {})


def test_messages_can_be_matched() -> None:
    match decode(b'{"type":"assistant","message":{"content":"hi"}}'):
        case AssistantMessage(content=(TextBlock(text=text),)):
            assert text == "hi"
        case other:
            pytest.fail(repr(other))


def test_types_can_be_asked_for_at_run_time() -> None:
    assert TextBlock in typing.get_args(ContentBlock)
    assert typing.get_type_hints(AssistantMessage)["content"] == tuple[ContentBlock, ...]
    for cls in typing.get_args(Message):
        assert {f.name for f in fields(cls)} <= typing.get_type_hints(cls).keys()
        assert set(attribute_names(cls)) >= {f.name for f in fields(cls)}


def test_everything_public_says_that_it_lives_in_the_public_module() -> None:
    for name in messages.__all__:
        exported = getattr(messages, name)
        if inspect.isclass(exported) or inspect.isfunction(exported):
            assert exported.__module__ == "claude_trio.messages"


def test_a_skipped_line_tells_its_size_and_its_head() -> None:
    line = SkippedLine(size=70_000_000, head=b'{"type":')

    assert line == SkippedLine(size=70_000_000, head=b'{"type":')
    assert (line.size, line.head) == (70_000_000, b'{"type":')


def test_everything_public_is_exported_in_order() -> None:
    assert messages.__all__ == sorted(messages.__all__)
    assert all(hasattr(messages, name) for name in messages.__all__)
