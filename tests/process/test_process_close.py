"""Nothing of a process is left once it was closed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
import threading
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from claude_trio import spawn
from claude_trio._options import RUN_VARIABLE
from claude_trio._process._sweep import end_group, end_remains, group_exists
from claude_trio.testing import assert_no_leaks
from tests.process.alive import is_alive
from tests.process.programs import command, read_line, read_pid, start

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>


def _mark() -> str:
    return f"test:{uuid.uuid4()}"


@contextlib.contextmanager
def _subreaper() -> Iterator[None]:
    """Be who gets the orphans among our descendants."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_SUBREAPER, 0)


async def test_close_ends_the_rest_of_the_group() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family")
            child = await read_pid(transport)
            transport.close_stdin()
            assert await transport.wait_exit() == 0
            assert is_alive(child)
            assert await transport.aclose(sweep=False)
            assert not is_alive(child)


@pytest.mark.slow
async def test_close_ends_a_rest_that_ignores_sigterm() -> None:
    with trio.fail_after(8), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family", "deaf", "holds", "leaves")
            child = await read_pid(transport)
            await transport.wait_exit()
            assert await transport.aclose(sweep=False)
            assert not is_alive(child)


async def test_close_ends_a_process_that_still_runs() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family")
            child = await read_pid(transport)
            assert await transport.aclose(sweep=False)
            assert not is_alive(child)
            assert transport.returncode == -9


async def test_sweep_ends_what_has_a_session_of_its_own() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family", "setsid", **{RUN_VARIABLE: _mark()})
            child = await read_pid(transport)
            transport.kill()
            await transport.wait_exit()
            # Nothing of the group is left, and the rest was not asked for.
            assert await transport.aclose(sweep=False)
            assert is_alive(child)
            assert await transport.aclose(sweep=True)
            assert not is_alive(child)


@pytest.mark.slow
async def test_sweep_ends_what_ignores_sigterm() -> None:
    with trio.fail_after(8), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            words = ("setsid", "deaf", "holds", "leaves")
            transport = await start(nursery, "family", *words, **{RUN_VARIABLE: _mark()})
            await read_pid(transport)
            await transport.wait_exit()
            assert await transport.aclose(sweep=True)


async def test_sweep_that_cannot_look_says_so() -> None:
    with trio.fail_after(8), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            words = ("setsid", "leaves")
            transport = await start(nursery, "family", *words, **{RUN_VARIABLE: _mark()})
            child = await read_pid(transport)
            await transport.wait_exit()
            await transport.aclose(sweep=False)
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            try:
                # No descriptor is left to look with.
                resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
                assert not await transport.aclose(sweep=True)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert is_alive(child)
            assert await transport.aclose(sweep=True)


@pytest.mark.slow
async def test_sweep_ends_a_crowd() -> None:
    # More than the system lets us look at together.
    with trio.fail_after(20), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "crowd", "100", **{RUN_VARIABLE: _mark()})
            assert await read_line(transport) == "ready"
            transport.kill()
            await transport.wait_exit()
            assert await transport.aclose(sweep=True)


async def test_sweep_ends_nested_runs_and_no_other() -> None:
    mark = _mark()
    with trio.fail_after(8), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            words = ("setsid", "nested", "leaves")
            nested = await start(nursery, "family", *words, **{RUN_VARIABLE: mark})
            inner = await read_pid(nested)
            # One whose mark begins like ours, and one that holds ours in another variable.
            longer = await start(nursery, "waits", **{RUN_VARIABLE: f"{mark}0"})
            other = await start(nursery, "waits", OTHER=f"{RUN_VARIABLE}={mark}")
            assert await read_line(longer) == await read_line(other) == "ready"
            await nested.wait_exit()
            assert await nested.aclose(sweep=True)
            assert not is_alive(inner)
            assert longer.returncode is other.returncode is None
            await longer.aclose(sweep=False)
            await other.aclose(sweep=False)


@pytest.mark.parametrize("outer", ["test:outer", "test:outer:inner"])
async def test_mark_of_the_run_that_we_are_in_is_not_swept(
    outer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN_VARIABLE, outer)
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            sibling = await start(nursery, "waits", **{RUN_VARIABLE: "test:outer"})
            transport = await start(nursery, "exits", "0", "0", **{RUN_VARIABLE: "test:outer"})
            assert await read_line(sibling) == "ready"
            assert await transport.aclose(sweep=True)
            assert sibling.returncode is None
            await sibling.aclose(sweep=False)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["new", "old"])
