"""The ledger: which result answers which prompt, and what else becomes of one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._protocol._ledger import Fate, Ledger, Prompt, Standing

QUIET = 2.0


def _ledger() -> Ledger:
    return Ledger(QUIET)


def _current() -> Ledger:
    """A ledger of a CLI that tells what becomes of prompts."""
    ledger = _ledger()
    ledger.lifecycle("some earlier prompt", "completed")
    ledger.init()
    ledger.result(0)
    return ledger


def _told(ledger: Ledger, uuid: str, *states: str) -> None:
    for state in states:
        ledger.lifecycle(uuid, state)


def _fate(prompt: Prompt) -> tuple[Fate | None, int | None, bool]:
    return prompt.fate, prompt.result, prompt.certain


# -- a CLI that names what it answers


def test_a_result_answers_the_prompts_that_it_names() -> None:
    ledger = _current()
    a, b = ledger.write("a"), ledger.write("b")
    _told(ledger, "a", "queued", "started")
    _told(ledger, "b", "queued")
    assert not ledger.result(1, uuids=["a"]).unsolicited
    assert _fate(a) == (Fate.ANSWERED, 1, True)
    assert b.fate is None
    assert list(ledger.outstanding) == [b]


def test_merged_prompts_share_one_result() -> None:
    ledger = _current()
    prompts = [ledger.write(uuid) for uuid in "abc"]
    for uuid in "abc":
        _told(ledger, uuid, "queued", "started")
    ledger.result(1, uuids=["a", "b", "c"])
    assert {_fate(p) for p in prompts} == {(Fate.ANSWERED, 1, True)}


def test_a_folded_prompt_is_over_before_its_result_comes() -> None:
    ledger = _current()
    a, b = ledger.write("a"), ledger.write("b")
    _told(ledger, "a", "queued", "started")
    _told(ledger, "b", "queued", "started", "completed")
    assert (b.standing, b.fate) == (Standing.ENDED, None)
    ledger.result(1, uuids=["a", "b"])
    assert _fate(a) == _fate(b) == (Fate.ANSWERED, 1, True)


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_an_end_after_the_result_changes_nothing(end: str) -> None:
    ledger = _current()
    a = ledger.write("a")
    _told(ledger, "a", "queued", "started")
    ledger.result(1, uuids=["a"])
    _told(ledger, "a", end)
    assert _fate(a) == (Fate.ANSWERED, 1, True)


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_what_a_long_list_leaves_out_is_answered_by_its_end(end: str) -> None:
    ledger = _current()
    own, folded = ledger.write("own"), ledger.write("folded")
    _told(ledger, "own", "queued", "started")
    _told(ledger, "folded", "queued", "started", end)
    named = ledger.write("named")
    _told(ledger, "named", "queued", "started")
    ledger.result(1, uuids=["named"])
    assert _fate(folded) == _fate(named) == (Fate.ANSWERED, 1, True)
    assert own.fate is None
    _told(ledger, "own", end)
    assert _fate(own) == (Fate.ANSWERED, 1, True)


@pytest.mark.parametrize("told", [[], ["queued"]])
def test_a_prompt_cancelled_before_it_began_is_withdrawn(told: list[str]) -> None:
    ledger = _current()
    a = ledger.write("a")
    _told(ledger, "a", *told, "cancelled")
    assert _fate(a) == (Fate.WITHDRAWN, None, True)


def test_a_prompt_that_a_receipt_names_is_withdrawn() -> None:
    ledger = _current()
    a, b = ledger.write("a"), ledger.write("b")
    ledger.withdrawn(["a", "unheard of"])
    assert (a.fate, b.fate) == (Fate.WITHDRAWN, None)
    _told(ledger, "a", "cancelled")
    assert a.fate is Fate.WITHDRAWN


def test_a_receipt_takes_back_no_answer() -> None:
    ledger = _current()
    a = ledger.write("a")
    ledger.result(1, uuids=["a"])
    ledger.withdrawn(["a"])
    assert _fate(a) == (Fate.ANSWERED, 1, True)


def test_a_started_prompt_that_is_cancelled_waits_for_its_result() -> None:
    """An interrupted or failed turn has a result, and that is what became of the prompt."""
    ledger = _current()
    a = ledger.write("a")
    _told(ledger, "a", "queued", "started", "cancelled")
    assert a.fate is None
    ledger.result(1, uuids=["a"])
    assert _fate(a) == (Fate.ANSWERED, 1, True)


def test_a_prompt_aborted_at_its_start_is_withdrawn_when_the_cli_is_idle() -> None:
    ledger = _current()
    a, b = ledger.write("a"), ledger.write("b")
    _told(ledger, "a", "queued", "started", "cancelled")
    ledger.session_state("running")
    assert a.fate is None
    ledger.session_state("idle")
    assert (a.fate, b.fate) == (Fate.WITHDRAWN, None)


@pytest.mark.parametrize(
    ("state", "fate"), [("discarded", Fate.DISCARDED), ("refused", Fate.REFUSED)]
)
def test_a_prompt_that_is_not_taken_has_no_result(state: str, fate: Fate) -> None:
    ledger = _current()
    a = ledger.write("a")
    _told(ledger, "a", state)
    assert _fate(a) == (fate, None, True)


def test_a_repeated_uuid_has_its_fate_when_it_is_written() -> None:
    ledger = _current()
    first, second = ledger.write("a"), ledger.write("a")
    assert (first.fate, second.fate) == (None, Fate.REPEATED)
    ledger.result(1, uuids=["a"])
    assert _fate(first) == (Fate.ANSWERED, 1, True)
    assert second.result is None


def test_a_uuid_that_the_cli_knew_before_is_repeated() -> None:
    """A resumed session: the CLI drops it, and says no more than that it is completed."""
    ledger = _current()
    a = ledger.write("a")
    _told(ledger, "a", "completed")
    assert _fate(a) == (Fate.REPEATED, None, True)


def test_an_unknown_lifecycle_state_changes_nothing() -> None:
    ledger = _current()
    a = ledger.write("a")
    _told(ledger, "a", "queued", "pondered")
    assert (a.standing, a.fate) == (Standing.QUEUED, None)


def test_the_result_of_somebody_elses_prompt_answers_none_of_ours() -> None:
    ledger = _current()
    a = ledger.write("a")
    assert ledger.result(1, uuids=["not ours"]).unsolicited
    assert a.fate is None


def test_a_prompt_without_a_uuid_is_taken_before_a_younger_one_that_is_named() -> None:
    ledger = _current()
    nameless, named, younger = ledger.write(None), ledger.write("a"), ledger.write(None)
    ledger.result(1, uuids=["a"])
    assert _fate(nameless) == _fate(named) == (Fate.ANSWERED, 1, True)
    assert younger.fate is None


# -- runs that nobody asked for


@pytest.mark.parametrize("origin", ["task-notification", "peer"])
def test_a_result_of_foreign_origin_is_unsolicited(origin: str) -> None:
    ledger = _ledger()
    ledger.init()
    assert ledger.result(0, origin=origin).unsolicited


def test_a_background_result_does_not_end_the_users_prompt() -> None:
    """F074."""
    ledger = _ledger()
    ledger.init()
    u1 = ledger.write("u1")
    assert ledger.result(0, origin="task-notification").unsolicited
    ledger.init()
    assert not ledger.result(1).unsolicited
    assert _fate(u1) == (Fate.ANSWERED, 1, True)


def test_a_turn_that_the_cli_starts_shifts_no_answer() -> None:
    """F075."""
    ledger = _ledger()
    ledger.init()
    assert ledger.result(0).unsolicited
    u1 = ledger.write("u1")
    ledger.init()
    ledger.result(1)
    assert _fate(u1) == (Fate.ANSWERED, 1, True)


def test_the_echo_of_a_human_origin_is_no_foreign_origin() -> None:
    ledger = _ledger()
    u1 = ledger.write("u1")
    ledger.init()
    assert not ledger.result(0, origin="human").unsolicited
    assert u1.fate is Fate.ANSWERED


def test_a_wake_ups_result_is_unsolicited_though_it_has_no_origin() -> None:
    ledger = _ledger()
    u1 = ledger.write(None)
    ledger.lifecycle("wake-up", "started", scheduled=True)
    ledger.init()
    assert ledger.result(0).unsolicited
    assert u1.fate is None
    ledger.init()
    assert not ledger.result(1).unsolicited
    assert u1.result == 1


def test_a_wake_up_that_was_folded_does_not_mark_the_next_run() -> None:
    ledger = _ledger()
    first = ledger.write(None)
    ledger.init()
    ledger.lifecycle("wake-up", "started", scheduled=True)
    ledger.result(0)
    second = ledger.write(None)
    ledger.init()
    assert not ledger.result(1).unsolicited
    assert (first.result, second.result) == (0, 1)


def test_somebody_elses_prompt_is_no_wake_up() -> None:
    ledger = _ledger()
    u1 = ledger.write(None)
    ledger.lifecycle("not ours", "started")
    ledger.init()
    assert not ledger.result(0).unsolicited
    assert u1.result == 0


def test_a_prompt_that_is_only_queued_is_not_answered_by_order() -> None:
    ledger = _ledger()
    u1 = ledger.write("u1")
    _told(ledger, "u1", "queued")
    ledger.init()
    assert ledger.result(0).unsolicited
    assert u1.fate is None


def test_a_started_prompt_is_answered_by_a_result_that_names_nobody() -> None:
    ledger = _ledger()
    u1 = ledger.write("u1")
    _told(ledger, "u1", "queued", "started")
    ledger.init()
    assert not ledger.result(0).unsolicited
    assert u1.fate is Fate.ANSWERED


def test_a_lifecycle_frame_of_anything_tells_that_the_cli_speaks_it() -> None:
    ledger = _ledger()
    ledger.lifecycle("not ours", "completed")
    assert ledger.speaks_lifecycle


# -- an old CLI, by order


def test_by_order_the_oldest_prompt_is_answered_first() -> None:
    ledger = _ledger()
    a = ledger.write("a")
    ledger.init()
    b = ledger.write("b")
    ledger.result(0)
    assert _fate(a) == (Fate.ANSWERED, 0, True)
    ledger.init()
    ledger.result(0.1)
    assert _fate(b) == (Fate.ANSWERED, 1, True)


def test_the_interrupted_turns_result_is_not_the_next_prompts_answer() -> None:
    """F073: both were written before the first result came."""
    ledger = _ledger()
    u1 = ledger.write("u1")
    ledger.init()
    u2 = ledger.write("u2")
    ledger.result(0)
    ledger.init()
    ledger.result(1)
    assert (u1.result, u2.result) == (0, 1)


def test_a_result_without_an_init_answers_what_waits() -> None:
    """A start-up failure that is reported as a result."""
    ledger = _ledger()
    a = ledger.write("a")
    ledger.result(0)
    assert _fate(a) == (Fate.ANSWERED, 0, True)


def test_a_run_does_not_answer_what_was_written_after_it_began() -> None:
    ledger = _ledger()
    ledger.init()
    a = ledger.write("a")
    assert ledger.result(0).unsolicited
    assert a.fate is None


def test_by_order_a_folded_prompt_is_decided_by_silence_and_marked() -> None:
    ledger = _ledger()
    a = ledger.write("a")
    ledger.init()
    b = ledger.write("b")
    ledger.result(5)
    assert ledger.deadline() == 5 + QUIET
    ledger.tick(6.9)
    assert b.fate is None
    ledger.tick(7)
    assert _fate(a) == (Fate.ANSWERED, 0, True)
    assert _fate(b) == (Fate.ANSWERED, 0, False)
    assert ledger.deadline() == math.inf


def test_a_prompt_folded_into_a_foreign_run_is_decided_by_silence_and_marked() -> None:
    ledger = _ledger()
    ledger.init()
    a = ledger.write("a")
    ledger.result(0, origin="task-notification")
    ledger.tick(QUIET)
    assert _fate(a) == (Fate.ANSWERED, 0, False)


def test_silence_decides_nothing_while_a_run_goes_on() -> None:
    ledger = _ledger()
    ledger.write("a")
    ledger.init()
    b = ledger.write("b")
    ledger.result(0)
    ledger.init()
    assert ledger.deadline() == math.inf
    ledger.tick(100)
    assert b.fate is None


def test_silence_decides_nothing_while_the_cli_says_that_it_runs() -> None:
    ledger = _ledger()
    ledger.session_state("running")
    ledger.write("a")
    ledger.init()
    b = ledger.write("b")
    ledger.result(0)
    ledger.tick(100)
    assert b.fate is None
    ledger.session_state("idle")
    ledger.tick(100)
    assert _fate(b) == (Fate.ANSWERED, 0, False)


def test_silence_decides_nothing_of_a_prompt_that_nothing_may_have_answered() -> None:
    ledger = _ledger()
    a = ledger.write("a")
    ledger.tick(100)
    assert a.fate is None


def test_silence_decides_nothing_once_the_cli_has_told_of_the_prompt() -> None:
    """A slow start is no answer: the first run may wait a minute for its MCP servers."""
    ledger = _ledger()
    ledger.init()
    a = ledger.write("a")
    ledger.result(0, origin="task-notification")
    _told(ledger, "a", "queued", "started")
    ledger.tick(100)
    assert a.fate is None
    ledger.eof()
    assert a.fate is Fate.LOST


def test_what_order_cannot_decide_is_marked() -> None:
    """Of two prompts written in a run, either the first was folded, or both were merged."""
    ledger = _ledger()
    a = ledger.write("a")
    ledger.init()
    b, c = ledger.write("b"), ledger.write("c")
    ledger.result(0)
    ledger.init()
    ledger.result(1)
    assert _fate(a) == (Fate.ANSWERED, 0, True)
    assert _fate(b) == (Fate.ANSWERED, 1, False)
    ledger.tick(1 + QUIET)
    assert _fate(c) == (Fate.ANSWERED, 1, False)


def test_the_last_one_that_waits_is_certain() -> None:
    ledger = _ledger()
    ledger.write("a")
    ledger.init()
    b, c = ledger.write("b"), ledger.write("c")
    for now in range(3):
        ledger.result(now)
        ledger.init()
    assert _fate(b) == (Fate.ANSWERED, 1, False)
    assert _fate(c) == (Fate.ANSWERED, 2, True)


# -- the state, and the end


def test_the_state_is_unknown_until_it_is_told() -> None:
    ledger = _ledger()
    assert ledger.idle is None
    ledger.session_state("requires_action")
    assert ledger.idle is False
    ledger.session_state("idle")
    assert ledger.idle is True


def test_idle_ends_a_run_that_had_no_result() -> None:
    ledger = _ledger()
    ledger.init()
    ledger.session_state("running")
    assert ledger.run is not None
    ledger.session_state("idle")
    assert ledger.run is None


def test_the_end_loses_what_has_no_answer() -> None:
    ledger = _current()
    written, started, ended = (ledger.write(uuid) for uuid in "abc")
    _told(ledger, "b", "queued", "started")
    _told(ledger, "c", "queued", "started", "completed")
    ledger.eof()
    assert {p.fate for p in (written, started, ended)} == {Fate.LOST}
    assert not ledger.outstanding


def test_the_end_leaves_a_doubtful_answer_and_marks_it() -> None:
    ledger = _ledger()
    ledger.write("a")
    ledger.init()
    b = ledger.write("b")
    ledger.result(0)
    ledger.eof()
    assert _fate(b) == (Fate.ANSWERED, 0, False)


# -- properties

uuids = st.sampled_from(["a", "b", "c", None])
frames = st.one_of(
    st.tuples(st.just("write"), uuids),
    st.tuples(st.just("init")),
    st.tuples(
        st.just("lifecycle"),
        st.sampled_from("abcx"),
        st.sampled_from(["queued", "started", "completed", "cancelled", "discarded", "refused"]),
        st.booleans(),
    ),
    st.tuples(st.just("withdrawn"), st.lists(st.sampled_from("abcx"), max_size=2)),
    st.tuples(
        st.just("result"),
        st.lists(st.sampled_from("abcx"), max_size=2),
        st.sampled_from([None, "human", "task-notification"]),
    ),
    st.tuples(st.just("state"), st.sampled_from(["idle", "running", "requires_action"])),
    st.tuples(st.just("tick"), st.floats(0, 5)),
)


def _feed(ledger: Ledger, frame: tuple[object, ...], now: float) -> None:
    match frame:
        case ("write", None | str() as uuid):
            ledger.write(uuid)
        case ("init",):
            ledger.init()
        case ("lifecycle", str() as uuid, str() as state, bool() as scheduled):
            ledger.lifecycle(uuid, state, scheduled=scheduled)
        case ("withdrawn", list() as named):
            ledger.withdrawn(named)
        case ("result", list() as named, None | str() as origin):
            ledger.result(now, uuids=named, origin=origin)
        case ("state", str() as state):
            ledger.session_state(state)
        case _:
            ledger.tick(now)


@pytest.mark.slow
@given(st.lists(frames, max_size=30))
def test_any_frames_in_any_order_give_each_prompt_one_fate(
    history: list[tuple[object, ...]],
) -> None:
    """Also frames that no CLI sends in this order: none is an error, none takes a fate back."""
    ledger, now = _ledger(), 0.0
    fates: dict[int, tuple[Fate | None, int | None, bool]] = {}
    written_at: dict[int, int] = {}
    for frame in [*history, ("eof",)]:
        now += float(frame[1]) if frame[0] == "tick" and isinstance(frame[1], float) else 0.1
        if frame[0] == "eof":
            ledger.eof()
        else:
            _feed(ledger, frame, now)
        for prompt in ledger.prompts:
            written_at.setdefault(prompt.ordinal, ledger.results)
            before = fates.get(prompt.ordinal, (None, None, True))
            fates[prompt.ordinal] = _fate(prompt)
            assert before[0] is None or before == _fate(prompt)
            assert (prompt in ledger.outstanding) == (prompt.fate is None)
            if prompt.result is not None:
                assert prompt.fate is Fate.ANSWERED
                assert written_at[prompt.ordinal] <= prompt.result < ledger.results
    assert not ledger.outstanding
