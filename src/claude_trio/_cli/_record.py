"""``claude-trio record FILE -- ARGUMENTS``: stand in for the CLI, and write down what is said.

The CLI stays in our process group, so that what a host sends to the group reaches both.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final, final

import trio

from claude_trio import LaunchFailed
from claude_trio._cli._stdio import (
    FORWARDED,
    Output,
    die_by,
    is_pipe,
    read_nowait,
    wait_readable,
)
from claude_trio.testing import Recorder, find_claude, recording

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

__all__ = ["record"]

_INSIDE: Final = "CLAUDE_TRIO_RECORD"
_STDERR_TAIL: Final = 1 << 16
# How many reads of stdin may wait for the CLI.
_WAITING: Final = 16
_PR_SET_PDEATHSIG: Final = 1
# How long what has exited may be silent before nothing more of it is expected, in seconds.
_SILENCE: Final = 0.5
# How long a CLI whose host is gone may take to end by itself, and then after SIGTERM.
_ALONE: Final = 2
_TERM: Final = 5


async def record(arguments: argparse.Namespace) -> int:
    """Run the CLI in our place, and record it."""
    file: str = arguments.file
    if _INSIDE in os.environ:
        raise ValueError(f"the claude that is to be recorded is a recording itself ({_INSIDE})")
    words: list[str] = arguments.arguments
    words = words[1:] if words[:1] == ["--"] else words
    program, code = find_claude(), None
    try:
        with recording(file) as recorder, trio.open_signal_receiver(*FORWARDED) as signals:
            recorder.begin(["claude", *words], os.environ)
            code = await _Proxy(_start(program, words), recorder).run(signals)
    except OSError as exc:
        if code is None:
            raise ValueError(f"cannot record to {file}: {exc}") from exc
        # The host gets what the CLI said, whatever became of the recording.
        sys.stderr.write(f"claude-trio: the recording {file} is not whole: {exc}\n")
    if code < 0:
        die_by(-code)
    return code  # noqa: ASYNC910  It has run.


def _start(program: str, words: Sequence[str]) -> subprocess.Popen[bytes]:
    # In the main thread, since the signal of a parent's death is that of the thread's.
    try:
        return subprocess.Popen(  # noqa: S603  It is what we are asked to run.
            [program, *words],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, _INSIDE: "1"},
            preexec_fn=_end_with_us(),  # noqa: PLW1509  There is no thread yet.
        )
    except OSError as exc:
        raise LaunchFailed(f"cannot start {program}: {exc.strerror}") from exc


def _end_with_us() -> Callable[[], object] | None:
    """Ask Linux to end a child when we are killed; elsewhere it ends when stdin does."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return functools.partial(prctl, _PR_SET_PDEATHSIG, int(signal.SIGTERM))


@final
class _Proxy:
    """The CLI that we stand in for."""

    def __init__(self, child: subprocess.Popen[bytes], recorder: Recorder) -> None:
        self._child, self._recorder = child, recorder
        self._stdin, self._stdout, self._stderr = (
            trio.lowlevel.FdStream(os.dup(pipe.fileno()))
            for pipe in (child.stdin, child.stdout, child.stderr)
            if pipe is not None
        )
        self._to_cli, self._from_host = trio.open_memory_channel[bytes](_WAITING)
        self._heard_all = False
        self._outputs = trio.CancelScope()
        self._ended = trio.Event()
        self._passed_on = 0
        self._writes = 0
        self._patient = True
        self._tail = b""

    async def run(self, signals: AsyncIterator[int]) -> int:
        """Pass everything on until the CLI has exited; return its code."""
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._pass_signals_on, signals)
            for act in (self._listen, self._tell, self._pass_outputs_on):
                nursery.start_soon(act)
            code = await trio.to_thread.run_sync(self._child.wait, abandon_on_cancel=True)
            await self._drain()
            nursery.cancel_scope.cancel()
        self._recorder.ended(code, self._tail.decode(errors="replace"))
        return code

    async def _pass_signals_on(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            self._patient = False
            if self._child.poll() is None:
                self._send(signal.Signals(number))

    def _send(self, number: signal.Signals) -> None:
        self._recorder.happened("signal", signal=number.name)
        self._child.send_signal(number)

    async def _listen(self) -> None:  # noqa: ASYNC910  Nobody may want to hear it.
        with contextlib.suppress(trio.BrokenResourceError):
            async with self._to_cli:
                while not self._heard_all:
                    await wait_readable(0)
                    if data := self._hear():
                        await self._to_cli.send(data)

    def _hear(self) -> bytes:
        """Take what the host has said by now."""
        data = None if self._heard_all else read_nowait(0)
        if data == b"":
            self._heard_all = True
            self._recorder.happened("stdin_closed")
        elif data is not None:
            self._recorder.host_wrote(data)
        return data or b""

    def _say(self, data: bytes) -> None:
        """Note what the host is about to hear, behind what it has said before.

        What it says depends on what it has heard, and that order is what a recording keeps.
        """
        while self._has_room() and (said := self._hear()):
            self._to_cli.send_nowait(said)
        self._recorder.cli_wrote(data)

    def _has_room(self) -> bool:
        queue = self._to_cli.statistics()
        waiting = queue.current_buffer_used + queue.tasks_waiting_send
        return waiting < _WAITING and queue.open_receive_channels > 0

    async def _tell(self) -> None:  # noqa: ASYNC910  Nobody may want to hear it.
        with contextlib.suppress(trio.BrokenResourceError):
            async with self._stdin, self._from_host:
                async for data in self._from_host:
                    await self._stdin.send_all(data)
        if self._heard_all:
            await self._end_with_host()

    async def _end_with_host(self) -> None:
        """End the CLI when the host neither writes nor reads any more: it is gone."""
        if sys.platform != "linux" or not is_pipe(1):
            return  # noqa: ASYNC910  It cannot be told.
        # Of a pipe that is written to this tells only that nobody reads it.
        await trio.lowlevel.wait_readable(1)
        await trio.sleep(_ALONE)
        self._send(signal.SIGTERM)
        await trio.sleep(_TERM)
        self._send(signal.SIGKILL)

    async def _pass_outputs_on(self) -> None:
        with self._outputs:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_stdout_on)
                nursery.start_soon(self._pass_stderr_on)
        self._ended.set()

    async def _pass_stdout_on(self) -> None:
        await self._pass_on(self._stdout, functools.partial(Output(1).write, before=self._say))
        self._recorder.happened("stdout_eof")

    async def _pass_stderr_on(self) -> None:
        await self._pass_on(self._stderr, functools.partial(Output(2).write, before=self._keep))

    def _keep(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-_STDERR_TAIL:]

    async def _pass_on(
        self, stream: trio.lowlevel.FdStream, write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        async with stream:
            while data := await stream.receive_some():
                self._passed_on += 1
                self._writes += 1
                await write(data)
                self._writes -= 1

    async def _drain(self) -> None:  # noqa: ASYNC910  The end may be there.
        """Wait for the last words.

        Exit is not the end of the pipes: what the CLI has left behind may hold them open.  A host
        that reads slowly is waited for, unless it has sent a signal.
        """
        while not self._ended.is_set():
            before = self._passed_on
            with trio.move_on_after(_SILENCE):
                await self._ended.wait()
            if self._passed_on == before and not (self._writes and self._patient):
                self._outputs.cancel()
