"""The environment of the CLI: what is inherited, what the library says, and what the caller says.

The caller has the last word on every name but one: the run's mark, by which the library finds
again what it has started.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from claude_trio._options._check import RUN_VARIABLE
from claude_trio._options._flags import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from claude_trio._options._session import SessionOptions

__all__ = ["ENCLOSING", "to_environment"]

# What a session sets for its own children, so that it speaks of that session and not of ours.
ENCLOSING: Final = frozenset(
    {
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_AGENT_SDK_VERSION",
        "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_STARTER_MAY_HOLD_CONNECTOR_FILE",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
    }
)

_OURS: Final[dict[str, str]] = {
    # The CLI knows the entry points of SDKs by their exact names: with any other it keeps no track
    # of its children, and may start background work of its own (CLI 2.1.332).
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    # The version is not known yet.  2.1.332 obeys either, 2.1.197 only the second, and with both
    # each sends the session's state once.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
}
_CLIENT_APP: Final = ("CLAUDE_AGENT_SDK_CLIENT_APP", "claude-trio")

# With one of these the CLI exits with 1 and without a word (CLI 2.1.332 and 2.1.197), and a
# debugger sets them for every child of the program that it watches.
_DEBUGGER: Final = re.compile(r"--(?:inspect|debug)")


def to_environment(
    options: SessionOptions, inherited: Mapping[str, str], *, run: str | None = None
) -> dict[str, str]:
    """Make the environment for a CLI.

    Args:
      options: What is wanted.
      inherited: The environment of this process.
      run: The run's own mark, which goes behind that of the run which this process is part of.
    """
    environment = {name: value for name, value in inherited.items() if name not in ENCLOSING}
    if _DEBUGGER.search(environment.get("NODE_OPTIONS", "")):
        del environment["NODE_OPTIONS"]
    environment |= _OURS
    environment.setdefault(*_CLIENT_APP)
    _apply(environment, dict(_of_options(options)))
    if "TRACEPARENT" in options.env:
        # An inherited state belongs to another trace.
        environment.pop("TRACESTATE", None)
    _apply(environment, options.env)
    if run is not None:
        outer = inherited.get(RUN_VARIABLE)
        environment[RUN_VARIABLE] = f"{outer}:{run}" if outer else run
    return environment


def _apply(environment: dict[str, str], changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


def _of_options(options: SessionOptions) -> Iterator[tuple[str, str | None]]:
    for option, name, when_true, when_false in ENVIRONMENT:
        value: object = getattr(options, option)
        if isinstance(value, bool):
            yield name, when_true if value else when_false
        elif value is not None:
            yield name, str(value)
    if options.append_subagent_system_prompt is not None:
        # Its flag would set this too, the field of `initialize` does not (CLI 2.1.332).
        yield "CLAUDE_CODE_ENABLE_APPEND_SUBAGENT_PROMPT", "1"
    if options.cwd is not None:
        # A relative path is no PWD; without one, programs ask the system.
        yield "PWD", options.cwd if options.cwd.startswith("/") else None
