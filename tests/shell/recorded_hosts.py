"""Two hosts that do what the host of a recording did: one writes its bytes, one holds a session."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import signal
import uuid
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from claude_trio import (
    Allow,
    Deny,
    LaunchFailed,
    PermissionRequest,
    ProcessExited,
    RequestRefused,
    SessionClosed,
    SessionState,
    TurnFailed,
    open_session,
)
from claude_trio.messages import ResultMessage
from claude_trio.permissions import parse_update
from claude_trio.testing import Replay, ReplayMismatch, replay
from tests.recordings import recorded_output, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from claude_trio import Session, Transport

__all__ = ["Undrivable", "drive_by_session", "play_by_bytes", "renamer", "undrivable"]

Json = dict[str, Any]

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


# -------------------------------------------------------------------------------- by its bytes


def renamer(path: Path) -> Callable[[str], str]:
    """Give what a recorded host said other ids: its uuids, and those of its requests."""
    new: dict[str, str] = {}
    heard: set[str] = set()
    numbers = itertools.count(1)
    for row in rows(path):
        text = json.dumps(row["frame"])
        if row["dir"] == "out":
            heard.update(UUID.findall(text))
        elif row["dir"] == "in":
            new |= {u: str(uuid.uuid4()) for u in UUID.findall(text) if u not in {*heard, *new}}
            frame = row["frame"]
            if isinstance(frame, dict) and frame.get("type") == "control_request":
                new[json.dumps(frame["request_id"])] = json.dumps(f"other-{next(numbers)}")
    known = re.compile("|".join(map(re.escape, new)) or "(?!)")
    return lambda text: known.sub(lambda found: new[found[0]], text)


async def play_by_bytes(path: Path, rename: Callable[[str], str] = str) -> None:
    """Write what the host wrote, and see that the CLI says what it said, in the same order."""
    with replay(path) as cli:
        async with trio.open_nursery() as nursery:
            transport = await cli.launch((), {}, None, nursery)
            host = _ByteHost(cli, transport, rename, recorded_output(path))
            told = list(rows(path))
            for row, later in zip(told, [*told[1:], {}], strict=True):
                await host.do(row, later)
            assert not host.read
            errors = [f"{row['frame']}\n" for row in told if row["dir"] == "err"]
            assert host.transport.stderr_tail == "".join(errors)
        assert cli.mismatch is None
        assert cli.left is None


@final
@attrs.define
class _ByteHost:
    cli: Replay
    transport: Transport
    rename: Callable[[str], str]
    output: Iterator[tuple[bytes, Json]]
    read: bytes = b""

    async def do(self, row: Json, later: Json) -> None:
        match row:
            case {"dir": "in", "frame": frame}:
                self.write(frame, cut=_is_half(row) or later.get("frame") == STDIN_CLOSED)
            case {"dir": "out"}:
                line, _ = next(self.output)
                assert self.read_line() == self.rename(line.decode()).encode()
            case {"frame": {"event": "stdin_closed"}}:
                self.transport.close_stdin()
            case {"frame": {"event": "signal", "signal": str(name)}}:
                self.cli.send_signal(signal.Signals[name])
            case {"frame": {"event": "stdout_eof"}}:
                assert await self.transport.receive() == b""
            case {"frame": {"event": "exit", "code": code}}:
                assert await self.transport.wait_exit() == code
            case _:
                assert row["dir"] in {"ctl", "err"}

    def write(self, frame: Json | str, *, cut: bool) -> None:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        self.transport.send_nowait(self.rename(text).encode() + (b"" if cut else b"\n"))

    def read_line(self) -> bytes:
        while b"\n" not in self.read:
            data = self.transport.receive_nowait()  # What follows a deed follows at once.
            assert data
            self.read += data
        line, _, self.read = self.read.partition(b"\n")
        return line


STDIN_CLOSED: Final = {"event": "stdin_closed"}


def _is_half(row: Json) -> bool:
    text = row["frame"]
    return isinstance(text, str) and text.startswith('{"type"') and not text.endswith(("}", "}\r"))


# -------------------------------------------------------------------------------- by a session


def undrivable(path: Path) -> str | None:
    """Say what a session does not do of what this host did; None if it does all of it."""
    return next(_reasons(list(rows(path))), None)


def _reasons(told: list[Json]) -> Iterator[str]:
    said: list[Json] = []
    for row in told:
        match row:
            case {"dir": "in", "raw": True}:
                yield "lines that are no frames"
            case {"dir": "in", "frame": dict(frame)}:
                yield from _unlike_a_session(frame) if said else _unlike_a_handshake(frame)
                said.append(frame)
            case {"frame": {"type": "control_request", "request": {"subtype": subtype}}}:
                if subtype != "can_use_tool":
                    yield "a question that a session refuses"
            case {"frame": {"event": "signal"}}:
                yield "a signal to a CLI whose stdin is open"
            case _:
                pass
    if not said:
        yield "no handshake"
    deeds = [row for row in told if row["dir"] != "ctl" or row["frame"] == STDIN_CLOSED]
    if deeds[1]["dir"] in {"in", "ctl"}:
        yield "no wait for the handshake"
    uuids = [frame.get("uuid") for frame in said if frame["type"] == "user"]
    named = [uuid for uuid in uuids if uuid is not None]
    if len(named) > len(set(named)) or (named and None in uuids[uuids.index(named[0]) :]):
        yield "prompts that cannot be told apart"


def _unlike_a_handshake(frame: Json) -> Iterator[str]:
    match frame:
        case {"type": "control_request", "request": {"subtype": "initialize", **more}}:
            if any(more.values()):
                yield "a handshake with options"
        case _:
            yield "no handshake"


def _unlike_a_session(frame: Json) -> Iterator[str]:
    match frame:
        case {"type": "control_request", "request": {"subtype": "initialize"}}:
            yield "a second handshake"
        case {"type": "control_response", "response": answer}:
            if not isinstance(answer.get("response"), dict) or not _decides(answer["response"]):
                yield "an answer that is no decision"
        case {"type": "control_request", "request": {"subtype": "interrupt", **more}}:
            if not more.get("cancel_queued"):
                yield "an interrupt that leaves the queue"
        case {"type": "user", "message": {"role": "user"}, **more}:
            if more.keys() & {"priority", "client_composed"}:
                yield "a prompt of a special kind"
        case {"type": "control_request", "request": {"subtype": str()}}:
            pass
        case _:
            yield "frames of another kind"


def _decides(answer: Json) -> bool:
    return answer.get("behavior") == "deny" or "updatedInput" in answer


@final
@attrs.define
class _SessionHost:
    """Does with a session what a recorded host did, each deed when the CLI rests before it."""

    nursery: trio.Nursery
    answers: dict[str, Json] = attrs.field(factory=dict[str, Json])
    answered: dict[str, trio.Event] = attrs.field(factory=dict[str, trio.Event])
    prompts: dict[str, str] = attrs.field(factory=dict[str, str])
    """From the recorded uuid of a prompt to that of now."""

    async def decide(self, request: PermissionRequest) -> Allow | Deny:
        event = self.answered.setdefault(request.id, trio.Event())
        await event.wait()
        match self.answers[request.id]:
            case {"behavior": "allow", "updatedInput": dict(use), **more}:
                updates = [parse_update(each) for each in more.get("updatedPermissions", ())]
                return Allow(updated_input=use, updated_permissions=updates)
            case answer:
                return Deny(answer["message"], interrupt=bool(answer.get("interrupt")))

    async def do(self, session: Session, frame: Json) -> None:
        await wait_all_tasks_blocked()
        match frame:
            case {"type": "user"}:
                await _until_idle(session, "a prompt while a turn runs")
                self.nursery.start_soon(self.prompt, session, frame)
            case {"type": "control_request", "request": dict(request)}:
                self.nursery.start_soon(self.ask, session, request)
            case {"response": {"request_id": str(request_id), "response": answer}}:
                self.answers[request_id] = answer
                self.answered.setdefault(request_id, trio.Event()).set()
        await wait_all_tasks_blocked()

    async def prompt(self, session: Session, frame: Json) -> None:
        with contextlib.suppress(ProcessExited, SessionClosed, TurnFailed):
            async with session.turn(frame["message"]["content"], check=False) as turn:
                self.prompts[frame.get("uuid", "")] = turn.id

    async def ask(self, session: Session, request: Json) -> None:
        known = {key: self.prompts.get(str(value), value) for key, value in request.items()}
        subtype = str(known.pop("subtype"))
        with contextlib.suppress(ProcessExited, SessionClosed, RequestRefused):
            if subtype == "interrupt":
                await session.interrupt(spare_agents="spare_background_tasks" in known)
            else:
                await session.control(subtype, **known)


async def _until_idle(session: Session, reason: str) -> None:
    with trio.move_on_after(50):
        while session.state in {SessionState.PROMPTING, SessionState.CANCELLING}:
            await trio.sleep(0.5)
        return
    raise Undrivable(reason)


class Undrivable(Exception):
    """A session does not do what this host did, which shows only in time."""


async def drive_by_session(path: Path) -> list[Json]:
    """Hold a session that does what the host did; return the results that it was told of.

    Raises:
      Undrivable: if the host did what a session does not do.
      LaunchFailed: if the CLI did not start.
      ReplayMismatch: if the session did something else.
    """
    results: list[Json] = []
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            results = await _hold(path, _SessionHost(nursery))
        except (Undrivable, LaunchFailed, ReplayMismatch) as exc:
            failure = exc
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return results


async def _hold(path: Path, host: _SessionHost) -> list[Json]:
    with replay(path) as cli:
        async with (
            open_session(None, on_permission=host.decide, launch=cli.launch) as session,
            session.subscribe(10_000) as events,
        ):
            said: list[Any] = [row["frame"] for row in rows(path) if row["dir"] == "in"]
            for frame in said[1:]:
                await host.do(session, frame)
            await _until_idle(session, "stdin closed while a turn runs")
            await session.aclose()
            told = [event async for event in events]
    return [{**event.raw} for event in told if isinstance(event, ResultMessage)]
