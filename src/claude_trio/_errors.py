"""Every exception that the library raises on purpose.

Attributes carry the facts, `__str__` is for the person who reads it, and `__cause__` is whatever
ended the session.  The Trio class that an error also is tells generic code what happened: busy,
closed or broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, final

import trio

from claude_trio.messages import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_trio.messages import Result

ClaudeTrioErrorT = TypeVar("ClaudeTrioErrorT", bound="ClaudeTrioError")

__all__ = [
    "AuthenticationFailed",
    "BudgetExceeded",
    "CLINotFound",
    "CallbackError",
    "ClaudeTrioError",
    "LaunchFailed",
    "LocalProtocolError",
    "MaxTurnsReached",
    "Overflow",
    "Overloaded",
    "ProcessExited",
    "PromptTooLong",
    "ProtocolError",
    "RateLimited",
    "RemoteProtocolError",
    "RequestRefused",
    "RequestTimedOut",
    "SessionClosed",
    "TurnFailed",
    "TurnInFlight",
    "TurnOver",
    "another",
    "turn_failed",
]


class ClaudeTrioError(Exception):
    """Catch everything that this library raises on purpose."""


class ProtocolError(ClaudeTrioError):
    """Catch both kinds of protocol error; never raised itself."""


@final
class LocalProtocolError(ProtocolError):
    """Tell that the caller asked for something that is impossible in this state."""


@final
class RemoteProtocolError(ProtocolError):
    """Tell that the CLI broke the protocol.

    Attributes:
      frame: The frame or the head of the line that did, if there was one.
    """

    def __init__(self, message: str, *, frame: object = None) -> None:
        super().__init__(message)
        self.frame = frame


@final
class CLINotFound(ClaudeTrioError):
    """Tell that there is no ``claude`` to start.

    Attributes:
      looked: The places that were looked at, in order.
    """

    def __init__(self, message: str, *, looked: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.looked: tuple[str, ...] = tuple(looked)


class _WithStderr(ClaudeTrioError):
    def __init__(
        self,
        message: str,
        *,
        returncode: int | None = None,
        stderr_tail: str = "",
        last_frames: Sequence[Mapping[str, object]] = (),
    ) -> None:
        super().__init__(message)
        self.returncode = returncode
        self.stderr_tail = stderr_tail
        self.last_frames: tuple[Mapping[str, object], ...] = tuple(last_frames)

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended the process, if one did."""
        code = self.returncode
        return -code if code is not None and code < 0 else None

    def __str__(self) -> str:
        tail = self.stderr_tail.strip()
        return f"{self.args[0]}\n{tail}" if tail else str(self.args[0])


@final
class LaunchFailed(_WithStderr):
    """Tell that the CLI was found, but did not start.

    Attributes:
      returncode: Its exit code, negative for a signal; None if it never ran.
      stderr_tail: The last text that it wrote to stderr.
      last_frames: The last frames that it wrote, as they came.
    """


@final
class ProcessExited(_WithStderr, trio.BrokenResourceError):
    """Tell that the CLI went away while something waited for it.

    Attributes:
      returncode: Its exit code, negative for a signal; None if it is not known.
      stderr_tail: The last text that it wrote to stderr.
      last_frames: The last frames that it wrote, as they came.
    """


@final
class SessionClosed(ClaudeTrioError, trio.ClosedResourceError):
    """Tell that the session is closed; `__cause__` is what ended it, if it was not you."""


@final
class TurnInFlight(ClaudeTrioError, trio.BusyResourceError):
    """Tell that a turn is running already: one at a time."""


@final
class RequestRefused(ClaudeTrioError):
    """Tell that the CLI answered a control request with an error.

    Attributes:
      subtype: What was asked.
      error: The CLI's own words.
      error_code: Its code for the error, if it gave one.
    """

    def __init__(self, subtype: str, error: str, error_code: str | None = None) -> None:
        super().__init__(f"the CLI refused {subtype!r}: {error}")
        self.subtype = subtype
        self.error = error
        self.error_code = error_code


@final
class RequestTimedOut(ClaudeTrioError):
    """Tell that the CLI did not answer a control request in time.

    Attributes:
      subtype: What was asked.
      seconds: How long it was waited for.
    """

    def __init__(self, subtype: str, seconds: float) -> None:
        super().__init__(f"the CLI did not answer {subtype!r} within {seconds:g} s")
        self.subtype = subtype
        self.seconds = seconds


@final
class TurnOver(ClaudeTrioError):
    """Tell that the turn that you add to has ended."""


class TurnFailed(ClaudeTrioError):
    """Tell that the turn ended in an error, or that the CLI dropped its prompt.

    Attributes:
      result: What the CLI said; None if it dropped the prompt without a result.
    """

    def __init__(self, message: str, *, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


@final
class RateLimited(TurnFailed):
    """Tell that the API refused for the rate of requests (HTTP 429)."""


@final
class Overloaded(TurnFailed):
    """Tell that the API was overloaded (HTTP 529 or 503)."""


@final
class AuthenticationFailed(TurnFailed):
    """Tell that the API did not accept the credentials (HTTP 401 or 403, or there were none)."""


@final
class PromptTooLong(TurnFailed):
    """Tell that the conversation does not fit the model's context any more."""


@final
class BudgetExceeded(TurnFailed):
    """Tell that the session has spent ``max_budget_usd``; later turns fail as well."""


@final
class MaxTurnsReached(TurnFailed):
    """Tell that the turn needed more model calls than ``max_turns``."""


@final
class CallbackError(ClaudeTrioError):
    """Tell that a callback of yours raised; `__cause__` is its exception.

    Attributes:
      callback: What was called, for example ``"permission handler"``.
    """

    def __init__(self, message: str, *, callback: str) -> None:
        super().__init__(message)
        self.callback = callback


@final
class Overflow(ClaudeTrioError):
    """Tell that nobody read a buffer until it was full.

    Attributes:
      buffer: Which one.
      size: How large it was: bytes for a turn, items for a subscription.
    """

    def __init__(self, message: str, *, buffer: str, size: int) -> None:
        super().__init__(message)
        self.buffer = buffer
        self.size = size


_BY_STATUS: dict[int, type[TurnFailed]] = {
    401: AuthenticationFailed,
    403: AuthenticationFailed,
    413: PromptTooLong,
    429: RateLimited,
    503: Overloaded,
    529: Overloaded,
}
_BY_REASON: dict[str, type[TurnFailed]] = {
    "budget_exhausted": BudgetExceeded,
    "max_turns": MaxTurnsReached,
    "prompt_too_long": PromptTooLong,
}


def turn_failed(result: Result) -> TurnFailed:
    """Make the error of a failed turn, of the class that fits its result."""
    kind = _BY_REASON.get(result.terminal_reason or "")
    if kind is None and result.api_error_status is not None:
        kind = _BY_STATUS.get(result.api_error_status)
    said = "; ".join(result.errors) or result.text or result.subtype or Outcome.FAILED.value
    return (kind or TurnFailed)(f"the turn failed: {said}", result=result)


def another(error: ClaudeTrioErrorT) -> ClaudeTrioErrorT:
    """Make an equal error for one more that has to hear of it.

    An instance that is raised in two tasks would gather the tracebacks of both.
    """
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    copy.__cause__ = error.__cause__
    return copy
