"""What there is at a moment that can be left behind: tasks, children, descriptors, threads."""

from __future__ import annotations

import contextlib
import os
import textwrap
import threading
import time
import traceback
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs
import trio
from trio._core._thread_cache import THREAD_CACHE

from claude_trio._process._sweep import NOT_OURS, pids, proc_is_ours, stat

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Inventory", "Stack", "command_of", "describe_task", "render", "stack_of"]

Stack: TypeAlias = tuple[tuple[str, int, str], ...]
"""Where a task is, outermost call first: file, line and function."""


# How long the last instructions of a thread may take, and how often they are looked at.
_GOING_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.001

# How a task hands itself over to the scheduler is the same for all of them.
_TRAPS: Final = trio.lowlevel.wait_task_rescheduled.__code__.co_filename


@final
@attrs.frozen(kw_only=True)
class Inventory:
    """What there is.

    Tasks are those of the run that it is taken in, if any; children and descriptors are seen where
    there is a ``/proc``.
    """

    tasks: frozenset[trio.lowlevel.Task]
    children: frozenset[int]
    descriptors: frozenset[tuple[int, str]]
    threads: frozenset[threading.Thread]

    @classmethod
    def take(cls) -> Inventory:
        """Look at what there is now."""
        seen = proc_is_ours()
        return cls(
            tasks=frozenset(_tasks()),
            children=frozenset(_children() if seen else ()),
            descriptors=frozenset(_descriptors() if seen else ()),
            threads=_threads(),
        )

    def beyond(self, before: Inventory) -> list[str]:
        """Describe what was not there before."""
        return [
            *sorted(map(describe_task, self.tasks - before.tasks)),
            *(f"child {pid}: {command_of(pid)}" for pid in sorted(self.children - before.children)),
            *(f"descriptor {fd}: {to}" for fd, to in sorted(self.descriptors - before.descriptors)),
            *(f"thread {thread.name!r}" for thread in _staying(self.threads - before.threads)),
        ]


def _tasks() -> Iterator[trio.lowlevel.Task]:
    try:
        root = trio.lowlevel.current_root_task()
    except RuntimeError:
        return  # There is no run.
    to_do = [root] if root is not None else []
    while to_do:
        task = to_do.pop()
        yield task
        for nursery in task.child_nurseries:
            to_do.extend(nursery.child_tasks)


def stack_of(task: trio.lowlevel.Task) -> Stack:
    """Say where a task is."""
    return tuple(
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in task.iter_await_frames()
        if frame.f_code.co_filename != _TRAPS
    )


def render(stack: Stack) -> str:
    """Write a stack as a traceback does, indented."""
    entries = [(*place, None) for place in stack]
    return textwrap.indent("".join(traceback.StackSummary.from_list(entries).format()), "  ")


def describe_task(task: trio.lowlevel.Task) -> str:
    """Say what a task is called and where it is."""
    return f"task {task.name!r}:\n{render(stack_of(task)).rstrip()}"


def _children() -> Iterator[int]:
    try:
        # As a rule there are none, zombies included, and this spares a look at all processes.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return
    for pid in pids():
        with contextlib.suppress(*NOT_OURS):
            if stat(pid)[1] == os.getpid():
                yield pid


def command_of(pid: int) -> str:
    """Say what a process runs, and in which state it is."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123  As quick as it is.
            words = file.read().split(b"\0")
        return f"{stat(pid)[0].decode()} {os.fsdecode(b' '.join(words))}".rstrip()
    except NOT_OURS:
        return "(gone)"


def _descriptors() -> Iterator[tuple[int, str]]:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  For each point of `cancel_everywhere`.
        # The descriptor of this very listing is gone by now.
        with contextlib.suppress(FileNotFoundError):
            yield int(name), os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115


def _threads() -> frozenset[threading.Thread]:
    """Find the threads, but for those of Trio's that wait for their next job.

    These end after ten seconds if there is none, and nothing can end them before.
    """
    idle = {worker._thread for worker in list(THREAD_CACHE._idle_workers)}  # noqa: SLF001
    return frozenset(threading.enumerate()) - idle


def _staying(threads: frozenset[threading.Thread]) -> frozenset[threading.Thread]:
    """Give threads a moment to go: what they do last, nobody can wait for."""
    until = time.monotonic() + _GOING_SECONDS
    while threads and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
        threads &= _threads()
    return threads
