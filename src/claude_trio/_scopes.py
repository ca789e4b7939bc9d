"""Two questions about nurseries: how to leave one unwrapped, and which tasks one encloses."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeGuard, final

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

__all__ = ["PlainNursery", "background_tasks", "encloses", "inside", "split_cancelled"]


@final
class PlainNursery:
    """A nursery that wraps the block's own exception in no group.

    The block's exception cancels the nursery's tasks and leaves as it was raised.  A cancellation
    passes through the nursery, since it may be the nursery's own, and comes out bare if it is
    not.  A group comes out only if a task raised; then the block's exception is in it as well.

    It is a class and no generator, which would cost a turn more than the nursery itself does.
    """

    __slots__ = ("_manager", "_nursery")

    async def __aenter__(self) -> trio.Nursery:  # noqa: ASYNC910  As Trio's own.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        return self._nursery

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        try:
            await self.leave(raised)  # noqa: ASYNC102  Tasks are waited for as in any nursery.
        except BaseException as exc:  # Only to tell whose it is: the block's own goes on by itself.
            if exc is raised:
                return False  # noqa: ASYNC910  The nursery is a checkpoint.
            raise
        return True

    async def leave(self, raised: BaseException | None) -> None:
        """Wait for the tasks, and raise what the block or they have raised.

        Args:
          raised: What the block has raised.
        """
        passing, rest = (None, None) if raised is None else split_cancelled(raised)
        if rest is not None and passing is None:
            self._nursery.cancel_scope.cancel()
        try:
            swallowed = await self._manager.__aexit__(
                None if passing is None else type(passing), passing, None
            )
        except BaseExceptionGroup as group:  # As strict nurseries raise everything.
            if split_cancelled(group)[1] is not None:
                own = [rest] if rest is not None else []
                message = "a block and the tasks of its nursery failed"
                raise BaseExceptionGroup(message, [*own, *group.exceptions]) from None
            raise (_first_leaf(group) if raised is None else raised) from None
        if raised is not None and passing is not None and not swallowed:
            raise raised
        if rest is not None:
            raise rest


@asynccontextmanager
async def background_tasks() -> AsyncIterator[trio.Nursery]:
    """Open a plain nursery whose tasks are cancelled when the block is left."""
    async with PlainNursery() as nursery:
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
