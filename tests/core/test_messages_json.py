"""One line to one object: whatever its text, an object or `ValueError`."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claude_trio.messages import parse_object

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXT, JSON, max_size=4), st.booleans())
def test_any_object_is_parsed_as_json_parses_it(frame: dict[str, object], ascii_only: bool) -> None:
    text = json.dumps(frame, ensure_ascii=ascii_only)

    assert parse_object(text) == frame
    assert parse_object(text.encode()) == frame
    assert parse_object(b" \t" + text.encode() + b" \r\n") == frame


@given(JSON.filter(lambda value: not isinstance(value, dict)))
def test_anything_but_an_object_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_object(json.dumps(value))


@given(st.binary())
@example(b"")
@example(b"\n")
@example(b"{")
@example(b'{"a":1}{"b":2}')
@example(b"\xff\xfe{\x00}\x00")
def test_garbage_gives_an_object_or_a_value_error(line: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_object(line), dict)


def test_half_an_emoji_is_kept() -> None:
    assert parse_object(rb'{"a":"\ud83d","\ude00":1}') == {"a": "\ud83d", "\ude00": 1}
    assert parse_object('{"a":"\ud83d"}') == {"a": "\ud83d"}
    assert parse_object(rb'{"a":"\ud83d\ude00"}') == {"a": "\U0001f600"}


def test_numbers_out_of_range_are_taken_as_python_takes_them() -> None:
    found = parse_object(b'{"a":NaN,"b":1e999,"c":-Infinity,"d":123456789012345678901234567890}')

    assert isinstance(found["a"], float)
    assert math.isnan(found["a"])
    assert (found["b"], found["c"], found["d"]) == (
        math.inf,
        -math.inf,
        123456789012345678901234567890,
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\xbd"}',
        b'{"a\xff":1}',
        '{"a":1}'.encode("utf-16"),
        b'"{}"',
        b"[{}]",
        b"1e999",
        b"NaN",
    ],
    ids=[
        "endless integer",
        "deep list",
        "deep object",
        "deep list in an object",
        "not UTF-8",
        "surrogate as UTF-8",
        "key not UTF-8",
        "UTF-16",
        "string",
        "list",
        "number out of range",
        "NaN",
    ],
)
def test_what_cannot_be_held_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_object(line)


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    assert parse_object(b'{"a":1,"a":2}') == {"a": 2}
    assert parse_object(rb'{"a":1,"b":"\ud83d","a":2}') == {"a": 2, "b": "\ud83d"}


def test_a_mark_at_the_start_is_passed_over() -> None:
    assert parse_object(b'\xef\xbb\xbf{"a":1}') == {"a": 1}
    assert parse_object('\ufeff{"a":1}') == {"a": 1}


def test_separators_of_lines_are_text_within_strings() -> None:
    text = "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1e\x7f"

    assert parse_object(json.dumps({"a": text}, ensure_ascii=False)) == {"a": text}
