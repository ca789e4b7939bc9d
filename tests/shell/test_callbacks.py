"""Laws of permission handlers that misbehave, and of what they may do."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    DEFER,
    Allow,
    CallbackError,
    ExitCause,
    LocalProtocolError,
    Outcome,
    PermissionRequest,
    Session,
    SessionClosed,
    open_session,
)
from claude_trio.permissions import Decision
from claude_trio.testing import FakeClaude, call_tool, pause, say
from tests.shell.scripted import agent, decisions, subtypes

TOOL = call_tool("Bash", {"command": "touch a"})
ASKS = {"look": [say("I look") + pause(5) + TOOL, say("found")]}

Faulty = Callable[[PermissionRequest], Awaitable[Decision]]


async def raises(_request: PermissionRequest) -> Decision:
    raise LookupError("no such rule")


async def raises_a_group(_request: PermissionRequest) -> Decision:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        raise LookupError("no such rule")


async def returns_none(_request: PermissionRequest) -> Decision:
    return None  # type: ignore[return-value]


async def returns_what_json_cannot_say(_request: PermissionRequest) -> Decision:
    return Allow(updated_input={"x": object()})


def is_no_async_function(_request: PermissionRequest) -> Awaitable[Decision]:
    return Allow()  # type: ignore[return-value]


def takes_nothing() -> Awaitable[Decision]:
    raise AssertionError


FAULTY: list[Faulty] = [
    raises,
    raises_a_group,
    returns_none,
    returns_what_json_cannot_say,
    is_no_async_function,
    takes_nothing,  # type: ignore[list-item]
]


@pytest.mark.parametrize("faulty", FAULTY)
async def test_a_faulty_handler_denies_and_ends_the_turn_bare_with_the_cause(
    autojump_clock: MockClock, faulty: Faulty
) -> None:
    ran: list[object] = []
    fake = FakeClaude(
        [TOOL, say("mine"), say("mine")], run_tool=lambda name, _use: str(ran.append(name))
    )
    async with open_session(launch=fake.launch, on_permission=faulty) as session:
        with pytest.raises(CallbackError) as caught:
            async with session.turn("go") as turn:
                async for _ in turn:
                    pass
        assert isinstance(caught.value.__cause__, Exception)
        assert "can_use_tool" in caught.value.callback
        assert (await session.prompt("again")).text == "mine"
        await session.wait_idle()
        assert session.pending_permissions == ()
    assert ran == []
    (decision,) = decisions(fake)
    assert decision["subtype"] == "error"


@pytest.mark.parametrize("faulty", FAULTY)
async def test_a_faulty_handler_outside_of_a_turn_ends_the_session_and_leaves_the_block(
    autojump_clock: MockClock, faulty: Faulty
) -> None:
    fake = FakeClaude([agent(), say("it runs"), say("never")], agents=ASKS)
    with pytest.raises(CallbackError) as caught:
        async with open_session(launch=fake.launch, on_permission=faulty) as session:
            await session.prompt("go", hold_open=False)
            status = await session.wait_exit()
            assert status.cause is ExitCause.CALLBACK
            with pytest.raises(SessionClosed) as late:
                await session.prompt("again")
            assert isinstance(late.value.__cause__, CallbackError)
    assert isinstance(caught.value.__cause__, Exception)


async def test_the_blocks_own_exception_wins_over_a_callbacks_outside_of_a_turn(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([agent(), say("it runs")], agents=ASKS)
    with pytest.raises(KeyError):
        async with open_session(launch=fake.launch, on_permission=raises) as session:
            await session.prompt("go", hold_open=False)
            await session.wait_exit()
            raise KeyError


async def test_the_blocks_own_exception_wins_and_has_a_note_of_the_turns_failure(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([TOOL, say("mine")])
    async with open_session(launch=fake.launch, on_permission=raises) as session:
        with pytest.raises(KeyError) as caught:
            async with session.turn("go"):
                await trio.sleep(1)
                raise KeyError
    (note,) = caught.value.__notes__
    assert "CallbackError" in note
    assert "no such rule" in note


async def test_the_failure_of_the_turn_wins_over_its_error_result(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([TOOL, say("mine")])
    async with open_session(launch=fake.launch, on_permission=raises) as session:
        with pytest.raises(CallbackError):
            async with session.turn("go"):
                await trio.sleep(10)


async def test_a_failure_that_the_block_passes_on_has_no_note_of_itself(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([TOOL, say("mine")])
    async with open_session(launch=fake.launch, on_permission=raises) as session:
        with pytest.raises(CallbackError) as caught:
            async with session.turn("go") as turn:
                async for _ in turn:
                    pass
    assert not getattr(caught.value, "__notes__", [])


async def test_what_waits_beside_a_faulty_handler_is_settled(autojump_clock: MockClock) -> None:
    async def decide(request: PermissionRequest) -> Decision:
        if request.agent_id is None:
            await trio.sleep(10)
            raise LookupError
        return DEFER

    fake = FakeClaude(
        [agent() + TOOL, say("never"), say("mine")], agents={"look": [TOOL, say("found")]}
    )
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        with pytest.raises(CallbackError):
            async with session.turn("go"):
                await trio.sleep(5)
                assert len(session.pending_permissions) == 2
                await trio.sleep(10)
        assert session.pending_permissions == ()
        assert (await session.prompt("again")).text in {"never", "mine"}


# -- handlers that never answer


async def test_a_handler_that_blocks_for_ever_holds_nothing_but_its_tool(
    autojump_clock: MockClock,
) -> None:
    async def decide(_request: PermissionRequest) -> Decision:
        await trio.sleep_forever()
        return Allow()

    fake = FakeClaude([TOOL, say("mine")])
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go"):
            await trio.sleep(24 * 3600)
            assert await session.set_model("opus") == "opus"
            await session.interrupt()
        assert (await session.prompt("again")).text == "mine"


async def test_a_handler_ends_with_its_session(autojump_clock: MockClock) -> None:
    ended = trio.Event()

    async def decide(_request: PermissionRequest) -> Decision:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        return Allow()

    fake = FakeClaude([TOOL])
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        with pytest.raises(SessionClosed):
            async with session.turn("go"):
                await trio.sleep(5)
                await session.aclose()
                await wait_all_tasks_blocked()
                assert ended.is_set()


async def test_a_handler_that_answers_after_the_end_answers_nobody(
    autojump_clock: MockClock,
) -> None:
    answered = False

    async def decide(_request: PermissionRequest) -> Decision:
        nonlocal answered
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        answered = True
        return Allow()

    fake = FakeClaude([TOOL])
    started = trio.current_time()
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        with pytest.raises(SessionClosed):
            async with session.turn("go"):
                await trio.sleep(5)
                await session.aclose()
        # The CLI is gone; it is the nursery that waits for the handler.
        assert trio.current_time() - started < 20
        assert not answered
    assert answered
    assert decisions(fake) == []


async def test_a_handler_that_answers_after_the_interrupt_answers_nobody(
    autojump_clock: MockClock,
) -> None:
    async def decide(_request: PermissionRequest) -> Decision:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return Allow()

    ran: list[object] = []
    fake = FakeClaude([TOOL, say("mine")], run_tool=lambda name, _use: str(ran.append(name)))
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        with trio.move_on_after(5):
            await session.prompt("go")
        assert (await session.prompt("again")).text == "mine"
        await trio.sleep(200)
    assert ran == []
    assert [decision["subtype"] for decision in decisions(fake)] in ([], ["error"])


# -- what a handler may do


async def test_a_handler_may_interrupt_its_own_turn(autojump_clock: MockClock) -> None:
    async def decide(_request: PermissionRequest) -> Decision:
        await session.interrupt()
        return Allow()

    ran: list[object] = []
    fake = FakeClaude([TOOL, say("mine")], run_tool=lambda name, _use: str(ran.append(name)))
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        result = await session.prompt("go")
        assert result.outcome is Outcome.INTERRUPTED
        assert (await session.prompt("again")).text == "mine"
    assert ran == []


async def test_a_handler_may_ask_the_cli(autojump_clock: MockClock) -> None:
    async def decide(_request: PermissionRequest) -> Decision:
        assert await session.set_permission_mode("acceptEdits") == "acceptEdits"
        assert await session.control("context") == {"tokens": 7}
        return Allow()

    fake = FakeClaude([TOOL, say("mine")], answers={"context": {"tokens": 7}})
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        assert (await session.prompt("go")).text == "mine"


async def test_handlers_do_not_wait_for_each_other(autojump_clock: MockClock) -> None:
    second = trio.Event()

    async def decide(request: PermissionRequest) -> Decision:
        if request.agent_id is None:
            second.set()
        else:
            await second.wait()
        return Allow()

    fake = FakeClaude(
        [agent() + call_tool("Write", {}), say("it runs"), say("done")],
        agents={"look": [TOOL, say("found")]},
    )
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        assert (await session.prompt("go")).text in {"it runs", "done"}


async def test_a_task_that_a_handler_starts_is_inside_of_it_as_well(
    autojump_clock: MockClock,
) -> None:
    refused: list[str] = []

    async def misuse(session: Session) -> None:
        with pytest.raises(LocalProtocolError) as caught:
            await session.prompt("more")
        refused.append(str(caught.value))

    async def decide(_request: PermissionRequest) -> Decision:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(misuse, session)
        return Allow()

    fake = FakeClaude([TOOL, say("mine")])
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        assert (await session.prompt("go")).text == "mine"
    assert len(refused) == 1


async def test_a_handler_runs_in_the_context_of_its_turn(autojump_clock: MockClock) -> None:
    user = contextvars.ContextVar("user", default="nobody")
    seen: list[str] = []

    async def decide(_request: PermissionRequest) -> Decision:
        seen.append(user.get())
        user.set("the handler")
        return Allow()

    fake = FakeClaude([TOOL, say("one"), TOOL + TOOL, say("two")])
    user.set("the opener")
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        user.set("alice")
        await session.prompt("go")
        user.set("bob")
        await session.prompt("go")
    assert seen == ["alice", "bob", "bob"]
    assert user.get() == "bob"


async def test_a_deferred_request_that_an_interrupt_settles_is_denied_after_it(
    autojump_clock: MockClock,
) -> None:
    async def defer(_request: PermissionRequest) -> Decision:
        return DEFER

    fake = FakeClaude([TOOL, say("mine")])
    async with open_session(launch=fake.launch, on_permission=defer) as session:
        async with session.turn("go"):
            await trio.sleep(5)
            (request,) = session.pending_permissions
            await session.interrupt()
            assert session.pending_permissions == ()
            assert not session.answer_permission(request.id, Allow())
        assert (await session.prompt("again")).text == "mine"
    kinds = [frame["type"] for frame in fake.received]
    assert "interrupt" in subtypes(fake)
    interrupted = next(
        at
        for at, frame in enumerate(fake.received)
        if frame["type"] == "control_request" and frame["request"]["subtype"] == "interrupt"  # type: ignore[index]
    )
    assert kinds.index("control_response") > interrupted
    (decision,) = decisions(fake)
    assert decision["subtype"] == "error"
