"""``python -m claude_trio`` and the ``claude-trio`` command."""

from __future__ import annotations

import sys

from claude_trio._cli import run

__all__ = ["main"]


def main() -> None:
    """Run the command line, and exit with its code."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
