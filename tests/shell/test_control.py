"""Laws of control requests: one outcome each, whatever the CLI makes of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    ExitCause,
    ProcessExited,
    RequestRefused,
    RequestTimedOut,
    Session,
    SessionClosed,
    Timeouts,
    open_session,
)
from claude_trio.messages import InitMessage
from claude_trio.testing import FakeClaude, faults, hang, say
from tests.shell.scripted import Json, subtypes, written


def answer(request_id: str, **response: object) -> Json:
    body = {"subtype": "success", "request_id": request_id, "response": response}
    return {"type": "control_response", "response": body}


def refusal(request_id: str, error: str) -> Json:
    body = {"subtype": "error", "request_id": request_id, "error": error}
    return {"type": "control_response", "response": body}


def ids(fake: FakeClaude, subtype: str) -> list[str]:
    asked = written(fake, "control_request")
    return [frame["request_id"] for frame in asked if frame["request"]["subtype"] == subtype]


async def test_the_model_is_set_and_the_one_in_force_told(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        assert await session.set_model("sonnet") == "sonnet"
        async with session.turn("go") as turn:
            (init,) = [message async for message in turn if isinstance(message, InitMessage)]
        assert init.model == "sonnet"
        assert await session.set_model(None) == "claude-fake"
        with pytest.raises(RequestRefused) as caught:
            await session.set_model("no-such-model")
    assert caught.value.subtype == "set_model"
    assert caught.value.error_code == "not_found"
    assert "no-such-model" in str(caught.value)


async def test_the_mode_is_set_and_the_one_in_force_told(autojump_clock: MockClock) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session:
        assert await session.set_permission_mode("plan") == "plan"
        assert await session.set_permission_mode("manual") == "default"
        with pytest.raises(RequestRefused) as caught:
            await session.set_permission_mode("nonsense")
    assert caught.value.error_code == "invalid_mode"


async def test_any_subtype_may_be_asked_and_what_comes_is_given(autojump_clock: MockClock) -> None:
    fake = FakeClaude([], answers={"side_question": {"response": "42", "list": [1]}})
    async with open_session(launch=fake.launch) as session:
        given = await session.control("side_question", question="why?")
        assert given == {"response": "42", "list": [1]}
        with pytest.raises(RequestRefused) as caught:
            await session.control("no_such_subtype", value=1)
    assert caught.value.error_code == "unsupported_request"
    asked = written(fake, "control_request")[1:]
    assert [frame["request"] for frame in asked] == [
        {"subtype": "side_question", "question": "why?"},
        {"subtype": "no_such_subtype", "value": 1},
    ]


@pytest.mark.parametrize("subtype", ["initialize", "interrupt"])
async def test_what_the_session_lives_by_is_not_asked_by_hand(
    autojump_clock: MockClock, subtype: str
) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(ValueError, match=subtype):
            await session.control(subtype)
    assert subtypes(fake) == ["initialize"]


async def test_requests_are_answered_in_mid_turn(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go"):
            await trio.sleep(1)
            assert await session.set_model("opus") == "opus"
            await session.interrupt()


async def test_many_in_flight_get_each_its_own_answer_in_any_order(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([], faults=[faults.deaf_to("context")])
    got: dict[int, object] = {}

    async def ask(session: Session, number: int) -> None:
        got[number] = (await session.control("context", number=number))["number"]

    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(ask, session, number)
        await wait_all_tasks_blocked()
        for frame in reversed(written(fake, "control_request")[1:]):
            fake.send(answer(frame["request_id"], number=frame["request"]["number"]))
    assert got == {number: number for number in range(20)}


async def test_no_answer_in_time_is_an_error_that_names_the_request(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("mine")], faults=[faults.deaf_to("set_model")])
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()
        with pytest.raises(RequestTimedOut) as caught:
            await session.set_model("opus")
        assert trio.current_time() - started == pytest.approx(60)
        assert (caught.value.subtype, caught.value.seconds) == ("set_model", 60)
        await wait_all_tasks_blocked()
        (late,) = ids(fake, "set_model")
        assert [f["request_id"] for f in written(fake, "control_cancel_request")] == [late]
        fake.send(answer(late, model="opus"))
        assert (await session.prompt("go")).text == "mine"


async def test_the_time_for_an_answer_can_be_chosen(autojump_clock: MockClock) -> None:
    fake = FakeClaude([], faults=[faults.deaf_to("set_model")])
    async with open_session(launch=fake.launch, timeouts=Timeouts(control=5)) as session:
        started = trio.current_time()
        with pytest.raises(RequestTimedOut):
            await session.set_model("opus")
        assert trio.current_time() - started == pytest.approx(5)


async def test_a_cancelled_caller_withdraws_its_request(autojump_clock: MockClock) -> None:
    fake = FakeClaude(
        [say("mine")], answers={"other": {"fine": True}}, faults=[faults.deaf_to("context")]
    )
    async with open_session(launch=fake.launch) as session:
        with trio.move_on_after(5) as scope:
            await session.control("context")
        assert scope.cancelled_caught
        await wait_all_tasks_blocked()
        (late,) = ids(fake, "context")
        assert [f["request_id"] for f in written(fake, "control_cancel_request")] == [late]
        fake.send(refusal(late, "Side question cancelled"))
        assert await session.control("other") == {"fine": True}


async def test_a_request_that_is_cancelled_before_it_is_sent_is_never_written(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session:
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.set_model("opus")
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.interrupt()
    assert subtypes(fake) == ["initialize"]


async def test_a_cancelled_interrupt_is_sent_all_the_same(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to("interrupt")])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(SessionClosed):
            async with session.turn("go") as turn:
                await trio.sleep(1)
                with trio.move_on_after(5):
                    await session.interrupt()
                assert turn.cancel_requested.is_set()
        assert not written(fake, "control_cancel_request")
    assert session.exit_status.cause is ExitCause.CANCEL_BACKSTOP


async def test_wrong_and_double_answers_are_dropped(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")], faults=[faults.deaf_to("context")])
    got: list[object] = []
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def ask() -> None:
            got.append(await session.control("context"))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        (request_id,) = ids(fake, "context")
        fake.send(answer("never-asked", wrong=True))
        fake.send(refusal("", "to whom?"))
        fake.send({"type": "control_response"})
        fake.send({"type": "control_response", "response": {"request_id": 7}})
        fake.send(answer(request_id, first=True))
        fake.send(answer(request_id, second=True))
        fake.send(refusal(request_id, "third"))
        await wait_all_tasks_blocked()
        assert got == [{"first": True}]
        assert (await session.prompt("go")).text == "mine"


OPERATIONS: list[Callable[[Session], Awaitable[object]]] = [
    lambda session: session.set_model("opus"),
    lambda session: session.set_permission_mode("plan"),
    lambda session: session.control("context"),
    lambda session: session.interrupt(),
    lambda session: session.prompt("more"),
    lambda session: session.wait_idle(),
]


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_whoever_waits_hears_that_the_cli_has_gone_and_why(
    autojump_clock: MockClock, operation: Callable[[Session], Awaitable[object]]
) -> None:
    deaf_to = {"set_model", "set_permission_mode", "context", "interrupt"}
    fake = FakeClaude([hang()], faults=[faults.deaf_to(*deaf_to), faults.stderr("it hurts\n")])
    heard: list[ProcessExited] = []
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(ProcessExited) as caught:
                await operation(session)
            heard.append(caught.value)

        # The session works: otherwise there is nothing to interrupt, nor to wait for.
        fake.send({"type": "system", "subtype": "session_state_changed", "state": "running"})
        await wait_all_tasks_blocked()
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        if not heard:
            fake.exit(-9)
        await wait_all_tasks_blocked()
        with pytest.raises(SessionClosed) as late:
            await operation(session)
        assert isinstance(late.value.__cause__, ProcessExited)
    (error,) = heard
    assert error.signal == 9
    assert "it hurts" in error.stderr_tail
    assert isinstance(error.__cause__, ProcessExited)
    assert error is not error.__cause__


async def test_everybody_in_flight_gets_an_error_of_its_own(autojump_clock: MockClock) -> None:
    fake = FakeClaude([], faults=[faults.deaf_to("context")])
    heard: list[BaseException] = []
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(ProcessExited) as caught:
                await session.control("context")
            heard.append(caught.value)

        for _ in range(10):
            nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        fake.exit(2)
    assert len({id(error) for error in heard}) == 10
    assert len({id(error.__cause__) for error in heard}) == 1
