"""One turn: what the CLI says in answer to a prompt, in order, to its end."""

from __future__ import annotations

import functools
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVarTuple, Unpack, final

import attrs

from claude_trio.messages import AssistantMessage, Message, StreamEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from types import TracebackType

    import trio

    from claude_trio._flow import TurnFlow
    from claude_trio.messages import Result

__all__ = ["Turn", "TurnBlock"]

Ts = TypeVarTuple("Ts")


@final
class Turn:
    """A turn that runs, or has run: an async iterator over its messages.

    Get one from `Session.turn`.  One task reads it.

    The iteration gives every message of the turn in order and ends when the CLI's part is over.
    While messages are there it does not switch tasks for each of them: it checks for
    cancellation at each, and waits, which lets other tasks run, at least once for each read of
    the CLI's output.
    """

    __slots__ = ("__weakref__", "_flow")

    _flow: TurnFlow

    def __init__(self) -> None:
        raise TypeError("a Turn comes from Session.turn(), and is not made")

    def __repr__(self) -> str:
        return f"<Turn {self.id}>"

    @property
    def id(self) -> str:
        """The uuid of its prompt."""
        return self._flow.id

    @property
    def cancel_requested(self) -> trio.Event:
        """Set when the turn is being cancelled, for tasks that wind down by themselves."""
        return self._flow.cancel_requested

    @property
    def result(self) -> Result | None:
        """The last result that came; None if none has.

        An interrupted turn that the CLI dropped before it began has one too, with no text.
        """
        return self._flow.result

    @property
    def results(self) -> tuple[Result, ...]:
        """All results that came: background work brings more than one."""
        return self._flow.results

    @property
    def settled(self) -> bool:
        """False if the turn ended although work that it owed was never heard of again."""
        return self._flow.own.settled

    def start_soon(
        self,
        fn: Callable[[Unpack[Ts]], Awaitable[object]],
        *args: *Ts,
        name: object = None,
    ) -> None:
        """Run a task in the turn: it holds the turn's block open.

        When the turn is cancelled, `cancel_requested` is set, and a task that still runs
        `Timeouts.grace` seconds later is cancelled, as is one that is started after that.  A task
        that raises interrupts the turn and leaves the block in an exception group, as from a
        nursery.

        Args:
          fn: An async function.
          *args: Its arguments.
          name: The task's name, for debugging.

        Raises:
          TurnOver: if the block of the turn was left.
        """
        task = functools.partial(fn, *args)
        self._flow.start_soon(task, fn if name is None else name)

    async def interrupt(self, *, spare_agents: bool = False) -> None:
        """Ask the CLI to stop this turn, and wait until it has heard.

        The turn goes on to its end, which then comes soon.  Once the CLI's part is over there is
        nothing to stop, and nothing is sent.

        Args:
          spare_agents: Leave background agents of the turn running; they no longer hold it.

        Raises:
          RequestRefused: if the CLI refuses.
          RequestTimedOut: if it does not answer in time.
          ProcessExited: if it goes while we wait.
          SessionClosed: if the session is closed while we wait.

        Cancellation:
          A checkpoint.  If cancelled, the interrupt was sent, or the turn was over.
        """
        await self._flow.interrupt(spare_agents=spare_agents)

    @property
    def text(self) -> AsyncIterator[str]:
        """The text of the main conversation as it streams: an async iterator of deltas.

        It reads the turn: whatever else comes is passed over.  Where partial messages are turned
        off, whole blocks come.
        """
        return _Text(self)

    def batches(self) -> AsyncIterator[list[Message]]:
        """Give the messages of the turn in lists, as they were read from the CLI."""
        return _Batches(self._flow)

    def __aiter__(self) -> Turn:
        """Read the turn."""
        return self

    def __anext__(self) -> Awaitable[Message]:
        """Wait for the next message.

        Raises:
          trio.BusyResourceError: if another task reads the turn.
          Overflow: if nobody read, and the buffer was full.
          CallbackError: if a callback of the turn raised.
          RemoteProtocolError: if a line was lost.
          ProcessExited: if the CLI went away in mid-turn.
          SessionClosed: if the session was closed in mid-turn.
        """
        return self._flow.next()


@final
class TurnBlock(AbstractAsyncContextManager[Turn]):
    """The block of a turn; what `Session.turn` returns.

    A class and no generator: every turn has one.
    """

    __slots__ = ("_begin", "_check", "_flow")

    def __init__(self, begin: Callable[[], Awaitable[TurnFlow]], check: bool) -> None:  # noqa: FBT001  For `Session.turn` alone.
        self._begin, self._check = begin, check

    async def __aenter__(self) -> Turn:
        self._flow = await self._begin()
        await self._flow.enter()
        turn: Turn = object.__new__(Turn)
        turn._flow = self._flow  # noqa: SLF001  What `__init__` would do if it were there for everybody.
        return turn

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        try:
            await self._flow.leave(raised)  # noqa: ASYNC102  As in any nursery.
        except BaseException as exc:  # Whatever ends the block ends the turn, and goes on as it is.
            self._flow.abandon(exc)
            if exc is raised:
                return False  # noqa: ASYNC910  The nursery is a checkpoint.
            raise
        self._flow.outcome(check=self._check)
        return True


@final
@attrs.define(eq=False, repr=False)
class _Batches:
    flow: TurnFlow

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> list[Message]:
        if not await self.flow.wait_ready():
            raise StopAsyncIteration
        return self.flow.take_all()


@final
@attrs.define(eq=False, repr=False)
class _Text:
    """The text of a turn, each part once, however it comes.

    A block comes as deltas, then whole.  After a cut stream the CLI asks again without streaming,
    and the whole block need not go on where the deltas broke off.
    """

    turn: Turn
    _streamed: str = ""

    def __aiter__(self) -> _Text:
        return self

    async def __anext__(self) -> str:
        async for message in self.turn:
            text = self._of(message)
            if text:
                return text
        raise StopAsyncIteration

    def _of(self, message: Message) -> str:
        if isinstance(message, StreamEvent):
            if message.event.get("type") in {"message_start", "content_block_start"}:
                self._streamed = ""
            self._streamed += message.text_delta
            return message.text_delta
        if isinstance(message, AssistantMessage) and message.parent_tool_use_id is None:
            streamed, self._streamed = self._streamed, ""
            return message.text.removeprefix(streamed)
        return ""
