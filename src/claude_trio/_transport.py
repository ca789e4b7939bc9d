"""The seam between the bytes of a CLI and everything above them.

A `Launcher` starts a CLI and hands out a `Transport`.  `spawn` starts a process; the fakes of
`claude_trio.testing` hand out memory.  Nothing above this seam knows a descriptor, a thread or
the operating system: otherwise a clock that jumps ahead when all tasks sleep would not see what
they wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    import trio

__all__ = ["Launcher", "Transport"]


class Transport(Protocol):
    """A running CLI: two byte streams, two signals and an exit.

    The methods without ``async`` never block and never checkpoint.
    """

    @property
    def pid(self) -> int | None:
        """The process id, for diagnostics; None where there is no process."""
        ...

    @property
    def stderr_tail(self) -> str:
        """The last text that came on stderr."""
        ...

    async def receive(self) -> bytes:
        """Wait for bytes of stdout; ``b""`` at its end."""
        ...

    def receive_nowait(self) -> bytes:
        """Take the bytes of stdout that are there; ``b""`` at its end.

        Raises:
          trio.WouldBlock: if there are none now.
        """
        ...

    def send_nowait(self, data: bytes) -> int:
        """Write what stdin takes now, and say how many bytes that was.

        Raises:
          trio.BrokenResourceError: if nobody reads stdin any more.
          trio.ClosedResourceError: if stdin was closed by us.
        """
        ...

    async def wait_writable(self) -> None:
        """Wait until stdin may take more."""
        ...

    def close_stdin(self) -> None:
        """Close stdin; again is fine."""
        ...

    def terminate(self) -> None:
        """Ask the CLI and its process group to end (SIGTERM); after the exit, do nothing."""
        ...

    def kill(self) -> None:
        """End the CLI and its process group (SIGKILL); after the exit, do nothing."""
        ...

    async def wait_exit(self) -> int:
        """Wait for the exit; the code, negative for a signal.  Any number of tasks may wait."""
        ...

    async def aclose(self, *, sweep: bool | None) -> bool:
        """Close the pipes and end the stderr drain, after the exit.

        Args:
          sweep: Whether to end also what the CLI left behind outside of its process group; None
            does it if the CLI had children when stdin was closed.

        Returns:
          Whether nothing of the CLI's group, nor of what was swept, is known to be left.
        """
        ...


class Launcher(Protocol):
    """Start a CLI: `spawn`, or a fake's."""

    def __call__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> Awaitable[Transport]:
        """Start ``argv`` and return its transport.

        Tasks that the transport needs go into ``nursery``.  If the call is cancelled, nothing
        that it started is left.

        Raises:
          CLINotFound: if there is no such program.
          LaunchFailed: if it is there, but does not start.
        """
        ...
