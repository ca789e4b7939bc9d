"""The two pipes and the exit of a CLI that exists in memory only."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import attrs
import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FakeTransport"]

_EXIT_TERM = 143
_EXIT_KILL = -9


@final
@attrs.define(eq=False)
class FakeTransport:
    """What a `FakeClaude` hands out; a `Transport` without a process, a file or real time."""

    _deaf_to_term: bool
    _stdin: bytearray = attrs.field(factory=bytearray, init=False)
    _stdout: bytearray = attrs.field(factory=bytearray, init=False)
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    _exited: trio.Event = attrs.field(factory=trio.Event, init=False)
    _code: int | None = attrs.field(default=None, init=False)
    _stdin_closed: bool = attrs.field(default=False, init=False)
    _stdout_closed: bool = attrs.field(default=False, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _on_exit: Callable[[], None] | None = attrs.field(default=None, init=False)
    stderr_tail: str = attrs.field(default="", init=False)
    pid: None = attrs.field(default=None, init=False)

    # -- the host's side

    async def receive(self) -> bytes:
        """Wait for bytes of stdout; ``b""`` at its end."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while not (self._stdout or self._stdout_closed or self._closed):
            await self._changed.park()
        return self.receive_nowait()

    def receive_nowait(self) -> bytes:
        """Take what is there of stdout; ``b""`` at its end."""
        if self._closed:
            raise trio.ClosedResourceError
        if not self._stdout and not self._stdout_closed:
            raise trio.WouldBlock
        data = bytes(self._stdout)
        self._stdout.clear()
        return data

    def send_nowait(self, data: bytes) -> int:
        """Write to stdin, which takes everything."""
        if self._stdin_closed or self._closed:
            raise trio.ClosedResourceError
        if self._code is not None:
            raise trio.BrokenResourceError
        self._stdin += data
        self._changed.unpark_all()
        return len(data)

    async def wait_writable(self) -> None:
        """Return at once: stdin takes everything."""
        await trio.lowlevel.checkpoint()

    def close_stdin(self) -> None:
        """Close stdin."""
        self._stdin_closed = True
        self._changed.unpark_all()

    def terminate(self) -> None:
        """End the fake, unless it is deaf to that."""
        if not self._deaf_to_term:
            self.exit(_EXIT_TERM)

    def kill(self) -> None:
        """End the fake."""
        self.exit(_EXIT_KILL)

    async def wait_exit(self) -> int:
        """Wait for the exit."""
        await self._exited.wait()
        return self._code or 0

    async def aclose(self, *, sweep: bool) -> bool:  # noqa: ARG002  There is nothing to sweep.
        """Close the pipes."""
        self.exit(_EXIT_KILL)
        self._closed = self._stdin_closed = True
        self._changed.unpark_all()
        await trio.lowlevel.checkpoint()
        return True

    # -- the fake's side

    def write(self, data: bytes) -> None:
        """Write to stdout."""
        self._stdout += data
        self._changed.unpark_all()

    def close_stdout(self) -> None:
        """End stdout."""
        self._stdout_closed = True
        self._changed.unpark_all()

    async def read_line(self) -> bytes | None:
        """Wait for a whole line of stdin; None at its end."""
        while b"\n" not in self._stdin:
            if self._stdin_closed:
                return None
            await self._changed.park()
        line, _, rest = bytes(self._stdin).partition(b"\n")
        self._stdin[:] = rest
        return line

    def exit(self, code: int) -> None:
        """Exit; the first code counts."""
        if self._code is None:
            self._code = code
            self.close_stdout()
            self._exited.set()
            if self._on_exit is not None:
                self._on_exit()

    def on_exit(self, act: Callable[[], None]) -> None:
        """Call ``act`` at the exit."""
        self._on_exit = act
