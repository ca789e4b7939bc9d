"""Faults planted in the turn core, each with the law that catches it.

A suite that passes proves little; one that fails for the right reason, on every fault that somebody
is likely to make, proves more.
"""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING, Final

import attrs
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from claude_trio._protocol import _gate, _ledger
from claude_trio._protocol._gate import Cancelled, Gate
from claude_trio._protocol._ledger import Ledger
from claude_trio._protocol._steering import Steering
from claude_trio._protocol._tasks import Tasks
from claude_trio._protocol._turns import TRANSITIONS, Input, State, TurnMachine
from tests.core import planted_faults as faults
from tests.core import test_gate, test_gate_agents, test_ledger, test_tasks
from tests.core.gate_moves import walk
from tests.core.gate_world import LawBroken, World
from tests.core.planted_faults import instead
from tests.core.simulated_values import BARE, CURRENT, DIALECTS, MUTE, OLD, Dialect
from tests.core.steering_model import SteeringAgainstItsModel

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

WALKS: Final = 600
"""How many walks each fault is given to show itself."""
STEPS: Final = 80


@attrs.frozen
class Fault:
    name: str
    law: str
    """The law that breaks, or several, with a bar between."""
    plant: Callable[[pytest.MonkeyPatch], None]
    dialects: Sequence[Dialect] = DIALECTS
    only: Collection[str] = ()
    """The moves that show it, where few walks would."""


def _first_broken_law(fault: Fault) -> LawBroken | None:
    for seed in range(WALKS):
        dialect = fault.dialects[seed % len(fault.dialects)]
        try:
            walk(World(dialect), Random(seed), STEPS, only=fault.only)
        except LawBroken as broken:
            return broken
    return None


