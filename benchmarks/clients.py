"""The systems that `session.py` compares, each driven by its public API with its defaults."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING, TypeAlias, cast, final

import attrs
import msgspec
import trio

import claude_trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from session import Client

COMMAND = os.environ.get("STAND_IN", "stand_in")


_Frame: TypeAlias = dict[str, object]


@final
@attrs.define(eq=False)
class Floor:
    """The least that Trio can do: one task that reads, splits, decodes to dicts and looks on.

    No types, no buffer, no other task, and nothing is noticed that goes wrong.
    """

    _process: trio.Process | None = None
    _rest: bytes = b""

    async def open(self) -> None:
        self._process = await trio.lowlevel.open_process(
            [COMMAND, "-p"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        await self._send(
            {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}
        )
        await anext(self._read())

    async def turn(self, prompt: str) -> int:
        message = {"role": "user", "content": prompt}
        await self._send({"type": "user", "session_id": "", "message": message})
        count = 0
        async for frame in self._read():
            if frame["type"] == "control_request":
                request = cast("_Frame", frame["request"])
                decision = {"behavior": "allow", "updatedInput": request["input"]}
                response = {"subtype": "success", "request_id": frame["request_id"]}
                await self._send(
                    {"type": "control_response", "response": {**response, "response": decision}}
                )
                continue
            count += 1
            if frame["type"] == "result":
                break
        return count

    async def close(self) -> None:
        process, self._process, self._rest = self._running(), None, b""
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                await pipe.aclose()
        await process.wait()

    def _running(self) -> trio.Process:
        if self._process is None:
            raise RuntimeError("it is not open")
        return self._process

    async def _send(self, frame: dict[str, object]) -> None:
        stdin = self._running().stdin
        if stdin is not None:
            await stdin.send_all(msgspec.json.encode(frame) + b"\n")

    async def _read(self) -> AsyncIterator[_Frame]:
        stdout = self._running().stdout
        while stdout is not None and (data := await stdout.receive_some(65536)):
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                yield msgspec.json.decode(line)


@final
@attrs.define(eq=False)
class Ours:
    """This library."""

    _stack: contextlib.AsyncExitStack = attrs.field(factory=contextlib.AsyncExitStack)
    _session: claude_trio.Session | None = None

    async def open(self) -> None:
        self._session = await self._stack.enter_async_context(
            claude_trio.open_session(
                options=claude_trio.SessionOptions(
                    command=(COMMAND,), include_partial_messages=True
                ),
                on_permission=self._allow,
            )
        )

    async def turn(self, prompt: str) -> int:
        if self._session is None:
            raise RuntimeError("it is not open")
        count = 0
        async with self._session.turn(prompt) as turn:
            async for _ in turn:
                count += 1
        return count

    async def close(self) -> None:
        await self._stack.aclose()

    @staticmethod
    async def _allow(_: claude_trio.PermissionRequest) -> claude_trio.Allow:
        return claude_trio.Allow()


def client(system: str) -> Client:
    """Make the client of a system."""
    if system == "sdk":
        from sdk_client import Sdk  # noqa: PLC0415  It may not be installed.

        return Sdk(COMMAND)
    return Ours() if system == "ours" else Floor()
