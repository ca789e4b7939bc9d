"""Recorded conversations with the real CLI, played into the core: the laws, and the table.

``tests/recorded`` holds some recordings, their texts replaced by neutral words; where the whole
set is at hand, all of it is played.  ``expected.json`` there is the table: what comes of each
recording, and how that was found out.
"""

from __future__ import annotations

import functools
import itertools
import json
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_trio._ndjson import encode
from claude_trio.messages import from_raw
from tests.core.replay import REQUESTS, Frame, Noted, Player, Recording, Row, load
from tests.recordings import KEPT, whole_set
from tests.tools import hindsight
from tests.tools.neutralise import CHOSEN, neutralised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

TABLE: Final[dict[str, Frame]] = json.loads((KEPT / "expected.json").read_bytes())["recordings"]
KEPT_PATHS: Final = sorted(KEPT.glob("**/*.ndjson"))
WHOLE_PATHS: Final = [path for path in whole_set() if path not in KEPT_PATHS]

CONTROL: Final = frozenset({"control_request", "control_response", "control_cancel_request"})
SMALL: Final = 12_000
"""A kept recording of up to so many bytes is fed byte by byte."""

load_once = functools.cache(load)


@functools.cache
def played(path: Path) -> Player:
    return Player().play(load_once(path))


def _id(path: Path) -> str:
    return ("kept-" if path in KEPT_PATHS else "") + load_once(path).name


each = pytest.mark.parametrize("path", [*KEPT_PATHS, *WHOLE_PATHS], ids=_id)
each_kept = pytest.mark.parametrize("path", KEPT_PATHS, ids=_id)
any_kept = st.sampled_from(KEPT_PATHS)


def output(recording: Recording) -> Iterator[Row]:
    return (row for row in recording.rows if row.way == "out")


# -------------------------------------------------------------------------------- the table


@each
def test_each_prompt_and_each_turn_ends_as_the_table_says(path: Path) -> None:
    assert played(path).entry == TABLE[load_once(path).name]


def test_the_table_speaks_of_every_recording() -> None:
    names = {load_once(path).name for path in WHOLE_PATHS}
    assert set(CHOSEN) <= set(TABLE)
    assert not names or names == set(TABLE)


def test_hindsight_says_what_the_table_says() -> None:
    for path in WHOLE_PATHS:
        name = load_once(path).name
        assert hindsight.entry_of(hindsight.read(path, name)) == TABLE[name], name


# -------------------------------------------------------------------------------- what is kept


def test_what_was_chosen_is_kept() -> None:
    assert {load_once(path).name for path in KEPT_PATHS} == set(CHOSEN)


def test_what_is_kept_is_the_original_in_neutral_words() -> None:
    for path in WHOLE_PATHS:
        kept = KEPT / f"{load_once(path).name}.ndjson"
        if kept in KEPT_PATHS:
            raw = path.read_text(encoding="utf-8")
            assert kept.read_text(encoding="utf-8") == neutralised(raw), kept
            assert [*map(bare, played(kept).events)] == [*map(bare, played(path).events)], kept


def bare(event: Noted) -> Noted:
    """An event without the words of its frame."""
    match event:
        case ("frame", turn, bytes(line)):
            frame = json.loads(line)
            kept = (
                "type",
                "subtype",
                "uuid",
                "state",
                "task_id",
                "run_id",
                "status",
                "command_uuid",
            )
            return "frame", turn, *(frame.get(key) for key in kept), [*frame]
        case _:
            return event


def test_what_is_kept_has_every_kind_of_frame() -> None:
    def kinds(paths: Sequence[Path]) -> set[tuple[object, ...]]:
        frames = [row.frame for path in paths for row in output(load_once(path))]
        return {(f["type"], f.get("subtype"), type(from_raw({**f}))) for f in frames}

    assert kinds(WHOLE_PATHS) <= kinds(KEPT_PATHS)


def test_what_is_kept_has_every_fate_and_every_end() -> None:
    def fates(names: Sequence[str]) -> set[str]:
        return {prompt[1] for name in names for prompt in TABLE[name]["prompts"]}

    def ends(names: Sequence[str]) -> set[str]:
        return {turn["why"] for name in names for turn in TABLE[name]["turns"]}

    assert fates(CHOSEN) == fates([*TABLE])
    assert ends(CHOSEN) == ends([*TABLE])


def test_what_is_kept_is_small() -> None:
    assert sum(path.stat().st_size for path in KEPT.rglob("*.*")) < 2_000_000


# ------------------------------------------------------------------------------------- fates


