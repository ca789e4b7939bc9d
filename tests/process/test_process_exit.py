"""Everybody learns of the exit, and no signal goes to a stranger."""

from __future__ import annotations

import os
import signal
import sys
from subprocess import PIPE
from typing import Self

import pytest
import trio
import trio.testing

from claude_trio.testing import assert_no_leaks
from tests.process.alive import is_alive
from tests.process.programs import command, read_line, read_pid, start


class _Watch:
    """Wait for the exit of a process that is no child of ours."""

    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    async def wait(self) -> None:
        await trio.lowlevel.wait_readable(self._fd)
        trio.lowlevel.notify_closing(self._fd)


@pytest.mark.parametrize("code", [0, 7, 255, -signal.SIGKILL, -signal.SIGSEGV])
async def test_code_is_the_programs_and_negative_for_a_signal(code: int) -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "exits", str(code), "0")
            pid = transport.pid
            assert await transport.wait_exit() == code
            assert transport.returncode == code
            assert await transport.aclose(sweep=False)
        # Late, and closed long ago.
        assert await transport.wait_exit() == code
        assert (transport.pid, transport.returncode) == (pid, code)


async def test_repr_tells_the_state_and_no_argument() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "exits", "7", "0", "s3cret")
            assert repr(transport) == f"<ProcessTransport of process {transport.pid}, running>"
            await transport.wait_exit()
            assert "exited with 7" in repr(transport)
            assert "s3cret" not in repr(transport)
            await transport.aclose(sweep=False)


async def test_code_is_seen_without_a_wait() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "exits", "7", "0")
            while transport.returncode is None:
                await trio.lowlevel.checkpoint()
            assert transport.returncode == 7
            assert await transport.wait_exit() == 7
            await transport.aclose(sweep=False)


async def test_every_waiter_gets_the_code_and_a_cancelled_one_disturbs_nobody() -> None:
    codes: list[int] = []
    cancelled: list[bool] = []

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            codes.append(await transport.wait_exit())
        cancelled.append(scope.cancelled_caught)

    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits")
            assert await read_line(transport) == "ready"
            scopes = [trio.CancelScope() for _ in range(20)]
            for scope in scopes:
                nursery.start_soon(wait, scope)
            await trio.testing.wait_all_tasks_blocked()
            # Among them the one that does the waiting for all.
            for scope in scopes[::2]:
                scope.cancel()
                await trio.testing.wait_all_tasks_blocked()
            assert cancelled == [True] * 10
            transport.terminate()
            assert await transport.wait_exit() == -signal.SIGTERM
            await transport.aclose(sweep=False)
        assert codes == [-signal.SIGTERM] * 10


async def test_exit_seen_by_the_way_wakes_who_waits() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits")
            assert await read_line(transport) == "ready"
            nursery.start_soon(transport.wait_exit)
            await trio.testing.wait_all_tasks_blocked()
            transport.kill()
            while transport.returncode is None:
                pass
            await transport.aclose(sweep=False)


async def test_terminate_may_be_ignored_and_kill_may_not() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits", "deaf")
            assert await read_line(transport) == "ready"
            transport.terminate()
            assert await read_line(transport) == "TERM"
            assert transport.returncode is None
            transport.kill()
            transport.kill()
            assert await transport.wait_exit() == -signal.SIGKILL
            assert await transport.aclose(sweep=False)


async def test_signals_reach_the_group() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family")
            child = await read_pid(transport)
            with _Watch(child) as watch:
                transport.terminate()
                await watch.wait()
            assert await transport.wait_exit() == -signal.SIGTERM
            assert await transport.aclose(sweep=False)


async def test_signals_after_the_exit_reach_nobody() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family", "leaves")
            child = await read_pid(transport)
            assert await transport.wait_exit() == 0
            transport.terminate()
            transport.kill()
            assert is_alive(child)
            assert os.getpgid(child) == transport.pid
            assert await transport.aclose(sweep=False)
            assert not is_alive(child)
        transport.terminate()
        transport.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, None])
async def test_host_that_goes_without_a_word_leaves_no_process_that_heeds_eof(
    number: int | None,
) -> None:
    # At an exit of the interpreter SIGTERM comes as well; `waits` heeds nothing else.
    program = ["floods", "0"] if number else ["waits"]
    with trio.fail_after(10), assert_no_leaks():
        argv = [sys.executable, command("host")[-1], *command(*program)]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        host = await trio.lowlevel.open_process(argv, stdin=PIPE, stdout=PIPE, env=environ)
        assert host.stdin
        assert host.stdout
        async with host.stdin, host.stdout:
            said = b""
            while not said.endswith(b"\n"):
                said += await host.stdout.receive_some()
            pids = [int(word) for word in said.split()]
            assert len(pids) == 2
            watches = [_Watch(pid) for pid in pids]
            if number:
                host.send_signal(number)
            await host.stdin.aclose()
            await host.wait()
        for watch in watches:
            with watch:
                await watch.wait()
