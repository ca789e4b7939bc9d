"""Start a process, follow it to its exit, and end what is left of its group.

The process leads a session and a process group of its own.  Its number and the group's are the
same, and they are ours until the leader is reaped: until then signals go to the group by number.
Reaping is the last act, done only here, by whoever first learns of the exit; from then on the
number is used to ask whether the group is empty, and `_sweep` ends what is not.

The parent-death signal of Linux is not used: it follows the *thread* that started the process, and
Trio starts processes in a worker thread, which ends when it has idled for a while.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Final, final

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from claude_trio._errors import LaunchFailed
from claude_trio._options import RUN_VARIABLE
from claude_trio._process._pipes import ReadEnd, Tail, WriteEnd
from claude_trio._process._program import explain, find
from claude_trio._process._sweep import MOST_SECONDS, end_remains, group_exists, has_children

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio.lowlevel import FdStream

__all__ = ["ProcessTransport", "spawn"]

_STDERR_TAIL: Final = 1 << 16
# What a grandchild that holds stderr may still add when the pipe is closed.
_LAST_READS: Final = 16
# SIGKILL ends everything but a process that hangs in the kernel.
_KILL_SECONDS: Final = 1.0
# How much later than it promises a worker thread may end.
_THREAD_SECONDS: Final = 0.5

# A scan of all processes is work for one core.
_SWEEPERS: Final = 4
_sweepers: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("sweepers")


@enable_ki_protection
async def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    nursery: trio.Nursery,
    /,
    *,
    stderr_tail: int = _STDERR_TAIL,
) -> ProcessTransport:
    """Start a process and return its transport.

    A first argument without a slash is looked for in PATH of ``env``; ``claude`` is what
    CLAUDE_CLI_PATH names, and is looked for where installers put it as well.

    Args:
      argv: The program and its arguments.
      env: The whole environment.
      cwd: The working directory; None for ours.
      nursery: Where the task that drains stderr runs, until the transport is closed.
      stderr_tail: How many bytes of stderr are kept.

    Raises:
      CLINotFound: if there is no such program, with the places that were looked at.
      LaunchFailed: if it is there but does not start: the working directory, rights, the format
        of the file, the size of the command line, or too few resources.

    Cancellation:
      A checkpoint.  If cancelled, the process was not started, or it was killed and reaped.
    """
    if os.name != "posix":
        raise LaunchFailed("processes are started on POSIX systems only")
    command = list(argv)
    try:
        if os.sep not in command[0]:
            command[0] = await trio.to_thread.run_sync(find, command[0], env, cwd)
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        error = exc
    else:
        return await _adopt(process, _own_mark(env), nursery, stderr_tail)
    raise await trio.to_thread.run_sync(explain, error, command, env, cwd) from error


async def _adopt(
    process: trio.Process, mark: str | None, nursery: trio.Nursery, stderr_tail: int
) -> ProcessTransport:
    # The worker thread that starts a process cannot be cancelled, so that a cancellation meanwhile
    # is noticed here, where there is somebody to end the process.
    transport = ProcessTransport(process, mark, Tail(stderr_tail))
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
        transport.start_drain(nursery)
    except BaseException:  # Whatever it is, nobody else could end the process.
        # It has been told nothing yet, so there is nothing that it could finish.
        transport.kill()
        with trio.move_on_after(_KILL_SECONDS + MOST_SECONDS + _THREAD_SECONDS, shield=True):
            await transport.aclose(sweep=True)
        raise
    return transport


def _own_mark(env: Mapping[str, str]) -> str | None:
    # What carries the mark of the run that we are part of is not ours to end.
    mark = env.get(RUN_VARIABLE)
    outer = os.environ.get(RUN_VARIABLE, "")
    return f"{RUN_VARIABLE}={mark}" if mark and not f"{outer}:".startswith(f"{mark}:") else None


@final
@attrs.define(eq=False, repr=False)
class ProcessTransport:
    """A running process; a `Transport`."""

    _process: trio.Process
    _mark: str | None
    _tail: Tail
    _stdin: WriteEnd = attrs.field(init=False)
    _stdout: ReadEnd = attrs.field(init=False)
    _stderr: ReadEnd = attrs.field(init=False)
    _returncode: int | None = attrs.field(default=None, init=False)
    _group_left: bool = attrs.field(default=True, init=False)
    _had_children: bool = attrs.field(default=True, init=False)
    _drained: trio.Event | None = attrs.field(default=None, init=False)
    _closing: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _host: int = attrs.field(factory=os.getpid, init=False)

    def __attrs_post_init__(self) -> None:
        self._stdin = WriteEnd(_stream(self._process.stdin))
        self._stdout = ReadEnd(_stream(self._process.stdout))
        self._stderr = ReadEnd(_stream(self._process.stderr))
        _running.add(self)

    def __repr__(self) -> str:
        # Without the arguments, which may hold secrets.
        state = "running" if self._returncode is None else f"exited with {self._returncode}"
        return f"<{type(self).__name__} of process {self.pid}, {state}>"

    @property
    def pid(self) -> int:
        """The process id, also after the exit."""
        return self._process.pid

    @property
    @enable_ki_protection
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self._returncode is None and (code := self._process.poll()) is not None:
            self._note_exit(code)
        return self._returncode

    @property
    @enable_ki_protection
    def stderr_tail(self) -> str:
        """The last text that came on stderr, all that is there now included."""
        self._drain_nowait()
        return self._tail.text

    async def receive(self) -> bytes:
        """Wait for bytes of stdout; ``b""`` at its end.

        Raises:
          trio.ClosedResourceError: if the transport is closed, or closes meanwhile.
          trio.BusyResourceError: if another task waits.
        """
        return await self._stdout.receive()

    def receive_nowait(self) -> bytes:
        """Take the bytes of stdout that are there; ``b""`` at its end.

        Raises:
          trio.WouldBlock: if there are none now.
          trio.ClosedResourceError: if the transport is closed.
        """
        return self._stdout.receive_nowait()

    def send_nowait(self, data: bytes) -> int:
        """Write what stdin takes now, and say how many bytes that was.

        Raises:
          trio.BrokenResourceError: if nobody reads stdin any more.
          trio.ClosedResourceError: if stdin was closed by us.
        """
        return self._stdin.send_nowait(data)

    async def wait_writable(self) -> None:
        """Wait until stdin may take more, or nobody reads it any more.

        Raises:
          trio.ClosedResourceError: if stdin is closed, or closes meanwhile.
        """
        await self._stdin.wait_writable()

    def close_stdin(self) -> None:
        """Close stdin; again is fine."""
        if self._returncode is None:
            self._had_children = has_children(self.pid)
        self._stdin.close()

    @enable_ki_protection
    def terminate(self) -> None:
        """Ask the process and its group to end (SIGTERM); after the exit, do nothing."""
        self._signal(signal.SIGTERM)

    @enable_ki_protection
    def kill(self) -> None:
        """End the process and its group (SIGKILL); after the exit, do nothing."""
        self._signal(signal.SIGKILL)

    @enable_ki_protection
    async def wait_exit(self) -> int:
        """Wait for the exit, and reap; the code, negative for a signal."""
        code = await self._process.wait()
        self._note_exit(code)
        return code

    @enable_ki_protection
    async def aclose(self, *, sweep: bool | None) -> bool:
        """End what the process left behind, close the pipes and end the stderr drain.

        Call it after the exit, within a shield; a process that still runs is killed.  It ends
        within about five seconds.  Again is fine.

        Args:
          sweep: Whether to end also what the process left outside of its group: whatever carries
            the run's mark in its environment.  None does it if the process had children when its
            stdin was closed.

        Returns:
          Whether nothing of the group, nor of what was swept, is known to be left.

        Cancellation:
          If cancelled, the pipes are closed, but something may be left.
        """
        try:
            async with self._closing:
                if self.returncode is None:
                    # Before the end of its input, upon which it may exit as if all were well.
                    await self._end_leader()
                self._stdin.close()
                wanted = self._had_children if sweep is None else sweep
                mark = self._mark if wanted else None
                gone = self._is_all_gone(mark) or await self._end_rest(mark)
        finally:
            self._close_pipes()
        if self._drained is not None:
            # It ends at once, since its pipe is closed.
            await self._drained.wait()
        return gone

    def terminate_at_exit(self) -> None:
        """Send SIGTERM where no run of Trio is left to do better."""
        # A fork of ours inherits the transport, but not the process.
        if self._host == os.getpid():
            with contextlib.suppress(OSError):
                # Not a poll, which would reap.
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    os.killpg(self.pid, signal.SIGTERM)

    def start_drain(self, nursery: trio.Nursery) -> None:
        """Start the task that reads stderr, whatever happens to the nursery, until `aclose`."""
        nursery.start_soon(self._drain)
        self._drained = trio.Event()

    async def _drain(self) -> None:  # noqa: ASYNC910 (a closed pipe is its end)
        try:
            with (
                trio.CancelScope(shield=True),
                contextlib.suppress(trio.ClosedResourceError, trio.BrokenResourceError),
            ):
                while data := await self._stderr.receive():
                    self._tail.add(data)
        finally:
            if self._drained is not None:
                self._drained.set()

    def _drain_nowait(self) -> None:
        # The task that drains may not have run since the last text came, and who asks wants the
        # reason of an exit.
        with contextlib.suppress(
            trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError
        ):
            for _ in range(_LAST_READS):
                if not (data := self._stderr.receive_nowait()):
                    break
                self._tail.add(data)

    def _note_exit(self, code: int) -> None:
        # Whoever reaps calls this in the same step, before anybody else can have the number.
        if self._returncode is None:
            self._returncode = code
            self._group_left = group_exists(self.pid)
            _running.discard(self)

    def _signal(self, number: int) -> None:
        if self.returncode is None:
            # A leader that we may not signal, as behind `sudo`, is not an error: `aclose` tells.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def _end_leader(self) -> None:
        self.kill()
        with trio.move_on_after(_KILL_SECONDS):
            await self.wait_exit()

    def _is_all_gone(self, mark: str | None) -> bool:
        if self.returncode is None:
            return False
        self._group_left = self._group_left and group_exists(self.pid)
        return not self._group_left and mark is None

    async def _end_rest(self, mark: str | None) -> bool:
        # While the leader hangs in the kernel its group cannot be told from it.
        group = self.pid if self._group_left and self.returncode is not None else None
        # The thread bounds itself; a read of `/proc` that hangs is left to itself.
        with trio.move_on_after(MOST_SECONDS + _THREAD_SECONDS):
            gone = await trio.to_thread.run_sync(
                end_remains, group, mark, abandon_on_cancel=True, limiter=sweep_limiter()
            )
            if gone and group is not None:
                self._group_left = False
            return gone and self.returncode is not None
        return False

    def _close_pipes(self) -> None:
        self._drain_nowait()
        self._stdin.close()
        self._stdout.close()
        self._stderr.close()


def _stream(stream: object) -> FdStream:
    # Not imported by name, since elsewhere Trio has none.
    if not isinstance(stream, trio.lowlevel.FdStream):
        raise TypeError(f"a pipe of a process is no FdStream but {stream!r}")
    return stream


def sweep_limiter() -> trio.CapacityLimiter:
    # Not the default one: whatever a program does in threads, closing does not wait for it.
    try:
        return _sweepers.get()
    except LookupError:
        limiter = trio.CapacityLimiter(_SWEEPERS)
        _sweepers.set(limiter)
        return limiter


# Not reaped yet.  A run of Trio that ends in the regular way leaves none.
_running: Final = set[ProcessTransport]()


@atexit.register
def _terminate_running() -> None:
    for transport in tuple(_running):
        transport.terminate_at_exit()
