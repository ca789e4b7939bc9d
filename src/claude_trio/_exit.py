"""How a session ended."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, final

from claude_trio._protocol._events import frames_of
from claude_trio._values import field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ExitCause", "ExitState", "ExitStatus"]


class ExitState(enum.Enum):
    """Whether a session has ended, and whether that was a failure."""

    RUNNING = "running"
    COMPLETED = "completed"
    """The CLI ended well, or as we asked it to."""
    FAILED = "failed"


class ExitCause(enum.Enum):
    """What ended a session."""

    CLOSED = "closed"
    """It was closed by its owner."""
    EXITED = "exited"
    """The CLI exited by itself."""
    KILLED = "killed"
    """A signal that we did not send ended the CLI."""
    START_FAILED = "start failed"
    """The CLI did not start, or did not answer ``initialize``."""
    PROTOCOL = "protocol"
    """The CLI broke the protocol for good: it closed its stdout, and lives."""
    CALLBACK = "callback"
    """A callback raised while no turn ran that could carry the error."""
    STDIN_STALLED = "stdin stalled"
    """The CLI did not take what was written within `Timeouts.write`."""
    CANCEL_BACKSTOP = "cancel backstop"
    """A cancelled turn did not end within `Timeouts.interrupt`."""


@final
@frozen(kw_only=True)
class ExitStatus:
    """How a session ended, or that it runs; it outlives the session."""

    state: ExitState = ExitState.RUNNING
    cause: ExitCause | None = None
    returncode: int | None = None
    """The CLI's exit code, negative for a signal; None while it runs or if it never ran."""
    group_gone: bool | None = None
    """Whether nothing that the CLI started is known to be left; None until that was looked at."""
    stderr_tail: str = ""
    last_lines: tuple[bytes, ...] = field(default=(), repr=False)
    """The last frames that came, as they came."""

    @property
    def last_frames(self) -> tuple[Mapping[str, object], ...]:
        """The last frames that came, oldest first."""
        return tuple(frames_of(self.last_lines))

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended the CLI, if one did."""
        code = self.returncode
        return -code if code is not None and code < 0 else None
