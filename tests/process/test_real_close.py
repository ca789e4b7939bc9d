"""The end of a session on the real CLI: whatever it has started is gone."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from claude_trio import ExitCause, ExitState, SessionClosed, open_session
from claude_trio.permissions import allow_all
from claude_trio.testing import hang, say
from tests.process.alive import is_alive
from tests.process.programs import command
from tests.process.real import (
    NEW,
    OLD,
    SLOW,
    background_agent,
    background_bash,
    bash,
    cli_options,
    cli_pid,
    real_api,
    real_session,
    until_exists,
    within,
)

if TYPE_CHECKING:
    from claude_trio import Session

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

FOREGROUND = "sleep 600"
WITH_A_CHILD = "sleep 600 & sleep 600"
DAEMON = "nohup sleep 600 >/dev/null 2>&1 &"
FAR_DAEMON = "setsid nohup setsid sleep 600 >/dev/null 2>&1 &"
STUBBORN = "trap '' TERM; sleep 600 & wait"


@pytest.mark.parametrize(
    ("shell", "version"),
    [
        (WITH_A_CHILD, NEW),
        (f"{DAEMON} {FOREGROUND}", NEW),
        (f"{DAEMON} {FOREGROUND}", OLD),
        (f"{FAR_DAEMON} {FOREGROUND}", NEW),
        (STUBBORN, NEW),
    ],
)
async def test_closing_in_mid_turn_leaves_no_process_of_a_tool(
    tmp_path: Path, shell: str, version: str
) -> None:
    script = [bash(f"touch begun; {shell}")]
    async with real_session(script, cwd=tmp_path, on_permission=allow_all, version=version) as (
        session,
        _,
    ):
        with within(10), pytest.raises(SessionClosed):
            async with session.turn("go"):
                await until_exists(tmp_path / "begun")
                await session.aclose()
    assert session.exit_status.cause is ExitCause.CLOSED
    assert session.exit_status.state is ExitState.COMPLETED


@pytest.mark.parametrize(
    ("shell", "version"),
    [(FOREGROUND, NEW), (FOREGROUND, OLD), (STUBBORN, NEW)],
)
async def test_closing_with_a_background_command_leaves_no_process(
    tmp_path: Path, shell: str, version: str
) -> None:
    script = [background_bash(f"touch begun; {shell}"), say("it has begun")]
    with within(15):
        async with real_session(script, cwd=tmp_path, on_permission=allow_all, version=version) as (
            session,
            _,
        ):
            await session.prompt("go")
            await until_exists(tmp_path / "begun")


@pytest.mark.parametrize("daemon", [DAEMON, FAR_DAEMON])
async def test_closing_in_good_order_leaves_no_daemon(tmp_path: Path, daemon: str) -> None:
    script = [bash(f"{daemon} touch begun"), say("done")]
    with within(10):
        async with real_session(script, cwd=tmp_path, on_permission=allow_all) as (session, _):
            await session.prompt("go")
            await until_exists(tmp_path / "begun")
    assert session.exit_status.returncode == 0


async def test_a_daemon_may_be_kept_at_an_orderly_close(tmp_path: Path) -> None:
    start = "nohup sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 600' >/dev/null 2>&1 &"
    async with real_api([bash(start), say("done")]) as api:
        options = cli_options(api, tmp_path, keep_daemons=True)
        async with open_session(None, options, on_permission=allow_all) as session:
            await session.prompt("go")
            await until_exists(tmp_path / "pid")
        pid = int((tmp_path / "pid").read_text())
        assert session.exit_status.returncode == 0
        assert is_alive(pid)
        os.kill(pid, signal.SIGKILL)
        while is_alive(pid):
            await trio.sleep(0.01)


async def test_a_kept_daemon_does_not_outlive_a_cli_that_was_killed(tmp_path: Path) -> None:
    async with real_session(
        [bash(f"{DAEMON} touch begun"), say("done")],
        cwd=tmp_path,
        on_permission=allow_all,
        keep_daemons=True,
    ) as (session, _):
        await session.prompt("go")
        await until_exists(tmp_path / "begun")
        os.kill(cli_pid(session), signal.SIGKILL)
        await session.wait_exit()


@pytest.mark.parametrize(("prompted", "apart"), [(False, ("apart",)), (True, ())])
async def test_closing_ends_an_mcp_server_that_hears_nothing(
    tmp_path: Path, prompted: bool, apart: tuple[str, ...]
) -> None:
    pid = tmp_path / "pid"
    program, *arguments = command("deaf_server", str(pid), *apart)
    with within(15):
        async with real_session(
            [say("done")],
            cwd=tmp_path,
            mcp_servers={"deaf": {"command": program, "args": arguments}},
        ) as (session, _):
            await until_exists(pid)
            if prompted:
                await session.prompt("go")
        assert not is_alive(int(pid.read_text()))


@pytest.mark.parametrize("later", [False, True])
async def test_closing_ends_an_mcp_server_behind_a_wrapper(tmp_path: Path, later: bool) -> None:
    pid = tmp_path / "pid"
    server = shlex.join(command("deaf_server", str(pid), "apart"))
    servers = {"deaf": {"command": "sh", "args": ["-c", f"exec 3<&0; {server} <&3 & wait"]}}
    with within(15):
        async with real_session([], cwd=tmp_path, mcp_servers={} if later else servers) as (
            session,
            _,
        ):
            if later:
                await session.control("mcp_set_servers", servers=servers)
            await until_exists(pid)


async def test_closing_ends_a_server_of_the_users_own_behind_a_wrapper(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    server = shlex.join(command("deaf_server", str(pid), "apart"))
    named = {"deaf": {"command": "sh", "args": ["-c", f"exec 3<&0; {server} <&3 & wait"]}}
    async with real_api([]) as api:
        config = Path(api.environment()["CLAUDE_CONFIG_DIR"] or "", ".claude.json")
        config.parent.mkdir(exist_ok=True)
        config.write_text(json.dumps({"mcpServers": named}))
        with within(15):
            async with open_session(None, cli_options(api, tmp_path)):
                await until_exists(pid)


async def test_closing_ends_what_a_hook_has_left(tmp_path: Path) -> None:
    hook = {"type": "command", "command": f"{DAEMON} touch begun"}
    settings = {"hooks": {"SessionStart": [{"hooks": [hook]}]}}
    async with real_session([], cwd=tmp_path, settings=settings) as (session, _):
        await until_exists(tmp_path / "begun")
        assert session.alive


async def test_closing_ends_a_background_agent_and_what_it_runs(tmp_path: Path) -> None:
    async with real_session(
        [background_agent(), say("it has begun")],
        agents={"LOOK": [bash(f"touch begun; {WITH_A_CHILD}"), hang()]},
        cwd=tmp_path,
        on_permission=allow_all,
    ) as (session, _):
        with within(10):
            await session.prompt("go", hold_open=False)
            await until_exists(tmp_path / "begun")
            await session.aclose()


async def test_leaving_the_session_in_mid_turn_closes_it(tmp_path: Path) -> None:
    async with real_api([SLOW]) as api:
        error = LookupError("a reason of its own")
        with within(5), pytest.raises(LookupError) as caught:
            async with open_session(None, cli_options(api, tmp_path)) as session:
                async with session.turn("slow") as turn:
                    async for _text in turn.text:
                        raise error
        assert caught.value is error
        assert session.exit_status.cause is ExitCause.CLOSED
        assert session.exit_status.group_gone


async def test_a_cancelled_close_closes_all_the_same(tmp_path: Path) -> None:
    async with real_session(
        [bash(f"touch begun; {WITH_A_CHILD}")], cwd=tmp_path, on_permission=allow_all
    ) as (session, _):
        with pytest.raises(SessionClosed):
            async with session.turn("go"):
                await until_exists(tmp_path / "begun")
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await session.aclose()
                assert session.exit_status.group_gone


async def open_and_close(session: contextlib.AbstractAsyncContextManager[Session]) -> None:
    async with session:
        pass


async def test_opening_and_closing_again_and_again_leaves_everything_as_it_was(
    tmp_path: Path,
) -> None:
    async with real_api([]) as api:
        options = cli_options(api, tmp_path)

        def counts() -> tuple[int, int, int]:
            statistics = trio.lowlevel.current_statistics()
            return (
                len(list(Path("/proc/self/fd").iterdir())),
                statistics.tasks_living,
                threading.active_count(),
            )

        async def cycle(pairs: int) -> None:
            # Two at a time, as many as there are processors in the smallest machine.
            for _ in range(pairs):
                async with trio.open_nursery() as nursery:
                    for _ in range(2):
                        nursery.start_soon(open_and_close, open_session(None, options))

        await cycle(1)
        before = counts()
        await cycle(14)
        after = counts()
        assert after[:2] == before[:2]
        # Idle threads of Trio end after a while.
        assert after[2] <= before[2]
