"""``claude-trio-fake``: a scripted CLI as a program, for tests of whatever starts ``claude``."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from claude_trio.testing._fake_file import BadScript, load_fake
from claude_trio.testing._fake_launch import VERSION
from claude_trio.testing._fake_witness import Witness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from claude_trio.testing._fake import FakeClaude
    from claude_trio.testing._fake_transport import FakeTransport

__all__ = ["main"]

_USAGE: Final = """usage: claude-trio-fake SCRIPT [FLAG ...]

Be the claude CLI, and let the model say what a script says.  SCRIPT is a JSON file, or
MODULE:NAME in Python; the flags are those of claude.
"""
_EXIT_USAGE: Final = 2
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK: Final = 65536
_LONG: Final = 3600.0
_SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program, and exit as the CLI would."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in {"-h", "--help"}:
        sys.stdout.write(_USAGE)
        sys.exit(0 if arguments else _EXIT_USAGE)
    if "--version" in arguments[:2]:
        sys.stdout.write(f"{VERSION} (Claude Code)\n")
        sys.exit(0)
    source, *flags = arguments
    try:
        fake = load_fake(source)
    except BadScript as exc:
        sys.stderr.write(f"claude-trio-fake: {exc}\n")
        sys.exit(_EXIT_USAGE)
    code, held = trio.run(_serve, fake, flags)
    if held:
        _leave_child(held)
    if code < 0:
        _die_by(-code)
    sys.exit(code)


async def _serve(fake: FakeClaude, flags: Sequence[str]) -> tuple[int, float]:
    """Be the fake on the pipes of this process; return its exit code, and how it leaves stdout."""
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            transport = await fake.launch_seen(
                Witness(), flags, dict(os.environ), str(Path.cwd()), nursery
            )
            transport.on_stderr(_complain)
            nursery.start_soon(_hear_signals, transport, signals)
            nursery.start_soon(_read, transport)
            nursery.start_soon(_write, transport)
            code = await transport.wait_exit()
            nursery.cancel_scope.cancel()
    try:
        while data := transport.receive_nowait():
            _write_all(data)
    except trio.WouldBlock:
        pass  # A child is to hold stdout open.
    return code, transport.stdout_held


async def _hear_signals(transport: FakeTransport, signals: AsyncIterator[int]) -> None:
    async for number in signals:
        transport.signal(number)


async def _read(transport: FakeTransport) -> None:
    """Bring what the host writes."""
    try:
        while data := await trio.to_thread.run_sync(_read_some, abandon_on_cancel=True):
            while data := data[transport.send_nowait(data) :]:
                await transport.wait_writable()
        transport.close_stdin()
    except trio.BrokenResourceError:
        pass  # It has exited.


def _read_some() -> bytes:
    try:
        return os.read(_STDIN, _CHUNK)
    except OSError:
        return b""


async def _write(transport: FakeTransport) -> None:
    """Bring what the fake writes; a host that has hung up gets nothing, and is not missed."""
    while data := await transport.receive():
        # It goes to its end, so that a signal in between tears no line.
        await trio.to_thread.run_sync(_write_all, data)
    os.close(_STDOUT)


def _write_all(data: bytes) -> None:
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(_STDOUT, data) :]


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_STDERR, text.encode(errors="replace"))


def _leave_child(seconds: float) -> None:
    """Leave a child that holds stdout open, and nothing else."""
    code = f"import time; time.sleep({min(seconds, _LONG)})"
    subprocess.Popen(  # noqa: S603  It is this Python, and a number.
        [sys.executable, "-S", "-c", code], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _die_by(number: int) -> None:
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
