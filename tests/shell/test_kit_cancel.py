"""`cancel_everywhere` reports which laws a scenario breaks, and where."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio._core import _run as trio_run
from trio.testing import wait_all_tasks_blocked

from claude_trio.testing import (
    LawBroken,
    cancel_everywhere,
    cancel_here,
)
from claude_trio.testing._shuffle import shuffled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def nap() -> None:
    """Take three steps: to a wait, to another, and to the end."""
    await trio.sleep(1)
    await trio.sleep(1)


async def hang_in_a_scope(task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    with trio.CancelScope() as scope:
        task_status.started(scope)
        await trio.sleep_forever()


def broken(scenario: Callable[[], Awaitable[object]], **more: Any) -> LawBroken:
    with pytest.raises(LawBroken) as caught:
        cancel_everywhere(scenario, **more)
    return caught.value


# -- the points


def test_each_wait_of_a_scenario_is_cancelled() -> None:
    waits: list[str] = []

    async def scenario() -> None:
        for name in "abc":
            try:
                await trio.sleep(1)
            except trio.Cancelled:
                waits.append(name)
                raise

    # The first one is there before it waits.  One that comes when a sleep is over wins over the
    # deadline of the sleep.
    assert cancel_everywhere(scenario) == 4
    assert waits == ["a", "a", "b", "c"]


def test_the_steps_of_all_tasks_count() -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nap)
            nursery.start_soon(nap)

    # Two tasks of three steps each, and what is around them takes one at each of its ends.
    assert cancel_everywhere(scenario) == 8


def test_only_the_marked_part_is_cancelled_and_what_follows_sees_it() -> None:
    seen: list[tuple[int, ...]] = []

    async def scenario() -> None:
        done: list[int] = []
        await nap()
        with cancel_here():
            await trio.sleep(1)
            done.append(1)
        await nap()
        with cancel_here():
            await trio.sleep(1)
            done.append(2)
        await nap()
        seen.append(tuple(done))

    assert cancel_everywhere(scenario) == 4
    assert seen == [(1, 2), (2,), (2,), (1,), (1,)]


def test_a_scope_of_the_scenarios_own_is_cancelled_though_the_part_runs_elsewhere() -> None:
    ends: list[tuple[bool, bool]] = []

    async def scenario() -> None:
        async with trio.open_nursery() as outer:
            inner = await outer.start(hang_in_a_scope)
            with cancel_here(inner) as own:
                await trio.sleep(1)
            ends.append((own.cancel_called, inner.cancel_called))
            inner.cancel()

    assert cancel_everywhere(scenario) == 2
    assert ends == [(False, False), (True, True), (True, True)]


def test_as_many_orders_are_tried_as_it_takes() -> None:
    runs: list[int] = []

    async def scenario() -> None:
        runs.append(1)
        await nap()

    assert cancel_everywhere(scenario, at_least=1) == 3
    assert len(runs) == 4
    runs.clear()
    assert cancel_everywhere(scenario, at_least=11) == 11
    # Three whole orders, each begun with a run to the end, and two points of a fourth.
    assert len(runs) == 3 * 4 + 3


def test_it_takes_no_real_time() -> None:
    async def scenario() -> None:
        assert (trio.current_time(), await trio.sleep(3000), trio.current_time()) == (0, None, 3000)

    assert cancel_everywhere(scenario) == 2


def order(seed: int) -> list[int]:
    """Let ten tasks wake together, three times over, and say in which order they go on."""
    went: list[int] = []

    async def go(number: int) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            went.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(go, number)

    with shuffled(seed):
        trio.run(main)
    return went


def test_a_seed_decides_the_order_and_another_seed_another() -> None:
    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(5)}) == 5
    for number in range(10):
        assert order(3).count(number) == 3


def test_the_order_of_what_comes_after_is_left_to_chance_again() -> None:
    state = trio_run._r.getstate()
    order(1)
    assert trio_run._r.getstate() == state


def test_seeds_reach_the_scenario() -> None:
    orders: set[tuple[str, ...]] = set()

    async def scenario() -> None:
        went: list[str] = []

        async def go(name: str) -> None:
            await trio.lowlevel.checkpoint()
            went.append(name)

        async with trio.open_nursery() as nursery:
            for name in "abcdef":
                nursery.start_soon(go, name)
        orders.add(tuple(went))

    cancel_everywhere(scenario, seed=4)
    first = set(orders)
    cancel_everywhere(scenario, seed=4)
    assert orders == first
    cancel_everywhere(scenario, seed=5)
    assert orders > first


# -- the laws


def test_what_a_cancelled_scenario_raises_is_reported_with_its_step_and_its_cause() -> None:
    async def scenario() -> None:
        await trio.sleep(1)
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            raise KeyError("lost") from None

    error = broken(scenario, seed=7)
    assert (error.step, error.seed) == (3, 7)
    assert error.task is not None
    assert error.task.endswith("scenario")
    assert isinstance(error.__cause__, KeyError)
    assert "await trio.sleep(1)" in error.stack
    for words in ("it raised KeyError: 'lost'", "before step 3 with seed 7", repr(error.task)):
        assert words in str(error)
    assert error.stack in str(error)


def test_the_task_that_was_about_to_take_the_step_is_named_and_may_be_any() -> None:
    async def other() -> None:
        await trio.sleep(1)

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            try:
                await trio.sleep(2)
            except trio.Cancelled:
                if trio.current_time() == 1:
                    raise ValueError from None
                raise

    error = broken(scenario)
    assert error.task is not None
    assert error.task.endswith("other")
    assert "in other\n" in error.stack


def test_a_group_of_errors_is_reported_as_well() -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nap)
            try:
                await trio.sleep(5)
            finally:
                if trio.current_time() < 5:
                    raise OSError

    error = broken(scenario)
    assert isinstance(error.__cause__, ExceptionGroup)
    assert error.step is not None


def test_a_scenario_that_breaks_a_law_uncancelled_is_told_so() -> None:
    async def scenario() -> None:
        await trio.sleep(1)
        raise KeyError

    error = broken(scenario)
    assert (error.step, error.task, error.stack) == (None, None, "")
    assert "without any cancellation" in str(error)


def test_what_is_no_error_goes_on_as_it_is_with_a_note_of_the_step() -> None:
    async def scenario() -> None:
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt) as caught:
        cancel_everywhere(scenario)
    assert "before step 1" in caught.value.__notes__[0]


async def swallow() -> None:
    with contextlib.suppress(BaseException):
        await trio.sleep(1)


async def swallow_in_a_child() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(swallow)


async def swallow_below_an_inner_scope() -> None:
    with trio.move_on_after(5):
        await swallow()


@pytest.mark.parametrize("scenario", [swallow, swallow_in_a_child, swallow_below_an_inner_scope])
def test_a_swallowed_cancellation_is_reported_with_who_was_told(
    scenario: Callable[[], Awaitable[None]],
) -> None:
    error = broken(scenario)
    assert error.laws[0].startswith("a cancellation is swallowed")
    assert "in swallow\n" in error.laws[0]


def test_a_cancellation_elsewhere_is_another_one() -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            other = await nursery.start(hang_in_a_scope)
            with cancel_here():
                other.cancel()
                with trio.CancelScope(shield=True):
                    await trio.sleep(1)
                await swallow()

    error = broken(scenario)
    assert error.step == 1
    assert "in swallow\n" in error.laws[0]


def test_a_cancellation_that_nobody_was_told_of_is_not_swallowed() -> None:
    async def scenario() -> None:
        await trio.sleep(1)
        with trio.CancelScope(shield=True):
            await nap()
        # A scope of its own that shields, and runs out: the cancellation that it ends is its own.
        with trio.move_on_after(1, shield=True) as own:
            await trio.sleep_forever()
        assert own.cancelled_caught

    assert cancel_everywhere(scenario) == 5


def test_an_error_may_take_the_place_of_a_cancellation_outside_of_the_part() -> None:
    async def scenario() -> None:
        with contextlib.suppress(KeyError), cancel_here():
            try:
                await trio.sleep(1)
            except trio.Cancelled:
                raise KeyError from None

    assert cancel_everywhere(scenario) == 2


async def hang_in_a_shield() -> None:
    try:
        await nap()
    except trio.Cancelled:  # noqa: ASYNC103  That is what is to be found.
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()


def test_a_hang_after_a_cancellation_is_reported_with_where_it_hangs() -> None:
    error = broken(hang_in_a_shield)
    assert error.step == 1
    assert "does not end; after 3600 virtual seconds" in error.laws[0]
    assert "in hang_in_a_shield\n" in error.laws[0]
    assert "sleep_forever" in error.laws[0]


def test_a_hang_that_ends_when_all_is_cancelled_is_reported_as_well() -> None:
    async def scenario() -> None:
        with cancel_here():
            await nap()
        if trio.current_time() < 2:
            await trio.sleep_forever()

    error = broken(scenario, seconds=60)
    assert "after 60 virtual seconds" in error.laws[0]


def test_a_hang_without_a_cancellation_is_reported_as_one() -> None:
    error = broken(trio.sleep_forever)
    assert error.step is None
    assert "does not end" in error.laws[0]


@pytest.mark.parametrize("hangs", [True, False])
def test_what_breaks_a_law_ends_in_good_order_if_it_can(hangs: bool) -> None:
    cleaned: list[str] = []

    async def wait(name: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append(name)

    async def scenario() -> None:
        if hangs:
            await wait("hung")
        nursery = trio.lowlevel.current_task().parent_nursery
        assert nursery is not None
        nursery.start_soon(wait, "left")
        await wait_all_tasks_blocked()

    broken(scenario)
    assert cleaned == ["hung" if hangs else "left"]


@pytest.mark.slow
def test_a_scenario_that_goes_round_in_circles_is_reported_and_stopped() -> None:
    async def scenario() -> None:
        while trio.current_time() < 3:
            with contextlib.suppress(BaseException):
                await trio.sleep(1)

    error = broken(scenario)
    assert "does not end; after 2000" in error.laws[0]
    assert error.step == 1


def test_a_late_end_is_no_hang() -> None:
    async def scenario() -> None:
        await trio.sleep(4000)

    broken(scenario)
    assert cancel_everywhere(scenario, seconds=4001) == 2


async def leave_a_task() -> None:
    nursery = trio.lowlevel.current_task().parent_nursery
    assert nursery is not None
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        nursery.start_soon(trio.sleep_forever, name="left")
        raise


async def leave_a_shielded_system_task() -> None:
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        trio.lowlevel.spawn_system_task(hang_shielded, name="left")
        raise


async def hang_shielded() -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()


async def leave_a_nursery_open() -> None:
    manager = trio.open_nursery()
    nursery = await manager.__aenter__()
    nursery.start_soon(trio.sleep_forever, name="left")
    try:
        await trio.sleep(1)
    except trio.Cancelled:  # noqa: ASYNC103  That it is a fault is known.
        return
    nursery.cancel_scope.cancel()
    await manager.__aexit__(None, None, None)


@pytest.mark.parametrize(
    "scenario", [leave_a_task, leave_a_shielded_system_task, leave_a_nursery_open]
)
def test_a_task_that_is_left_is_reported(scenario: Callable[[], Awaitable[None]]) -> None:
    error = broken(scenario)
    assert error.step == 1
    assert any("something is left: task 'left'" in law for law in error.laws)


def test_a_descriptor_that_is_left_is_reported() -> None:
    opened: list[int] = []

    async def scenario() -> None:
        read, write = os.pipe()
        os.close(write)
        opened.append(read)
        # It is closed by the end, and not by a cancellation.
        await trio.sleep(1)
        os.close(read)

    error = broken(scenario)
    os.close(opened[-1])
    assert f"something is left: descriptor {opened[-1]}: pipe:" in error.laws[0]


def test_a_thread_that_is_left_is_reported() -> None:
    end = threading.Event()
    threads: list[threading.Thread] = []

    async def scenario() -> None:
        threads.append(threading.Thread(target=end.wait, name="left"))
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            threads[-1].start()
            raise

    error = broken(scenario)
    end.set()
    threads[-1].join()
    assert error.laws == ("something is left: thread 'left'",)


def test_all_laws_that_a_step_breaks_are_reported() -> None:
    async def scenario() -> None:
        await leave_a_task()

    async def raising() -> None:
        try:
            await scenario()
        except trio.Cancelled:
            raise KeyError from None

    error = broken(raising)
    assert [law.split(":")[0] for law in error.laws] == ["it raised KeyError", "something is left"]


def test_a_law_broken_before_the_step_was_reached_is_no_matter_of_the_cancellation() -> None:
    runs: list[int] = []

    async def scenario() -> None:
        runs.append(1)
        if len(runs) == 3:
            raise KeyError
        await nap()

    error = broken(scenario)
    assert (error.step, error.task) == (None, None)


# -- what cannot be asked


@pytest.mark.parametrize("in_part", [False, True])
def test_a_scenario_in_which_nothing_waits_is_refused(in_part: bool) -> None:
    async def scenario() -> None:
        with cancel_here() if in_part else contextlib.nullcontext():
            pass
        if in_part:
            await nap()

    with pytest.raises(ValueError, match="nothing in it waits"):
        cancel_everywhere(scenario)


def test_parts_do_not_nest() -> None:
    async def scenario() -> None:
        with cancel_here(), cancel_here():
            await nap()

    assert isinstance(broken(scenario).__cause__, RuntimeError)


async def test_a_part_outside_of_a_scenario_is_refused() -> None:
    with pytest.raises(RuntimeError, match="cancel_everywhere"), cancel_here():
        pytest.fail("it must not be entered")


async def test_it_refuses_to_run_within_a_run() -> None:
    with pytest.raises(RuntimeError, match="inside"):
        cancel_everywhere(nap)
