"""What opening a session takes from the machine: its environment, and room for private files."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from claude_trio._options import FileArgument

__all__ = ["environment", "written"]


def environment() -> dict[str, str]:
    """Give the environment that a child would inherit."""
    return dict(os.environ)


@asynccontextmanager
async def written(arguments: Sequence[str | FileArgument]) -> AsyncIterator[tuple[str, ...]]:
    """Write those arguments that are files, and give all of them as text.

    The files lie in a folder that only their owner can read, which is removed at the end.
    """
    if all(isinstance(argument, str) for argument in arguments):
        yield tuple(argument for argument in arguments if isinstance(argument, str))
        return
    folder, texts = "", tuple[str, ...]()
    with trio.CancelScope(shield=True):
        folder, texts = await trio.to_thread.run_sync(_write, tuple(arguments))
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
        yield texts
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(shutil.rmtree, folder, True)  # noqa: FBT003


def _write(arguments: Sequence[str | FileArgument]) -> tuple[str, tuple[str, ...]]:
    folder = tempfile.mkdtemp(prefix="claude-trio-")
    texts: list[str] = []
    for number, argument in enumerate(arguments):
        if isinstance(argument, str):
            texts.append(argument)
            continue
        path = Path(folder, f"{number}{argument.suffix}")
        path.write_text(argument.content, encoding="utf-8")
        texts.append(f"{argument.flag}={path}")
    return folder, tuple(texts)
