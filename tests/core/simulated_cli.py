"""A CLI that knows the truth: which result answers which prompt, and when a turn is really over.

It has a queue, runs that fold and merge what waits, agents with follow-ups, shells, wake-ups and
interrupts, and says of all that what its dialect says.  What it may do in which order is
deliberately more than what one release was seen to do: nothing but the frames may be relied upon.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import attrs

from claude_trio._protocol._ledger import Fate
from tests.core.simulated_values import (
    BEGIN_LAG,
    NAMED,
    REPORT_LAG,
    TAKE_LAG,
    Choose,
    Dialect,
    Frame,
    Report,
    Run,
    Sent,
    States,
    TrueResult,
    Waiting,
    WakeUp,
    Worker,
    is_agents,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from claude_trio._protocol._gate import Gate, OwnTurn

__all__ = ["SimulatedCLI"]


@attrs.define(eq=False)
class SimulatedCLI:
    dialect: Dialect
    now: float = 0.0
    out: deque[tuple[float, Frame]] = attrs.field(factory=deque, init=False)
    queue: list[Waiting | Report | WakeUp] = attrs.field(factory=list, init=False)
    late: list[Report] = attrs.field(factory=list, init=False)
    """Reports that have not reached the queue."""
    run: Run | None = attrs.field(default=None, init=False)
    workers: dict[str, Worker] = attrs.field(factory=dict, init=False)
    ended: list[Worker] = attrs.field(factory=list, init=False)
    asking: set[str] = attrs.field(factory=set, init=False)
    """The agents that wait for a permission."""
    results: int = attrs.field(default=0, init=False)
    curt: bool = attrs.field(default=False, init=False)
    """Whether the end of a task was ever told by less than all frames."""
    _state: str = attrs.field(default="idle", init=False)
    _at_rest_since: float = attrs.field(default=0.0, init=False)
    _abort_next: bool = attrs.field(default=False, init=False)
    _serial: int = attrs.field(default=0, init=False)

    # -- what it says

    def _emit(
        self,
        label: str,
        tell: Callable[[Gate, float], object],
        result: TrueResult | None = None,
    ) -> None:
        self.out.append((self.now, Frame(label=label, tell=tell, result=result)))

    def _lifecycle(self, uuid: str, state: str, *, scheduled: bool = False) -> None:
        if self.dialect.lifecycle:
            self._emit(
                f"lifecycle {uuid} {state}",
                lambda gate, _: gate.lifecycle(uuid, state, scheduled=scheduled),
            )

    def _report_state(self, state: str) -> None:
        if state != self._state and self.dialect.states is not States.SILENT:
            self._emit(f"state {state}", lambda gate, _: gate.session_state(state))
        self._state = state

    def _report_honest_state(self) -> None:
        if self.dialect.states is States.EAGER:
            return
        owed = any(isinstance(i, Waiting) or is_agents(i) for i in self.queue)
        busy = self.run is not None or owed or any(w.is_agent for w in self.workers.values())
        at_work = "requires_action" if self.asking else "running"
        self._report_state(at_work if busy else "idle")

    def _report_rest(self) -> None:
        if self.dialect.states is States.EAGER and self.run is None and not self.queue:
            self._report_state("idle")
        self._report_honest_state()

    def _snapshot(self) -> None:
        if self.dialect.detailed:
            listed = [(w.id, w.type, w.run_id) for w in self.workers.values() if w.background]
            names = " ".join(i for i, _, _ in listed)
            self._emit(f"snapshot [{names}]", lambda gate, now: gate.task_snapshot(now, listed))

    def _notify(self, worker: Worker) -> None:
        self._emit(
            f"notification {worker.id}", lambda gate, now: gate.task_notified(now, worker.id)
        )

    def _update(
        self, worker: Worker, *, status: str | None = None, backgrounded: bool | None = None
    ) -> None:
        self._emit(
            f"updated {worker.id} {status} {backgrounded}",
            lambda gate, now: gate.task_updated(
                now, worker.id, status=status, backgrounded=backgrounded
            ),
        )

    # -- what it is told

    def read_prompt(self, sent: Sent, choose: Choose) -> None:
        if sent.fate is not None:
            return  # A uuid that it knows is dropped without a word.
        if self.dialect.lifecycle and choose(["take", "take", "take", "refuse"]) == "refuse":
            sent.fate = Fate.REFUSED
            self._lifecycle(sent.uuid, "refused")
            return
        self._report_state("requires_action" if self.asking else "running")
        self._lifecycle(sent.uuid, "queued")
        self.queue.append(Waiting(sent, self.now))

    def read_interrupt(self, *, spare: bool, choose: Choose) -> None:
        dropped = self._drop_queue() if self.dialect.lifecycle else []
        self.asking.clear()
        if not (spare and self.dialect.lifecycle):
            for worker in [w for w in self.workers.values() if w.is_agent]:
                self._end(worker, "killed")
            if choose(["keep reports", "drop reports"]) == "drop reports":
                self.queue = [i for i in self.queue if not is_agents(i)]
                self.late = []
        if self.dialect.lifecycle:
            uuids = [sent.uuid for sent in dropped]
            self._emit(f"receipt {uuids}", lambda gate, _: gate.withdrawn(uuids))
        if self.run is not None:
            self.run.aborted = True
        elif any(isinstance(i, Waiting) for i in self.queue):
            self._abort_next = True
        self._report_rest()

    def _drop_queue(self) -> list[Sent]:
        dropped = [i.sent for i in self.queue if isinstance(i, Waiting)]
        self.queue = [i for i in self.queue if not isinstance(i, Waiting)]
        for sent in dropped:
            sent.fate = Fate.WITHDRAWN
            self._lifecycle(sent.uuid, "cancelled")
        return dropped

    def read_stop_task(self, task_id: str) -> None:
        worker = self.workers.get(task_id)
        if worker is None:
            return
        self._end(worker, "killed")
        if worker.is_agent and worker.reports:
            self.queue.append(Report(worker, self.now, told=True))
        self._report_honest_state()

    # -- runs

    @property
    def due(self) -> float:
        """When it does something by itself at the latest."""
        times = [report.at + REPORT_LAG for report in self.late]
        if self.run is None and self.queue:
            times.append(max(min(i.at for i in self.queue), self._at_rest_since) + TAKE_LAG)
        if self.run is not None and not self.run.begun:
            times.append(self.run.taken_at + BEGIN_LAG)
        return min(times, default=float("inf"))

    def do_what_is_due(self, choose: Choose) -> None:
        if self.late and self.now >= self.late[0].at + REPORT_LAG:
            self.hand_in_report()
        elif self.run is None:
            self.take(choose)
        else:
            self.begin()

    def hand_in_report(self) -> None:
        report = self.late.pop(0)
        report.at = self.now
        self.queue.append(report)

    def take(self, choose: Choose) -> None:
        """Take up what waits: prompts, the oldest first, or reports, or a wake-up."""
        kind = choose(sorted({type(i).__name__ for i in self.queue}))
        first = [i for i in self.queue if type(i).__name__ == kind]
        if kind != "WakeUp":
            first = first[: choose(range(1, len(first) + 1))]
        self.queue = [i for i in self.queue if i not in first]
        prompts = [i.sent for i in first if isinstance(i, Waiting)]
        reports = [i for i in first if isinstance(i, Report)]
        wake_up = next((i for i in first if isinstance(i, WakeUp)), None)
        self.run = Run(self.now, prompts, reports, wake_up, {s.turn for s in prompts})
        self.run.cause = reports[0] if reports else None
        self.run.owners |= self.run.reacts_for
        if prompts and self._abort_next:
            self.run.aborted, self._abort_next = True, False
        self._report_state("requires_action" if self.asking else "running")
        if wake_up is not None:
            self._lifecycle(wake_up.uuid, "started", scheduled=True)
        self._consume(prompts, reports)

    def _consume(self, prompts: Iterable[Sent], reports: Iterable[Report]) -> None:
        for sent in prompts:
            sent.taken = True
            self._lifecycle(sent.uuid, "started")
        for report in reports:
            if not report.told:
                self._notify(report.worker)

    def begin(self) -> None:
        assert self.run is not None
        self.run.begun = True
        self._emit("init", lambda gate, _: gate.init())

    def fold(self, choose: Choose) -> None:
        """Reach a tool boundary, and take in some of what waits."""
        run = self.run
        assert run is not None
        assert not run.aborted
        waiting = [i for i in self.queue if isinstance(i, Waiting)]
        reports = [i for i in self.queue if isinstance(i, Report)]
        waiting = waiting[: choose(range(len(waiting), -1, -1))]
        reports = reports[: choose(range(len(reports), -1, -1))]
        self.queue = [i for i in self.queue if i not in waiting and i not in reports]
        folded = [i.sent for i in waiting]
        run.prompts += folded
        run.folded += folded
        run.reports += reports
        if self.dialect.lifecycle or run.asked_for:
            # Without lifecycle nothing tells that a run which was not asked for has become ours.
            run.owners |= {sent.turn for sent in folded}
        self._consume(folded, reports)

    def finish(self, choose: Choose, *, failed: bool = False) -> None:
        """End the run: with its result, or with that of an abort or an API failure."""
        run = self.run
        assert run is not None
        for worker in [w for w in self.workers.values() if not w.background]:
            self._end(worker, "killed" if run.aborted else "completed")
        end = "cancelled" if run.aborted or failed else "completed"
        for sent in run.folded:
            self._lifecycle(sent.uuid, end)
        self._result(run, choose)
        for sent in run.prompts:
            if sent not in run.folded:
                self._lifecycle(sent.uuid, end)
        if run.wake_up is not None:
            self._lifecycle(run.wake_up.uuid, end)
        self.run = None
        self._at_rest_since = self.now
        self._report_rest()

    def _result(self, run: Run, choose: Choose) -> None:
        ordinal, self.results = self.results, self.results + 1
        uuids: list[str] = []
        if self.dialect.lifecycle:
            consumed = [sent.uuid for sent in run.prompts]
            uuids = choose([consumed[-NAMED:], consumed[:NAMED]])
        for sent in run.prompts:
            sent.fate, sent.result = Fate.ANSWERED, ordinal
        origin = "task-notification" if run.cause is not None else choose([None, None, "human"])
        if run.wake_up is not None or (not self.dialect.lifecycle and run.cause is None):
            origin = None
        run_id = run.cause.worker.run_id if run.cause and self.dialect.detailed else None
        by_agent = run.cause is not None and run.cause.worker.is_agent
        truth = TrueResult(
            asked_by=frozenset({sent.turn for sent in run.prompts}),
            reacts_for=run.cause.worker.owners if by_agent and run.cause else frozenset(),
            nobodys=not run.prompts and not by_agent,
        )
        self._emit(
            f"result {ordinal} {uuids} {origin} {run_id}",
            lambda gate, now: gate.result(now, uuids=uuids, origin=origin, run_id=run_id),
            truth,
        )

    # -- tasks

    def start_worker(self, kind: str, *, background: bool, parent: Worker | None = None) -> None:
        """Start a task: of the run, or of an agent."""
        if parent is not None:
            owners = parent.owners
        else:
            assert self.run is not None
            owners = frozenset(self.run.owners)
        self._serial += 1
        name = f"{kind[6]}{self._serial}"
        self._announce(Worker(name, kind, f"{name}.1", owners, background, parent))

    @property
    def revivable(self) -> list[Worker]:
        """The agents whose end the model knows."""
        reports = [i for i in (*self.queue, *self.late) if isinstance(i, Report)]
        return [w for w in self.ended if not any(r.worker.id == w.id for r in reports)]

    def revive(self, worker: Worker) -> None:
        """Send a message to an agent that has ended."""
        assert self.run is not None
        self.ended.remove(worker)
        self._serial += 1
        run_id = f"{worker.id}.{self._serial}"
        owners = frozenset(self.run.owners)
        self._announce(Worker(worker.id, worker.type, run_id, owners, background=True))

    def _announce(self, worker: Worker) -> None:
        self.workers[worker.id] = worker
        if worker.background:
            self._snapshot()
        detailed = self.dialect.detailed
        run_id = worker.run_id if detailed else None
        backgrounded = worker.background if detailed else None
        parent = worker.parent.id if worker.parent is not None and detailed else None

        def tell(gate: Gate, _: float) -> None:
            worker.announced = True
            gate.task_started(
                worker.id, worker.type, run_id=run_id, backgrounded=backgrounded, parent=parent
            )

        self._emit(f"started {worker.id}", tell)
        self._report_honest_state()

    def move_to_background(self, worker: Worker) -> None:
        worker.background = True
        self._snapshot()
        if self.dialect.detailed:
            self._update(worker, backgrounded=True)

    def end_worker(self, worker: Worker, choose: Choose) -> None:
        """Let a task end; the model will react if it was in the background."""
        how = choose(["all", "all", "update", "notification", "snapshot"])
        if how == "snapshot" and not (self.dialect.detailed and worker.background):
            how = "all"
        if not worker.background or not worker.is_agent:
            how = "all"
        at_once = self.dialect.reports_at_once or not worker.reports
        if how == "notification" and not at_once:
            how = "all"
        self._end(worker, choose(["completed", "failed"]), how=how, notify=at_once)
        if worker.reports:
            silent = how in {"update", "snapshot"}
            report = Report(worker, self.now, told=at_once or silent)
            (self.queue if self.dialect.reports_at_once else self.late).append(report)
        self._report_honest_state()

    def _end(self, worker: Worker, status: str, *, how: str = "all", notify: bool = True) -> None:
        self.curt = self.curt or how != "all"
        del self.workers[worker.id]
        self.asking.discard(worker.id)
        if worker.is_agent:
            self.ended.append(worker)
        # A foreground shell ends without an update.
        if how in {"all", "update"} and (worker.is_agent or worker.background):
            self._update(worker, status=status)
        if how in {"all", "notification"} and notify:
            self._notify(worker)
        if how in {"all", "snapshot"} and worker.background:
            self._snapshot()

    def ask(self, worker: Worker) -> None:
        self.asking.add(worker.id)
        self._report_honest_state()

    def answer(self, worker: Worker) -> None:
        self.asking.discard(worker.id)
        self._report_honest_state()

    def speak(self, worker: Worker) -> None:
        """Let a monitor print a line."""
        self.queue.append(Report(worker, self.now, told=True))

    def wake_up(self) -> None:
        self._serial += 1
        self.queue.append(WakeUp(f"wake-up {self._serial}", self.now))

    # -- the truth

    @property
    def quiet(self) -> bool:
        """Whether nothing will ever come by itself, but from a background shell."""
        agents = any(worker.is_agent for worker in self.workers.values())
        return self.run is None and not self.queue and not self.late and not agents

    def agents_of(self, turn: OwnTurn) -> list[Worker]:
        return [w for w in self.workers.values() if w.is_agent and turn in w.owners]

    def owes(self, turn: OwnTurn) -> bool:
        """Whether a reaction to an agent of ``turn`` is still to come or to end."""
        waiting = [*self.queue, *self.late]
        return any(is_agents(i) and turn in i.worker.owners for i in waiting) or (
            self.run is not None and turn in self.run.reacts_for
        )
