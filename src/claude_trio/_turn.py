"""One turn: what the CLI says in answer to a prompt, in order, to its end."""

from __future__ import annotations

import functools
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVarTuple, Unpack, final

import attrs
import trio

from claude_trio import _scopes
from claude_trio._errors import (
    ClaudeTrioError,
    Overflow,
    RemoteProtocolError,
    TurnFailed,
    TurnOver,
    another,
    turn_failed,
)
from claude_trio._protocol._events import Frame
from claude_trio._protocol._ledger import Fate
from claude_trio._protocol._outcome import outcome_of
from claude_trio.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Result,
    ResultMessage,
    SkippedLine,
    StreamEvent,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from claude_trio._link import Link
    from claude_trio._protocol._events import Conversation
    from claude_trio._protocol._gate import OwnTurn
    from claude_trio._protocol._outcome import Spending

__all__ = ["Turn"]

Ts = TypeVarTuple("Ts")


@final
@attrs.define(eq=False)
class Turn:
    """A turn that runs, or has run: an async iterator over its messages.

    Get one from `Session.turn`.  One task reads it.

    The iteration gives every message of the turn in order and ends when the CLI's part is over.
    While messages are there it does not switch tasks for each of them: it checks for
    cancellation at each, and waits, which lets other tasks run, at least once for each read of
    the CLI's output.

    Attributes:
      id: The uuid of its prompt.
      cancel_requested: Set when the turn is being cancelled, for tasks that wind down by
        themselves.
    """

    id: str
    own: OwnTurn = attrs.field(repr=False)
    _link: Link = attrs.field(repr=False)
    _spending: Spending = attrs.field(repr=False)
    _keeps: bool = attrs.field(repr=False)
    """Whether somebody may read the messages; a `prompt` reads none."""
    cancel_requested: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)
    _results: list[Result] = attrs.field(factory=list, init=False, repr=False)
    _buffer: deque[bytes | Frame] = attrs.field(factory=deque, init=False, repr=False)
    _buffered: int = attrs.field(default=0, init=False, repr=False)
    _changed: trio.lowlevel.ParkingLot = attrs.field(
        factory=trio.lowlevel.ParkingLot, init=False, repr=False
    )
    _over: bool = attrs.field(default=False, init=False, repr=False)
    _failure: ClaudeTrioError | None = attrs.field(default=None, init=False, repr=False)
    _told: list[ClaudeTrioError] = attrs.field(factory=list, init=False, repr=False)
    """The failure, an instance for each who has heard of it."""
    _read_by: trio.lowlevel.Task | None = attrs.field(default=None, init=False, repr=False)
    _nursery: trio.Nursery | None = attrs.field(default=None, init=False, repr=False)
    _members: set[trio.CancelScope] = attrs.field(factory=set, init=False, repr=False)
    _grace_is_over: bool = attrs.field(default=False, init=False, repr=False)
    _leaving: bool = attrs.field(default=False, init=False, repr=False)
    """Whether the block has come to its end, and only tasks of the turn can still read it."""

    # -- what the link calls; nothing here waits

    def deliver(self, part: Conversation, shared: Sequence[Frame] | None) -> None:
        """Take a part of the turn's traffic; its frames, where others have them as well."""
        if isinstance(part.message, ResultMessage):
            self._take_result(part.message)
        if self._keeps and self._failure is None:
            whole = part.message is not None
            self._buffer.extend(shared or (part.frames if whole else part.lines))
            self._buffered += sum(map(len, part.lines))
            limit = self._link.limits.turn_buffer
            if self._buffered > limit:
                text = f"nobody read the turn, and {limit} bytes of it were kept"
                self._free()
                self.fail(Overflow(text, buffer="turn", size=limit))
        self._changed.unpark_all()

    def ended(self) -> None:
        """The CLI's part is over."""
        ordinal = self.own.prompt.result
        if not self._results and ordinal is not None:
            message = self._link.connection.recent_result(ordinal)
            if message is not None:
                self._take_result(message)
        self._over = True
        self._changed.unpark_all()

    def fail(self, error: ClaudeTrioError) -> None:
        """The turn has failed; what is buffered can still be read, then the error comes."""
        if self._failure is None and not self._over:
            self._failure = error
            self.cancel_requested.set()
            self._link.cancel_turn(self.own)
        self._changed.unpark_all()

    def cancelling(self) -> None:
        """The turn is being cancelled."""
        self.cancel_requested.set()

    def grace_over(self) -> None:
        """Cancel the tasks of the turn that have not wound down by themselves."""
        self._grace_is_over = True
        for scope in self._members:
            scope.cancel()

    def _take_result(self, message: ResultMessage) -> None:
        cancelled = self.own.cancelled is not None
        self._results.append(
            Result.from_message(
                message,
                outcome=outcome_of(message, cancelled=cancelled),
                turn_cost_usd=self._spending.of(message),
            )
        )

    def _free(self) -> None:
        self._buffer.clear()
        self._buffered = 0

    # -- for the user

    @property
    def result(self) -> Result | None:
        """The last result that came; None if none has.

        An interrupted turn that the CLI dropped before it began has one too, with no text.
        """
        if self._results:
            return self._results[-1]
        if self._over and self.own.prompt.fate is Fate.WITHDRAWN:
            return Result.interrupted(session_id=self._link.connection.session_id)
        return None

    @property
    def results(self) -> tuple[Result, ...]:
        """All results that came: background work brings more than one."""
        return tuple(self._results)

    @property
    def settled(self) -> bool:
        """False if the turn ended although work that it owed was never heard of again."""
        return self.own.settled

    @property
    def failure(self) -> ClaudeTrioError | None:
        """Why the turn failed here, and not in the CLI; None if it did not."""
        return self._failure

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
        if self._nursery is None:
            raise TurnOver("the turn has ended, and takes no more tasks")
        # It counts from now on, though it runs later: the block may come to its end before.
        scope = trio.CancelScope()
        self._members.add(scope)
        if self._grace_is_over:
            scope.cancel()
        task = functools.partial(fn, *args)
        self._nursery.start_soon(self._run_member, scope, task, name=fn if name is None else name)

    async def _run_member(  # noqa: ASYNC910  A task of its own.
        self, scope: trio.CancelScope, task: Callable[[], Awaitable[object]]
    ) -> None:
        with scope:
            try:
                await task()
            except ClaudeTrioError as exc:
                # The turn's own failure, heard by reading the turn, cancels no block: the block's
                # end raises it, bare.
                if not any(exc is told for told in self._told):
                    raise
            finally:
                self._members.discard(scope)
                self._drop_unread()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[None]:
        """Take tasks while the block runs, and let them hold its end."""
        try:
            async with _scopes.plain_nursery() as self._nursery:
                yield
                await self.wait_over()
        finally:
            self._nursery = None

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
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._link.connection.gate.turn is not self.own:
            return
        request_id = self._link.interrupt(spare_agents=spare_agents)
        if request_id is not None:
            await self._link.answer_to(request_id, "interrupt", self._link.timeouts.control)

    @property
    def text(self) -> AsyncIterator[str]:
        """The text of the main conversation as it streams: an async iterator of deltas.

        It reads the turn: whatever else comes is passed over.  Where partial messages are turned
        off, whole blocks come.
        """
        return _Text(self)

    def __aiter__(self) -> Turn:
        """Read the turn."""
        return self

    async def __anext__(self) -> Message:
        """Wait for the next message.

        Raises:
          trio.BusyResourceError: if another task reads the turn.
          Overflow: if nobody read, and the buffer was full.
          CallbackError: if a callback of the turn raised.
          RemoteProtocolError: if a line was lost.
          ProcessExited: if the CLI went away in mid-turn.
          SessionClosed: if the session was closed in mid-turn.
        """
        # The common case comes first, and costs no task switch.
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self._buffer and not await self.wait_ready():
            raise StopAsyncIteration
        return self.take()

    def _read(self, frame: Frame) -> Message:
        said = frame.said
        if isinstance(said, SkippedLine):
            # It was told by its first bytes and queued as it came: that it is broken shows now.
            text = f"a line of {said.size} bytes could not be read: {said.head[:60]!r}"
            error = RemoteProtocolError(text, frame=said.head)
            self.fail(error)
            raise self._tell(error)
        return said

    def _tell(self, failure: ClaudeTrioError) -> ClaudeTrioError:
        told = another(failure)
        self._told.append(told)
        return told

    async def _wait_for_more(self) -> None:
        if self._read_by is not None:
            raise trio.BusyResourceError("another task reads this turn")
        self._read_by = trio.lowlevel.current_task()
        try:
            await self._changed.park()
        finally:
            self._read_by = None

    def batches(self) -> AsyncIterator[list[Message]]:
        """Give the messages of the turn in lists, as they were read from the CLI."""
        return _Batches(self)

    async def wait_ready(self) -> bool:
        """Wait for messages to take; false at the end of the turn.

        Raises:
          ClaudeTrioError: if the turn has failed here and not in the CLI.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._buffer:
            if self._failure is not None:
                raise self._tell(self._failure)
            if self._over:
                return False
            await self._wait_for_more()
        return True

    def take(self) -> Message:
        """Take a message that is there."""
        taken = self._buffer.popleft()
        if isinstance(taken, bytes):
            self._buffered -= len(taken)
            # Nearly every message ends here, with no other object made.
            try:
                return decode(taken)
            except ValueError:
                frame = Frame(taken)
        else:
            self._buffered -= len(taken.line)
            frame = taken
        return self._read(frame)

    def take_all(self) -> list[Message]:
        """Take the messages that are there."""
        taken: list[Message] = []
        while self._buffer:
            try:
                taken.append(self.take())
            except RemoteProtocolError:
                if not taken:
                    raise
                break  # The next step raises it.
        return taken

    async def wait_over(self) -> None:
        """Wait until the CLI's part is over.

        What nobody has read by now, and no task of the turn can read, is thrown away.

        Raises:
          ClaudeTrioError: if the turn has failed here and not in the CLI.
        """
        self._leaving = True
        self._drop_unread()
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._over and self._failure is None:
            await self._changed.park()
        if self._failure is not None:
            raise self._tell(self._failure)

    def _drop_unread(self) -> None:
        if self._leaving and not self._members:
            self._keeps = False
            self._free()

    def outcome(self, *, check: bool) -> Result:
        """Give the result of a turn that is over.

        Raises:
          TurnFailed: if it is an error and ``check`` is true, or if there is none since the CLI
            dropped the prompt.
        """
        result = self.result
        if result is None:
            fate = self.own.prompt.fate
            what = fate.value if fate is not None else "given up"
            raise TurnFailed(f"the CLI gave no result: the prompt was {what}")
        if check and result.outcome is Outcome.FAILED:
            raise turn_failed(result)
        return result

    def cancel(self) -> None:
        """Interrupt the turn if it runs, and wait for nothing."""
        self._keeps = False
        self._free()
        self._link.cancel_turn(self.own)


@final
@attrs.frozen(eq=False)
class _Batches:
    turn: Turn

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> list[Message]:
        if not await self.turn.wait_ready():
            raise StopAsyncIteration
        return self.turn.take_all()


@final
@attrs.define(eq=False)
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
