"""What a connection says of the bytes that came."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

from claude_trio._ndjson import HEAD
from claude_trio._values import Record
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
class Frame:
    """One frame, shared by all who get it; decoded once, when first taken."""

    __slots__ = ("__weakref__", "_said", "line")

    def __init__(self, line: bytes, said: Message | None = None) -> None:
        self.line = line
        self._said: Message | SkippedLine | None = said

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
class Conversation(Record):
    """Lines in their order of arrival, all of one turn of ours, or of none.

    If it is one line and was decoded already, ``message`` is what it says.
    """

    __slots__ = __match_args__ = ("turn", "lines", "message")

    def __init__(
        self, turn: OwnTurn | None, lines: list[bytes], message: Message | None = None
    ) -> None:
        self.turn = turn
        self.lines = lines
        self.message = message

    @property
    def frames(self) -> list[Frame]:
        """The frames, for whoever shares them."""
        return [Frame(line, self.message) for line in self.lines]


@final
class Skipped(Record):
    """A line was lost; ``turn`` is the one that may miss it."""

    __slots__ = __match_args__ = ("turn", "line")

    def __init__(self, turn: OwnTurn | None, line: SkippedLine) -> None:
        self.turn = turn
        self.line = line


@final
class TurnEnded(Record):
    """The CLI's part of a turn is over: nothing more of it can come."""

    __slots__ = __match_args__ = ("turn",)

    def __init__(self, turn: OwnTurn) -> None:
        self.turn = turn


@final
class RequestReceived(Record):
    """The CLI asks for something; it waits for `Connection.answer` or `Connection.refuse`."""

    __slots__ = __match_args__ = ("turn", "request")

    def __init__(self, turn: OwnTurn | None, request: Incoming) -> None:
        self.turn = turn
        self.request = request


@final
class RequestWithdrawn(Record):
    """The CLI does not want the answer any more."""

    __slots__ = __match_args__ = ("request_id",)

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id


@final
class RequestAnswered(Record):
    """The CLI has answered a request of ours, or refused it."""

    __slots__ = __match_args__ = ("answer",)

    def __init__(self, answer: Answered | Refused) -> None:
        self.answer = answer


@final
class Send(Record):
    """Bytes that the protocol wants written at once."""

    __slots__ = __match_args__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


Event: TypeAlias = (
    Conversation | Skipped | TurnEnded | RequestReceived | RequestWithdrawn | RequestAnswered | Send
)


def frames_of(lines: Iterable[bytes]) -> list[Mapping[str, object]]:
    """Decode lines for a report; those that are broken are left out."""
    said = [Frame(line).said for line in lines]
    return [message.raw for message in said if not isinstance(message, SkippedLine)]
