"""The laws of lines: what is cut, what is dropped, what is written."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import math
import operator
import tracemalloc
from collections import OrderedDict, deque
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._errors import LocalProtocolError
from claude_trio._ndjson import HEAD, LineFramer, encode, object_or_empty, recover
from claude_trio.messages import SkippedLine, parse_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from claude_trio._ndjson import Line

    Place = Callable[[object], Mapping[str, object]]

MIB = 1024 * 1024

# ---------------------------------------------------------------------------------- framing


def frame(reads: Iterable[bytes], limit: int = MIB) -> list[Line]:
    framer = LineFramer(limit)
    lines = [line for data in reads for line in framer.receive_data(data)]
    return lines + framer.receive_eof()


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    inside = sorted({place % (len(data) + 1) for place in places})
    return [data[a:b] for a, b in zip([0, *inside], [*inside, len(data)], strict=True)]


def skipped(line: bytes) -> SkippedLine:
    return SkippedLine(size=len(line), head=line[:HEAD])


def expected(data: bytes, limit: int) -> list[Line]:
    """The same cutting, said as plainly as can be."""
    *complete, last = data.split(b"\n")
    lines: list[Line] = []
    for line in complete:
        if len(line) > limit:
            lines.append(skipped(line))
        elif line.strip():
            lines.append(line.rstrip())
    if len(last) > limit:
        lines.append(skipped(last))
    elif last.strip():
        last = last.rstrip()
        lines.append(recover(last) or last)
    return lines


PIECES = st.sampled_from(
    [
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\t",
        b"\n\n",
        b"!",
        b"{",
        b'{"type":"x"}',
        b'{"a":"b c"}\n',
        '{"t":"é€😀"}'.encode(),
        b"[SandboxDebug] x\n",
        b"\x1b[2J\x1b[H",
        b"\xff",
        b"\x00",
        b"\x0b\x0c\x1c\x1d\x1e\x85",
        "\u2028\u2029\x85".encode(),
        b"0123456789" * 30,
    ]
)
STREAMS = st.lists(PIECES | st.binary(max_size=8), max_size=30).map(b"".join)


@pytest.mark.slow
@given(STREAMS, st.lists(st.integers(min_value=0)), st.integers(1, 320))
def test_any_split_of_the_bytes_gives_the_same_lines(
    data: bytes, places: list[int], limit: int
) -> None:
    assert frame(cut(data, places), limit) == expected(data, limit)


@pytest.mark.slow
@given(STREAMS, st.integers(1, 320))
def test_byte_by_byte_gives_the_same_lines(data: bytes, limit: int) -> None:
    assert frame((data[i : i + 1] for i in range(len(data))), limit) == expected(data, limit)


@pytest.mark.slow
@given(st.lists(st.binary() | STREAMS))
def test_garbage_gives_objects_skips_and_noise_and_nothing_else(reads: list[bytes]) -> None:
    for line in frame(reads, 200):
        if isinstance(line, SkippedLine):
            continue
        try:
            assert isinstance(parse_object(line), dict)
        except ValueError:
            again = recover(line)
            if isinstance(again, bytes):
                assert isinstance(parse_object(again), dict)


@pytest.mark.parametrize("character", ["é", "€", "😀"])
def test_a_character_cut_in_two_is_whole_again(character: str) -> None:
    line = json.dumps({"text": f"a{character}b"}, ensure_ascii=False).encode()
    for place in range(len(line) + 1):
        assert frame(cut(line + b"\n", [place])) == [line]


@pytest.mark.parametrize(
    "separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"]
)
def test_only_lf_ends_a_line(separator: str) -> None:
    line = f'{{"text":"a{separator}b"}}'.encode()
    assert frame([line + b"\n" + line + b"\n"]) == [line, line]


def test_white_space_within_a_line_is_kept_at_every_seam() -> None:
    line = b'{"text":"' + b" a\t" * 2000 + b'"}'
    for size in (1, 7, 1000, 4096):
        reads = [(line + b"\n")[i : i + size] for i in range(0, len(line) + 1, size)]
        assert frame(reads) == [line]


@pytest.mark.parametrize(
    "reads",
    [
        [b'{"a":1}\r\n{"b":2}\r\n'],
        [b'{"a":1}\r', b'\n{"b":2}', b"\r\n"],
        [b'{"a":1}', b"\r", b"\n", b'{"b":2}\r', b"\n"],
        [b'{"a":1}\n{"b":2}\r'],
    ],
)
def test_a_cr_before_the_lf_belongs_to_the_end(reads: list[bytes]) -> None:
    assert frame(reads) == [b'{"a":1}', b'{"b":2}']


def test_a_cr_elsewhere_is_kept() -> None:
    assert frame([b"10%\r20%\r\n"]) == [b"10%\r20%"]


def test_white_space_at_the_end_of_a_line_does_not_come() -> None:
    assert frame([b'{"a":1} \t\r\r\n', b'{"b":2} ', b"\x0b\n"]) == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize("blank", [b"\n", b"  \n", b"\t\n", b"\r\n", b" \r\n", b"\n\n\n"])
def test_blank_lines_do_not_come(blank: bytes) -> None:
    assert frame([blank, b"{}\n", blank, b"{}\n", blank + b" "]) == [b"{}", b"{}"]
    assert frame([blank + b"{}\n" + blank + b"{}\n" + blank]) == [b"{}", b"{}"]


def test_a_line_that_begins_with_white_space_or_below_a_letter_is_no_blank_line() -> None:
    assert frame([b' {"a":1}\n!x\n\x00\n\n"\n']) == [b' {"a":1}', b"!x", b"\x00", b'"']


def test_an_empty_read_changes_nothing() -> None:
    framer = LineFramer(10)
    assert framer.receive_data(b"") == []
    assert framer.receive_data(b"{") == []
    assert framer.receive_data(b"") == []
    assert framer.receive_data(b"}\n") == [b"{}"]


# ----------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("size", [1, 8, 100])
def test_a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not(size: int) -> None:
    for chunk in (1, 3, 1000):
        data = b"x" * size + b"\n" + b"y" * (size + 1) + b"\n" + b"z\n"
        reads = [data[i : i + chunk] for i in range(0, len(data), chunk)]
        assert frame(reads, size) == [b"x" * size, skipped(b"y" * (size + 1)), b"z"]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_that_is_too_long_is_reported_once_with_its_whole_size(end: bytes) -> None:
    framer = LineFramer(1000)
    line = b"".join(b"%06d " % i for i in range(1000))
    found = [x for i in range(0, len(line), 13) for x in framer.receive_data(line[i : i + 13])]
    assert found == []
    assert framer.receive_data(end) + framer.receive_eof() == [
        SkippedLine(size=7000, head=line[:200])
    ]


def test_the_limit_counts_the_unfinished_line_only() -> None:
    line = b'{"text":"' + b"x" * 1000 + b'"}'
    assert frame([(line + b"\n") * 3000], 1024) == [line] * 3000
    short = b'{"t":"' + b"y" * 21 + b'"}'
    assert frame([(short + b"\n") * 100_000], 30) == [short] * 100_000


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_is_not_positive_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        LineFramer(limit)


def test_a_line_that_is_too_long_takes_no_memory() -> None:
    framer, data = LineFramer(MIB), b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(1024):
            assert framer.receive_data(data) == []
        assert framer.receive_data(b"\n{}\n") == [
            SkippedLine(size=64 * MIB, head=b"x" * HEAD),
            b"{}",
        ]
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()


def test_small_reads_of_one_line_take_about_its_size() -> None:
    framer = LineFramer(64 * MIB)
    tracemalloc.start()
    try:
        for i in range(4096):
            framer.receive_data(b"%01024d" % i)
        assert tracemalloc.get_traced_memory()[1] < 5 * MIB
    finally:
        tracemalloc.stop()
    framer.receive_data(b"\n")
    for _ in range(100_000):
        framer.receive_data(b"xy")
    assert len(framer._blocks) <= 4


def test_the_work_for_a_line_is_linear_in_its_length() -> None:
    framer, data = LineFramer(64 * MIB), b"x" * 4096
    joined: list[bytes] = []
    for _ in range(16 * 256):
        framer.receive_data(data)
        # What is joined already is not copied again, and what is not is one block at most.
        assert all(map(operator.is_, joined, framer._blocks))
        assert sum(map(len, framer._pieces)) < 65536
        joined = [*framer._blocks] if len(framer._blocks) > len(joined) else joined
    assert framer.receive_data(b"\n") == [b"x" * 16 * MIB]


# -------------------------------------------------------------------------------------- EOF


@pytest.mark.parametrize(
    ("last", "lines"),
    [
        (b"", []),
        (b" ", []),
        (b'{"a":1}', [b'{"a":1}']),
        (b'{"a":1}\r', [b'{"a":1}']),
        (b'\x1b[H{"a":1}', [b'{"a":1}']),
        (b'{"a":"b', [SkippedLine(size=7, head=b'{"a":"b')]),
        (b"{" * 300, [SkippedLine(size=300, head=b"{" * 200)]),
        (b"panic: no", [b"panic: no"]),
        (b"[1, 2]", [b"[1, 2]"]),
    ],
)
def test_the_last_line_needs_no_end(last: bytes, lines: list[Line]) -> None:
    assert frame([b"{}\n" + last]) == [b"{}", *lines]
    assert frame([b"{}\n", last[:3], last[3:]]) == [b"{}", *lines]


def test_after_eof_there_is_no_data() -> None:
    framer = LineFramer(10)
    framer.receive_data(b"abc")
    assert framer.receive_eof() == [b"abc"]
    with pytest.raises(LocalProtocolError):
        framer.receive_data(b"{}\n")
    assert framer.receive_eof() == []


# ------------------------------------------------------------------ lines that do not parse


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"a":',
        b'  {"a" 1}',
        b"\xef\xbb\xbf{nope}",
        b'{"a":"\xff"}',
        b'{"a":1}{"b":2}',
        b'\x1b[2J\x1b[H{"a":',
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)
def test_what_begins_like_an_object_and_is_none_was_lost(line: bytes) -> None:
    assert recover(line) == SkippedLine(size=len(line), head=line[:200])


@pytest.mark.parametrize(
    "prefix",
    [
        b"\x1b[2J\x1b[H",
        b"\x1b[2J\x1b[3J\x1b[H",
        b"\x1b[?25l\x1b[38;5;12m\x1b[0m",
        b"\x1bc",
        b"\x1b7\x1b(B",
        b"\x1b]0;claude\x07",
        b"\x1b]8;;http://x\x1b\\",
        b"\xef\xbb\xbf",
        b"\r\r",
        b" \x1b[K\r \x07",
    ],
)
def test_an_object_behind_control_sequences_is_found(prefix: bytes) -> None:
    assert recover(prefix + b'{"type":"result"}') == b'{"type":"result"}'


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[SandboxDebug] x",
        b'[DEBUG] sent {"type":"result"}',
        b"[1, 2, 3]",
        b"null",
        b"42",
        b'"{"',
        b"NaN",
        b"\xff\xfe",
        b"\x1b",
        b"\x1b[",
        b'\x1b]0;no end{"a":1}',
        b"\x1b[2Jhello",
        b"[" * 100_000,
        b"10%\r20%",
    ],
)
def test_anything_else_is_noise(line: bytes) -> None:
    assert recover(line) is None


def test_looking_again_is_linear() -> None:
    for line in (
        b"\x1b" * MIB,
        b"\x1b[" * MIB,
        b"\x1b]" * MIB,
        b"\x1b[0m" * MIB,
        b"\x1b[" + b"0" * MIB,
    ):
        assert recover(line) is None


def test_an_object_that_parses_is_itself() -> None:
    assert recover(b'{"a":1}') == b'{"a":1}'


# ------------------------------------------------------------------------------------ write

# Half an emoji may stand alone; two halves in the right order are an emoji, which is another text.
TEXTS = st.text() | st.text("a\u2028\ud83d\udbff")
VALUES: st.SearchStrategy[object] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
FRAMES = st.dictionaries(TEXTS, VALUES, max_size=5)


@pytest.mark.slow
@given(FRAMES)
def test_what_is_written_is_one_line_that_reads_back(value: dict[str, object]) -> None:
    line = encode(value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    line.decode("utf-8", "strict")
    assert parse_object(line) == value
    assert json.loads(line) == value
    assert frame([line]) == [line[:-1]]


def test_what_is_written_is_compact() -> None:
    assert encode({"a": [1, None, True], "b": {}}) == b'{"a":[1,null,true],"b":{}}\n'
    assert encode({"a": [1, None, "\ud800"], "b": {}}) == b'{"a":[1,null,"\\ud800"],"b":{}}\n'


def test_text_is_not_escaped_without_need() -> None:
    assert encode({"t": "é€😀"}) == '{"t":"é€😀"}\n'.encode()
    assert encode({"t": "a\r\n\x00b"}) == b'{"t":"a\\r\\n\\u0000b"}\n'


HIGH, LOW = "\ud83d", "\ude00"


@pytest.mark.parametrize("text", [HIGH, f"a{LOW}b", HIGH + LOW, LOW + HIGH, f"é{HIGH}"], ids=ascii)
def test_lone_surrogates_become_escapes(text: str) -> None:
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    for value in ({"t": text}, {text: 1}, {"a": [{"b": text}]}):
        assert encode(value).isascii()
    assert parse_object(encode({"t": text})) == {"t": whole}


PLACES: list[Place] = [
    lambda value: {"a": value},
    lambda value: {"a": [1, None, value]},
    lambda value: {"a": {"b": [{"c": (value,)}]}},
    lambda value: {"a": MappingProxyType({"b": value})},
    lambda value: {"half": "\ud83d", "a": value},
    lambda value: MappingProxyType({"null": None, "a": value}),
]


class Half(float):
    pass


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "number",
    [math.nan, math.inf, -math.inf, Half("nan"), pytest.param(10**5000, id="5000 digits")],
)
def test_numbers_that_json_has_not_are_refused(place: Place, number: float) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the interpreter's own words, for the integer
        encode(place(number))


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        bytearray(b"x"),
        {1, 2},
        frozenset(),
        object(),
        1j,
        Colour.RED,
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        decimal.Decimal(1),
        deque([1]),
        range(3),
        {1: 2},
        {None: 1},
        {b"k": 1},
        len,
    ],
    ids=repr,
)
def test_what_json_has_no_type_for_is_refused(place: Place, value: object) -> None:
    with pytest.raises(TypeError):
        encode(place(value))


class Word(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not the content"


class Whole(int):
    pass


@pytest.mark.parametrize("half", ["", "\ud83d"])
@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Word.A, "a"),
        (Number.ONE, 1),
        (Text("content"), "content"),
        (Whole(3), 3),
        (Half(1.5), 1.5),
        (MappingProxyType({"a": MappingProxyType({})}), {"a": {}}),
        (OrderedDict(a=1), {"a": 1}),
        ((1, (2,)), [1, [2]]),
        ({Word.A: 1, Text("k"): 2}, {"a": 1, "k": 2}),
        (-0.0, -0.0),
        (2**64, 2**64),
        (True, True),
    ],
)
def test_subclasses_and_mappings_are_written_as_what_they_are(
    half: str, value: object, written: object
) -> None:
    assert parse_object(encode({"half": half, "v": value})) == {"half": half, "v": written}


def test_what_is_nested_too_deeply_is_refused() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    deep: object = None
    for _ in range(100_000):
        deep = [deep]
    for value in (cycle, deep, {"a": cycle}):
        with pytest.raises(ValueError, match="deep"):
            encode({"v": value})


@pytest.mark.parametrize("value", [None, 1, "x", [], [{}], b"{}"])
def test_what_is_no_object_counts_as_an_empty_one(value: object) -> None:
    assert object_or_empty(value) == {}
    assert object_or_empty({"a": value}) == {"a": value}
