"""Where the real CLI is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from claude_trio._process._program import find

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_claude"]


def find_claude(env: Mapping[str, str] | None = None) -> str:
    """Find the ``claude`` that a session starts: CLAUDE_CLI_PATH, PATH, the usual places.

    It looks at the file system, and at once.

    Args:
      env: The environment that names it; None for ours.

    Raises:
      CLINotFound: if there is none, with the places that were looked at.
      LaunchFailed: if there is one that may not be executed.
    """
    return find("claude", os.environ if env is None else env, None)
