"""The ledger of background tasks: which live, whose they are, and what they owe when they end."""

from __future__ import annotations

import math
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._protocol._tasks import AGENT_TYPES, Task, Tasks

PATIENCE: Final = 2.0
US: Final = object()
THEM: Final = object()


def _tasks(*agents: str, owner: object = US) -> Tasks:
    tasks = Tasks(PATIENCE)
    for agent in agents:
        tasks.started(agent, "local_agent", owner=owner, run_id=f"{agent}.1", backgrounded=True)
    return tasks


def _listed(*ids: str, kind: str = "local_agent", owner: object = US) -> list[Task]:
    return [Task(i, kind, f"{i}.1", owner, backgrounded=True) for i in ids]


def _ended(tasks: Tasks, now: float, task_id: str, status: str | None = "completed") -> None:
    tasks.updated(now, task_id, status=status, backgrounded=None)


# -- who holds


@pytest.mark.parametrize("kind", sorted(AGENT_TYPES))
def test_an_agent_holds_its_own_turn_and_no_other(kind: str) -> None:
    tasks = _tasks()
    tasks.started("a", kind, owner=US)
    assert tasks.holds(US)
    assert not tasks.holds(THEM)
    assert tasks.others(THEM)
    assert not tasks.others(US)


@pytest.mark.parametrize("kind", ["local_bash", "", "remote_agent"])
def test_a_shell_lives_and_holds_nothing(kind: str) -> None:
    tasks = _tasks()
    tasks.started("b", kind, owner=US, backgrounded=True)
    assert "b" in tasks.live
    assert not tasks.holds(US)
    assert not tasks.others(THEM)
    tasks.notified(0, "b")
    assert not tasks.owes(US)
    assert not tasks.others(THEM)


def test_a_foreground_agent_holds_and_owes_nothing_at_its_end() -> None:
    tasks = _tasks()
    tasks.started("a", "local_agent", owner=US, backgrounded=False)
    assert tasks.holds(US)
    tasks.notified(0, "a")
    assert not tasks.holds(US)
    assert not tasks.owes(US)


def test_an_agent_that_is_moved_to_the_background_owes() -> None:
    tasks = _tasks()
    tasks.started("a", "local_agent", owner=US, backgrounded=False)
    tasks.updated(0, "a", status=None, backgrounded=True)
    tasks.notified(1, "a")
    assert tasks.owes(US)


def test_an_agent_of_an_old_cli_may_owe() -> None:
    """2.1.197 does not say what is in the background."""
    tasks = _tasks()
    tasks.started("a", "local_agent", owner=US)
    tasks.notified(0, "a")
    assert tasks.owes(US)


# -- how a task ends


def test_a_notification_ends_a_task_at_once() -> None:
    tasks = _tasks("a")
    tasks.notified(5, "a")
    assert not tasks.holds(US)
    assert tasks.owes(US)


@pytest.mark.parametrize("status", ["completed", "failed", "killed"])
def test_an_update_ends_a_task_some_time_later(status: str) -> None:
    """F082, and the order of 2.1.197: its notification may be on the way."""
    tasks = _tasks("a")
    _ended(tasks, 5, "a", status)
    assert tasks.holds(US)
    assert tasks.deadline(0) == 5 + PATIENCE
    tasks.tick(6.9, 0)
    assert tasks.holds(US)
    tasks.tick(7, 0)
    assert not tasks.holds(US)
    assert not tasks.owes(US)
    assert tasks.deadline(0) == math.inf


def test_a_second_update_does_not_start_the_time_anew() -> None:
    tasks = _tasks("a")
    _ended(tasks, 5, "a")
    _ended(tasks, 6, "a", "failed")
    tasks.tick(7, 0)
    assert not tasks.holds(US)


@pytest.mark.parametrize("status", ["running", "stopped", None])
def test_no_other_update_ends_a_task(status: str | None) -> None:
    tasks = _tasks("a")
    _ended(tasks, 5, "a", status)
    tasks.tick(1000, 0)
    assert tasks.holds(US)


def test_a_snapshot_without_it_ends_a_background_task() -> None:
    tasks = _tasks("a", "b")
    tasks.snapshot(5, _listed("b"))
    assert sorted(tasks.live) == ["b"]
    assert tasks.owes(US)


