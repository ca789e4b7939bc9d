"""The protocol of one CLI process: bytes in and events out, requests in and bytes out.

Nothing here waits, keeps time or does I/O; times are inputs.  The same bytes give the same
events, however they were cut.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, TypeGuard, cast, final

import attrs

from claude_trio._errors import LocalProtocolError
from claude_trio._ndjson import LineFramer, encode, recover
from claude_trio._protocol._control import (
    Answered,
    Cancelled,
    CliRequests,
    Dropped,
    HostRequests,
    Incoming,
    Reply,
)
from claude_trio._protocol._events import (
    Conversation,
    Event,
    RequestAnswered,
    RequestReceived,
    RequestWithdrawn,
    Send,
    Skipped,
    TurnEnded,
    frames_of,
)
from claude_trio._protocol._gate import Gate, OwnTurn
from claude_trio._protocol._steering import Accepted, Steering, SteerOutcome
from claude_trio.messages import (
    BackgroundTasksChanged,
    CommandLifecycle,
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    InitMessage,
    Message,
    ResultMessage,
    SessionStateChanged,
    SkippedLine,
    TaskNotification,
    TaskStarted,
    TaskUpdated,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = ["Connection"]


# The frames of which nearly all traffic consists.  They change no state, so they are told by
# their first bytes and left as they are.  A result must not be told so: its keys come in any
# order (2.1.332), and one that begins otherwise is decoded below like everything else.
_CONVERSATION: Final = (b'{"type":"stream_event"', b'{"type":"assistant"', b'{"type":"user"')

_NOISE_KEPT: Final = 20
_FRAMES_KEPT: Final = 5
_RESULTS_KEPT: Final = 4


def _are_conversation(lines: list[bytes | SkippedLine]) -> TypeGuard[list[bytes]]:
    # Nearly every read is such: no call but one for each line, and no object made.
    try:
        # A list is faster here than a generator: there is nothing to stop early for.
        return all([line.startswith(_CONVERSATION) for line in cast("list[bytes]", lines)])  # noqa: C419
    except AttributeError:
        return False  # A line was skipped.


@final
@attrs.define(eq=False, repr=False)
class Connection:
    """Both directions of one CLI process.

    Attributes:
      gate: The turn machine and the ledgers.
      steering: The compare-and-swap for input in mid-turn.
      noise: The last lines that were no frames.
      last_lines: The last lines that were.
      session_id: The session's id, from the last frame that told it.
    """

    _framer: LineFramer
    gate: Gate
    _incoming: CliRequests
    steering: Steering = attrs.field(factory=Steering, init=False)
    noise: deque[bytes] = attrs.field(init=False)
    session_id: str | None = None
    _outgoing: HostRequests = attrs.field(factory=HostRequests, init=False)
    last_lines: deque[bytes] = attrs.field(init=False)
    _results: deque[ResultMessage] = attrs.field(init=False)
    _number: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.noise = deque(maxlen=_NOISE_KEPT)
        self.last_lines = deque(maxlen=_FRAMES_KEPT)
        self._results = deque(maxlen=_RESULTS_KEPT)

    @classmethod
    def make(
        cls,
        *,
        limit: int,
        follow_up: float,
        settle: float,
        requests: Collection[str],
        session_id: str | None = None,
    ) -> Connection:
        """Make a connection.

        Args:
          limit: The longest line that is taken, in bytes.
          follow_up: See `Gate`.
          settle: See `Gate`.
          requests: The subtypes of the CLI's requests that somebody answers.
          session_id: The id that the session was started with, if it is known.
        """
        return cls(
            LineFramer(limit), Gate(follow_up, settle), CliRequests(frozenset(requests)), session_id
        )

    # -- what comes

    def receive_data(self, data: bytes, now: float) -> list[Event]:
        """Take what was read, and say what it means."""
        return self._events(self._framer.receive_data(data), now)

    def receive_eof(self, now: float) -> list[Event]:
        """Take the end of the stream: a last line without its end, and nothing after it."""
        return self._events(self._framer.receive_eof(), now)

    def tick(self, now: float) -> list[Event]:
        """Take the time, at `deadline` or later."""
        turn = self.gate.turn
        self.gate.tick(now)
        return self._ended(turn)

    @property
    def deadline(self) -> float:
        """When `tick` has something to decide; infinity if only the CLI can."""
        return self.gate.deadline()

    def _events(self, lines: list[bytes | SkippedLine], now: float) -> list[Event]:
        if not lines:
            return []
        self.gate.heard(now)
        if _are_conversation(lines):
            return [self._conversation(lines)]
        events: list[Event] = []
        hot: list[bytes] = []
        for line in lines:
            if isinstance(line, bytes) and line.startswith(_CONVERSATION):
                hot.append(line)
                continue
            if hot:
                events.append(self._conversation(hot))
                hot = []
            self._other(line, now, events)
        if hot:
            events.append(self._conversation(hot))
        return events

    def _conversation(self, lines: list[bytes]) -> Conversation:
        self.last_lines.extend(lines[-_FRAMES_KEPT:])
        return Conversation(self._turn(), lines)

    def _turn(self) -> OwnTurn | None:
        turn = self.gate.turn
        return turn if turn is not None and self.gate.begun(turn) else None

    def _other(self, line: bytes | SkippedLine, now: float, events: list[Event]) -> None:
        if isinstance(line, SkippedLine):
            events.append(Skipped(self._turn(), line))
            return
        try:
            message = decode(line)
        except ValueError:
            self._unparsed(line, now, events)
            return
        self.last_lines.append(line)
        if isinstance(message, ControlRequest):
            self._request(message, events)
        elif isinstance(message, ControlCancelRequest):
            if self._incoming.receive_cancel(message.request_id):
                events.append(RequestWithdrawn(message.request_id))
        elif isinstance(message, ControlResponse):
            self._response(message, events)
        else:
            self._said(line, message, now, events)

    def _unparsed(self, line: bytes, now: float, events: list[Event]) -> None:
        found = recover(line)
        if found is None:
            self.noise.append(line)
        else:
            self._other(found, now, events)

    def _request(self, message: ControlRequest, events: list[Event]) -> None:
        match self._incoming.receive(message):
            case Incoming() as request:
                events.append(RequestReceived(self._turn(), request))
            case Reply(line=data):
                events.append(Send(data))
            case Cancelled(request_id=request_id, line=data):
                if request_id is not None:
                    events.append(RequestWithdrawn(request_id))
                events.append(Send(data))
            case _:
                pass  # It is dropped.

    def _response(self, message: ControlResponse, events: list[Event]) -> None:
        answer = self._outgoing.receive(message)
        if isinstance(answer, Dropped):
            return
        turn = self.gate.turn
        if isinstance(answer, Answered) and answer.subtype == "interrupt":
            dropped = answer.response.get("cancelled")
            if isinstance(dropped, list):
                self.gate.withdrawn([uuid for uuid in dropped if isinstance(uuid, str)])
        events.append(RequestAnswered(answer))
        events.extend(self._ended(turn))

    def _said(self, line: bytes, message: Message, now: float, events: list[Event]) -> None:
        turn, before = self.gate.turn, self._turn()
        take = _TAKEN.get(type(message))
        belongs = None if take is None else take(self, message, now)
        if isinstance(message, ResultMessage):
            self._results.append(message)
        else:
            belongs = before or self._turn()
        events.append(Conversation(belongs, [line], message))
        events.extend(self._ended(turn))

    def _ended(self, turn: OwnTurn | None) -> list[Event]:
        if turn is None or not turn.over:
            return []
        self.steering.turn_ended()
        return [TurnEnded(turn)]

    # -- what is sent

    def send_request(self, subtype: str, **fields: object) -> tuple[str, bytes]:
        """Ask the CLI for something; its answer will carry the id."""
        return self._outgoing.open(subtype, **fields)

    def withdraw_request(self, request_id: str) -> bytes | None:
        """Give up on a request of ours; a late answer is dropped."""
        return self._outgoing.withdraw(request_id)

    def answer(self, request_id: str, response: Mapping[str, object]) -> bytes | None:
        """Answer a request of the CLI; None if nobody waits for it."""
        return self._incoming.answer(request_id, response)

    def refuse(self, request_id: str, error: str) -> bytes | None:
        """Answer a request of the CLI with an error; None if nobody waits for it."""
        return self._incoming.refuse(request_id, error)

    def send_prompt(
        self, content: str | Sequence[Mapping[str, object]], uuid: str, *, hold_open: bool = True
    ) -> tuple[OwnTurn, bytes]:
        """Open a turn.

        Raises:
          LocalProtocolError: if a turn runs, if the session is closed, or if the uuid was used
            before: the CLI would drop the prompt without a word.
        """
        data = encode(_user(content, uuid))
        turn = self.gate.prompt(uuid, self._next_number(), hold_open=hold_open)
        assert turn is not None  # noqa: S101  Its number is the newest: no cancel overtook it.
        if turn.over:
            raise LocalProtocolError(f"the uuid {uuid} was used before")
        self.steering.turn_started()
        return turn, data

    def take_back_prompt(self) -> list[Event]:
        """Cancel the running turn, whose prompt was not written after all."""
        turn = self.gate.turn
        self.gate.cancel(self._next_number())
        if turn is not None and turn.prompt.uuid is not None:
            self.gate.withdrawn([turn.prompt.uuid])
        return self._ended(turn)

    def send_steer(
        self, text: str, uuid: str, *, expected_token: int, client_msg_id: str | None = None
    ) -> tuple[SteerOutcome, bytes | None]:
        """Add input to the running turn, if ``expected_token`` is still its own."""
        data = encode(_user(text, uuid))
        outcome = self.steering.steer(
            text, expected_token=expected_token, client_msg_id=client_msg_id
        )
        if not isinstance(outcome, Accepted):
            return outcome, None
        self.gate.steer(uuid)
        return outcome, data

    def send_interrupt(
        self, *, cancel_queued: bool, spare_agents: bool
    ) -> tuple[str, bytes, list[Event]]:
        """Stop what runs: the turn of ours, or what the CLI does by itself.

        Returns:
          The id of the request, its bytes, and what the cancel alone has decided.
        """
        turn = self.gate.turn
        self.gate.cancel(self._next_number(), spare_agents=spare_agents)
        self.steering.turn_ended()
        fields: dict[str, object] = {"cancel_queued": True} if cancel_queued else {}
        if spare_agents:
            fields["spare_background_tasks"] = True
        request_id, data = self._outgoing.open("interrupt", **fields)
        return request_id, data, self._ended(turn)

    def close(self) -> tuple[str, ...]:
        """End the session; return the requests of ours that nobody will answer."""
        self.gate.eof()
        self.steering.turn_ended()
        self._incoming.fail_all()
        return self._outgoing.fail_all()

    @property
    def asked(self) -> bool:
        """Whether a request of the CLI waits for our answer."""
        return self._incoming.waiting

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def recent_result(self, ordinal: int) -> ResultMessage | None:
        """Give one of the last results by its ordinal.

        A CLI that says nothing of its prompts (2.1.197) may fold one into a run that nobody asked
        for; that the result of that run answers it shows only later.
        """
        first = self.gate.ledger.results - len(self._results)
        return self._results[ordinal - first] if 0 <= ordinal - first < len(self._results) else None

    @property
    def last_frames(self) -> list[Mapping[str, object]]:
        """The last frames that came, for error reports."""
        return frames_of(self.last_lines)


# What each kind of frame does to the gate.  One that ends a run gives the turn of ours that its
# result belongs to.


def _take_result(connection: Connection, message: ResultMessage, now: float) -> OwnTurn | None:
    origin = message.origin or {}
    kind, run_id = origin.get("kind"), origin.get("runId")
    return connection.gate.result(
        now,
        uuids=message.user_message_uuids,
        origin=kind if isinstance(kind, str) else None,
        run_id=run_id if isinstance(run_id, str) else None,
    )


def _take_init(connection: Connection, message: InitMessage, _now: float) -> None:
    connection.session_id = message.session_id or connection.session_id
    connection.gate.init()


def _take_lifecycle(connection: Connection, message: CommandLifecycle, _now: float) -> None:
    scheduled = message.wakeup_source is not None
    connection.gate.lifecycle(message.command_uuid, message.state or "", scheduled=scheduled)


def _take_state(connection: Connection, message: SessionStateChanged, _now: float) -> None:
    connection.gate.session_state(message.state or "")


def _take_start(connection: Connection, message: TaskStarted, _now: float) -> None:
    connection.gate.task_started(
        message.task_id,
        message.task_type or "",
        run_id=message.run_id,
        backgrounded=message.is_backgrounded,
        parent=message.parent_task_id,
        description=message.description or "",
    )


def _take_update(connection: Connection, message: TaskUpdated, now: float) -> None:
    connection.gate.task_updated(
        now, message.task_id, status=message.status, backgrounded=message.is_backgrounded
    )


def _take_notification(connection: Connection, message: TaskNotification, now: float) -> None:
    if message.status in {"completed", "failed", "stopped"}:
        connection.gate.task_notified(now, message.task_id)


def _take_list(connection: Connection, message: BackgroundTasksChanged, now: float) -> None:
    if isinstance(message.raw.get("tasks"), list):
        listed = [(t.task_id, t.task_type or "", t.run_id) for t in message.tasks]
        connection.gate.task_snapshot(now, listed)


# A kind that does not stand here changes no state.
_TAKEN: Final = cast(
    "dict[type, Callable[[Connection, Message, float], OwnTurn | None]]",
    {
        ResultMessage: _take_result,
        InitMessage: _take_init,
        CommandLifecycle: _take_lifecycle,
        SessionStateChanged: _take_state,
        TaskStarted: _take_start,
        TaskUpdated: _take_update,
        TaskNotification: _take_notification,
        BackgroundTasksChanged: _take_list,
    },
)


def _user(content: str | Sequence[Mapping[str, object]], uuid: str) -> dict[str, object]:
    body = content if isinstance(content, str) else list(content)
    return {
        "type": "user",
        "message": {"role": "user", "content": body},
        "parent_tool_use_id": None,
        "session_id": "",
        "uuid": uuid,
    }
