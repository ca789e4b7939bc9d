"""Lines to messages: strange content, unknown kinds, and anything at all."""

from __future__ import annotations

import json
import pickle
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claude_trio.messages import (
    AssistantMessage,
    CommandLifecycle,
    ControlRequest,
    ControlResponse,
    ImageBlock,
    Informational,
    InitMessage,
    RateLimitEvent,
    RedactedThinkingBlock,
    ResultMessage,
    ServerToolUseBlock,
    StreamEvent,
    TaskUpdated,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    UnknownBlock,
    UnknownMessage,
    UserMessage,
    decode,
    from_raw,
    parse_object,
)
from tests.core.golden_frames import GOLDENS, Golden, attribute_names, line_of

KEYS = sorted({key for golden in GOLDENS for key in golden.frame} | {"content", "id", "text"})
EVENT_KEYS = list(attribute_names(StreamEvent))
TYPES = sorted({cast("str", golden.frame["type"]) for golden in GOLDENS})
SUBTYPES = sorted({str(golden.frame.get("subtype")) for golden in GOLDENS})

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([*TYPES, *SUBTYPES, "text", "tool_result", "tool_use", "\ud83d"])
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
FRAMES = st.builds(
    lambda kind, rest: {**rest, **kind},
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES) | VALUES,
            "subtype": st.sampled_from(SUBTYPES) | VALUES,
            "message": st.fixed_dictionaries({}, optional={"content": VALUES}) | VALUES,
        },
    ),
    st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), VALUES, max_size=4),
)


def assistant(**message: object) -> AssistantMessage:
    found = decode(line_of({"type": "assistant", "message": message}))
    assert isinstance(found, AssistantMessage)
    return found


def tool_result(**fields: object) -> ToolResultBlock:
    (block,) = assistant(content=[{"type": "tool_result", **fields}]).content
    assert isinstance(block, ToolResultBlock)
    return block


@given(FRAMES)
def test_any_object_is_a_message_that_keeps_all_of_it(frame: dict[str, object]) -> None:
    message = decode(json.dumps(frame, separators=(",", ":")).encode())

    for name in attribute_names(type(message)):
        getattr(message, name)
    assert message.raw == frame
    assert message == from_raw(frame)
    assert repr(message).startswith(type(message).__name__)
    restored = pickle.loads(pickle.dumps(message))
    assert restored == message
    assert restored.raw == frame


@given(st.sampled_from(GOLDENS), st.integers(0, 4000), st.binary(max_size=4), st.integers(0, 9))
def test_a_damaged_line_is_a_message_or_a_value_error(
    golden: Golden, at: int, inserted: bytes, removed: int
) -> None:
    line = line_of(golden.frame)
    at %= len(line) + 1
    damaged = line[:at] + inserted + line[at + removed :]
    try:
        message = decode(damaged)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            parse_object(damaged)
        return
    for name in attribute_names(type(message)):
        getattr(message, name)
    # Of an event of the stream, what stands beside the event is not looked at before it is used.
    if not isinstance(message, StreamEvent):
        assert message.raw == parse_object(damaged)


@given(st.dictionaries(st.sampled_from([*EVENT_KEYS, "zz"]), VALUES, max_size=5))
@example({"event": []})
@example({"event": None})
@example({"event": {"delta": []}})
@example({"event": {"delta": {"type": "text_delta", "text": 1}}})
@example({"parent_tool_use_id": 5, "user_message_uuids": ["a", 5], "ttft_ms": True})
def test_the_fast_way_gives_what_the_slow_way_gives(fields: dict[str, object]) -> None:
    line = json.dumps({"type": "stream_event", **fields}, separators=(",", ":")).encode()
    later = json.dumps({**fields, "type": "stream_event"}).encode()

    assert decode(line) == from_raw(parse_object(line))
    assert type(decode(later)) is StreamEvent
    if "type" not in fields:
        assert decode(line) == decode(later)


# Lines, as field cases have them.


