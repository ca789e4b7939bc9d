"""The Messages API over a connection: requests in, scripted replies out, and a list of both ends.

A reply is carried out part by part; whether it is streamed or sent whole is the request's choice.
"""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Protocol, final

import trio

from claude_trio._scopes import split_cancelled
from claude_trio.testing._api_events import (
    Ids,
    MessageStream,
    error_body,
    error_event,
    error_headers,
    whole_message,
)
from claude_trio.testing._api_requests import read_request
from claude_trio.testing._http import serve_http
from claude_trio.testing._replies import Cut, Failure, Hold, Pause, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_trio.testing._api_requests import ApiRequest
    from claude_trio.testing._api_script import Director
    from claude_trio.testing._http import Exchange, HttpRequest
    from claude_trio.testing._replies import Text, Thinking, ToolCall

__all__ = ["ApiServer"]


@final
class ApiServer:
    """Answer requests by a director's replies, over any number of connections.

    What the script raises is put into ``failures`` and told to ``on_failure``, and the connection
    on which it was asked breaks.

    Attributes:
      requests: The requests for messages, in the order in which they came.
      failures: What the script raised.
    """

    def __init__(self, director: Director, *, on_failure: Callable[[], object]) -> None:
        self._director = director
        self._on_failure = on_failure
        self._ids = Ids()
        self._arrivals = trio.lowlevel.ParkingLot()
        self.requests: list[ApiRequest] = []
        self.failures: list[Exception] = []

    async def wait_requests(self, count: int) -> None:
        """Wait until ``count`` requests for messages have come in all."""
        await trio.lowlevel.checkpoint()
        while len(self.requests) < count:
            await self._arrivals.park()

    async def serve_stream(self, stream: trio.abc.Stream) -> None:
        """Serve one connection until either side closes it."""
        await serve_http(stream, self._handle)

    async def _handle(self, request: HttpRequest, exchange: Exchange) -> None:
        asked = (request.method, request.path)
        exchange.headers["request-id"] = self._ids.make("req")
        if request.method == "HEAD":  # The CLI looks whether anybody is there.
            await exchange.respond(200)
        elif asked == ("POST", "/v1/messages"):
            await self._messages(request, exchange)
        elif asked == ("POST", "/v1/messages/count_tokens"):
            # Four bytes a token is near enough for a context meter.
            count = {"input_tokens": len(request.body) // 4}
            await exchange.respond(200, json.dumps(count).encode())
        else:
            body = error_body("not_found_error", f"{' '.join(asked)} is not served here")
            await exchange.respond(404, body)

    async def _messages(self, request: HttpRequest, exchange: Exchange) -> None:
        try:
            asked = read_request(request.headers, request.body)
        except ValueError as error:
            await exchange.respond(400, error_body("invalid_request_error", str(error)))
            return
        self.requests.append(asked)
        self._arrivals.unpark_all()
        reply = await self._choose(asked)
        if reply is None:
            await exchange.drop()
        else:
            self._director.expect_agents(reply)
            await _perform(asked, reply, self._ids, exchange)

    async def _choose(self, asked: ApiRequest) -> Reply | None:
        """Ask the script; None if it raised."""
        try:
            reply = self._director.choose(asked)
            if inspect.isawaitable(reply):
                reply = await reply
            else:
                await trio.lowlevel.checkpoint()
            if not isinstance(reply, Reply):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"the script gave {reply!r}, which is no Reply")  # noqa: TRY301
        except BaseException as raised:  # noqa: ASYNC103  The cancellation in it is raised again.
            cancelled, failure = split_cancelled(raised)
            if not isinstance(failure, Exception | None):
                raise
            if failure is not None:
                self.failures.append(failure)
                self._on_failure()
            if cancelled is not None:
                raise cancelled from None
            return None  # noqa: ASYNC910  The script raised before it waited.
        return reply


async def _perform(asked: ApiRequest, reply: Reply, ids: Ids, exchange: Exchange) -> None:
    answer: _Answer
    if asked.stream:
        answer = _StreamedAnswer(MessageStream(asked.model, reply, ids), exchange)
    else:
        answer = _WholeAnswer(whole_message(asked.model, reply, ids), exchange)
    for part in reply.parts:
        match part:
            case Pause(seconds=seconds):
                await trio.sleep(seconds)
            case Hold(event=event):
                await event.wait()
            case Cut():
                await exchange.drop()
            case Failure():
                await answer.fail(part)
                return
            case _:
                await answer.add(part)
    await answer.end()


class _Answer(Protocol):
    async def add(self, part: Text | Thinking | ToolCall, /) -> None: ...

    async def fail(self, failure: Failure, /) -> None: ...

    async def end(self) -> None: ...


@final
class _StreamedAnswer:
    """Headers go out with the first content, so that an early failure still has its status."""

    def __init__(self, message: MessageStream, exchange: Exchange) -> None:
        self._message = message
        self._exchange = exchange

    async def add(self, part: Text | Thinking | ToolCall) -> None:
        await self._send(self._message.add(part))

    async def fail(self, failure: Failure) -> None:
        if self._exchange.begun:
            await self._exchange.send(error_event(failure))
            await self._exchange.end()
        else:
            await _respond_error(self._exchange, failure)

    async def end(self) -> None:
        await self._send(self._message.end())
        await self._exchange.end()

    async def _send(self, events: bytes) -> None:
        if self._exchange.begun:
            await self._exchange.send(events)
        else:
            await self._exchange.begin("text/event-stream", self._message.begin() + events)


@final
class _WholeAnswer:
    """Everything goes out at the end, or an error instead of it."""

    def __init__(self, message: bytes, exchange: Exchange) -> None:
        self._message = message
        self._exchange = exchange

    async def add(self, part: Text | Thinking | ToolCall) -> None:  # noqa: ARG002
        """Do nothing: the message holds it already."""
        await trio.lowlevel.checkpoint()

    async def fail(self, failure: Failure) -> None:
        await _respond_error(self._exchange, failure)

    async def end(self) -> None:
        await self._exchange.respond(200, self._message)


async def _respond_error(exchange: Exchange, failure: Failure) -> None:
    body = error_body(failure.type, failure.message)
    await exchange.respond(failure.status, body, error_headers(failure))
