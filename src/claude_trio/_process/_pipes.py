"""The ends of a process's pipes that are ours.

They do without the methods of Trio's streams: a read there tries first and waits then, which is a
failed read and a checkpoint more for each piece of a stream that comes slowly, and a write waits.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, final

import attrs
import trio
from trio.lowlevel import enable_ki_protection

if TYPE_CHECKING:
    from trio.lowlevel import FdStream

if sys.platform == "linux":
    import fcntl

__all__ = ["ReadEnd", "Tail", "WriteEnd"]

# The capacity of a pipe, and one that makes lines of megabytes six times as cheap (measured).
_SMALL: Final = 1 << 16
_LARGE: Final = 1 << 20

_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_MOST_CONTINUATIONS: Final = 3


@final
@attrs.define(eq=False, repr=False)
class ReadEnd:
    """The end that we read."""

    _stream: FdStream
    _size: int = _SMALL
    _may_grow: bool = sys.platform == "linux"

    @enable_ki_protection
    async def receive(self) -> bytes:
        """Wait for bytes; ``b""`` at the end."""
        while True:
            await trio.lowlevel.wait_readable(_open_fd(self._stream))
            try:
                return self.receive_nowait()
            except trio.WouldBlock:
                # Another task took them without waiting.
                continue

    @enable_ki_protection
    def receive_nowait(self) -> bytes:
        """Take the bytes that are there; ``b""`` at the end."""
        fd = _open_fd(self._stream)
        try:
            data = os.read(fd, self._size)
        except BlockingIOError:
            raise trio.WouldBlock from None
        except OSError as exc:
            raise trio.BrokenResourceError(f"cannot read from the process: {exc}") from exc
        if self._size != _SMALL or len(data) == _SMALL:
            self._fit(fd, data)
        return data

    @enable_ki_protection
    def close(self) -> None:
        """Close it and wake who waits; again is fine."""
        self._stream.close()

    def _fit(self, fd: int, data: bytes) -> None:
        # A full read without a line's end: inside of a long line, large reads pay.  Elsewhere they
        # do not, and large pipes count against the user's limit of pipe memory, beyond which new
        # pipes get two pages each.
        wanted = _SMALL if b"\n" in data else _LARGE
        if sys.platform == "linux" and wanted != self._size and self._may_grow:
            try:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, wanted)
            except OSError:
                # Growing: the limit is reached, now and probably later.  Shrinking: more is in
                # it; another read comes.
                self._may_grow = self._size == _LARGE
            else:
                self._size = wanted


@final
@attrs.define(eq=False, repr=False)
class WriteEnd:
    """The end that we write."""

    _stream: FdStream

    @enable_ki_protection
    def send_nowait(self, data: bytes) -> int:
        """Write what fits, and say how many bytes that was."""
        try:
            return os.write(_open_fd(self._stream), data)
        except BlockingIOError:
            return 0
        except OSError as exc:
            raise trio.BrokenResourceError(f"cannot write to the process: {exc}") from exc

    async def wait_writable(self) -> None:
        """Wait until something fits, or nobody reads."""
        await trio.lowlevel.wait_writable(_open_fd(self._stream))

    @enable_ki_protection
    def close(self) -> None:
        """Close it and wake who waits; again is fine."""
        self._stream.close()


@final
@attrs.define(eq=False, repr=False)
class Tail:
    """The last bytes of a stream."""

    _limit: int
    _kept: bytearray = attrs.field(factory=bytearray, init=False)
    _cut: bool = attrs.field(default=False, init=False)

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self._kept += data
        if (excess := len(self._kept) - self._limit) > 0:
            del self._kept[:excess]
            self._cut = True

    @property
    def text(self) -> str:
        """What was kept, with U+FFFD for what is no UTF-8."""
        data = bytes(self._kept)
        if self._cut:
            # The cut may have gone through a character, whose rest says nothing.
            head = data[:_MOST_CONTINUATIONS].lstrip(_CONTINUATION)
            data = head + data[_MOST_CONTINUATIONS:]
        return data.decode("utf-8", "replace")


def _open_fd(stream: FdStream) -> int:
    fd = stream.fileno()
    if fd < 0:
        raise trio.ClosedResourceError("this pipe is closed")
    return fd
