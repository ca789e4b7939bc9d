"""The hold-open gate: answers, steers, cancelling, the ceiling and the end of a turn of ours."""

from __future__ import annotations

import math

import pytest

from claude_trio._errors import LocalProtocolError
from claude_trio._protocol._gate import Cancelled, Gate
from claude_trio._protocol._ledger import Fate
from claude_trio._protocol._turns import State
from tests.core.gate_talk import FOLLOW_UP, SETTLE, Talk, bare, held, old

# -- a turn without agents


def test_a_turn_is_over_when_it_is_answered_and_the_cli_is_idle() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    assert talk.result("p") is turn
    assert not turn.over
    assert talk.gate.machine.state is State.HELD
    talk.state("idle")
    assert turn.over
    assert turn.settled
    assert talk.gate.machine.state is State.IDLE
    assert talk.gate.turn is None


def test_idle_alone_ends_no_turn() -> None:
    """An idle from before may still be on the way when the prompt is written."""
    talk = Talk()
    turn = talk.prompt()
    talk.state("idle")
    assert not turn.over
    assert talk.gate.machine.state is State.PROMPTING


def test_a_cli_that_reports_nothing_ends_a_turn_at_its_result() -> None:
    talk = bare()
    turn = talk.prompt()
    talk.begin()
    assert talk.result() is turn
    assert turn.over


def test_what_is_running_after_the_end_is_a_turn_of_its_own() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.result("p")
    talk.state("idle")
    talk.state("running")
    assert turn.over
    assert talk.gate.machine.state is State.IDLE


@pytest.mark.parametrize("fate", [Fate.WITHDRAWN, Fate.DISCARDED, Fate.REFUSED])
def test_a_turn_whose_prompt_the_cli_drops_is_over_without_a_result(fate: Fate) -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.life("p", "cancelled" if fate is Fate.WITHDRAWN else fate.value)
    assert turn.over
    assert turn.prompt.fate is fate


def test_a_turn_with_a_repeated_uuid_is_over_at_once() -> None:
    """The CLI drops it without a word, so nothing would ever end it."""
    talk = Talk()
    talk.prompt()
    talk.begin("p")
    talk.result("p")
    talk.state("idle")
    again = talk.prompt()
    assert again.over
    assert again.prompt.fate is Fate.REPEATED
    assert talk.gate.machine.state is State.IDLE


def test_a_steer_with_a_repeated_uuid_leaves_a_held_turn_held() -> None:
    talk = Talk()
    turn = held(talk)
    assert talk.gate.steer("p").fate is Fate.REPEATED
    assert talk.gate.machine.state is State.HELD
    assert not turn.over


def test_a_second_prompt_disturbs_nothing() -> None:
    talk = Talk()
    turn = talk.prompt()
    with pytest.raises(LocalProtocolError):
        talk.prompt("q")
    assert talk.gate.turn is turn
    assert list(talk.gate.ledger.outstanding) == [turn.prompt]


def test_an_overtaken_prompt_is_never_written() -> None:
    gate = Gate(FOLLOW_UP, SETTLE)
    assert gate.cancel(7) is False
    assert gate.prompt("p", 6) is None
    assert gate.machine.state is State.IDLE
    assert not gate.ledger.prompts
    assert gate.prompt("p", 8) is not None


# -- unsolicited runs


def test_a_foreign_result_belongs_to_no_turn_of_ours() -> None:
    talk = Talk()
    assert talk.follow_up("b.1") is None
    turn = talk.prompt()
    assert talk.follow_up("b.1") is None
    assert not turn.over


def test_a_wake_ups_result_belongs_to_no_turn_and_pays_no_debt() -> None:
    talk = Talk(states=False)
    turn = held(talk)
    talk.end()
    talk.gate.lifecycle("w", "started", scheduled=True)
    talk.begin()
    assert talk.result() is None
    assert not turn.over
    assert talk.follow_up("a.1") is turn
    assert turn.over


def test_a_monitors_line_belongs_to_no_turn() -> None:
    talk = Talk()
    turn = held(talk)
    talk.agent("b", kind="local_bash")
    assert talk.follow_up("b.1") is None
    assert not turn.over


def test_a_prompt_folded_into_a_foreign_run_is_answered_by_it() -> None:
    talk = Talk()
    talk.begin()
    turn = talk.prompt()
    talk.life("p", "queued", "started", "completed")
    assert talk.result("p", origin="task-notification", run_id="x.1") is turn
    talk.state("idle")
    assert turn.over


def test_a_follow_up_into_which_a_prompt_was_folded_pays_its_debt() -> None:
    talk = Talk(states=False)
    turn = held(talk)
    talk.end()
    talk.begin()
    talk.gate.steer("s")
    talk.life("s", "queued", "started", "completed")
    assert talk.result("s", origin="task-notification", run_id="a.1") is turn
    assert turn.over


