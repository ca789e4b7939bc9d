"""The pytest plugin under the package's own name, for ``-p`` and ``pytest_plugins``.

Where the package is installed, pytest finds the plugin by itself.  It is `claude_trio_pytest`, a
module of its own: what lies in a package is imported with the package, which is too much for the
runs of pytest that use none of it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["pytest_plugins"]

pytest_plugins: Final[list[str]] = ["claude_trio_pytest"]
