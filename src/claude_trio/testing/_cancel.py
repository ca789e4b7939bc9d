"""`cancel_everywhere`: cancel a scenario at each of its steps, and check what is left."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, final

from claude_trio.testing._cancel_run import Run, current_run
from claude_trio.testing._inventory import render

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import trio

__all__ = ["LawBroken", "cancel_everywhere", "cancel_here"]


@final
class LawBroken(AssertionError):
    """Tell which law a scenario broke, and where it was cancelled.

    ``__cause__`` is what the scenario raised, if it did.

    Attributes:
      laws: What was broken, and how.
      seed: The order of the tasks' steps.
      step: The number of the step before which the scenario was cancelled, from 1 on; None if it
        breaks the law without a cancellation.
      task: The name of the task that was about to take the step.
      stack: Where that task was, as in a traceback.
    """

    def __init__(
        self, laws: tuple[str, ...], *, seed: int, step: int | None, task: str | None, stack: str
    ) -> None:
        super().__init__(laws)
        self.laws = laws
        self.seed = seed
        self.step = step
        self.task = task
        self.stack = stack

    def __str__(self) -> str:
        laws = "\n".join(self.laws)
        if self.step is None:
            return f"{laws}\nwithout any cancellation, with seed {self.seed}"
        where = f"cancelled before step {self.step} with seed {self.seed}"
        return f"{laws}\n{where}, when task {self.task!r} was about to take it here:\n{self.stack}"


def cancel_everywhere(
    scenario: Callable[[], Awaitable[object]],
    *,
    at_least: int = 1,
    seed: int = 0,
    seconds: float = 3600,
) -> int:
    """Run a scenario again and again, each time cancelled one step later, and see what is left.

    A step is what a task does from one point where it waits to the next, and the steps of all
    tasks count.  The scenario is run once without a cancellation, to count them, and then once for
    each: right before that step is taken the scenario is cancelled.  All of it is, or the part that
    it runs within `cancel_here`; after that part it goes on, not cancelled any more, and can check
    what the cancellation has left it::

        def test_a_chat_may_be_cancelled_anywhere() -> None:
            async def scenario() -> None:
                fake = FakeClaude(lambda prompt: say("fine"))
                async with open_session(launch=fake.launch) as session:
                    with cancel_here():
                        await chat(session)
                    await check_session(session)

            cancel_everywhere(scenario)

    The laws, each time:

    - The scenario ends, by its end or by the cancellation, and raises nothing.  What it may raise,
      such as `SessionClosed` where a cancellation closes a session, it must catch.
    - A cancellation that was raised in a task comes out of what is cancelled: it is not swallowed.
      An error may come out in its place.
    - It ends within ``seconds`` of virtual time, and does not go round in circles.
    - At its end no task is left and no thread, and, where there is a ``/proc`` to look at, no
      child process and no open descriptor that was not there before.

    It runs on Trio's mock clock, on which nobody waits in reality.  To that clock a thread or a
    process takes no time at all: a scenario needs fakes for what is outside.

    Args:
      scenario: An async function without arguments.  It must not depend on what earlier runs left.
      at_least: How many cancellations are wanted.  Tasks that wake together take their steps in an
        order that a seed decides.  With the first seed each step has its turn; as long as that
        was too few, it goes on with the next seed, which gives another order.
      seed: The first seed; that of a failure repeats it.
      seconds: How long a run may take, in virtual seconds; an hour as a rule.

    Returns:
      How many times the scenario was cancelled.

    Raises:
      LawBroken: at the first step that breaks a law.
      ValueError: if nothing in the scenario, or in its part, waits.
      RuntimeError: if it is called within a run of Trio.
    """
    points = 0
    for current in itertools.count(seed):
        for _ in _points(scenario, current, seconds):
            points += 1
            if points >= at_least and current != seed:
                return points
        if points >= at_least:
            return points
    raise AssertionError


def _points(scenario: Callable[[], Awaitable[object]], seed: int, seconds: float) -> Iterator[Run]:
    """Cancel at each step, in the order of one seed."""
    whole = Run(scenario, seed, seconds)
    _execute(whole)
    told = False
    for step in range(1, whole.steps + 1):
        run = Run(scenario, seed, seconds, step=step, in_part=whole.in_part)
        _execute(run)
        told = told or bool(run.told)
        if run.task is not None:
            yield run
    if not told:
        raise ValueError("nothing in it waits, so nothing could be cancelled")


def _execute(run: Run) -> None:
    try:
        run.execute()
    except BaseException as exc:  # Only to add where it was.
        exc.add_note(str(_error(run, "it ended in an exception that is not its own to catch")))
        raise
    if run.broken:
        raise _error(run, *run.broken) from run.raised


def _error(run: Run, *laws: str) -> LawBroken:
    step = run.step if run.task is not None else None
    return LawBroken(laws, seed=run.seed, step=step, task=run.task, stack=render(run.stack))


@contextlib.contextmanager
def cancel_here(scope: trio.CancelScope | None = None) -> Iterator[trio.CancelScope]:
    """Mark what `cancel_everywhere` cancels of a scenario, instead of all of it.

    The steps that all tasks take while the block runs are those before which it is cancelled.
    The block may be entered again when it was left, not within itself.

    Args:
      scope: What is cancelled; without one, the block.  With the scope of a nursery, this is how
        tasks are cancelled in which the block does not run.

    Returns:
      A context manager that gives the scope which is cancelled.

    Raises:
      RuntimeError: if no `cancel_everywhere` runs, or within another such block.
    """
    try:
        run = current_run.get()
    except LookupError:
        message = "cancel_here() has its place in a scenario of cancel_everywhere()"
        raise RuntimeError(message) from None
    with run.part(scope) as cancelled:
        yield cancelled