FAULTS: Final = [
    Fault(
        "the latch is ignored", "latch", instead(TurnMachine, "prompt", faults.prompt_without_latch)
    ),
    Fault(
        "a stale cancel is honoured",
        "cancel",
        instead(TurnMachine, "cancel", faults.cancel_without_guard),
    ),
    Fault(
        "a steer leaves a held turn held",
        "machine",
        lambda patch: patch.setitem(TRANSITIONS, (State.HELD, Input.STEER), State.HELD),
    ),
    Fault(
        "a cancel forgets a held turn",
        "cancel",
        lambda patch: patch.setitem(TRANSITIONS, (State.HELD, Input.CANCEL), State.IDLE),
    ),
    Fault(
        "a result without uuids answers the newest",
        "attribution",
        instead(Ledger, "_by_order", faults.newest_first),
        [OLD],
    ),
    Fault(
        "the origin of a result is ignored",
        "attribution",
        instead(Ledger, "result", faults.result_without_origin),
        [OLD, BARE],
    ),
    Fault(
        "doubt is not marked",
        "attribution",
        instead(Ledger, "_settle", faults.settle_without_doubt),
        [OLD],
    ),
    Fault("silence decides at once", "attribution", faults.quiet(0.0), [OLD, BARE]),
    Fault("silence never decides", "never stuck", faults.quiet(math.inf), [OLD, BARE]),
    Fault(
        "a folded prompt has the result before its own",
        "attribution|no stale result",
        instead(Ledger, "_lifecycle_over", faults.folded_has_the_last_result),
        [CURRENT],
    ),
    Fault(
        "cancelled always means withdrawn",
        "true fate",
        instead(Ledger, "_lifecycle_over", faults.cancelled_is_withdrawn),
        [CURRENT],
    ),
    Fault(
        "what a result does not name has no result",
        "true fate|attribution",
        instead(Ledger, "_lifecycle_over", faults.named_or_nothing),
        [CURRENT],
    ),
    Fault(
        "a receipt drops all that waits",
        "true fate",
        instead(Ledger, "withdrawn", faults.receipt_drops_all),
        [CURRENT],
    ),
    Fault(
        "a withdrawn prompt is waited for",
        "never stuck|true fate",
        instead(Ledger, "_settle", faults.settle_but_withdrawn),
        [CURRENT, MUTE],
    ),
    Fault(
        "a refused prompt is waited for",
        "never stuck|true fate|whose result",
        lambda patch: patch.delitem(_ledger._TERMINAL, "refused"),
        [CURRENT, MUTE],
    ),
    Fault(
        "a repeated uuid is waited for",
        "never stuck|true fate|attribution",
        instead(Ledger, "write", faults.write_every_uuid),
    ),
    Fault("the end settles nothing", "one fate", instead(Ledger, "eof", lambda _: None)),
    Fault(
        "task_updated discards at once, and nothing is owed",
        "never early",
        instead(Tasks, "updated", faults.update_discards),
        [OLD],
    ),
    Fault(
        "task_updated ends nothing",
        "never stuck",
        instead(Tasks, "updated", faults.update_says_no_end),
    ),
    Fault(
        "task_notification ends nothing",
        "never stuck",
        instead(Tasks, "notified", lambda *_: None),
        [BARE],
    ),
    Fault(
        "a snapshot ends nothing",
        "never stuck|whose result",
        instead(Tasks, "snapshot", lambda *_: None),
        [CURRENT, MUTE],
    ),
    Fault(
        "owed follow-ups are forgotten",
        "never early|whose result",
        instead(Tasks, "_owe", lambda *_: None),
        [MUTE, BARE],
    ),
    Fault(
        "one follow-up pays every debt",
        "never early",
        instead(Tasks, "follow_up", faults.pay_everything),
        [BARE],
        ["start_agent", "end_agent"],
    ),
    Fault(
        "a shell's follow-up pays for an agent",
        "never early",
        instead(Tasks, "_owe", faults.only_agents_owe),
        [BARE],
        ["start_agent", "end_agent", "start_shell", "end_shell"],
    ),
    Fault(
        "a follow-up is nobody's",
        "whose result",
        instead(Tasks, "follow_up", faults.pay_for_nobody),
        [CURRENT],
    ),
    Fault(
        "a wake-up pays for an agent",
        "whose result|never early",
        instead(Gate, "result", faults.any_result_pays),
        [MUTE],
        ["start_agent", "end_agent", "wake_up"],
    ),
    Fault(
        "a nested agent is nobody's",
        "never early",
        instead(Tasks, "started", faults.start_for_nobody),
        [CURRENT, MUTE],
        ["start_agent", "end_agent", "start_nested"],
    ),
    Fault(
        "a revived agent is its first turn's",
        "never early|whose result",
        faults.start_for_the_first_owner,
        only=["start_agent", "end_agent", "revive", "cancel"],
    ),
    Fault(
        "a debt is never let go of",
        "deadline",
        instead(Tasks, "tick", faults.tick_keeps_debts),
        [MUTE, BARE],
    ),
    Fault("idle is ignored", "never stuck", faults.state_but("idle"), [CURRENT, OLD]),
    Fault("running is ignored", "busy|at rest", faults.state_but("running"), [CURRENT]),
    Fault(
        "cancelling a held turn ends it at once",
        "never early",
        faults.cancelled_as(Cancelled.HELD, Cancelled.RUNNING),
    ),
    Fault(
        "a cancelled turn waits for its agents",
        "its answers end it",
        faults.cancelled_as(Cancelled.RUNNING, Cancelled.HELD),
    ),
    Fault(
        "a spared cancel waits for the agents",
        "its answers end it",
        faults.cancelled_as(Cancelled.SPARED, Cancelled.HELD),
    ),
    Fault(
        "every turn is held open",
        "its answers end it",
        faults.judged(lambda _: {"hold_open": True}),
    ),
    Fault("no turn is held open", "never early", faults.judged(lambda _: {"hold_open": False})),
    Fault(
        "the first answer ends a turn",
        "never early",
        faults.judged(lambda turn: {"members": turn.members[:1]}),
    ),
    Fault(
        "a steer is no part of the turn",
        "never early|machine|whose result",
        instead(Gate, "steer", faults.steer_without_member),
    ),
    Fault(
        "a prompt has begun when it is written",
        "begun",
        instead(Gate, "begun", lambda *_: True),
        [CURRENT],
    ),
    Fault(
        "what is heard does not move the ceiling",
        "never early",
        instead(Gate, "heard", lambda *_: None),
    ),
    Fault(
        "a question does not stop the ceiling",
        "never early",
        instead(Gate, "_gives_up_at", faults.give_up_beside_a_question),
        [CURRENT],
        ["start_agent", "ask"],
    ),
    Fault(
        "a tick decides, and nobody acts",
        "machine|its answers end it|deadline",
        instead(Gate, "tick", faults.tick_without_move),
    ),
]

