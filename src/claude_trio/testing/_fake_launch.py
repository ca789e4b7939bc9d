"""What a fake CLI reads from its command line and its environment, as the real one does."""

from __future__ import annotations

import enum
import json
import math
import uuid
from typing import TYPE_CHECKING, Final

import attrs

from claude_trio._ndjson import object_or_empty
from claude_trio._options._flags import FLAGS, How

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["MODEL", "VERSION", "Launch", "States", "read_launch"]

VERSION: Final = "2.1.332"
MODEL: Final = "claude-fake"
_CWD: Final = "/home/user/project"
_RETRIES: Final = 10
_CEILING: Final = 600.0

# Flags of the real CLI that the library writes in another way, or that change nothing here.
_SWITCHES: Final = frozenset(
    {
        *("--verbose", "--print", "-p", "--dangerously-skip-permissions"),
        *("--exclude-dynamic-system-prompt-sections", "--forward-subagent-text"),
        "--managed-settings-in-initialize",
        *(flag for _option, flag, how in FLAGS if how is How.SWITCH),
    }
)
_VALUES: Final = frozenset(
    {
        *("--output-format", "--input-format", "--json-schema", "--agents", "--name"),
        *("--system-prompt", "--append-system-prompt", "--append-subagent-system-prompt"),
        *("--system-prompt-snapshot", "--plan-mode-instructions", "--initialize-fields"),
        *("--allowed-tools", "--disallowed-tools"),
        *(flag for _option, flag, how in FLAGS if how not in {How.SWITCH, How.MAYBE_VALUE}),
    }
)
_MAYBE_VALUES: Final = frozenset(flag for _o, flag, how in FLAGS if how is How.MAYBE_VALUE)


class States(enum.Enum):
    """Whether the CLI tells its state, and to whom."""

    UNTOLD = enum.auto()
    TOLD = enum.auto()
    TOLD_TO_THE_HOST = enum.auto()


@attrs.frozen(kw_only=True)
class Launch:
    """How a fake was started.

    Attributes:
      problem: Why it does not start; None if it does.
      retries: How often a failed request is tried again.
      ceiling: How long, in seconds, agents may go on after the end of stdin.
      title: What the session is called.
    """

    session_id: str
    cwd: str = _CWD
    model: str = MODEL
    fallback: str | None = None
    mode: str = "default"
    asks_host: bool = False
    partial: bool = False
    replay: bool = False
    forward_text: bool = False
    may_bypass: bool = False
    states: States = States.UNTOLD
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    max_turns: int | None = None
    budget: float | None = None
    has_schema: bool = False
    servers: tuple[str, ...] = ()
    retries: int = _RETRIES
    ceiling: float = _CEILING
    title: str | None = None
    problem: str | None = None


def read_launch(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> Launch:
    """Read the arguments behind the program's name, and the variables that matter."""
    flags, problem = _read_flags(argv)
    session_id, bad_id = _session_id(flags)
    mode = _last(flags, "--permission-mode") or "default"
    turns, budget = _last(flags, "--max-turns"), _last(flags, "--max-budget-usd")
    skips = "--dangerously-skip-permissions" in flags
    ceiling = env.get("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS")
    return Launch(
        session_id=session_id,
        cwd=cwd or _CWD,
        model=_last(flags, "--model") or MODEL,
        fallback=_last(flags, "--fallback-model"),
        mode="bypassPermissions" if skips else "default" if mode == "manual" else mode,
        asks_host=_last(flags, "--permission-prompt-tool") == "stdio"
        and _last(flags, "--permission-prompts") != "none",
        partial="--include-partial-messages" in flags,
        replay="--replay-user-messages" in flags,
        forward_text="--forward-subagent-text" in flags,
        may_bypass=skips or "--allow-dangerously-skip-permissions" in flags,
        states=_states(env),
        allowed=_rules(flags, "--allowedTools", "--allowed-tools"),
        disallowed=_rules(flags, "--disallowedTools", "--disallowed-tools"),
        max_turns=int(turns) if turns else None,
        budget=float(budget) if budget else None,
        has_schema="--json-schema" in flags,
        servers=_sdk_servers(flags.get("--mcp-config", [])),
        retries=int(env.get("CLAUDE_CODE_MAX_RETRIES") or _RETRIES),
        ceiling=(float(ceiling) / 1000 or math.inf) if ceiling else _CEILING,
        title=_last(flags, "--name"),
        problem=problem or bad_id,
    )


def _read_flags(argv: Sequence[str]) -> tuple[dict[str, list[str]], str | None]:
    """Read the flags, each with its values; and what the CLI says of one that it does not know."""
    flags: dict[str, list[str]] = {}
    words = iter(argv)
    for word in words:
        name, joined, value = word.partition("=")
        if name in _SWITCHES or name in _MAYBE_VALUES:
            flags[name] = [value] if joined else []
        elif name in _VALUES:
            flags.setdefault(name, []).append(value if joined else next(words, ""))
        elif name.startswith("--") and flags:
            # In front of the first flag that is the CLI's own stands how it is started.
            return flags, f"error: unknown option '{name}'"
    return flags, None


def _last(flags: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = flags.get(name)
    return values[-1] if values else None


def _session_id(flags: Mapping[str, Sequence[str]]) -> tuple[str, str | None]:
    given, resumed = _last(flags, "--session-id"), _last(flags, "--resume")
    if given is not None and not _is_uuid(given):
        return given, "Error: Invalid session ID. Must be a valid UUID."
    if resumed and "--fork-session" not in flags:
        return resumed, None
    return given or str(uuid.UUID(int=1)), None


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _states(env: Mapping[str, str]) -> States:
    if env.get("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") == "1":
        return States.TOLD
    if env.get("CLAUDE_CODE_SDK_READS_SESSION_STATE") == "1":
        return States.TOLD_TO_THE_HOST
    return States.UNTOLD


def _rules(flags: Mapping[str, Sequence[str]], *names: str) -> tuple[str, ...]:
    """Split rules at commas and spaces, but for those inside of their brackets."""
    rules: list[str] = []
    for text in (text for name in names for text in flags.get(name, ())):
        depth, rule = 0, ""
        for character in f"{text},":
            depth += (character == "(") - (character == ")")
            if character in ", " and not depth:
                rules += [rule] if rule else []
                rule = ""
            else:
                rule += character
    return tuple(rules)


def _sdk_servers(configs: Sequence[str]) -> tuple[str, ...]:
    names: list[str] = []
    for text in configs:
        try:
            servers = object_or_empty(object_or_empty(json.loads(text)).get("mcpServers"))
        except ValueError:
            continue  # It is the path of a file, and a fake reads none.
        names += [
            name for name, each in servers.items() if object_or_empty(each).get("type") == "sdk"
        ]
    return tuple(names)
