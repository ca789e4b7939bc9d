"""The law of a session that somebody has cancelled something in."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from claude_trio._errors import ProcessExited, RequestRefused, RequestTimedOut, SessionClosed
from claude_trio._exit import ExitCause, ExitState

if TYPE_CHECKING:
    from claude_trio._session import PromptContent, Session

__all__ = ["check_session"]


async def check_session(session: Session, prompt: PromptContent | None = None) -> None:
    """Check that a session works, or says why not.

    One that is open must come to rest, wait for no decision that nobody will make, and then answer.
    One that has ended must tell its cause in `Session.exit_status`, and in the errors of its calls.

    Nothing else should use the session meanwhile.  It has no deadline: within `cancel_everywhere`
    that of the scenario counts, elsewhere a cancel scope of yours.

    Args:
      session: An open session, or one that has ended.
      prompt: What it is asked; without one, only a control request is sent, which costs nothing.

    Raises:
      AssertionError: if it neither works nor says why not.

    Cancellation:
      A checkpoint.  The session goes on.
    """
    try:
        await session.wait_idle()
        with contextlib.suppress(RequestRefused):  # A refusal is an answer.
            await session.control("check_session")
        if prompt is not None:
            await session.prompt(prompt, check=False)
        if session.pending_permissions:
            raise AssertionError("nothing runs, and a permission request waits all the same")
    except RequestTimedOut as exc:
        raise AssertionError("the session is open, and the CLI does not answer") from exc
    except (ProcessExited, SessionClosed):
        await _check_ended(session)
    link = session._link  # noqa: SLF001  Who waits is nobody's business but that of the laws.
    if link.changed or link._answers._waiters:  # noqa: SLF001
        raise AssertionError("somebody is waiting for the session still")


async def _check_ended(session: Session) -> None:
    status = await session.wait_exit()
    if status.state is ExitState.RUNNING or status.cause is None:
        raise AssertionError(f"the session has ended, and does not say why: {status}")
    try:
        await session.wait_idle()
    except SessionClosed as exc:
        if exc.__cause__ is None and status.cause is not ExitCause.CLOSED:
            message = "the session was ended, and the errors of its calls do not say why"
            raise AssertionError(f"{message}: {status}") from exc
    else:
        raise AssertionError("the session has ended, and can be used all the same")
