"""Laws of a session, on a CLI in memory and Trio's mock clock."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    DEFER,
    Allow,
    CallbackError,
    Deny,
    ExitCause,
    ExitState,
    LaunchFailed,
    Limits,
    LocalProtocolError,
    Outcome,
    Overflow,
    PermissionRequest,
    ProcessExited,
    SessionClosed,
    SessionOptions,
    SessionState,
    Timeouts,
    Turn,
    TurnFailed,
    TurnInFlight,
    open_session,
    run_prompt,
)
from claude_trio.messages import AssistantMessage, InitMessage, ResultMessage
from claude_trio.permissions import allow_all
from claude_trio.testing import FakeClaude, call_tool, fail, faults, hang, pause, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from claude_trio import PermissionHandler, Session, Transport
    from claude_trio.testing import Reply

SLOW = say("one ") + pause(100) + say("two")


@asynccontextmanager
async def session_with(
    *replies: Reply, on_permission: PermissionHandler = allow_all
) -> AsyncIterator[Session]:
    fake = FakeClaude(replies)
    async with open_session(launch=fake.launch, on_permission=on_permission) as session:
        yield session


def written(fake: FakeClaude, kind: str) -> list[object]:
    return [f for f in fake.received if f["type"] == kind]


def subtypes(fake: FakeClaude) -> list[object]:
    asked = [f["request"] for f in fake.received if f["type"] == "control_request"]
    return [request["subtype"] for request in asked if isinstance(request, dict)]


# -- turns


async def test_each_prompt_gets_its_own_answer(autojump_clock: MockClock) -> None:
    async with session_with(say("first"), say("second"), say("third")) as session:
        assert [(await session.prompt("go")).text for _ in range(3)] == ["first", "second", "third"]
        assert session.state is SessionState.IDLE
    assert session.state is SessionState.CLOSED
    assert session.exit_status.state is ExitState.COMPLETED
    assert session.exit_status.returncode == 0
    assert session.exit_status.group_gone


async def test_a_result_tells_what_its_turn_cost(autojump_clock: MockClock) -> None:
    async with session_with(say("a"), say("b")) as session:
        first, second = await session.prompt("go"), await session.prompt("go")
    assert first.turn_cost_usd == pytest.approx(0.0008)
    assert second.turn_cost_usd == pytest.approx(0.0008)
    assert second.total_cost_usd == pytest.approx(0.0016)


async def test_the_first_turn_after_a_resume_costs_what_its_result_says(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("a"), say("b")])
    options = SessionOptions(resume="11111111-2222-4333-8444-555555555555")
    async with open_session(None, options, launch=fake.launch) as session:
        assert session.session_id == options.resume
        assert (await session.prompt("go")).turn_cost_usd == pytest.approx(0.0008)
        assert (await session.prompt("go")).turn_cost_usd == pytest.approx(0.0008)


async def test_a_turn_gives_every_message_in_order_and_then_ends(autojump_clock: MockClock) -> None:
    async with session_with(say("hello", chunks=3)) as session:
        async with session.turn("go") as turn:
            messages = [message async for message in turn]
            assert [message async for message in turn] == []
    kinds = [type(message) for message in messages]
    assert kinds.index(InitMessage) < kinds.index(AssistantMessage) < kinds.index(ResultMessage)
    assert kinds.count(ResultMessage) == 1
    assert turn.result is not None
    assert turn.result.text == "hello"
    assert turn.results == (turn.result,)
    assert turn.settled


async def test_the_text_of_a_turn_comes_once_as_it_streams(autojump_clock: MockClock) -> None:
    async with session_with(say("hello there", chunks=4)) as session:
        async with session.turn("go") as turn:
            pieces = [text async for text in turn.text]
    assert "".join(pieces) == "hello there"
    assert len(pieces) == 4


async def test_a_second_prompt_is_refused_and_disturbs_nothing(autojump_clock: MockClock) -> None:
    async with session_with(SLOW) as session:
        async with session.turn("go") as turn:
            with pytest.raises(TurnInFlight):
                await session.prompt("me too")
            assert "".join([text async for text in turn.text]) == "one two"


@pytest.mark.parametrize("content", ["", "  \n", [], [{}]])
async def test_an_empty_prompt_is_refused_before_anything_is_written(
    autojump_clock: MockClock, content: object
) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(ValueError, match="content"):
            await session.prompt(content)  # type: ignore[arg-type]
    assert not written(fake, "user")


async def test_content_blocks_are_written_as_they_are(autojump_clock: MockClock) -> None:
    fake = FakeClaude(say)
    async with open_session(launch=fake.launch) as session:
        result = await session.prompt([{"type": "text", "text": "echo"}])
    assert result.text == "echo"


async def test_an_error_result_raises_unless_it_is_not_checked(autojump_clock: MockClock) -> None:
    async with session_with(fail(403), fail(529, always=True), say("fine")) as session:
        with pytest.raises(TurnFailed) as caught:
            await session.prompt("go")
        assert caught.value.result is not None
        assert caught.value.result.outcome is Outcome.FAILED
        assert caught.value.result.api_error_status == 403
        unchecked = await session.prompt("go", check=False)
        assert unchecked.api_error_status == 529
        assert (await session.prompt("go")).text == "fine"


async def test_run_prompt_is_one_turn_in_a_process_of_its_own(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("done")])
    assert (await run_prompt("go", launch=fake.launch)).text == "done"


# -- leaving a turn early


@pytest.mark.parametrize("after", [0, 0.5, 1, 50, 99, 100, 101])
async def test_a_cancelled_prompt_is_interrupted_and_the_next_gets_its_own_answer(
    autojump_clock: MockClock,
    after: float,
) -> None:
    async with session_with(SLOW, say("mine"), say("mine")) as session:
        started = trio.current_time()
        with trio.move_on_after(after):
            await session.prompt("go")
        assert trio.current_time() - started <= min(after, 100)
        assert (await session.prompt("again")).text in {"mine", "one two"}
        await session.wait_idle()
        assert session.state is SessionState.IDLE


async def test_a_prompt_that_is_cancelled_before_it_was_written_is_never_written(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.prompt("never")
        assert (await session.prompt("this")).text == "mine"
    assert len(written(fake, "user")) == 1
    assert "interrupt" not in subtypes(fake)


async def test_an_exception_leaves_the_block_bare_and_the_session_usable(
    autojump_clock: MockClock,
) -> None:
    async with session_with(SLOW, say("mine")) as session:
        with pytest.raises(KeyError):
            async with session.turn("go") as turn:
                async for _ in turn.text:
                    raise KeyError
        assert (await session.prompt("again")).text == "mine"


async def test_a_deadline_around_a_turn_is_only_a_deadline(autojump_clock: MockClock) -> None:
    async with session_with(SLOW, say("mine")) as session:
        with pytest.raises(trio.TooSlowError):
            with trio.fail_after(10):
                async with session.turn("go") as turn:
                    async for _ in turn:
                        pass
        assert (await session.prompt("again")).text == "mine"


async def test_leaving_the_loop_only_waits_for_the_end_of_the_turn(
    autojump_clock: MockClock,
) -> None:
    async with session_with(SLOW, say("mine")) as session:
        async with session.turn("go") as turn:
            async for _ in turn:
                break
        assert turn.result is not None
        assert turn.result.text == "one two"
        assert (await session.prompt("again")).text == "mine"


async def test_a_turn_that_nobody_reads_overflows_and_the_session_lives(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("x" * 5000) + pause(10), say("mine")])
    async with open_session(launch=fake.launch, limits=Limits(turn_buffer=4000)) as session:
        with pytest.raises(Overflow) as caught:
            async with session.turn("go"):
                await trio.sleep(5)
        assert (caught.value.buffer, caught.value.size) == ("turn", 4000)
        assert (await session.prompt("again")).text == "mine"


async def test_two_tasks_cannot_read_one_turn(autojump_clock: MockClock) -> None:
    async with session_with(hang()) as session, trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with session.turn("go") as turn:

                async def read() -> None:
                    async for _ in turn:
                        pass

                nursery.start_soon(read)
                await wait_all_tasks_blocked()
                with pytest.raises(trio.BusyResourceError):
                    async for _ in turn:
                        pass
                scope.cancel()
        nursery.cancel_scope.cancel()


# -- interrupts


async def test_an_interrupt_ends_the_turn_and_raises_nothing(autojump_clock: MockClock) -> None:
    async with session_with(hang(), say("mine")) as session:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            receipt = await session.interrupt()
            assert receipt.sent
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert turn.result.errors == ()
        assert (await session.prompt("again")).text == "mine"


async def test_an_interrupt_when_idle_sends_nothing(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        receipt = await session.interrupt()
        assert not receipt.sent
        assert (await session.prompt("go")).text == "mine"
        assert not (await session.interrupt()).sent
    assert "interrupt" not in subtypes(fake)


async def test_a_turn_that_is_over_has_nothing_to_interrupt(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            async for _ in turn:
                pass
            await turn.interrupt()
    assert "interrupt" not in subtypes(fake)


async def test_a_cli_that_is_deaf_to_the_interrupt_is_ended_at_the_backstop(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to("interrupt")])
    with pytest.raises(SessionClosed) as caught:
        async with open_session(launch=fake.launch) as session:
            started = trio.current_time()
            with trio.move_on_after(5):
                await session.prompt("go")
            await session.prompt("again")
    assert trio.current_time() - started < 5 + 30 + 15
    assert session.exit_status.cause is ExitCause.CANCEL_BACKSTOP
    assert session.exit_status.state is ExitState.FAILED
    assert "30 s" in str(caught.value.__cause__)


# -- permissions


async def test_a_handler_sees_the_request_and_its_answer_counts(autojump_clock: MockClock) -> None:
    seen: list[PermissionRequest] = []
    ran: list[object] = []

    async def guard(request: PermissionRequest) -> Allow | Deny:
        seen.append(request)
        return Allow(updated_input={"command": "pwd"}) if len(seen) == 1 else Deny("enough")

    fake = FakeClaude(
        [
            call_tool("Bash", {"command": "touch a"}) + call_tool("Bash", {"command": "rm a"}),
            say("done"),
        ],
        run_tool=lambda name, arguments: str(ran.append((name, dict(arguments)))),
    )
    async with open_session(launch=fake.launch, on_permission=guard) as session:
        assert (await session.prompt("go")).text == "done"
    assert [r.tool_name for r in seen] == ["Bash", "Bash"]
    assert [r.input["command"] for r in seen] == ["touch a", "rm a"]
    assert ran == [("Bash", {"command": "pwd"})]


async def test_without_a_handler_everything_is_denied(autojump_clock: MockClock) -> None:
    ran: list[object] = []
    fake = FakeClaude([call_tool("Bash", {}), say("done")], run_tool=lambda *a: str(ran.append(a)))
    async with open_session(launch=fake.launch) as session:
        await session.prompt("go")
    assert ran == []


@pytest.mark.parametrize("wrong", [None, "yes", True])
async def test_nonsense_from_a_handler_denies_and_ends_the_turn(
    autojump_clock: MockClock, wrong: object
) -> None:
    async def handler(_request: PermissionRequest) -> Allow:
        return wrong  # type: ignore[return-value]

    ran: list[object] = []
    fake = FakeClaude(
        [call_tool("Bash", {}), say("done"), say("mine")], run_tool=lambda *a: str(ran.append(a))
    )
    async with open_session(launch=fake.launch, on_permission=handler) as session:
        with pytest.raises(CallbackError):
            await session.prompt("go")
        assert ran == []
        assert session.alive


async def test_a_handler_that_raises_surfaces_bare_with_its_cause(
    autojump_clock: MockClock,
) -> None:
    async def handler(_request: PermissionRequest) -> Allow:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise LookupError("no such rule")

    async with session_with(
        call_tool("Bash", {}), say("done"), say("mine"), on_permission=handler
    ) as session:
        with pytest.raises(CallbackError) as caught:
            async with session.turn("go") as turn:
                async for _ in turn:
                    pass
        assert caught.value.__cause__ is not None
        assert "no such rule" in repr(caught.value.__cause__.exceptions)  # type: ignore[attr-defined]
        assert (await session.prompt("again")).text in {"done", "mine"}


async def test_a_deferred_request_keeps_its_input_and_is_answered_once(
    autojump_clock: MockClock,
) -> None:
    async def defer(_request: PermissionRequest) -> object:
        return DEFER

    ran: list[object] = []
    fake = FakeClaude(
        [call_tool("Bash", {"command": "touch a"}), say("done")],
        run_tool=lambda _name, arguments: str(ran.append(dict(arguments))),
    )
    async with open_session(launch=fake.launch, on_permission=defer) as session:  # type: ignore[arg-type]
        async with session.turn("go"):
            await trio.sleep(3 * 3600)
            (request,) = session.pending_permissions
            with pytest.raises(ValueError, match="deferred"):
                session.answer_permission(request.id, DEFER)
            assert session.answer_permission(request.id, Allow())
            assert not session.answer_permission(request.id, Allow())
            assert not session.answer_permission("no such id", Allow())
            assert session.pending_permissions == ()
    assert ran == [{"command": "touch a"}]


async def test_an_interrupt_settles_what_waits_for_a_decision(autojump_clock: MockClock) -> None:
    cancelled = trio.Event()

    async def wait(_request: PermissionRequest) -> Allow:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()
        return Allow()

    async with session_with(call_tool("Bash", {}), say("mine"), on_permission=wait) as session:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            (request,) = session.pending_permissions
            await session.interrupt()
        assert cancelled.is_set()
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert not session.answer_permission(request.id, Allow())
        assert (await session.prompt("again")).text == "mine"


async def test_a_handler_that_takes_too_long_denies(autojump_clock: MockClock) -> None:
    ran: list[object] = []

    async def wait(_request: PermissionRequest) -> Allow:
        await trio.sleep_forever()
        return Allow()

    fake = FakeClaude([call_tool("Bash", {}), say("done")], run_tool=lambda *a: str(ran.append(a)))
    async with open_session(
        launch=fake.launch, on_permission=wait, timeouts=Timeouts(permission=60)
    ) as session:
        assert (await session.prompt("go")).text == "done"
    assert ran == []


@pytest.mark.parametrize("what", ["prompt", "turn", "wait_idle", "wait_exit", "aclose"])
async def test_what_would_deadlock_from_inside_a_callback_raises(
    autojump_clock: MockClock, what: str
) -> None:
    raised: list[BaseException] = []

    async def handler(_request: PermissionRequest) -> Allow:
        try:
            if what == "turn":
                async with session.turn("more"):
                    pass
            elif what == "prompt":
                await session.prompt("more")
            else:
                await getattr(session, what)()
        except LocalProtocolError as exc:
            raised.append(exc)
        return Allow()

    async with session_with(call_tool("Bash", {}), say("done"), on_permission=handler) as session:
        assert (await session.prompt("go")).text == "done"
    assert len(raised) == 1


# -- how a session begins and ends


async def test_a_cli_that_dies_in_mid_turn_tells_everybody_why(autojump_clock: MockClock) -> None:
    fake = FakeClaude([], faults=[faults.dies(7)])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(ProcessExited) as caught:
            await session.prompt("go")
        assert caught.value.returncode == 7
        assert session.exit_status.returncode == 7
        assert session.exit_status.state is ExitState.FAILED
        with pytest.raises(SessionClosed) as later:
            await session.prompt("again")
        assert isinstance(later.value.__cause__, ProcessExited)
        assert (await session.wait_exit()).returncode == 7
        assert not session.alive
    assert session.exit_status.state is ExitState.FAILED
    assert session.exit_status.cause is ExitCause.EXITED


async def test_a_cli_that_does_not_answer_initialize_fails_at_its_timeout(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([], faults=[faults.deaf_to("initialize")])
    started = trio.current_time()
    with pytest.raises(LaunchFailed, match="initialize"):
        async with open_session(launch=fake.launch):
            pytest.fail("it must not open")
    assert 60 <= trio.current_time() - started < 61


async def test_a_cli_that_dies_at_once_fails_to_launch_without_waiting(
    autojump_clock: MockClock,
) -> None:
    async def launch(
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> Transport:
        transport = await FakeClaude([]).launch(argv, env, cwd, nursery)
        transport.kill()
        return transport

    started = trio.current_time()
    with pytest.raises(LaunchFailed) as caught:
        async with open_session(launch=launch):
            pytest.fail("it must not open")
    assert caught.value.signal == 9
    assert trio.current_time() == started


@pytest.mark.parametrize(
    ("deaf_to", "code", "seconds"),
    [(set(), 0, 0), ({"eof"}, 143, 5), ({"eof", "term"}, -9, 10)],
)
async def test_the_closing_ladder_is_bounded(
    autojump_clock: MockClock, deaf_to: set[str], code: int, seconds: float
) -> None:
    fake = FakeClaude([], faults=[faults.deaf_to(*deaf_to)])
    with trio.CancelScope() as scope:
        async with open_session(launch=fake.launch) as session:
            started = trio.current_time()
            scope.cancel()
    assert trio.current_time() - started == pytest.approx(seconds)
    assert session.exit_status.returncode == code
    assert session.exit_status.state is ExitState.COMPLETED


async def test_closing_in_mid_turn_interrupts_and_tells_the_turn(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(SessionClosed):
            async with session.turn("go"):
                await trio.sleep(1)
                await session.aclose()
                await session.aclose()
    assert subtypes(fake)[-1] == "interrupt"


async def test_the_bodys_own_exception_leaves_bare(autojump_clock: MockClock) -> None:
    with pytest.raises(KeyError):
        async with session_with() as session:
            raise KeyError
    assert not session.alive


async def test_a_nursery_cancelled_while_the_body_sits_elsewhere_closes_the_session(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang()])
    async with trio.open_nursery() as outer:
        ready = trio.Event()
        inner: list[trio.Nursery] = []

        async def host() -> None:
            async with trio.open_nursery() as nursery:
                inner.append(nursery)
                ready.set()
                await trio.sleep_forever()

        outer.start_soon(host)
        await ready.wait()
        async with open_session(inner[0], launch=fake.launch) as session:
            async with trio.open_nursery() as waiting:

                async def expect() -> None:
                    with pytest.raises(SessionClosed):
                        await session.prompt("go")

                waiting.start_soon(expect)
                await wait_all_tasks_blocked()
                inner[0].cancel_scope.cancel()
            with pytest.raises(SessionClosed):
                await session.prompt("again")
    assert session.exit_status.cause is ExitCause.CLOSED


async def test_a_body_below_its_cancelled_nursery_may_use_the_session_to_its_last_line(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("still here")])
    async with trio.open_nursery() as nursery:
        async with open_session(nursery, launch=fake.launch) as session:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                assert (await session.prompt("go")).text == "still here"


async def test_waiters_of_the_exit_hear_it_also_late_and_also_beside_a_cancelled_one(
    autojump_clock: MockClock,
) -> None:
    heard: list[object] = []
    async with session_with() as session, trio.open_nursery() as nursery:

        async def wait() -> None:
            heard.append((await session.wait_exit()).returncode)

        for _ in range(5):
            nursery.start_soon(wait)
        with trio.move_on_after(1):
            await session.wait_exit()
        await session.aclose()
    assert heard == [0] * 5
    assert (await session.wait_exit()).returncode == 0


async def test_a_session_is_opened_and_not_made(autojump_clock: MockClock) -> None:
    from claude_trio import Session  # noqa: PLC0415

    with pytest.raises(TypeError, match="open_session"):
        Session()


async def test_a_turn_comes_from_a_session_and_is_not_made(autojump_clock: MockClock) -> None:
    with pytest.raises(TypeError, match=r"Session\.turn"):
        Turn()
    async with session_with(say("hello")) as session, session.turn("go") as turn:
        assert turn.id in repr(turn)


async def test_no_deadline_of_ours_ends_a_long_turn(autojump_clock: MockClock) -> None:
    async with session_with(say("a") + pause(30 * 24 * 3600) + say("b")) as session:
        started = trio.current_time()
        assert (await session.prompt("go")).text == "ab"
        assert trio.current_time() - started == pytest.approx(30 * 24 * 3600)
    assert math.isinf(Timeouts().permission)