@each
def test_each_prompt_has_exactly_one_fate(path: Path) -> None:
    player = played(path)
    assert sorted(met.ordinal for met in player.met) == list(range(len(player.prompts)))
    for met in player.met:
        prompt = player.prompts[met.ordinal][1]
        assert (met.fate, met.result) == (prompt.fate, prompt.result)


@settings(max_examples=60)
@given(path=any_kept, data=st.data())
def test_an_end_at_any_place_leaves_each_prompt_one_fate(path: Path, data: st.DataObject) -> None:
    recording = load_once(path)
    end = data.draw(st.integers(0, len(recording.rows)))
    cut_off = Player().play(attrs.evolve(recording, rows=recording.rows[:end]))
    assert sorted(met.ordinal for met in cut_off.met) == list(range(len(cut_off.prompts)))
    last = recording.rows[end - 1].line if end else 0
    before = [met for met in played(path).met if met.line <= last]
    assert cut_off.met[: len(before)] == before


# --------------------------------------------------------------------------------- older CLIs

LIFECYCLE: Final = frozenset({"msg_lifecycle_v1", "user_message_uuid", "user_message_uuids"})


def quieter(recording: Recording, kinds: set[str]) -> Recording:
    """The same conversation with a CLI that knows nothing of some kinds of frames."""
    without = LIFECYCLE if "command_lifecycle" in kinds else frozenset[str]()
    rows = [
        _spelled(attrs.evolve(row, frame=_less(row.frame, without))) if row.way == "out" else row
        for row in recording.rows
        if row.way != "out" or row.kind not in kinds
    ]
    return attrs.evolve(recording, rows=rows)


