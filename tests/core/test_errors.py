"""Laws of the errors: what they carry, and that each waiter gets an instance of its own."""

from __future__ import annotations

import pytest
import trio

from claude_trio import (
    AuthenticationFailed,
    BudgetExceeded,
    CallbackError,
    ClaudeTrioError,
    LaunchFailed,
    MaxTurnsReached,
    Outcome,
    Overflow,
    Overloaded,
    ProcessExited,
    PromptTooLong,
    RateLimited,
    RemoteProtocolError,
    RequestRefused,
    RequestTimedOut,
    Result,
    SessionClosed,
    TurnFailed,
    TurnInFlight,
)
from claude_trio._errors import another, turn_failed

ERRORS = [
    SessionClosed("closed"),
    TurnFailed("failed", result=Result(outcome=Outcome.FAILED)),
    RateLimited("slow down", result=None),
    Overflow("full", buffer="turn", size=7),
    CallbackError("raised", callback="the handler"),
    RemoteProtocolError("broken", frame=b"{"),
    ProcessExited("gone", returncode=-9, stderr_tail="why", last_frames=[{"type": "x"}]),
    LaunchFailed("not started", returncode=1, stderr_tail="bad flag"),
    RequestRefused("set_model", "no such model", "not_found"),
    RequestTimedOut("set_model", 60),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_another_error_says_the_same_and_is_another(error: ClaudeTrioError) -> None:
    error.__cause__ = cause = KeyError()
    copy = another(error)
    assert copy is not error
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.__cause__ is cause
    assert copy.__traceback__ is None


def test_an_exit_tells_its_signal_and_the_last_words() -> None:
    killed = ProcessExited("the CLI was killed", returncode=-9, stderr_tail="so it ends\n")
    assert killed.signal == 9
    assert str(killed) == "the CLI was killed\nso it ends"
    exited = ProcessExited("the CLI exited", returncode=1)
    assert exited.signal is None
    assert str(exited) == "the CLI exited"
    assert LaunchFailed("never ran").signal is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SessionClosed("x"), trio.ClosedResourceError),
        (TurnInFlight("x"), trio.BusyResourceError),
        (ProcessExited("x"), trio.BrokenResourceError),
    ],
)
def test_generic_code_knows_what_happened(error: Exception, kind: type[Exception]) -> None:
    assert isinstance(error, kind)
    assert isinstance(error, ClaudeTrioError)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"api_error_status": 429}, RateLimited),
        ({"api_error_status": 529}, Overloaded),
        ({"api_error_status": 401}, AuthenticationFailed),
        ({"api_error_status": 413}, PromptTooLong),
        ({"api_error_status": 400}, TurnFailed),
        ({"terminal_reason": "prompt_too_long", "api_error_status": 400}, PromptTooLong),
        ({"terminal_reason": "budget_exhausted"}, BudgetExceeded),
        ({"terminal_reason": "max_turns"}, MaxTurnsReached),
        ({}, TurnFailed),
    ],
)
def test_a_failed_turn_has_the_class_of_its_reason(
    fields: dict[str, object], kind: type[TurnFailed]
) -> None:
    result = Result(outcome=Outcome.FAILED, text="the words", **fields)  # type: ignore[arg-type]
    error = turn_failed(result)
    assert type(error) is kind
    assert error.result is result
    assert str(error) == "the turn failed: the words"
