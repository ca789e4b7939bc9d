"""How long things may take, and how large they may grow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar, final

from claude_trio._values import field, frozen

if TYPE_CHECKING:
    import attrs

__all__ = ["Limits", "Timeouts"]

T = TypeVar("T")


def _seconds(_self: object, option: attrs.Attribute[T], value: T) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{option.name}: a number of seconds is wanted, not {type(value).__name__}")
    if not value > 0:
        raise ValueError(f"{option.name}: is {value}, which is no positive number of seconds")


def _size(_self: object, option: attrs.Attribute[T], value: T) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{option.name}: an int is wanted, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{option.name}: is {value}, and the least is 1")


@final
@frozen(kw_only=True)
class Timeouts:
    """The deadlines that are the library's own, in seconds; `math.inf` turns one off.

    What a caller waits for has no deadline here: that is what cancel scopes are for.
    """

    initialize: float = field(default=60, validator=_seconds)
    """For the CLI to start and to answer.

    It does in half a second; the official SDKs wait this long for slow disks and networks.
    """
    control: float = field(default=60, validator=_seconds)
    """For the CLI to answer a control request; the official SDK for Python waits as long."""
    permission: float = field(default=math.inf, validator=_seconds)
    """For a permission handler: a person decides, and the CLI has no deadline either."""
    hook: float = field(default=60, validator=_seconds)
    """For a hook that names no time of its own; the CLI's own 600 s would hold a tool as long."""
    write: float = field(default=30, validator=_seconds)
    """For the CLI to read anything at all from its stdin, while there is something to read.

    It reads at once, even in mid-turn: one that does not hangs.
    """
    silence: float = field(default=math.inf, validator=_seconds)
    """For the next frame of a turn; one that runs a long command may be silent as long."""
    grace: float = field(default=2, validator=_seconds)
    """From a cancel until the tasks that a turn holds are cancelled: time to wind down."""
    interrupt: float = field(default=30, validator=_seconds)
    """From a cancel until a CLI that does not end the turn is ended.  It does in two seconds."""
    settle: float = field(default=600, validator=_seconds)
    """For background work that is owed and gives no sign of life; the CLI's own ceiling too."""
    follow_up: float = field(default=2, validator=_seconds)
    """For the turn that follows a subagent's end, with a CLI that does not report its state."""
    eof: float = field(default=5, validator=_seconds)
    """From the end of its stdin until the CLI is sent SIGTERM; it stops what runs in 1.6 s."""
    term: float = field(default=5, validator=_seconds)
    """From SIGTERM to SIGKILL, as in the official SDKs.

    The CLI takes up to 2.5 s to end its commands; killed before, it leaves them running.
    """
    kill: float = field(default=5, validator=_seconds)
    """From SIGKILL until the process is given up: the kernel holds one that waits for a device."""


@final
@frozen(kw_only=True)
class Limits:
    """How much the library keeps before it says no."""

    frame: int = field(default=64 * 1024 * 1024, validator=_size)
    """Bytes of one line from the CLI; a longer one is skipped, and the turn fails.

    An answer of 3 MB is a line of 3 MB, twice, and images and results of tools can be larger.
    """
    turn_buffer: int = field(default=64 * 1024 * 1024, validator=_size)
    """Bytes of messages that a turn keeps for a reader who does not read: a whole frame fits."""
    outbound: int = field(default=1024, validator=_size)
    """Frames that wait to be written; the next prompt or control request waits in its caller."""
    stderr_tail: int = field(default=64 * 1024, validator=_size)
    """Bytes of the CLI's stderr that are kept for errors: a pipe's worth."""
