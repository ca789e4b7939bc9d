"""See that a test leaves no child, no descendant, no descriptor and no task."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["assert_nothing_left", "children", "is_alive"]

# Every process that a test starts inherits it, with the rest of our environment.
_VARIABLE: Final = "CLAUDE_TRIO_TEST_RUN"


@contextlib.contextmanager
def assert_nothing_left() -> Iterator[None]:
    """Fail unless all that the block starts is gone right at its end, without a wait.

    Processes are found as our children, zombies included, and by what they inherit of
    ``os.environ``, whichever group or session they are in: start them with ``os.environ``, or a
    copy that is made within the block.  Within a run of Trio, tasks are counted as well.
    """
    before = _Inventory.take()
    outer = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(uuid.uuid4())
    mark = f"{_VARIABLE}={os.environ[_VARIABLE]}".encode()
    try:
        yield
        left = _Inventory.take().beyond(before) + [
            f"process {pid}: {_command(pid)}" for pid in _marked(mark)
        ]
        assert not left, "something is left:\n  " + "\n  ".join(left)
    finally:
        if outer is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = outer
        for pid in _marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def children() -> set[int]:
    """Find the children of this process, zombies included."""
    found = set()
    for pid in _pids():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(_stat(pid)[1]) == os.getpid():
                found.add(pid)
    return found


def is_alive(pid: int) -> bool:
    """Whether the process is there, and no zombie."""
    try:
        return _stat(pid)[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


@attrs.frozen(kw_only=True)
class _Inventory:
    children: frozenset[int]
    descriptors: frozenset[tuple[str, str]]
    tasks: int

    @classmethod
    def take(cls) -> _Inventory:
        try:
            tasks = trio.lowlevel.current_statistics().tasks_living
        except RuntimeError:
            tasks = 0
        return cls(
            children=frozenset(children()), descriptors=frozenset(_descriptors()), tasks=tasks
        )

    def beyond(self, before: _Inventory) -> list[str]:
        return [
            *(f"child {pid}: {_command(pid)}" for pid in self.children - before.children),
            *(f"descriptor {fd}: {to}" for fd, to in self.descriptors - before.descriptors),
            *([f"tasks: {self.tasks - before.tasks}"] if self.tasks > before.tasks else []),
        ]


def _pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _descriptors() -> Iterator[tuple[str, str]]:
    for path in Path("/proc/self/fd").iterdir():
        # The descriptor of this very listing is gone by now.
        with contextlib.suppress(FileNotFoundError):
            yield path.name, str(path.readlink())


def _marked(mark: bytes) -> Iterator[int]:
    for pid in _pids():
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                yield pid


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return f"{_stat(pid)[0]} {os.fsdecode(b' '.join(words))}"
    except OSError:
        return "(gone)"
