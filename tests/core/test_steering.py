"""Steering: the six outcomes, in every order."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from claude_trio._protocol._steering import (
    Accepted,
    ClientMsgIdReuse,
    Duplicate,
    NoLiveTurn,
    NoSteerChannel,
    StaleTurn,
    Steering,
    SteerRef,
)
from tests.core.steering_model import SteeringAgainstItsModel


def _live() -> tuple[Steering, int]:
    steering = Steering()
    return steering, steering.turn_started()


def _accepted(steering: Steering, text: str, token: int, message_id: str | None = None) -> Accepted:
    outcome = steering.steer(text, expected_token=token, client_msg_id=message_id)
    assert isinstance(outcome, Accepted)
    return outcome


@pytest.mark.slow
def test_every_order_of_turns_and_steers_agrees_with_the_model() -> None:
    run_state_machine_as_test(
        SteeringAgainstItsModel, settings=settings(max_examples=150, stateful_step_count=25)
    )


def test_a_steer_with_the_live_token_is_accepted_and_returns_the_new_one() -> None:
    steering, token = _live()
    accepted = _accepted(steering, "left", token, "m")
    assert accepted.ref == SteerRef(token, 0, "m")
    assert accepted.token == steering.token != token
    assert _accepted(steering, "right", accepted.token).ref.offset == 1


def test_the_same_message_again_is_the_same_steer() -> None:
    steering, token = _live()
    ref = _accepted(steering, "left", token, "m").ref
    now = steering.token
    for expected in (token, now, 99):
        assert expected is not None
        assert steering.steer("left", expected_token=expected, client_msg_id="m") == Duplicate(ref)
    assert steering.token == now


@pytest.mark.parametrize("later", [False, True])
def test_a_message_is_known_for_the_sessions_life(later: bool) -> None:
    steering, token = _live()
    ref = _accepted(steering, "left", token, "m").ref
    steering.turn_ended()
    if later:
        steering.turn_started()
    assert steering.steer("left", expected_token=token, client_msg_id="m") == Duplicate(ref)
    outcome = steering.steer("right", expected_token=token, client_msg_id="m")
    assert outcome == ClientMsgIdReuse()


def test_an_id_stands_for_one_text() -> None:
    steering, token = _live()
    now = _accepted(steering, "left", token, "m").token
    assert steering.steer("right", expected_token=now, client_msg_id="m") == ClientMsgIdReuse()
    assert steering.token == now


def test_without_an_id_each_steer_is_judged_on_its_own() -> None:
    steering, token = _live()
    now = _accepted(steering, "left", token).token
    assert steering.steer("left", expected_token=token) == StaleTurn(token, now)
    assert _accepted(steering, "left", now).ref.offset == 1


def test_a_stale_attempt_leaves_no_trace() -> None:
    steering, token = _live()
    outcome = steering.steer("left", expected_token=token - 1, client_msg_id="m")
    assert outcome == StaleTurn(expected=token - 1, actual=token)
    assert _accepted(steering, "right", token, "m").ref == SteerRef(token, 0, "m")


def test_of_two_steers_with_one_token_exactly_one_wins() -> None:
    steering, token = _live()
    now = _accepted(steering, "left", token, "m1").token
    outcome = steering.steer("right", expected_token=token, client_msg_id="m2")
    assert outcome == StaleTurn(token, now)


def test_the_token_of_an_earlier_turn_is_stale() -> None:
    steering, first = _live()
    steering.turn_ended()
    second = steering.turn_started()
    assert steering.steer("left", expected_token=first) == StaleTurn(first, second)


def test_without_a_turn_there_is_nothing_to_steer() -> None:
    assert Steering().steer("left", expected_token=0) == NoLiveTurn()


def test_a_turn_that_ended_or_is_being_cancelled_cannot_be_steered() -> None:
    steering, token = _live()
    steering.turn_ended()
    assert steering.steer("left", expected_token=token, client_msg_id="m") == NoLiveTurn()
    token = steering.turn_started()
    assert isinstance(steering.steer("right", expected_token=token, client_msg_id="m"), Accepted)


def test_without_a_channel_nothing_else_is_asked() -> None:
    steering = Steering(wired=False)
    token = steering.turn_started()
    for _ in range(2):
        outcome = steering.steer("left", expected_token=token, client_msg_id="m")
        assert outcome == NoSteerChannel()


def test_no_text_is_a_text_like_another() -> None:
    """An ACP client may steer with null."""
    steering, token = _live()
    accepted = steering.steer(None, expected_token=token, client_msg_id="m")
    assert isinstance(accepted, Accepted)
    again = steering.steer(None, expected_token=token, client_msg_id="m")
    assert again == Duplicate(accepted.ref)
    assert steering.steer("", expected_token=token, client_msg_id="m") == ClientMsgIdReuse()
