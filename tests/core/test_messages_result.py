"""From the frame that ends a turn to the result that a program gets."""

from __future__ import annotations

import pickle

import pytest

from claude_trio.messages import (
    Outcome,
    PermissionDenial,
    Result,
    ResultMessage,
    WireObject,
    from_raw,
)
from tests.core.golden_frames import GOLDENS, Golden

RESULTS = [golden for golden in GOLDENS if golden.cls == "ResultMessage"]


def message(**fields: object) -> ResultMessage:
    found = from_raw({"type": "result", "subtype": "success", **fields})
    assert isinstance(found, ResultMessage)
    return found


@pytest.mark.parametrize("golden", RESULTS, ids=str)
def test_a_result_says_what_its_frame_says(golden: Golden) -> None:
    frame = from_raw(golden.frame)
    assert isinstance(frame, ResultMessage)
    result = Result.from_message(frame, outcome=Outcome.FAILED, turn_cost_usd=0.5)

    assert result.outcome is Outcome.FAILED
    assert result.turn_cost_usd == 0.5
    assert result.text == (frame.result or "")
    for name in ("subtype", "stop_reason", "terminal_reason", "session_id", "uuid"):
        assert getattr(result, name) == golden.frame.get(name)
    for name in ("usage", "total_cost_usd", "num_turns"):
        assert getattr(result, name) == golden.frame[name]
    assert result.model_usage == golden.frame["modelUsage"]
    assert result.structured_output == golden.frame.get("structured_output")
    assert result.api_error_status == golden.frame.get("api_error_status")
    assert result.local_command == golden.frame.get("local_command")
    assert result.permission_denials == frame.permission_denials
    assert result.raw == golden.frame


def test_times_are_in_seconds() -> None:
    frame = message(duration_ms=1500, duration_api_ms=250.5, ttft_ms=30)
    result = Result.from_message(frame, outcome=Outcome.COMPLETED, turn_cost_usd=None)

    assert (result.duration, result.duration_api, result.ttft) == (1.5, 0.2505, 0.03)


def test_the_diagnostic_of_an_interrupt_is_not_for_people() -> None:
    errors = ["[ede_diagnostic] result_type=user", "Reached maximum budget ($1)"]
    frame = message(errors=errors)
    result = Result.from_message(frame, outcome=Outcome.FAILED, turn_cost_usd=None)

    assert result.errors == ("Reached maximum budget ($1)",)
    assert frame.errors == tuple(errors)
    assert result.raw["errors"] == errors


def test_a_denial_has_the_call_that_was_denied() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "ls"}, "zz": 1}
    frame = message(permission_denials=[denial])
    result = Result.from_message(frame, outcome=Outcome.COMPLETED, turn_cost_usd=None)

    assert result.permission_denials == (
        PermissionDenial(tool_name="Bash", tool_use_id="t", tool_input={"command": "ls"}),
    )
    assert result.permission_denials[0].raw == denial


@pytest.mark.parametrize(
    "number", [None, "1", float("nan"), float("inf"), 10**400, -(10**400), True, []]
)
def test_odd_numbers_are_not_known(number: object) -> None:
    frame = message(duration_ms=number, total_cost_usd=number, num_turns=None, ttft_ms=number)
    result = Result.from_message(frame, outcome=Outcome.COMPLETED, turn_cost_usd=None)

    assert (result.duration, result.ttft, result.total_cost_usd) == (None, None, None)
    assert result.num_turns == 0


def test_a_frame_with_nothing_in_it_gives_a_result() -> None:
    frame = from_raw({"type": "result"})
    assert isinstance(frame, ResultMessage)
    result = Result.from_message(frame, outcome=Outcome.COMPLETED, turn_cost_usd=None)

    assert result == Result(outcome=Outcome.COMPLETED)
    assert (result.text, result.subtype, result.usage, result.errors) == ("", None, {}, ())


def test_a_turn_without_a_frame_has_an_interrupted_result() -> None:
    result = Result.interrupted(session_id="s")

    assert result == Result(outcome=Outcome.INTERRUPTED, session_id="s")
    assert (result.text, result.raw, result.num_turns) == ("", {}, 0)


def test_a_result_is_a_value_with_its_raw() -> None:
    frame = message(result="hi")
    result = Result.from_message(frame, outcome=Outcome.COMPLETED, turn_cost_usd=0.25)
    restored = pickle.loads(pickle.dumps(result))

    assert isinstance(result, WireObject)
    assert restored == result
    assert restored.raw == frame.raw
    assert "turn_cost_usd=0.25" in repr(result)
    by_hand = ResultMessage(subtype="success", result="hi")
    assert Result.from_message(by_hand, outcome=Outcome.COMPLETED, turn_cost_usd=None).raw == {}
