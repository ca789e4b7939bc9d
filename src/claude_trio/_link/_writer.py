"""One writer of whole lines: at once where stdin takes them, else by a task of its own."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

import attrs
import trio
from trio.lowlevel import enable_ki_protection

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_trio._transport import Transport

__all__ = ["Writer"]


@final
@attrs.define(eq=False, repr=False)
class Writer:
    """Write lines to the CLI's stdin in the order in which they are given.

    Queueing is synchronous, so a cancelled caller has written all of a line or nothing of it.
    """

    nursery: trio.Nursery
    transport: Transport
    patience: float
    """How long stdin may take nothing, in seconds."""
    stalled: Callable[[], None]
    """Called when it has taken nothing for that long."""
    moved: Callable[[], None]
    """Called when a line that waited has gone out."""
    _waiting: deque[bytes] = attrs.field(factory=deque, init=False)
    _running: bool = attrs.field(default=False, init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """The running task's."""
    _broken: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        """Count the lines that wait."""
        return len(self._waiting)

    @property
    def torn(self) -> bool:
        """Whether a part of a line is out and the rest is not."""
        return self._broken or bool(self._waiting)

    @enable_ki_protection
    def send(self, line: bytes) -> None:
        """Write a line, or queue what of it does not go out at once."""
        if self._broken:
            return  # Nobody reads any more; the exit of the CLI tells everybody.
        if not self._waiting:
            written = self._write_now(line)
            if written is None or written == len(line):
                return
            line = line[written:]
        self._waiting.append(line)
        if not self._running:
            self._running = True
            self._scope = trio.CancelScope(shield=True)
            self.nursery.start_soon(self._run)

    def take_back(self, line: bytes) -> bool:
        """Take a line out that waits whole; return whether it did."""
        for at, waiting in enumerate(self._waiting):
            if waiting is line:
                del self._waiting[at]
                self.moved()
                return True
        return False

    def stop(self) -> None:
        """Write no more; a line that is torn stays torn."""
        self._broken = True
        self._waiting.clear()
        self._scope.cancel()

    def _write_now(self, line: bytes) -> int | None:
        try:
            return self.transport.send_nowait(line)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._broken = True
            self._waiting.clear()
            return None

    @enable_ki_protection
    async def _run(self) -> None:  # noqa: ASYNC910  A task of its own.
        progress = trio.current_time()
        with self._scope:
            while self._waiting:
                with trio.move_on_at(progress + self.patience) as wait:
                    await self._wait_writable()
                if wait.cancelled_caught:
                    self.stalled()
                    break
                line = self._waiting[0] if self._waiting else b""
                written = self._write_now(line) if line else None
                if written:
                    progress = trio.current_time()
                    self._written(line, written)
        self._running = False

    async def _wait_writable(self) -> None:  # noqa: ASYNC910  It may be broken already.
        try:
            await self.transport.wait_writable()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._broken = True
            self._waiting.clear()

    def _written(self, line: bytes, count: int) -> None:
        if count < len(line):
            self._waiting[0] = line[count:]
        else:
            self._waiting.popleft()
            self.moved()
