"""Cancel at every step: nothing is left, and the session works or says why not."""

from __future__ import annotations

import contextlib
import itertools
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from trio._core import _run as trio_run
from trio.testing import MockClock

from claude_trio import DEFER, Allow, PermissionRequest, Session, SessionClosed, open_session
from claude_trio.permissions import allow_all
from claude_trio.testing import FakeClaude, call_tool, pause, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from claude_trio.testing import Reply

SEEDS = range(4)


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
    trio_run._r = random.Random(seed)  # type: ignore[attr-defined]


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
            await trio.sleep(0.1)
        assert session.answer_permission(session.pending_permissions[0].id, Allow())


async def idling(session: Session) -> None:
    with trio.move_on_after(1):
        await session.prompt("slow")
    await session.wait_idle()


def answer(told: str) -> Reply:
    match told:
        case "slow":
            return say("slow") + pause(100) + say("ly")
        case "tool" | "deferred tool":
            return call_tool("Later" if "deferred" in told else "Bash", {"command": told})
        case _:
            return say("mine", chunks=2, delay=1)


async def decide(request: PermissionRequest) -> object:
    await trio.sleep(1)
    return DEFER if request.tool_name == "Later" else Allow()


USES = [one_prompt, one_turn, an_interrupt, a_tool, a_deferred_tool, idling]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("use", USES)
def test_cancelling_a_use_leaves_the_session_usable(
    use: Callable[[Session], Awaitable[None]], seed: int
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = FakeClaude(answer)
        async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
            async with armed(instrument):
                await use(session)
            assert (await session.prompt("and now this")).text == "mine"
            assert session.pending_permissions == ()
            await session.wait_idle()
        assert session.exit_status.group_gone

    assert points(scenario, seed) > 10


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("deaf_to", [set(), {"interrupt", "eof", "term"}])
def test_cancelling_anywhere_ends_the_session_and_leaves_nothing(
    use: Callable[[Session], Awaitable[None]], seed: int, deaf_to: set[str]
) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = FakeClaude(answer, deaf_to=deaf_to)
        async with armed(instrument):
            async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
                # A CLI that ends no turn is ended itself: that is what its waiters hear.
                with contextlib.suppress(*[SessionClosed] if deaf_to else []):
                    await use(session)

    assert points(scenario, seed) > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cancelled_nursery_around_the_session_leaves_nothing(seed: int) -> None:
    async def scenario(instrument: CancelAtStep) -> None:
        fake = FakeClaude(answer)
        async with trio.open_nursery() as nursery:
            instrument.scope = nursery.cancel_scope
            try:
                async with open_session(nursery, launch=fake.launch, on_permission=allow_all) as s:
                    await one_turn(s)
            finally:
                instrument.scope = None

    assert points(scenario, seed) > 10
