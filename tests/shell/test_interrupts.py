"""Laws of the interrupt: from wherever it comes, the turn ends, and the session works."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import Outcome, SessionState, TurnFailed, TurnInFlight, open_session
from claude_trio.messages import AssistantMessage
from claude_trio.permissions import allow_all
from claude_trio.testing import FakeClaude, faults, hang, pause, say
from tests.shell.scripted import Json, command, shell, subtypes, written

SLOW = say("one ") + pause(100) + say("two")


def interrupts(fake: FakeClaude) -> list[Json]:
    asked = written(fake, "control_request")
    return [f["request"] for f in asked if f["request"]["subtype"] == "interrupt"]


async def test_an_interrupt_while_text_streams_leaves_what_was_said(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([SLOW])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            await turn.interrupt()
            messages = [message async for message in turn]
    said = [message.text for message in messages if isinstance(message, AssistantMessage)]
    assert said == ["one "]
    assert turn.result is not None
    assert (turn.result.outcome, turn.result.terminal_reason) == (
        Outcome.INTERRUPTED,
        "aborted_streaming",
    )


async def test_an_interrupt_while_a_tool_runs_ends_the_tool(autojump_clock: MockClock) -> None:
    fake = FakeClaude([command(1000), say("mine")])
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        started = trio.current_time()
        async with session.turn("go") as turn:
            await trio.sleep(1)
            await turn.interrupt()
        assert trio.current_time() - started == pytest.approx(1)
        assert turn.result is not None
        assert turn.result.terminal_reason == "aborted_tools"
        assert (await session.prompt("again")).text == "mine"


async def test_an_interrupt_is_no_failure_whether_it_is_checked_or_not(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang(), hang()])
    async with open_session(launch=fake.launch) as session:
        for check in (True, False):
            async with session.turn("go", check=check) as turn:
                await trio.sleep(1)
                await session.interrupt()
            assert turn.result is not None
            assert turn.result.outcome is Outcome.INTERRUPTED


async def test_interrupting_again_changes_nothing(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang(), say("mine")])
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            for _ in range(5):
                nursery.start_soon(session.interrupt)
                nursery.start_soon(turn.interrupt)
        assert turn.result is not None
        assert len(turn.results) == 1
        assert (await session.prompt("again")).text == "mine"


async def test_a_prompt_that_has_not_begun_is_dropped_and_not_run(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([shell(1), say("it runs"), say("it ") + pause(1000), say("mine")])
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        await session.prompt("go")
        await trio.sleep(5)
        # The CLI runs a turn of its own by now: the prompt waits in its queue.
        async with session.turn("never run") as turn:
            await trio.sleep(1)
            receipt = await session.interrupt()
        assert receipt.cancelled == (turn.id,)
        assert turn.result is not None
        assert (turn.result.outcome, turn.result.text) == (Outcome.INTERRUPTED, "")
        assert turn.results == ()
        assert (await session.prompt("again")).text == "mine"


async def test_the_interrupt_of_a_turn_always_drops_the_queue(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go"):
            await trio.sleep(1)
            await session.interrupt()
    assert interrupts(fake) == [{"subtype": "interrupt", "cancel_queued": True}]


async def test_what_the_cli_runs_by_itself_is_interrupted_too(autojump_clock: MockClock) -> None:
    fake = FakeClaude([shell(1), say("it runs"), hang(), say("mine")])
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        await session.prompt("go")
        await trio.sleep(5)
        assert session.state is SessionState.IDLE
        assert (await session.interrupt()).sent
        started = trio.current_time()
        await session.wait_idle()
        assert trio.current_time() == started
        assert not (await session.interrupt()).sent
        assert (await session.prompt("again")).text == "mine"


async def test_an_interrupt_leaves_shells_alone(autojump_clock: MockClock) -> None:
    fake = FakeClaude([shell(1000), hang()])
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        async with session.turn("go"):
            await trio.sleep(5)
            await session.interrupt()
        assert [task.type for task in session.tasks] == ["local_bash"]
        assert await session.control("stop_task", task_id=session.tasks[0].id) == {}
        assert session.tasks == ()
        await session.wait_idle()


async def test_while_a_turn_is_being_cancelled_the_next_prompt_waits_and_a_third_is_refused(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang(), SLOW], faults=[faults.deaf_to("interrupt")])
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:
        with trio.move_on_after(1):
            async with session.turn("go") as turn:
                pass
        assert session.state is SessionState.CANCELLING

        answers: list[str] = []

        async def ask() -> None:
            answers.append((await session.prompt("again")).text)

        nursery.start_soon(ask)
        await trio.sleep(5)
        assert len(written(fake, "user")) == 1
        # The CLI has heard after all.
        ended = {"subtype": "error_during_execution", "is_error": True}
        fake.send({"type": "result", "user_message_uuids": [turn.id], **ended})
        fake.send({"type": "system", "subtype": "session_state_changed", "state": "idle"})
        await wait_all_tasks_blocked()
        assert len(written(fake, "user")) == 2
        with pytest.raises(TurnInFlight):
            await session.prompt("me too")
        nursery.cancel_scope.cancel()


async def test_of_several_prompts_that_wait_for_a_cancelled_turn_one_runs(
    autojump_clock: MockClock,
) -> None:
    outcomes: list[object] = []
    fake = FakeClaude([SLOW, say("mine") + pause(10)])
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def ask() -> None:
            try:
                outcomes.append((await session.prompt("again")).text)
            except TurnInFlight as exc:
                outcomes.append(type(exc))

        with trio.move_on_after(1):
            await session.prompt("go")
        for _ in range(3):
            nursery.start_soon(ask)
    assert sorted(map(str, outcomes)) == sorted(["mine", str(TurnInFlight), str(TurnInFlight)])


async def test_a_waiting_prompt_can_be_cancelled_and_writes_nothing(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to("interrupt")])
    async with open_session(launch=fake.launch) as session:
        with trio.move_on_after(1):
            await session.prompt("go")
        with trio.move_on_after(5) as scope:
            await session.prompt("never")
        assert scope.cancelled_caught
    assert len(written(fake, "user")) == 1
    assert len(interrupts(fake)) == 2  # Its own, and the last words.


async def test_many_cancelled_prompts_in_one_session_leave_no_stale_answer(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude(lambda told: say(told, chunks=3, delay=1))
    async with open_session(launch=fake.launch) as session:
        for number in range(60):
            started = trio.current_time()
            with trio.move_on_after(number / 20):
                await session.prompt(f"cancelled {number}")
            assert trio.current_time() - started <= number / 20 + 1e-6
            assert (await session.prompt(f"mine {number}")).text == f"mine {number}"
        assert session.state is SessionState.IDLE


@pytest.mark.parametrize("word", ["discarded", "refused"])
async def test_a_prompt_that_the_cli_drops_fails_its_turn_without_a_result(
    autojump_clock: MockClock, word: str
) -> None:
    fake = FakeClaude([hang(), say("mine")])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(TurnFailed, match=word) as caught:
            async with session.turn("go") as turn:
                await trio.sleep(1)
                fake.send({"type": "command_lifecycle", "command_uuid": turn.id, "state": word})
                fake.send({"type": "system", "subtype": "session_state_changed", "state": "idle"})
        assert caught.value.result is None
        assert session.state is SessionState.IDLE


async def test_an_interrupt_of_a_closed_session_says_so(autojump_clock: MockClock) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session:
        await session.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await session.interrupt()
    assert subtypes(fake) == ["initialize"]
