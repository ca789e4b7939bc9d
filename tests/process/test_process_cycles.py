"""Sessions on a process, one after the other, leave everything as it was."""

from __future__ import annotations

import math
import os
import signal
import threading
from pathlib import Path
from typing import Final

import pytest
import trio

from claude_trio import ExitCause, Session, SessionOptions, open_session
from claude_trio.testing import assert_no_leaks

PROGRAM: Final = Path(__file__).parent / "programs" / "answers.sh"
OPTIONS: Final = SessionOptions(command=["sh", str(PROGRAM)])


async def closed(session: Session) -> None:
    assert (await session.control("any")) == session.server_info


async def killed(session: Session) -> None:
    pid = session.server_info["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    assert (await session.wait_exit()).cause is ExitCause.KILLED


async def raising(session: Session) -> None:
    async with session.subscribe():
        raise KeyError(session.session_id)


async def cancelled(session: Session) -> None:
    with trio.CancelScope() as scope:
        async with session.subscribe() as events:
            scope.cancel()
            await events.receive()
    assert scope.cancelled_caught


async def never(_session: Session) -> None:
    await trio.sleep_forever()


ENDS: Final = (closed, killed, raising, cancelled, never)


@pytest.mark.slow
async def test_two_hundred_sessions_leave_descriptors_threads_and_tasks_as_they_were() -> None:
    threads = threading.active_count()
    with trio.fail_after(120), assert_no_leaks():
        for number in range(200):
            end = ENDS[number % len(ENDS)]
            # How far an opening comes until it is cancelled is up to the machine; none at first.
            patience = number // 5 / 5_000 if end is never else math.inf
            with trio.move_on_after(patience) as scope:
                try:
                    async with open_session(None, OPTIONS) as session:
                        await end(session)
                except KeyError:
                    assert end is raising
            assert scope.cancelled_caught == (end is never)
    # Idle worker threads of Trio's may be left, for some seconds, but not one for each session.
    assert threading.active_count() <= threads + 3
