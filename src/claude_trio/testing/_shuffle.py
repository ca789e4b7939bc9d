"""The one place that reaches for the random source of Trio's scheduler."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from trio._core import _run as trio_run

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["shuffled"]


@contextlib.contextmanager
def shuffled(seed: int) -> Iterator[None]:
    """Let the runs in the block schedule their tasks in an order that a seed decides.

    Trio runs the tasks that woke together in a random order, and has no public switch for it; the
    flag is what its plugin for Hypothesis sets, and makes the order depend on nothing else.
    """
    source, flag = trio_run._r, trio_run._ALLOW_DETERMINISTIC_SCHEDULING  # noqa: SLF001
    state = source.getstate()
    source.seed(seed)
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # noqa: SLF001
    try:
        yield
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = flag  # type: ignore[misc]  # noqa: SLF001
        source.setstate(state)
