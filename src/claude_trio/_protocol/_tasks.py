"""Which background tasks of the CLI still run, and whose they are.

Only agents and workflows hold a turn open; a background shell or a monitor may never end.  A task
leaves the ledger when the turn that it owes (the CLI reacts to its report in a run of its own) can
no longer be hidden: at ``task_notification``, or when the snapshot of background tasks no longer
has it.  ``task_updated`` alone says the same some time later, since 2.1.197 sends it before the
state turns to ``running``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AGENT_TYPES", "Task", "Tasks"]

AGENT_TYPES: Final = frozenset({"local_agent", "local_workflow"})
"""The types of task that hold a turn open."""

_UPDATED_TERMINAL: Final = frozenset({"completed", "failed", "killed"})


@final
class Task:
    """One live task.

    Attributes:
      id: Its id.
      type: What kind it is.
      run_id: The id of this run of it.
      owner: The turn that started it; None if none of ours did.
      backgrounded: Whether it runs in the background; None where the CLI does not say (2.1.197).
      nested: Whether a subagent started it.
      description: What it is for.
      ended_at: When an update said that it has ended, if no notification has come yet.
    """

    def __init__(
        self,
        id: str,  # noqa: A002  The CLI's word.
        type: str,  # noqa: A002  As above.
        run_id: str | None,
        owner: object,
        *,
        backgrounded: bool | None,
        nested: bool = False,
        description: str = "",
    ) -> None:
        self.id = id
        self.type = type
        self.run_id = run_id
        self.owner = owner
        self.backgrounded = backgrounded
        self.nested = nested
        self.description = description
        self.ended_at: float | None = None

    @property
    def is_agent(self) -> bool:
        """Whether it holds its turn open."""
        return self.type in AGENT_TYPES


@final
class _Owed:
    def __init__(self, task: Task, since: float) -> None:
        self.owner = task.owner
        self.run_id = task.run_id
        self.is_agent = task.is_agent
        self.since = since
        self.before_run = False  # Whether a run has begun since.


@final
class Tasks:
    """The live tasks of one CLI process, and the follow-ups that ended agents owe.

    Times are inputs, in seconds on any clock.

    Attributes:
      patience: How long after an agent's end its notification, and its follow-up, may take.
      live: The live tasks by their ids.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.live: dict[str, Task] = {}
        self._owed: list[_Owed] = []

    def started(
        self,
        task_id: str,
        task_type: str,
        *,
        owner: object,
        run_id: str | None = None,
        backgrounded: bool | None = None,
        parent: str | None = None,
        description: str = "",
    ) -> None:
        """A task begins, or a finished one is revived; a nested one is its parent's turn's."""
        above = self.live.get(parent) if parent is not None else None
        known = self.live.get(task_id)
        if known is not None and known.ended_at is not None:
            self._owe(known, known.ended_at)  # It is revived before its end was notified.
            known = None
        if above is not None:
            owner = above.owner
        elif known is not None and known.run_id == run_id:
            owner = known.owner
        self.live[task_id] = Task(
            task_id,
            task_type,
            run_id,
            owner,
            backgrounded=backgrounded,
            nested=parent is not None,
            description=description,
        )

    def updated(
        self, now: float, task_id: str, *, status: str | None, backgrounded: bool | None
    ) -> None:
        """A task's status or place has changed."""
        task = self.live.get(task_id)
        if task is None:
            return
        if backgrounded is not None:
            task.backgrounded = backgrounded
        if status in _UPDATED_TERMINAL and task.ended_at is None:
            task.ended_at = now

    def notified(self, now: float, task_id: str) -> None:
        """A task's end is reported."""
        task = self.live.pop(task_id, None)
        if task is not None:
            self._owe(task, now)

    def snapshot(self, now: float, tasks: Iterable[Task]) -> None:
        """The CLI lists its background tasks, and none that is in the foreground."""
        listed = {task.id: task for task in tasks}
        for task in list(self.live.values()):
            if task.id not in listed and task.backgrounded is not False:
                del self.live[task.id]
                self._owe(task, now)
        for task in listed.values():
            self.live.setdefault(task.id, task)

    def _owe(self, task: Task, now: float) -> None:
        # Also one that was stopped: the model reacts to `stop_task`, though not to an interrupt.
        # A shell holds nothing open, but its follow-up must not be taken for an agent's.
        # What a subagent started reports to that subagent.
        if task.backgrounded is not False and not task.nested:
            self._owed.append(_Owed(task, now))

    def run_began(self) -> None:
        """A run begins; what is owed from now on is not owed by it."""
        for owed in self._owed:
            owed.before_run = True

    def follow_up(self, run_id: str | None) -> object:
        """A run that the task run ``run_id`` caused has ended; say whose agent's it was.

        Its debt is paid.  ``run_id`` is None where the result does not name it.
        """
        if run_id is not None:
            paid = [o for o in self._owed if o.run_id == run_id]
        else:
            # Reports are taken in the order in which they came.  How many were merged is not
            # said, so one is paid, and time lets go of the others.
            paid = [o for o in self._owed if o.before_run][:1]
        for owed in paid:
            self._owed.remove(owed)
        owners = [o.owner for o in paid if o.is_agent]
        if run_id is not None:
            owners += [t.owner for t in self.live.values() if t.is_agent and t.run_id == run_id]
        return owners[0] if owners else None

    def idle(self) -> None:
        """The CLI says that nothing is owed."""
        self._owed.clear()

    def holds(self, owner: object) -> bool:
        """Whether an agent of ``owner`` lives."""
        return any(t.is_agent and t.owner is owner for t in self.live.values())

    def owes(self, owner: object) -> bool:
        """Whether a follow-up of an agent of ``owner`` may be still to come."""
        return any(o.is_agent and o.owner is owner for o in self._owed)

    def others(self, owner: object) -> bool:
        """Whether an agent of somebody else lives or owes: then idle is not to be waited for."""
        return any(t.is_agent and t.owner is not owner for t in self.live.values()) or any(
            o.is_agent and o.owner is not owner for o in self._owed
        )

    def deadline(self, quiet_since: float) -> float:
        """When `tick` has something to decide; infinity if nothing waits.

        Args:
          quiet_since: Since when no run goes on; infinity while one does.
        """
        if not self.live and not self._owed:
            return math.inf  # It is asked at every read.
        ended = min(
            (t.ended_at for t in self.live.values() if t.ended_at is not None), default=math.inf
        )
        owed = min((max(o.since, quiet_since) for o in self._owed), default=math.inf)
        return min(ended, owed) + self.patience

    def tick(self, now: float, quiet_since: float) -> None:
        """Let go what nothing but time says is over."""
        for task in list(self.live.values()):
            if task.ended_at is not None and now >= task.ended_at + self.patience:
                del self.live[task.id]
                self._owe(task, task.ended_at)
        self._owed = [o for o in self._owed if now < max(o.since, quiet_since) + self.patience]
