"""Small programs that stand in for a CLI, and how tests start them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from claude_trio import spawn
from claude_trio._process import ProcessTransport

if TYPE_CHECKING:
    import trio

__all__ = ["command", "read_all", "read_line", "read_pid", "start"]


def command(program: str, *words: str) -> list[str]:
    """Make the command line of a program of this directory."""
    # Isolated and without `site`, which halves the time that Python needs to start.
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name(f"{program}.py")), *words]


async def start(
    nursery: trio.Nursery, program: str, *words: str, **variables: str
) -> ProcessTransport:
    return await spawn(command(program, *words), {**os.environ, **variables}, None, nursery)


async def read_line(transport: ProcessTransport) -> str:
    """Read a line, which must come alone."""
    data = b""
    while not data.endswith(b"\n"):
        data += await transport.receive()
    return data.decode().removesuffix("\n")


async def read_pid(transport: ProcessTransport) -> int:
    return int(await read_line(transport))


async def read_all(transport: ProcessTransport) -> bytes:
    parts = []
    while data := await transport.receive():
        parts.append(data)
    return b"".join(parts)
