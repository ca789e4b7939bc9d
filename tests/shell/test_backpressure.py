"""Laws of full buffers, in both directions: nobody waits for a reader, and nothing is torn."""

from __future__ import annotations

import functools
import json

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    Allow,
    ExitCause,
    Limits,
    Outcome,
    Overflow,
    PermissionRequest,
    SessionClosed,
    Timeouts,
    open_session,
)
from claude_trio.messages import StreamEvent
from claude_trio.testing import FakeClaude, call_tool, faults, hang, say
from tests.shell.scripted import Json, decisions, subtypes, written

DELTA: Json = {
    "type": "stream_event",
    "event": {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "x"},
    },
    "parent_tool_use_id": None,
    "uuid": "00000000-0000-4000-8000-000000000000",
}
PROGRESS: Json = {"type": "system", "subtype": "task_progress", "task_id": "t", "description": "x"}


def lines(frame: Json, count: int) -> bytes:
    return (json.dumps(frame, separators=(",", ":")).encode() + b"\n") * count


# -- what comes


@pytest.mark.slow
@pytest.mark.parametrize("count", [150, 100_000])
async def test_control_passes_whatever_nobody_has_read(
    autojump_clock: MockClock, count: int
) -> None:
    fake = FakeClaude([hang(), say("mine")])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            fake.write(lines(DELTA, count))
            started = trio.current_time()
            assert await session.set_model("opus") == "opus"
            assert (await session.interrupt()).sent
            assert trio.current_time() == started
            deltas = [message async for message in turn if isinstance(message, StreamEvent)]
        assert sum(delta.text_delta == "x" for delta in deltas) == count
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert (await session.prompt("again")).text == "mine"


async def test_a_permission_behind_unread_messages_is_asked_for(
    autojump_clock: MockClock,
) -> None:
    asked: list[str] = []

    async def decide(request: PermissionRequest) -> Allow:
        asked.append(request.tool_name)
        return Allow()

    fake = FakeClaude([say("x" * 1000, chunks=300) + call_tool("Bash", {}), say("mine")])
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go") as turn:
            while not asked:
                await trio.sleep(1)
            texts = [text async for text in turn.text]
    assert "".join(texts) == "x" * 1000 + "mine"


async def test_what_comes_between_turns_fills_nothing(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("one"), say("two")])
    async with open_session(launch=fake.launch, limits=Limits(turn_buffer=5000)) as session:
        await session.prompt("go")
        fake.write(lines(PROGRESS, 10_000))
        assert await session.set_model("opus") == "opus"
        async with session.turn("again") as turn:
            messages = [message async for message in turn]
        assert turn.result is not None
        assert turn.result.text == "two"
        assert not [m for m in messages if m.raw.get("subtype") == "task_progress"]


async def test_a_prompt_that_nobody_can_read_keeps_nothing(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("x" * 100_000, chunks=1000)])
    async with open_session(launch=fake.launch, limits=Limits(turn_buffer=5000)) as session:
        assert len((await session.prompt("go")).text) == 100_000


async def test_a_reader_that_keeps_up_never_overflows(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("x" * 1000, chunks=1000, delay=1)])
    async with open_session(launch=fake.launch, limits=Limits(turn_buffer=5000)) as session:
        async with session.turn("go") as turn:
            assert "".join([text async for text in turn.text]) == "x" * 1000


async def test_an_overflow_frees_the_buffer_and_comes_at_the_next_step(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang(), say("mine")])
    limits = Limits(turn_buffer=5000)
    async with open_session(launch=fake.launch, limits=limits) as session:
        with pytest.raises(Overflow):
            async with session.turn("go") as turn:
                await trio.sleep(1)
                fake.write(lines(DELTA, 1000))
                await trio.sleep(1)
                assert turn.cancel_requested.is_set()
                with pytest.raises(Overflow) as caught:
                    async for _ in turn:
                        pytest.fail("what was buffered is gone")
        assert (caught.value.buffer, caught.value.size) == ("turn", 5000)
        assert (await session.prompt("again")).text == "mine"
    assert subtypes(fake) == ["initialize", "interrupt"]


# -- what is sent


async def test_a_cli_that_takes_a_little_at_a_time_gets_every_line_whole(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude(
        lambda told: say(str(len(told))), answers={"echo": {}}, faults=[faults.narrow_stdin(7)]
    )
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:
        for number in range(20):
            ask = functools.partial(session.control, text="y" * 100, number=number)
            nursery.start_soon(ask, "echo")
        assert (await session.prompt("x" * 10_000)).text == "10000"
    numbers = [f["request"].get("number") for f in written(fake, "control_request")[1:]]
    assert sorted(numbers) == list(range(20))


async def test_answers_that_collide_are_written_whole_and_once(autojump_clock: MockClock) -> None:
    async def decide(request: PermissionRequest) -> Allow:
        await trio.sleep(1)
        return Allow(updated_input={"big": "z" * 20_000, "id": request.id})

    fake = FakeClaude([hang()], faults=[faults.narrow_stdin(4096)])
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go"):
            await trio.sleep(1)
            for number in range(20):
                request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
                frame = {"type": "control_request", "request_id": f"r{number}", "request": request}
                fake.send(frame)
            await trio.sleep(5)
            await session.interrupt()
    assert sorted(a["request_id"] for a in decisions(fake)) == sorted(f"r{n}" for n in range(20))
    assert {len(a["response"]["updatedInput"]["big"]) for a in decisions(fake)} == {20_000}


async def test_a_cli_that_takes_nothing_ends_the_session(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("never")], faults=[faults.narrow_stdin(1000)])
    async with open_session(launch=fake.launch) as session:
        fake.read_stdin(False)
        started = trio.current_time()
        with pytest.raises(SessionClosed) as caught:
            await session.prompt("x" * 5000)
        assert trio.current_time() - started == pytest.approx(30)
        assert "30 s" in str(caught.value.__cause__)
    assert session.exit_status.cause is ExitCause.STDIN_STALLED
    assert not written(fake, "user")


