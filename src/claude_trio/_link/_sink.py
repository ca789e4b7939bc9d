"""Where the link hands a turn's part of the traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from claude_trio._errors import ClaudeTrioError
    from claude_trio._protocol._events import Conversation, Frame
    from claude_trio._protocol._gate import OwnTurn

__all__ = ["Sink", "SinkT"]


class Sink(Protocol):
    """Where a turn's part of the traffic goes; nothing here waits."""

    @property
    def own(self) -> OwnTurn:
        """The turn."""
        ...

    def deliver(self, part: Conversation, shared: Sequence[Frame] | None) -> None:
        """Take a part of the turn's traffic; its frames, where others have them as well."""
        ...

    def ended(self) -> None:
        """The CLI's part of the turn is over."""
        ...

    def fail(self, error: ClaudeTrioError) -> None:
        """The turn has failed, here and not in the CLI."""
        ...

    def cancelling(self) -> None:
        """The turn is being cancelled; again does nothing."""
        ...

    def grace_over(self) -> None:
        """What has not wound down by itself is cancelled."""
        ...


SinkT = TypeVar("SinkT", bound=Sink)
