"""Options, and what the CLI is told of them: pure functions from values to values.

`SessionOptions` says what is wanted.  `to_command_line` makes the arguments of it and the fields
of the first request, `to_environment` the variables, `warnings_for` what a caller should know.
Each option travels one way, and `_flags` has the table.
"""

from __future__ import annotations

from claude_trio._options._agents import AgentDefinition
from claude_trio._options._check import LONGEST_ARGUMENT, RUN_VARIABLE
from claude_trio._options._combinations import warnings_for
from claude_trio._options._command_line import (
    CommandLine,
    FileArgument,
    to_command_line,
    to_environment,
)
from claude_trio._options._convert import PathLike, StrPath
from claude_trio._options._limits import Limits, Timeouts
from claude_trio._options._session import SessionOptions

__all__ = [
    "LONGEST_ARGUMENT",
    "RUN_VARIABLE",
    "AgentDefinition",
    "CommandLine",
    "FileArgument",
    "Limits",
    "PathLike",
    "SessionOptions",
    "StrPath",
    "Timeouts",
    "to_command_line",
    "to_environment",
    "warnings_for",
]
