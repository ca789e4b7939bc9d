"""Laws of what a result means."""

from __future__ import annotations

from typing import Any

import pytest

from claude_trio._protocol._outcome import Spending, outcome_of
from claude_trio.messages import Outcome, ResultMessage, from_raw


def result(**fields: Any) -> ResultMessage:
    message = from_raw({"type": "result", "subtype": "success", **fields})
    assert isinstance(message, ResultMessage)
    return message


@pytest.mark.parametrize(
    ("fields", "cancelled", "outcome"),
    [
        ({"terminal_reason": "completed"}, False, Outcome.COMPLETED),
        ({"terminal_reason": "completed"}, True, Outcome.COMPLETED),
        ({}, False, Outcome.COMPLETED),
        ({"is_error": True, "terminal_reason": "api_error"}, False, Outcome.FAILED),
        ({"is_error": True, "terminal_reason": "api_error"}, True, Outcome.INTERRUPTED),
        ({"is_error": True, "terminal_reason": "aborted_tools"}, False, Outcome.INTERRUPTED),
        ({"is_error": True, "terminal_reason": "aborted_streaming"}, True, Outcome.INTERRUPTED),
        ({"is_error": False, "terminal_reason": "aborted_streaming"}, False, Outcome.INTERRUPTED),
        ({"is_error": True}, True, Outcome.INTERRUPTED),
        ({"is_error": True}, False, Outcome.FAILED),
        ({"is_error": True, "terminal_reason": "max_turns"}, False, Outcome.FAILED),
        ({"terminal_reason": "hook_stopped"}, False, Outcome.COMPLETED),
        ({"terminal_reason": "x-new"}, False, Outcome.COMPLETED),
    ],
)
def test_the_outcome_is_told_by_the_reason_and_the_error_and_never_by_the_subtype(
    fields: dict[str, Any], cancelled: bool, outcome: Outcome
) -> None:
    for subtype in ("success", "error_during_execution", "x-new"):
        message = result(**{**fields, "subtype": subtype})
        assert outcome_of(message, cancelled=cancelled) is outcome


def test_a_turn_costs_what_its_result_says_was_spent_since_the_last() -> None:
    spending = Spending(resumed=True)
    told = {"a": {"costUSD": 0.5}, "b": {"costUSD": 0.25}, "c": {}, "d": 3}
    assert spending.of(result(total_cost_usd=9, model_usage_since_last_result=told)) == 0.75


def test_without_that_it_costs_the_difference_of_the_totals() -> None:
    spending = Spending()
    assert spending.of(result(total_cost_usd=1.0)) == 1.0
    assert spending.of(result(total_cost_usd=1.5)) == 0.5
    assert spending.of(result()) is None
    assert spending.of(result(total_cost_usd=2.0)) == 2.0


def test_the_first_total_of_a_resumed_session_tells_nothing() -> None:
    spending = Spending(resumed=True)
    assert spending.of(result(total_cost_usd=7.0)) is None
    assert spending.of(result(total_cost_usd=7.5)) == 0.5


def test_a_total_that_was_started_anew_tells_nothing() -> None:
    spending = Spending()
    spending.of(result(total_cost_usd=7.0))
    assert spending.of(result(total_cost_usd=0.5)) is None
