"""Small mutations of the turn core, as somebody might make them by mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from claude_trio._protocol import _gate, _ledger
from claude_trio._protocol._gate import Cancelled, Gate, OwnTurn, Verdict
from claude_trio._protocol._ledger import Fate, Ledger, Prompt, RunResult, Standing
from claude_trio._protocol._steering import (
    Accepted,
    Duplicate,
    NoLiveTurn,
    StaleTurn,
    Steering,
    SteerOutcome,
    SteerRef,
)
from claude_trio._protocol._tasks import Task, Tasks
from claude_trio._protocol._turns import State, TurnMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "any_result_pays",
    "cancel_without_guard",
    "cancelled_as",
    "cancelled_is_withdrawn",
    "duplicate_has_a_new_ref",
    "folded_has_the_last_result",
    "give_up_beside_a_question",
    "init_for_all_to_come",
    "instead",
    "judged",
    "lifecycle_keeps_doubt",
    "lifecycle_without_schedule",
    "live_before_dedup",
    "named_or_nothing",
    "never_waits_beside_others",
    "newest_first",
    "old_token_is_returned",
    "only_agents_owe",
    "pay_everything",
    "pay_for_nobody",
    "pay_what_came_later",
    "prompt_without_latch",
    "quiet",
    "receipt_drops_all",
    "result_without_origin",
    "settle_but_withdrawn",
    "settle_without_doubt",
    "stale_is_remembered",
    "start_for_nobody",
    "start_for_the_first_owner",
    "state_but",
    "steer_without_member",
    "text_is_not_compared",
    "tick_keeps_debts",
    "tick_without_move",
    "token_is_kept",
    "tokens_begin_anew",
    "update_discards",
    "update_says_no_end",
    "write_every_uuid",
]


def instead(owner: object, name: str, fault: object) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what puts ``fault`` in the place of an attribute."""
    return lambda patch: patch.setattr(owner, name, fault)


# -- the turn machine

prompt, cancel = TurnMachine.prompt, TurnMachine.cancel


def prompt_without_latch(self: TurnMachine, number: int) -> State:
    self._last_cancel = -1
    return prompt(self, number)


def cancel_without_guard(self: TurnMachine, number: int) -> State:
    return cancel(self, max(number, self._prompted_at))


# -- the ledger

result, by_order, write = Ledger.result, Ledger._by_order, Ledger.write
settle, over, lifecycle = Ledger._settle, Ledger._lifecycle_over, Ledger.lifecycle


def newest_first(self: Ledger, run: _ledger._Run | None, ordinal: int) -> list[Prompt]:
    self._open.reverse()
    answered = by_order(self, run, ordinal)
    self._open.reverse()
    return answered


def result_without_origin(
    self: Ledger, now: float, *, uuids: Sequence[str] = (), origin: str | None = None
) -> RunResult:
    return result(self, now, uuids=uuids)


def settle_without_doubt(
    self: Ledger, one: Prompt, fate: Fate, result: int | None = None, *, certain: bool = True
) -> None:
    settle(self, one, fate, result)


def settle_but_withdrawn(
    self: Ledger, one: Prompt, fate: Fate, result: int | None = None, *, certain: bool = True
) -> None:
    if fate is not Fate.WITHDRAWN:
        settle(self, one, fate, result, certain=certain)


def folded_has_the_last_result(self: Ledger, one: Prompt, *, cancelled: bool) -> None:
    if one.standing is Standing.STARTED:
        settle(self, one, Fate.ANSWERED, self.results - 1)
    else:
        over(self, one, cancelled=cancelled)


def cancelled_is_withdrawn(self: Ledger, one: Prompt, *, cancelled: bool) -> None:
    if cancelled:
        settle(self, one, Fate.WITHDRAWN)
    else:
        over(self, one, cancelled=cancelled)


def named_or_nothing(self: Ledger, one: Prompt, *, cancelled: bool) -> None:
    one.results_before = self.results
    over(self, one, cancelled=cancelled)


