"""Sessions on the real CLI, offline: what the core promises, seen on the process itself."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import pytest
import trio

from claude_trio import (
    Allow,
    Deny,
    ExitState,
    LaunchFailed,
    Outcome,
    PermissionRequest,
    ProcessExited,
    Session,
    SessionClosed,
    SessionOptions,
    TurnFailed,
    open_session,
)
from claude_trio.messages import TaskNotification
from claude_trio.permissions import allow_all, deny_all
from claude_trio.testing import Reply, call_tool, fail, hang, open_messages_api, say
from tests.process.leaks import assert_nothing_left
from tests.real_cli import real_cli

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from claude_trio import PermissionHandler
    from claude_trio.testing import ApiRequest, MessagesApi

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

SECONDS: Final = 60
SLOW: Final = say("word " * 200, chunks=200, delay=0.05)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with assert_nothing_left():
        yield


@asynccontextmanager
async def real_session(
    script: Sequence[Reply] | Callable[[ApiRequest], Reply],
    *,
    cwd: Path,
    agents: dict[str, Sequence[Reply]] | None = None,
    on_permission: PermissionHandler = deny_all,
    version: str = "2.1.332",
    **options: object,
) -> AsyncIterator[tuple[Session, MessagesApi]]:
    with trio.fail_after(SECONDS):
        async with open_messages_api(script, agents=agents or {}) as api:
            chosen = SessionOptions(
                command=[str(real_cli(version))],
                cwd=cwd,
                env=api.environment(),
                **options,  # type: ignore[arg-type]
            )
            async with open_session(None, chosen, on_permission=on_permission) as session:
                yield session, api
    assert session.exit_status.group_gone


@pytest.mark.parametrize("version", ["2.1.332", "2.1.197"])
async def test_three_turns_each_get_their_own_answer(tmp_path: Path, version: str) -> None:
    script = [say("one", chunks=2), say("two"), say("three")]
    async with real_session(script, cwd=tmp_path, version=version) as (session, _):
        started = session.session_id
        async with session.turn("first") as turn:
            assert "".join([text async for text in turn.text]) == "one"
        assert [(await session.prompt("more")).text for _ in range(2)] == ["two", "three"]
        assert session.session_id == started
        await session.wait_idle()
    assert session.exit_status.state is ExitState.COMPLETED
    assert session.exit_status.returncode == 0


async def test_a_permission_decides_what_reaches_the_disk(tmp_path: Path) -> None:
    async def guard(request: PermissionRequest) -> Allow | Deny:
        path = str(request.input["file_path"])
        if path.endswith("changed.txt"):
            return Allow(updated_input={**request.input, "content": "as changed"})
        return Allow() if path.endswith("allowed.txt") else Deny("not that one")

    def write(name: str) -> Reply:
        return call_tool("Write", {"file_path": str(tmp_path / name), "content": "as asked"})

    names = ["allowed.txt", "denied.txt", "changed.txt"]
    script = [reply for name in names for reply in (write(name), say(f"{name} is done"))]
    async with real_session(script, cwd=tmp_path, on_permission=guard) as (session, _):
        results = [await session.prompt(f"write {name}") for name in names]
    assert [len(result.permission_denials) for result in results] == [0, 1, 0]
    assert {path.name: path.read_text() for path in tmp_path.glob("*.txt")} == {
        "allowed.txt": "as asked",
        "changed.txt": "as changed",
    }


@pytest.mark.parametrize("after", [0, 0.02, 0.1, 0.3])
async def test_a_cancelled_prompt_does_not_hold_its_caller_and_never_answers_the_next(
    tmp_path: Path, after: float
) -> None:
    def answer(request: ApiRequest) -> Reply:
        return SLOW if "slow" in request.last_user_text else say("mine")

    async with real_session(answer, cwd=tmp_path) as (session, _):
        for _ in range(2):
            started = trio.current_time()
            with trio.move_on_after(after):
                await session.prompt("slow")
            assert trio.current_time() - started < after + 0.5
            assert (await session.prompt("this")).text == "mine"
            await session.wait_idle()


async def test_an_interrupted_turn_says_so_and_the_session_lives(tmp_path: Path) -> None:
    async with real_session([SLOW, say("mine")], cwd=tmp_path) as (session, _):
        async with session.turn("slow") as turn:
            async for _ in turn.text:
                await turn.interrupt()
                break
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert (await session.prompt("this")).text == "mine"


async def test_a_background_agent_holds_its_turn_to_the_follow_up(tmp_path: Path) -> None:
    agent = {
        "description": "look",
        "prompt": "LOOK at it",
        "subagent_type": "general-purpose",
        "run_in_background": True,
    }
    touch = {"command": "sleep 0.5; touch agent.txt", "description": "touch"}
    async with real_session(
        [call_tool("Agent", agent), say("it has begun"), say("it is done")],
        agents={"LOOK": [call_tool("Bash", touch), say("the report")]},
        cwd=tmp_path,
        on_permission=allow_all,
    ) as (session, _):
        async with session.turn("go") as turn:
            messages = [message async for message in turn]
        assert [result.text for result in turn.results] == ["it has begun", "it is done"]
        assert any(isinstance(message, TaskNotification) for message in messages)
        assert (tmp_path / "agent.txt").exists()
        await session.wait_idle()


async def test_an_interrupt_ends_a_turn_that_only_an_agent_holds(tmp_path: Path) -> None:
    agent = {
        "description": "look",
        "prompt": "LOOK at it",
        "subagent_type": "general-purpose",
        "run_in_background": True,
    }
    async with real_session(
        [call_tool("Agent", agent), say("it has begun"), say("mine")],
        agents={"LOOK": [hang()]},
        cwd=tmp_path,
    ) as (session, _):
        async with session.turn("go") as turn:
            async for _ in turn:
                if turn.results:
                    break
            assert (await session.interrupt()).sent
        assert (await session.prompt("this")).text == "mine"


@pytest.mark.parametrize(
    "command", ["sleep 600 & sleep 600", "nohup sleep 600 >/dev/null 2>&1 & sleep 600"]
)
async def test_closing_in_mid_turn_leaves_no_process_of_a_tool(
    tmp_path: Path, command: str
) -> None:
    ran = trio.Event()

    async def allow(_request: PermissionRequest) -> Allow:
        ran.set()
        return Allow()

    bash = call_tool("Bash", {"command": f"touch begun; {command}", "description": "wait"})
    with pytest.raises(SessionClosed):
        async with real_session([bash], cwd=tmp_path, on_permission=allow) as (session, _):
            async with session.turn("go"):
                await ran.wait()
                while not (tmp_path / "begun").exists():
                    await trio.sleep(0.01)
                await session.aclose()


async def test_a_killed_cli_is_an_event_and_leaves_no_tool_running(tmp_path: Path) -> None:
    bash = call_tool("Bash", {"command": "touch begun; sleep 600", "description": "wait"})
    async with real_session([bash], cwd=tmp_path, on_permission=allow_all) as (session, _):
        pid = session.server_info["pid"]
        assert isinstance(pid, int)
        with pytest.raises(ProcessExited) as caught:
            async with session.turn("go"):
                while not (tmp_path / "begun").exists():
                    await trio.sleep(0.01)
                os.kill(pid, signal.SIGKILL)
                await session.wait_exit()
        assert caught.value.signal == signal.SIGKILL
        with pytest.raises(SessionClosed) as later:
            await session.prompt("again")
        assert isinstance(later.value.__cause__, ProcessExited)


async def test_a_failed_api_is_a_failed_turn_and_not_a_crash(tmp_path: Path) -> None:
    script = [fail(529, always=True), say("fine")]
    async with real_session(script, cwd=tmp_path) as (session, _):
        with pytest.raises(TurnFailed) as caught:
            await session.prompt("go")
        assert caught.value.result is not None
        assert caught.value.result.api_error_status == 529
        assert (await session.prompt("again")).text == "fine"
    assert session.exit_status.state is ExitState.COMPLETED


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resume": "11111111-2222-4333-8444-555555555555"}, "No conversation found"),
        ({"extra_args": {"no-such-flag": None}}, "unknown option"),
        ({"mcp_config": "/no/such/file.json"}, "file"),
    ],
)
async def test_a_cli_that_does_not_start_fails_in_its_own_words(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    started = trio.current_time()
    with pytest.raises(LaunchFailed, match=words) as caught:
        async with real_session([], cwd=tmp_path, **options):  # type: ignore[arg-type]
            pytest.fail("it must not open")
    assert caught.value.returncode == 1
    assert trio.current_time() - started < 15


async def test_long_options_reach_the_cli(tmp_path: Path) -> None:
    long = "be brief. " * 30_000
    async with real_session([say("ok")], cwd=tmp_path, system_prompt=long) as (session, api):
        await session.prompt("go")
    assert long.strip() in api.requests[0].system
