"""The hold-open gate: how agents, and what they owe, hold a turn of ours, in every dialect."""

from __future__ import annotations

import pytest

from claude_trio._protocol._ledger import Fate
from claude_trio._protocol._turns import State
from tests.core.gate_talk import FOLLOW_UP, Talk, bare, held, old

# -- agents


def test_an_agent_and_its_follow_up_hold_the_turn() -> None:
    talk = Talk()
    turn = held(talk)
    talk.end()
    assert not turn.over
    assert talk.follow_up("a.1") is turn
    assert not turn.over
    talk.state("idle")
    assert turn.over


def test_an_agent_that_ends_before_the_result_still_owes() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.agent()
    talk.end()
    talk.result("p")
    assert not turn.over
    talk.follow_up("a.1")
    talk.state("idle")
    assert turn.over


def test_an_agent_whose_report_was_folded_owes_nothing_when_the_cli_is_idle() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.agent()
    talk.end()
    talk.result("p")
    talk.state("idle")
    assert turn.over


def test_a_foreground_agent_holds_nothing_beyond_the_result() -> None:
    talk = Talk(states=False)
    turn = talk.prompt()
    talk.begin("p")
    talk.agent(background=False)
    talk.end()
    talk.result("p")
    assert turn.over


@pytest.mark.parametrize("states", [True, False])
def test_two_agents_hold_until_both_are_done(states: bool) -> None:
    talk = Talk(states=states)
    turn = talk.prompt()
    talk.begin("p")
    talk.agent("a")
    talk.agent("b")
    talk.result("p")
    talk.end("a")
    talk.follow_up("a.1")
    assert not turn.over
    talk.end("b")
    assert not turn.over
    talk.follow_up("b.1")
    talk.state("idle")
    assert turn.over


def test_a_workflow_holds_as_an_agent_does() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.agent("w", kind="local_workflow")
    talk.result("p")
    assert not turn.over


def test_an_agent_of_an_earlier_turn_does_not_hold_and_idle_is_not_asked_for() -> None:
    talk = Talk()
    first = talk.prompt("p", hold_open=False)
    talk.begin("p")
    talk.agent()
    talk.result("p")
    assert first.over
    second = talk.prompt("q")
    talk.begin("q")
    assert talk.result("q") is second
    assert second.over


def test_the_follow_up_of_an_earlier_turns_agent_is_not_waited_for() -> None:
    talk = Talk()
    talk.prompt("p", hold_open=False)
    talk.begin("p")
    talk.agent()
    talk.result("p")
    second = talk.prompt("q")
    talk.begin("q")
    talk.end()
    talk.result("q")
    assert second.over
    assert talk.follow_up("a.1") is None


def test_its_own_agent_holds_a_turn_beside_an_earlier_turns() -> None:
    talk = Talk()
    talk.prompt("p", hold_open=False)
    talk.begin("p")
    talk.agent("a")
    talk.result("p")
    second = talk.prompt("q")
    talk.begin("q")
    talk.agent("b")
    talk.result("q")
    assert not second.over
    talk.end("b")
    assert not second.over
    assert talk.follow_up("b.1") is second
    assert second.over, "the other agent keeps the CLI from being idle"


def test_a_task_that_begins_before_the_prompt_is_taken_up_is_not_its_own() -> None:
    talk = Talk()
    talk.begin()
    turn = talk.prompt()
    talk.life("p", "queued")
    talk.agent()
    talk.result()
    talk.begin("p")
    talk.result("p")
    assert turn.over


def test_a_revived_agent_holds_the_turn_that_revived_it() -> None:
    talk = Talk()
    turn = held(talk)
    talk.end()
    talk.begin()
    talk.gate.task_started("a", "local_agent", run_id="a.2", backgrounded=True)
    talk.result(origin="task-notification", run_id="a.1")
    assert not turn.over
    talk.end()
    talk.follow_up("a.2")
    talk.state("idle")
    assert turn.over


def test_a_held_turn_needs_no_answer_to_a_permission_to_stay_open() -> None:
    """A result may come while the state is `requires_action`."""
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.agent()
    talk.state("requires_action")
    talk.result("p")
    assert not turn.over
    talk.state("running")
    talk.end()
    talk.follow_up("a.1")
    talk.state("idle")
    assert turn.over


def test_the_first_result_ends_a_turn_that_is_not_held_open() -> None:
    talk = Talk()
    turn = talk.prompt(hold_open=False)
    talk.begin("p")
    talk.agent()
    assert talk.result("p") is turn
    assert turn.over
    talk.end()
    assert talk.follow_up("a.1") is None


# -- how little a CLI may say of an agent's end


