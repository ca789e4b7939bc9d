"""``claude-trio demo``: a whole conversation, offline and without a key."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Final

import trio

from claude_trio import (
    Allow,
    CLINotFound,
    Deny,
    PermissionRequest,
    Session,
    SessionOptions,
    open_session,
)
from claude_trio._cli._show import cost_line, show_turn
from claude_trio.testing import FakeClaude, Reply, call_tool, open_messages_api, say

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Mapping

__all__ = ["demo"]

_NOTE: Final = "note.txt"
_PROMPTS: Final = (
    "What can you do?",
    "Write a note into the file note.txt.",
    "Thank you. Is there anything left to do?",
)


def _script(folder: str) -> list[Reply]:
    write = {"file_path": f"{folder}/{_NOTE}", "content": "Hello from the demo.\n"}
    return [
        say("I read and write files, and run commands, if you let me.", chunks=8, delay=0.03),
        call_tool("Write", write, text="I will write it."),
        say("The note is written."),
        say("No, that was all. Nothing goes on when you close this session.", chunks=8, delay=0.03),
    ]


async def demo(arguments: argparse.Namespace) -> int:
    """Play three turns, with a tool that asks for permission."""
    async with _folder() as folder:
        if arguments.fake:
            return await _with_fake(folder)
        try:
            return await _with_cli(folder)
        except CLINotFound as exc:
            _say(f"{exc}\n")
            return await _with_fake(folder)


async def _with_cli(folder: str) -> int:
    async with open_messages_api(_script(folder)) as api:
        options = SessionOptions(cwd=folder, env=api.environment())
        async with open_session(None, options, on_permission=_guard) as session:
            version = session.server_info.get("claude_code_version", "an old version")
            _say(f"This is the real claude CLI, {version}; what the model says is scripted.\n")
            await _converse(session)
    return _report(session, wrote=await trio.Path(folder, _NOTE).exists())


async def _with_fake(folder: str) -> int:
    written: list[object] = []

    def run_tool(_name: str, arguments: Mapping[str, object]) -> str:
        written.append(arguments)
        return "File created successfully"

    fake = FakeClaude(_script(folder), run_tool=run_tool)
    async with open_session(
        None, SessionOptions(cwd=folder), on_permission=_guard, launch=fake.launch
    ) as session:
        _say("This is a fake in memory, and no process; what it says is scripted.\n")
        await _converse(session)
    return _report(session, wrote=bool(written))


async def _guard(request: PermissionRequest) -> Allow | Deny:
    await trio.lowlevel.checkpoint()
    allowed = request.tool_name == "Write"
    _say(f"  ? may it use {request.tool_name}: {'yes' if allowed else 'no'}")
    return Allow() if allowed else Deny("the demo allows only Write")


async def _converse(session: Session) -> None:
    for prompt in _PROMPTS:
        _say(f"you: {prompt}")
        async with session.turn(prompt) as turn:
            await show_turn(turn, indent="  ")
        if turn.result is not None:
            _say(f"  [{cost_line(turn.result)}]\n")


def _report(session: Session, *, wrote: bool) -> int:
    status = session.exit_status
    code = "" if status.returncode is None else f", exit code {status.returncode}"
    _say(f"The session has ended: {status.state.value}{code}.")
    _say(f"Left running: {'nothing' if status.group_gone else 'something, see the processes'}.")
    if not wrote:
        _say("The tool was allowed, and has not written its file.")
    return 0 if status.group_gone and wrote else 1


@contextlib.asynccontextmanager
async def _folder() -> AsyncIterator[str]:
    folder = await trio.to_thread.run_sync(tempfile.mkdtemp)
    try:
        yield folder
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(shutil.rmtree, folder, True)  # noqa: FBT003


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
