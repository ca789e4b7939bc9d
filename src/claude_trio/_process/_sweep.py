"""End what a process left behind.

The CLI's children may outlive it: those in its process group, and, in groups and sessions of their
own, what its Bash tool started.  No walk along the parents finds the latter once the CLI is dead,
but each of them inherits the mark of the run in its environment.

Two facts make the numbers safe.  A number is not given to a new process as long as a process or
zombie, a group or a session has it.  And a pidfd stays with its process: whoever opens one and
*then* looks whether the process is the one that is meant, signals no other.

All of this blocks, so it belongs into a worker thread; it is bounded in time.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from claude_trio._values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "MOST_SECONDS",
    "NOT_OURS",
    "carries",
    "end_group",
    "end_remains",
    "group_exists",
    "has_children",
    "pids",
    "proc_is_ours",
    "stat",
]

# How long SIGTERM may take, and how long everything.
_TERM_SECONDS: Final = 1.0
MOST_SECONDS: Final = 4.0

_POLL_SECONDS: Final = 0.01

# A process is missed if it is in the middle of an exec, when its environment reads as empty, or if
# it was forked after the listing by one that ended before it was looked at.  Both are over in the
# scan after.
_QUIET_SCANS: Final = 2

_READ_SIZE: Final = 1 << 16

# So many at a time, since each takes a descriptor.
_BATCH: Final = 32

# What looking at a process raises when it is gone or somebody else's.
NOT_OURS: Final = (FileNotFoundError, ProcessLookupError, PermissionError)


def end_remains(group: int | None, mark: str | None) -> bool:
    """End all processes of a group and all that carry a mark: SIGTERM, then SIGKILL.

    Args:
      group: The id of a process group and session whose leader was reaped.
      mark: An entry of the environment, ``NAME=value``.  An entry that goes on with a colon after
        it, as nested runs have it, counts as well.

    Returns:
      Whether none of them is known to be left, zombies aside.  Where the system has no usable
      ``/proc``, ``mark`` finds nothing.
    """
    if not proc_is_ours():
        return group is None or end_group(group)
    try:
        carried = None if mark is None else os.fsencode(mark)
        return _end_all(_Remains(group=group, mark=carried))
    except OSError:
        # Too many open files, for one: nobody can tell what is left.
        return False


def end_group(group: int) -> bool:
    """End a process group whose leader was reaped, where there is no ``/proc`` to look at."""
    start = time.monotonic()
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, MOST_SECONDS)):
        if _is_taken(group):
            return True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        while time.monotonic() < start + seconds:
            if not group_exists(group):
                return True
            time.sleep(_POLL_SECONDS)
    return not group_exists(group)


def group_exists(group: int) -> bool:
    """Whether a process group has a member, be it a zombie."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def has_children(pid: int) -> bool:
    """Whether a process has children, zombies included; true where the system does not tell.

    It reads one small file for each thread of the process, and needs no thread of ours.
    """
    threads = f"/proc/{pid}/task"
    try:
        return any([Path(threads, name, "children").read_bytes() for name in os.listdir(threads)])  # noqa: C419, PTH208
    except OSError:
        return True  # A thread has just ended, or the system has no such file.