def test_an_update_alone_ends_an_agent_in_time() -> None:
    """F082."""
    talk = Talk()
    turn = held(talk)
    talk.gate.task_updated(talk.now, "a", status="completed")
    talk.follow_up("a.1")
    talk.state("idle")
    assert not turn.over
    talk.wait(FOLLOW_UP)
    assert turn.over


def test_a_snapshot_alone_ends_an_agent() -> None:
    talk = Talk()
    turn = held(talk)
    talk.gate.task_snapshot(talk.now, [])
    talk.follow_up("a.1")
    talk.state("idle")
    assert turn.over


def test_a_snapshot_alone_tells_of_an_agent() -> None:
    talk = Talk()
    turn = talk.prompt()
    talk.begin("p")
    talk.gate.task_snapshot(talk.now, [("a", "local_agent", "a.1")])
    talk.result("p")
    talk.gate.task_snapshot(talk.now, [])
    assert not turn.over
    talk.follow_up("a.1")
    talk.state("idle")
    assert turn.over


# -- 2.1.197


def test_an_idle_beside_a_live_agent_ends_no_turn() -> None:
    talk = old()
    turn = held(talk)
    talk.state("idle")
    assert not turn.over


def test_the_old_order_of_an_agents_end_hides_no_follow_up() -> None:
    """Updated, running, notification, init, result, idle, as recorded of 2.1.197."""
    talk = old()
    turn = held(talk)
    talk.state("idle")
    talk.now = 3.123
    talk.gate.task_updated(talk.now, "a", status="completed")
    assert not turn.over
    talk.now = 3.217
    talk.state("running")
    talk.gate.task_notified(talk.now, "a")
    assert not turn.over
    assert talk.follow_up() is turn
    assert not turn.over
    talk.state("idle")
    assert turn.over


def test_an_agent_stopped_while_the_old_cli_is_idle_owes_still() -> None:
    talk = old()
    turn = held(talk)
    talk.state("idle")
    talk.end(status="killed")
    assert not turn.over
    talk.follow_up()
    talk.state("idle")
    assert turn.over


def test_a_notification_after_the_result_leaves_the_turn_open() -> None:
    """2.1.197, when the agent ended first: no idle comes before the follow-up."""
    talk = old()
    turn = talk.prompt()
    talk.begin()
    talk.agent()
    talk.gate.task_updated(talk.now, "a", status="completed")
    talk.result()
    talk.gate.task_notified(talk.now, "a")
    assert not turn.over
    talk.follow_up()
    talk.state("idle")
    assert turn.over


def test_a_folded_steer_of_an_old_cli_holds_the_turn_until_silence_decides() -> None:
    talk = old()
    turn = talk.prompt()
    talk.begin()
    steer = talk.gate.steer("s")
    talk.result()
    talk.state("idle")
    assert talk.gate.machine.state is State.PROMPTING
    talk.wait(FOLLOW_UP)
    assert turn.over
    assert (steer.fate, steer.result, steer.certain) == (Fate.ANSWERED, 0, False)


# -- without states


def test_without_states_the_follow_up_ends_the_turn() -> None:
    talk = bare()
    turn = held(talk)
    talk.end()
    assert not turn.over
    assert talk.follow_up() is turn
    assert turn.over


def test_without_states_a_follow_up_that_does_not_come_is_let_go_of() -> None:
    talk = bare()
    turn = held(talk)
    talk.wait(10)
    talk.end()
    talk.wait(FOLLOW_UP - 0.01)
    assert not turn.over
    talk.wait(0.01)
    assert turn.over
    assert turn.settled


def test_without_states_a_follow_up_takes_as_long_as_it_takes() -> None:
    talk = bare()
    turn = held(talk)
    talk.end()
    talk.begin()
    talk.wait(100)
    assert not turn.over
    talk.result(origin="task-notification")
    assert turn.over


def test_without_states_a_report_that_came_in_the_run_is_waited_for_after_it() -> None:
    talk = bare()
    turn = talk.prompt()
    talk.begin()
    talk.agent()
    talk.end()
    talk.wait(50)
    talk.result()
    assert not turn.over
    talk.wait(FOLLOW_UP)
    assert turn.over


def test_a_follow_up_may_be_told_in_the_same_breath_as_another_end() -> None:
    """All lines of one read have one time: their order counts."""
    talk = bare()
    turn = talk.prompt()
    talk.begin()
    talk.agent("a")
    talk.agent("b")
    talk.result()
    talk.end("a")
    talk.begin()
    talk.end("b")
    talk.result(origin="task-notification")
    assert not turn.over
    talk.follow_up()
    assert turn.over
