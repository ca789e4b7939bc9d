"""A recorded conversation, played into the core.

What the CLI wrote is fed as bytes, at the times of the recording; what the host wrote is done to
the core as a session does it.  Two things that a session never does are in the recordings, and
done here as well: a prompt that is written while a turn of ours runs is a steer of that turn, and
one that is written while a cancelled turn comes to its end opens a turn of its own at that end.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import attrs

from claude_trio._protocol._connection import Connection
from claude_trio._protocol._control import Answered
from claude_trio._protocol._events import (
    Conversation,
    RequestAnswered,
    RequestReceived,
    RequestWithdrawn,
    Send,
    Skipped,
    TurnEnded,
)
from claude_trio._protocol._gate import OwnTurn
from claude_trio._protocol._turns import State
from claude_trio.messages import ResultMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from claude_trio._protocol._events import Event
    from claude_trio._protocol._ledger import Fate, Prompt

    Read = Callable[[Sequence[bytes]], Iterable[bytes]]

__all__ = ["Frame", "Met", "Noted", "PlayedTurn", "Player", "Recording", "Row", "load"]

FOLLOW_UP: Final = 2.0
SETTLE: Final = 600.0
LIMIT: Final = 64 * 1024 * 1024
REQUESTS: Final = frozenset(
    {"can_use_tool", "elicitation", "hook_callback", "mcp_message", "request_user_dialog"}
)

Frame: TypeAlias = dict[str, Any]
Noted: TypeAlias = tuple[object, ...]
"""An event in a form that can be compared: its kind, and what it is about."""


@final
@attrs.frozen
class Row:
    line: int
    """Which line of the file it is, the header being line 1."""
    t: float
    way: str
    frame: Frame
    """Empty if the line is no frame."""
    spelled: bytes
    """The line as it was on the wire, with its end."""

    @property
    def kind(self) -> str:
        """The type of the frame; of a system frame, its subtype."""
        kind = str(self.frame.get("type", ""))
        return str(self.frame.get("subtype", kind)) if kind == "system" else kind


@final
@attrs.frozen
class Recording:
    name: str
    """The scenario, behind the version where that is an older one."""
    rows: list[Row] = attrs.field(repr=False)


def load(path: Path) -> Recording:
    older = re.fullmatch(r"\d+(\.\d+)+", path.parent.name)
    with path.open(encoding="utf-8") as lines:
        next(lines)
        rows = list(_rows(map(json.loads, lines)))
    return Recording(f"{path.parent.name}/{path.stem}" if older else path.stem, rows)


def _rows(told: Iterable[Frame]) -> Iterator[Row]:
    typed = ""
    for line, row in enumerate(told, 2):
        frame = row["frame"]
        if row["dir"] == "in" and isinstance(frame, str):
            # A line that was written in pieces is a frame as soon as the pieces make one.
            typed += frame
            frame = _parsed(typed)
            if frame or not typed.startswith("{"):
                typed = ""
        if not isinstance(frame, dict):
            frame = {}
        yield Row(line, row["t"], row["dir"], frame, _spell(frame, row.get("line")))


def _parsed(text: str) -> Frame:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _spell(frame: Frame, spelled: str | None) -> bytes:
    if spelled is None or _parsed(spelled) != frame:  # Of a catalogue that was cut: not the line.
        spelled = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
    try:
        return spelled.encode() + b"\n"
    except UnicodeEncodeError:  # Half of a pair: on the wire it is an escape.
        return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


# ------------------------------------------------------------------------------------ the player


@final
@attrs.define(eq=False)
class PlayedTurn:
    """A turn of ours, and where it is over."""

    own: OwnTurn
    over: int | None = None
    """The line that ended it, or before which time did; None if the stream ended first."""
    why: str = "eof"
    results: list[int] = attrs.field(factory=list[int])


@final
@attrs.frozen
class Met:
    """A prompt has met its fate."""

    line: int
    ordinal: int
    fate: Fate
    result: int | None


@final
@attrs.define(eq=False)
class Player:
    """Plays one recording, once.

    With ``timed`` each line comes at its own time, and time decides what it decides.  Without it,
    all that came between two deeds of the host comes at once, and no time passes.  ``read`` makes
    reads of the lines that come together.
    """

    read: Read = iter
    timed: bool = True
    limit: int = LIMIT
    connection: Connection = attrs.field(init=False)
    events: list[Noted] = attrs.field(factory=list[Noted], init=False)
    turns: list[PlayedTurn] = attrs.field(factory=list[PlayedTurn], init=False)
    prompts: list[tuple[int, Prompt]] = attrs.field(factory=list, init=False)
    """Each prompt with the line that it was written with."""
    met: list[Met] = attrs.field(factory=list[Met], init=False)
    results: list[int] = attrs.field(factory=list[int], init=False)
    fed: list[bytes] = attrs.field(factory=list[bytes], init=False)
    """The lines that the core was given."""
    sent: list[bytes] = attrs.field(factory=list[bytes], init=False)
    """The answers to requests of the CLI, without those that it did not wait for."""
    _line: int = attrs.field(default=0, init=False)
    _ids: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    _late: list[Prompt] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.connection = Connection.make(
            limit=self.limit, follow_up=FOLLOW_UP, settle=SETTLE, requests=REQUESTS
        )

    def play(self, recording: Recording) -> Player:
        batch: list[Row] = []
        for row in recording.rows:
            if row.way == "out":
                batch.append(row)
                if not self.timed:
                    continue
            self._hear(batch)
            batch = []
            if row.way != "out":
                self._do(row)
        self._hear(batch)
        self.connection.close()
        self._look()
        return self

    # -- what the CLI does

    def _hear(self, batch: Sequence[Row]) -> None:
        if not batch:
            return
        last = batch[-1]
        lines = [self._with_our_id(row) for row in batch]
        self.fed.extend(lines)
        self._let_pass(last)
        for data in self.read(lines):
            self._note(self.connection.receive_data(data, last.t), _REASONS.get(last.kind, ""))
        self._look()

    def _let_pass(self, row: Row) -> None:
        self._line = row.line
        while self.timed and self.connection.deadline <= row.t:
            self._note(self.connection.tick(max(self.connection.deadline, 0.0)), "time")

    def _with_our_id(self, row: Row) -> bytes:
        """Give the line with the id that the core has chosen for the request that it answers."""
        if row.kind != "control_response":
            return row.spelled
        recorded = row.frame["response"].get("request_id")
        ours = self._ids.get(recorded, recorded)
        return row.spelled.replace(json.dumps(recorded).encode(), json.dumps(ours).encode(), 1)

    # -- what the host does

    def _do(self, row: Row) -> None:
        self._let_pass(row)
        match row.frame:
            case {"type": "user", **rest}:
                self._prompt(rest.get("uuid"))
            case {"type": "control_request", "request_id": recorded, "request": dict(request)}:
                self._ids[recorded] = self._ask(request)
            case {"type": "control_cancel_request", "request_id": str(asked)}:
                self.connection.withdraw_request(self._ids.get(asked, asked))
            case {"type": "control_response", "response": dict(response)}:
                self._answer(response)
            case {"event": "stdout_eof"}:
                self._note(self.connection.receive_eof(row.t), "eof")
            case _:
                pass
        self._look()

    def _prompt(self, uuid: str | None) -> None:
        gate = self.connection.gate
        if gate.machine.state is State.CANCELLING:
            prompt = gate.ledger.write(uuid)
            self._late.append(prompt)
        elif gate.turn is not None:
            prompt = gate.steer(uuid)
        else:
            turn = gate.prompt(uuid, self.connection._next_number())
            assert turn is not None
            prompt = turn.prompt
            self.turns.append(PlayedTurn(turn))
            if turn.over:  # Its uuid was used before.
                self._end(turn, "write")
        self.prompts.append((self._line, prompt))

    def _open_late(self) -> None:
        gate = self.connection.gate
        gate.machine.prompt(self.connection._next_number())
        gate.turn = OwnTurn(list(self._late))
        self.turns.append(PlayedTurn(gate.turn))
        self._late.clear()

    def _ask(self, request: Frame) -> str:
        subtype, fields = str(request.get("subtype")), {**request}
        fields.pop("subtype", None)
        if subtype != "interrupt":
            request_id, _ = self.connection.send_request(subtype, **fields)
            return request_id
        request_id, _, events = self.connection.send_interrupt(
            cancel_queued=bool(fields.get("cancel_queued")),
            spare_agents=bool(fields.get("spare_background_tasks")),
        )
        self._note(events, "write")
        return request_id

    def _answer(self, response: Frame) -> None:
        request_id, body = str(response.get("request_id")), response.get("response")
        if response.get("subtype") == "success":
            line = self.connection.answer(request_id, body if isinstance(body, dict) else {})
        else:
            line = self.connection.refuse(request_id, str(response.get("error")))
        if line is not None:
            self.sent.append(line)

    # -- what the core says

    def _note(self, events: Iterable[Event], why: str) -> None:
        for event in events:
            self.events.extend(self._forms(event))
            match event:
                case Conversation(turn=turn, message=ResultMessage()):
                    self._take_result(turn)
                case Send(data=data):
                    self.sent.append(data)
                case TurnEnded(turn=turn):
                    self._end(turn, why)
                case _:
                    pass

    def _take_result(self, turn: OwnTurn | None) -> None:
        self.results.append(self._line)
        number = self._number(turn)
        if number is not None:
            self.turns[number].results.append(self._line)

    def _end(self, turn: OwnTurn, why: str) -> None:
        number = self._number(turn)
        assert number is not None
        latest = self.connection.gate.ledger.results - 1
        if why == "result" and all(prompt.result != latest for prompt in turn.members):
            why = "follow-up"
        self.turns[number].over, self.turns[number].why = self._line, why
        if self._late and self.timed:  # Else the core has read on already.
            self._open_late()

    def _look(self) -> None:
        known = {met.ordinal for met in self.met}
        for _line, prompt in self.prompts:
            if prompt.fate is not None and prompt.ordinal not in known:
                self.met.append(Met(self._line, prompt.ordinal, prompt.fate, prompt.result))

    def _number(self, turn: OwnTurn | None) -> int | None:
        return next((k for k, played in enumerate(self.turns) if played.own is turn), None)

    def _forms(self, event: Event) -> Iterator[Noted]:
        match event:
            case Conversation(turn=turn, lines=lines):
                number = self._number(turn)
                yield from (("frame", number, line) for line in lines)
            case Skipped(turn=turn, line=line):
                yield "skipped", self._number(turn), line.size, line.head
            case TurnEnded(turn=turn):
                yield "over", self._number(turn)
            case RequestReceived(turn=turn, request=request):
                yield "request", self._number(turn), request.request_id, request.subtype
            case RequestWithdrawn(request_id=request_id):
                yield "withdrawn", request_id
            case RequestAnswered(answer=answer):
                yield "answered", answer.request_id, isinstance(answer, Answered)
            case Send(data=data):
                yield "send", data

    # -- the table

    @property
    def entry(self) -> Frame:
        """What the core says of the recording, in the form of the table."""
        lines = {prompt.ordinal: line for line, prompt in self.prompts}
        own = {line for turn in self.turns for line in turn.results}
        return {
            "prompts": [[line, *self._fate(prompt)] for line, prompt in self.prompts],
            "unsolicited": [line for line in self.results if line not in own],
            "turns": [
                {
                    "prompts": [lines[prompt.ordinal] for prompt in turn.own.members],
                    "results": turn.results,
                    "over": turn.over,
                    "why": turn.why,
                }
                for turn in self.turns
            ],
        }

    def _fate(self, prompt: Prompt) -> list[object]:
        assert prompt.fate is not None
        result = [] if prompt.result is None else [self.results[prompt.result]]
        return [prompt.fate.value if prompt.certain else "undecided", *result]


_REASONS: Final[Mapping[str, str]] = {
    "result": "result",
    "session_state_changed": "idle",
    "task_notification": "task",
    "command_lifecycle": "lifecycle",
    "control_response": "answer",
}