def receipt_drops_all(self: Ledger, uuids: Sequence[str]) -> None:
    for one in list(self.outstanding):
        settle(self, one, Fate.WITHDRAWN)


def lifecycle_without_schedule(
    self: Ledger, uuid: str, state: str, *, scheduled: bool = False
) -> None:
    lifecycle(self, uuid, state)


def lifecycle_keeps_doubt(self: Ledger, uuid: str, state: str, *, scheduled: bool = False) -> None:
    one = self._by_uuid[uuid]
    doubt = one.maybe
    lifecycle(self, uuid, state, scheduled=scheduled)
    one.maybe = doubt


def init_for_all_to_come(self: Ledger) -> None:
    self.run = _ledger._Run(1000, scheduled=False)


def write_every_uuid(self: Ledger, uuid: str | None) -> Prompt:
    self._by_uuid.pop(uuid or "", None)
    return write(self, uuid)


def quiet(seconds: float) -> Callable[[pytest.MonkeyPatch], None]:
    def made(self: Gate) -> None:
        self.ledger = Ledger(seconds)
        self.tasks = Tasks(self.follow_up)

    return instead(Gate, "__attrs_post_init__", made)


# -- the tasks

started, updated, owe, follow_up, tick = (
    Tasks.started,
    Tasks.updated,
    Tasks._owe,
    Tasks.follow_up,
    Tasks.tick,
)


def update_discards(
    self: Tasks, now: float, task_id: str, *, status: str | None, backgrounded: bool | None
) -> None:
    updated(self, now, task_id, status=status, backgrounded=backgrounded)
    if status is not None:
        self.live.pop(task_id, None)


def update_says_no_end(
    self: Tasks, now: float, task_id: str, *, status: str | None, backgrounded: bool | None
) -> None:
    updated(self, now, task_id, status=None, backgrounded=backgrounded)


def only_agents_owe(self: Tasks, task: Task, now: float) -> None:
    if task.is_agent:
        owe(self, task, now)


def pay_everything(self: Tasks, run_id: str | None) -> object:
    owner = follow_up(self, run_id)
    self.idle()
    return owner


def pay_what_came_later(self: Tasks, run_id: str | None) -> object:
    self.run_began()
    return follow_up(self, run_id)


def pay_for_nobody(self: Tasks, run_id: str | None) -> object:
    follow_up(self, run_id)
    return None


def start_for_nobody(
    self: Tasks,
    task_id: str,
    task_type: str,
    *,
    owner: object,
    run_id: str | None = None,
    backgrounded: bool | None = None,
    parent: str | None = None,
    description: str = "",
) -> None:
    started(
        self,
        task_id,
        task_type,
        owner=owner,
        run_id=run_id,
        backgrounded=backgrounded,
    )
    if parent is not None:
        self.live[task_id].owner = None


def start_for_the_first_owner(patch: pytest.MonkeyPatch) -> None:
    owners: dict[tuple[Tasks, str], object] = {}

    def start(
        self: Tasks,
        task_id: str,
        task_type: str,
        *,
        owner: object,
        run_id: str | None = None,
        backgrounded: bool | None = None,
        parent: str | None = None,
        description: str = "",
    ) -> None:
        owner = owners.setdefault((self, task_id), owner)
        started(
            self,
            task_id,
            task_type,
            owner=owner,
            run_id=run_id,
            backgrounded=backgrounded,
            parent=parent,
        )
        self.live[task_id].owner = owner

    patch.setattr(Tasks, "started", start)


def tick_keeps_debts(self: Tasks, now: float, quiet_since: float) -> None:
    debts = list(self._owed)
    tick(self, now, quiet_since)
    self._owed = debts


# -- the gate

verdict, gate_result = _gate.verdict, Gate.result
gate_steer, gate_state, gives_up_at = Gate.steer, Gate.session_state, Gate._gives_up_at
Change = dict[str, object]


def judged(change: Callable[[OwnTurn], Change]) -> Callable[[pytest.MonkeyPatch], None]:
    """Judge every turn as if it were another."""

    def judge(turn: OwnTurn, ledger: Ledger, tasks: Tasks) -> Verdict:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in change(turn).items():
                patch.setattr(turn, name, value)
            return verdict(turn, ledger, tasks)

    return instead(_gate, "verdict", judge)


