"""A client of the stand-in for the Messages API, and a server of it that has no socket."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs
import h11
import trio
from hypothesis import strategies as st
from trio.testing import memory_stream_pair

from claude_trio._scopes import background_tasks
from claude_trio.testing import ApiRequest, Reply, RequestKind, answer_side
from claude_trio.testing._api_requests import read_request
from claude_trio.testing._api_script import Director
from claude_trio.testing._api_server import ApiServer
from claude_trio.testing._replies import Text, Thinking, ToolCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from claude_trio.testing._api_script import Script

Json = dict[str, Any]
REMINDER: Final = "<system-reminder>\nBe brief.\n</system-reminder>"


def user(*texts: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def body(*texts: str, **fields: Any) -> Json:
    return {"model": "m", "stream": True, "messages": [user(*(texts or ("hi",)))], **fields}


def ask_about(fields: Json | None = None, headers: Mapping[str, str] | None = None) -> ApiRequest:
    return read_request(headers or {}, json.dumps(fields or body()).encode())


@attrs.define(kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    data: bytes = b""
    times: list[tuple[float, bytes]] = attrs.Factory(list)

    @property
    def json(self) -> Json:
        loaded: Json = json.loads(self.data)
        return loaded

    @property
    def events(self) -> list[Json]:
        blocks = self.data.decode().removesuffix("\n\n").split("\n\n")
        parsed = [block.split("\n", 1) for block in blocks]
        events = [json.loads(data.removeprefix("data: ")) for _, data in parsed]
        assert [name for name, _ in parsed] == [f"event: {event['type']}" for event in events]
        return events


class Client:
    """HTTP over one stream, as slowly or as quickly as it is told."""

    def __init__(self, stream: trio.abc.Stream, headers: Mapping[str, str] | None = None) -> None:
        self.stream = stream
        self.conn = h11.Connection(h11.CLIENT)
        self.headers = dict(headers or {})

    async def send(self, fields: Json | bytes | None, method: str, target: str) -> None:
        data = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        data = b"" if fields is None else data
        headers = {"host": "x", "content-length": str(len(data)), **self.headers}
        request = h11.Request(method=method, target=target, headers=list(headers.items()))
        for event in (request, h11.Data(data=data), h11.EndOfMessage()):
            await self.stream.send_all(self.conn.send(event) or b"")

    async def next_event(self) -> Any:
        while (event := self.conn.next_event()) is h11.NEED_DATA:
            self.conn.receive_data(bytes(await self.stream.receive_some()))
        return event

    async def receive(self) -> Answer:
        head = await self.next_event()
        headers = {name.decode(): value.decode() for name, value in head.headers}
        answer = Answer(status=head.status_code, headers=headers)
        while isinstance(event := await self.next_event(), h11.Data):
            answer.data += event.data
            answer.times.append((trio.current_time(), bytes(event.data)))
        if self.conn.our_state is self.conn.their_state is h11.DONE:
            self.conn.start_next_cycle()
        return answer

    async def ask(
        self,
        fields: Json | bytes | None = None,
        method: str = "POST",
        target: str = "/v1/messages?beta=true",
    ) -> Answer:
        await self.send(body() if fields is None and method == "POST" else fields, method, target)
        return await self.receive()


@attrs.define(eq=False)
class Bench:
    """A server with no socket: each connection is a pair of memory streams."""

    nursery: trio.Nursery
    server: ApiServer
    director: Director
    failed: trio.Event = attrs.Factory(trio.Event)
    open: int = 0

    def connect(self, **headers: str) -> Client:
        ours, theirs = memory_stream_pair()

        async def serve() -> None:
            self.open += 1
            await self.server.serve_stream(theirs)
            self.open -= 1

        self.nursery.start_soon(serve)
        return Client(ours, {name.replace("_", "-"): value for name, value in headers.items()})


@asynccontextmanager
async def serving(script: Script = (), **options: Any) -> AsyncIterator[Bench]:
    director = Director(script, **{"agents": {}, "side": answer_side, **options})
    failed = trio.Event()
    server = ApiServer(director, on_failure=failed.set)
    async with background_tasks() as nursery:
        yield Bench(nursery, server, director, failed)


def assemble(events: Sequence[Json]) -> Json:
    """Put a message together as a client of the API does."""
    message: Json = events[0]["message"]
    for event in events[1:]:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
            case "content_block_delta":
                _add_delta(message["content"][event["index"]], event["delta"])
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
    return message


def _add_delta(block: Json, delta: Json) -> None:
    match delta:
        case {"type": "input_json_delta", "partial_json": text}:
            assert block["input"] == {}
            block["input"] = json.loads(text)
        case {"type": "signature_delta", "signature": signature}:
            block["signature"] = signature
        case {"type": "text_delta" | "thinking_delta"}:
            block[block["type"]] += delta[block["type"]]


TEXTS: Final = st.builds(lambda text: Text(text=text), st.text(min_size=1))
THOUGHTS: Final = st.builds(lambda text: Thinking(text=text), st.text(min_size=1))
CALLS: Final = st.builds(
    lambda name, value: ToolCall(name=name, input={"value": value}),
    st.text(min_size=1),
    st.none() | st.integers() | st.text(),
)
REPLIES: Final = st.builds(
    lambda parts, reason: Reply(parts=tuple(parts), stop_reason=reason),
    st.lists(TEXTS | THOUGHTS | CALLS),
    st.none() | st.just("max_tokens"),
)


def wanting(*names: str) -> Json:
    schema = {"type": "object", "properties": {name: {} for name in names}}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


SIDES: Final[dict[str, tuple[RequestKind, Json]]] = {
    "title": (RequestKind.TITLE, body("<session>", **wanting("title"))),
    "hook": (RequestKind.HOOK, body("ok?", **wanting("ok", "reason"))),
    "probe": (RequestKind.MODEL_PROBE, body("Hi", max_tokens=1)),
    "compaction": (RequestKind.COMPACTION, body("CRITICAL: Respond with TEXT ONLY. Do not")),
    "suggestion": (RequestKind.SUGGESTION, body("[SUGGESTION MODE: Suggest what")),
    "question": (
        RequestKind.SIDE_QUESTION,
        body("<system-reminder>This is a side question from the user.</system-reminder>", "why?"),
    ),
    "agent": (RequestKind.AGENT_SUMMARY, body("Describe your most recent action in 3-5 words")),
    "recap": (RequestKind.RECAP, body("The user stepped away and is coming back. Recap in")),
    "tools": (
        RequestKind.TOOL_SUMMARY,
        body(system="Write a short summary label describing what these tool calls accomplished."),
    ),
    "hook_agent": (
        RequestKind.HOOK_AGENT,
        body(system="You are verifying a stop condition in Claude Code. Your task is"),
    ),
    "classifier": (
        RequestKind.CLASSIFIER,
        body(system="You are a security monitor for autonomous AI coding agents."),
    ),
    "search": (RequestKind.WEB_SEARCH, body(tools=[{"name": "web_search"}])),
    "page": (RequestKind.WEB_PAGE, body("\nWeb page content:\n---\nhello")),
}
