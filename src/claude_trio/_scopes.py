"""Two questions about nurseries: how to leave one unwrapped, and which tasks one encloses."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeGuard

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["background_tasks", "encloses", "inside", "plain_nursery", "split_cancelled"]


@asynccontextmanager
async def plain_nursery() -> AsyncIterator[trio.Nursery]:
    """Open a nursery that wraps the block's own exception in no group.

    The block's exception cancels the nursery's tasks and leaves as it was raised.  A cancellation
    passes through the nursery, since it may be the nursery's own, and comes out bare if it is
    not.  A group comes out only if a task raised; then the block's exception is in it as well.
    """
    raised: BaseException | None = None
    rest: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as exc:  # noqa: ASYNC103, BLE001  It is raised again, outside.
                raised = exc
                cancelled, rest = split_cancelled(exc)
                if cancelled is not None:
                    raise cancelled from None
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if split_cancelled(group)[1] is not None:
            own = [rest] if rest is not None else []
            message = "a block and the tasks of its nursery failed"
            raise BaseExceptionGroup(message, [*own, *group.exceptions]) from None
        raise (_first_leaf(group) if raised is None else raised) from None
    if rest is not None:
        raise rest


@asynccontextmanager
async def background_tasks() -> AsyncIterator[trio.Nursery]:
    """Open a plain nursery whose tasks are cancelled when the block is left."""
    async with plain_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()


def split_cancelled(
    raised: BaseException,
) -> tuple[BaseException | None, BaseException | None]:
    """Split what was raised into the part that is a cancellation, and the rest."""
    if isinstance(raised, trio.Cancelled):
        return raised, None
    if _is_group(raised):
        return raised.split(trio.Cancelled)
    return None, raised


def _first_leaf(raised: BaseException) -> BaseException:
    while _is_group(raised):
        raised = raised.exceptions[0]
    return raised


def _is_group(raised: BaseException) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    return isinstance(raised, BaseExceptionGroup)


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