@pytest.mark.parametrize(
    "text",
    [
        "a \t\n\\ b" * 40_000,
        "中文 é 😀 " * 10_000,
        "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1e",
        "\ud83d",
        "x" * 3_000_000,
    ],
    ids=["spaces", "multi-byte", "separators", "half an emoji", "3 MB"],
)
def test_text_comes_as_it_was_sent(text: str) -> None:
    frame = {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}
    message = decode(json.dumps(frame).encode())

    assert isinstance(message, AssistantMessage)
    assert message.text == text
    assert len(repr(message)) < 300


def test_a_line_may_have_its_end_and_space_around_it() -> None:
    line = b'{"type":"keep_alive"}'

    assert decode(line) == decode(line + b"\r\n") == decode(b"  " + line + b"\n")


@pytest.mark.parametrize("line", [b"", b"\n", b"[]", b"null", b"5", b'"{}"', b"{", b"noise"])
def test_a_line_that_is_no_object_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(line)


def test_an_event_with_an_unknown_field_that_cannot_be_held_is_still_an_event() -> None:
    line = b'{"type":"stream_event","event":{"type":"ping"},"zz":' + b"9" * 5000 + b"}"
    message = decode(line)

    assert isinstance(message, StreamEvent)
    assert message.event == {"type": "ping"}
    assert message.raw == {"type": "stream_event", "event": {"type": "ping"}}
    assert message.uuid is None


def test_an_event_of_half_an_emoji_is_an_event() -> None:
    line = (
        rb'{"type":"stream_event","event":{"type":"content_block_delta","delta":'
        rb'{"type":"text_delta","text":"\ud83d"}},"uuid":"u"}'
    )
    message = decode(line)

    assert isinstance(message, StreamEvent)
    assert (message.text_delta, message.uuid) == ("\ud83d", "u")


def test_only_a_text_delta_adds_text() -> None:
    def delta(**fields: object) -> StreamEvent:
        return StreamEvent(event={"type": "content_block_delta", "delta": fields})

    assert delta(type="text_delta", text="a").text_delta == "a"
    assert delta(type="input_json_delta", partial_json="{", text="a").text_delta == ""
    assert delta(type="text_delta").text_delta == ""
    assert StreamEvent(event={"type": "message_stop"}).text_delta == ""


# Unknown and odd content, as field cases have it.


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ({"type": "brand_new", "x": 1}, ("brand_new", None)),
        ({"type": "system", "subtype": "brand_new"}, ("system", "brand_new")),
        ({"type": "system", "subtype": "agents_killed"}, ("system", "agents_killed")),
        ({"type": "system"}, ("system", None)),
        ({"type": "system", "subtype": ["init"]}, ("system", None)),
        ({"type": ["assistant"]}, ("", None)),
        ({"type": None, "subtype": "init"}, ("", "init")),
        ({"type": ""}, ("", None)),
        ({}, ("", None)),
    ],
)
def test_a_kind_that_is_not_known_is_an_unknown_message(
    frame: dict[str, object], kind: tuple[str, str | None]
) -> None:
    message = decode(line_of(frame))

    assert isinstance(message, UnknownMessage)
    assert (message.type, message.subtype) == kind
    assert message.raw == frame


def test_a_rate_limit_event_is_typed() -> None:
    info = {"status": "allowed", "resetsAt": 1796071920, "rateLimitType": "five_hour", "new": 1}
    message = from_raw({"type": "rate_limit_event", "rate_limit_info": info})

    assert isinstance(message, RateLimitEvent)
    assert (message.status, message.resets_at, message.rate_limit_type) == (
        "allowed",
        1796071920,
        "five_hour",
    )
    assert message.rate_limit_info == info


@pytest.mark.parametrize("key", ["preventContinuation", "prevent_continuation"])
def test_a_line_that_blocks_is_known_in_both_spellings(key: str) -> None:
    message = from_raw(
        {"type": "system", "subtype": "informational", "content": "blocked", key: True}
    )

    assert isinstance(message, Informational)
    assert message.prevent_continuation


