"""Laws of many sessions, and of the nurseries, scopes and interrupts around them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    Allow,
    ExitCause,
    ExitState,
    PermissionRequest,
    ProcessExited,
    Session,
    SessionClosed,
    SessionState,
    open_session,
)
from claude_trio.permissions import Decision, allow_all
from claude_trio.testing import FakeClaude, call_tool, faults, hang, pause, say
from tests.shell.scripted import agent, working

Use: TypeAlias = Callable[[Session], contextlib.AbstractAsyncContextManager[None]]


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


# -- many


@pytest.mark.slow
async def test_of_fifty_sessions_one_dies_and_the_others_do_not_notice(
    autojump_clock: MockClock,
) -> None:
    answers: dict[int, str] = {}
    fakes = [FakeClaude(lambda told: pause(5) + say(told)) for _ in range(50)]

    async def work(number: int) -> None:
        async with open_session(nursery, launch=fakes[number].launch) as session:
            for turn in range(3):
                answers[number] = (await session.prompt(f"{number} in {turn}")).text

    async def doomed() -> None:
        async with open_session(nursery, launch=fakes[0].launch) as session:
            with pytest.raises(ProcessExited):
                await session.prompt("go")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(doomed)
        for number in range(1, 50):
            nursery.start_soon(work, number)
        await trio.sleep(3)
        fakes[0].exit(-9)
    assert answers == {number: f"{number} in 2" for number in range(1, 50)}


async def test_the_first_answer_wins_and_the_rest_is_cancelled(autojump_clock: MockClock) -> None:
    before = tasks()
    winners: list[str] = []
    sessions: list[Session] = []

    async def race(seconds: float) -> None:
        fake = FakeClaude([pause(seconds) + say(f"after {seconds:g}")])
        async with open_session(launch=fake.launch) as session:
            sessions.append(session)
            winners.append((await session.prompt("go")).text)
            nursery.cancel_scope.cancel()

    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        for seconds in (30, 3, 300):
            nursery.start_soon(race, seconds)
    assert winners == ["after 3"]
    assert trio.current_time() - started == pytest.approx(3)
    assert {session.state for session in sessions} == {SessionState.CLOSED}
    assert all(session.exit_status.group_gone for session in sessions)
    assert tasks() == before


@pytest.mark.slow
async def test_two_hundred_sessions_one_after_the_other_leave_no_task(
    autojump_clock: MockClock,
) -> None:
    before = tasks()
    for number in range(200):
        fake = FakeClaude([say("mine")])
        async with open_session(launch=fake.launch) as session, session.subscribe():
            if number % 4 == 0:
                await session.prompt("go")
            elif number % 4 == 1:
                with trio.move_on_after(0):
                    await session.prompt("go")
            elif number % 4 == 2:
                fake.exit(1)
        assert session.state is SessionState.CLOSED
    await wait_all_tasks_blocked()
    assert tasks() == before


async def test_a_session_may_be_used_and_closed_from_any_task(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("one"), say("two")])
    answers: list[str] = []
    async with open_session(launch=fake.launch) as session:

        async def use() -> None:
            answers.append((await session.prompt("go")).text)

        for _ in range(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(use)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.aclose)
            nursery.start_soon(session.aclose)
        assert not session.alive
    assert answers == ["one", "two"]


async def test_ten_waiters_and_a_late_one_hear_of_the_exit(autojump_clock: MockClock) -> None:
    heard: list[object] = []
    fake = FakeClaude([hang()], faults=[faults.stderr("the last words\n")])
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def wait() -> None:
            heard.append(await session.wait_exit())

        for _ in range(10):
            nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert session.exit_status.state is ExitState.RUNNING
        fake.exit(-9)
    assert len(heard) == 10
    assert set(map(id, heard)) == {id(await session.wait_exit())}
    assert session.exit_status.signal == 9
    assert session.exit_status.stderr_tail == "the last words\n"
    assert session.exit_status.cause is ExitCause.KILLED


# -- the block's own exception


@contextlib.asynccontextmanager
async def idle(_session: Session) -> AsyncIterator[None]:
    yield


@contextlib.asynccontextmanager
async def in_a_turn(session: Session) -> AsyncIterator[None]:
    async with session.turn("slow"):
        await trio.sleep(1)
        yield


@contextlib.asynccontextmanager
async def held_by_an_agent(session: Session) -> AsyncIterator[None]:
    async with session.turn("agent") as turn:
        while turn.result is None:
            await trio.sleep(1)
        yield


@contextlib.asynccontextmanager
async def at_a_permission(session: Session) -> AsyncIterator[None]:
    async with session.turn("tool"):
        while not session.pending_permissions:
            await trio.sleep(1)
        yield


@contextlib.asynccontextmanager
async def cancelling(session: Session) -> AsyncIterator[None]:
    with trio.move_on_after(1):
        await session.prompt("slow")
    yield


@contextlib.asynccontextmanager
async def with_a_subscription(session: Session) -> AsyncIterator[None]:
    async with session.subscribe(1):
        await session.prompt("go")
        yield


USES: list[Use] = [
    idle,
    in_a_turn,
    held_by_an_agent,
    at_a_permission,
    cancelling,
    with_a_subscription,
]


def busy() -> FakeClaude:
    scripts = {
        "slow": say("one ") + pause(100) + say("two"),
        "agent": agent(),
        "tool": call_tool("Bash", {}),
    }
    return FakeClaude(lambda told: scripts.get(told, say("mine")), agents={"look": working(100)})


async def never_decide(_request: PermissionRequest) -> Decision:
    await trio.sleep_forever()
    return Allow()


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit, trio.TooSlowError])
@pytest.mark.parametrize("use", USES)
async def test_the_blocks_own_exception_leaves_bare_from_any_state(
    autojump_clock: MockClock, use: Use, error: type[BaseException]
) -> None:
    before = tasks()
    fake = busy()
    started = trio.current_time()
    with pytest.raises(error) as caught:
        async with open_session(launch=fake.launch, on_permission=never_decide) as session:
            async with use(session):
                raise error
    assert caught.type is error
    assert trio.current_time() - started < 10
    assert session.exit_status.cause is ExitCause.CLOSED
    assert tasks() == before


@pytest.mark.parametrize("use", USES)
async def test_the_blocks_own_exception_leaves_bare_while_the_cli_dies(
    autojump_clock: MockClock, use: Use
) -> None:
    before = tasks()
    fake = busy()
    with pytest.raises(KeyError):
        async with open_session(launch=fake.launch, on_permission=never_decide) as session:
            async with use(session):
                fake.exit(3)
                await wait_all_tasks_blocked()
                raise KeyError
    assert session.exit_status.returncode == 3
    assert tasks() == before


# -- nurseries


@pytest.mark.parametrize("use", USES)
async def test_a_scope_around_a_session_with_its_own_nursery_is_only_a_scope(
    autojump_clock: MockClock, use: Use
) -> None:
    before = tasks()
    fake = busy()
    with trio.CancelScope() as scope:
        async with open_session(launch=fake.launch, on_permission=never_decide) as session:
            async with use(session):
                scope.cancel()
                await trio.sleep_forever()
    assert scope.cancelled_caught
    assert session.exit_status.group_gone
    assert tasks() == before


@pytest.mark.parametrize("use", USES)
async def test_a_given_nursery_that_is_cancelled_around_the_block_ends_the_session(
    autojump_clock: MockClock, use: Use
) -> None:
    before = tasks()
    fake = busy()
    async with trio.open_nursery() as nursery:
        async with open_session(nursery, launch=fake.launch, on_permission=never_decide) as session:
            async with use(session):
                nursery.cancel_scope.cancel()
                await trio.sleep_forever()
    assert session.exit_status.group_gone
    assert tasks() == before


@pytest.mark.parametrize("use", USES)
async def test_a_given_nursery_does_not_see_the_blocks_exception(
    autojump_clock: MockClock, use: Use
) -> None:
    fake = busy()
    async with trio.open_nursery() as nursery:
        with pytest.raises(KeyError):
            async with open_session(
                nursery, launch=fake.launch, on_permission=never_decide
            ) as session:
                async with use(session):
                    raise KeyError
        assert not nursery.cancel_scope.cancel_called
        assert nursery.child_tasks == set()
        await trio.sleep(1)


@pytest.mark.parametrize("use", USES)
async def test_a_foreign_nursery_that_is_cancelled_closes_the_session_and_its_calls_say_so(
    autojump_clock: MockClock, use: Use
) -> None:
    before = tasks()
    fake = busy()
    async with trio.open_nursery() as outer:
        ready = trio.Event()
        given: list[trio.Nursery] = []

        async def host() -> None:
            async with trio.open_nursery() as nursery:
                given.append(nursery)
                ready.set()
                await trio.sleep_forever()

        outer.start_soon(host)
        await ready.wait()
        # What runs at that moment says so too, where something does.
        with contextlib.suppress(SessionClosed):
            async with open_session(
                given[0], launch=fake.launch, on_permission=never_decide
            ) as session:
                async with use(session):
                    given[0].cancel_scope.cancel()
                    await session.wait_exit()
                    with pytest.raises(SessionClosed):
                        await session.set_model("opus")
                    with pytest.raises(SessionClosed):
                        await session.prompt("more")
        assert session.exit_status.cause is ExitCause.CLOSED
    assert tasks() == before


async def test_a_body_in_a_task_below_the_nursery_may_use_the_session_to_its_last_line(
    autojump_clock: MockClock,
) -> None:
    fake = busy()
    said: list[str] = []

    async def body(nursery: trio.Nursery) -> None:
        async with open_session(nursery, launch=fake.launch, on_permission=allow_all) as session:
            try:
                await session.prompt("slow")
            finally:
                with trio.CancelScope(shield=True):
                    said.append((await session.prompt("last words")).text)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(body, nursery)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert said == ["mine"]


async def test_sessions_share_one_nursery_and_end_in_any_order(autojump_clock: MockClock) -> None:
    for order in itertools.permutations(range(3)):
        async with trio.open_nursery() as nursery, contextlib.AsyncExitStack() as last:
            stacks = [contextlib.AsyncExitStack() for _ in order]
            sessions = []
            for stack in stacks:
                await last.enter_async_context(stack)
                opening = open_session(nursery, launch=busy().launch)
                sessions.append(await stack.enter_async_context(opening))
            for place in order:
                assert (await sessions[place].prompt("go")).text == "mine"
                await stacks[place].aclose()
                assert not sessions[place].alive


async def test_a_session_whose_start_is_cancelled_leaves_nothing(
    autojump_clock: MockClock,
) -> None:
    before = tasks()
    fake = FakeClaude([], faults=[faults.starts_after(50), faults.deaf_to("eof")])
    started = trio.current_time()
    with trio.move_on_after(5) as scope:
        async with open_session(launch=fake.launch):
            pytest.fail("it must not open")
    assert scope.cancelled_caught
    assert trio.current_time() - started == pytest.approx(5 + 5)
    assert tasks() == before


async def test_a_session_that_starts_slowly_opens_in_the_end(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")], faults=[faults.starts_after(50)])
    started = trio.current_time()
    async with open_session(launch=fake.launch) as session:
        assert trio.current_time() - started == pytest.approx(50)
        assert (await session.prompt("go")).text == "mine"
