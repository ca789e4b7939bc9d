"""`assert_no_leaks` finds what a block leaves, and harms nothing else."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from claude_trio.testing import _leaks, assert_no_leaks
from tests.process.alive import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# In the middle of an exec a process shows neither its words nor its environment, so this one tells
# when it is there.
SLEEP = [
    *(sys.executable, "-I", "-S", "-c"),
    "import os, time; print(os.getpid(), flush=True); time.sleep(600)",
]


def leaked(words: str) -> pytest.RaisesExc[AssertionError]:
    return pytest.raises(AssertionError, match=rf"something is left:\n  {words}")


def start(*argv: str, env: Mapping[str, str] | None = None) -> tuple[subprocess.Popen[bytes], int]:
    """Start what sleeps, directly or in the end; return what was started, and the sleeper's pid."""
    process = subprocess.Popen([*argv, *SLEEP], stdout=subprocess.PIPE, env=env)
    assert process.stdout is not None
    with process.stdout:
        return process, int(process.stdout.readline())


def orphan(words: str = "") -> int:
    """Let a shell start what sleeps and go; return the sleeper's pid."""
    shell, pid = start("sh", "-c", f'{words}"$@" &', "sh")
    assert shell.wait() == 0
    return pid


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait()


# -- nothing is left


def test_a_block_that_leaves_nothing_passes() -> None:
    before = dict(os.environ)
    with assert_no_leaks():
        subprocess.run(["true"], check=True)
        thread = threading.Thread(target=bool)
        thread.start()
        thread.join()
        trio.run(trio.lowlevel.checkpoint)
    assert dict(os.environ) == before


async def test_a_block_within_a_run_that_leaves_nothing_passes() -> None:
    with assert_no_leaks():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.checkpoint)
        await trio.run_process(["true"])
        # The thread of Trio's is kept for the next one who needs it, and that is no leak.
        assert await trio.to_thread.run_sync(bool) is False


async def test_what_was_there_before_may_stay_and_may_end() -> None:
    read, write = os.pipe()
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    with ended(start()[0]), contextlib.ExitStack() as stack:
        stack.callback(threads[1].join)
        stack.callback(end.set)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            with assert_no_leaks():
                os.close(read)
                os.close(write)
            nursery.cancel_scope.cancel()
    threads[0].join()


# -- tasks


async def test_a_task_that_is_left_is_told_with_where_it_is() -> None:
    async def wait() -> None:
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        with leaked("task 'left':\n") as caught, assert_no_leaks():
            nursery.start_soon(wait, name="left")
            await wait_all_tasks_blocked()
        assert "await trio.sleep_forever()" in str(caught.value)
        nursery.cancel_scope.cancel()


async def test_a_system_task_that_is_left_is_told() -> None:
    with leaked("task 'left':\n"), assert_no_leaks():
        trio.lowlevel.spawn_system_task(trio.sleep_forever, name="left")


# -- processes


def test_a_child_that_is_left_is_told_and_ended() -> None:
    with leaked(r"child \d+: \S .*time.sleep\(600\)$"), assert_no_leaks():
        child, _ = start()
    assert not is_alive(child.pid)
    child.wait()


def test_a_child_that_nobody_has_reaped_is_told() -> None:
    with leaked(r"child \d+: Z"), assert_no_leaks():
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    child.wait()


async def test_a_child_that_is_left_within_a_run_is_told_and_ended() -> None:
    with leaked(r"child \d+"), assert_no_leaks():
        child = await trio.lowlevel.open_process(SLEEP, stdout=subprocess.PIPE)
        assert child.stdout is not None
        async with child.stdout:
            assert int(await child.stdout.receive_some()) == child.pid
    assert not is_alive(child.pid)
    await child.wait()


@pytest.mark.parametrize("words", ["", "setsid ", "trap '' TERM; "])
def test_a_descendant_whose_parent_has_gone_is_told_and_ended(words: str) -> None:
    with leaked(r"process \d+: \S .*sleep\(600\)$"), assert_no_leaks():
        pid = orphan(words)
        assert is_alive(pid)
    assert not is_alive(pid)


def test_what_does_not_carry_the_mark_is_told_and_left_alone() -> None:
    with contextlib.ExitStack() as stack:
        with leaked(r"child \d+: \S .*time.sleep\(600\)$"), assert_no_leaks():
            child, _ = start(env={})
            stack.enter_context(ended(child))
        assert child.poll() is None


