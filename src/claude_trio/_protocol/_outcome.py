"""What a result means: how its turn ended, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, final

from claude_trio.messages import Outcome

if TYPE_CHECKING:
    from claude_trio.messages import ResultMessage

__all__ = ["Spending", "outcome_of"]


def outcome_of(message: ResultMessage, *, cancelled: bool) -> Outcome:
    """Say how a turn ended.

    The subtype does not tell: an API failure is a ``success`` with ``is_error``, and an aborted
    turn is an error of the same subtype as a real one.  The terminal reason tells an abort, and
    an error that comes after our interrupt is taken for its effect.
    """
    if (message.terminal_reason or "").startswith("aborted"):
        return Outcome.INTERRUPTED
    if message.is_error:
        return Outcome.INTERRUPTED if cancelled else Outcome.FAILED
    return Outcome.COMPLETED


@final
class Spending:
    """What each result of one process has cost, in US dollars.

    Args:
      resumed: Whether the session is older than the process: then the first total says nothing.
    """

    def __init__(self, *, resumed: bool = False) -> None:
        self.resumed = resumed
        self._total: float | None = None

    def of(self, message: ResultMessage) -> float | None:
        """Say what was spent since the result before; None if that is not known."""
        before, total = self._total, message.total_cost_usd
        self._total = total
        told = _since_last(message)
        if told is not None or total is None:
            return told
        if before is None:
            return None if self.resumed else total
        # A running total that shrinks was started anew, by `/clear`.
        return total - before if before <= total else None


def _since_last(message: ResultMessage) -> float | None:
    usage = message.model_usage_since_last_result
    if not usage:
        return None
    return sum(_cost(one) for one in usage.values())


def _cost(usage: object) -> float:
    cost = cast("dict[str, object]", usage).get("costUSD") if isinstance(usage, dict) else None
    return cost if isinstance(cost, int | float) else 0
