"""Cancel at every step: nothing is left, and the session works or says why not."""

from __future__ import annotations

import contextlib
import itertools
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio._core import _run as trio_run
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    DEFER,
    Allow,
    LaunchFailed,
    PermissionRequest,
    ProcessExited,
    RequestTimedOut,
    Session,
    SessionClosed,
    open_session,
)
from claude_trio.messages import ResultMessage
from claude_trio.permissions import allow_all
from claude_trio.testing import FakeClaude, call_tool, pause, say
from tests.shell.scripted import agent, command, shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from claude_trio.testing import Reply

SEEDS = range(2)
DEAF = {"interrupt", "eof", "term"}
FLOOR = 3000
"""How many cancellations all tests of this file are made of, at least."""

COUNTED: list[int] = []


@pytest.fixture(scope="module", autouse=True)
def floor() -> Iterator[None]:
    yield
    # A part of them may have been chosen: then there is nothing to say of the whole.
    if len(COUNTED) == 5 * len(USES) + 6 * len(NURSERIES) + 8:
        assert sum(COUNTED) >= FLOOR


class CancelAtStep(trio.abc.Instrument):
    """Cancel a scope right before the n-th step that any task takes while it is armed."""

    def __init__(self, step: int) -> None:
        self.left = step
        self.scope: trio.CancelScope | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.scope is None:
            return
        if self.left == 0:
            self.scope.cancel()
        self.left -= 1

    @property
    def reached(self) -> bool:
        return self.left < 0


def shuffle(seed: int) -> None:
    # Trio shuffles tasks that wake together by this source, and has no public switch for it.
    trio_run._r = random.Random(seed)


def points(scenario: Callable[[CancelAtStep], Awaitable[None]], seed: int) -> int:
    """Run the scenario once for each step with a cancellation there, and count them."""
    for step in itertools.count():
        shuffle(seed)
        instrument = CancelAtStep(step)

        async def main(instrument: CancelAtStep = instrument) -> None:
            me = trio.lowlevel.current_task()
            assert me.parent_nursery is not None
            with trio.fail_after(3600):
                await scenario(instrument)
            assert me.parent_nursery.child_tasks == {me}
            assert not me.child_nurseries

        trio.run(main, clock=MockClock(autojump_threshold=0), instruments=[instrument])
        if not instrument.reached:
            COUNTED.append(step)
            return step
    raise AssertionError


@asynccontextmanager
async def armed(instrument: CancelAtStep) -> AsyncIterator[None]:
    with trio.CancelScope() as scope:
        instrument.scope = scope
        try:
            yield
        finally:
            instrument.scope = None


async def one_prompt(session: Session) -> None:
    assert (await session.prompt("mine")).text == "mine"


async def one_turn(session: Session) -> None:
    async with session.turn("mine") as turn:
        pieces = [text async for text in turn.text]
    assert "".join(pieces) == "mine"


async def an_interrupt(session: Session) -> None:
    async with session.turn("slow", check=False) as turn:
        async for _ in turn.text:
            break
        await turn.interrupt()


async def a_tool(session: Session) -> None:
    async with session.turn("tool") as turn:
        async for _ in turn:
            pass


async def a_deferred_tool(session: Session) -> None:
    async with session.turn("deferred tool"):
        while not session.pending_permissions:
            await trio.sleep(1)
        assert session.answer_permission(session.pending_permissions[0].id, Allow())


async def idling(session: Session) -> None:
    with trio.move_on_after(1):
        await session.prompt("slow")
    await session.wait_idle()


async def own_tasks(session: Session) -> None:
    texts: list[str] = []
    async with session.turn("mine") as turn:

        async def read() -> None:
            texts.extend([text async for text in turn.text])

        turn.start_soon(read)
        turn.start_soon(trio.sleep, 2)
    assert "".join(texts) == "mine"


async def listening(session: Session) -> None:
    async with session.subscribe(3) as events, trio.open_nursery() as nursery:
        nursery.start_soon(one_prompt, session)
        async for event in events:
            if isinstance(event, ResultMessage):
                break


async def choosing(session: Session) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.set_model, "opus")
        nursery.start_soon(session.set_permission_mode, "plan")
        assert await session.control("context") == {"tokens": 7}


async def an_agent(session: Session) -> None:
    async with session.turn("agent") as turn:
        async for _ in turn.batches():
            pass
    assert len(turn.results) == 2


async def an_interrupted_agent(session: Session) -> None:
    async with session.turn("agent") as turn:
        while turn.result is None:
            await trio.sleep(1)
        await session.interrupt()


async def a_spared_agent(session: Session) -> None:
    async with session.turn("agent") as turn:
        while turn.result is None:
            await trio.sleep(1)
        await turn.interrupt(spare_agents=True)
    await session.wait_idle()


async def a_shell(session: Session) -> None:
    await session.prompt("shell", hold_open=False)
    await trio.sleep(2)
    await session.wait_idle()


