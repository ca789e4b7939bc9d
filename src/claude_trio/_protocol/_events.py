"""What a connection says of the bytes that came."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from claude_trio._ndjson import HEAD
from claude_trio.messages import Message, SkippedLine, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from claude_trio._protocol._control import Answered, Incoming, Refused
    from claude_trio._protocol._gate import OwnTurn

__all__ = [
    "Conversation",
    "Event",
    "Frame",
    "RequestAnswered",
    "RequestReceived",
    "RequestWithdrawn",
    "Send",
    "Skipped",
    "TurnEnded",
    "frames_of",
]


@final
@attrs.define(eq=False)
class Frame:
    """One frame, shared by all who get it; decoded once, when first taken."""

    line: bytes
    _said: Message | SkippedLine | None = None

    @property
    def said(self) -> Message | SkippedLine:
        """What the frame says; where it is broken behind its first bytes, that it was lost."""
        if self._said is None:
            try:
                self._said = decode(self.line)
            except ValueError:
                self._said = SkippedLine(size=len(self.line), head=self.line[:HEAD])
        return self._said


@final
@attrs.frozen
class Conversation:
    """Lines in their order of arrival, all of one turn of ours, or of none."""

    turn: OwnTurn | None
    lines: list[bytes]
    message: Message | None = None
    """What the line says, if it is one and was decoded already."""

    @property
    def frames(self) -> list[Frame]:
        """The frames, for whoever shares them."""
        return [Frame(line, self.message) for line in self.lines]


@final
@attrs.frozen
class Skipped:
    """A line was lost; ``turn`` is the one that may miss it."""

    turn: OwnTurn | None
    line: SkippedLine


@final
@attrs.frozen
class TurnEnded:
    """The CLI's part of a turn is over: nothing more of it can come."""

    turn: OwnTurn


@final
@attrs.frozen
class RequestReceived:
    """The CLI asks for something; it waits for `Connection.answer` or `Connection.refuse`."""

    turn: OwnTurn | None
    request: Incoming


@final
@attrs.frozen
class RequestWithdrawn:
    """The CLI does not want the answer any more."""

    request_id: str


@final
@attrs.frozen
class RequestAnswered:
    """The CLI has answered a request of ours, or refused it."""

    answer: Answered | Refused


@final
@attrs.frozen
class Send:
    """Bytes that the protocol wants written at once."""

    data: bytes


Event: TypeAlias = (
    Conversation | Skipped | TurnEnded | RequestReceived | RequestWithdrawn | RequestAnswered | Send
)


def frames_of(lines: Iterable[bytes]) -> list[Mapping[str, object]]:
    """Decode lines for a report; those that are broken are left out."""
    said = [Frame(line).said for line in lines]
    return [message.raw for message in said if not isinstance(message, SkippedLine)]
