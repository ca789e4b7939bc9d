"""The faults of one life of a fake CLI, put together: what is done to each frame, and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import trio

from claude_trio._ndjson import object_or_empty
from claude_trio.testing import faults
from claude_trio.testing._fake_frames import spell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_trio.testing._fake_asks import Asks
    from claude_trio.testing._fake_transport import FakeTransport
    from claude_trio.testing.faults import Fault

__all__ = ["Trouble"]

_NOBODY: Final = "nobody-has-asked-this"


@final
class Trouble:
    """What is wrong with a fake."""

    def __init__(self, given: Sequence[Fault], transport: FakeTransport) -> None:
        self._transport = transport
        self._nursery: trio.Nursery
        self._faults = tuple(given)
        self._deaf: set[str] = set()
        self._seconds = 0.0
        self.exit_code: int | None = None
        self.refusal: faults.Starting | None = None
        self._count = 0
        self._asked: dict[object, str] = {}
        """The subtypes of the host's requests."""
        self.asks: Asks | None = None
        self._start = 0.0
        for fault in self._faults:
            self._prepare(fault)

    def _prepare(self, fault: Fault) -> None:
        match fault:
            case faults.Deaf():
                self._deaf |= fault.to
                self._transport.deaf_to_term |= "term" in fault.to
            case faults.Starting():
                self._start += fault.after
                self.refusal = fault if fault.words is not None else self.refusal
            case faults.Leaving():
                self._seconds += fault.seconds
                self.exit_code = self.exit_code if fault.code is None else fault.code
            case faults.Pipes():
                self._prepare_pipes(fault)
            case _:
                pass

    def _prepare_pipes(self, fault: faults.Pipes) -> None:
        pipes = self._transport
        pipes.unread = pipes.unread if fault.unread is None else fault.unread
        pipes.pipe = pipes.pipe if fault.capacity is None else fault.capacity
        pipes.piece = pipes.piece if fault.piece is None else fault.piece
        pipes.stdout_held = max(pipes.stdout_held, fault.held)
        pipes.complain(fault.stderr)

    # -- what it hears

    def hears(self, request_id: object, subtype: str) -> bool:
        """Whether it hears a request of the host."""
        self._asked[request_id] = subtype
        return subtype not in self._deaf

    @property
    def hears_eof(self) -> bool:
        """Whether it hears the end of stdin."""
        return "eof" not in self._deaf

    def pretends(self, subtype: str) -> bool:
        """Whether it says yes, and does nothing."""
        return any(each.pretends for each in self._answering(subtype))

    async def start(self, nursery: trio.Nursery) -> None:
        """Take as long as it takes to start; what is late goes into the nursery."""
        self._nursery = nursery
        await trio.sleep(self._start)

    async def linger(self) -> None:
        """Take as long as it takes to exit."""
        await trio.sleep(self._seconds)

    # -- what it writes

    def write(self, frame: Mapping[str, object]) -> None:
        """Write a frame, or what becomes of it."""
        self._count += 1
        number, line = self._count, spell(frame)
        seconds, times = 0.0, 1
        if frame["type"] == "control_response":
            seconds, times, line = self._answer(frame, line)
        for fault in self._faults:
            match fault:
                case faults.Counting() if fault.kinds & {frame["type"], frame.get("subtype")}:
                    times = fault.times
                case faults.Inserting(at=at) if at == number:
                    self._transport.write(fault.data)
                case faults.Cutting(at=at) if at == number:
                    line = line[: fault.keep] + b"\n"
                case faults.Dying() if fault.torn is not None and fault.at == number:
                    line = line[: fault.torn]
                case faults.Silence(at=at) if at <= number:
                    times = 0
                    if fault.closes:
                        self._transport.close_stdout()
                case _:
                    pass
        if seconds:
            self._nursery.start_soon(self._write_later, seconds, line * times)
        else:
            self._transport.write(line * times)
        self._go_wrong_behind(frame, number)

    def _answering(self, subtype: str) -> list[faults.Answering]:
        return [
            fault
            for fault in self._faults
            if isinstance(fault, faults.Answering)
            and (not fault.subtypes or subtype in fault.subtypes)
        ]

    def _answer(self, frame: Mapping[str, object], line: bytes) -> tuple[float, int, bytes]:
        """Say how late, how often and with which bytes a request of the host is answered."""
        response = object_or_empty(frame["response"])
        seconds, times = 0.0, 1
        for fault in self._answering(self._asked.get(response.get("request_id"), "")):
            seconds += fault.seconds
            times += fault.twice
            if fault.wrong_id:
                line = spell({**frame, "response": {**response, "request_id": _NOBODY}})
        return seconds, times, line

    async def _write_later(self, seconds: float, data: bytes) -> None:
        await trio.sleep(seconds)
        self._transport.write(data)

    def _go_wrong_behind(self, frame: Mapping[str, object], number: int) -> None:
        asks = object_or_empty(frame.get("request")).get("subtype") == "can_use_tool"
        for fault in self._faults:
            match fault:
                case faults.Dying(at=at) if at == number or (
                    at is None and frame.get("subtype") == "init"
                ):
                    self._transport.exit(fault.code)
                case faults.Withdrawing() if asks and frame["type"] == "control_request":
                    request_id = str(frame["request_id"])
                    self._nursery.start_soon(self._withdraw, request_id, fault.seconds)
                case _:
                    pass

    async def _withdraw(self, request_id: str, seconds: float) -> None:
        await trio.sleep(seconds)
        if self.asks is not None:
            self.asks.give_up(request_id)
