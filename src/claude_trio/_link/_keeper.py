"""The one owner of a session's end, and the clock of what only time decides."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import trio

from claude_trio._errors import SessionClosed
from claude_trio._exit import ExitCause, ExitState, ExitStatus

if TYPE_CHECKING:
    from claude_trio._link import Link

__all__ = ["keep"]


async def keep(link: Link) -> None:
    """Wait until the session is to end, then end it: settle the waiters, run the ladder.

    Runs shielded, and ends in bounded time once the end was asked for.
    """
    await _wait_for_the_end(link)
    last_words = link.last_words()
    if link.returncode is not None:
        # Whoever hears of the exit now can look at it, although the rest is still being ended.
        link.status = _status(link, link.returncode, group_gone=None)
    link.settle()
    code, by_eof = await _end_the_process(link, last_words)
    # What daemonised itself is the only thing that a CLI leaves which ends in good order; one that
    # was killed, by whomever, has ended nothing of what it started.
    orderly = by_eof and link.cause is ExitCause.CLOSED and code is not None and code >= 0
    spared = orderly and link.keep_daemons
    # Before the first prompt only servers and hooks run.  Hooks say so; a server that the user's
    # own configuration names is a child of the CLI's.
    ran = bool(link.connection.gate.ledger.prompts or link.startup or link.runs_servers)
    sweep = True if ran or not orderly else None
    group_gone = await link.transport.aclose(sweep=False if spared else sweep)
    link.status = _status(link, code, group_gone=group_gone)


def _status(link: Link, code: int | None, *, group_gone: bool | None) -> ExitStatus:
    # A CLI whose last result was an error exits with 1 all the same.
    good = code == 0 or (code == 1 and link.last_result_failed)
    well = link.cause is ExitCause.CLOSED or (link.cause is ExitCause.EXITED and good)
    return ExitStatus(
        state=ExitState.COMPLETED if well else ExitState.FAILED,
        cause=link.cause,
        returncode=code,
        group_gone=group_gone,
        stderr_tail=link.transport.stderr_tail,
        last_lines=tuple(link.connection.last_lines),
    )


async def _wait_for_the_end(link: Link) -> None:  # noqa: ASYNC910  The end may be there.
    alarms = link.alarms
    while not link.close_requested.is_set():
        alarms.poked = trio.Event()
        alarms.set_for = link.due_at
        with trio.move_on_at(alarms.set_for):
            await alarms.poked.wait()
        _ring(link, trio.current_time())


def _ring(link: Link, now: float) -> None:
    link.alarms.ring(now)
    if now >= link.alarms.backstop_at:
        seconds = link.timeouts.interrupt
        text = f"the cancelled turn has not ended within {seconds:g} s"
        link.request_close(ExitCause.CANCEL_BACKSTOP, SessionClosed(text))
    elif now >= link.connection.deadline:
        link.feed(link.connection.tick(now))
    elif now >= link.silent_at:
        link.fail_silent(now)


async def _end_the_process(link: Link, last_words: bytes | None) -> tuple[int | None, bool]:
    """Run the ladder; return the exit code, and whether the CLI left by the first rung."""
    transport, timeouts = link.transport, link.timeouts
    link.writer.stop()
    if last_words is not None:
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            transport.send_nowait(last_words)
    transport.close_stdin()
    rungs = (
        (None, timeouts.eof),
        (transport.terminate, timeouts.term),
        (transport.kill, timeouts.kill),
    )
    for act, seconds in rungs:
        if act is not None:
            act()
        with trio.move_on_after(seconds):
            return await transport.wait_exit(), act is None
    return None, False  # noqa: ASYNC910  Each rung has waited.
