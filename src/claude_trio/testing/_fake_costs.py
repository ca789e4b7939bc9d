"""What the messages of a fake model cost: prices of our own, and the sums of the real CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from claude_trio.testing._replies import Usage

__all__ = ["Costs"]

_PER_INPUT: Final = 4e-6
"""US dollars for a token that is read."""
_PER_OUTPUT: Final = 20e-6


@final
class Costs:
    """All costs, and those since the last result."""

    def __init__(self) -> None:
        self.forget()

    @property
    def spent(self) -> float:
        """What all has cost, in US dollars."""
        return self._all["costUSD"]

    def pay(self, usage: Usage) -> None:
        """Count what a message of the model has cost."""
        read = usage.input_tokens + usage.cache_creation_input_tokens
        for account in (self._all, self._since):
            account["inputTokens"] += usage.input_tokens
            account["outputTokens"] += usage.output_tokens
            account["cacheReadInputTokens"] += usage.cache_read_input_tokens
            account["cacheCreationInputTokens"] += usage.cache_creation_input_tokens
            account["costUSD"] += _PER_INPUT * read + _PER_OUTPUT * usage.output_tokens

    def forget(self) -> None:
        """Begin to count anew."""
        self._all, self._since = _account(), _account()

    def tell(self, model: str) -> dict[str, object]:
        """Say what a result says of costs; the next one says what was spent since."""
        since, self._since = self._since, _account()
        return {
            "total_cost_usd": self.spent,
            "usage": {
                "input_tokens": since["inputTokens"],
                "cache_creation_input_tokens": since["cacheCreationInputTokens"],
                "cache_read_input_tokens": since["cacheReadInputTokens"],
                "output_tokens": since["outputTokens"],
            },
            "modelUsage": {model: dict(self._all)},
            "model_usage_since_last_result": {model: since},
        }


def _account() -> dict[str, float]:
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return {**dict.fromkeys(names, 0), "costUSD": 0.0}
