"""Control requests in both directions: their ids, who waits for them, and their one answer.

`HostRequests` holds what we ask the CLI, `CliRequests` what the CLI asks us.  The two kinds of id
are separate name spaces.  Answers may overtake each other, so an id is all that ties an answer to
its request, and an answer to an id that nobody waits for is dropped: the CLI echoes our own
answers when it is told to replay user messages, answers what was withdrawn, and does not notice
an id that it has seen before.

Each request has one outcome.  Bytes to write are returned, never kept: whoever gets a line writes
it, and for a request that nobody waits for there is no line.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, final

from claude_trio._errors import LocalProtocolError
from claude_trio._ndjson import encode, object_or_empty
from claude_trio._values import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from claude_trio.messages import ControlRequest, ControlResponse

__all__ = [
    "Answered",
    "Cancelled",
    "CliRequests",
    "DropReason",
    "Dropped",
    "HostRequests",
    "Incoming",
    "Refused",
    "Reply",
]


class DropReason(enum.Enum):
    """Why a frame of the control protocol has no effect."""

    UNKNOWN = "unknown"
    """We never sent a request with this id, or have forgotten it."""
    LATE = "late"
    """The request was withdrawn, or the session is closed."""
    DOUBLE = "double"
    """The request was answered already, or is being answered."""
    MALFORMED = "malformed"
    """It names no request."""


@final
class Answered(Record):
    """The CLI did what was asked.  ``response`` is empty if it had nothing to say."""

    __slots__ = ("request_id", "response", "subtype")

    def __init__(self, *, request_id: str, subtype: str, response: Mapping[str, object]) -> None:
        self.request_id = request_id
        self.subtype = subtype
        self.response = response


@final
class Refused(Record):
    """The CLI answered with an error, or with something that is no answer."""

    __slots__ = ("error", "error_code", "request_id", "subtype")

    def __init__(
        self, *, request_id: str, subtype: str, error: str, error_code: str | None
    ) -> None:
        self.request_id = request_id
        self.subtype = subtype
        self.error = error
        self.error_code = error_code


@final
class Dropped(Record):
    """The frame changes nothing.  ``subtype`` is what had been asked, if that is known."""

    __slots__ = ("reason", "request_id", "subtype")

    def __init__(
        self, *, request_id: str | None, reason: DropReason, subtype: str | None = None
    ) -> None:
        self.request_id = request_id
        self.reason = reason
        self.subtype = subtype


# How many settled requests are remembered, so that a second or late answer is told from one to
# nothing.  The CLI answers within seconds, and far fewer are open at a time.
_REMEMBERED: Final = 1024


@final
class HostRequests:
    """What we ask the CLI."""

    def __init__(self) -> None:
        self._pending: dict[str, str] = {}
        self._settled: dict[str, Dropped] = {}
        self._opened = 0
        self._closed = False

    @property
    def pending(self) -> Mapping[str, str]:
        """The ids of the open requests, oldest first, each with its subtype."""
        return MappingProxyType(self._pending)

    def open(self, subtype: str, **fields: object) -> tuple[str, bytes]:
        """Open a request; return its id and its line.

        Raises:
          LocalProtocolError: after `fail_all`.
          TypeError: if JSON has no type for one of the fields; nothing is opened.
          ValueError: if JSON has no such number; nothing is opened.
        """
        if self._closed:
            raise LocalProtocolError(f"the session is closed: {subtype!r} cannot be asked")
        request_id = f"claude-trio-{self._opened + 1}"
        line = encode(
            {
                "type": "control_request",
                "request_id": request_id,
                "request": {"subtype": subtype, **fields},
            }
        )
        self._opened += 1
        self._pending[request_id] = subtype
        return request_id, line

    def withdraw(self, request_id: str) -> bytes | None:
        """Give a request up; return the line that tells the CLI, None if it is not open.

        The CLI answers a withdrawn request all the same, sooner or later.
        """
        if not self._settle(request_id, DropReason.LATE):
            return None
        return encode({"type": "control_cancel_request", "request_id": request_id})

    def receive(self, message: ControlResponse) -> Answered | Refused | Dropped:
        """Take an answer of the CLI, and say what it settles."""
        request_id = message.request_id
        if not request_id:
            return Dropped(request_id=None, reason=DropReason.MALFORMED)
        subtype = self._pending.get(request_id)
        if subtype is None:
            return self._dropped(request_id)
        self._settle(request_id, DropReason.DOUBLE)
        if message.ok:
            return Answered(request_id=request_id, subtype=subtype, response=message.response)
        return Refused(
            request_id=request_id,
            subtype=subtype,
            error=message.error or "the answer is neither a success nor an error",
            error_code=message.error_code,
        )

    def fail_all(self) -> tuple[str, ...]:
        """Settle what is open, and open nothing more; return the ids."""
        self._closed = True
        failed = tuple(self._pending)
        for request_id in failed:
            self._settle(request_id, DropReason.LATE)
        return failed

    def _settle(self, request_id: str, next_answer: DropReason) -> bool:
        subtype = self._pending.pop(request_id, None)
        if subtype is None:
            return False
        if len(self._settled) >= _REMEMBERED:
            del self._settled[next(iter(self._settled))]
        self._settled[request_id] = Dropped(
            request_id=request_id, reason=next_answer, subtype=subtype
        )
        return True

    # A withdrawn request has one late answer; the next one is double.
    def _dropped(self, request_id: str) -> Dropped:
        known = self._settled.get(request_id)
        if known is None:
            return Dropped(request_id=request_id, reason=DropReason.UNKNOWN)
        self._settled[request_id] = Dropped(
            request_id=request_id, reason=DropReason.DOUBLE, subtype=known.subtype
        )
        return known


@final
class Incoming(Record):
    """The CLI asks something that is to be answered."""

    __slots__ = ("request", "request_id", "subtype")

    def __init__(self, *, request_id: str, subtype: str, request: Mapping[str, object]) -> None:
        self.request_id = request_id
        self.subtype = subtype
        self.request = request


@final
class Reply(Record):
    """The request is answered by this line already; there is nothing else to do."""

    __slots__ = ("line",)

    def __init__(self, *, line: bytes) -> None:
        self.line = line


@final
class Cancelled(Record):
    """The CLI no longer wants the answer of an in-process tool; the notification is answered.

    ``request_id`` is the request that needs no answer any more; None if none was open for that
    call.
    """

    __slots__ = ("line", "request_id")

    def __init__(self, *, request_id: str | None, line: bytes) -> None:
        self.request_id = request_id
        self.line = line


# The CLI's own code for the same.
_UNSUPPORTED: Final = "unsupported_request"

# A JSON-RPC id and the server that it belongs to: every server counts from 0.
_Call: TypeAlias = tuple[str, str | int]


@final
class CliRequests:
    """What the CLI asks us.

    Args:
      known: The subtypes that somebody here answers.  Any other is refused at once, since the CLI
        may wait for ever for an answer that does not come.
    """

    def __init__(self, known: Collection[str]) -> None:
        self._known = frozenset(known)
        self._open: dict[str, Incoming] = {}
        self._calls: dict[_Call, str] = {}
        self._closed = False

    @property
    def pending(self) -> Mapping[str, Incoming]:
        """The open requests by their ids, oldest first."""
        return MappingProxyType(self._open)

    @property
    def waiting(self) -> bool:
        """Whether any is open."""
        return bool(self._open)

    def receive(self, message: ControlRequest) -> Incoming | Reply | Cancelled | Dropped:
        """Take a request of the CLI, and say what is to be done about it.

        The line of a `Reply` or a `Cancelled` has to be written.  A request whose id is open is
        dropped: two answers to one id would be one too many.
        """
        request_id, subtype = message.request_id, message.subtype
        if self._closed:
            return Dropped(request_id=request_id, reason=DropReason.LATE, subtype=subtype)
        if request_id in self._open:
            return Dropped(request_id=request_id, reason=DropReason.DOUBLE, subtype=subtype)
        if not request_id:
            return Reply(line=_error(None, "The request has no request_id", _UNSUPPORTED))
        if subtype not in self._known:
            text = f"Unsupported control request subtype: {subtype}"
            return Reply(line=_error(request_id, text, _UNSUPPORTED))
        incoming = Incoming(request_id=request_id, subtype=subtype, request=message.request)
        if subtype == "mcp_message":
            return self._receive_mcp(incoming)
        return self._take(incoming)

    def answer(self, request_id: str, response: Mapping[str, object]) -> bytes | None:
        """Answer a request; return the line, None if nobody waits for it.

        Raises:
          TypeError: if JSON has no type for something in the response; the request stays open.
          ValueError: if JSON has no such number; the request stays open.
        """
        if request_id not in self._open:
            return None
        line = _success(request_id, response)
        self._forget(request_id)
        return line

    def refuse(self, request_id: str, error: str) -> bytes | None:
        """Answer a request with an error; return the line, None if nobody waits for it."""
        if not self._forget(request_id):
            return None
        return _error(request_id, error, None)

    def receive_cancel(self, request_id: str) -> bool:
        """Take the CLI's word that it wants no answer; return whether the request was open."""
        return self._forget(request_id)

    def fail_all(self) -> tuple[str, ...]:
        """Forget what is open, and take nothing more; return the ids."""
        self._closed = True
        failed = tuple(self._open)
        self._open.clear()
        return failed

    # The CLI announces the end of a tool call by this notification alone, never by a
    # control_cancel_request (2.1.332).  A notification wants an answer too, of any content.
    def _receive_mcp(self, incoming: Incoming) -> Incoming | Cancelled:
        message = object_or_empty(incoming.request.get("message"))
        if message.get("method") != "notifications/cancelled":
            return self._take(incoming)
        named = object_or_empty(message.get("params")).get("requestId")
        call = _call(incoming.request.get("server_name"), named)
        cancelled = self._calls.get(call) if call else None
        if cancelled:
            self._forget(cancelled)
        empty: dict[str, object] = {"mcp_response": {"jsonrpc": "2.0", "result": {}}}
        return Cancelled(request_id=cancelled, line=_success(incoming.request_id, empty))

    def _take(self, incoming: Incoming) -> Incoming:
        self._open[incoming.request_id] = incoming
        call = _call_of(incoming)
        if call:
            self._calls[call] = incoming.request_id
        return incoming

    def _forget(self, request_id: str) -> bool:
        incoming = self._open.pop(request_id, None)
        if incoming is None:
            return False
        call = _call_of(incoming)
        if call and self._calls.get(call) == request_id:
            del self._calls[call]
        return True


def _call_of(incoming: Incoming) -> _Call | None:
    if incoming.subtype != "mcp_message":
        return None
    message = object_or_empty(incoming.request.get("message"))
    return _call(incoming.request.get("server_name"), message.get("id"))


def _call(server: object, rpc_id: object) -> _Call | None:
    if not isinstance(server, str) or isinstance(rpc_id, bool):
        return None
    return (server, rpc_id) if isinstance(rpc_id, str | int) else None


def _success(request_id: str, response: Mapping[str, object]) -> bytes:
    body = {"subtype": "success", "request_id": request_id, "response": response}
    return encode({"type": "control_response", "response": body})


def _error(request_id: str | None, error: str, code: str | None) -> bytes:
    body = {"subtype": "error", "request_id": request_id, "error": error, "error_code": code}
    given = {key: value for key, value in body.items() if value is not None}
    return encode({"type": "control_response", "response": given})
