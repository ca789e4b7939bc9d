"""The hold-open gate: when a turn of ours is over.

The first result does not end a turn: a subagent may still work in the background, and the CLI
reacts to its report in a run of its own.  `verdict` is the whole rule, a pure function of what
the ledgers have seen; `Gate` feeds the ledgers, keeps the turn machine in step and knows when time
alone will change the verdict.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Final, final

import attrs

from claude_trio._protocol._ledger import Ledger, Prompt, RunResult, Standing
from claude_trio._protocol._tasks import Task, Tasks
from claude_trio._protocol._turns import Input, State, TurnMachine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Cancelled", "Gate", "OwnTurn", "Verdict", "verdict"]


class Verdict(enum.Enum):
    """What the gate says of a turn."""

    OPEN = "open"
    """A prompt or a steer of it has no fate yet."""
    HELD = "held"
    """All are answered; agents, or what they owe, hold it."""
    OVER = "over"


class Cancelled(enum.Enum):
    """How a turn was cancelled."""

    RUNNING = "running"
    """Before its result: that result, or an end without one, is the end."""
    HELD = "held"
    """When only agents held it: their end is the end."""
    SPARED = "spared"
    """Its agents go on, and no longer hold it."""


@final
@attrs.define(eq=False, repr=False)
class OwnTurn:
    """One turn of ours: a prompt, its steers, and the agents that they started."""

    members: list[Prompt]
    hold_open: bool = True
    cancelled: Cancelled | None = None
    over: bool = False
    settled: bool = True
    """False if owed work was given up on, as nothing was heard of it."""

    @property
    def prompt(self) -> Prompt:
        """The prompt that opened it."""
        return self.members[0]


_ENDS_AT_RESULT: Final = frozenset({Cancelled.RUNNING, Cancelled.SPARED})


def verdict(turn: OwnTurn, ledger: Ledger, tasks: Tasks) -> Verdict:
    """Say whether ``turn`` is over, from what was seen so far."""
    if any(prompt.fate is None for prompt in turn.members):
        return Verdict.OPEN
    if not turn.hold_open or turn.cancelled in _ENDS_AT_RESULT:
        return Verdict.OVER
    # Also while the CLI is idle: 2.1.197 is, with a live agent, so what ends then owes still.
    owed = tasks.owes(turn) and turn.cancelled is None
    if tasks.holds(turn) or owed:
        return Verdict.HELD
    # An agent of somebody else keeps the CLI from being idle: then that is not waited for.  An
    # interrupt has ended it.
    waits = turn.cancelled is not None or not tasks.others(turn)
    return Verdict.HELD if ledger.idle is False and waits else Verdict.OVER


@final
@attrs.define(eq=False, repr=False)
class Gate:
    """The turn machine and the ledgers of one CLI process.

    Times are inputs, in seconds on any clock; whoever calls in calls `tick` at `deadline`.
    """

    follow_up: float
    """How long a follow-up may take to begin, where the CLI does not report its state."""
    settle: float
    """How long owed work may give no sign of life."""
    machine: TurnMachine = attrs.field(factory=TurnMachine, init=False)
    ledger: Ledger = attrs.field(init=False)
    tasks: Tasks = attrs.field(init=False)
    turn: OwnTurn | None = attrs.field(default=None, init=False)
    _said: Verdict | None = attrs.field(default=None, init=False)
    """What is said of the turn that runs, since the last change; None if that was not asked."""
    _heard_at: float = attrs.field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self.ledger = Ledger(self.follow_up)
        self.tasks = Tasks(self.follow_up)

    # -- what we do

    def prompt(self, uuid: str | None, number: int, *, hold_open: bool = True) -> OwnTurn | None:
        """Open a turn; None if its cancel has overtaken it, and it must not be written.

        Raises:
          LocalProtocolError: if a turn runs, or the session is closed.
        """
        if self.machine.prompt(number) is State.IDLE:
            return None
        self.turn = turn = OwnTurn([self.ledger.write(uuid)], hold_open=hold_open)
        self._move()  # A repeated uuid has its fate already.
        return turn

    def steer(self, uuid: str | None) -> Prompt:
        """Add input to the running turn.

        Raises:
          LocalProtocolError: if no turn runs, or it is being cancelled.
        """
        self.machine.handle(Input.STEER)
        prompt = self.ledger.write(uuid)
        self._running().members.append(prompt)
        self._move()
        return prompt

    def cancel(self, number: int, *, spare_agents: bool = False) -> bool:
        """Cancel the running turn, and say whether this cancel is the one that does."""
        held, before = self.machine.state is State.HELD, self.machine.state
        state = self.machine.cancel(number)
        if state is not State.CANCELLING or before is State.CANCELLING:
            return False
        how = Cancelled.HELD if held else Cancelled.RUNNING
        self._running().cancelled = Cancelled.SPARED if spare_agents else how
        self._move()
        return True

    def _running(self) -> OwnTurn:
        assert self.turn is not None  # noqa: S101  The machine's move was legal: a turn runs.
        return self.turn

    # -- what the CLI says

    @property
    def heard_at(self) -> float:
        """When something came last."""
        return self._heard_at

    def heard(self, now: float) -> None:
        """Something came: whatever is owed gives a sign of life."""
        self._heard_at = now

    def init(self) -> None:
        """A run begins."""
        self.ledger.init()
        self.tasks.run_began()
        self._said = None

    def lifecycle(self, uuid: str, state: str, *, scheduled: bool = False) -> None:
        """The CLI tells how far a prompt has come."""
        self.ledger.lifecycle(uuid, state, scheduled=scheduled)
        self._move()

    def session_state(self, state: str) -> None:
        """The CLI reports its state."""
        self.ledger.session_state(state)
        if state == "idle":
            self.tasks.idle()
        self._move()

    def withdrawn(self, uuids: Sequence[str]) -> None:
        """An interrupt's answer names the prompts that it dropped."""
        self.ledger.withdrawn(uuids)
        self._move()

    def result(
        self,
        now: float,
        *,
        uuids: Sequence[str] = (),
        origin: str | None = None,
        run_id: str | None = None,
    ) -> OwnTurn | None:
        """A run has ended; return the turn of ours that its result belongs to, if one."""
        turn = self.turn
        result = self.ledger.result(now, uuids=uuids, origin=origin)
        owner = self.tasks.follow_up(run_id) if origin == "task-notification" else None
        if turn is not None and owner is not turn and not self._answers(turn, result):
            turn = None
        self._move()
        return turn

    def _answers(self, turn: OwnTurn, result: RunResult) -> bool:
        return any(prompt.result == result.ordinal for prompt in turn.members)

    def task_started(
        self,
        task_id: str,
        task_type: str,
        *,
        run_id: str | None = None,
        backgrounded: bool | None = None,
        parent: str | None = None,
        description: str = "",
    ) -> None:
        """A task begins; it belongs to the turn of ours that runs."""
        self.tasks.started(
            task_id,
            task_type,
            owner=self._owner(),
            run_id=run_id,
            backgrounded=backgrounded,
            parent=parent,
            description=description,
        )
        self._move()

    def task_updated(
        self,
        now: float,
        task_id: str,
        *,
        status: str | None = None,
        backgrounded: bool | None = None,
    ) -> None:
        """A task's status or place has changed."""
        self.tasks.updated(now, task_id, status=status, backgrounded=backgrounded)
        self._move()

    def task_notified(self, now: float, task_id: str) -> None:
        """A task's end is reported."""
        self.tasks.notified(now, task_id)
        self._move()

    def task_snapshot(self, now: float, tasks: Iterable[tuple[str, str, str | None]]) -> None:
        """The CLI lists its background tasks: id, type and run of each."""
        owner = self._owner()
        listed = [Task(i, kind, run, owner, backgrounded=True) for i, kind, run in tasks]
        self.tasks.snapshot(now, listed)
        self._move()

    def _owner(self) -> OwnTurn | None:
        return self.turn if self.turn is not None and self.begun(self.turn) else None

    def begun(self, turn: OwnTurn) -> bool:
        """Whether the CLI has taken up ``turn``, as far as it tells."""
        prompt, run = turn.prompt, self.ledger.run
        if prompt.fate is not None:
            return True
        if self.ledger.speaks_lifecycle and prompt.uuid is not None:
            return prompt.standing in {Standing.STARTED, Standing.ENDED}
        return run is None or run.newest >= prompt.ordinal

    def eof(self) -> None:
        """Nothing more comes, and the session is over."""
        self.ledger.eof()
        self.machine.handle(Input.CLOSE)
        if self.turn is not None:
            self.turn.over, self.turn = True, None

    # -- what time decides

    @property
    def _quiet_since(self) -> float:
        return math.inf if self.ledger.run is not None else self.ledger.last_result_at

    def _gives_up_at(self) -> float:
        turn = self.turn
        if turn is None or self.ledger.state == "requires_action":
            return math.inf
        if self._said is None:
            self._said = verdict(turn, self.ledger, self.tasks)
        return self._heard_at + self.settle if self._said is Verdict.HELD else math.inf

    def deadline(self) -> float:
        """When `tick` has something to decide; infinity if only the CLI can."""
        return min(
            self.ledger.deadline(), self.tasks.deadline(self._quiet_since), self._gives_up_at()
        )

    def tick(self, now: float) -> None:
        """Decide what only the passing of time decides."""
        self.ledger.tick(now)
        self.tasks.tick(now, self._quiet_since)
        turn = self.turn
        if turn is not None and now >= self._gives_up_at():
            turn.settled = False
            self._end(turn)
        self._move()

    # -- the moves

    def _move(self) -> None:
        turn = self.turn
        if turn is None:
            return
        self._said = said = verdict(turn, self.ledger, self.tasks)
        if said is Verdict.OVER:
            self._end(turn)
        elif said is Verdict.HELD and self.machine.state is State.PROMPTING:
            self.machine.handle(Input.RESULT)

    def _end(self, turn: OwnTurn) -> None:
        self.machine.handle(Input.TURN_OVER)
        turn.over, self.turn = True, None

    @property
    def at_rest(self) -> bool:
        """Whether the CLI is known to do nothing: no turn, no run and no task of any kind."""
        quiet = self.turn is None and self.ledger.run is None and not self.tasks.live
        return quiet and self.ledger.idle is not False

    @property
    def busy(self) -> bool:
        """Whether something runs that an interrupt would stop."""
        agents = any(task.is_agent for task in self.tasks.live.values())
        return agents or self.ledger.run is not None or self.ledger.idle is False
