"""Two questions about nurseries: how to leave one unwrapped, and which tasks one encloses."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["encloses", "inside", "plain_nursery"]


@asynccontextmanager
async def plain_nursery() -> AsyncIterator[trio.Nursery]:
    """Open a nursery that wraps the block's own exception in no group.

    The block's exception cancels the nursery's tasks and leaves bare.  A group comes out only if
    one of the tasks raised; then the block's exception is in it as well.
    """
    own: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except trio.Cancelled as exc:
                own = exc
                raise  # It may be this nursery's own scope's, and must pass through it.
            except BaseException as exc:  # noqa: BLE001  It is raised again below, outside.
                own = exc
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        failed = group.split(trio.Cancelled)[1]
        if failed is None:
            raise (own if isinstance(own, trio.Cancelled) else group) from None
        if own is None or isinstance(own, trio.Cancelled):
            raise
        message = "a block and the tasks of its nursery failed"
        raise BaseExceptionGroup(message, [own, *group.exceptions]) from None
    if own is not None and not isinstance(own, trio.Cancelled):
        raise own


def encloses(nursery: trio.Nursery) -> bool:
    """Tell whether the current task is the nursery's own or below it.

    Then a cancellation of the nursery reaches this task as well, and the nursery cannot end
    before it.
    """
    task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
    while task is not None:
        if nursery in task.child_nurseries:
            return True
        above = task.parent_nursery
        if above is nursery:
            return True
        task = above.parent_task if above is not None else None
    return False


def inside(tasks: set[trio.lowlevel.Task]) -> bool:
    """Tell whether the current task is one of ``tasks`` or was started below one."""
    task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
    while task is not None:
        if task in tasks:
            return True
        above = task.parent_nursery
        task = above.parent_task if above is not None else None
    return False
