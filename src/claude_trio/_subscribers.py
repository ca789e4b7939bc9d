"""Listeners of a session: one bounded buffer each, and none that can slow another.

Both ends of a buffer work without waiting.  A publisher that finds one full takes the oldest item
out by a clone of the receiving end, so a slow listener loses what is oldest and is told exactly
how much, and nobody else notices.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeAlias, final

import attrs
import trio

from claude_trio._errors import Overflow
from claude_trio._protocol._events import Frame
from claude_trio._values import frozen
from claude_trio.messages import Message, SkippedLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "Feed",
    "Lag",
    "Lagged",
    "SessionEvent",
    "Subscribers",
    "Subscription",
    "make_subscription",
]


class Lag(enum.Enum):
    """What happens to a subscription whose buffer is full."""

    DROP_OLDEST = "drop oldest"
    """It loses the oldest events, and is told how many."""
    FAIL = "fail"
    """It fails with `Overflow`, once what is buffered was read."""


@final
@frozen
class Lagged:
    """Events were lost right here, since they were not read in time.

    Attributes:
      count: How many.
    """

    count: int


SessionEvent: TypeAlias = Message | SkippedLine | Lagged
"""What a subscription gives: a message, the report of a lost line, or of events that were lost."""

_Item: TypeAlias = Frame | SkippedLine


@final
class Feed:
    """What puts the events in for one subscription; nothing here waits."""

    __slots__ = ("_lag", "_oldest", "_send", "capacity", "lost", "overflowed", "receive")

    def __init__(self, capacity: int, lag: Lag) -> None:
        if capacity < 1:
            raise ValueError(f"capacity: a subscription holds at least one event, not {capacity}")
        self.capacity, self._lag = capacity, lag
        self._send, self.receive = trio.open_memory_channel[_Item](capacity)
        self._oldest = self.receive.clone()
        self.lost = 0
        self.overflowed = False

    def publish(self, items: Iterable[_Item]) -> None:
        """Put events in."""
        if self.overflowed:
            return
        for item in items:
            try:
                self._send.send_nowait(item)
            except trio.WouldBlock:
                if self._lag is Lag.FAIL:
                    self.overflowed = True
                    self.end()
                    return
                self._oldest.receive_nowait()
                self.lost += 1
                self._send.send_nowait(item)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return  # Its owner has given it up.

    def end(self) -> None:
        """Nothing more comes; what is buffered can still be read."""
        self._send.close()
        self._oldest.close()


@final
class Subscription(trio.abc.ReceiveChannel[SessionEvent]):
    """What happens in a session, from the moment of the subscription on.

    Get one from `Session.subscribe`.  It ends when the session has closed and what is buffered
    was read.
    """

    _feed: Feed

    def __init__(self) -> None:
        raise TypeError("a Subscription comes from Session.subscribe(), and is not made")

    def receive_nowait(self) -> SessionEvent:
        """Take the next event.

        Raises:
          trio.WouldBlock: if there is none now.
          trio.EndOfChannel: if the session has closed and everything was read.
          trio.ClosedResourceError: if the subscription was closed.
          Overflow: if it failed, and everything that was buffered was read.
        """
        if self._feed.lost:
            lost, self._feed.lost = self._feed.lost, 0
            return Lagged(lost)
        try:
            return _event(self._feed.receive.receive_nowait())
        except trio.EndOfChannel:
            self._raise_overflow()
            raise

    async def receive(self) -> SessionEvent:
        """Wait for the next event.

        While events are there it does not let other tasks run.

        Raises:
          trio.EndOfChannel: if the session has closed and everything was read.
          trio.ClosedResourceError: if the subscription was closed.
          Overflow: if it failed, and everything that was buffered was read.

        Cancellation:
          A checkpoint; no event is lost.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            return self.receive_nowait()
        except trio.WouldBlock:
            pass
        try:
            item = await self._feed.receive.receive()
        except trio.EndOfChannel:
            self._raise_overflow()
            raise
        return _event(item)

    def _raise_overflow(self) -> None:
        if self._feed.overflowed:
            size = self._feed.capacity
            text = f"a subscription held {size} events that nobody read"
            raise Overflow(text, buffer="subscription", size=size) from None

    def close(self) -> None:
        """Give the subscription up; what is buffered is thrown away."""
        self._feed.end()
        self._feed.receive.close()

    async def aclose(self) -> None:
        """Give the subscription up; what is buffered is thrown away."""
        self.close()
        await trio.lowlevel.checkpoint()


def make_subscription(feed: Feed) -> Subscription:
    """Make the subscription that reads ``feed``; for `Session.subscribe` alone."""
    subscription: Subscription = object.__new__(Subscription)
    subscription._feed = feed  # noqa: SLF001  What `__init__` would do if it were there for everybody.
    return subscription


def _event(item: _Item) -> SessionEvent:
    return item.said if isinstance(item, Frame) else item


@final
@attrs.define(eq=False, repr=False)
class Subscribers:
    """The subscriptions of one session."""

    _all: list[Feed] = attrs.field(factory=list, init=False)
    _ended: bool = attrs.field(default=False, init=False)

    def __bool__(self) -> bool:
        """Whether anybody listens."""
        return bool(self._all)

    def add(self, feed: Feed) -> None:
        """Let one in; where the session has closed, it ends at once."""
        if self._ended:
            feed.end()
        else:
            self._all.append(feed)

    def remove(self, feed: Feed) -> None:
        """Forget one."""
        if feed in self._all:
            self._all.remove(feed)

    def publish(self, items: Sequence[_Item]) -> None:
        """Hand events to everybody; never wait."""
        for feed in self._all:
            feed.publish(items)

    def end(self) -> None:
        """The session has closed."""
        self._ended = True
        for feed in self._all:
            feed.end()
        self._all.clear()
