"""The live session below its API: what reads, writes, waits and answers.

The reader hands each event on and waits for nobody.  What belongs to a turn goes to its `Sink`,
an answer to its waiter, a request of the CLI to a task of its own.  Everything that changes state
is synchronous, so a cancellation falls before it or after it.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from typing import TYPE_CHECKING, final

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from claude_trio._errors import (
    CallbackError,
    ClaudeTrioError,
    LaunchFailed,
    ProcessExited,
    RemoteProtocolError,
    SessionClosed,
    TurnFailed,
    TurnInFlight,
    another,
)
from claude_trio._exit import ExitCause, ExitStatus
from claude_trio._link._alarms import Alarms
from claude_trio._link._answers import Answers
from claude_trio._link._callbacks import Callbacks, Handler
from claude_trio._link._sink import Sink, SinkT
from claude_trio._link._writer import Writer
from claude_trio._protocol._events import (
    Conversation,
    Event,
    RequestAnswered,
    RequestReceived,
    RequestWithdrawn,
    Send,
    Skipped,
    TurnEnded,
)
from claude_trio._protocol._turns import State
from claude_trio._subscribers import Subscribers
from claude_trio.messages import Message, ResultMessage, SkippedLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from claude_trio._options import Limits, Timeouts
    from claude_trio._protocol._connection import Connection
    from claude_trio._protocol._gate import OwnTurn
    from claude_trio._transport import Transport

__all__ = ["Handler", "Link", "Sink"]


@final
@attrs.define(eq=False, repr=False)
class Link:
    """One CLI process and all that its session keeps about it."""

    nursery: trio.Nursery
    connection: Connection
    transport: Transport
    timeouts: Timeouts
    limits: Limits
    handlers: Mapping[str, Handler]
    withdrawn: Callable[[str], None]
    """Told the id of each request that the CLI withdraws."""
    keep_daemons: bool
    interrupted: Callable[[bool], None]
    """Told of each interrupt, right after it was written, and whether it spares the agents."""
    runs_servers: bool = False
    """Whether the CLI may have been told to start programs before any prompt."""
    sink: Sink | None = attrs.field(default=None, init=False)
    startup: list[Message] = attrs.field(factory=list, init=False)
    """The frames that came before `initialize` was answered."""
    opened: bool = attrs.field(default=False, init=False)
    server_info: Mapping[str, object] = attrs.field(factory=dict, init=False)
    """The answer to `initialize`."""
    returncode: int | None = attrs.field(default=None, init=False)
    status: ExitStatus = attrs.field(factory=ExitStatus, init=False)
    cause: ExitCause | None = attrs.field(default=None, init=False)
    error: ClaudeTrioError | None = attrs.field(default=None, init=False)
    last_result_failed: bool = attrs.field(default=False, init=False)
    close_requested: trio.Event = attrs.field(factory=trio.Event, init=False)
    closed: trio.Event = attrs.field(factory=trio.Event, init=False)
    changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    """Where tasks wait for the state of a turn, of the CLI or of the writer to change."""
    alarms: Alarms = attrs.field(factory=Alarms, init=False)
    subscribers: Subscribers = attrs.field(factory=Subscribers, init=False)
    writer: Writer = attrs.field(init=False)
    callbacks: Callbacks = attrs.field(init=False)
    _answers: Answers = attrs.field(init=False)
    _context: contextvars.Context = attrs.field(factory=contextvars.copy_context, init=False)
    _settled: bool = attrs.field(default=False, init=False)
    _at_eof: bool = attrs.field(default=False, init=False)
    _prompt_line: bytes = attrs.field(default=b"", init=False)
    _spoke_at: float = attrs.field(default=-math.inf, init=False)
    """When the CLI was last given something to go on with: a prompt, or an answer."""

    def __attrs_post_init__(self) -> None:
        self.writer = Writer(
            self.nursery,
            self.transport,
            self.timeouts.write,
            self._stalled,
            self._wake,
        )
        self.callbacks = Callbacks(
            self.nursery, self.handlers, self.answer, self.refuse, self._callback_failed
        )
        self._answers = Answers(self.lost_error)

    # -- the end

    def request_close(self, cause: ExitCause, error: ClaudeTrioError | None = None) -> None:
        """Ask the keeper to end the session; the first cause counts."""
        if not self.close_requested.is_set():
            self.cause, self.error = cause, error
            self.close_requested.set()
            self.alarms.poked.set()

    def closed_error(self) -> SessionClosed:
        """Make the error of a call that comes too late."""
        error = SessionClosed("the session is closed")
        error.__cause__ = self.error
        return error

    def lost_error(self) -> ClaudeTrioError:
        """Make the error of what was under way when the session ended."""
        if not isinstance(self.error, ProcessExited):
            return self.closed_error()
        error = another(self.error)
        error.__cause__ = self.error
        return error

    def exited_error(self, message: str, returncode: int | None) -> ProcessExited:
        """Make the error of a CLI that went away."""
        return ProcessExited(
            message,
            returncode=returncode,
            stderr_tail=self.transport.stderr_tail,
            last_frames=self.connection.last_frames,
        )

    def check_open(self) -> None:
        """Raise if the session is closed or closing."""
        if self.close_requested.is_set():
            raise self.closed_error()

    def last_words(self) -> bytes | None:
        """Make the line that stops what runs, for the time right before stdin is closed.

        EOF alone leaves turns, queues and background shells running, and an interrupt alone the
        process; one right behind the other ended every state tried within 1.6 s (2.1.332).
        """
        if self.connection.gate.at_rest or self.writer.torn:
            return None
        return self.connection.send_request("interrupt", cancel_queued=True)[1]

    @enable_ki_protection
    def settle(self) -> None:
        """Tell everybody who waits that the session has ended; again does nothing."""
        if self._settled:
            return
        self._settled = True
        self.connection.close()
        self.callbacks.cancel_all()
        self._answers.fail_all()
        sink, self.sink = self.sink, None
        if sink is not None:
            sink.fail(self.lost_error())
        self.alarms.end_graces()
        self.subscribers.end()
        self._wake()

    def _wake(self) -> None:
        if self.changed:  # Nearly always nobody waits.
            self.changed.unpark_all()

    def _stalled(self) -> None:
        seconds = self.timeouts.write
        text = f"the CLI has taken nothing from its stdin for {seconds:g} s"
        self.request_close(ExitCause.STDIN_STALLED, SessionClosed(text))

    # -- reading

    @enable_ki_protection
    async def read(self) -> None:
        """Read until stdout ends; a CLI that closes it must exit as well."""
        with contextlib.suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            while data := await self.transport.receive():
                self._read(data)
        self._eof()
        with trio.move_on_after(self.timeouts.eof) as lives:
            await self.transport.wait_exit()
        if lives.cancelled_caught:
            error = RemoteProtocolError("the CLI has closed its stdout, and lives")
            self.request_close(ExitCause.PROTOCOL, error)

    @enable_ki_protection
    async def watch(self) -> None:
        """Wait for the exit, deliver what was written before it, and declare it."""
        code = await self.transport.wait_exit()
        # A grandchild may hold stdout open: what is there is read, and its end not waited for.
        with contextlib.suppress(trio.WouldBlock, trio.ClosedResourceError):
            while data := self.transport.receive_nowait():
                self._read(data)
        self._eof()
        self.returncode = code
        if not self.close_requested.is_set():
            how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
            cause = ExitCause.KILLED if code < 0 else ExitCause.EXITED
            self.request_close(cause, self.exited_error(f"the CLI {how}", code))

    def _read(self, data: bytes) -> None:
        # What a grandchild writes after the exit is not the CLI's.
        if not self._at_eof:
            self.feed(self.connection.receive_data(data, trio.current_time()))

    def _eof(self) -> None:
        if not self._at_eof:
            self._at_eof = True
            self.feed(self.connection.receive_eof(trio.current_time()))

    def feed(self, events: Sequence[Event]) -> None:
        """Act on what came.  Once the waiters are settled, it is read and nothing more."""
        if self._settled:
            return
        for event in events:
            match event:
                case Conversation():
                    self._conversation(event)
                case RequestAnswered(answer):
                    self._answers.settle(answer)
                case RequestReceived(turn, request):
                    self.callbacks.start(turn, request, self._context)
                case RequestWithdrawn(request_id):
                    self.callbacks.cancel(request_id)
                    self.withdrawn(request_id)
                case TurnEnded(turn):
                    self._turn_ended(turn)
                case Skipped(_, line):
                    self._skipped(line)
                case Send(data):
                    self.writer.send(data)
        self._fed(events)

    def _fed(self, events: Sequence[Event]) -> None:
        # The others bring nothing forward, and nobody waits for them at `changed`.
        if not events or any([_changes_state(event) for event in events]):  # noqa: C419  Faster.
            self._rearm()
            self._wake()

    def _conversation(self, part: Conversation) -> None:
        if not self.opened:
            self._starting_up(part)
        if isinstance(part.message, ResultMessage):
            self.last_result_failed = part.message.is_error
        shared = part.frames if self.subscribers else None
        if shared is not None:
            self.subscribers.publish(shared)
        if part.turn is not None and self.sink is not None and self.sink.own is part.turn:
            self.sink.deliver(part, shared)

    def _skipped(self, line: SkippedLine) -> None:
        self.subscribers.publish([line])
        if self.sink is not None:
            text = f"a line of {line.size} bytes could not be read: {line.head[:60]!r}"
            self.sink.fail(RemoteProtocolError(text, frame=line.head))

    def _starting_up(self, part: Conversation) -> None:
        for message in [frame.said for frame in part.frames]:
            if isinstance(message, SkippedLine):
                continue
            self.startup.append(message)
            if isinstance(message, ResultMessage):
                # The CLI has given up, and will never answer `initialize`.
                said = "; ".join(message.errors) or message.result or "it gave no reason"
                frames = self.connection.last_frames
                error = LaunchFailed(f"the CLI did not start: {said}", last_frames=frames)
                self.request_close(ExitCause.START_FAILED, error)

    def _turn_ended(self, turn: OwnTurn) -> None:
        self.alarms.backstop_at = math.inf
        if self.sink is not None and self.sink.own is turn:
            sink, self.sink = self.sink, None
            sink.ended()

    def _rearm(self) -> None:
        # The keeper never wakes too late; when it wakes too early, it looks and sleeps again.
        if self.due_at < self.alarms.set_for:
            self.alarms.poked.set()

    def _watch_silence(self) -> None:
        if self.silent_at < self.alarms.set_for:
            self.alarms.poked.set()

    @property
    def due_at(self) -> float:
        """When something is due that only time decides."""
        return min(self.connection.deadline, self.silent_at, self.alarms.due_at)

    @property
    def silent_at(self) -> float:
        """When the running turn has been silent for too long; infinity if it may be silent."""
        sink = self.sink
        if self.timeouts.silence == math.inf:
            return math.inf  # As a rule, and it is asked at every read.
        if sink is None or sink.own.cancelled is not None or self.connection.asked:
            return math.inf
        return max(self.connection.gate.heard_at, self._spoke_at) + self.timeouts.silence

    def fail_silent(self, now: float) -> None:
        """The running turn has given no sign of life for too long."""
        if self.sink is None:
            return
        last = self.connection.last_frames[-1:]
        kind = "/".join([str(last[0][key]) for key in ("type", "subtype") if key in last[0]])
        age = now - self.connection.gate.heard_at
        text = f"the turn is silent: the last frame ({kind}) came {age:g} s ago"
        self.sink.fail(TurnFailed(text))

    # -- requests of ours

    async def request(self, subtype: str, **fields: object) -> Mapping[str, object]:
        """Ask the CLI for something, and wait for the answer; for the errors see `Answers`."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self.check_open()
        while len(self.writer) >= self.limits.outbound:
            await self.changed.park()
            self.check_open()
        request_id, data = self.connection.send_request(subtype, **fields)
        self.writer.send(data)
        # Whatever is asked of an open session may start a server: `mcp_set_servers` does.
        self.runs_servers = self.runs_servers or self.opened
        return await self.answer_to(
            request_id,
            subtype,
            self.timeouts.initialize if subtype == "initialize" else self.timeouts.control,
            data,
        )

    async def answer_to(
        self, request_id: str, subtype: str, seconds: float, line: bytes | None = None
    ) -> Mapping[str, object]:
        """Wait for the answer to a request that was sent as ``line``.

        Without a line it cannot be withdrawn: the ledger reads an interrupt's answer, whoever
        waits for it.
        """

        def give_up() -> None:
            withdrawal = self.connection.withdraw_request(request_id)
            if line is not None and not self.writer.take_back(line):
                self._write(withdrawal)

        given_up = None if line is None else give_up
        return await self._answers.wait(request_id, subtype, seconds, given_up)

    # -- turns

    @property
    def state(self) -> State:
        """Where the turn machine stands."""
        return self.connection.gate.machine.state

    async def begin(
        self,
        content: str | Sequence[Mapping[str, object]],
        uuid: str,
        make: Callable[[OwnTurn], SinkT],
        *,
        hold_open: bool,
    ) -> SinkT:
        """Write a prompt, once the CLI has ended a cancelled turn before it.

        Raises:
          TurnInFlight: if a turn runs.
          SessionClosed: if the session is closed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            self.check_open()
            state = self.state
            if state is State.IDLE and len(self.writer) < self.limits.outbound:
                break
            if state is not State.IDLE and state is not State.CANCELLING:
                raise TurnInFlight("a turn is running, and only one runs at a time")
            await self.changed.park()
        own, data = self.connection.send_prompt(content, uuid, hold_open=hold_open)
        self.sink = sink = make(own)
        self._context = contextvars.copy_context()
        self._prompt_line, self._spoke_at = data, trio.current_time()
        self.writer.send(data)
        self._watch_silence()
        return sink

    @enable_ki_protection
    def interrupt(self, *, spare_agents: bool = False) -> str | None:
        """Stop what runs; return the id of the request, None if there was nothing to stop.

        The interrupt is written first, then the denials of what waits for a decision.
        """
        gate = self.connection.gate
        if self.close_requested.is_set() or (self.state is State.IDLE and not gate.busy):
            return None
        request_id, data, events = self.connection.send_interrupt(
            cancel_queued=True, spare_agents=spare_agents
        )
        self.writer.send(data)
        now = trio.current_time()
        if self.state is State.CANCELLING:
            self.alarms.backstop_at = min(self.alarms.backstop_at, now + self.timeouts.interrupt)
        if self.sink is not None:
            # Also where the interrupt alone has ended the turn: its agents were spared.
            self._cancelling(self.sink, now)
        self.callbacks.cancel_all(spare_agents=spare_agents)
        self.interrupted(spare_agents)
        self.feed(events)
        return request_id

    def _cancelling(self, sink: Sink, now: float) -> None:
        sink.cancelling()
        self.alarms.add_grace(now + self.timeouts.grace, sink.grace_over)

    @enable_ki_protection
    def cancel_turn(self, own: OwnTurn) -> None:
        """Interrupt a turn of ours, if it runs and was not interrupted before."""
        if self.connection.gate.turn is not own or own.cancelled is not None:
            return
        if self.writer.take_back(self._prompt_line):
            # The CLI never sees it, and there is nothing to interrupt.
            if self.sink is not None:
                self._cancelling(self.sink, trio.current_time())
            self.feed(self.connection.take_back_prompt())
        else:
            self.interrupt()

    # -- requests of the CLI

    def answer(self, request_id: str, response: Mapping[str, object]) -> bool:
        """Answer a request of the CLI; return whether it waited for that."""
        return self._reply(self.connection.answer(request_id, response))

    def refuse(self, request_id: str, error: str) -> bool:
        """Answer a request of the CLI with an error; return whether it waited for that."""
        return self._reply(self.connection.refuse(request_id, error))

    def _reply(self, line: bytes | None) -> bool:
        if not self._write(line):
            return False
        # What the CLI was waiting for is there: from now on its silence counts.
        self._spoke_at = trio.current_time()
        self._watch_silence()
        return True

    def _write(self, line: bytes | None) -> bool:
        if line is None:
            return False
        self.writer.send(line)
        return True

    def _callback_failed(self, turn: OwnTurn | None, error: CallbackError) -> None:
        if self.sink is not None and turn is self.sink.own:
            self.sink.fail(error)
        else:
            self.request_close(ExitCause.CALLBACK, error)


def _changes_state(event: Event) -> bool:
    if type(event) is Conversation:
        return event.message is not None  # Else it is only passed on.
    return type(event) is not RequestReceived
