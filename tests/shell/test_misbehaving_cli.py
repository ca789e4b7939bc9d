"""Laws of a CLI that does what it should not: the session works, or ends and says why."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    Allow,
    ExitCause,
    ExitState,
    LaunchFailed,
    Limits,
    PermissionRequest,
    ProcessExited,
    RemoteProtocolError,
    Session,
    SessionClosed,
    open_session,
    run_prompt,
)
from claude_trio.messages import SkippedLine
from claude_trio.testing import FakeClaude, faults, hang, pause, say
from tests.shell.scripted import BROKEN, Json, decisions, subtypes

LOST = b'{"type":"result","subtype":"success"'


def asks(request_id: str, tool: str = "Bash") -> Json:
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": {}}
    return {"type": "control_request", "request_id": request_id, "request": request}


# -- lines that are none


async def test_noise_disturbs_nothing_and_is_kept(autojump_clock: MockClock) -> None:
    noise = [b"Debugger attached.", b"\x1b[31mred\x1b[0m", b"[1, 2]", b"nul\x00\xff"]
    fake = FakeClaude([pause(5) + say("mine")])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            fake.write(b"\n".join(noise) + b"\n\r\n  \n")
        assert turn.result is not None
        assert turn.result.text == "mine"
        assert list(session.diagnostics) == noise


@pytest.mark.parametrize(
    "line", [LOST + b"\n", b'{"type": 1e999, "a": [}\n', b"{" * 10_000 + b"\n"]
)
async def test_a_lost_line_fails_the_running_turn_and_is_reported_and_the_session_lives(
    autojump_clock: MockClock, line: bytes
) -> None:
    fake = FakeClaude([hang(), say("mine")])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        with pytest.raises(RemoteProtocolError) as caught:
            async with session.turn("go") as turn:
                await trio.sleep(1)
                fake.write(line)
                async for _ in turn:
                    pass
        assert isinstance(caught.value.frame, bytes)
        assert line.startswith(caught.value.frame)
        assert (await session.prompt("again")).text == "mine"
        await session.aclose()
        lost = [event async for event in events if isinstance(event, SkippedLine)]
    assert [event.size for event in lost] == [len(line) - 1]
    assert subtypes(fake) == ["initialize", "interrupt"]


async def test_a_lost_line_between_turns_is_reported_and_fails_nothing(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        fake.write(LOST + b"\n")
        assert isinstance(await events.receive(), SkippedLine)
        assert (await session.prompt("go")).text == "mine"


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.parametrize("batches", [False, True])
async def test_a_line_that_is_broken_behind_its_first_bytes_fails_the_turn_that_reads_it(
    autojump_clock: MockClock, subscribed: bool, batches: bool
) -> None:
    async def read(session: Session) -> None:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            fake.write(BROKEN)
            if batches:
                async for _ in turn.batches():
                    pass
            else:
                async for _ in turn:
                    pass

    fake = FakeClaude([hang(), say("mine")])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(RemoteProtocolError) as caught:
            if subscribed:
                async with session.subscribe():
                    await read(session)
            else:
                await read(session)
        assert caught.value.frame == BROKEN[:-1]
        assert (await session.prompt("again")).text == "mine"


async def test_a_broken_line_does_not_hide_why_the_session_ended(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(ProcessExited) as caught:
            async with session.turn("go"):
                await trio.sleep(1)
                fake.write(BROKEN)
                fake.exit(3)
    assert caught.value.returncode == 3
    assert caught.value.last_frames
    assert session.exit_status.last_frames


async def test_a_broken_line_before_the_session_is_open_is_not_fatal(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("mine")], faults=[faults.starts_after(5)])
    async with trio.open_nursery() as nursery:

        async def disturb() -> None:
            await trio.sleep(1)
            fake.write(BROKEN)
            fake.write(b"hello\n")

        nursery.start_soon(disturb)
        async with open_session(launch=fake.launch) as session:
            assert session.startup == ()
            assert (await session.prompt("go")).text == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("size", [4096, 65536])
async def test_a_giant_line_comes_whole_however_it_is_cut(
    autojump_clock: MockClock, size: int
) -> None:
    text = "wörd " * 1_000_000
    fake = FakeClaude([say(text), say("mine")], faults=[faults.in_pieces(size)])
    async with open_session(launch=fake.launch) as session:
        assert (await session.prompt("go")).text == text
        assert (await session.prompt("go")).text == "mine"


async def test_a_line_over_the_limit_is_skipped_in_pieces_and_reported(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("x" * 50_000), say("mine")], faults=[faults.in_pieces(4096)])
    limits = Limits(frame=20_000)
    async with open_session(launch=fake.launch, limits=limits) as session:
        with pytest.raises(RemoteProtocolError, match="bytes could not be read"):
            await session.prompt("go")
        assert (await session.prompt("again")).text == "mine"


@pytest.mark.slow
async def test_a_flood_of_frames_of_nobody_is_read_and_let_go(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        fake.write(b'{"type":"system","subtype":"weather","mood":"odd"}\n' * 100_000)
        assert (await session.prompt("go")).text == "mine"


# -- requests that are none


async def test_a_withdrawn_request_is_not_answered_and_the_next_one_is(
    autojump_clock: MockClock,
) -> None:
    cancelled: list[str] = []

    async def decide(request: PermissionRequest) -> Allow:
        try:
            await trio.sleep(5)
        except trio.Cancelled:
            cancelled.append(request.id)
            raise
        return Allow()

    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go"):
            await trio.sleep(1)
            fake.send(asks("one"))
            await trio.sleep(1)
            fake.send({"type": "control_cancel_request", "request_id": "never-asked"})
            fake.send({"type": "control_cancel_request", "request_id": "one"})
            fake.send(asks("two"))
            await trio.sleep(1)
            assert [request.id for request in session.pending_permissions] == ["two"]
            assert not session.answer_permission("one", Allow())
            await trio.sleep(10)
            fake.send({"type": "control_cancel_request", "request_id": "two"})
            await session.interrupt()
    assert cancelled == ["one"]
    assert [answer["request_id"] for answer in decisions(fake)] == ["two"]


async def test_a_request_that_comes_twice_is_asked_once(autojump_clock: MockClock) -> None:
    asked: list[str] = []

    async def decide(request: PermissionRequest) -> Allow:
        asked.append(request.id)
        await trio.sleep(1)
        return Allow()

    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go"):
            await trio.sleep(1)
            fake.send(asks("one"))
            fake.send(asks("one"))
            await trio.sleep(5)
            await session.interrupt()
    assert asked == ["one"]
    assert len(decisions(fake)) == 1


async def test_a_request_that_nobody_knows_is_refused_at_once(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        fake.send({"type": "control_request", "request_id": "q", "request": {"subtype": "sing"}})
        assert (await session.prompt("go")).text == "mine"
    (refused,) = decisions(fake)
    assert (refused["request_id"], refused["subtype"]) == ("q", "error")


# -- ends


@pytest.mark.parametrize("code", [0, 1, 7, -9, -11])
async def test_an_exit_in_mid_turn_is_an_error_whatever_the_code(
    autojump_clock: MockClock, code: int
) -> None:
    fake = FakeClaude([say("half of ") + hang()], faults=[faults.stderr("out of paper\n")])
    async with open_session(launch=fake.launch) as session:
        texts: list[str] = []
        with pytest.raises(ProcessExited) as caught:
            async with session.turn("go") as turn:
                await trio.sleep(1)
                started = trio.current_time()
                fake.exit(code)
                await trio.sleep(1)
                async for text in turn.text:
                    texts.append(text)  # noqa: PERF401  It raises at the end.
        assert texts == ["half of "]
        assert trio.current_time() - started == 1
        assert caught.value.returncode == code
        assert caught.value.signal == (-code if code < 0 else None)
        assert "out of paper" in str(caught.value)
        assert caught.value.last_frames
        with pytest.raises(SessionClosed) as late:
            await session.prompt("again")
        assert isinstance(late.value.__cause__, ProcessExited)
    assert session.exit_status.returncode == code
    assert session.exit_status.cause is (ExitCause.KILLED if code < 0 else ExitCause.EXITED)


@pytest.mark.parametrize("count", range(1, 14))
async def test_a_cli_that_dies_at_any_frame_says_so_to_whoever_waits(
    autojump_clock: MockClock, count: int
) -> None:
    fake = FakeClaude([say("mine")], faults=[faults.dies(5, at=count)])
    with pytest.raises((ProcessExited, LaunchFailed, SessionClosed)) as caught:
        async with open_session(launch=fake.launch) as session:
            # Its result may come before its end: then the prompt after it hears.
            await session.prompt("go")
            await session.prompt("again")
    error = caught.value
    if isinstance(error, SessionClosed):
        assert isinstance(error.__cause__, ProcessExited)
    else:
        assert isinstance(error, ProcessExited | LaunchFailed)
        assert error.returncode == 5


async def test_an_exit_between_turns_is_an_event_and_no_crash(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        await session.prompt("go")
        fake.exit(0)
        status = await session.wait_exit()
        assert status.cause is ExitCause.EXITED
        assert status.state is ExitState.COMPLETED
        assert not session.alive
        with pytest.raises(SessionClosed):
            await session.prompt("again")


async def test_a_result_right_before_the_exit_counts(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            fake.send(
                {
                    "type": "result",
                    "subtype": "success",
                    "is_error": False,
                    "result": "late",
                    "user_message_uuids": [turn.id],
                }
            )
            fake.send({"type": "system", "subtype": "session_state_changed", "state": "idle"})
            fake.exit(0)
        assert turn.result is not None
        assert turn.result.text == "late"


async def test_a_last_line_without_its_end_counts_too(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        fake.write(b'{"type":"keep_alive"}')
        fake.exit(0)
        assert [event.raw async for event in events] == [{"type": "keep_alive"}]  # type: ignore[union-attr]


async def test_a_cli_that_closes_its_stdout_and_lives_is_ended(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to("eof", "term")])
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()
        with pytest.raises(SessionClosed) as caught:
            async with session.turn("go"):
                fake.close_stdout()
        assert trio.current_time() - started == pytest.approx(5)
        assert isinstance(caught.value.__cause__, RemoteProtocolError)
        status = await session.wait_exit()
    assert trio.current_time() - started == pytest.approx(5 + 10)
    assert (status.cause, status.signal) == (ExitCause.PROTOCOL, 9)


async def test_a_stdout_that_somebody_holds_open_delays_no_exit(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()], faults=[faults.holds_stdout()])
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()
        with pytest.raises(ProcessExited):
            async with session.turn("go"):
                await trio.sleep(1)
                fake.exit(-9)
        await session.wait_exit()
        assert trio.current_time() - started == 1


@pytest.mark.parametrize("under_cancel", [False, True])
@pytest.mark.parametrize(
    ("deaf_to", "seconds"),
    [({"eof"}, 5), ({"eof", "term"}, 10), ({"interrupt", "eof", "term"}, 10)],
)
async def test_a_deaf_cli_is_ended_in_bounded_time_in_mid_turn(
    autojump_clock: MockClock, deaf_to: set[str], seconds: float, under_cancel: bool
) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to(*deaf_to)])
    with trio.CancelScope() as scope:
        async with open_session(launch=fake.launch) as session:
            with trio.move_on_after(5):
                await session.prompt("go")
            started = trio.current_time()
            if under_cancel:
                scope.cancel()
    assert trio.current_time() - started == pytest.approx(seconds)
    assert session.exit_status.state is ExitState.COMPLETED
    assert session.exit_status.group_gone


async def test_a_cli_that_fails_before_it_answers_says_what_it_said(
    autojump_clock: MockClock,
) -> None:
    words = "No conversation found with session ID: x"
    fake = FakeClaude([], faults=[faults.starts_after(100)])
    async with trio.open_nursery() as nursery:

        async def fail() -> None:
            await trio.sleep(1)
            error = {"subtype": "error_during_execution", "is_error": True, "errors": [words]}
            fake.send({"type": "result", **error})
            fake.exit(1)

        started = trio.current_time()
        nursery.start_soon(fail)
        with pytest.raises(LaunchFailed, match=words) as caught:
            await run_prompt("go", launch=fake.launch)
        assert trio.current_time() - started < 60
    assert caught.value.last_frames


async def test_everybody_hears_of_the_backstop_and_why(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to("interrupt", "context")])
    heard: list[object] = []
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def ask() -> None:
            with pytest.raises(SessionClosed) as caught:
                await session.control("context")
            heard.append(caught.value.__cause__)

        async def wait() -> None:
            heard.append((await session.wait_exit()).cause)

        async def idle() -> None:
            with pytest.raises(SessionClosed) as caught:
                await session.wait_idle()
            heard.append(caught.value.__cause__)

        started = trio.current_time()
        with pytest.raises(SessionClosed) as caught:
            async with session.turn("go") as turn:
                turn.start_soon(ask)
                for waiter in (wait, idle):
                    nursery.start_soon(waiter)
                await wait_all_tasks_blocked()
                with pytest.raises(SessionClosed):
                    await turn.interrupt()
        assert trio.current_time() - started == pytest.approx(30)
        await wait_all_tasks_blocked()
    assert session.exit_status.cause is ExitCause.CANCEL_BACKSTOP
    assert ExitCause.CANCEL_BACKSTOP in heard
    assert {cause for cause in heard if isinstance(cause, SessionClosed)} == {
        caught.value.__cause__
    }
