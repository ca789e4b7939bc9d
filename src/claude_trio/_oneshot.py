"""One prompt in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_trio._open import open_session
from claude_trio._options import Limits, SessionOptions, Timeouts
from claude_trio._process import spawn
from claude_trio.permissions import PermissionHandler, deny_all

if TYPE_CHECKING:
    from claude_trio._session import PromptContent
    from claude_trio._transport import Launcher
    from claude_trio.messages import Result

__all__ = ["run_prompt"]


async def run_prompt(
    content: PromptContent,
    options: SessionOptions | None = None,
    *,
    check: bool = True,
    on_permission: PermissionHandler = deny_all,
    timeouts: Timeouts = Timeouts(),
    limits: Limits = Limits(),
    launch: Launcher = spawn,
) -> Result:
    """Start a CLI, send one prompt, wait until its turn is over, and end the CLI.

    Args:
      content: What the user says.  Must not be empty.
      options: How the CLI is started.
      check: If false, an error result is returned instead of raised.
      on_permission: Decides on the use of tools.
      timeouts: The deadlines that are ours.
      limits: The bounds of the buffers.
      launch: Starts the CLI.

    Returns:
      The last result of the turn.

    Raises:
      CLINotFound: if there is no CLI.
      LaunchFailed: if it does not start.
      ValueError: see `Session.prompt`, as for all other errors.

    Cancellation:
      A checkpoint.  If cancelled, the CLI is ended before this returns.
    """
    async with open_session(
        None,
        options,
        on_permission=on_permission,
        timeouts=timeouts,
        limits=limits,
        launch=launch,
    ) as session:
        return await session.prompt(content, check=check)