@pytest.mark.slow
def test_what_an_inner_block_has_started_is_found_by_the_outer_one() -> None:
    # A program that goes before the end of its own block.
    program = f"""
import os, subprocess
from claude_trio.testing import assert_no_leaks
with assert_no_leaks():
    child = subprocess.Popen({SLEEP}, stdout=subprocess.PIPE)
    print(int(child.stdout.readline()), flush=True)
    os._exit(0)
"""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with leaked(r"process \d+: \S .*time.sleep\(600\)"), assert_no_leaks():
        ran = subprocess.run(
            [sys.executable, "-c", program], check=True, stdout=-1, env={**os.environ, **path}
        )
        assert is_alive(int(ran.stdout))
    assert not is_alive(int(ran.stdout))


def test_the_mark_of_an_outer_block_comes_back() -> None:
    with assert_no_leaks():
        mark = os.environ[_leaks._VARIABLE]
        with assert_no_leaks():
            assert os.environ[_leaks._VARIABLE].startswith(f"{mark}:")
        assert os.environ[_leaks._VARIABLE] == mark
    assert _leaks._VARIABLE not in os.environ


# -- descriptors and threads


def test_a_descriptor_that_is_left_is_told() -> None:
    with leaked(r"descriptor \d+: pipe:\[\d+\]\n  descriptor \d+: pipe:"), assert_no_leaks():
        ends = os.pipe()
    for end in ends:
        os.close(end)


def test_a_number_that_was_given_to_another_descriptor_is_told() -> None:
    ends = os.pipe()
    with leaked(rf"descriptor {ends[0]}: /dev/null$"), assert_no_leaks():
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, ends[0])
        os.close(null)
    for end in ends:
        os.close(end)


def test_a_thread_that_is_left_is_told() -> None:
    end = threading.Event()
    with leaked("thread 'left'$"), assert_no_leaks():
        thread = threading.Thread(target=end.wait, name="left")
        thread.start()
    end.set()
    thread.join()


async def test_a_worker_thread_that_was_left_to_itself_is_told_until_its_job_is_done() -> None:
    end = threading.Event()
    limiter = trio.CapacityLimiter(1)
    with leaked("thread 'wait from "), assert_no_leaks():
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_wait_in_a_thread, end, limiter)
                await wait_all_tasks_blocked()
                scope.cancel()
    with assert_no_leaks():
        end.set()
        while limiter.borrowed_tokens:
            await trio.sleep(0.001)


async def _wait_in_a_thread(end: threading.Event, limiter: trio.CapacityLimiter) -> None:
    await trio.to_thread.run_sync(end.wait, abandon_on_cancel=True, limiter=limiter)


def test_a_worker_thread_with_a_job_that_has_no_name_is_told() -> None:
    begun, end, done = threading.Event(), threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        end.wait()

    with leaked(r"thread 'Trio thread \d+'$"), assert_no_leaks():
        trio.lowlevel.start_thread_soon(job, lambda _: done.set())
        begun.wait()
    end.set()
    done.wait()
    with assert_no_leaks():
        pass


# -- how it ends


def test_the_error_of_the_block_goes_on_with_a_note_of_what_is_left() -> None:
    with pytest.raises(KeyError) as caught, assert_no_leaks():
        pid = orphan()
        raise KeyError
    assert "something is left:\n  process" in caught.value.__notes__[0]
    assert not is_alive(pid)


def test_the_error_of_a_block_that_leaves_nothing_gets_no_note() -> None:
    with pytest.raises(KeyError) as caught, assert_no_leaks():
        raise KeyError
    assert not hasattr(caught.value, "__notes__")


async def test_a_cancelled_block_that_leaves_something_fails() -> None:
    with leaked("descriptor") as caught, trio.move_on_after(0), assert_no_leaks():
        ends = os.pipe()
        await trio.sleep_forever()
    assert isinstance(caught.value.__cause__, trio.Cancelled)
    for end in ends:
        os.close(end)


async def test_a_cancelled_block_that_leaves_nothing_is_cancelled() -> None:
    with trio.move_on_after(0) as scope, assert_no_leaks():
        await trio.sleep_forever()
    assert scope.cancelled_caught


def test_all_that_is_left_is_told_at_once() -> None:
    end = threading.Event()
    with leaked(r"child \d+.*\n  descriptor .*\n  descriptor .*\n  thread"), assert_no_leaks():
        child, _ = start()
        ends = os.pipe()
        thread = threading.Thread(target=end.wait)
        thread.start()
    end.set()
    thread.join()
    child.wait()
    for each in ends:
        os.close(each)


def test_where_nothing_can_be_seen_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_leaks, "proc_is_ours", bool)
    with pytest.raises(NotImplementedError, match="/proc"), assert_no_leaks():
        pytest.fail("it must not be entered")
