"""Laws of subscriptions: order, exact losses, and none that can harm another."""

from __future__ import annotations

from collections import deque

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from claude_trio import Lag, Lagged, Overflow, SessionClosed, open_session
from claude_trio._protocol._events import Frame
from claude_trio._subscribers import Feed, SessionEvent, Subscribers, make_subscription
from claude_trio.messages import KeepAlive, Message, ResultMessage, SkippedLine, StreamEvent
from claude_trio.testing import FakeClaude, hang, pause, say
from tests.shell.scripted import BROKEN

TALK = say("hello there", chunks=8)


async def test_a_subscriber_gets_what_the_turn_gets_in_the_same_order(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([TALK, say("next")])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        async with session.turn("go") as turn:
            messages = [message async for message in turn]
        await session.aclose()
        seen = [event async for event in events]
    # Both got the very same objects: what is shared is decoded once.
    places = [next(at for at, event in enumerate(seen) if event is m) for m in messages]
    assert places == sorted(places)
    assert any(isinstance(message, ResultMessage) for message in messages)


async def test_nothing_from_before_the_subscription_comes(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("first"), say("second")])
    async with open_session(launch=fake.launch) as session:
        await session.prompt("go")
        async with session.subscribe() as events:
            await session.prompt("go")
            await session.aclose()
            results = [event.result async for event in events if isinstance(event, ResultMessage)]
    assert results == ["second"]


async def test_a_slow_subscriber_slows_neither_the_turn_nor_another(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([TALK])
    async with (
        open_session(launch=fake.launch) as session,
        session.subscribe(1) as slow,
        session.subscribe() as quick,
    ):
        assert (await session.prompt("go")).text == "hello there"
        await session.aclose()
        everything = [event async for event in quick]
        lagged, last = [event async for event in slow]
    assert lagged == Lagged(len(everything) - 1)
    assert last is everything[-1]


async def test_what_is_buffered_can_be_read_after_the_close_and_then_it_ends(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        await session.prompt("go")
        await session.aclose()
        results = [event async for event in events if isinstance(event, ResultMessage)]
        assert len(results) == 1
        with pytest.raises(trio.EndOfChannel):
            await events.receive()
        with pytest.raises(trio.EndOfChannel):
            events.receive_nowait()


async def test_a_subscriber_that_waits_hears_the_end(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    ended: list[list[SessionEvent]] = []
    async with open_session(launch=fake.launch) as session, trio.open_nursery() as nursery:

        async def listen() -> None:
            async with session.subscribe() as events:
                ended.append([event async for event in events])

        nursery.start_soon(listen)
        await trio.sleep(1)
        fake.exit(1)
    assert ended == [[]]


async def test_a_strict_subscription_fails_once_what_it_holds_was_read(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([TALK, say("next")])
    async with (
        open_session(launch=fake.launch) as session,
        session.subscribe(3, lag=Lag.FAIL) as events,
    ):
        await session.prompt("go")
        seen: list[SessionEvent] = []
        with pytest.raises(Overflow) as caught:
            async for event in events:
                seen.append(event)  # noqa: PERF401  It raises in the middle.
        assert len(seen) == 3
        assert (caught.value.buffer, caught.value.size) == ("subscription", 3)
        with pytest.raises(Overflow):
            events.receive_nowait()
        assert (await session.prompt("again")).text == "next"


async def test_leaving_the_block_unsubscribes(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(KeyError):
            async with session.subscribe() as events:
                raise KeyError
        assert not session._link.subscribers
        await session.prompt("go")
        with pytest.raises(trio.ClosedResourceError):
            await events.receive()


async def test_closing_a_subscription_twice_is_fine(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("mine")])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        await events.aclose()
        events.close()
        assert (await session.prompt("go")).text == "mine"


async def test_a_closed_session_takes_no_subscription(autojump_clock: MockClock) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session:
        await session.aclose()
        with pytest.raises(SessionClosed):
            async with session.subscribe():
                pytest.fail("it must not begin")


@pytest.mark.parametrize("capacity", [0, -1])
async def test_a_subscription_holds_something(autojump_clock: MockClock, capacity: int) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session:
        with pytest.raises(ValueError, match="capacity"):
            async with session.subscribe(capacity):
                pytest.fail("it must not begin")
        assert session.alive


async def test_a_cancelled_receive_loses_nothing(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("one ") + pause(10) + say("two ") + pause(10) + say("three")])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        seen: list[str] = []
        async with session.turn("go") as turn:
            while turn.result is None:
                with trio.move_on_after(0.7):
                    event = await events.receive()
                    if isinstance(event, StreamEvent):
                        seen.append(event.text_delta)
    assert "".join(seen) == "one two three"


async def test_a_line_that_is_broken_behind_its_first_bytes_is_reported(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([])
    async with open_session(launch=fake.launch) as session, session.subscribe() as events:
        fake.write(BROKEN)
        event = await events.receive()
        assert event == SkippedLine(size=len(BROKEN) - 1, head=BROKEN[:-1])
        assert session.alive


# -- one subscription, against a model


class Model:
    """What a subscription holds, told in four lines."""

    def __init__(self, capacity: int) -> None:
        self.held: deque[Message] = deque(maxlen=capacity)
        self.lost = 0

    def publish(self, messages: list[Message]) -> None:
        for message in messages:
            self.lost += len(self.held) == self.held.maxlen
            self.held.append(message)

    def receive(self) -> SessionEvent | None:
        if self.lost:
            lost, self.lost = self.lost, 0
            return Lagged(lost)
        return self.held.popleft() if self.held else None


def frames(count: int) -> tuple[list[Frame], list[Message]]:
    made: list[Frame] = [Frame(b'{"type":"keep_alive"}') for _ in range(count)]
    said = [frame.said for frame in made]
    return made, [message for message in said if isinstance(message, KeepAlive)]


STEPS = st.lists(st.one_of(st.integers(1, 12), st.just("receive")), max_size=40)


@given(capacity=st.integers(1, 6), steps=STEPS)
def test_losses_are_told_exactly_and_where_they_fell(capacity: int, steps: list[object]) -> None:
    everybody = Subscribers()
    feed, model = Feed(capacity, Lag.DROP_OLDEST), Model(capacity)
    subscription = make_subscription(feed)
    everybody.add(feed)

    def receive() -> SessionEvent | None:
        try:
            return subscription.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return None

    for step in steps:
        if isinstance(step, int):
            made, messages = frames(step)
            everybody.publish(made)
            model.publish(messages)
        else:
            assert receive() == model.receive()
    everybody.end()
    while (expected := model.receive()) is not None:
        assert receive() == expected
    with pytest.raises(trio.EndOfChannel):
        subscription.receive_nowait()


@given(capacity=st.integers(1, 6), batches=st.lists(st.integers(1, 5), max_size=10))
def test_a_strict_subscription_gives_the_oldest_and_then_fails(
    capacity: int, batches: list[int]
) -> None:
    feed = Feed(capacity, Lag.FAIL)
    subscription = make_subscription(feed)
    everything: list[Message] = []
    for count in batches:
        made, messages = frames(count)
        feed.publish(made)
        everything += messages
    feed.end()
    for message in everything[:capacity]:
        assert subscription.receive_nowait() is message
    ends = Overflow if len(everything) > capacity else trio.EndOfChannel
    with pytest.raises(ends):
        subscription.receive_nowait()
