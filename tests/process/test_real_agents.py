"""Background work on the real CLI: what holds a turn open, what does not, and how it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from claude_trio import DEFER, Allow, Outcome, SessionState
from claude_trio.messages import Message, ResultMessage, TaskNotification
from claude_trio.permissions import Decision, allow_all
from claude_trio.testing import call_tool, hang, hold, say
from tests.process.real import (
    NEW,
    OLD,
    background_agent,
    background_bash,
    bash,
    real_session,
    until_exists,
    within,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from claude_trio import Deny, PermissionRequest, Session, Subscription, Turn

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

BEGUN = "it has begun"
DONE = "it is done"


async def first_result(turn: Turn) -> None:
    """Read a turn to its first result."""
    async for message in turn:
        if isinstance(message, ResultMessage):
            return


async def next_result(events: Subscription) -> ResultMessage:
    async for event in events:
        if isinstance(event, ResultMessage):
            return event
    raise AssertionError("the session has ended")


def agents_of(session: Session) -> list[str]:
    return [task.type for task in session.tasks if task.type == "local_agent"]


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_background_agent_holds_its_turn_to_the_follow_up(
    tmp_path: Path, version: str
) -> None:
    release = trio.Event()
    async with real_session(
        [background_agent(), say(BEGUN), say(DONE), say("mine")],
        agents={"LOOK": [hold(release) + bash("touch agent.txt"), say("the report")]},
        cwd=tmp_path,
        on_permission=allow_all,
        version=version,
    ) as (session, api):
        async with session.turn("go") as turn:
            await first_result(turn)
            # All that comes now, the answer to another request included, is after the result.
            await session.set_permission_mode("default")
            assert session.state is SessionState.PROMPTING
            assert agents_of(session)
            release.set()
            rest: list[Message] = [message async for message in turn]
        assert [result.text for result in turn.results] == [BEGUN, DONE]
        assert turn.settled
        kinds = [type(m) for m in rest if isinstance(m, TaskNotification | ResultMessage)]
        assert kinds == [TaskNotification, ResultMessage]
        assert (tmp_path / "agent.txt").exists()
        assert "the report" in str(api.requests[-1].messages[-1])
        await session.wait_idle()
        assert not session.tasks
        assert (await session.prompt("this")).text == "mine"


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_prompt_returns_the_follow_up_of_its_agent(tmp_path: Path, version: str) -> None:
    # The agent ends while the first answer still streams: then only the CLI's state tells that
    # one more is owed.
    async with real_session(
        [background_agent(), say(BEGUN, chunks=10, delay=0.05), say(DONE), say("mine")],
        agents={"LOOK": [say("the report")]},
        cwd=tmp_path,
        version=version,
    ) as (session, _):
        assert (await session.prompt("go")).text == DONE
        assert (await session.prompt("this")).text == "mine"


@pytest.mark.parametrize(("version", "results"), [(NEW, [BEGUN, DONE]), (OLD, [BEGUN])])
async def test_each_version_has_a_default_of_its_own(
    tmp_path: Path, version: str, results: list[str]
) -> None:
    # Where an agent runs in the foreground by default, its report is part of the first answer.
    agent = {"description": "look", "prompt": "LOOK at it", "subagent_type": "general-purpose"}
    script = [call_tool("Agent", agent), say(BEGUN)]
    async with real_session(
        script if version == OLD else [*script, say(DONE)],
        agents={"LOOK": [say("the report", chunks=3, delay=0.2)]},
        cwd=tmp_path,
        version=version,
    ) as (session, _):
        async with session.turn("go") as turn:
            pass
        assert [result.text for result in turn.results] == results
        await session.wait_idle()


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_the_late_request_of_an_agent_is_answered(tmp_path: Path, version: str) -> None:
    release = trio.Event()
    asked: list[PermissionRequest] = []

    async def guard(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        assert len(turn.results) == 1
        return Allow()

    async with real_session(
        [background_agent(), say(BEGUN), say(DONE)],
        agents={"LOOK": [hold(release) + write(tmp_path / "late.txt"), say("the report")]},
        cwd=tmp_path,
        on_permission=guard,
        version=version,
    ) as (session, _):
        async with session.turn("go") as turn:
            await first_result(turn)
            release.set()
        assert [result.text for result in turn.results] == [BEGUN, DONE]
    assert (tmp_path / "late.txt").exists()
    assert [(request.tool_name, request.agent_id is None) for request in asked] == [
        ("Write", False)
    ]


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_an_interrupt_ends_a_turn_that_only_an_agent_holds(
    tmp_path: Path, version: str
) -> None:
    async with real_session(
        [background_agent(), say(BEGUN), say("mine")],
        agents={"LOOK": [hang()]},
        cwd=tmp_path,
        version=version,
    ) as (session, _):
        with within(10):
            async with session.turn("go") as turn:
                await first_result(turn)
                assert (await session.interrupt()).sent
            await session.wait_idle()
        assert not agents_of(session)
        assert turn.result is not None
        assert turn.result.text == BEGUN
        assert (await session.prompt("this")).text == "mine"


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_cancel_ends_a_turn_that_only_an_agent_holds(tmp_path: Path, version: str) -> None:
    async with real_session(
        [background_agent(), say(BEGUN), say("mine")],
        agents={"LOOK": [hang()]},
        cwd=tmp_path,
        version=version,
    ) as (session, _):
        with within(10):
            with trio.CancelScope() as scope:
                async with session.turn("go") as turn:
                    await first_result(turn)
                    scope.cancel()
                    await trio.sleep_forever()
            assert (await session.prompt("this")).text == "mine"
        assert not agents_of(session)


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_an_interrupt_ends_agents_of_a_turn_that_still_speaks(
    tmp_path: Path, version: str
) -> None:
    async with real_session(
        [background_agent(), say("a") + hang(), say("mine")],
        agents={"LOOK": [hang()]},
        cwd=tmp_path,
        version=version,
    ) as (session, _):
        with within(10):
            async with session.turn("go") as turn:
                async for _text in turn.text:
                    break
                assert agents_of(session)
                await turn.interrupt()
            await session.wait_idle()
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert not agents_of(session)
        assert (await session.prompt("this")).text == "mine"


async def test_a_spared_agent_goes_on_without_its_turn(tmp_path: Path) -> None:
    release = trio.Event()
    async with real_session(
        [background_agent(), say(BEGUN), say("mine"), say(DONE), say("the last")],
        agents={"LOOK": [hold(release) + write(tmp_path / "late.txt"), say("the report")]},
        cwd=tmp_path,
        on_permission=allow_all,
    ) as (session, _):
        async with session.turn("go") as turn:
            await first_result(turn)
            with within(2):
                assert (await session.interrupt(spare_agents=True)).sent
        assert agents_of(session)
        assert (await session.prompt("this")).text == "mine"
        async with session.subscribe() as events:
            release.set()
            result = await next_result(events)
        assert (result.result, result.origin and result.origin["kind"]) == (
            DONE,
            "task-notification",
        )
        assert (tmp_path / "late.txt").exists()
        await session.wait_idle()
        assert (await session.prompt("and this")).text == "the last"


@pytest.mark.parametrize("spare", [False, True])
async def test_an_interrupt_withdraws_an_agents_request_unless_it_is_spared(
    tmp_path: Path, spare: bool
) -> None:
    ask, asked = trio.open_memory_channel[str](1)

    async def defer(request: PermissionRequest) -> Decision:
        ask.send_nowait(request.id)
        return DEFER

    late = tmp_path / "late.txt"
    script = [background_agent(), say(BEGUN), *([say(DONE)] if spare else []), say("mine")]
    async with real_session(
        script,
        agents={"LOOK": [write(late), say("the report")]},
        cwd=tmp_path,
        on_permission=defer,
    ) as (session, _):
        async with session.turn("go") as turn:
            await first_result(turn)
            request_id = await asked.receive()
            await session.interrupt(spare_agents=spare)
        async with session.subscribe() as events:
            assert session.answer_permission(request_id, Allow()) is spare
            if spare:
                assert (await next_result(events)).result == DONE
        await session.wait_idle()
        assert late.exists() is spare
        assert (await session.prompt("this")).text == "mine"


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_an_older_agent_holds_no_later_turn(tmp_path: Path, version: str) -> None:
    release = trio.Event()
    async with real_session(
        [background_agent(), say(BEGUN), say("mine"), say(DONE), say("the last")],
        agents={"LOOK": [hold(release) + say("the report")]},
        cwd=tmp_path,
        version=version,
    ) as (session, _):
        with within(5):
            assert (await session.prompt("go", hold_open=False)).text == BEGUN
            assert agents_of(session)
            async with session.turn("this") as turn:
                pass
        assert [result.text for result in turn.results] == ["mine"]
        assert agents_of(session)
        async with session.subscribe() as events:
            release.set()
            assert (await next_result(events)).result == DONE
        await session.wait_idle()
        assert not session.tasks
        assert (await session.prompt("and this")).text == "the last"


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_idle_waits_for_an_agent_that_no_turn_waits_for(tmp_path: Path, version: str) -> None:
    release = trio.Event()
    async with real_session(
        [background_agent(), say(BEGUN), say(DONE)],
        agents={"LOOK": [hold(release) + say("the report")]},
        cwd=tmp_path,
        version=version,
    ) as (session, api):
        await session.prompt("go", hold_open=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.wait_idle)
            await api.wait_requests(3)
            assert nursery.child_tasks
            release.set()
        assert api.requests[-1].agent_id is None
        assert not session.tasks


async def test_an_interrupt_stops_an_agent_that_no_turn_waits_for(tmp_path: Path) -> None:
    async with real_session(
        [background_agent(), say(BEGUN), say("mine")],
        agents={"LOOK": [hang()]},
        cwd=tmp_path,
    ) as (session, _):
        await session.prompt("go", hold_open=False)
        with within(5):
            assert (await session.interrupt()).sent
            await session.wait_idle()
        assert not session.tasks
        assert not (await session.interrupt()).sent
        assert (await session.prompt("this")).text == "mine"


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_background_command_holds_no_turn(tmp_path: Path, version: str) -> None:
    script = [background_bash("touch begun; sleep 600"), say(BEGUN), say("mine")]
    async with real_session(script, cwd=tmp_path, on_permission=allow_all, version=version) as (
        session,
        _,
    ):
        with within(5):
            async with session.turn("go") as turn:
                pass
            await session.wait_idle()
        assert [result.text for result in turn.results] == [BEGUN]
        await until_exists(tmp_path / "begun")
        assert [task.type for task in session.tasks] == ["local_bash"]
        assert (await session.prompt("this")).text == "mine"


async def test_the_end_of_a_background_command_is_a_turn_of_nobody(tmp_path: Path) -> None:
    script = [background_bash("until test -e go; do sleep 0.05; done"), say(BEGUN), say(DONE)]
    async with real_session([*script, say("mine")], cwd=tmp_path, on_permission=allow_all) as (
        session,
        _,
    ):
        async with session.subscribe() as events:
            assert (await session.prompt("go")).text == BEGUN
            assert (await next_result(events)).result == BEGUN
            (tmp_path / "go").touch()
            assert (await next_result(events)).result == DONE
        await session.wait_idle()
        assert (await session.prompt("this")).text == "mine"
