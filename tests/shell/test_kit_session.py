"""`check_session` finds the session that neither works nor says why not."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from claude_trio import SessionClosed, Timeouts, open_session
from claude_trio.permissions import allow_all
from claude_trio.testing import (
    FakeClaude,
    LawBroken,
    call_tool,
    cancel_everywhere,
    cancel_here,
    check_session,
    faults,
    hang,
    say,
)

if TYPE_CHECKING:
    from trio.testing import MockClock


def answer(told: str) -> Any:
    return call_tool("Bash", {"command": "touch a"}) if told == "ask" else say("mine", delay=1)


async def test_a_session_that_works_passes_with_a_prompt_and_without(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude(answer)
    async with open_session(launch=fake.launch) as session:
        await check_session(session)
        assert [frame["type"] for frame in fake.received] == ["control_request"] * 2
        with trio.move_on_after(0.5):
            await session.prompt("go")
        await check_session(session, "and now")
        assert fake.received[-1]["message"] == {"role": "user", "content": "and now"}
    await check_session(session, "too late")


@pytest.mark.parametrize("dies_with", [0, 1, -9])
async def test_a_session_that_ended_and_says_why_passes(
    dies_with: int, autojump_clock: MockClock
) -> None:
    fake = FakeClaude(answer, faults=[faults.dies(dies_with)])
    async with open_session(launch=fake.launch) as session:
        await check_session(session, "go")
        assert not session.alive
        await check_session(session)


async def test_a_session_that_a_deadline_ends_meanwhile_says_why(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()], faults=[faults.deaf_to("interrupt", "eof", "term")])
    async with open_session(launch=fake.launch) as session:
        with trio.move_on_after(1):
            await session.prompt("go")
        await check_session(session)
        assert not session.alive


async def test_an_open_session_that_answers_nothing_fails(autojump_clock: MockClock) -> None:
    fake = FakeClaude(answer, faults=[faults.deaf_to("check_session")])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(AssertionError, match="does not answer"):
            await check_session(session)


async def test_an_open_request_for_permission_that_nobody_waits_for_fails(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude(answer)
    async with open_session(launch=fake.launch, on_permission=allow_all) as session:
        session._desk._pending["forgotten"] = None  # type: ignore[assignment]
        with pytest.raises(AssertionError, match="a permission request waits"):
            await check_session(session)
        session._desk._pending.clear()


async def test_a_waiter_that_is_left_fails(autojump_clock: MockClock) -> None:
    fake = FakeClaude(answer, faults=[faults.deaf_to("anything")])
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:
        nursery.start_soon(session.control, "anything")
        await wait_all_tasks_blocked()
        with pytest.raises(AssertionError, match="somebody is waiting"):
            await check_session(session)
        nursery.cancel_scope.cancel()


async def test_a_session_that_is_closed_and_gives_no_cause_fails(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude(answer, faults=[faults.dies(3)])
    async with open_session(launch=fake.launch) as session:
        with contextlib.suppress(Exception):
            await session.prompt("go")
        await session.wait_exit()
        session._link.error = None
        with pytest.raises(AssertionError, match="do not say why") as caught:
            await check_session(session)
        assert isinstance(caught.value.__cause__, SessionClosed)


def test_a_session_that_neither_works_nor_says_why_is_found_where_it_was_cancelled() -> None:
    async def scenario() -> None:
        fake = FakeClaude(answer)
        async with open_session(launch=fake.launch, timeouts=Timeouts(control=5)) as session:
            with cancel_here():
                try:
                    await session.prompt("go")
                except trio.Cancelled:
                    fake.read_stdin(False)
                    raise
            await check_session(session)

    with pytest.raises(LawBroken, match="the CLI does not answer") as caught:
        cancel_everywhere(scenario)
    assert caught.value.step == 1