def test_blocks_stay_in_order_and_unknown_ones_are_kept() -> None:
    blocks: list[dict[str, object]] = [
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "server_tool_use", "id": "i", "name": "n", "input": {"myKey": 1}},
        {"type": "new", "x": [1]},
        {"type": "text", "text": "b"},
        {"type": ["text"]},
        {},
    ]
    content = assistant(content=blocks).content

    assert [type(block) for block in content] == [
        ThinkingBlock,
        RedactedThinkingBlock,
        ServerToolUseBlock,
        UnknownBlock,
        TextBlock,
        UnknownBlock,
        UnknownBlock,
    ]
    assert [block.raw for block in content] == blocks
    assert isinstance(content[3], UnknownBlock)
    assert content[3].type == "new"
    assert isinstance(content[2], ServerToolUseBlock)
    assert content[2].input == {"myKey": 1}


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("hi", (TextBlock(text="hi"),)),
        ("", (TextBlock(text=""),)),
        (["hi", 5, None, ["x"], True], (TextBlock(text="hi"),)),
        ({"type": "text", "text": "hi"}, (TextBlock(text="hi"),)),
        ([], ()),
        (None, ()),
        (5, ()),
        (True, ()),
    ],
)
def test_content_of_any_shape_is_blocks(content: object, wanted: tuple[object, ...]) -> None:
    assert assistant(content=content).content == wanted
    assert tool_result(content=content).content == wanted
    user = from_raw({"type": "user", "message": {"content": content}})
    assert isinstance(user, UserMessage)
    assert user.content == wanted
    assert user.text == "".join(block.text for block in wanted if isinstance(block, TextBlock))
    assert user.raw["message"] == {"content": content}


@pytest.mark.parametrize("message", [{}, None, "hi", 5, ["hi"], [{"content": "hi"}]])
def test_a_message_of_any_shape_is_no_error(message: object) -> None:
    found = from_raw({"type": "assistant", "message": message})

    assert isinstance(found, AssistantMessage)
    assert (found.content, found.text, found.model, found.usage) == ((), "", None, {})


def test_the_text_of_a_tool_result_is_joined() -> None:
    source = {"type": "base64", "data": ""}
    content = [{"type": "text", "text": "a"}, {"type": "image", "source": source}, "b"]
    block = tool_result(content=content, tool_use_id="t", is_error=True)

    assert (block.text, block.tool_use_id, block.is_error) == ("ab", "t", True)
    assert block.content[1] == ImageBlock(source=source)
    assert tool_result(content="whole").text == "whole"
    assert tool_result().text == ""


def test_a_result_within_a_result_has_no_limit_to_its_depth() -> None:
    content: object = "end"
    for _ in range(200):
        content = [{"type": "tool_result", "content": content}]
    blocks = assistant(content=content).content
    for _ in range(200):
        assert isinstance(blocks[0], ToolResultBlock)
        blocks = blocks[0].content

    assert blocks == (TextBlock(text="end"),)


def test_numbers_as_strings_are_no_numbers() -> None:
    message = from_raw(
        {
            "type": "result",
            "subtype": "success",
            "is_error": "true",
            "num_turns": "3",
            "total_cost_usd": "0.1",
            "errors": "one",
            "usage": [],
            "permission_denials": [{"tool_name": "Bash"}, 5, None],
        }
    )

    assert isinstance(message, ResultMessage)
    assert (message.is_error, message.num_turns, message.total_cost_usd) == (False, None, None)
    assert (message.errors, message.usage) == ((), {})
    assert [denial.tool_name for denial in message.permission_denials] == ["Bash"]
    assert message.raw["num_turns"] == "3"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400, True, "1", None])
def test_a_number_that_cannot_be_computed_with_is_none(number: object) -> None:
    message = from_raw({"type": "result", "subtype": "success", "total_cost_usd": number})

    assert isinstance(message, ResultMessage)
    assert message.total_cost_usd is None


