"""The gate against a CLI that knows the truth, over pipes that are slow and a clock that jumps."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.core.gate_moves import MOVES, Move, walk
from tests.core.gate_world import World
from tests.core.simulated_values import BARE, CURRENT, DIALECTS, OLD, Dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

EXAMPLES: Final = 1500
STEPS: Final = 50
WALKS: Final = 1

each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


class _Play(RuleBasedStateMachine):
    """One world; its moves become rules below.  The laws stand in the world."""

    dialect: Dialect

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.dialect)

    def teardown(self) -> None:
        if not self.world.broken:
            self.world.settle_down(_first)
            self.world.end(_first)
        super().teardown()


def _first(options: Sequence[T], /) -> T:
    return options[0]


def _rule_of(move: Move) -> Any:
    def step(self: _Play, data: st.DataObject) -> None:
        def choose(options: Sequence[T], /) -> T:
            return data.draw(st.sampled_from(options)) if len(options) > 1 else options[0]

        move.make(self.world, choose)

    step.__name__ = move.name
    return precondition(lambda self: move.ready(self.world))(rule(data=st.data())(step))


@pytest.mark.slow
@each_dialect
def test_the_gate_keeps_its_laws_whatever_happens(dialect: Dialect) -> None:
    rules = {move.name: _rule_of(move) for move in MOVES}
    play: type[_Play] = type("Play", (_Play,), {"dialect": dialect, **rules})
    run_state_machine_as_test(
        play, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
    )


@pytest.mark.slow
@each_dialect
def test_long_random_walks_keep_the_laws(dialect: Dialect) -> None:
    for seed in range(WALKS):
        walk(World(dialect), Random(seed), steps=20 + seed % 100)


# -- the simulation itself is worth something


def _story(dialect: Dialect) -> str:
    """All that happened in many walks."""
    stories = []
    for seed in range(60):
        world = World(dialect)
        walk(world, Random(seed), steps=80)
        stories += world.story
    return "\n".join(stories)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "seen", "never_seen"),
    [
        (
            CURRENT,
            [
                *("lifecycle u0 refused", "lifecycle u1 cancelled", "withdrawn", "repeated"),
                *("receipt ['u", "state requires_action", "wake-up 1 started", "snapshot [a"),
                *("task-notification a", "task-notification b", "killed", "lost"),
            ],
            ["False)"],
        ),
        (
            OLD,
            ["task-notification None", "state idle", "False)", "(tick)", "lost"],
            ["lifecycle", "snapshot", "receipt", "withdrawn"],
        ),
        (BARE, ["task-notification None", "False)", "(tick)"], ["lifecycle", "state "]),
    ],
    ids=["2.1.332", "2.1.197", "bare"],
)
def test_the_simulation_reaches_what_it_is_for(
    dialect: Dialect, seen: list[str], never_seen: list[str]
) -> None:
    story = _story(dialect)
    assert [what for what in seen if what not in story] == []
    assert [what for what in never_seen if what in story] == []
