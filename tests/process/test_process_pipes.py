"""Bytes go in and out without a wait that nobody asked for."""

from __future__ import annotations

import os

import pytest
import trio
import trio.testing

from claude_trio import spawn
from claude_trio._process._pipes import Tail
from claude_trio.testing import assert_no_leaks
from tests.process.programs import command, read_all, read_line, start

_MEGABYTE = 1 << 20


async def test_what_was_written_right_before_the_exit_is_there_after_it() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "exits", "7", "60000")
            assert await transport.wait_exit() == 7
            # Nothing has run that could have read it before.
            assert transport.stderr_tail == "last words"
            data = b""
            while part := transport.receive_nowait():
                data += part
            assert data == b"x" * 60000
            assert transport.receive_nowait() == await transport.receive() == b""
            await transport.aclose(sweep=False)
            assert transport.stderr_tail == "last words"


async def test_stdout_may_end_before_the_process() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits", "mute")
            assert await read_all(transport) == b"ready\n"
            assert transport.returncode is None
            await transport.aclose(sweep=False)


async def test_exit_is_not_eof() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "family", "leaves", "holds")
            await read_line(transport)
            assert await transport.wait_exit() == 0
            with pytest.raises(trio.WouldBlock):
                transport.receive_nowait()
            assert await transport.aclose(sweep=False)


async def test_writes_take_what_fits() -> None:
    data = bytes(4 * _MEGABYTE)
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "counts")
            rest = memoryview(data)
            partial = 0
            while rest:
                sent = transport.send_nowait(bytes(rest))
                partial += 0 < sent < len(rest)
                rest = rest[sent:]
                await transport.wait_writable()
            assert partial
            transport.close_stdin()
            transport.close_stdin()
            assert await read_line(transport) == str(len(data))
            with pytest.raises(trio.ClosedResourceError):
                transport.send_nowait(b"x")
            with pytest.raises(trio.ClosedResourceError):
                await transport.wait_writable()
            await transport.aclose(sweep=False)


async def test_full_pipe_takes_nothing_and_does_not_block() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits")
            assert await read_line(transport) == "ready"
            assert 0 < transport.send_nowait(bytes(_MEGABYTE)) < _MEGABYTE
            assert transport.send_nowait(bytes(_MEGABYTE)) == 0
            await transport.aclose(sweep=False)


async def test_stdin_that_nobody_reads_is_broken() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits", "closed")
            assert await read_line(transport) == "ready"
            await transport.wait_writable()
            with pytest.raises(trio.BrokenResourceError):
                transport.send_nowait(b"x")
            await transport.aclose(sweep=False)


async def test_stdin_of_a_dead_process_is_broken() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "exits", "0", "0")
            await transport.wait_exit()
            await transport.wait_writable()
            with pytest.raises(trio.BrokenResourceError):
                transport.send_nowait(b"x")
            await transport.aclose(sweep=False)


async def test_closing_wakes_who_waits() -> None:
    woken: list[str] = []

    async def reader() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await transport.receive()
        woken.append("reader")

    async def writer() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await transport.wait_writable()
        woken.append("writer")

    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            # Its grandchild holds all three pipes open, and is not ended by the first close.
            transport = await start(
                nursery, "family", "setsid", "holds", "leaves", CLAUDE_TRIO_RUN="test:1"
            )
            await read_line(transport)
            while transport.send_nowait(bytes(_MEGABYTE)):
                pass
            nursery.start_soon(reader)
            nursery.start_soon(writer)
            await trio.testing.wait_all_tasks_blocked()
            transport.close_stdin()
            await trio.testing.wait_all_tasks_blocked()
            assert woken == ["writer"]
            await transport.aclose(sweep=False)
            await trio.testing.wait_all_tasks_blocked()
            assert woken == ["writer", "reader"]
            with pytest.raises(trio.ClosedResourceError):
                transport.receive_nowait()
            with pytest.raises(trio.ClosedResourceError):
                await transport.receive()
            assert await transport.aclose(sweep=True)


async def test_cancelled_reader_loses_nothing() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "speaks", "2000", "282")
            data = b""
            while True:
                with trio.CancelScope() as scope:
                    # Cancelled while it waits, or before: at any rate again and again.
                    nursery.start_soon(_cancel, scope)
                    part = await transport.receive()
                    if not part:
                        break
                    data += part
            assert data == (b"x" * 281 + b"\n") * 2000
            await transport.aclose(sweep=False)


async def _cancel(scope: trio.CancelScope) -> None:
    scope.cancel()
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("size", [282, 65536, 65537, 1_000_000, 5_000_000])
async def test_lines_of_any_size_come_whole(size: int) -> None:
    count = max(2, 4_000_000 // size)
    with trio.fail_after(10), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "speaks", str(count), str(size))
            data = await read_all(transport)
            assert data.count(b"\n") == count
            assert set(data.split(b"\n")) == {b"x" * (size - 1), b""}
            await transport.aclose(sweep=False)


async def test_long_lines_are_read_in_large_pieces() -> None:
    with trio.fail_after(10), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "speaks", "1", "8000000")
            largest = 0
            while data := await transport.receive():
                largest = max(largest, len(data))
            assert largest > 65536
            await transport.aclose(sweep=False)


async def test_flood_of_stderr_holds_nobody_up() -> None:
    with trio.fail_after(10), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await spawn(
                command("floods", "10"), os.environ, None, nursery, stderr_tail=1000
            )
            assert await read_line(transport) == "done"
            transport.close_stdin()
            assert await transport.wait_exit() == 0
            await transport.aclose(sweep=False)
            tail = transport.stderr_tail
            assert tail.endswith("ää\ufffd\nthe end")
            assert 490 < len(tail) <= 1000
            assert len(tail.encode().replace("\ufffd".encode(), b"?")) <= 1000
            assert tail.startswith("ä")


async def test_drain_outlives_a_cancelled_nursery() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "floods", "1")
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                assert await read_line(transport) == "done"
                transport.close_stdin()
                await transport.wait_exit()
                await transport.aclose(sweep=False)
        assert transport.stderr_tail.endswith("the end")


async def test_two_readers_are_told() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits")
            assert await read_line(transport) == "ready"
            async with trio.open_nursery() as inner:
                inner.start_soon(transport.receive)
                await trio.testing.wait_all_tasks_blocked()
                with pytest.raises(trio.BusyResourceError):
                    await transport.receive()
                inner.cancel_scope.cancel()
            await transport.aclose(sweep=False)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 5, 100])
def test_tail_never_begins_in_the_middle_of_a_character(limit: int) -> None:
    text = "aä€😀" * 3
    tail = Tail(limit)
    for byte in text.encode():
        tail.add(bytes([byte]))
        assert len(tail.text.encode().replace("\ufffd".encode(), b"?")) <= limit
    assert text.endswith(tail.text)


def test_tail_that_was_not_cut_shows_all_that_came() -> None:
    tail = Tail(10)
    tail.add(b"\x80\xbf")
    assert tail.text == "\ufffd\ufffd"