def answer(told: str) -> Reply:
    match told:
        case "agent":
            return agent()
        case "shell":
            return shell(1)
        case "look":
            return pause(1) + command(1)
        case "slow":
            return say("slow") + pause(100) + say("ly")
        case "tool" | "deferred tool":
            return call_tool("Later" if "deferred" in told else "Bash", {"command": told})
        case _:
            return say("mine", chunks=2, delay=1)


async def decide(request: PermissionRequest) -> object:
    await trio.sleep(1)
    return DEFER if request.tool_name == "Later" else Allow()


USES = [
    one_prompt,
    one_turn,
    an_interrupt,
    a_tool,
    a_deferred_tool,
    idling,
    own_tasks,
    listening,
    choosing,
    an_agent,
    an_interrupted_agent,
    a_spared_agent,
    a_shell,
]


def fake_claude(**more: Any) -> FakeClaude:
    return FakeClaude(answer, answers={"context": {"tokens": 7}}, **more)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("use", USES)
def test_cancelling_a_use_leaves_the_session_usable(
    use: Callable[[Session], Awaitable[None]], seed: int
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = fake_claude()
        async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
            async with armed(instrument):
                await use(session)
            assert (await session.prompt("and now this")).text == "mine"
            assert session.pending_permissions == ()
            await session.wait_idle()
        assert session.exit_status.group_gone

    assert points(scenario, seed) > 5


@pytest.mark.parametrize(("seed", "deaf_to"), [(2, set()), (3, set()), (4, DEAF)])
@pytest.mark.parametrize("use", USES)
def test_cancelling_anywhere_ends_the_session_and_leaves_nothing(
    use: Callable[[Session], Awaitable[None]], seed: int, deaf_to: set[str]
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = fake_claude(deaf_to=deaf_to)
        async with armed(instrument):
            async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
                # A CLI that ends no turn is ended itself: that is what its waiters hear.
                with contextlib.suppress(*[SessionClosed, RequestTimedOut] if deaf_to else []):
                    await use(session)

    assert points(scenario, seed) > 5


NURSERIES = [one_turn, an_agent, own_tasks]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("use", NURSERIES)
def test_a_cancelled_nursery_around_the_session_leaves_nothing(
    use: Callable[[Session], Awaitable[None]], seed: int
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = fake_claude()
        async with trio.open_nursery() as nursery:
            instrument.scope = nursery.cancel_scope
            try:
                async with open_session(nursery, launch=fake.launch, on_permission=allow_all) as s:
                    await use(s)
            finally:
                instrument.scope = None

    assert points(scenario, seed) > 5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("use", NURSERIES)
def test_a_cancelled_nursery_elsewhere_closes_the_session_and_leaves_nothing(
    use: Callable[[Session], Awaitable[None]], seed: int
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = fake_claude()
        async with trio.open_nursery() as outer:
            given: list[trio.Nursery] = []

            async def host() -> None:
                async with trio.open_nursery() as nursery:
                    given.append(nursery)
                    await trio.sleep_forever()

            outer.start_soon(host)
            await wait_all_tasks_blocked()
            instrument.scope = given[0].cancel_scope
            try:
                # A nursery that has ended takes no tasks any more.
                with contextlib.suppress(SessionClosed, RuntimeError):
                    async with open_session(
                        given[0], launch=fake.launch, on_permission=allow_all
                    ) as s:
                        await use(s)
            finally:
                instrument.scope = None
            given[0].cancel_scope.cancel()

    assert points(scenario, seed) > 5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("use", NURSERIES)
def test_cancelling_anywhere_while_the_cli_dies_leaves_nothing(
    use: Callable[[Session], Awaitable[None]], seed: int
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = fake_claude(dies_with=3)
        async with armed(instrument):
            with contextlib.suppress(ProcessExited):
                async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
                    await use(session)

    assert points(scenario, seed) > 5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("deaf_to", [set(), {"initialize", "eof", "term"}])
def test_cancelling_a_slow_opening_leaves_nothing(seed: int, deaf_to: set[str]) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = fake_claude(starts_after=10, deaf_to=deaf_to, pipe=64)
        async with armed(instrument):
            with contextlib.suppress(LaunchFailed):
                async with open_session(launch=fake.launch) as session:
                    await one_prompt(session)

    assert points(scenario, seed) > 5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("deaf_to", [set(), DEAF])
def test_cancelling_a_close_from_another_task_closes_all_the_same(
    seed: int, deaf_to: set[str]
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = fake_claude(deaf_to=deaf_to)
        async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
            async with trio.open_nursery() as nursery:

                async def use() -> None:
                    with contextlib.suppress(SessionClosed):
                        await an_agent(session)

                nursery.start_soon(use)
                await trio.sleep(1)
                async with armed(instrument):
                    nursery.start_soon(session.wait_exit)
                    await session.aclose()
                nursery.start_soon(session.aclose)
            assert not session.alive
        assert session.exit_status.group_gone

    assert points(scenario, seed) > 3
