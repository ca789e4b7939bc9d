"""The turn machine: its table, and the guards that turn receive numbers into inputs."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._errors import LocalProtocolError, RemoteProtocolError
from claude_trio._protocol._turns import TRANSITIONS, Input, State, TurnMachine

THE_CLIS: Final = {Input.RESULT, Input.TURN_OVER}
"""The moves that are not ours to make."""
RUNNING: Final = {State.PROMPTING, State.HELD, State.CANCELLING}

states = st.sampled_from(State)
numbers = st.integers(min_value=0, max_value=20)


@pytest.mark.parametrize(("state", "what"), list(product(State, Input)), ids=lambda part: part.name)
def test_every_input_is_in_the_table_or_raises_and_changes_nothing(
    state: State, what: Input
) -> None:
    machine = TurnMachine(state)
    if (state, what) in TRANSITIONS:
        assert machine.handle(what) is TRANSITIONS[state, what]
        assert machine.state is TRANSITIONS[state, what]
        return
    error = RemoteProtocolError if what in THE_CLIS else LocalProtocolError
    with pytest.raises(error) as caught:
        machine.handle(what)
    assert machine.state is state
    assert what.value in str(caught.value)
    assert state.value in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_error_does_not_drag_the_table_along() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        TurnMachine().handle(Input.STEER)
    assert caught.value.__suppress_context__


def test_every_state_can_be_reached_and_left() -> None:
    reached = {State.IDLE}
    for _ in State:
        reached |= {to for (state, _), to in TRANSITIONS.items() if state in reached}
    assert reached == set(State)
    for state in set(State) - {State.CLOSED}:
        assert any(s is state and to is not state for (s, _), to in TRANSITIONS.items())


def test_closed_is_the_end() -> None:
    assert {to for (state, _), to in TRANSITIONS.items() if state is State.CLOSED} == {State.CLOSED}


@pytest.mark.parametrize("state", State)
def test_closing_is_legal_in_every_state(state: State) -> None:
    assert TurnMachine(state).handle(Input.CLOSE) is State.CLOSED


@pytest.mark.parametrize("state", State)
def test_a_cancel_is_legal_in_every_state(state: State) -> None:
    assert TurnMachine(state).cancel(0) in {state, State.CANCELLING}


@pytest.mark.parametrize("state", State)
def test_a_cancel_stops_a_turn_that_runs_and_nothing_else(state: State) -> None:
    after = TurnMachine(state).cancel(0)
    assert after is (State.CANCELLING if state in RUNNING else state)


@pytest.mark.parametrize("state", [state for state in State if state is not State.IDLE])
def test_a_second_prompt_raises_and_disturbs_nothing(state: State) -> None:
    machine = TurnMachine(state)
    with pytest.raises(LocalProtocolError):
        machine.prompt(5)
    assert machine.state is state
    # Its number is not taken for that of the running turn, whose own cancel still counts.
    assert machine.cancel(4) is (State.CANCELLING if state in RUNNING else state)


def test_a_turn_that_is_being_cancelled_cannot_be_steered() -> None:
    machine = TurnMachine()
    machine.prompt(1)
    machine.cancel(2)
    with pytest.raises(LocalProtocolError):
        machine.handle(Input.STEER)


def test_a_steer_of_a_held_turn_owes_a_result_again() -> None:
    machine = TurnMachine(State.HELD)
    assert machine.handle(Input.STEER) is State.PROMPTING


# -- the latch


@given(state=states, cancel=numbers, prompt=numbers)
def test_a_cancel_latches_in_every_state(state: State, cancel: int, prompt: int) -> None:
    machine = TurnMachine(state)
    machine.cancel(cancel)
    if machine.state in RUNNING:
        machine.handle(Input.TURN_OVER)
    if machine.state is State.CLOSED:
        with pytest.raises(LocalProtocolError):
            machine.prompt(prompt)
        return
    overtaken = prompt < cancel
    assert machine.prompt(prompt) is (State.IDLE if overtaken else State.PROMPTING)


@given(cancels=st.lists(numbers, min_size=1), prompt=numbers)
def test_the_latch_only_rises(cancels: list[int], prompt: int) -> None:
    machine = TurnMachine()
    for number in cancels:
        machine.cancel(number)
    assert (machine.prompt(prompt) is State.IDLE) == (prompt < max(cancels))


@given(prompt=numbers, cancel=numbers)
def test_a_cancel_from_before_the_prompt_is_stale(prompt: int, cancel: int) -> None:
    machine = TurnMachine()
    machine.prompt(prompt)
    after = machine.cancel(cancel)
    assert after is (State.PROMPTING if cancel < prompt else State.CANCELLING)


@given(first=numbers, second=numbers, cancel=numbers)
def test_a_stale_cancel_is_measured_by_the_turn_that_runs_now(
    first: int, second: int, cancel: int
) -> None:
    machine = TurnMachine()
    machine.prompt(first)
    machine.handle(Input.TURN_OVER)
    machine.prompt(second)
    assert (machine.cancel(cancel) is State.CANCELLING) == (cancel >= second)


@given(prompt=st.integers(0, 20), cancel=st.integers(0, 20))
def test_the_order_of_handling_does_not_matter(prompt: int, cancel: int) -> None:
    """What is seen of one prompt and one cancel depends on their numbers alone."""
    if prompt == cancel:
        return
    cancelled_first, prompted_first = TurnMachine(), TurnMachine()
    cancelled_first.cancel(cancel)
    ran_on = cancelled_first.prompt(prompt) is State.PROMPTING
    prompted_first.prompt(prompt)
    assert (prompted_first.cancel(cancel) is State.PROMPTING) == ran_on == (cancel < prompt)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Numbered prompts, cancels and ends of turns, handled in an order of their own."""
    kinds = draw(st.lists(st.sampled_from(["prompt", "cancel", "over"]), max_size=12))
    return draw(st.permutations([(kind, number) for number, kind in enumerate(kinds)]))


@pytest.mark.slow
@given(histories())
def test_guards_and_table_agree_with_the_numbers(history: list[tuple[str, int]]) -> None:
    machine = TurnMachine()
    latch, running, cancelled = -1, None, False
    for kind, number in history:
        if kind == "cancel":
            machine.cancel(number)
            latch = max(latch, number)
            cancelled = cancelled or (running is not None and number >= running)
        elif kind == "over" and running is not None:
            machine.handle(Input.TURN_OVER)
            running, cancelled = None, False
        elif kind == "prompt" and running is not None:
            with pytest.raises(LocalProtocolError):
                machine.prompt(number)
        elif kind == "prompt":
            written = machine.prompt(number) is State.PROMPTING
            assert written == (number > latch)
            running = number if written else None
        live = State.CANCELLING if cancelled else State.PROMPTING
        assert machine.state is (State.IDLE if running is None else live)