def test_a_snapshot_does_not_list_what_is_in_the_foreground() -> None:
    tasks = _tasks()
    tasks.started("a", "local_agent", owner=US, backgrounded=False)
    tasks.snapshot(5, [])
    assert tasks.holds(US)


def test_a_snapshot_tells_of_a_task_before_its_start_does() -> None:
    """2.1.332 sends it first; the task is the same, and keeps its owner."""
    tasks = _tasks()
    tasks.snapshot(0, _listed("a"))
    assert tasks.holds(US)
    tasks.started("a", "local_agent", owner=THEM, run_id="a.1", backgrounded=True)
    assert tasks.holds(US)
    assert not tasks.holds(THEM)


def test_a_snapshot_does_not_make_a_task_anew() -> None:
    tasks = _tasks("a")
    _ended(tasks, 5, "a")
    tasks.snapshot(6, _listed("a", owner=THEM))
    tasks.tick(7, 0)
    assert not tasks.holds(US)
    assert not tasks.holds(THEM)


def test_the_end_of_an_unknown_task_is_nothing() -> None:
    tasks = _tasks()
    tasks.notified(0, "a")
    _ended(tasks, 0, "a")
    assert not tasks.live
    assert not tasks.owes(US)


# -- whose it is


def test_a_nested_agent_belongs_to_its_parents_turn() -> None:
    tasks = _tasks("a")
    tasks.started("n", "local_agent", owner=THEM, run_id="n.1", backgrounded=True, parent="a")
    tasks.notified(0, "a")
    assert tasks.holds(US)
    assert not tasks.holds(THEM)


def test_a_nested_agent_owes_the_conversation_nothing() -> None:
    tasks = _tasks("a")
    tasks.started("n", "local_agent", owner=US, run_id="n.1", backgrounded=True, parent="a")
    tasks.notified(0, "n")
    assert not tasks.owes(US)


def test_a_nested_agent_of_an_unknown_parent_belongs_to_the_running_turn() -> None:
    tasks = _tasks()
    tasks.started("n", "local_agent", owner=US, parent="gone")
    assert tasks.holds(US)


def test_a_revived_agent_belongs_to_the_turn_that_revives_it() -> None:
    tasks = _tasks("a", owner=THEM)
    tasks.notified(0, "a")
    tasks.started("a", "local_agent", owner=US, run_id="a.2", backgrounded=True)
    assert tasks.holds(US)
    assert not tasks.holds(THEM)
    assert tasks.owes(THEM)


@pytest.mark.parametrize("run_id", ["a.1", None])
def test_an_agent_revived_before_its_end_was_notified_owes_twice(run_id: str | None) -> None:
    tasks = _tasks()
    tasks.started("a", "local_agent", owner=THEM, run_id=run_id)
    _ended(tasks, 0, "a")
    tasks.started("a", "local_agent", owner=US, run_id=run_id and "a.2")
    assert tasks.holds(US)
    assert not tasks.holds(THEM)
    assert tasks.owes(THEM)
    tasks.tick(PATIENCE, 0)
    assert tasks.holds(US), "the first end is not the second"


def test_a_start_that_is_told_twice_changes_no_owner() -> None:
    tasks = _tasks("a")
    tasks.started("a", "local_agent", owner=THEM, run_id="a.1", backgrounded=True)
    assert tasks.holds(US)


# -- what it owes


def test_a_follow_up_pays_the_debt_that_it_names() -> None:
    tasks = _tasks("a", "b")
    tasks.notified(0, "a")
    tasks.notified(0, "b")
    assert tasks.follow_up("a.1") is US
    assert tasks.owes(US)
    assert tasks.follow_up("b.1") is US
    assert not tasks.owes(US)


def test_a_named_follow_up_pays_no_other_debt() -> None:
    tasks = _tasks("a")
    tasks.notified(0, "a")
    tasks.run_began()
    assert tasks.follow_up("b.1") is None
    assert tasks.owes(US)


def test_a_nameless_follow_up_pays_the_oldest_debt_from_before_it_began() -> None:
    """How many reports a run has merged is not said: time lets go of the others."""
    tasks = _tasks("a")
    tasks.started("b", "local_agent", owner=THEM)
    tasks.notified(0, "a")
    tasks.run_began()
    tasks.notified(0, "b")
    assert tasks.follow_up(None) is US
    assert not tasks.owes(US)
    assert tasks.follow_up(None) is None
    assert tasks.owes(THEM)
    tasks.run_began()
    assert tasks.follow_up(None) is THEM