def test_a_shells_end_and_its_follow_up_hold_nothing() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.agent("b", kind="local_bash")
    talk.result("p")
    talk.state("idle")
    assert turn.over
    talk.end("b")
    assert talk.follow_up("b.1") is None


# -- steers


def test_a_turn_ends_at_the_answer_of_its_last_steer() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    steer = talk.gate.steer("s")
    talk.life("s", "queued")
    talk.result("p")
    talk.state("idle")
    assert not turn.over
    talk.begin("s")
    assert talk.result("s") is turn
    assert (turn.prompt.result, steer.result) == (0, 1)
    talk.state("idle")
    assert turn.over


def test_a_folded_steer_shares_the_result() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    steer = talk.gate.steer("s")
    talk.life("s", "queued", "started", "completed")
    talk.result("p", "s")
    talk.state("idle")
    assert turn.over
    assert turn.prompt.result == steer.result == 0


def test_a_steer_while_held_owes_a_result_again() -> None:
    talk = Talk()
    turn = held(talk)
    talk.gate.steer("s")
    assert talk.gate.machine.state is State.PROMPTING
    talk.begin("s")
    talk.result("s")
    assert talk.gate.machine.state is State.HELD
    assert not turn.over


@pytest.mark.parametrize("cancel", [False, True])
def test_there_is_no_steer_without_a_turn_that_runs_on(cancel: bool) -> None:
    talk = Talk()
    if cancel:
        talk.prompt()
        talk.cancel()
    with pytest.raises(LocalProtocolError):
        talk.gate.steer("s")


# -- the ceiling


def test_a_held_turn_is_given_up_when_nothing_is_heard_of_it() -> None:
    talk = Talk()
    turn = held(talk)
    assert talk.gate.deadline() == SETTLE
    talk.wait(SETTLE - 1)
    assert not turn.over
    talk.wait(1)
    assert turn.over
    assert not turn.settled
    assert talk.gate.machine.state is State.IDLE


def test_it_knows_when_something_was_heard_last() -> None:
    talk = Talk()
    assert talk.gate.heard_at == -math.inf
    talk.gate.heard(3.5)
    assert talk.gate.heard_at == 3.5


def test_any_sign_of_life_moves_the_ceiling() -> None:
    talk = Talk()
    turn = held(talk)
    talk.wait(SETTLE - 1)
    talk.gate.heard(talk.now)
    talk.wait(SETTLE - 1)
    assert not turn.over
    talk.wait(1)
    assert turn.over


def test_nothing_is_given_up_while_somebody_is_asked() -> None:
    talk = Talk()
    turn = held(talk)
    talk.state("requires_action")
    assert talk.gate.deadline() == math.inf
    talk.wait(10 * SETTLE)
    assert not turn.over


def test_a_turn_without_an_answer_is_not_given_up() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.wait(10 * SETTLE)
    assert not turn.over


# -- cancelling


def test_a_cancelled_turn_is_over_at_its_result() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.agent()
    assert talk.cancel()
    assert talk.gate.machine.state is State.CANCELLING
    assert turn.cancelled is Cancelled.RUNNING
    talk.end(status="killed")
    assert talk.result("p") is turn
    assert turn.over


@pytest.mark.parametrize("receipt", [True, False])
def test_a_turn_cancelled_before_it_began_is_over_without_a_result(receipt: bool) -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.life("p", "queued")
    talk.cancel()
    if receipt:
        talk.gate.withdrawn(["p"])
    else:
        talk.life("p", "cancelled")
    assert turn.over
    assert turn.prompt.fate is Fate.WITHDRAWN


def test_a_cancelled_turn_waits_for_each_of_its_steers() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.gate.steer("s")
    talk.life("s", "queued")
    talk.cancel()
    talk.result("p")
    assert not turn.over
    talk.gate.withdrawn(["s"])
    assert turn.over


def test_an_old_cli_runs_what_was_queued_before_a_cancelled_turn_is_over() -> None:
    talk = old()
    turn = talk.prompt()
    talk.begin()
    steer = talk.gate.steer("s")
    talk.cancel()
    talk.result()
    assert not turn.over
    talk.begin()
    talk.result()
    assert turn.over
    assert (steer.result, steer.certain) == (1, True)


def test_a_held_turn_that_is_cancelled_is_over_when_the_cli_is_idle() -> None:
    talk = Talk()
    turn = held(talk)
    assert talk.cancel()
    assert turn.cancelled is Cancelled.HELD
    talk.end(status="killed")
    assert not turn.over
    talk.state("idle")
    assert turn.over


