"""A real CLI that dies, and a program that dies with a session open: an event, and no remains."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import trio
import trio.testing

from claude_trio import (
    ExitCause,
    ExitState,
    LaunchFailed,
    ProcessExited,
    Session,
    SessionClosed,
    SessionState,
    Timeouts,
    open_session,
    spawn,
)
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
    until_exists,
    within,
)
from tests.process.real import real_session as _real_session
from tests.real_cli import real_cli

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_trio import ExitStatus, Transport
    from claude_trio.testing import ApiRequest, MessagesApi, Reply

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

# What is not told at once is told after one of these, or never.
LONG: Final = 600.0
ENDLESS: Final = Timeouts(
    initialize=LONG,
    control=LONG,
    write=LONG,
    grace=LONG,
    interrupt=LONG,
    settle=LONG,
    follow_up=LONG,
    eof=LONG,
    term=LONG,
    kill=LONG,
)
# So it may take its time on a machine that has much to do.
AT_ONCE: Final = 30.0

real_session = functools.partial(_real_session, timeouts=ENDLESS)


def kill(session: Session) -> None:
    os.kill(cli_pid(session), signal.SIGKILL)


async def check_closed(session: Session) -> None:
    """See that every later call says what ended the session."""
    assert session.state is SessionState.CLOSED
    for call in (
        functools.partial(session.prompt, "again"),
        functools.partial(session.set_model, None),
        session.interrupt,
        functools.partial(session.control, "mcp_status"),
    ):
        with pytest.raises(SessionClosed) as caught:
            await call()
        assert isinstance(caught.value.__cause__, ProcessExited)
        assert caught.value.__cause__.signal == signal.SIGKILL
    assert not session.answer_permission("none", await allow_all(None))  # type: ignore[arg-type]


def check_status(status: ExitStatus) -> None:
    assert status.state is ExitState.FAILED
    assert status.cause is ExitCause.KILLED
    assert (status.signal, status.returncode) == (signal.SIGKILL, -signal.SIGKILL)
    assert status.group_gone


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_kill_in_mid_turn_is_told_at_once(tmp_path: Path, version: str) -> None:
    async with real_session([SLOW], cwd=tmp_path, version=version, debug_to_stderr=True) as (
        session,
        _,
    ):
        with pytest.raises(ProcessExited) as caught:
            async with session.turn("slow") as turn:
                async for _text in turn.text:
                    break
                kill(session)
                with within(AT_ONCE):
                    async for _ in turn:
                        pass
        assert caught.value.signal == signal.SIGKILL
        assert "[DEBUG]" in caught.value.stderr_tail
        assert caught.value.last_frames[-1]["type"] in {"stream_event", "assistant"}
        await check_closed(session)
        check_status(await session.wait_exit())


async def test_a_kill_ends_a_prompt_and_everybody_hears_of_it(tmp_path: Path) -> None:
    heard: list[ExitStatus] = []
    failed: list[Exception] = []

    async with real_session([hang()], cwd=tmp_path) as (session, api):

        async def wait() -> None:
            heard.append(await session.wait_exit())

        async def prompt() -> None:
            with pytest.raises(ProcessExited) as caught:
                await session.prompt("go")
            failed.append(caught.value)

        async def wait_idle() -> None:
            with pytest.raises(ProcessExited) as caught:
                await session.wait_idle()
            failed.append(caught.value)

        async with session.subscribe() as events, trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(wait)
            nursery.start_soon(prompt)
            await api.wait_requests(1)
            nursery.start_soon(wait_idle)
            await trio.testing.wait_all_tasks_blocked()
            kill(session)
            with within(AT_ONCE):
                # The subscription ends as well, once everything was read.
                async for _ in events:
                    pass
        assert len(heard) == 10
        assert {id(status) for status in heard} == {id(await session.wait_exit())}
        check_status(session.exit_status)
        assert len({id(error) for error in failed}) == 2
        await check_closed(session)
    check_status(await session.wait_exit())


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_kill_between_turns_is_heard_and_explains_the_next(
    tmp_path: Path, version: str
) -> None:
    async with real_session([say("one")], cwd=tmp_path, version=version) as (session, _):
        await session.prompt("go")
        kill(session)
        with within(AT_ONCE):
            check_status(await session.wait_exit())
        await check_closed(session)


async def test_a_prompt_right_after_a_kill_is_no_riddle(tmp_path: Path) -> None:
    async with real_session([say("one"), hang()], cwd=tmp_path) as (session, _):
        await session.prompt("go")
        kill(session)
        with within(AT_ONCE), pytest.raises((ProcessExited, SessionClosed)) as caught:
            await session.prompt("again")
        error = caught.value
        cause = error if isinstance(error, ProcessExited) else error.__cause__
        assert isinstance(cause, ProcessExited)
        assert cause.signal == signal.SIGKILL


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_kill_during_initialize_is_a_failed_launch(tmp_path: Path, stopped: bool) -> None:
    pids: list[int] = []

    async def launch(
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> Transport:
        transport = await spawn(argv, env, cwd, nursery)
        pids.append(transport.pid)
        if stopped:
            # It lives, and does not come to answer.
            os.kill(transport.pid, signal.SIGSTOP)
            nursery.start_soon(kill_when_it_is_asked)
        else:
            os.kill(transport.pid, signal.SIGKILL)
        return transport

    async def kill_when_it_is_asked() -> None:
        await trio.testing.wait_all_tasks_blocked(0.05)
        os.kill(pids[0], signal.SIGKILL)

    async with real_api([]) as api:
        with within(AT_ONCE), pytest.raises(LaunchFailed, match="initialize") as caught:
            async with open_session(
                None, cli_options(api, tmp_path), launch=launch, timeouts=ENDLESS
            ):
                pytest.fail("it must not open")
        assert caught.value.signal == signal.SIGKILL
        assert not is_alive(pids[0])


@pytest.mark.parametrize(
    ("shell", "version"),
    [
        ("sleep 600 & sleep 600", NEW),
        ("sleep 600 & sleep 600", OLD),
        ("nohup setsid sleep 600 >/dev/null 2>&1 & sleep 600", NEW),
        ("trap '' TERM HUP; sleep 600 & while :; do wait; done", NEW),
    ],
)
async def test_a_killed_cli_leaves_no_command_running(
    tmp_path: Path, shell: str, version: str
) -> None:
    script = [bash(f"touch begun; {shell}")]
    async with real_session(script, cwd=tmp_path, on_permission=allow_all, version=version) as (
        session,
        _,
    ):
        with pytest.raises(ProcessExited) as caught:
            async with session.turn("go") as turn:
                await until_exists(tmp_path / "begun")
                kill(session)
                with within(AT_ONCE):
                    async for _ in turn:
                        pass
        assert caught.value.signal == signal.SIGKILL
        if "trap" in shell:
            # SIGTERM was to no avail, which takes a second to find out: nobody has waited for that.
            assert session.exit_status.group_gone is None
        with within(AT_ONCE):
            check_status(await session.wait_exit())


async def test_a_killed_cli_leaves_no_background_work(tmp_path: Path) -> None:
    script = [background_bash("touch shell; sleep 600") + background_agent(), say("begun")]
    async with real_session(
        script,
        agents={"LOOK": [bash("touch agent; sleep 600")]},
        cwd=tmp_path,
        on_permission=allow_all,
    ) as (session, _):
        await session.prompt("go", hold_open=False)
        await until_exists(tmp_path / "shell")
        await until_exists(tmp_path / "agent")
        kill(session)
        with within(AT_ONCE):
            check_status(await session.wait_exit())


@pytest.mark.parametrize("apart", [(), ("apart",)])
async def test_a_killed_cli_leaves_no_mcp_server_even_before_a_prompt(
    tmp_path: Path, apart: tuple[str, ...]
) -> None:
    pid = tmp_path / "pid"
    program, *arguments = command("deaf_server", str(pid), *apart)
    servers = {"deaf": {"command": program, "args": arguments}}
    async with real_session([], cwd=tmp_path, mcp_servers=servers) as (session, _):
        await until_exists(pid)
        kill(session)
        with within(AT_ONCE):
            check_status(await session.wait_exit())
        assert not is_alive(int(pid.read_text()))


async def test_a_killed_cli_takes_the_open_questions_along(tmp_path: Path) -> None:
    asked = trio.Event()
    ended = trio.Event()

    async def ponder(_request: object) -> None:
        asked.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with real_session(
        [bash("touch never")],
        cwd=tmp_path,
        on_permission=ponder,  # type: ignore[arg-type]
    ) as (session, _):
        with pytest.raises(ProcessExited):
            async with session.turn("go") as turn:
                await asked.wait()
                kill(session)
                with within(AT_ONCE):
                    async for _ in turn:
                        pass
        with trio.fail_after(AT_ONCE):
            await ended.wait()
            await session.wait_exit()
        assert not session.pending_permissions
    assert not (tmp_path / "never").exists()


async def test_one_session_dies_and_the_other_does_not_notice(tmp_path: Path) -> None:
    def answer(request: ApiRequest) -> Reply:
        return say(request.last_user_text, chunks=20, delay=0.02)

    async with real_api(answer) as api:
        options = cli_options(api, tmp_path)
        async with trio.open_nursery() as nursery:
            async with (
                open_session(nursery, options, timeouts=ENDLESS) as one,
                open_session(nursery, options, timeouts=ENDLESS) as two,
            ):
                async with two.turn("what two is asked") as turn:
                    with pytest.raises(ProcessExited):
                        async with one.turn("what one is asked") as doomed:
                            async for _text in doomed.text:
                                kill(one)
                    assert "".join([text async for text in turn.text]) == "what two is asked"
                assert (await two.prompt("more")).text == "more"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_cli_that_exits_in_mid_turn_ends_the_turn_whatever_its_code(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with real_session([hang()], cwd=tmp_path) as (session, api):
        with pytest.raises(ProcessExited) as caught:
            async with session.turn("go") as turn:
                await api.wait_requests(1)
                os.kill(cli_pid(session), number)
                with within(AT_ONCE):
                    async for _ in turn:
                        pass
        assert caught.value.returncode == {signal.SIGTERM: 143, signal.SIGINT: 0}[number]
        assert (await session.wait_exit()).cause is ExitCause.EXITED


def quick_or_slow(request: ApiRequest) -> Reply:
    return SLOW if request.last_user_text == "slow" else say("quick")


async def start_host(api: MessagesApi, cwd: Path, what: str) -> tuple[trio.Process, int]:
    """Start a program that holds a session, and wait until it has come to its point."""
    program = Path(__file__).parent / "programs" / "session_host.py"
    arguments = [str(real_cli()), str(cwd), json.dumps(api.environment()), what]
    host = await trio.lowlevel.open_process(
        [sys.executable, str(program), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert host.stdout is not None
    said = b""
    while not said.endswith(b"idle\n" if what == "idle" else b"\n"):
        data = await host.stdout.receive_some()
        assert data, "the program has ended before it was ready"
        said += data
    if what != "idle":
        await api.wait_requests(1)
    return host, int(said.split()[0])


async def read_errors(host: trio.Process) -> str:
    assert host.stdout is not None
    assert host.stderr is not None
    async with host.stdout, host.stderr:
        return b"".join([data async for data in host.stderr]).decode()


@pytest.mark.parametrize("what", ["idle", "turn", "prompt"])
async def test_ctrl_c_ends_the_session_with_its_program(tmp_path: Path, what: str) -> None:
    async with real_api(quick_or_slow) as api:
        host, pid = await start_host(api, tmp_path, what)
        host.send_signal(signal.SIGINT)
        with within(AT_ONCE):
            errors = await read_errors(host)
            assert await host.wait() == -signal.SIGINT
        assert errors.strip().endswith("KeyboardInterrupt")
        assert not is_alive(pid)


@pytest.mark.parametrize("what", ["idle", "turn"])
async def test_a_cli_whose_program_was_killed_ends_by_itself(tmp_path: Path, what: str) -> None:
    def answer(request: ApiRequest) -> Reply:
        # The CLI brings the turn to its end before it goes.
        return say("a few words", chunks=3, delay=0.3)

    async with real_api(answer) as api:
        host, pid = await start_host(api, tmp_path, what)
        host.kill()
        await host.wait()
        with within(AT_ONCE):
            while is_alive(pid):
                await trio.sleep(0.01)
        assert await read_errors(host) == ""
