"""``claude-trio replay FILE``: a recording as a program that talks like the recorded CLI."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, final

import attrs
import trio

from claude_trio._cli._stdio import FORWARDED, Output, die_by, read_nowait, wait_readable
from claude_trio.testing import Replay, replay

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator

    from claude_trio import Transport

__all__ = ["replay_command"]


async def replay_command(arguments: argparse.Namespace) -> int:
    """Say on stdout what the CLI said, as long as stdin says what the host said."""
    try:
        playing = replay(arguments.file, timing=arguments.timing, patience=arguments.patience)
        with playing as cli, trio.open_signal_receiver(*FORWARDED) as signals:
            code = await _speak(cli, signals)
    except OSError as exc:
        raise ValueError(f"cannot replay {arguments.file}: {exc}") from exc
    if code < 0:
        die_by(-code)
    return code


async def _speak(cli: Replay, signals: AsyncIterator[int]) -> int:
    async with trio.open_nursery() as nursery:
        transport = await cli.launch(sys.argv, os.environ, None, nursery)
        voice = _Voice(cli, transport)
        nursery.start_soon(voice.take_signals, signals)
        nursery.start_soon(voice.take_stdin)
        output = Output(1)
        while data := await transport.receive():
            await output.write(data)
        code = await transport.wait_exit()
        nursery.cancel_scope.cancel()
    # What was not recorded is said by whoever gets the error.
    said = transport.stderr_tail.removesuffix(f"{cli.mismatch}\n")
    await Output(2).write(said.encode(errors="surrogateescape"))
    return code


@final
@attrs.frozen
class _Voice:
    _cli: Replay
    _transport: Transport

    async def take_signals(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            self._cli.send_signal(number)

    async def take_stdin(self) -> None:  # noqa: ASYNC910  It waits first.
        with contextlib.suppress(trio.BrokenResourceError):
            while True:
                await wait_readable(0)
                data = read_nowait(0)
                if data == b"":
                    break
                self._transport.send_nowait(data or b"")
        self._transport.close_stdin()
