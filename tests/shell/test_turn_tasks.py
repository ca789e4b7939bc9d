"""Laws of what a turn holds: tasks of the caller's own, and the agents of the CLI."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from claude_trio import (
    Allow,
    ExitCause,
    Outcome,
    PermissionRequest,
    ProcessExited,
    SessionState,
    Timeouts,
    Turn,
    TurnOver,
    open_session,
)
from claude_trio.messages import Message, ResultMessage, TaskNotification
from claude_trio.permissions import allow_all
from claude_trio.testing import FakeClaude, hang, pause, say
from tests.shell.scripted import agent, asking, command, shell, subtypes, working

SLOW = say("one ") + pause(100) + say("two")


# -- tasks of the turn


async def test_a_task_holds_the_block_open_and_not_the_session(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("first"), say("second")])
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()
        async with session.turn("go") as turn:
            turn.start_soon(trio.sleep, 50)
            async for _ in turn:
                pass
            assert session.state is SessionState.IDLE
            assert (await session.prompt("meanwhile")).text == "second"
            assert trio.current_time() == started
        assert trio.current_time() - started == pytest.approx(50)
        assert turn.result is not None
        assert turn.result.text == "first"


async def test_a_turn_that_was_left_takes_no_more_tasks(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            pass
        with pytest.raises(TurnOver):
            turn.start_soon(trio.sleep, 1)


async def test_a_task_may_start_another_at_the_end_of_the_block(autojump_clock: MockClock) -> None:
    ended: list[float] = []
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()

        async def second() -> None:
            await trio.sleep(5)
            ended.append(trio.current_time() - started)

        async def first() -> None:
            await trio.sleep(5)
            turn.start_soon(second)

        async with session.turn("go") as turn:
            turn.start_soon(first)
    assert ended == [pytest.approx(10)]


async def test_a_task_that_raises_interrupts_the_turn_and_leaves_in_a_group(
    autojump_clock: MockClock,
) -> None:
    async def explode() -> None:
        await trio.sleep(1)
        raise LookupError("gone")

    fake = FakeClaude([SLOW, say("mine")])
    async with open_session(launch=fake.launch) as session:
        with pytest.RaisesGroup(pytest.RaisesExc(LookupError, match="gone")):
            async with session.turn("go") as turn:
                turn.start_soon(explode)
                async for _ in turn:
                    pass
        assert (await session.prompt("again")).text == "mine"
    assert subtypes(fake) == ["initialize", "interrupt"]


async def test_a_task_that_raises_after_the_clis_part_interrupts_nothing(
    autojump_clock: MockClock,
) -> None:
    async def explode() -> None:
        await trio.sleep(1)
        raise LookupError

    fake = FakeClaude([say("mine"), say("next")])
    async with open_session(launch=fake.launch) as session:
        with pytest.RaisesGroup(LookupError):
            async with session.turn("go") as turn:
                turn.start_soon(explode)
        assert "interrupt" not in subtypes(fake)
        assert (await session.prompt("again")).text == "next"


async def test_the_block_and_a_task_that_both_raise_leave_in_one_flat_group(
    autojump_clock: MockClock,
) -> None:
    async def explode() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise LookupError

    fake = FakeClaude([SLOW, say("mine")])
    async with open_session(launch=fake.launch) as session:
        with pytest.RaisesGroup(KeyError, LookupError):
            async with session.turn("go") as turn:
                turn.start_soon(explode)
                await trio.sleep(1)
                raise KeyError
        assert (await session.prompt("again")).text == "mine"


class Member:
    """A task of a turn that notes when it hears of a cancel, and when it is cancelled."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.heard = self.cancelled = -1.0

    async def run(self) -> None:
        try:
            await self.turn.cancel_requested.wait()
            self.heard = trio.current_time()
            await trio.sleep_forever()
        except trio.Cancelled:
            self.cancelled = trio.current_time()
            raise


