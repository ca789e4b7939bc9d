"""Laws of a turn that gives no sign of life."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from claude_trio import (
    Allow,
    ExitCause,
    Outcome,
    PermissionRequest,
    SessionClosed,
    Timeouts,
    TurnFailed,
    open_session,
)
from claude_trio.testing import FakeClaude, call_tool, faults, hang, pause, say
from tests.shell.scripted import agent, command, subtypes, working

QUIET = Timeouts(silence=60)


async def test_a_silent_turn_is_interrupted_and_fails_with_its_last_frame_and_age(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("one ") + hang(), say("mine")])
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        started = trio.current_time()
        with pytest.raises(TurnFailed, match=r"stream_event.* 60 s ago") as caught:
            await session.prompt("go")
        assert trio.current_time() - started == pytest.approx(60)
        assert caught.value.result is None
        assert (await session.prompt("again")).text == "mine"
    assert subtypes(fake) == ["initialize", "interrupt"]


async def test_what_came_before_the_silence_can_be_read(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("one ") + hang()])
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        texts: list[str] = []
        with pytest.raises(TurnFailed):
            async with session.turn("go") as turn:
                await trio.sleep(100)
                async for text in turn.text:
                    texts.append(text)  # noqa: PERF401  It raises at the end.
        assert texts == ["one "]


async def test_by_default_a_turn_may_be_silent_for_days(autojump_clock: MockClock) -> None:
    fake = FakeClaude([pause(3 * 24 * 3600) + say("mine")])
    async with open_session(launch=fake.launch) as session:
        assert (await session.prompt("go")).text == "mine"


async def test_any_frame_is_a_sign_of_life(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("x" * 20, chunks=20, delay=59)])
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        result = await session.prompt("go")
    assert result.text == "x" * 20


async def test_a_keep_alive_is_a_sign_of_life(autojump_clock: MockClock) -> None:
    fake = FakeClaude([pause(200) + say("mine")])
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        async with session.turn("go") as turn:

            async def beat() -> None:
                while turn.result is None:
                    fake.send({"type": "keep_alive"})
                    await trio.sleep(30)

            turn.start_soon(beat)
        assert turn.result is not None
        assert turn.result.outcome is Outcome.COMPLETED


async def test_a_session_between_turns_may_be_silent(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("one"), say("two")])
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        await session.prompt("go")
        await trio.sleep(10_000)
        assert (await session.prompt("go")).text == "two"


async def test_while_a_permission_waits_the_turn_may_be_silent(autojump_clock: MockClock) -> None:
    async def decide(_request: PermissionRequest) -> Allow:
        await trio.sleep(10_000)
        return Allow()

    fake = FakeClaude([call_tool("Bash", {}), say("mine")])
    async with open_session(launch=fake.launch, timeouts=QUIET, on_permission=decide) as session:
        assert (await session.prompt("go")).text == "mine"


async def test_after_the_answer_the_silence_counts_again_from_there(
    autojump_clock: MockClock,
) -> None:
    async def decide(_request: PermissionRequest) -> Allow:
        await trio.sleep(1000)
        fake.read_stdin(False)
        return Allow()

    fake = FakeClaude([call_tool("Bash", {}), say("never")])
    async with open_session(launch=fake.launch, timeouts=QUIET, on_permission=decide) as session:
        started = trio.current_time()
        with pytest.raises(TurnFailed, match="silent"):
            await session.prompt("go")
        assert trio.current_time() - started == pytest.approx(1060)


async def test_an_agent_that_holds_the_turn_must_give_a_sign_of_life_too(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([agent(), say("it runs"), say("mine")], agents={"look": [hang()]})
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        with pytest.raises(TurnFailed, match="silent"):
            await session.prompt("go")
        assert (await session.prompt("again")).text == "mine"


async def test_a_long_command_is_silent_like_any_other(autojump_clock: MockClock) -> None:
    fake = FakeClaude([command(100), say("never")])
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        with pytest.raises(TurnFailed, match="task_started"):
            await session.prompt("go")


async def test_a_silent_cli_that_is_deaf_as_well_is_ended_at_the_backstop(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to("interrupt")])
    async with open_session(launch=fake.launch, timeouts=QUIET) as session:
        started = trio.current_time()
        with pytest.raises(TurnFailed, match="silent"):
            await session.prompt("go")
        with pytest.raises(SessionClosed):
            await session.prompt("again")
        assert trio.current_time() - started == pytest.approx(60 + 30)
    assert session.exit_status.cause is ExitCause.CANCEL_BACKSTOP


async def test_a_turn_whose_agents_work_is_given_up_is_not_settled(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([agent(), say("it runs")], agents={"look": [hang()]})
    async with open_session(launch=fake.launch, timeouts=Timeouts(settle=100)) as session:
        started = trio.current_time()
        async with session.turn("go") as turn:
            pass
        assert trio.current_time() - started == pytest.approx(100)
        assert not turn.settled
        assert turn.result is not None
        assert turn.result.text == "it runs"


async def test_an_agent_that_works_is_not_given_up(autojump_clock: MockClock) -> None:
    fake = FakeClaude([agent(), say("it runs"), say("done")], agents={"look": working(99)})
    async with open_session(launch=fake.launch, timeouts=Timeouts(settle=100)) as session:
        async with session.turn("go") as turn:
            pass
    assert turn.settled
    assert len(turn.results) == 2
