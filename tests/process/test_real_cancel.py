"""Turns that are given up on the real CLI: nobody waits for it, and no answer comes late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from claude_trio import (
    ExitCause,
    Session,
    SessionClosed,
    SessionState,
    open_session,
)
from claude_trio.permissions import allow_all
from claude_trio.testing import say
from tests.process.real import (
    NEW,
    OLD,
    SLOW,
    bash,
    cli_options,
    real_api,
    real_session,
    until_exists,
    within,
)

if TYPE_CHECKING:
    from pathlib import Path

    from claude_trio import Turn
    from claude_trio.testing import ApiRequest, Reply

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

# Much less than the slow answer takes, and more than a machine with other work may lose.
PROMPTLY = 1.0


def slow_or_own(request: ApiRequest) -> Reply:
    """Answer slowly if asked to, else with words that are no other prompt's answer."""
    said = request.last_user_text
    return SLOW if said.startswith("slow") else say(f"the answer to {said}")


async def ask(session: Session, question: str) -> None:
    result = await session.prompt(question)
    assert result.text == f"the answer to {question}"


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_cancelled_prompt_holds_nobody_and_never_answers_the_next(
    tmp_path: Path, version: str
) -> None:
    async with real_session(slow_or_own, cwd=tmp_path, version=version) as (session, _):
        for number in range(21):
            delay = number / 100
            with within(delay + PROMPTLY):
                with trio.move_on_after(delay) as scope:
                    await session.prompt(f"slow {number}")
            assert scope.cancelled_caught
            await session.wait_idle()
            assert session.state is SessionState.IDLE
            await ask(session, f"question {number}")
        assert session.alive


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_the_prompt_after_a_cancelled_one_needs_no_wait(tmp_path: Path, version: str) -> None:
    async with real_session(slow_or_own, cwd=tmp_path, version=version) as (session, _):
        for number, delay in enumerate([0, 0.001, 0.02, 0.05, 0.1, 0.4]):
            with trio.move_on_after(delay):
                await session.prompt(f"slow {number}")
            await ask(session, f"question {number}")
            with trio.move_on_after(delay):
                await session.prompt(f"slow again {number}")
            with trio.move_on_after(delay):
                await session.prompt(f"slow and again {number}")
            await ask(session, f"another question {number}")


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_cancelled_tool_is_over_before_the_next_prompt(
    tmp_path: Path, version: str
) -> None:
    command = bash("echo $$ > begun; sleep 600; touch finished")
    script = [command, say("mine")]
    async with real_session(script, cwd=tmp_path, version=version, on_permission=allow_all) as (
        session,
        _,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.prompt, "work")
            await until_exists(tmp_path / "begun")
            with within(PROMPTLY):
                nursery.cancel_scope.cancel()
                await trio.lowlevel.checkpoint_if_cancelled()
        assert (await session.prompt("this")).text == "mine"
    assert not (tmp_path / "finished").exists()


async def read_some(turn: Turn) -> None:
    async for _text in turn.text:
        return


async def leave_by_an_exception(session: Session) -> None:
    error = LookupError("a reason of its own")
    with within(PROMPTLY + 1), pytest.raises(LookupError) as caught:
        async with session.turn("slow") as turn:
            await read_some(turn)
            raise error
    assert caught.value is error


async def leave_by_an_outer_cancel(session: Session) -> None:
    with within(PROMPTLY + 1):
        with trio.CancelScope() as scope:
            async with session.turn("slow") as turn:
                await read_some(turn)
                scope.cancel()
                await trio.sleep_forever()
    assert scope.cancelled_caught


async def leave_by_a_deadline(session: Session) -> None:
    with within(PROMPTLY + 1), pytest.raises(trio.TooSlowError):
        with trio.fail_after(0.3):
            async with session.turn("slow") as turn:
                async for _ in turn:
                    pass


async def leave_by_a_break(session: Session) -> None:
    # A block that ends by itself waits for its turn, as much of it as was read.
    while True:
        async with session.turn("first") as turn:
            await read_some(turn)
            break
    assert turn.result is not None
    assert turn.result.text == "the answer to first"


async def leave_by_a_failing_task(session: Session) -> None:
    async def fail() -> None:
        raise LookupError("in a task")

    with within(PROMPTLY + 1), pytest.raises(ExceptionGroup) as caught:
        async with session.turn("slow") as turn:
            await read_some(turn)
            turn.start_soon(fail)
            await trio.sleep_forever()
    assert [type(each) for each in caught.value.exceptions] == [LookupError]


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_turn_may_be_left_in_any_way(tmp_path: Path, version: str) -> None:
    ways = (
        leave_by_an_exception,
        leave_by_an_outer_cancel,
        leave_by_a_deadline,
        leave_by_a_break,
        leave_by_a_failing_task,
    )
    async with real_session(slow_or_own, cwd=tmp_path, version=version) as (session, _):
        for way in ways:
            await way(session)
            await ask(session, way.__name__)


async def test_a_cancelled_nursery_ends_the_session_with_the_body_in_it(tmp_path: Path) -> None:
    async with real_api(slow_or_own) as api:
        with within(10):
            async with trio.open_nursery() as nursery:
                async with open_session(nursery, cli_options(api, tmp_path)) as session:
                    await ask(session, "one")
                    async with session.turn("slow") as turn:
                        await read_some(turn)
                        nursery.cancel_scope.cancel()
        assert nursery.cancel_scope.cancelled_caught
        assert not session.alive
        assert session.exit_status.cause is ExitCause.CLOSED
        assert session.exit_status.group_gone


async def test_a_cancelled_nursery_lets_a_body_below_it_clean_up(tmp_path: Path) -> None:
    async with real_api(slow_or_own) as api:
        async with trio.open_nursery() as nursery:
            async with open_session(nursery, cli_options(api, tmp_path)) as session:
                nursery.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await ask(session, "last words")
        assert session.exit_status.group_gone


async def test_a_cancelled_nursery_ends_the_session_of_a_body_elsewhere(tmp_path: Path) -> None:
    async def hold(task_status: trio.TaskStatus[trio.Nursery]) -> None:
        async with trio.open_nursery() as inner:
            task_status.started(inner)
            await trio.sleep_forever()

    async with real_api(slow_or_own) as api, trio.open_nursery() as outer:
        elsewhere: trio.Nursery = await outer.start(hold)
        async with open_session(elsewhere, cli_options(api, tmp_path)) as session:
            await ask(session, "one")
            with within(5), pytest.raises(SessionClosed) as caught:
                async with session.turn("slow") as turn:
                    await read_some(turn)
                    elsewhere.cancel_scope.cancel()
                    async for _ in turn:
                        pass
            assert isinstance(caught.value.__cause__, SessionClosed)
            with pytest.raises(SessionClosed):
                await session.prompt("again")
        assert session.exit_status.group_gone