def _less(value: Any, without: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {k: _less(inner, without) for k, inner in value.items() if k not in without}
    if isinstance(value, list):
        return [_less(inner, without) for inner in value if inner not in [*without]]
    return value


def _spelled(row: Row) -> Row:
    return attrs.evolve(row, spelled=encode(row.frame))


def check_quieter(path: Path, *kinds: str) -> None:
    known, told = played(path).entry, Player().play(quieter(load_once(path), {*kinds})).entry
    for truth, said in zip(known["prompts"], told["prompts"], strict=True):
        assert said == truth or said[1] == "undecided"
    assert told["unsolicited"] == known["unsolicited"]
    for truth, said in zip(known["turns"], told["turns"], strict=True):
        assert said["results"] == truth["results"]


@each
def test_without_lifecycle_and_state_no_prompt_gets_the_result_of_another(path: Path) -> None:
    check_quieter(path, "command_lifecycle", "session_state_changed")


@each_kept
def test_without_lifecycle_no_prompt_gets_the_result_of_another(path: Path) -> None:
    check_quieter(path, "command_lifecycle")


@each_kept
def test_without_state_no_turn_is_over_before_its_last_result(path: Path) -> None:
    check_quieter(path, "session_state_changed")


# ----------------------------------------------------------------------------------- requests


@each
def test_each_request_of_the_cli_comes_once_and_is_answered_at_most_once(path: Path) -> None:
    player = played(path)
    asked = [row.frame for row in output(load_once(path)) if row.kind == "control_request"]
    assert all(frame["request"]["subtype"] in REQUESTS for frame in asked)
    calls_off = {frame["request_id"] for frame in asked if _calls_off(frame)}
    come = [event[2] for event in player.events if event[0] == "request"]
    assert sorted(come, key=str) == sorted({f["request_id"] for f in asked} - calls_off)
    withdrawn = [event[1] for event in player.events if event[0] == "withdrawn"]
    answered = [json.loads(line)["response"]["request_id"] for line in player.sent]
    settled = [*withdrawn, *answered]
    assert len(settled) == len(set(settled))
    assert set(settled) <= {*come, *calls_off}
    assert calls_off <= set(answered)


@each
def test_each_request_of_ours_is_answered_once_and_nothing_else_is(path: Path) -> None:
    done = [row.frame for row in load_once(path).rows if row.way == "in"]
    asked = {f["request_id"] for f in done if isinstance(f.get("request"), dict)}
    given_up = {f["request_id"] for f in done if f.get("type") == "control_cancel_request"}
    told = [r.frame["response"] for r in output(load_once(path)) if r.kind == "control_response"]
    answers = [a["subtype"] == "success" for a in told if a["request_id"] in asked - given_up]
    come = [event for event in played(path).events if event[0] == "answered"]
    assert [event[2] for event in come] == answers
    assert len({event[1] for event in come}) == len(come)


def _calls_off(frame: Frame) -> bool:
    message = frame["request"].get("message") or {}
    return bool(message.get("method") == "notifications/cancelled")


# ------------------------------------------------------------------------------------- frames


@each
def test_each_line_comes_out_once_and_in_its_place(path: Path) -> None:
    player = played(path)
    said = [line.rstrip() for line in player.fed if json.loads(line)["type"] not in CONTROL]
    assert [event[2] for event in player.events if event[0] == "frame"] == said
    assert not [event for event in player.events if event[0] == "skipped"]
    assert not player.connection.noise


@each
def test_each_frame_of_a_run_belongs_to_the_turn_of_its_result(path: Path) -> None:
    turns = [event[1] for event in played(path).events if event[0] == "frame"]
    rows = [row for row in output(load_once(path)) if row.kind not in CONTROL]
    owners = {line: k for k, turn in enumerate(played(path).turns) for line in turn.results}
    run: list[object] = []
    for row, turn in zip(rows, turns, strict=True):
        run = [turn] if row.kind == "init" else [*run, turn]
        if row.kind == "result":
            assert set(run) == {owners.get(row.line)}


@each
def test_nothing_belongs_to_a_turn_that_is_over(path: Path) -> None:
    over: set[object] = set()
    for event in played(path).events:
        match event:
            case ("over", turn):
                assert turn not in over
                over.add(turn)
            case ("frame" | "request", turn, *_):
                assert turn is None or turn not in over
            case _:
                pass


# --------------------------------------------------------------------------------------- cuts


def one_by_one(lines: Sequence[bytes]) -> Sequence[bytes]:
    return lines


def all_at_once(lines: Sequence[bytes]) -> Sequence[bytes]:
    return [b"".join(lines)]


def in_pieces(size: int) -> Callable[[Sequence[bytes]], Sequence[bytes]]:
    def read(lines: Sequence[bytes]) -> Sequence[bytes]:
        data = b"".join(lines)
        return [data[at : at + size] for at in range(0, len(data), size)]

    return read


def at_places(places: Sequence[int]) -> Callable[[Sequence[bytes]], Sequence[bytes]]:
    def read(lines: Sequence[bytes]) -> Sequence[bytes]:
        data = b"".join(lines)
        inside = sorted({place % (len(data) + 1) for place in places})
        return [data[a:b] for a, b in itertools.pairwise([0, *inside, len(data)])]

    return read


@each
def test_the_same_events_come_however_the_bytes_are_cut(path: Path) -> None:
    recording = load_once(path)
    events = Player(read=one_by_one, timed=False).play(recording).events
    size = sum(len(row.spelled) for row in output(recording))
    small = size <= SMALL and path in KEPT_PATHS
    for read in [all_at_once, in_pieces(1 if small else 61)]:
        assert Player(read=read, timed=False).play(recording).events == events


@settings(max_examples=60)
@given(path=any_kept, places=st.lists(st.integers(0, 60_000), max_size=20))
def test_the_same_events_come_wherever_the_bytes_are_cut(path: Path, places: list[int]) -> None:
    recording = load_once(path)
    events = Player(read=one_by_one, timed=False).play(recording).events
    assert Player(read=at_places(places), timed=False).play(recording).events == events


@each_kept
def test_lines_in_pieces_at_their_own_times_change_nothing(path: Path) -> None:
    player = Player(read=in_pieces(1000)).play(load_once(path))
    assert player.events == played(path).events
    assert player.entry == played(path).entry


# -------------------------------------------------------------------------------- odd lines


@each_kept
def test_noise_between_the_lines_changes_nothing(path: Path) -> None:
    noise = b"Warning: something happened\n\n\x1b[2K\r\n42\n"

    def noisy(lines: Sequence[bytes]) -> Iterator[bytes]:
        for line in lines:
            yield noise + line

    player = Player(read=noisy).play(load_once(path))
    assert player.events == played(path).events
    assert player.entry == played(path).entry
    assert len(player.connection.noise) == min(20, 3 * len(player.fed))


@settings(max_examples=40)
@given(path=any_kept, limit=st.integers(300, 3000))
def test_a_line_over_the_limit_is_reported_in_its_place(path: Path, limit: int) -> None:
    player = Player(limit=limit).play(load_once(path))
    expected: list[tuple[object, ...]] = []
    for line in player.fed:
        if len(line) - 1 > limit:
            expected.append(("skipped", len(line) - 1, line[:200]))
        elif json.loads(line)["type"] not in CONTROL:
            expected.append(("frame", line.rstrip()))
    come = [(e[0], *e[2:]) for e in player.events if e[0] in {"frame", "skipped"}]
    assert come == expected
