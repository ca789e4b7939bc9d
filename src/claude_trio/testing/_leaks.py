"""`assert_no_leaks`: all that a block started is gone at its end."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING, Final

from claude_trio._process._sweep import NOT_OURS, carries, end_remains, pids, proc_is_ours
from claude_trio._scopes import split_cancelled
from claude_trio.testing._inventory import Inventory, command_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["assert_no_leaks"]

# Every process that the block starts inherits it.  It is not the variable by which the library
# finds what a session has started: what marks the processes is not to judge itself.
_VARIABLE: Final = "CLAUDE_TRIO_LEAK_CHECK"


@contextlib.contextmanager
def assert_no_leaks() -> Iterator[None]:
    """Fail unless all that the block started is gone right at its end.

    It looks for

    - tasks of Trio, if the block is within a run,
    - child processes of this process, those that nobody has reaped included,
    - their descendants, whichever parent, group or session these have by now: they are found by a
      mark that the block puts into ``os.environ``.  So a descendant is missed whose parent has
      gone, if it was started with an environment that was copied before the block or made from
      nothing, or was forked and runs no program of its own,
    - open descriptors,
    - threads; a worker thread of Trio's counts while it has a job, though not while it idles.

    Everything in this process counts, whoever started it: nothing else should start or end such
    things meanwhile.  It works within a task and outside of a run, and waits for nothing but for
    the very last of a thread, a tenth of a second at most.

    A block that raises fails with its own exception; what is left is a note on it.  A block that
    is cancelled must leave nothing either.  What carries the mark is ended, with SIGTERM and then
    SIGKILL; children without it, and all others, are left alone.

    Raises:
      AssertionError: if something is left; it says what.
      NotImplementedError: if there is no ``/proc`` to look at, as on systems other than Linux.
    """
    if not proc_is_ours():
        raise NotImplementedError("assert_no_leaks() looks into /proc, and this system has none")
    before = Inventory.take()
    with _mark() as mark:
        try:
            yield
        except BaseException as exc:  # Whatever ends the block, what is left is told and ended.
            if left := _take_left(before, mark):
                if split_cancelled(exc)[1] is None:
                    raise AssertionError(left) from exc
                exc.add_note(left)
            raise
        if left := _take_left(before, mark):
            raise AssertionError(left)


@contextlib.contextmanager
def _mark() -> Iterator[str]:
    """Mark what inherits our environment; blocks within the block keep the mark."""
    outer = os.environ.get(_VARIABLE)
    own = str(uuid.uuid4())
    os.environ[_VARIABLE] = own if outer is None else f"{outer}:{own}"
    try:
        yield f"{_VARIABLE}={os.environ[_VARIABLE]}"
    finally:
        if outer is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = outer


def _take_left(before: Inventory, mark: str) -> str:
    """Say what is left, and end what of it carries the mark."""
    now = Inventory.take()
    left: list[str] = now.beyond(before)
    # In the middle of an exec a process shows no environment: the second look sees it.
    marked = _marked(mark) or _marked(mark)
    left += [f"process {pid}: {command_of(pid)}" for pid in marked if pid not in now.children]
    if marked:
        end_remains(None, mark)
    return "\n  ".join(["something is left:", *left]) if left else ""


def _marked(mark: str) -> list[int]:
    found = list[int]()
    for pid in pids():
        with contextlib.suppress(*NOT_OURS):
            if carries(pid, os.fsencode(mark)):
                found.append(pid)
    return found
