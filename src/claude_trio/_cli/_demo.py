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
    Turn,
    open_session,
)
from claude_trio._cli._show import cost_line, show_turn
from claude_trio.testing import (
    FakeClaude,
    Reply,
    call_tool,
    hang,
    open_messages_api,
    pause,
    say,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Mapping

__all__ = ["demo"]

_NOTE: Final = "note.txt"
_STORY: Final = "Once there was a turn that did not end, and it went on and on"
_ASKS: Final = (
    "What can you do?",
    "Write a note into the file note.txt.",
    "Thank you. Is there anything left to do?",
)
_TELL: Final = "Tell me a story that never ends."
_LOOK: Final = "Let an agent look around while you go on."


def _script(folder: str) -> list[Reply]:
    write = {"file_path": f"{folder}/{_NOTE}", "content": "Hello from the demo.\n"}
    agent = {
        "description": "look around",
        "prompt": "Look around, and report.",
        "subagent_type": "general-purpose",
        "run_in_background": True,
    }
    return [
        say("I read and write files, and run commands, if you let me.", chunks=8, delay=0.03),
        call_tool("Write", write, text="I will write it."),
        say("The note is written."),
        say("No, that was all.", chunks=4, delay=0.03),
        say(_STORY, chunks=6, delay=0.1) + hang(),
        call_tool("Agent", agent),
        say("An agent looks around."),
        say("The agent has found one note."),
    ]


_AGENTS: Final = {"Look around": [pause(0.5) + say("There is one note.")]}


async def demo(arguments: argparse.Namespace) -> int:
    """Play a conversation, with a tool that asks, an interrupt, and an agent in the background."""
    async with _folder() as folder:
        if arguments.fake:
            return await _with_fake(folder)
        try:
            return await _with_cli(folder)
        except CLINotFound as exc:
            _say(f"There is no claude CLI in the {len(exc.looked)} places where one may be.")
            return await _with_fake(folder)


async def _with_cli(folder: str) -> int:
    async with open_messages_api(_script(folder), agents=_AGENTS) as api:
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

    fake = FakeClaude(_script(folder), run_tool=run_tool, agents=_AGENTS)
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
    for ask in _ASKS:
        _say(f"you: {ask}")
        async with session.turn(ask) as turn:
            await show_turn(turn, indent="  ")
        _end(turn)
    _say(f"you: {_TELL}")
    async with session.turn(_TELL) as turn:
        await show_turn(turn, indent="  ", until=_STORY)
        await turn.interrupt()
    _say("  (interrupted)")
    _end(turn)
    _say(f"you: {_LOOK}")
    async with session.turn(_LOOK) as turn:
        await show_turn(turn, indent="  ")
    _say(f"  (The agent held the turn open: it has {len(turn.results)} results.)")
    _end(turn)


def _end(turn: Turn) -> None:
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
