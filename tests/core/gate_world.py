"""A host with a gate, a simulated CLI, two slow pipes between them, and the laws of both.

Whoever plays picks moves; after every step the gate is held against the truth.  A broken law names
itself and tells the whole story.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import attrs

from claude_trio._protocol import _gate
from claude_trio._protocol._gate import Cancelled, Gate, OwnTurn, Verdict
from claude_trio._protocol._ledger import Fate
from claude_trio._protocol._turns import State
from tests.core.simulated_cli import SimulatedCLI
from tests.core.simulated_values import Choose, Dialect, Sent, States, TrueResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["FOLLOW_UP", "SETTLE", "LawBroken", "World"]

T = TypeVar("T")

FOLLOW_UP: Final = 2.0
SETTLE: Final = 600.0
LAG: Final = 0.3
"""A line is through the pipe within this."""


class LawBroken(AssertionError):
    """Tell which law does not hold, and how it came to that."""

    def __init__(self, law: str, what: str, story: Sequence[str]) -> None:
        super().__init__("\n".join([f"{law}: {what}", *story]))
        self.law = law


@attrs.define(eq=False)
class World:
    dialect: Dialect
    now: float = attrs.field(default=0.0, init=False)
    gate: Gate = attrs.field(init=False)
    cli: SimulatedCLI = attrs.field(init=False)
    sent: list[Sent] = attrs.field(factory=list, init=False)
    story: list[str] = attrs.field(factory=list, init=False)
    broken: bool = attrs.field(default=False, init=False)
    """Whether a law was broken, and the world makes no sense any more."""
    unread: deque[tuple[float, str, Callable[[Choose], None]]] = attrs.field(
        factory=deque, init=False
    )
    """What the host wrote and the CLI has not read."""
    last_cancel: int = attrs.field(default=-1, init=False)
    last_prompt: int = attrs.field(default=-1, init=False)
    _cancelled: dict[OwnTurn, Cancelled] = attrs.field(factory=dict, init=False)
    _holds_open: dict[OwnTurn, bool] = attrs.field(factory=dict, init=False)
    _judged: set[OwnTurn] = attrs.field(factory=set, init=False)
    _seen: dict[int, tuple[object, ...]] = attrs.field(factory=dict, init=False)
    _results_at_write: list[int] = attrs.field(factory=list, init=False)
    _number: int = attrs.field(default=10, init=False)
    _heard_at: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.gate = Gate(follow_up=FOLLOW_UP, settle=SETTLE)
        self.cli = SimulatedCLI(self.dialect)

    def _broken(self, law: str, what: str) -> NoReturn:
        self.broken = True
        raise LawBroken(law, what, [f"[{self.dialect.name}]", *self.story])

    def _tell(self, what: str) -> None:
        self.story.append(f"{self.now:9.3f} {what}")

    def _write(self, what: str, arrive: Callable[[Choose], None]) -> None:
        self._tell(f"> {what}")
        self.unread.append((self.now, what, arrive))

    # -- the host's moves

    def prompt(self, choose: Choose) -> None:
        hold_open = choose([True, True, True, False])
        self._number += 1
        self.last_prompt = self._number
        uuid = self._uuid(choose)
        turn = self._guarded(lambda: self.gate.prompt(uuid, self._number, hold_open=hold_open))
        if turn is None:
            self._broken("latch", "a prompt with no cancel behind it was not written")
        self._holds_open[turn] = hold_open
        self._send(turn, uuid, f"prompt {uuid} {hold_open=}")

    def prompt_latched(self, choose: Choose) -> None:
        before = len(self.gate.ledger.prompts)
        turn = self.gate.prompt("latched", self.last_cancel - 1)
        if turn is not None or len(self.gate.ledger.prompts) != before:
            self._broken("latch", "a prompt that its cancel has overtaken was written")
        self._check()

    def steer(self, choose: Choose) -> None:
        turn = self.gate.turn
        assert turn is not None
        uuid = self._uuid(choose)
        self._guarded(lambda: self.gate.steer(uuid))
        self._send(turn, uuid, f"steer {uuid}")

    def _uuid(self, choose: Choose) -> str:
        used = [s.uuid for s in self.sent if s.fate is not None]
        fresh = f"u{len(self.sent)}"
        return choose([fresh] * 12 + used[-1:])

    def _send(self, turn: OwnTurn, uuid: str, what: str) -> None:
        repeated = any(s.uuid == uuid for s in self.sent)
        prompt = self.gate.ledger.prompts[-1]
        sent = Sent(prompt, turn, Fate.REPEATED if repeated else None)
        self.sent.append(sent)
        self._results_at_write.append(self.gate.ledger.results)
        self._write(what, lambda choose: self.cli.read_prompt(sent, choose))
        self._check()

    def cancel(self, choose: Choose) -> None:
        """Cancel what runs; while no turn of ours does, stop what the CLI does by itself."""
        spare = choose([False, False, True])
        self._number += 1
        self.last_cancel = self._number
        turn, was = self.gate.turn, self.gate.machine.state
        if turn is not None and was is not State.CANCELLING:
            how = Cancelled.HELD if was is State.HELD else Cancelled.RUNNING
            self._cancelled[turn] = Cancelled.SPARED if spare else how
        cancels = self._guarded(lambda: self.gate.cancel(self._number, spare_agents=spare))
        if cancels is not (turn is not None and was is not State.CANCELLING):
            self._broken("cancel", f"a cancel while {was} says {cancels}")
        if cancels or (turn is None and self.gate.busy):
            self._write(
                f"interrupt {spare=}",
                lambda choose: self.cli.read_interrupt(spare=spare, choose=choose),
            )
        self._check()

    def cancel_stale(self, choose: Choose) -> None:
        before = self.gate.machine.state
        if self.gate.cancel(self.last_prompt - 1) or self.gate.machine.state is not before:
            self._broken("cancel", "a cancel that was meant for an earlier turn did something")
        self._check()

    def stop_task(self, choose: Choose) -> None:
        task_id = choose(sorted(self.gate.tasks.live))
        self._write(f"stop {task_id}", lambda _: self.cli.read_stop_task(task_id))

    # -- time and the pipes

    def wait(self, seconds: float, choose: Choose) -> None:
        until = self.now + seconds
        while True:
            due = min(self._pipes_due(), self.cli.due, self.gate.deadline())
            self._at(max(self.now, min(due, until)))
            if due > until:
                return
            if self._pipes_due() <= self.now:
                self._deliver_due(choose)
            elif self.cli.due <= self.now:
                self._tell("(the CLI goes on)")
                self.cli.do_what_is_due(choose)
            else:
                self._tick()

    def _at(self, now: float) -> None:
        self.now = self.cli.now = now

    def _tick(self) -> None:
        self._tell("(tick)")
        self._guarded(lambda: self.gate.tick(self.now))
        if self.gate.deadline() <= self.now:
            self._broken("deadline", "a tick at the deadline decides nothing")
        self._check()

    def _pipes_due(self) -> float:
        heads = [pipe[0][0] for pipe in (self.unread, self.cli.out) if pipe]
        return min(heads, default=math.inf) + LAG

    def _deliver_due(self, choose: Choose) -> None:
        if self.unread and self.unread[0][0] + LAG <= self.now:
            self.to_cli(choose)
        else:
            self.to_host(choose)

    def to_cli(self, choose: Choose) -> None:
        _, what, arrive = self.unread.popleft()
        self._tell(f"  the CLI reads: {what}")
        arrive(choose)

    def to_host(self, choose: Choose) -> None:
        _, frame = self.cli.out.popleft()
        self._tell(f"< {frame.label}")
        turn = self.gate.turn
        self._heard_at = self.now
        self.gate.heard(self.now)
        said = self._guarded(lambda: frame.tell(self.gate, self.now))
        if frame.result is not None:
            self._check_result(frame.result, turn, said)
        self._check()

    def drain(self, choose: Choose) -> None:
        while self.unread or self.cli.out:
            while self.unread:
                self.to_cli(choose)
            while self.cli.out:
                self.to_host(choose)

    def _guarded(self, step: Callable[[], T]) -> T:
        try:
            return step()
        except Exception as error:  # It is raised again, with the story that led to it.
            self.broken = True
            raise LawBroken("legal moves", repr(error), self.story) from error

    # -- the laws

    def _check(self) -> None:
        for sent, written_at in zip(self.sent, self._results_at_write, strict=True):
            self._check_prompt(sent, written_at)
        open_turns = {s.turn for s in self.sent if not s.turn.over}
        if open_turns != ({self.gate.turn} - {None}):
            self._broken("one turn", "the open turn is not the gate's")
        self._check_machine()
        self._check_what_runs()
        for turn in {s.turn for s in self.sent if s.turn.over} - self._judged:
            self._judged.add(turn)
            self._tell(f"(over: {turn.prompt.uuid})")
            self._check_over(turn)

    def _check_prompt(self, sent: Sent, results_at_write: int) -> None:
        prompt = sent.prompt
        now = (prompt.fate, prompt.result if prompt.fate else None, prompt.certain)
        before = self._seen.get(prompt.ordinal, (None, None, True))
        if before != now and before[0] is not None:
            self._broken("one fate", f"{prompt.uuid} had {before} and has {now}")
        self._seen[prompt.ordinal] = now
        if prompt.fate is None or before == now:
            return
        self._tell(f"({prompt.uuid}: {prompt.fate.value} {prompt.result} {prompt.certain})")
        if prompt.fate is Fate.ANSWERED:
            self._check_answer(sent, results_at_write)
        elif prompt.fate is not sent.fate:
            self._broken("true fate", f"{prompt.uuid} is {prompt.fate}, truly {sent.fate}")

    def _check_answer(self, sent: Sent, results_at_write: int) -> None:
        said, true = sent.prompt.result, sent.result
        if said is None or not results_at_write <= said < self.gate.ledger.results:
            self._broken("no stale result", f"{sent.uuid} is answered by {said}")
        if true is None or (sent.prompt.certain and said != true):
            self._broken("attribution", f"{sent.uuid} is answered by {said}, truly by {true}")

    def _check_result(self, true: TrueResult, turn: OwnTurn | None, said: object) -> None:
        if said is not None and said is not turn:
            self._broken("whose result", "it is given to a turn that does not run")
        if not self.dialect.lifecycle or turn is None:
            return
        if said is None and (turn in true.asked_by or true.reacts_for == {turn}):
            self._broken("whose result", "it is the running turn's, and called unsolicited")
        if said is not None and true.nobodys:
            self._broken("whose result", "it is nobody's, and given to the running turn")

    def _check_machine(self) -> None:
        state, turn = self.gate.machine.state, self.gate.turn
        waiting = [s.prompt for s in self.sent if s.prompt.fate is None]
        if list(self.gate.ledger.outstanding) != waiting:
            self._broken("machine", "what is outstanding is not what has no fate")
        if turn is None:
            expected = {State.IDLE, State.CLOSED}
        elif turn in self._cancelled:
            expected = {State.CANCELLING}
        else:
            said = _gate.verdict(turn, self.gate.ledger, self.gate.tasks)
            expected = {State.PROMPTING if said is Verdict.OPEN else State.HELD}
            if said is Verdict.OVER:
                self._broken("machine", "the turn is over, and goes on")
        if state not in expected:
            self._broken("machine", f"{state} with {turn}")
        answered = all(s.prompt.fate is not None for s in self.sent if s.turn is turn)
        if turn is not None and answered and self._ends_with_its_answers(turn):
            self._broken("its answers end it", "all have a fate, and it goes on")

    def _ends_with_its_answers(self, turn: OwnTurn) -> bool:
        how = self._cancelled.get(turn)
        return not self._holds_open[turn] or how in {Cancelled.RUNNING, Cancelled.SPARED}

    def _check_what_runs(self) -> None:
        gate, cli, turn = self.gate, self.cli, self.gate.turn
        if turn is not None and gate.ledger.speaks_lifecycle and gate.begun(turn):
            true = next(s for s in self.sent if s.prompt is turn.prompt)
            if not true.taken and true.fate is None:
                self._broken("begun", "the CLI has not taken up the prompt")
        if self.unread or cli.out or self.dialect.states is not States.HONEST:
            return  # What is in the pipe cannot be known, and idle does not tell.
        agents = any(worker.is_agent for worker in cli.workers.values())
        if gate.at_rest and (cli.run is not None or cli.workers):
            self._broken("at rest", "something runs")
        if (cli.run is not None or agents) and not gate.busy:
            self._broken("busy", "something runs, and an interrupt would stop it")

    def _check_over(self, turn: OwnTurn) -> None:
        if self.gate.machine.state is State.CLOSED:
            return
        if not turn.settled:
            if self.now < self._heard_at + SETTLE:
                self._broken("never early", "it was given up while the CLI spoke")
            if self.cli.asking and self.dialect.states is States.HONEST:
                self._broken("never early", "it was given up while somebody was asked")
            return
        reasons = list(self._why_open(turn))
        if reasons:
            self._broken("never early", f"{turn.prompt.uuid} is over, but {', '.join(reasons)}")

    def _why_open(self, turn: OwnTurn) -> Iterator[str]:
        for sent in self.sent:
            if sent.turn is turn and sent.fate is None:
                yield f"{sent.uuid} has no fate"
        if self._ends_with_its_answers(turn):
            return
        # Where idle does not tell, agents that it has not heard of do not keep a cancelled turn.
        told = turn not in self._cancelled or self.dialect.states is States.HONEST
        for agent in self.cli.agents_of(turn):
            if agent.announced or told:
                yield f"{agent.id} lives"
        if turn not in self._cancelled and self.cli.owes(turn):
            yield "a follow-up is owed"

    # -- the end

    def settle_down(self, choose: Choose) -> None:
        """Let the CLI come to rest, and see that then everything has."""
        self.drain(choose)
        for _ in range(200):
            if self.cli.quiet:
                break
            self._go_on(choose)
            self.drain(choose)
        else:
            self._broken("simulation", "the CLI does not come to rest")
        if self.dialect.states is States.HONEST and not self.cli.curt:
            self._check_settled("at once")
        self.wait(FOLLOW_UP + 0.001, choose)
        self._check_settled("in time")

    def _go_on(self, choose: Choose) -> None:
        cli = self.cli
        if cli.run is not None:
            (cli.finish if cli.run.begun else lambda _: cli.begin())(choose)
        elif cli.late:
            cli.hand_in_report()
        elif cli.queue:
            cli.take(choose)
        else:
            agents = [w for w in cli.workers.values() if w.is_agent]
            cli.end_worker(agents[0], choose)

    def _check_settled(self, when: str) -> None:
        if self.gate.turn is not None or self.gate.ledger.outstanding:
            self._broken("never stuck", f"the CLI is at rest, and the turn is not over {when}")

    def end(self, choose: Choose) -> None:
        """Let the CLI go away, with what it has said delivered or lost."""
        if choose([True, False]):
            while self.cli.out:
                self.to_host(choose)
        self._tell("(EOF)")
        self.gate.eof()
        for sent in self.sent:
            fate, certain = sent.prompt.fate, sent.prompt.certain
            self._tell(f"({sent.uuid}: {fate and fate.value})")
            if fate is None:
                self._broken("one fate", f"{sent.uuid} has none at the end")
            if fate is Fate.ANSWERED and certain and sent.result != sent.prompt.result:
                self._broken("attribution", f"{sent.uuid} is not answered by what it says")
            if fate is Fate.LOST and sent.fate is not None and not self.cli.out:
                self._broken("true fate", f"{sent.uuid} is lost, truly {sent.fate}")
        if self.gate.machine.state is not State.CLOSED or self.gate.turn is not None:
            self._broken("machine", "the session is not closed")
