"""How the tests open a session on the real CLI, offline, and what they let its model do."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import trio

from claude_trio import Session, SessionOptions, Timeouts, open_session, spawn
from claude_trio.permissions import deny_all
from claude_trio.testing import Reply, assert_no_leaks, call_tool, open_messages_api, say
from tests.real_cli import DEFAULT_VERSION, real_cli

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from claude_trio import Launcher, PermissionHandler
    from claude_trio.testing import ApiRequest, MessagesApi

__all__ = [
    "NEW",
    "OLD",
    "PATIENT",
    "SLOW",
    "background_agent",
    "background_bash",
    "bash",
    "cli_options",
    "cli_pid",
    "real_api",
    "real_session",
    "until_exists",
    "within",
    "write",
]

NEW: Final = DEFAULT_VERSION
OLD: Final = "2.1.197"
SECONDS: Final = 60
# A text that takes ten seconds: whoever sees it end has waited for it.
SLOW: Final = say("word " * 200, chunks=200, delay=0.05)
# With these a test fails rather than being rescued by a deadline of the library.
PATIENT: Final = Timeouts()


@contextlib.asynccontextmanager
async def real_api(
    script: Sequence[Reply] | Callable[[ApiRequest], Reply],
    *,
    agents: Mapping[str, Sequence[Reply]] | None = None,
) -> AsyncIterator[MessagesApi]:
    """Serve a model for a bounded time, and see that nothing is left in the end."""
    with trio.fail_after(SECONDS), assert_no_leaks():
        async with open_messages_api(script, agents=agents or {}) as api:
            yield api


def cli_options(
    api: MessagesApi, cwd: Path, *, version: str = NEW, **options: object
) -> SessionOptions:
    return SessionOptions(
        **{  # type: ignore[arg-type]
            "command": [str(real_cli(version))],
            "cwd": cwd,
            "env": api.environment(),
            **options,
        }
    )


@contextlib.asynccontextmanager
async def real_session(
    script: Sequence[Reply] | Callable[[ApiRequest], Reply],
    *,
    cwd: Path,
    agents: Mapping[str, Sequence[Reply]] | None = None,
    on_permission: PermissionHandler = deny_all,
    timeouts: Timeouts = PATIENT,
    launch: Launcher = spawn,
    version: str = NEW,
    **options: object,
) -> AsyncIterator[tuple[Session, MessagesApi]]:
    async with real_api(script, agents=agents) as api:
        async with open_session(
            None,
            cli_options(api, cwd, version=version, **options),
            on_permission=on_permission,
            timeouts=timeouts,
            launch=launch,
        ) as session:
            yield session, api
        assert session.exit_status.group_gone


def bash(command: str, *, background: bool = False) -> Reply:
    more = {"run_in_background": True} if background else {}
    return call_tool("Bash", {"command": command, "description": "work", **more})


def background_bash(command: str) -> Reply:
    return bash(command, background=True)


def background_agent(task: str = "LOOK at it") -> Reply:
    return call_tool(
        "Agent",
        {
            "description": "look",
            "prompt": task,
            "subagent_type": "general-purpose",
            "run_in_background": True,
        },
    )


def write(path: Path, content: str = "as asked") -> Reply:
    return call_tool("Write", {"file_path": str(path), "content": content})


def cli_pid(session: Session) -> int:
    pid = session.server_info["pid"]
    assert isinstance(pid, int)
    return pid


async def until_exists(path: Path) -> None:
    """Wait for a file: a process says in no other way that it has come so far."""
    while not path.exists():
        await trio.sleep(0.01)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer, and say how long; without ending it."""
    started = trio.current_time()
    yield
    taken = trio.current_time() - started
    assert taken < seconds, f"it took {taken:.2f} s, and should take less than {seconds:g} s"
