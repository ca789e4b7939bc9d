"""The two pipes and the exit of a CLI that exists in memory only."""

from __future__ import annotations

import math
import signal
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FakeTransport"]

_EXIT_KILL: Final = -9
_STDERR_TAIL: Final = 65536


@final
@attrs.define(eq=False, kw_only=True)
class FakeTransport:
    """What a `FakeClaude` hands out; a `Transport` without a process, a file or real time."""

    deaf_to_term: bool = False
    stdout_held: float = 0.0
    """How long stdout stays open after the exit, as when a grandchild has it."""
    pipe: int | None = None
    """How many bytes stdin holds that were not read yet; without it, any number."""
    piece: int | None = None
    """How many bytes the host gets at a time; without it, all that are there."""
    unread: int | None = None
    """The line of stdin from which on nothing is read; without it, all is."""
    _stdin: bytearray = attrs.field(factory=bytearray, init=False)
    _stdout: bytearray = attrs.field(factory=bytearray, init=False)
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    _exited: trio.Event = attrs.field(factory=trio.Event, init=False)
    _code: int | None = attrs.field(default=None, init=False)
    _stdin_closed: bool = attrs.field(default=False, init=False)
    _stdout_closed: bool = attrs.field(default=False, init=False)
    _reading: bool = attrs.field(default=True, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _stderr: str = attrs.field(default="", init=False)
    _on_stderr: Callable[[str], None] | None = attrs.field(default=None, init=False)
    _on_exit: Callable[[], None] | None = attrs.field(default=None, init=False)
    _on_signal: Callable[[int], None] | None = attrs.field(default=None, init=False)
    _lines: int = attrs.field(default=0, init=False)
    _held_until: float = attrs.field(default=math.inf, init=False)
    pid: None = attrs.field(default=None, init=False)

    # -- the host's side

    @property
    def stderr_tail(self) -> str:
        """The end of what stands on stderr."""
        return self._stderr[-_STDERR_TAIL:]

    async def receive(self) -> bytes:
        """Wait for bytes of stdout; ``b""`` at its end."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while not (self._stdout or self._at_end or self._closed):
            with trio.move_on_at(self._held_until):
                await self._changed.park()
        return self.receive_nowait()

    @property
    def _at_end(self) -> bool:
        return self._stdout_closed or trio.current_time() >= self._held_until

    def receive_nowait(self) -> bytes:
        """Take what is there of stdout; ``b""`` at its end."""
        if self._closed:
            raise trio.ClosedResourceError
        if not self._stdout and not self._at_end:
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
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send the fake a signal; after the exit, do nothing."""
        if self._code is not None or (number == signal.SIGTERM and self.deaf_to_term):
            return
        if self._on_signal is None:
            self.exit(128 + number)
        else:
            self._on_signal(number)

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

    def complain(self, text: str) -> None:
        """Write to stderr."""
        self._stderr += text
        if self._on_stderr is not None:
            self._on_stderr(text)

    def on_stderr(self, act: Callable[[str], None]) -> None:
        """Call ``act`` with all that is written to stderr, what stands there already first."""
        self._on_stderr = act
        act(self._stderr)

    def close_stdout(self) -> None:
        """End stdout."""
        self._stdout_closed = True
        self._changed.unpark_all()

    def read_stdin(self, reading: bool) -> None:  # noqa: FBT001  It is a switch.
        """Go on reading stdin, or stop."""
        self._reading = reading
        self._changed.unpark_all()

    @property
    def has_line(self) -> bool:
        """Whether a whole line of stdin can be read."""
        return self._reads and b"\n" in self._stdin and self._code is None

    @property
    def _reads(self) -> bool:
        return self._reading and (self.unread is None or self._lines + 1 < self.unread)

    async def read_line(self) -> bytes | None:
        """Wait for a line of stdin, the last one perhaps without its LF; None at the end."""
        line = bytearray()
        while not line.endswith(b"\n"):
            end = self._stdin.find(b"\n") + 1 or len(self._stdin)
            if self._reads and end:
                line += self._stdin[:end]
                del self._stdin[:end]
                self._changed.unpark_all()
            elif self._stdin_closed and self._reads:
                return bytes(line) or None
            else:
                await self._changed.park()
        self._lines += 1
        return bytes(line)

    def exit(self, code: int) -> None:
        """Exit; the first code counts."""
        if self._code is None:
            self._code = code
            if self.stdout_held:
                self._held_until = trio.current_time() + self.stdout_held
            else:
                self.close_stdout()
            self._changed.unpark_all()
            self._exited.set()
            if self._on_exit is not None:
                self._on_exit()

    def on_signal(self, act: Callable[[int], None]) -> None:
        """Call ``act`` with the number of each signal, which then sees to the exit."""
        self._on_signal = act

    def on_exit(self, act: Callable[[], None]) -> None:
        """Call ``act`` at the exit."""
        self._on_exit = act