async def test_an_interrupt_tells_the_tasks_at_once_and_cancels_them_after_the_grace(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([SLOW, say("mine")])
    async with open_session(launch=fake.launch, timeouts=Timeouts(grace=7)) as session:
        async with session.turn("go") as turn:
            member = Member(turn)
            turn.start_soon(member.run)
            await trio.sleep(3)
            asked = trio.current_time()
            await turn.interrupt()
            assert turn.cancel_requested.is_set()
            await trio.sleep(50)
            assert not trio.current_effective_deadline() < trio.current_time()
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert member.heard == asked
        assert member.cancelled == pytest.approx(asked + 7)
        assert (await session.prompt("again")).text == "mine"


async def test_a_task_that_winds_down_in_time_is_not_cancelled(autojump_clock: MockClock) -> None:
    saved: list[str] = []

    async def save(turn: Turn) -> None:
        await turn.cancel_requested.wait()
        await trio.sleep(1.9)
        saved.append("all of it")

    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            turn.start_soon(save, turn)
            await trio.sleep(1)
            await session.interrupt()
    assert saved == ["all of it"]


async def test_a_task_that_is_started_after_the_grace_is_cancelled_at_once(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            await trio.sleep(1)
            await session.interrupt()
            await trio.sleep(5)
            started = trio.current_time()
            turn.start_soon(trio.sleep_forever)
        assert trio.current_time() == started


async def test_a_block_that_is_left_by_a_cancellation_gives_no_grace(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([hang(), say("mine")])
    async with open_session(launch=fake.launch) as session:
        with trio.move_on_after(3) as scope:
            async with session.turn("go") as turn:
                member = Member(turn)
                turn.start_soon(member.run)
        assert scope.cancelled_caught
        assert member.cancelled == trio.current_time() == scope.deadline
        assert (await session.prompt("again")).text == "mine"


async def test_a_task_that_reads_or_waits_for_its_own_turn_ends(autojump_clock: MockClock) -> None:
    texts: list[str] = []
    fake = FakeClaude([SLOW])
    async with open_session(launch=fake.launch) as session:

        async def read() -> None:
            texts.extend([text async for text in turn.text])

        async with session.turn("go") as turn:
            turn.start_soon(read)
            turn.start_soon(session.wait_idle)
        assert texts == ["one ", "two"]
        assert session.state is SessionState.IDLE


async def test_a_task_that_interrupts_its_own_turn_ends_it(autojump_clock: MockClock) -> None:
    async def watch(turn: Turn) -> None:
        await trio.sleep(3)
        await turn.interrupt()

    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()
        async with session.turn("go") as turn:
            turn.start_soon(watch, turn)
        assert trio.current_time() - started == pytest.approx(3)


async def test_a_failure_of_the_turn_cancels_neither_the_block_nor_wraps_itself(
    autojump_clock: MockClock,
) -> None:
    went_on = False
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(ProcessExited):
            async with session.turn("go") as turn:
                member = Member(turn)
                turn.start_soon(member.run)
                await trio.sleep(1)
                fake.exit(3)
                await trio.sleep(10)
                went_on = True
        assert went_on
        assert member.heard >= 0


async def test_a_failure_that_a_reading_task_hears_cancels_no_block_and_leaves_it_bare(
    autojump_clock: MockClock,
) -> None:
    went_on = False

    async def read(turn: Turn) -> None:
        async for _ in turn:
            pass

    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(ProcessExited):
            async with session.turn("go") as turn:
                turn.start_soon(read, turn)
                await trio.sleep(1)
                fake.exit(3)
                await trio.sleep(10)
                went_on = True
        assert went_on


# -- batches


async def test_batches_give_the_same_messages_as_the_iteration(autojump_clock: MockClock) -> None:
    script = [say("hello there", chunks=5, delay=1)]
    seen: list[list[Message]] = []
    one, other = FakeClaude(script), FakeClaude(script)
    async with open_session(launch=one.launch) as session:
        async with session.turn("go") as turn:
            singly = [type(message) async for message in turn]
    async with open_session(launch=other.launch) as session:
        async with session.turn("go") as turn:
            async for batch in turn.batches():
                assert batch
                seen.append(batch)
            assert [batch async for batch in turn.batches()] == []
    assert [type(message) for batch in seen for message in batch] == singly
    assert len(seen) >= 5


async def test_two_tasks_cannot_take_batches_of_one_turn(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    async with open_session(launch=fake.launch) as session:

        async def read(turn: Turn) -> None:
            async for _ in turn.batches():
                pass

        with trio.move_on_after(5):
            async with session.turn("go") as turn:
                turn.start_soon(read, turn)
                await trio.sleep(1)
                with pytest.raises(trio.BusyResourceError):
                    await read(turn)
                await trio.sleep_forever()


# -- agents


async def test_a_turn_is_over_after_the_follow_up_of_its_agent_and_not_before(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([agent(), say("it runs"), say("it is done")], agents={"look": working(50)})
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()
        async with session.turn("go") as turn:
            messages = [message async for message in turn]
            assert trio.current_time() - started == pytest.approx(50)
        assert [result.text for result in turn.results] == ["it runs", "it is done"]
        assert turn.result is turn.results[-1]
        assert turn.settled
        kinds = [type(message) for message in messages]
        assert kinds.count(ResultMessage) == 2
        assert kinds.index(ResultMessage) < kinds.index(TaskNotification)
        assert kinds[-1] is not TaskNotification
        assert session.tasks == ()


async def test_a_follow_up_holds_the_turn_though_its_agent_ended_before_the_first_result(
    autojump_clock: MockClock,
) -> None:
    script = [agent(), say("it ", chunks=2, delay=20), say("it is done", chunks=2, delay=5)]
    fake = FakeClaude(script, agents={"look": working(1)})
    async with open_session(launch=fake.launch) as session:
        result = await session.prompt("go")
    assert result.text == "it is done"


async def test_an_agent_whose_report_is_folded_into_the_turn_owes_nothing(
    autojump_clock: MockClock,
) -> None:
    script = [agent(), command(20), say("it is done"), say("next")]
    fake = FakeClaude(script, agents={"look": working(1)})
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        async with session.turn("go") as turn:
            pass
        assert [result.text for result in turn.results] == ["it is done"]
        assert (await session.prompt("again")).text == "next"


async def test_an_agent_in_the_foreground_brings_one_result(autojump_clock: MockClock) -> None:
    fake = FakeClaude([agent(background=False), say("it is done")], agents={"look": working(50)})
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            pass
    assert [result.text for result in turn.results] == ["it is done"]


async def test_two_agents_hold_the_turn_until_both_were_answered_for(
    autojump_clock: MockClock,
) -> None:
    script = [agent("left") + agent("right"), say("both run"), say("one"), say("two")]
    fake = FakeClaude(script, agents={"left": working(10), "right": working(30)})
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            pass
    assert [result.text for result in turn.results] == ["both run", "one", "two"]


async def test_a_permission_that_an_agent_asks_for_after_the_first_result_is_answered(
    autojump_clock: MockClock,
) -> None:
    asked: list[PermissionRequest] = []

    async def decide(request: PermissionRequest) -> Allow:
        asked.append(request)
        assert len(turn.results) == 1
        await trio.sleep(10)
        return Allow()

    ran: list[object] = []
    fake = FakeClaude(
        [agent(), say("it runs"), say("it is done")],
        agents={"look": [say("I look") + pause(5) + asking(1), say("found")]},
        run_tool=lambda name, _use: str(ran.append(name)),
    )
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go") as turn:
            pass
        assert turn.result is not None
        assert turn.result.text == "it is done"
    assert [request.agent_id is not None for request in asked] == [True]
    assert ran == ["Bash"]


async def test_without_holding_open_the_turn_ends_at_its_first_result(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude(
        [agent(), say("it runs"), say("it is done"), say("next")], agents={"look": working(50)}
    )
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        started = trio.current_time()
        assert (await session.prompt("go", hold_open=False)).text == "it runs"
        assert trio.current_time() == started
        assert [task.type for task in session.tasks] == ["local_agent"]
        await session.wait_idle()
        assert trio.current_time() - started == pytest.approx(50)
        assert (await session.prompt("again")).text == "next"
        await session.aclose()
        results = [event.result async for event in events if isinstance(event, ResultMessage)]
    assert results == ["it runs", "it is done", "next"]


async def test_a_second_prompt_ends_at_its_own_result_while_an_older_agent_lives(
    autojump_clock: MockClock,
) -> None:
    script = [agent(), say("it runs"), say("mine"), say("it is done")]
    fake = FakeClaude(script, agents={"look": working(50)})
    async with open_session(launch=fake.launch) as session:
        await session.prompt("go", hold_open=False)
        started = trio.current_time()
        async with session.turn("again") as turn:
            pass
        assert trio.current_time() == started
        assert [result.text for result in turn.results] == ["mine"]
        assert len(session.tasks) == 1


async def test_an_interrupt_ends_a_turn_that_only_an_agent_holds(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([agent(), say("it runs"), say("mine")], agents={"look": [hang()]})
    async with open_session(launch=fake.launch) as session:
        started = trio.current_time()
        async with session.turn("go") as turn:
            await trio.sleep(5)
            assert turn.result is not None
            assert session.state is SessionState.PROMPTING
            receipt = await session.interrupt()
            assert receipt.sent
        assert trio.current_time() - started == pytest.approx(5)
        assert session.tasks == ()
        assert (await session.prompt("again")).text == "mine"
    assert session.exit_status.cause is ExitCause.CLOSED


async def test_an_interrupt_settles_what_an_agent_has_asked(autojump_clock: MockClock) -> None:
    cancelled: list[float] = []

    async def decide(_request: PermissionRequest) -> Allow:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.append(trio.current_time())
        return Allow()

    fake = FakeClaude(
        [agent(), say("it runs"), say("mine")], agents={"look": working(1, asks=True)}
    )
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go"):
            await trio.sleep(5)
            asked = trio.current_time()
            await session.interrupt()
        assert cancelled == [asked]
        assert session.pending_permissions == ()
        assert (await session.prompt("again")).text == "mine"


@pytest.mark.parametrize("held", [False, True])
async def test_a_spared_agent_goes_on_and_no_longer_holds_the_turn(
    autojump_clock: MockClock, held: bool
) -> None:
    first = say("it runs") if held else SLOW
    fake = FakeClaude([agent(), first, say("it is done")], agents={"look": working(50)})
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        started = trio.current_time()
        async with session.turn("go") as turn:
            await trio.sleep(5)
            await session.interrupt(spare_agents=True)
            assert turn.cancel_requested.is_set()
        assert trio.current_time() - started == pytest.approx(5)
        assert [task.type for task in session.tasks] == ["local_agent"]
        await session.wait_idle()
        assert trio.current_time() - started == pytest.approx(50)
        await session.aclose()
        results = [event.result async for event in events if isinstance(event, ResultMessage)]
    assert results[-1] == "it is done"
    assert len(turn.results) == 1


async def test_sparing_agents_cancels_the_tasks_of_a_held_turn_after_the_grace(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([agent(), say("it runs"), say("done")], agents={"look": working(50)})
    async with open_session(launch=fake.launch) as session:
        async with session.turn("go") as turn:
            member = Member(turn)
            turn.start_soon(member.run)
            await trio.sleep(5)
            asked = trio.current_time()
            await session.interrupt(spare_agents=True)
        assert member.heard == asked
        assert member.cancelled == pytest.approx(asked + 2)


async def test_a_spared_agents_question_stays_open_and_is_answered(
    autojump_clock: MockClock,
) -> None:
    release = trio.Event()

    async def decide(_request: PermissionRequest) -> Allow:
        await release.wait()
        return Allow()

    ran: list[object] = []
    fake = FakeClaude(
        [agent(), SLOW, say("done")],
        agents={"look": working(1, asks=True)},
        run_tool=lambda name, _use: str(ran.append(name)),
    )
    async with open_session(launch=fake.launch, on_permission=decide) as session:
        async with session.turn("go"):
            await trio.sleep(5)
            await session.interrupt(spare_agents=True)
        assert len(session.pending_permissions) == 1
        release.set()
        await session.wait_idle()
    assert ran == ["Bash"]


async def test_an_agent_may_be_interrupted_when_no_turn_of_ours_runs(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([agent(), say("it runs"), say("mine")], agents={"look": [hang()]})
    async with open_session(launch=fake.launch) as session:
        await session.prompt("go", hold_open=False)
        assert (await session.interrupt()).sent
        await session.wait_idle()
        assert session.tasks == ()
        assert (await session.prompt("again")).text == "mine"


# -- shells


async def test_a_shell_in_the_background_holds_nothing_and_its_turn_is_nobodys(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([shell(50), say("it runs"), say("it ended"), say("mine")])
    async with (
        open_session(launch=fake.launch, on_permission=allow_all) as session,
        session.subscribe() as events,
    ):
        started = trio.current_time()
        assert (await session.prompt("go")).text == "it runs"
        await session.wait_idle()
        assert trio.current_time() == started
        assert [task.type for task in session.tasks] == ["local_bash"]
        await trio.sleep(60)
        assert session.tasks == ()
        assert (await session.prompt("again")).text == "mine"
        await session.aclose()
        results = [event.result async for event in events if isinstance(event, ResultMessage)]
    assert results == ["it runs", "it ended", "mine"]


async def test_a_prompt_that_meets_an_unsolicited_turn_gets_its_own_result(
    autojump_clock: MockClock,
) -> None:
    script = [shell(5), say("it runs"), say("it ") + pause(20) + say("ended"), say("mine")]
    fake = FakeClaude(script)
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        await session.prompt("go")
        await trio.sleep(10)
        assert (await session.prompt("again")).text == "mine"


async def test_a_prompt_may_be_folded_into_an_unsolicited_turn(autojump_clock: MockClock) -> None:
    script = [shell(5), say("it runs"), command(20), say("both"), say("next")]
    fake = FakeClaude(script)
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        await session.prompt("go")
        await trio.sleep(10)
        assert (await session.prompt("again")).text == "both"
        assert (await session.prompt("more")).text == "next"
