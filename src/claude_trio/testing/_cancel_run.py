"""One run of a scenario for `cancel_everywhere`: cancelled before a step, and looked at afterwards.

An instrument of Trio's sees each step of each task before it is taken: it counts them, cancels
before the chosen one, and notes which task is told so.  A system task waits for a virtual deadline.
What there is at the end is compared with what there was at the beginning.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import TYPE_CHECKING, Final, NoReturn, final

import attrs
import outcome
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio.testing._inventory import Inventory, Stack, describe_task, stack_of
from claude_trio.testing._shuffle import shuffled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

__all__ = ["Run", "current_run"]

# They take a second or two, and to cancel a scenario of that length everywhere would take hours.
_MOST_STEPS: Final = 20_000

# How many more a scenario gets to end once it is cancelled for having taken too many.
_MORE_STEPS: Final = 1_000

# What is left behind may take so long to end once it is cancelled, in virtual seconds.
_LAST_SECONDS: Final = 1

current_run: Final = trio.lowlevel.RunVar["Run"]("run of cancel_everywhere")


@final
@attrs.define(eq=False)
class Run(trio.abc.Instrument):
    """A run of a scenario, and what was found.

    Attributes:
      scenario: What is run.
      seed: Decides the order in which tasks that wake together take their steps.
      seconds: How long it may take, in virtual seconds.
      step: The number of the step before which it is cancelled, from 1 on; None for never.
      in_part: Whether only the steps count that are taken while the scenario is in the part that
        it marks.  A run without a cancellation finds that out.
      steps: How many steps were counted; the one before which it was cancelled is the last.
      task: The name of the task that was about to take that step; None if it never came to it.
      stack: Where that task was.
      told: Which task the cancellation was raised in first, and where; empty if in none.
      broken: The laws that were broken, and how.
      raised: What the scenario raised.
    """

    scenario: Callable[[], Awaitable[object]]
    seed: int
    seconds: float
    step: int | None = None
    in_part: bool = False
    steps: int = attrs.field(default=0, init=False)
    task: str | None = attrs.field(default=None, init=False)
    stack: Stack = attrs.field(default=(), init=False)
    told: str = attrs.field(default="", init=False)
    broken: list[str] = attrs.field(factory=list, init=False)
    raised: Exception | None = attrs.field(default=None, init=False)
    _scope: trio.CancelScope | None = attrs.field(default=None, init=False)
    """What is cancelled; None while steps do not count."""
    _before: frozenset[trio.lowlevel.Task] = attrs.field(default=frozenset(), init=False)
    """The tasks that are not the scenario's."""
    _limit: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _taken: int = attrs.field(default=0, init=False)
    """How many steps were taken, whether they count or not."""
    _allowed: int = attrs.field(default=_MOST_STEPS, init=False)
    _circling: trio.Event = attrs.field(factory=trio.Event, init=False)

    def execute(self) -> None:
        """Run the scenario."""
        clock = MockClock(autojump_threshold=0)
        try:
            with shuffled(self.seed):
                trio.run(self._main, clock=clock, instruments=[self])
        except Exception:
            # What was found explains it: the run was given up, or what it left has wrecked it.
            if not self.broken:
                raise

    async def _main(self) -> None:
        current_run.set(self)
        me = trio.lowlevel.current_task()
        me.name = getattr(self.scenario, "__qualname__", repr(self.scenario))
        trio.lowlevel.spawn_system_task(self._watch)
        # The first steps of the watcher, and of what Trio runs itself, are not the scenario's.
        await wait_all_tasks_blocked()
        before = Inventory.take()
        self._before = before.tasks - {me}
        try:
            with self._limit, contextlib.nullcontext() if self.in_part else self._counting(None):
                await self.scenario()
        except Exception as exc:  # noqa: BLE001  It is reported, with the step.
            self.raised = exc
            self.broken.append(f"it raised {type(exc).__name__}: {exc}")
        now = Inventory.take()
        self.broken += [f"something is left: {thing}" for thing in now.beyond(before)]
        if now.tasks - before.tasks:
            await self._end_tasks(before)

    async def _end_tasks(self, before: Inventory) -> None:
        nursery = trio.lowlevel.current_task().parent_nursery
        if nursery is not None:
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.sleep(_LAST_SECONDS)
        if Inventory.take().tasks - before.tasks:
            await _give_up()

    # -- what is cancelled, and when

    @contextlib.contextmanager
    def part(self, scope: trio.CancelScope | None) -> Iterator[trio.CancelScope]:
        """Count the steps of a part of the scenario, and cancel only there."""
        if self.step is None and not self.in_part:
            # Until now all of it was taken for the part.
            self.in_part, self.steps, self._scope = True, 0, None
        if self._scope is not None:
            raise RuntimeError("cancel_here() was entered already")
        with self._counting(scope) as cancelled:
            yield cancelled

    @contextlib.contextmanager
    def _counting(self, scope: trio.CancelScope | None) -> Iterator[trio.CancelScope]:
        with contextlib.nullcontext(scope) if scope is not None else trio.CancelScope() as used:
            self._scope = used
            # The step that is being taken: a cancellation that is there before anything waits.
            self._count(trio.lowlevel.current_task(), used)
            try:
                yield used
                if scope is None and self.told and used.cancel_called:
                    self.broken.append(f"a cancellation is swallowed below {self.told}")
            finally:
                self._scope = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count a step, cancel before it, or see what becomes of the cancellation."""
        self._taken += 1
        if self._taken == self._allowed:
            self._circling.set()
        if self._scope is None:
            return
        if self.task is not None:
            if not self.told and _is_told(task, self._scope):
                self.told = describe_task(task)
        else:
            self._count(task, self._scope)

    def _count(self, task: trio.lowlevel.Task, scope: trio.CancelScope) -> None:
        self.steps += 1
        if self.steps == self.step:
            self.task, self.stack = task.name, stack_of(task)
            scope.cancel()

    # -- a scenario that does not end

    async def _watch(self) -> None:
        await self._take_too_long()
        circles = self._circling.is_set()
        took = f"{self._taken} steps" if circles else f"{self.seconds:g} virtual seconds"
        tasks = Inventory.take().tasks - self._before
        there = "\n".join(sorted(map(describe_task, tasks)))
        self.broken.append(f"it does not end; after {took} this still runs\n{there}")
        self._limit.cancel()
        self._allowed, self._circling = self._taken + _MORE_STEPS, trio.Event()
        await self._take_too_long()
        await _give_up()

    async def _take_too_long(self) -> None:
        with trio.move_on_after(self.seconds):
            await self._circling.wait()


def _is_told(task: trio.lowlevel.Task, scope: trio.CancelScope) -> bool:
    """Whether a task gets the cancellation of a scope raised in the step that it is about to take.

    No instrument is shown what a task gets, nor which scopes it is in.
    """
    sent = task._next_send  # noqa: SLF001
    if not (isinstance(sent, outcome.Error) and isinstance(sent.error, trio.Cancelled)):
        return False
    status = task._cancel_status  # noqa: SLF001
    while status._scope is not scope:  # noqa: SLF001
        if status._scope.shield or status.parent is None:  # noqa: SLF001
            return False  # It is the cancellation of a scope that this one does not reach into.
        status = status.parent
    return True


async def _give_up() -> NoReturn:
    """End the run, whatever its tasks shield and swallow: there is no regular way."""

    def crash(_raise_cancel: object) -> NoReturn:
        raise RuntimeError("the run was given up")

    # What there was is never resumed, and never freed either: freeing a coroutine closes it, which
    # runs what is left of it, and code that swallows everything would not come to an end there.
    there = [task.coro for task in Inventory.take().tasks]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(there))
    with trio.CancelScope() as scope:
        scope.cancel()
        await trio.lowlevel.wait_task_rescheduled(crash)
    raise AssertionError
