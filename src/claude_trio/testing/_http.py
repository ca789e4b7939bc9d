"""HTTP/1.1 for one connection, as much of it as a stand-in for an API needs.

`serve_http` runs over any stream: a socket, or memory under a clock that jumps.  While a response
is on its way the connection is watched, so that a client that hangs up ends the response at once.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs
import h11
import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = ["Exchange", "Handler", "HttpRequest", "serve_http"]

_READ_SIZE: Final = 64 * 1024
# The real API takes 32 MB; what is larger is refused there as well.
_MAX_BODY: Final = 32 * 1024 * 1024

_Sendable: TypeAlias = h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage


@attrs.frozen(kw_only=True)
class HttpRequest:
    """One request, whole.

    Attributes:
      method: The method, in upper case.
      path: The target without its query.
      headers: The headers, their names in lower case.
      body: The body.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@final
class Exchange:
    """The response to one request: whole by `respond`, or `begin` and then `send`.

    A client that has gone is no error: the handler is cancelled.

    Attributes:
      headers: Sent with the response, whatever it is; a handler may add to them.
    """

    def __init__(
        self, conn: h11.Connection, stream: trio.abc.Stream, scope: trio.CancelScope
    ) -> None:
        self.headers: dict[str, str] = {}
        self._conn = conn
        self._stream = stream
        self._scope = scope

    async def respond(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response with a JSON body."""
        fields = {"content-type": "application/json", "content-length": str(len(body))}
        fields |= {**self.headers, **(headers or {})}
        await self._send(_response(status, fields), h11.Data(data=body), h11.EndOfMessage())

    @property
    def begun(self) -> bool:
        """Whether a response has begun."""
        return self._conn.our_state is not h11.SEND_RESPONSE

    async def begin(self, content_type: str, data: bytes) -> None:
        """Begin a response of unknown length."""
        fields = {"content-type": content_type, "cache-control": "no-cache", **self.headers}
        await self._send(_response(200, fields), h11.Data(data=data))

    async def send(self, data: bytes) -> None:
        """Send more of a response that was begun."""
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        """End a response that was begun."""
        await self._send(h11.EndOfMessage())

    async def drop(self) -> None:
        """Break the connection; the handler is cancelled here."""
        self._scope.cancel()
        await trio.lowlevel.checkpoint()

    async def _send(self, *events: _Sendable) -> None:
        data = b"".join(self._conn.send(event) or b"" for event in events)
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await self.drop()


Handler: TypeAlias = "Callable[[HttpRequest, Exchange], Awaitable[None]]"
"""Answers one request; must end its response, or drop the connection."""


async def serve_http(stream: trio.abc.Stream, handler: Handler) -> None:
    """Answer the requests of one connection, one after the other, and close it.

    Args:
      stream: The connection, the server's end of it; closed when this returns or is cancelled.
      handler: Answers a request.

    Cancellation:
      A checkpoint.  If cancelled, the connection breaks where it is.
    """
    conn = h11.Connection(h11.SERVER)
    async with stream:
        await trio.lowlevel.checkpoint()
        try:
            while (request := await _receive_request(conn, stream)) is not None:
                await _answer(request, handler, conn, stream)
                # Not so if the client is gone, or one of the two said that it closes.
                if (conn.our_state, conn.their_state) != (h11.DONE, h11.DONE):
                    return
                conn.start_next_cycle()
        except _Refused as refused:
            head = _response(refused.status, {"connection": "close", "content-length": "0"})
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await stream.send_all(conn.send(head) or b"")


class _Refused(Exception):
    """The client asked in a way that gets no handler; it is told the status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


async def _answer(
    request: HttpRequest, handler: Handler, conn: h11.Connection, stream: trio.abc.Stream
) -> None:
    async with trio.open_nursery() as nursery:
        exchange = Exchange(conn, stream, nursery.cancel_scope)
        nursery.start_soon(_watch, exchange, conn, stream)
        await handler(request, exchange)
        nursery.cancel_scope.cancel()


async def _watch(exchange: Exchange, conn: h11.Connection, stream: trio.abc.Stream) -> None:
    """End the exchange when the client hangs up."""
    data = await _receive(stream)
    if data:
        # An early next request.  What comes behind it waits in the kernel, and a client that hangs
        # up after it is noticed at the next write.
        conn.receive_data(data)
    else:
        await exchange.drop()


async def _receive_request(conn: h11.Connection, stream: trio.abc.Stream) -> HttpRequest | None:
    """Read one request, whole; None if the client hangs up before it."""
    head = await _next_event(conn, stream)
    if not isinstance(head, h11.Request):
        return None
    body = bytearray()
    while isinstance(event := await _next_event(conn, stream), h11.Data):
        body += event.data
        if len(body) > _MAX_BODY:
            raise _Refused(413)
    return _request(head, bytes(body))


async def _next_event(
    conn: h11.Connection, stream: trio.abc.Stream
) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
    while True:
        try:
            event = conn.next_event()
        except h11.RemoteProtocolError as error:
            raise _Refused(error.error_status_hint) from None
        if event is not h11.NEED_DATA:
            return event  # noqa: ASYNC910  What has come needs no wait.
        if conn.they_are_waiting_for_100_continue:
            go_on = conn.send(h11.InformationalResponse(status_code=100, headers=[]))
            await stream.send_all(go_on or b"")
        conn.receive_data(await _receive(stream))


async def _receive(stream: trio.abc.Stream) -> bytes:
    try:
        return bytes(await stream.receive_some(_READ_SIZE))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return b""  # noqa: ASYNC910  It raised at its own checkpoint.


def _request(head: h11.Request, body: bytes) -> HttpRequest:
    return HttpRequest(
        method=head.method.decode("ascii"),
        path=head.target.decode("ascii").partition("?")[0],
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )


def _response(status: int, headers: Mapping[str, str]) -> h11.Response:
    return h11.Response(status_code=status, headers=list(headers.items()))