def test_the_follow_up_of_a_shell_pays_for_no_agent() -> None:
    tasks = _tasks("a")
    tasks.started("b", "local_bash", owner=US)
    tasks.notified(0, "b")
    tasks.notified(0, "a")
    tasks.run_began()
    assert tasks.follow_up(None) is None
    assert tasks.owes(US)
    assert tasks.follow_up(None) is US


def test_a_follow_up_that_comes_before_the_notification_is_its_owners() -> None:
    tasks = _tasks("a")
    _ended(tasks, 0, "a")
    assert tasks.follow_up("a.1") is US
    assert tasks.holds(US)


def test_the_line_of_a_live_monitor_is_nobodys() -> None:
    tasks = _tasks()
    tasks.started("b", "local_bash", owner=US, run_id="b.1", backgrounded=True)
    assert tasks.follow_up("b.1") is None


def test_a_debt_that_nothing_pays_is_let_go_of() -> None:
    tasks = _tasks("a")
    tasks.notified(5, "a")
    assert tasks.deadline(0) == 5 + PATIENCE
    tasks.tick(7, 0)
    assert not tasks.owes(US)


def test_a_debt_waits_for_the_run_that_goes_on_and_some_time_after() -> None:
    tasks = _tasks("a")
    tasks.notified(5, "a")
    assert tasks.deadline(math.inf) == math.inf
    tasks.tick(100, math.inf)
    assert tasks.owes(US)
    assert tasks.deadline(100) == 100 + PATIENCE
    tasks.tick(100 + PATIENCE, 100)
    assert not tasks.owes(US)


def test_idle_tells_that_nothing_is_owed() -> None:
    tasks = _tasks("a", "b")
    tasks.notified(0, "a")
    tasks.idle()
    assert not tasks.owes(US)
    assert tasks.holds(US), "2.1.197 is idle while an agent lives"


def test_an_agent_that_owes_is_somebody_elses_too() -> None:
    tasks = _tasks("a")
    tasks.notified(0, "a")
    assert tasks.others(THEM)
    assert not tasks.others(US)


# -- properties

ids = st.sampled_from("abc")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("start"), ids, st.sampled_from(["local_agent", "local_bash"])),
        st.tuples(st.just("update"), ids, st.sampled_from(["completed", "killed", None])),
        st.tuples(st.just("notify"), ids),
        st.tuples(st.just("snapshot"), st.lists(ids, max_size=3)),
        st.tuples(st.just("begin")),
        st.tuples(st.just("follow"), st.one_of(st.none(), ids)),
        st.tuples(st.just("idle")),
    ),
    max_size=25,
)


def _step(tasks: Tasks, step: tuple[object, ...], now: float) -> None:
    match step:
        case ("start", str() as task_id, str() as kind):
            tasks.started(task_id, kind, owner=US, run_id=f"{task_id}.{now}")
        case ("update", str() as task_id, None | str() as status):
            _ended(tasks, now, task_id, status)
        case ("notify", str() as task_id):
            tasks.notified(now, task_id)
        case ("snapshot", list() as listed):
            tasks.snapshot(now, _listed(*listed))
        case ("begin",):
            tasks.run_began()
        case ("follow", None | str() as run_id):
            tasks.follow_up(run_id)
        case _:
            tasks.idle()


@pytest.mark.slow
@given(steps)
def test_whatever_came_time_lets_go_of_all_that_has_ended(
    history: list[tuple[object, ...]],
) -> None:
    """A tick at the deadline moves it, and in the end only live agents hold."""
    tasks = _tasks()
    for now, step in enumerate(history):
        _step(tasks, step, now)
    alive = {t.id for t in tasks.live.values() if t.ended_at is None}
    for _ in range(2 * len(history) + 1):
        deadline = tasks.deadline(0)
        if deadline == math.inf:
            break
        tasks.tick(deadline, 0)
        assert tasks.deadline(0) > deadline
    assert set(tasks.live) == alive
    assert not tasks.owes(US)
