"""Cancel at every step: nothing is left, and the session works or says why not."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

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
from claude_trio.testing import (
    FakeClaude,
    call_tool,
    cancel_everywhere,
    cancel_here,
    check_session,
    faults,
    pause,
    say,
)
from tests.shell.scripted import agent, asking, shell

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from claude_trio.testing import Reply

    Use = Callable[[Session], Awaitable[None]]

FLOOR: Final = 3000
"""How many cancellations all laws of this file together see, at least."""

DEAF: Final = ("interrupt", "eof", "term")

PLANNED: list[int] = []


def law(at_least: int, name: str, cases: Sequence[object]) -> pytest.MarkDecorator:
    """Hold a law in each case, at so many points or more, and count them in."""
    PLANNED.append(at_least * len(cases))
    return pytest.mark.parametrize(("at_least", name), [(at_least, case) for case in cases])


def test_the_laws_are_held_at_three_thousand_points() -> None:
    assert sum(PLANNED) >= FLOOR


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
            return pause(1) + asking(1)
        case "slow":
            return say("slow") + pause(100) + say("ly")
        case "tool" | "deferred tool":
            return call_tool("Write" if "deferred" in told else "Bash", {"command": told})
        case _:
            return say("mine", chunks=2, delay=1)


async def decide(request: PermissionRequest) -> object:
    await trio.sleep(1)
    return DEFER if request.tool_name == "Write" else Allow()


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


@law(55, "use", USES)
def test_cancelling_a_use_leaves_the_session_usable(use: Use, at_least: int) -> None:
    async def scenario() -> None:
        fake = fake_claude()
        async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
            with cancel_here():
                await use(session)
            await check_session(session)
            # It does not only say why not: all of these are cancelled without a loss.
            assert (await session.prompt("and now this")).text == "mine"
        assert session.exit_status.group_gone

    cancel_everywhere(scenario, at_least=at_least)


@law(85, "use", USES)
def test_cancelling_anywhere_ends_the_session_and_leaves_nothing(use: Use, at_least: int) -> None:
    async def scenario() -> None:
        fake = fake_claude()
        async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
            await use(session)

    cancel_everywhere(scenario, at_least=at_least)


@law(35, "use", USES)
def test_cancelling_anywhere_ends_a_deaf_cli(use: Use, at_least: int) -> None:
    async def scenario() -> None:
        fake = fake_claude(faults=[faults.deaf_to(*DEAF)])
        async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
            # A CLI that ends no turn is ended itself: that is what its waiters hear.
            with contextlib.suppress(SessionClosed, RequestTimedOut):
                await use(session)

    cancel_everywhere(scenario, at_least=at_least)


NURSERIES = [one_turn, an_agent, own_tasks]


@law(70, "use", NURSERIES)
def test_a_cancelled_nursery_around_the_session_leaves_nothing(use: Use, at_least: int) -> None:
    async def scenario() -> None:
        fake = fake_claude()
        async with trio.open_nursery() as nursery:
            with cancel_here(nursery.cancel_scope):
                async with open_session(nursery, launch=fake.launch, on_permission=allow_all) as s:
                    await use(s)

    cancel_everywhere(scenario, at_least=at_least)


@law(70, "use", NURSERIES)
def test_a_cancelled_nursery_elsewhere_closes_the_session_and_leaves_nothing(
    use: Use, at_least: int
) -> None:
    async def scenario() -> None:
        fake = fake_claude()
        async with trio.open_nursery() as outer:
            given: list[trio.Nursery] = []

            async def host() -> None:
                async with trio.open_nursery() as nursery:
                    given.append(nursery)
                    await trio.sleep_forever()

            outer.start_soon(host)
            await wait_all_tasks_blocked()
            # A nursery that has ended takes no tasks any more.
            with (
                cancel_here(given[0].cancel_scope),
                contextlib.suppress(SessionClosed, RuntimeError),
            ):
                async with open_session(given[0], launch=fake.launch, on_permission=allow_all) as s:
                    await use(s)
            given[0].cancel_scope.cancel()

    cancel_everywhere(scenario, at_least=at_least)


@law(60, "use", NURSERIES)
def test_cancelling_anywhere_while_the_cli_dies_leaves_nothing(use: Use, at_least: int) -> None:
    async def scenario() -> None:
        fake = fake_claude(faults=[faults.dies(3)])
        # Outside of what is cancelled: the error may take the place of the cancellation.
        with contextlib.suppress(ProcessExited), cancel_here():
            async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
                await use(session)

    cancel_everywhere(scenario, at_least=at_least)


@law(60, "deaf_to", [(), ("initialize", "eof", "term")])
def test_cancelling_a_slow_opening_leaves_nothing(deaf_to: Collection[str], at_least: int) -> None:
    async def scenario() -> None:
        fake = fake_claude(
            faults=[faults.starts_after(10), faults.deaf_to(*deaf_to), faults.narrow_stdin(64)]
        )
        with contextlib.suppress(LaunchFailed):
            async with open_session(launch=fake.launch) as session:
                await one_prompt(session)

    cancel_everywhere(scenario, at_least=at_least)


@law(40, "deaf_to", [(), DEAF])
def test_cancelling_a_close_from_another_task_closes_all_the_same(
    deaf_to: Collection[str], at_least: int
) -> None:
    async def scenario() -> None:
        fake = fake_claude(faults=[faults.deaf_to(*deaf_to)])
        async with open_session(launch=fake.launch, on_permission=decide) as session:  # type: ignore[arg-type]
            async with trio.open_nursery() as nursery:

                async def use() -> None:
                    with contextlib.suppress(SessionClosed):
                        await an_agent(session)

                nursery.start_soon(use)
                await trio.sleep(1)
                with cancel_here():
                    nursery.start_soon(session.wait_exit)
                    await session.aclose()
                nursery.start_soon(session.aclose)
            assert not session.alive
            await check_session(session)
        assert session.exit_status.group_gone

    cancel_everywhere(scenario, at_least=at_least)