def _is_taken(group: int) -> bool:
    # The leader was reaped.  If its number has a process, then it was given away again, which
    # means that the group was empty before.
    try:
        os.kill(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@final
@frozen(kw_only=True)
class _Remains:
    group: int | None
    mark: bytes | None

    def have(self, pid: int) -> bool:
        try:
            return self._in_group(pid) or (self.mark is not None and carries(pid, self.mark))
        except NOT_OURS:
            return False

    def _in_group(self, pid: int) -> bool:
        if self.group is None:
            return False
        state, parent, group, session = stat(pid)
        if self.group not in {group, session} or _is_taken(self.group):
            return False
        if state == b"Z" and parent == os.getpid():
            # Orphans come to us where we are the first process of a container, or a subreaper.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        return state not in b"ZX"


def _end_all(remains: _Remains) -> bool:
    start = time.monotonic()
    kill_at, give_up_at = start + _TERM_SECONDS, start + MOST_SECONDS
    spared = frozenset(_lineage())
    denied: set[int] = set()
    quiet = 0
    while quiet < _QUIET_SCANS:
        found = [pid for pid in pids() if pid not in spared and remains.have(pid)]
        found = [pid for pid in found if pid not in denied]
        now = time.monotonic()
        if not found:
            quiet += 1
        elif now >= give_up_at:
            return False
        else:
            quiet = 0
            gentle = now < kill_at
            number = signal.SIGTERM if gentle else signal.SIGKILL
            denied |= _end_found(found[:_BATCH], remains, number, kill_at if gentle else give_up_at)
    return not denied


def _end_found(found: list[int], remains: _Remains, number: int, until: float) -> set[int]:
    """Signal processes, wait for their end, and return those that may not be signalled."""
    denied = set[int]()
    with contextlib.ExitStack() as handles:
        watch = _Watch(remains, handles)
        for pid in found:
            try:
                watch.signal(pid, number)
            except ProcessLookupError:
                continue
            except PermissionError:
                denied.add(pid)
        watch.wait(until)
    return denied


@final
class _Watch:
    """Signal processes, and wait for their exit."""

    def __init__(self, remains: _Remains, handles: contextlib.ExitStack) -> None:
        self._remains = remains
        self._handles = handles
        self._poll = select.poll()
        self._polled = 0
        self._blind = list[int]()

    def signal(self, pid: int, number: int) -> None:
        fd = _open_pidfd(pid)
        if fd is not None:
            self._handles.callback(os.close, fd)
        # Looked at again: by now the number may be another's.
        if not self._remains.have(pid):
            return
        if fd is None:
            os.kill(pid, number)
            self._blind.append(pid)
        else:
            signal.pidfd_send_signal(fd, number)
            self._poll.register(fd, select.POLLIN)
            self._polled += 1

    def wait(self, until: float) -> None:
        while self._polled and (seconds := until - time.monotonic()) > 0:
            for fd, _ in self._poll.poll(seconds * 1000):
                self._poll.unregister(fd)
                self._polled -= 1
                with contextlib.suppress(OSError):
                    # An orphan that came to us; of others there is nothing to reap.
                    os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG)
        while time.monotonic() < until and any(self._remains.have(pid) for pid in self._blind):
            time.sleep(_POLL_SECONDS)


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        # An old kernel, a sandbox that forbids it, or no descriptor left.  Looking again right
        # before the signal is the best that remains.
        return None


def proc_is_ours() -> bool:
    """Whether ``/proc`` is there and numbers the processes as we do."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())  # noqa: PTH115 (text wanted)
    except OSError:
        return False


def pids() -> Iterator[int]:
    """List all processes that there are."""
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208


def _lineage() -> Iterator[int]:
    pid = os.getpid()
    while pid > 0:
        yield pid
        try:
            pid = stat(pid)[1]
        except NOT_OURS:
            return


def stat(pid: int) -> tuple[bytes, int, int, int]:
    """Look at a process: its state, its parent, its group and its session."""
    # The name in parentheses may hold anything, parentheses included: proc_pid_stat(5).
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split(None, 4)
    state, parent, group, session = fields[:4]
    return state, int(parent), int(group), int(session)


def carries(pid: int, mark: bytes) -> bool:
    """Whether a process has an entry in its environment, or one that goes on with a colon."""
    environ = _read(f"/proc/{pid}/environ")
    if mark not in environ:
        return False
    nested = mark + b":"
    return any(entry == mark or entry.startswith(nested) for entry in environ.split(b"\0"))


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(fd, _READ_SIZE)]
        while len(parts[-1]) == _READ_SIZE:
            parts.append(os.read(fd, _READ_SIZE))
        return b"".join(parts)
    finally:
        os.close(fd)
