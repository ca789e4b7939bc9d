"""Our own stdin and stdout, which we share with whoever started us.

Setting them to non-blocking would do so for everybody who has them.  So they are read and written
only when they are ready, and no more is written at a time than a ready pipe takes.
"""

from __future__ import annotations

import os
import select
import signal
import stat
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

__all__ = ["FORWARDED", "Output", "die_by", "is_pipe", "read_nowait", "wait_readable"]

FORWARDED: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""What a host sends to a CLI."""
_PIECE: Final = 1 << 16


def is_pipe(fd: int) -> bool:
    """Whether it is a pipe, and nothing that is one in both directions."""
    return stat.S_ISFIFO(os.fstat(fd).st_mode)


def _can_wait(fd: int) -> bool:
    # A file is always ready, and nobody can wait for it.
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


async def wait_readable(fd: int) -> None:
    """Wait until there are bytes, or their end."""
    if _can_wait(fd):
        await trio.lowlevel.wait_readable(fd)
    else:
        await trio.lowlevel.checkpoint()


def read_nowait(fd: int) -> bytes | None:
    """Take the bytes that are there; ``b""`` at the end, None if there are none now."""
    try:
        return os.read(fd, _PIECE) if select.select([fd], [], [], 0)[0] else None
    except BlockingIOError:
        return None


class Output:
    """Something to write to, until nobody reads it any more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waits = _can_wait(fd)
        self._broken = False

    async def write(  # noqa: ASYNC910  There may be nothing to write.
        self, data: bytes, before: Callable[[bytes], object] = len
    ) -> None:
        """Write all of it, unless nobody reads it any more.

        Args:
          data: What is written.
          before: Told each piece right before it is written.
        """
        for at in range(0, len(data), select.PIPE_BUF):
            piece = data[at : at + select.PIPE_BUF]
            await self._wait_writable()
            before(piece)
            while rest := self._write_nowait(piece):
                piece = rest
                await self._wait_writable()

    async def _wait_writable(self) -> None:
        if self._waits and not self._broken:
            await trio.lowlevel.wait_writable(self._fd)
        else:
            await trio.lowlevel.checkpoint()

    def _write_nowait(self, data: bytes) -> bytes:
        try:
            return b"" if self._broken else data[os.write(self._fd, data) :]
        except BlockingIOError:
            return data
        except (BrokenPipeError, ConnectionResetError):
            self._broken = True
            return b""


def die_by(number: int) -> NoReturn:
    """End this process by a signal, so that whoever waits for it learns of that."""
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise AssertionError("unreachable")
