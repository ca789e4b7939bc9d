"""`open_fake_session`: a session on a fake CLI, in one line."""

from __future__ import annotations

import functools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypedDict, Unpack

import trio

from claude_trio._open import open_session
from claude_trio.testing._fake import FakeClaude
from claude_trio.testing._fake_witness import Witness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from claude_trio._options import Limits, SessionOptions, Timeouts
    from claude_trio._session import Session
    from claude_trio.permissions import PermissionHandler
    from claude_trio.testing._fake_script import FakeScript

__all__ = ["SessionArguments", "open_fake_session"]


class SessionArguments(TypedDict, total=False):
    """The arguments of `open_session`, but for its launcher."""

    nursery: trio.Nursery | None
    options: SessionOptions | None
    on_permission: PermissionHandler
    timeouts: Timeouts
    limits: Limits


@asynccontextmanager
async def open_fake_session(
    script: FakeScript | FakeClaude, **arguments: Unpack[SessionArguments]
) -> AsyncIterator[Session]:
    """Open a session on a fake CLI: no process, no file, and no real time under a mock clock.

    An exception of the script cancels the block, and leaves it as it was raised.  The block's own
    exception leaves as it is; if both raise, they leave in an exception group.

    Args:
      script: What the model says, or a `FakeClaude` for all that goes beyond that.
      **arguments: Those of `open_session`.

    Raises:
      ScriptExhausted: at the end of the block, if the model was asked for more replies than the
        script has.  The CLI got an error for each.

    Cancellation:
      As `open_session`.
    """
    fake = script if isinstance(script, FakeClaude) else FakeClaude(script)
    raised: BaseException | None = None
    scope = trio.CancelScope()
    witness = Witness(scope.cancel)
    launch = functools.partial(fake.launch_seen, witness)
    with scope:
        try:
            async with open_session(**arguments, launch=launch) as session:
                yield session
        except trio.Cancelled:
            raise
        except BaseException as exc:  # noqa: BLE001  Raised below.
            raised = exc
    verdict = witness.verdict(raised)
    if verdict is not None:
        raise verdict
