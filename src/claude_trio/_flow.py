"""The inside of one turn: its buffer, its tasks, its results, its failure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

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
    Message,
    Outcome,
    Result,
    ResultMessage,
    SkippedLine,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from claude_trio._link import Link
    from claude_trio._protocol._events import Conversation
    from claude_trio._protocol._gate import OwnTurn
    from claude_trio._protocol._outcome import Spending

__all__ = ["TurnFlow"]


@final
@attrs.define(eq=False, repr=False)
class TurnFlow:
    """What a `Turn` shows to its user, and what the link does to it."""

    id: str
    """The uuid of its prompt."""
    own: OwnTurn
    _link: Link
    _spending: Spending
    _keeps: bool
    """Whether somebody may read the messages; a `prompt` reads none."""
    cancel_requested: trio.Event = attrs.field(factory=trio.Event, init=False)
    _results: list[Result] = attrs.field(factory=list, init=False)
    _buffer: deque[bytes | Frame] = attrs.field(factory=deque, init=False)
    _buffered: int = attrs.field(default=0, init=False)
    _changed: trio.lowlevel.ParkingLot = attrs.field(
        factory=trio.lowlevel.ParkingLot, init=False, repr=False
    )
    _over: bool = attrs.field(default=False, init=False)
    _failure: ClaudeTrioError | None = attrs.field(default=None, init=False)
    _told: list[ClaudeTrioError] = attrs.field(factory=list, init=False)
    """The failure, an instance for each who has heard of it."""
    _read_by: trio.lowlevel.Task | None = attrs.field(default=None, init=False)
    _tasks: _scopes.PlainNursery = attrs.field(factory=_scopes.PlainNursery, init=False)
    _nursery: trio.Nursery | None = attrs.field(default=None, init=False)
    """Where its tasks run, while its block does."""
    _members: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    _grace_is_over: bool = attrs.field(default=False, init=False)
    _leaving: bool = attrs.field(default=False, init=False)
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
        self._wake()

    def ended(self) -> None:
        """The CLI's part is over."""
        ordinal = self.own.prompt.result
        if not self._results and ordinal is not None:
            message = self._link.connection.recent_result(ordinal)
            if message is not None:
                self._take_result(message)
        self._over = True
        self._wake()

    def fail(self, error: ClaudeTrioError) -> None:
        """The turn has failed; what is buffered can still be read, then the error comes."""
        if self._failure is None and not self._over:
            self._failure = error
            self.cancel_requested.set()
            self._link.cancel_turn(self.own)
        self._wake()

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

    def _wake(self) -> None:
        if self._changed:
            self._changed.unpark_all()

    def _free(self) -> None:
        self._buffer.clear()
        self._buffered = 0

    # -- what the turn and the session call

    @property
    def result(self) -> Result | None:
        """The last result; an interrupted turn that was dropped before it began has one too."""
        if self._results:
            return self._results[-1]
        if self._over and self.own.prompt.fate is Fate.WITHDRAWN:
            return Result.interrupted(session_id=self._link.connection.session_id)
        return None

    @property
    def results(self) -> tuple[Result, ...]:
        """All results that came."""
        return tuple(self._results)

    def start_soon(self, task: Callable[[], Awaitable[object]], name: object) -> None:
        """Run a task in the turn; raise `TurnOver` if its block was left."""
        if self._nursery is None:
            raise TurnOver("the turn has ended, and takes no more tasks")
        # It counts from now on, though it runs later: the block may come to its end before.
        scope = trio.CancelScope()
        self._members.add(scope)
        if self._grace_is_over:
            scope.cancel()
        self._nursery.start_soon(self._run_member, scope, task, name=name)

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

    async def enter(self) -> None:  # noqa: ASYNC910  A nursery opens at once.
        """Take tasks from now on."""
        self._nursery = await self._tasks.__aenter__()

    async def leave(self, raised: BaseException | None) -> None:
        """Wait until the turn and its tasks are over; raise what the block or they have raised.

        Args:
          raised: What the block has raised; then nothing is waited for but the tasks, cancelled.
        """
        try:
            if raised is None:
                raised = await self._over_or_raised()
            await self._tasks.leave(raised)
        finally:
            self._nursery = None

    async def _over_or_raised(self) -> BaseException | None:
        # What is raised here is the block's own, and goes through its nursery as that does.
        try:
            await self.wait_over()
        except BaseException as exc:  # noqa: ASYNC103, BLE001  Its nursery raises it again.
            return exc  # noqa: ASYNC910  It was a checkpoint.
        return None

    async def interrupt(self, *, spare_agents: bool = False) -> None:
        """Ask the CLI to stop this turn, and wait until it has heard."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._link.connection.gate.turn is not self.own:
            return
        request_id = self._link.interrupt(spare_agents=spare_agents)
        if request_id is not None:
            await self._link.answer_to(request_id, "interrupt", self._link.timeouts.control)

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

    async def next(self) -> Message:
        """Wait for the next message; `StopAsyncIteration` at the end."""
        # The common case comes first, and costs no task switch.
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self._buffer and not await self.wait_ready():
            raise StopAsyncIteration
        return self.take()

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

    def abandon(self, why: BaseException) -> None:
        """Interrupt the turn if it runs, since its block has raised; wait for nothing."""
        if self._failure is not None and type(why) is not type(self._failure):
            why.add_note(f"The turn failed as well: {self._failure!r}")
        self._keeps = False
        self._free()
        self._link.cancel_turn(self.own)