async def test_sweep_spares_itself_and_its_ancestors(word: str) -> None:
    script = f"{sys.executable} {command('sweeps')[-1]} {word}; echo parent lives"
    with trio.fail_after(10), assert_no_leaks():
        environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "SWEEP_TEST": str(uuid.uuid4()),
        }
        result = await trio.run_process(["sh", "-c", script], env=environ, capture_stdout=True)
        assert result.stdout.decode() == "True\nchild ended\nparent lives\n"


async def test_group_whose_number_is_taken_again_is_a_strangers() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            stranger = await start(nursery, "waits")
            assert await read_line(stranger) == "ready"
            assert await trio.to_thread.run_sync(end_remains, stranger.pid, None)
            assert await trio.to_thread.run_sync(end_group, stranger.pid)
            assert stranger.returncode is None
            await stranger.aclose(sweep=False)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("deaf",)])
async def test_group_is_ended_without_proc_as_well(words: tuple[str, ...]) -> None:
    with trio.fail_after(8), assert_no_leaks(), _subreaper():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family", "leaves", *words)
            child = await read_pid(transport)
            await transport.wait_exit()
            assert group_exists(transport.pid)
            async with trio.open_nursery() as threads:
                # What a good first process does with an orphan, and at once.
                threads.start_soon(trio.to_thread.run_sync, os.waitpid, child, 0)
                assert await trio.to_thread.run_sync(end_group, transport.pid)
            assert await transport.aclose(sweep=False)


@pytest.mark.parametrize("children", [True, False])
async def test_children_at_the_end_of_stdin_decide_whether_to_sweep(children: bool) -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            mark = _mark()
            words = ("family", "setsid") if children else ("waits",)
            transport = await start(nursery, *words, **{RUN_VARIABLE: mark})
            # It carries the mark, and was not started by the process that is closed.
            other = await start(nursery, "waits", **{RUN_VARIABLE: mark})
            if children:
                await read_pid(transport)
            transport.close_stdin()
            transport.terminate()
            await transport.wait_exit()
            assert await transport.aclose(sweep=None)
            assert is_alive(other.pid) is not children
            other.kill()
            await other.wait_exit()
            await other.aclose(sweep=False)


async def test_orphans_that_come_to_us_are_reaped() -> None:
    with trio.fail_after(5), assert_no_leaks(), _subreaper():
        async with trio.open_nursery() as nursery:
            words = ("family", "setsid", "leaves")
            swept = await start(nursery, *words, **{RUN_VARIABLE: _mark()})
            killed = await start(nursery, "family")
            pids = [await read_pid(swept), await read_pid(killed)]
            await swept.wait_exit()
            # Its child dies with it, and is a zombie of ours when it is looked for.
            killed.kill()
            await killed.wait_exit()
            assert await killed.aclose(sweep=False)
            assert await swept.aclose(sweep=True)
        assert not any(Path("/proc", str(pid)).exists() for pid in pids)


async def test_closing_again_is_fine() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family", **{RUN_VARIABLE: _mark()})
            await read_line(transport)
            async with trio.open_nursery() as closers:
                for sweep in (False, True, False, True):
                    closers.start_soon(partial(transport.aclose, sweep=sweep))
            assert await transport.aclose(sweep=False)
            assert await transport.aclose(sweep=True)


async def test_hundred_lives_leave_nothing() -> None:
    threads = threading.active_count()
    with trio.fail_after(30), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                transport = await spawn(["cat"], os.environ, None, nursery)
                transport.send_nowait(b"ready\n")
                assert await read_line(transport) == "ready"
                transport.close_stdin()
                assert await transport.wait_exit() == 0
                assert await transport.aclose(sweep=False)
                assert len(nursery.child_tasks) == 0
    assert threading.active_count() <= threads + 3


@pytest.mark.slow
async def test_many_at_once_disturb_each_other_in_nothing() -> None:
    async def live(number: int) -> None:
        transport = await start(
            nursery, "family", "setsid", *["deaf"][: number % 2], **{RUN_VARIABLE: _mark()}
        )
        await read_pid(transport)
        transport.close_stdin()
        assert await transport.wait_exit() == 0
        assert await transport.aclose(sweep=True)

    with trio.fail_after(30), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(live, number)