# What the walks do not show, since the truth allows it or the CLI of the walks never does it.
EXAMPLES: Final = [
    (
        "a follow-up pays for what ended after it began",
        instead(Tasks, "follow_up", faults.pay_what_came_later),
        test_tasks.test_a_nameless_follow_up_pays_the_oldest_debt_from_before_it_began,
    ),
    (
        "an earlier turn's agent holds the next turn",
        instead(Tasks, "holds", lambda self, _: any(t.is_agent for t in self.live.values())),
        test_gate_agents.test_an_agent_of_an_earlier_turn_does_not_hold_and_idle_is_not_asked_for,
    ),
    (
        "idle is asked for beside an earlier turn's agent",
        instead(Tasks, "others", lambda *_: False),
        test_gate_agents.test_an_agent_of_an_earlier_turn_does_not_hold_and_idle_is_not_asked_for,
    ),
    (
        "a cancelled held turn does not wait for idle beside an earlier turn's agent",
        instead(_gate, "verdict", faults.never_waits_beside_others),
        test_gate.test_a_held_turn_that_is_cancelled_waits_for_idle_beside_an_earlier_turns_agent,
    ),
    (
        "a held turn is never given up",
        instead(Gate, "_gives_up_at", lambda _: math.inf),
        test_gate.test_a_held_turn_is_given_up_when_nothing_is_heard_of_it,
    ),
    (
        "a wake-up is a prompt like another",
        instead(Ledger, "lifecycle", faults.lifecycle_without_schedule),
        test_ledger.test_a_wake_ups_result_is_unsolicited_though_it_has_no_origin,
    ),
    (
        "silence decides although the CLI has told",
        instead(Ledger, "lifecycle", faults.lifecycle_keeps_doubt),
        test_ledger.test_silence_decides_nothing_once_the_cli_has_told_of_the_prompt,
    ),
    (
        "a run answers what was written after it began",
        instead(Ledger, "init", faults.init_for_all_to_come),
        test_ledger.test_a_run_does_not_answer_what_was_written_after_it_began,
    ),
]

STEERING_FAULTS: Final = {
    "liveness is asked before dedup": ("steer", faults.live_before_dedup),
    "an accepted steer keeps the token": ("steer", faults.token_is_kept),
    "an accepted steer returns the old token": ("steer", faults.old_token_is_returned),
    "a stale attempt is remembered": ("steer", faults.stale_is_remembered),
    "another text under one id is the same": ("steer", faults.text_is_not_compared),
    "a duplicate is given a new ref": ("steer", faults.duplicate_has_a_new_ref),
    "a turn that ended can be steered": ("turn_ended", lambda _: None),
    "each turn counts its tokens anew": ("turn_started", faults.tokens_begin_anew),
}


def test_the_list_is_long_enough_and_names_each_fault_once() -> None:
    names = [fault.name for fault in FAULTS] + list(STEERING_FAULTS)
    names += [name for name, _, _ in EXAMPLES]
    assert len(names) == len(set(names)) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_breaks_its_law(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    broken = _first_broken_law(fault)
    assert broken is not None, "nothing has noticed it"
    assert broken.law in fault.law.split("|"), str(broken)


@pytest.mark.parametrize(("plant", "law"), [e[1:] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES])
def test_a_planted_fault_breaks_the_law_of_its_rule(
    plant: Callable[[pytest.MonkeyPatch], None],
    law: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law()
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        law()


@pytest.mark.slow
@pytest.mark.parametrize("name", STEERING_FAULTS)
def test_a_planted_fault_of_steering_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, fault = STEERING_FAULTS[name]
    monkeypatch.setattr(Steering, method, fault)
    found_at_once = settings(
        max_examples=200, derandomize=True, database=None, phases=[Phase.generate]
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(SteeringAgainstItsModel, settings=found_at_once)


def test_without_a_fault_no_law_breaks() -> None:
    for seed in range(40):
        walk(World(DIALECTS[seed % len(DIALECTS)]), Random(seed), STEPS)
