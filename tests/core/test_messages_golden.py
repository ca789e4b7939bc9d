"""Each golden frame is read to its class, keeps all that it has, and survives odd content."""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import pytest

from claude_trio import messages
from claude_trio.messages import (
    BackgroundTask,
    ContentBlock,
    Message,
    PermissionDenial,
    WireObject,
    decode,
    from_raw,
)
from tests.core.golden_frames import GOLDENS, Golden, attribute_names, line_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

each_golden = pytest.mark.parametrize("golden", GOLDENS, ids=str)

# The keys of objects whose fields are attributes of the message that they stand in.
WITHIN: Final = {
    "compact_metadata",
    "message",
    "patch",
    "rate_limit_info",
    "request",
    "response",
}
ODD: Final[list[object]] = [
    True,
    0,
    3.5,
    10**400,
    "x",
    "12",
    [],
    ["x", 5, None, {"a": 1}, {"type": []}],
    {},
    {"type": ["x"], "subtype": {}, "content": {"content": 1}},
]

Path: TypeAlias = tuple[str | int, ...]


def snake(key: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


def paths(frame: dict[str, object]) -> Iterator[Path]:
    """Find the keys of a frame, of the object within it, and of its blocks."""
    for key, value in frame.items():
        yield (key,)
        if key in WITHIN and isinstance(value, dict):
            for inner, content in value.items():
                yield (key, inner)
                for index, block in enumerate(content if isinstance(content, list) else ()):
                    if isinstance(block, dict):
                        yield from ((key, inner, index, name) for name in block)


def changed(frame: dict[str, object], path: Path, *value: object) -> dict[str, object]:
    """Copy a frame with one of its keys removed, or given another value."""
    result = cast("dict[str | int, object]", {**frame})
    at = result
    for step in path[:-1]:
        inner = copy.copy(cast("dict[str | int, object]", at[step]))
        at[step] = inner
        at = inner
    if value:
        at[path[-1]] = value[0]
    else:
        del at[path[-1]]
    return cast("dict[str, object]", result)


def fits(value: object, hint: object) -> bool:
    """Tell whether a value is of a type, as an annotation gives it."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, one) for one in typing.get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(x, typing.get_args(hint)[0]) for x in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(isinstance(key, str) for key in value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, cast("type", hint))


@cache
def hints_of(cls_name: str) -> dict[str, object]:
    cls: type[WireObject] = getattr(messages, cls_name)
    hints = typing.get_type_hints(cls)
    for name in attribute_names(cls):
        if isinstance(attribute := getattr(cls, name, None), property):
            hints[name] = typing.get_type_hints(attribute.fget)["return"]
    return {name: hints[name] for name in attribute_names(cls)}


def fed_by(path: Path) -> str:
    """Name the attribute that a key is read to."""
    key = cast("str", path[1] if len(path) > 1 else path[0])
    return "message_id" if key == "id" else snake(key)


def typed(message: Message) -> dict[str, object]:
    """Show a message less the objects that it hands on as they came."""
    found = cast("dict[str, object]", shown(message))
    return {name: value for name, value in found.items() if name not in WITHIN}


def check_types(found: WireObject) -> None:
    for name, hint in hints_of(type(found).__name__).items():
        value = getattr(found, name)
        assert fits(value, hint), (type(found), name, value)
        for part in value if isinstance(value, tuple) else ():
            if isinstance(part, WireObject):
                check_types(part)


@each_golden
def test_golden_frame_is_read_to_its_class_and_attributes(golden: Golden) -> None:
    message = decode(line_of(golden.frame))

    assert shown(message) == {"class": golden.cls, **golden.attributes}
    check_types(message)


@each_golden
def test_golden_frame_is_written_back_equal(golden: Golden) -> None:
    line = line_of(golden.frame)

    assert line_of(cast("dict[str, object]", decode(line).raw)) == line


@each_golden
def test_line_and_object_give_equal_messages(golden: Golden) -> None:
    assert decode(line_of(golden.frame)) == from_raw(golden.frame)


@each_golden
def test_unknown_fields_are_in_raw_on_every_message_and_block(golden: Golden) -> None:
    frame = {**copy.deepcopy(golden.frame), "zz": [1]}
    within = frame.get("message")
    blocks = within["content"] if isinstance(within, dict) else []
    for block in blocks if isinstance(blocks, list) else []:
        block["zz"] = {"deep": True}

    message = decode(line_of(frame))

    assert message.raw["zz"] == [1]
    assert shown(message) == shown(from_raw(golden.frame)) or golden.name.startswith("unknown")
    if isinstance(blocks, list) and isinstance(
        message, messages.AssistantMessage | messages.UserMessage
    ):
        assert all(block.raw["zz"] == {"deep": True} for block in message.content)


@each_golden
def test_null_is_read_like_absent_and_kept_apart_in_raw(golden: Golden) -> None:
    for path in paths(golden.frame):
        absent = changed(golden.frame, path)
        null = changed(golden.frame, path, None)

        assert typed(decode(line_of(null))) == typed(decode(line_of(absent))), path
        assert decode(line_of(null)).raw == null
        assert decode(line_of(absent)).raw == absent


@each_golden
def test_any_field_of_any_type_leaves_the_class_the_types_and_the_other_fields(
    golden: Golden,
) -> None:
    before = typed(from_raw(golden.frame))
    for path in paths(golden.frame):
        for value in ODD:
            frame = changed(golden.frame, path, value)
            message = from_raw(frame)

            check_types(message)
            if path[-1] not in {"type", "subtype"}:
                assert type(message).__name__ == golden.cls
            if path[-1] not in {"type", "subtype", *WITHIN}:
                after = typed(message)
                touched = {key for key in {*before, *after} if before.get(key) != after.get(key)}
                assert touched <= {fed_by(path)}, (path, value)


@each_golden
def test_frame_without_anything_but_its_kind_is_of_the_same_class(golden: Golden) -> None:
    bare = {key: value for key, value in golden.frame.items() if key in {"type", "subtype"}}
    message = from_raw(bare)

    assert type(message).__name__ == golden.cls
    check_types(message)


def test_every_class_has_a_golden_frame() -> None:
    def classes(value: object) -> Iterator[object]:
        if isinstance(value, dict):
            yield value.get("class")
            for item in value.values():
                yield from classes(item)
        for item in value if isinstance(value, list) else ():
            yield from classes(item)

    gold = {name for golden in GOLDENS for name in classes(golden.attributes)} - {None}
    gold |= {golden.cls for golden in GOLDENS}
    known = {*typing.get_args(Message), *typing.get_args(ContentBlock)}
    known |= {PermissionDenial, BackgroundTask}

    assert {cls.__name__ for cls in known} <= gold


def test_message_is_the_union_of_all_that_can_be_decoded() -> None:
    public = {getattr(messages, name) for name in messages.__all__}
    classes = {x for x in public if isinstance(x, type) and issubclass(x, WireObject)}
    parts = {PermissionDenial, BackgroundTask, messages.Result}

    found = {*typing.get_args(Message), *typing.get_args(ContentBlock), *parts}
    assert classes == {*found, WireObject, messages.SessionFrame}


def test_each_kind_has_a_class_of_its_own() -> None:
    kinds: dict[str, set[object]] = {}
    for golden in GOLDENS:
        if golden.frame["type"] == "system" and not golden.name.startswith("unknown"):
            kinds.setdefault(golden.cls, set()).add(golden.frame["subtype"])

    assert all(len(subtypes) == 1 for subtypes in kinds.values())
