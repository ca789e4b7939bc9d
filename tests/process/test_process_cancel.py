"""Whenever a cancellation or a Ctrl-C comes, nothing is left."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, final

import attrs
import pytest
import trio

from claude_trio import CLINotFound, spawn
from claude_trio._options import RUN_VARIABLE
from claude_trio._process import ProcessTransport, _spawn
from claude_trio.testing import assert_no_leaks
from tests.process.alive import has_children
from tests.process.programs import read_pid, start

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# More events than the longest of the scenarios has.
_MOST = 200


@final
@attrs.define(eq=False)
class _At(trio.abc.Instrument):
    """Do something at the n-th event of the run from now on, whatever that event is."""

    action: Callable[[], object]
    left: int

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.action()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._count()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._count()

    def before_io_wait(self, timeout: float) -> None:
        self._count()

    def after_io_wait(self, timeout: float) -> None:
        self._count()


async def _cancel_at(
    number: int, scenario: Callable[[], Awaitable[object]], note: Callable[[], object] = bool
) -> bool:
    """Run a scenario, cancelled at an event, and say whether it was over before that."""
    scope = trio.CancelScope()
    token = trio.lowlevel.current_trio_token()

    def cancel() -> None:
        note()
        # Through the token, since a run that is about to sleep has to be woken.
        token.run_sync_soon(scope.cancel)

    at = _At(cancel, number)
    trio.lowlevel.add_instrument(at)
    try:
        with scope:
            await scenario()
    finally:
        trio.lowlevel.remove_instrument(at)
    return at.left > 0


@pytest.mark.slow
@pytest.mark.parametrize("program", ["cat", "/no/such/program"])
async def test_cancelled_spawn_leaves_nothing(program: str) -> None:
    transports: list[ProcessTransport | None] = []
    running: list[bool] = []

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            try:
                transport = await spawn([program], os.environ, None, nursery)
            except CLINotFound:
                return
            transports[-1] = transport
            with trio.CancelScope(shield=True):
                assert await transport.aclose(sweep=False)

    for number in range(1, _MOST):
        transports.append(None)
        with trio.fail_after(5), assert_no_leaks():
            if await _cancel_at(number, scenario, lambda: running.append(has_children())):
                break
    else:
        pytest.fail("the scenario did not come to its end")
    if program == "cat":
        # Some of the cancellations came when the process was there, but its transport was not.
        assert (True, None) in zip(running, transports, strict=False)


async def test_cancelled_caller_starts_nothing() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                scope.cancel()
                await spawn(["/bin/cat"], os.environ, None, nursery)
            assert scope.cancelled_caught


async def test_closed_nursery_gets_no_process() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            pass
        with pytest.raises(RuntimeError, match="closed"):
            await spawn(["/bin/cat"], os.environ, None, nursery)


@pytest.mark.slow
async def test_close_cancelled_anywhere_closes_the_pipes_and_the_next_ends_the_rest() -> None:
    async def scenario() -> None:
        assert await transport.aclose(sweep=True)

    for number in range(1, _MOST):
        with trio.fail_after(8), assert_no_leaks():
            async with trio.open_nursery() as nursery:
                variables = {RUN_VARIABLE: f"test:cancel:{number}"}
                transport = await start(nursery, "family", "setsid", "leaves", **variables)
                await read_pid(transport)
                await transport.wait_exit()
                finished = await _cancel_at(number, scenario)
                with pytest.raises(trio.ClosedResourceError):
                    transport.receive_nowait()
                with trio.CancelScope(shield=True):
                    assert await transport.aclose(sweep=True)
                # The thread that was left to itself has descriptors of its own.
                while _spawn.sweep_limiter().borrowed_tokens:
                    await trio.lowlevel.checkpoint()
        if finished:
            break
    else:
        pytest.fail("the scenario did not come to its end")


def test_ctrl_c_anywhere_in_a_life_leaves_nothing() -> None:
    async def live() -> None:
        async with trio.open_nursery() as nursery:
            transport = await spawn(["cat"], os.environ, None, nursery)
            try:
                transport.send_nowait(b"hello")
                assert await transport.receive() == b"hello"
                transport.close_stdin()
                await transport.wait_exit()
            finally:
                with trio.CancelScope(shield=True):
                    await _close(transport)

    interrupted = 0
    for number in range(1, _MOST):
        at = _At(lambda: signal.raise_signal(signal.SIGINT), number)
        with assert_no_leaks():
            try:
                trio.run(live, instruments=[at], restrict_keyboard_interrupt_to_checkpoints=True)
            except* KeyboardInterrupt:
                interrupted += 1
        if at.left > 0:
            break
    assert interrupted > 10


async def _close(transport: ProcessTransport) -> None:
    # A Ctrl-C that comes now is kept for later.
    interrupt = None
    try:
        assert await transport.aclose(sweep=False)
    except KeyboardInterrupt as exc:
        interrupt = exc
    assert await transport.aclose(sweep=False)
    if interrupt is not None:
        raise interrupt


def test_run_that_is_given_up_while_a_process_starts_leaves_nothing() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(spawn, ["/bin/cat"], os.environ, None, nursery)
            raise ValueError

    with assert_no_leaks():
        for _ in range(10):
            with pytest.raises(ExceptionGroup):
                trio.run(main)
    assert threading.active_count() < 10