def test_new_words_are_plain_strings() -> None:
    init = from_raw({"type": "system", "subtype": "init", "permissionMode": "x-new"})
    result = from_raw({"type": "result", "subtype": "x-new", "stop_reason": "x-new"})
    task = from_raw({"type": "system", "subtype": "task_updated", "patch": {"status": "x-new"}})
    prompt = from_raw({"type": "command_lifecycle", "state": "x-new"})

    assert isinstance(init, InitMessage)
    assert isinstance(result, ResultMessage)
    assert isinstance(task, TaskUpdated)
    assert isinstance(prompt, CommandLifecycle)
    words = {init.permission_mode, result.subtype, result.stop_reason, task.status, prompt.state}
    assert words == {"x-new"}


@pytest.mark.parametrize(
    ("outer", "inner", "wanted"),
    [
        ({"error": "rate_limit"}, {}, "rate_limit"),
        ({}, {"error": "rate_limit"}, "rate_limit"),
        ({"error": "rate_limit"}, {"error": "overloaded"}, "rate_limit"),
        ({"error": None}, {"error": "rate_limit"}, "rate_limit"),
        ({"error": {"type": "x"}}, {"error": "rate_limit"}, "rate_limit"),
        ({}, {}, None),
    ],
)
def test_an_error_is_found_on_top_and_inside(
    outer: dict[str, object], inner: dict[str, object], wanted: str | None
) -> None:
    message = from_raw({"type": "assistant", **outer, "message": inner})

    assert isinstance(message, AssistantMessage)
    assert message.error == wanted


def test_the_keys_of_payloads_are_untouched() -> None:
    payload = {"my_key": 1, "myKey": 2, "continue_": {"async_": 3}}
    block = assistant(content=[{"type": "tool_use", "id": "i", "name": "n", "input": payload}])
    user = from_raw({"type": "user", "toolUseResult": payload})
    request = from_raw({"type": "control_request", "request": {"subtype": "x", **payload}})

    assert block.content[0].raw["input"] == payload
    assert isinstance(user, UserMessage)
    assert user.tool_use_result == payload
    assert isinstance(request, ControlRequest)
    assert request.request == {"subtype": "x", **payload}


# The envelopes of control.


def test_a_request_that_cannot_be_read_has_its_id() -> None:
    request = from_raw({"type": "control_request", "request_id": "r", "request": "?"})

    assert request == ControlRequest(request_id="r", subtype="", request={})


@pytest.mark.parametrize(
    ("envelope", "wanted"),
    [
        (
            {"subtype": "success", "request_id": "r", "response": {"a": 1}},
            ControlResponse(request_id="r", ok=True, response={"a": 1}),
        ),
        ({"subtype": "success", "request_id": "r"}, ControlResponse(request_id="r", ok=True)),
        (
            {"subtype": "success", "request_id": "r", "response": None},
            ControlResponse(request_id="r", ok=True),
        ),
        (
            {"subtype": "error", "request_id": "r", "error": "no", "error_code": "c"},
            ControlResponse(request_id="r", ok=False, error="no", error_code="c"),
        ),
        ({"subtype": "error", "request_id": "r"}, ControlResponse(request_id="r", ok=False)),
        ({"subtype": "new"}, ControlResponse(request_id="", ok=False)),
        (None, ControlResponse(request_id="", ok=False)),
        ([], ControlResponse(request_id="", ok=False)),
    ],
)
def test_an_answer_is_a_success_only_if_it_says_so(
    envelope: object, wanted: ControlResponse
) -> None:
    assert from_raw({"type": "control_response", "response": envelope}) == wanted


def test_a_result_is_known_wherever_its_type_stands() -> None:
    line = b'{"duration_api_ms":1,"result":"hi","subtype":"success","type":"result"}'
    message = decode(line)

    assert isinstance(message, ResultMessage)
    assert message.result == "hi"