def test_a_held_turn_that_is_cancelled_waits_for_idle_beside_an_earlier_turns_agent() -> None:
    """The interrupt ends that one as well, so idle does come."""
    talk = Talk()
    talk.prompt("q", hold_open=False)
    talk.begin("q")
    talk.agent("b")
    talk.result("q")
    turn = held(talk)
    talk.cancel()
    talk.end("a", status="killed")
    talk.end("b", status="killed")
    assert not turn.over
    talk.state("idle")
    assert turn.over


@pytest.mark.parametrize("states", [True, False])
def test_a_held_turn_that_is_cancelled_waits_for_no_follow_up(states: bool) -> None:
    """The model does not react to agents that an interrupt has ended."""
    talk = Talk(lifecycle=False, states=states)
    turn = held(talk)
    talk.state("idle")
    talk.cancel()
    assert not turn.over
    talk.end(status="killed")
    assert turn.over


def test_a_spared_cancel_is_over_at_the_result_and_its_agents_go_on() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.agent()
    talk.cancel(spare=True)
    assert turn.cancelled is Cancelled.SPARED
    talk.result("p")
    assert turn.over
    assert "a" in talk.gate.tasks.live


def test_a_held_turn_whose_agents_are_spared_is_over_at_once() -> None:
    talk = Talk()
    turn = held(talk)
    talk.cancel(spare=True)
    assert turn.over
    assert talk.follow_up("a.1") is None


def test_only_the_first_cancel_cancels() -> None:
    talk = Talk()
    turn = held(talk)
    assert talk.cancel()
    assert not talk.cancel(spare=True)
    assert turn.cancelled is Cancelled.HELD


def test_a_cancel_for_an_earlier_turn_cancels_nothing() -> None:
    gate = Gate(FOLLOW_UP, SETTLE)
    turn = gate.prompt("p", 5)
    assert not gate.cancel(4)
    assert turn is not None
    assert turn.cancelled is None
    assert gate.machine.state is State.PROMPTING


def test_a_cancel_with_no_turn_cancels_nothing() -> None:
    talk = Talk()
    assert not talk.cancel()
    assert talk.gate.machine.state is State.IDLE


# -- the end, and what runs


def test_the_end_settles_everything() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.gate.eof()
    assert turn.over
    assert turn.prompt.fate is Fate.LOST
    assert talk.gate.machine.state is State.CLOSED
    assert talk.gate.deadline() == math.inf
    with pytest.raises(LocalProtocolError):
        talk.prompt("q")


def test_the_end_comes_at_any_time_and_any_number_of_times() -> None:
    talk = Talk()
    talk.gate.eof()
    talk.gate.eof()
    assert not talk.cancel()
    assert talk.gate.machine.state is State.CLOSED


def test_a_cli_at_rest_has_no_turn_no_run_and_no_task() -> None:
    talk = Talk()
    assert talk.gate.at_rest
    talk.prompt()
    assert not talk.gate.at_rest
    talk.begin("p")
    talk.agent("b", kind="local_bash")
    talk.result("p")
    talk.state("idle")
    assert talk.gate.turn is None
    assert not talk.gate.at_rest, "a background shell runs"
    talk.end("b")
    assert talk.gate.at_rest
    talk.state("running")
    assert not talk.gate.at_rest
    talk.state("idle")
    assert talk.gate.at_rest


def test_a_cli_without_states_is_at_rest_between_its_runs() -> None:
    talk = bare()
    talk.begin()
    assert not talk.gate.at_rest
    talk.result(origin="task-notification")
    assert talk.gate.at_rest


@pytest.mark.parametrize("kind", ["local_agent", "local_bash"])
def test_an_interrupt_would_stop_a_run_or_an_agent_but_no_shell(kind: str) -> None:
    talk = bare()
    assert not talk.gate.busy
    talk.begin()
    assert talk.gate.busy
    talk.agent(kind=kind)
    talk.result(origin="task-notification")
    assert talk.gate.busy is (kind == "local_agent")


def test_a_cli_that_says_so_is_busy() -> None:
    talk = Talk()
    talk.state("running")
    assert talk.gate.busy
    talk.state("idle")
    assert not talk.gate.busy


# -- what has begun


def test_a_prompt_has_begun_when_the_cli_has_started_it() -> None:
    talk = Talk()
    talk.life("an earlier one", "completed")
    talk.begin()
    talk.result(origin="task-notification")
    turn = talk.prompt()
    assert not talk.gate.begun(turn)
    talk.life("p", "queued")
    assert not talk.gate.begun(turn)
    talk.life("p", "started")
    assert talk.gate.begun(turn)
    talk.result("p")
    assert talk.gate.begun(turn)


def test_a_prompt_written_in_a_foreign_run_has_not_begun_with_an_old_cli() -> None:
    talk = old()
    talk.begin()
    turn = talk.prompt()
    assert not talk.gate.begun(turn)
    talk.result(origin="task-notification")
    talk.begin()
    assert talk.gate.begun(turn)