def never_waits_beside_others(turn: OwnTurn, ledger: Ledger, tasks: Tasks) -> Verdict:
    said = verdict(turn, ledger, tasks)
    free = said is Verdict.HELD and not tasks.holds(turn) and tasks.others(turn)
    return Verdict.OVER if free else said


def cancelled_as(said: Cancelled, taken_for: Cancelled) -> Callable[[pytest.MonkeyPatch], None]:
    return judged(lambda turn: {"cancelled": taken_for} if turn.cancelled is said else {})


def steer_without_member(self: Gate, uuid: str | None) -> Prompt:
    one = gate_steer(self, uuid)
    if self.turn is not None:
        self.turn.members.remove(one)
    return one


def state_but(ignored: str) -> Callable[[pytest.MonkeyPatch], None]:
    def told(self: Gate, state: str) -> None:
        if state != ignored:
            gate_state(self, state)

    return instead(Gate, "session_state", told)


def tick_without_move(self: Gate, now: float) -> None:
    self.ledger.tick(now)
    self.tasks.tick(now, self._quiet_since)


def give_up_beside_a_question(self: Gate) -> float:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self.ledger, "state", "running")
        return gives_up_at(self)


def any_result_pays(
    self: Gate,
    now: float,
    *,
    uuids: Sequence[str] = (),
    origin: str | None = None,
    run_id: str | None = None,
) -> OwnTurn | None:
    self.tasks.follow_up(run_id)
    return gate_result(self, now, uuids=uuids, origin=origin, run_id=run_id)


# -- steering

steer, turn_started = Steering.steer, Steering.turn_started


def live_before_dedup(
    self: Steering, text: str | None, *, expected_token: int, client_msg_id: str | None = None
) -> SteerOutcome:
    if self.wired and self.token is None:
        return NoLiveTurn()
    return steer(self, text, expected_token=expected_token, client_msg_id=client_msg_id)


def token_is_kept(
    self: Steering, text: str | None, *, expected_token: int, client_msg_id: str | None = None
) -> SteerOutcome:
    outcome = steer(self, text, expected_token=expected_token, client_msg_id=client_msg_id)
    if isinstance(outcome, Accepted):
        self.token = expected_token
    return outcome


def old_token_is_returned(
    self: Steering, text: str | None, *, expected_token: int, client_msg_id: str | None = None
) -> SteerOutcome:
    outcome = steer(self, text, expected_token=expected_token, client_msg_id=client_msg_id)
    return Accepted(outcome.ref, expected_token) if isinstance(outcome, Accepted) else outcome


def stale_is_remembered(
    self: Steering, text: str | None, *, expected_token: int, client_msg_id: str | None = None
) -> SteerOutcome:
    outcome = steer(self, text, expected_token=expected_token, client_msg_id=client_msg_id)
    if isinstance(outcome, StaleTurn) and client_msg_id is not None:
        self._known[client_msg_id] = (text, SteerRef(expected_token, 0, client_msg_id))
    return outcome


def text_is_not_compared(
    self: Steering, text: str | None, *, expected_token: int, client_msg_id: str | None = None
) -> SteerOutcome:
    known = self._known.get(client_msg_id or "")
    text = known[0] if known is not None and client_msg_id is not None else text
    return steer(self, text, expected_token=expected_token, client_msg_id=client_msg_id)


def duplicate_has_a_new_ref(
    self: Steering, text: str | None, *, expected_token: int, client_msg_id: str | None = None
) -> SteerOutcome:
    outcome = steer(self, text, expected_token=expected_token, client_msg_id=client_msg_id)
    if isinstance(outcome, Duplicate):
        return Duplicate(SteerRef(expected_token, outcome.ref.offset, client_msg_id))
    return outcome


def tokens_begin_anew(self: Steering) -> int:
    self._last_token = 0
    return turn_started(self)