async def test_any_progress_of_the_writer_gives_it_new_time(autojump_clock: MockClock) -> None:
    fake = FakeClaude(lambda told: say(str(len(told))), faults=[faults.narrow_stdin(1000)])
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def sip() -> None:
            while True:
                fake.read_stdin(False)
                await trio.sleep(29)
                fake.read_stdin(True)
                for _ in range(2):
                    await trio.lowlevel.checkpoint()

        nursery.start_soon(sip)
        started = trio.current_time()
        assert (await session.prompt("x" * 5000)).text == "5000"
        assert trio.current_time() - started > 30
        nursery.cancel_scope.cancel()


async def test_a_prompt_waits_for_room_and_its_cancellation_writes_nothing(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("mine")], answers={"echo": {}}, faults=[faults.narrow_stdin(100)])
    limits = Limits(outbound=3)
    async with (
        open_session(launch=fake.launch, limits=limits) as session,
        trio.open_nursery() as nursery,
    ):
        fake.read_stdin(False)
        for _ in range(4):
            nursery.start_soon(lambda: session.control("echo", text="y" * 100))
        await wait_all_tasks_blocked()
        with trio.move_on_after(5) as scope:
            await session.prompt("never")
        assert scope.cancelled_caught
        with trio.move_on_after(5) as scope:
            await session.set_model("opus")
        assert scope.cancelled_caught
        assert (await session.interrupt()).sent is False
        fake.read_stdin(True)
        assert (await session.prompt("this")).text == "mine"
    assert [frame["message"]["content"] for frame in written(fake, "user")] == ["this"]
    assert subtypes(fake) == ["initialize", *["echo"] * 4]


async def test_a_prompt_that_is_cancelled_while_its_line_waits_whole_is_never_written(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("mine")], answers={"echo": {}}, faults=[faults.narrow_stdin(100)])
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:
        fake.read_stdin(False)
        nursery.start_soon(lambda: session.control("echo", text="y" * 200))
        await wait_all_tasks_blocked()
        with trio.move_on_after(5) as scope:
            await session.prompt("never")
        assert scope.cancelled_caught
        fake.read_stdin(True)
        assert (await session.prompt("this")).text == "mine"
    assert [frame["message"]["content"] for frame in written(fake, "user")] == ["this"]
    assert "interrupt" not in subtypes(fake)


async def test_a_prompt_that_is_partly_out_is_finished_and_then_interrupted(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("one"), say("mine")], faults=[faults.narrow_stdin(100)])
    async with open_session(launch=fake.launch) as session:
        fake.read_stdin(False)
        with trio.move_on_after(5):
            await session.prompt("x" * 500)
        fake.read_stdin(True)
        assert (await session.prompt("this")).text in {"one", "mine"}
    assert [len(frame["message"]["content"]) for frame in written(fake, "user")] == [500, 4]
    assert "interrupt" in subtypes(fake)


async def test_a_request_that_is_cancelled_while_its_line_waits_whole_is_never_written(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude(
        [say("mine")], answers={"echo": {}, "other": {}}, faults=[faults.narrow_stdin(100)]
    )
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:
        fake.read_stdin(False)
        nursery.start_soon(lambda: session.control("echo", text="y" * 200))
        await wait_all_tasks_blocked()
        with trio.move_on_after(5):
            await session.control("other")
        fake.read_stdin(True)
        assert (await session.prompt("this")).text == "mine"
    assert subtypes(fake) == ["initialize", "echo"]
    assert not written(fake, "control_cancel_request")


@pytest.mark.parametrize("by_exit", [False, True])
async def test_a_session_that_cannot_write_still_ends_in_bounded_time(
    autojump_clock: MockClock, by_exit: bool
) -> None:
    fake = FakeClaude(
        [say("never")], faults=[faults.deaf_to("eof", "term"), faults.narrow_stdin(10)]
    )
    started = trio.current_time()
    with trio.move_on_after(20) as scope:
        async with open_session(
            launch=fake.launch, timeouts=Timeouts(write=1000, interrupt=1000)
        ) as session:
            fake.read_stdin(False)
            started = trio.current_time()
            scope.deadline = started + 20
            if by_exit:
                with trio.move_on_after(20):
                    await session.prompt("x" * 500)
            else:
                await session.prompt("x" * 500)
    assert trio.current_time() - started == pytest.approx(30)
    assert session.exit_status.signal == 9
