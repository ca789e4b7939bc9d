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
@attrs.define(eq=False, kw_only=True)
class FakeTransport:
    """What a `FakeClaude` hands out; a `Transport` without a process, a file or real time."""

    deaf_to_term: bool = False
    holds_stdout: bool = False
    """Whether stdout stays open after the exit, as when a grandchild has it."""
    pipe: int | None = None
    """How many bytes stdin holds that were not read yet; without it, any number."""
    piece: int | None = None
    """How many bytes the host gets at a time; without it, all that are there."""
    stderr_tail: str = ""
    _stdin: bytearray = attrs.field(factory=bytearray, init=False)
    _stdout: bytearray = attrs.field(factory=bytearray, init=False)
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    _exited: trio.Event = attrs.field(factory=trio.Event, init=False)
    _code: int | None = attrs.field(default=None, init=False)
    _stdin_closed: bool = attrs.field(default=False, init=False)
    _stdout_closed: bool = attrs.field(default=False, init=False)
    _reading: bool = attrs.field(default=True, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _on_exit: Callable[[], None] | None = attrs.field(default=None, init=False)
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
        data = bytes(self._stdout[: self.piece])
        del self._stdout[: self.piece]
        return data

    def send_nowait(self, data: bytes) -> int:
        """Write to stdin as much as it has room for."""
        if self._stdin_closed or self._closed:
            raise trio.ClosedResourceError
        if self._code is not None:
            raise trio.BrokenResourceError
        taken = data[: self._room]
        self._stdin += taken
        self._changed.unpark_all()
        return len(taken)

    @property
    def _room(self) -> int | None:
        return None if self.pipe is None else max(0, self.pipe - len(self._stdin))

    async def wait_writable(self) -> None:
        """Wait until stdin has room, or takes nothing any more."""
        await trio.lowlevel.checkpoint()
        while self._room == 0 and self._code is None:
            if self._stdin_closed or self._closed:
                raise trio.ClosedResourceError
            await self._changed.park()

    def close_stdin(self) -> None:
        """Close stdin."""
        self._stdin_closed = True
        self._changed.unpark_all()

    def terminate(self) -> None:
        """End the fake, unless it is deaf to that."""
        if not self.deaf_to_term:
            self.exit(_EXIT_TERM)

    def kill(self) -> None:
        """End the fake."""
        self.exit(_EXIT_KILL)

    async def wait_exit(self) -> int:
        """Wait for the exit."""
        await self._exited.wait()
        return self._code or 0

    async def aclose(self, *, sweep: bool | None) -> bool:  # noqa: ARG002  There is nothing to sweep.
        """Close the pipes."""
        self.exit(_EXIT_KILL)
        self._closed = self._stdin_closed = True
        self._changed.unpark_all()
        await trio.lowlevel.checkpoint()
        return True

    # -- the fake's side

    def write(self, data: bytes) -> None:
        """Write to stdout; where it is closed, or after the exit, nobody gets it."""
        if not self._stdout_closed and self._code is None:
            self._stdout += data
            self._changed.unpark_all()

    def close_stdout(self) -> None:
        """End stdout."""
        self._stdout_closed = True
        self._changed.unpark_all()

    def read_stdin(self, reading: bool) -> None:  # noqa: FBT001  It is a switch.
        """Go on reading stdin, or stop."""
        self._reading = reading
        self._changed.unpark_all()

    async def read_line(self) -> bytes | None:
        """Wait for a whole line of stdin; None at its end."""
        line = bytearray()
        while not line.endswith(b"\n"):
            end = self._stdin.find(b"\n") + 1 or len(self._stdin)
            if self._reading and end:
                line += self._stdin[:end]
                del self._stdin[:end]
                self._changed.unpark_all()
            elif self._stdin_closed and self._reading:
                return None  # noqa: ASYNC910  Its end is there.
            else:
                await self._changed.park()
        return bytes(line)  # noqa: ASYNC910  The line is there.

    def exit(self, code: int) -> None:
        """Exit; the first code counts."""
        if self._code is None:
            self._code = code
            if not self.holds_stdout:
                self.close_stdout()
            self._changed.unpark_all()
            self._exited.set()
            if self._on_exit is not None:
                self._on_exit()

    def on_exit(self, act: Callable[[], None]) -> None:
        """Call ``act`` at the exit."""
        self._on_exit = act
