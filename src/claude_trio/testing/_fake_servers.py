"""The in-process MCP servers of the host: a fake CLI shakes hands with them, and calls their tools.

The messages are JSON-RPC inside of control requests; ids are counted per server.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final, final

import trio

from claude_trio._ndjson import list_or_empty, object_or_empty
from claude_trio.testing._fake_frames import Speaker
from claude_trio.testing._fake_launch import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from claude_trio.testing._fake_asks import Answer, Asks, Question

__all__ = ["Server", "Servers", "ToolGone"]

_PREFIX: Final = "mcp__"
_PROTOCOL: Final = "2025-11-25"
# The real one tries twice, and its first turn waits so long.
_HANDSHAKE: Final = 30.0
_TRIES: Final = 2
_NOBODY: Final = Speaker()


@final
class ToolGone(Exception):
    """A call of an in-process tool has failed; the text is what the model is told."""


@final
class Server:
    """One server."""

    def __init__(self, asks: Asks, name: str) -> None:
        self.name, self._asks = name, asks
        self._numbers = itertools.count()
        self.status = "pending"
        self.settled = trio.Event()
        """Set when it is known whether it works."""
        self.info: Mapping[str, object] = {}
        self.tools: dict[str, Mapping[str, object]] = {}
        self.calls: set[int] = set()
        """The JSON-RPC ids of the calls that run."""
        self._introduced: Question | None = None

    def introduce(self) -> None:
        """Say the first word."""
        self._introduced = self._ask("initialize", next(self._numbers), params=_introduction())

    async def shake_hands(self, tries: int = _TRIES) -> None:
        """Go on from the first word, as often as it takes, and ask for the tools."""
        for _ in range(tries):
            with trio.move_on_after(_HANDSHAKE):
                if self._introduced is None:
                    self.introduce()
                await self._finish_handshake()
            if self.status == "connected":
                break
            self._introduced, self.status = None, "failed"
        self.settled.set()

    async def _finish_handshake(self) -> None:
        if self._introduced is not None:
            answer = await self._introduced.answer()
            self.info = object_or_empty(_result(answer).get("serverInfo"))
        # A notification wants an answer too, of whatever kind, and the next message waits for it.
        await self._ask("notifications/initialized").answer()
        await self.list_tools()
        self.status = "connected"

    async def list_tools(self) -> None:
        """Ask for the tools."""
        listed = _result(await self._request("tools/list", next(self._numbers))).get("tools")
        self.tools = {
            str(tool.get("name")): tool for tool in map(object_or_empty, list_or_empty(listed))
        }

    async def call(
        self, speaker: Speaker, tool: str, use: Mapping[str, object], call_id: str
    ) -> object:
        """Call a tool; return what it gives, as blocks or as text.

        Raises:
          ToolGone: if it fails.
        """
        number = next(self._numbers)
        meta = {"claudecode/toolUseId": call_id, "progressToken": number}
        params = {"name": tool, "arguments": use, "_meta": meta}
        self.calls.add(number)
        try:
            answer = await self._request("tools/call", number, speaker, params=params)
        finally:
            self.calls.discard(number)
        if answer.error is None and not answer.closed and "mcp_response" not in answer.response:
            # The real one waits on, for an answer in the right shape, and does not even exit.
            await trio.sleep_forever()
        return _given(answer)

    def cancel(self) -> None:
        """Tell the server that the calls that run are not wanted any more."""
        for number in sorted(self.calls):
            params = {"requestId": number, "reason": "The turn was interrupted"}
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._asks.mention(subtype="mcp_message", server_name=self.name, message=message)

    def describe(self) -> dict[str, object]:
        """Say how it is, as ``mcp_status`` does."""
        tools = [{"name": name, "annotations": _hints(tool)} for name, tool in self.tools.items()]
        known = {"serverInfo": self.info, "tools": tools} if self.status == "connected" else {}
        told = {"name": self.name, "status": self.status, "transport": "sdk", "scope": "dynamic"}
        return {**told, "source": "sdk", **known}

    async def _request(
        self, method: str, number: int, speaker: Speaker = _NOBODY, **more: object
    ) -> Answer:
        message = {"method": method, **more, "jsonrpc": "2.0", "id": number}
        with self._asks.asking(
            speaker, subtype="mcp_message", server_name=self.name, message=message
        ) as question:
            return await question.answer()

    def _ask(self, method: str, number: int | None = None, **more: object) -> Question:
        message = {"method": method, **more, "jsonrpc": "2.0"}
        message |= {} if number is None else {"id": number}
        return self._asks.ask(
            _NOBODY, subtype="mcp_message", server_name=self.name, message=message
        )


@final
class Servers:
    """All servers, by name."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks
        self._servers: dict[str, Server] = {}

    def __iter__(self) -> Iterator[Server]:
        return iter(self._servers.values())

    def add(self, names: Iterable[str]) -> list[Server]:
        """Add servers, and return those that are new."""
        new = {name: Server(self._asks, name) for name in names if name not in self._servers}
        self._servers |= new
        return list(new.values())

    def remove(self, names: Iterable[str]) -> None:
        """Forget servers."""
        for name in names:
            self._servers.pop(name, None)

    def get(self, name: str) -> Server | None:
        """Find a server."""
        return self._servers.get(name)

    @property
    def tools(self) -> list[str]:
        """The names of all tools, as the model knows them."""
        return [f"{_PREFIX}{each.name}__{tool}" for each in self for tool in each.tools]

    def find(self, tool: str) -> tuple[Server, str] | None:
        """Find the server of a tool that the model knows by this name."""
        for server in self:
            own = tool.removeprefix(f"{_PREFIX}{server.name}__")
            if own != tool and own in server.tools:
                return server, own
        return None

    def reads_only(self, tool: str) -> bool:
        """Whether a tool says that it changes nothing."""
        found = self.find(tool)
        if found is None:
            return False
        server, name = found
        return object_or_empty(server.tools[name].get("annotations")).get("readOnlyHint") is True


def _introduction() -> dict[str, object]:
    client = {"name": "claude-code", "version": VERSION}
    return {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}


def _hints(tool: Mapping[str, object]) -> dict[str, object]:
    hints = object_or_empty(tool.get("annotations"))
    known = {"readOnlyHint": "readOnly", "destructiveHint": "destructive"}
    return {short: hints[name] for name, short in known.items() if name in hints}


def _result(answer: Answer) -> Mapping[str, object]:
    response = object_or_empty(answer.response.get("mcp_response"))
    return object_or_empty(response.get("result"))


def _given(answer: Answer) -> object:
    if answer.closed:
        raise ToolGone("The tool call was interrupted before a result came")
    if answer.error is not None:
        raise ToolGone(answer.error)
    error = object_or_empty(answer.response.get("mcp_response")).get("error")
    if error is not None:
        raise ToolGone(str(object_or_empty(error).get("message", "the tool failed")))
    result = _result(answer)
    blocks = list_or_empty(result.get("content"))
    if result.get("isError") is True:
        raise ToolGone("\n".join(str(object_or_empty(block).get("text")) for block in blocks))
    if (structured := result.get("structuredContent")) is not None:
        # It takes the place of the text.
        return json.dumps(structured, separators=(",", ":"))
    return blocks
