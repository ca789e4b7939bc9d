"""Start a CLI as a process, and leave nothing of it behind.

`spawn` is a `Launcher`.  `_program` looks for the program and says why one does not start;
`_pipes` has the ends of the three pipes, `_spawn` the process and its exit, and `_sweep` ends what
the process left behind.
"""

from __future__ import annotations

from claude_trio._process._spawn import ProcessTransport, spawn

__all__ = ["ProcessTransport", "spawn"]
