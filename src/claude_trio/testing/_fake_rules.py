"""Who decides on a tool call in a fake CLI: the rules and the mode, or the host.

It is a likeness of the real one's rules, coarse where those look into a shell command or a path.
"""

from __future__ import annotations

import enum
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, final

from claude_trio._ndjson import list_or_empty, object_or_empty
from claude_trio.testing._fake_frames import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from claude_trio.testing._fake_frames import Frames

__all__ = ["ALWAYS_ASKS", "Rules", "Ruling", "is_known", "is_safe_beside_others", "suggestions"]

ALWAYS_ASKS: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""A person has to answer these, whatever the mode."""

_UNLISTED: Final = frozenset({"Agent", "StructuredOutput", "TodoWrite"})
_READS: Final = frozenset({"Glob", "Grep", "Read"})
_EDITS: Final = frozenset({"Edit", "NotebookEdit", "Write"})
_FREE: Final = frozenset(
    {
        *("Agent", "Task", "EnterPlanMode", "ScheduleWakeup", "StructuredOutput", "TaskStop"),
        *("TodoWrite", "ToolSearch"),
    }
)
_SAFE: Final = frozenset({"Agent", "Task", "ToolSearch", "WebFetch", "WebSearch", *_READS})
_READING: Final = frozenset(
    {
        *(
            "cat",
            "cd",
            "date",
            "diff",
            "echo",
            "false",
            "file",
            "grep",
            "head",
            "ls",
            "printf",
            "pwd",
            "sleep",
        ),
        *("sort", "stat", "tail", "test", "true", "uniq", "wc", "which", "whoami"),
    }
)
_FILING: Final = frozenset({"cp", "mkdir", "mv", "rm", "rmdir", "touch"})
_SEPARATORS: Final = re.compile(r"&&|\|\||[;|\n&]")


class Ruling(enum.Enum):
    """What the rules say of a call."""

    ALLOW = enum.auto()
    ASK = enum.auto()
    DENY = enum.auto()


@final
class Rules:
    """The rules of one session; some of the host's answers change them."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._allowed = list(frames.launch.allowed)
        self._denied = list(frames.launch.disallowed)

    def rule(self, name: str, use: Mapping[str, object]) -> Ruling:
        """Say whether a call may run."""
        if self.denies(name, use):
            return Ruling.DENY
        if name in ALWAYS_ASKS:
            return Ruling.ASK
        if name in _FREE or _matches(self._allowed, name, use) or self._is_harmless(name, use):
            return Ruling.ALLOW
        return _by_mode(self._frames.mode, name, use)

    def denies(self, name: str, use: Mapping[str, object]) -> bool:
        """Whether a rule forbids a call, whatever anybody else says."""
        return _matches(self._denied, name, use)

    def update(self, updates: object) -> None:
        """Do what the answer to a permission request says about later ones."""
        for update in map(object_or_empty, list_or_empty(updates)):
            match update.get("type"):
                case "setMode":
                    self._frames.tell_mode(str(update.get("mode")))
                case "addRules":
                    allows = update.get("behavior") == "allow"
                    (self._allowed if allows else self._denied).extend(_spelled(update))
                case "removeRules":
                    gone = set(_spelled(update))
                    self._allowed = [rule for rule in self._allowed if rule not in gone]
                    self._denied = [rule for rule in self._denied if rule not in gone]
                case _:
                    pass

    def _is_harmless(self, name: str, use: Mapping[str, object]) -> bool:
        if name in _READS:
            path = str(use.get("file_path") or use.get("path") or "")
            return not path.startswith("/") or path.startswith(self._frames.launch.cwd)
        return name == "Bash" and _only(_READING, str(use.get("command", "")))


def _by_mode(mode: str, name: str, use: Mapping[str, object]) -> Ruling:
    match mode:
        case "bypassPermissions" | "auto":
            return Ruling.ALLOW
        case "acceptEdits":
            edits = name in _EDITS or _only(_READING | _FILING, str(use.get("command", "")))
            return Ruling.ALLOW if edits else Ruling.ASK
        case "plan":
            return Ruling.DENY if name == "Bash" else Ruling.ASK
        case "dontAsk":
            return Ruling.DENY
        case _:
            return Ruling.ASK


def is_known(name: str) -> bool:
    """Whether there is such a tool; what servers of other programs offer is not known."""
    return name in BUILT_IN or name in _UNLISTED or name.startswith("mcp__")


def is_safe_beside_others(name: str) -> bool:
    """Whether several calls of a tool in one message run at the same time."""
    return name in _SAFE


def suggestions(name: str, use: Mapping[str, object]) -> list[dict[str, object]]:
    """Offer what the user may want to allow from now on."""
    rule = {"toolName": name}
    if name == "Bash":
        rule["ruleContent"] = str(use.get("command", ""))
    adds = {"type": "addRules", "rules": [rule], "behavior": "allow"}
    offers: list[dict[str, object]] = [{**adds, "destination": "localSettings"}]
    if name in _EDITS:
        offers.append({"type": "setMode", "mode": "acceptEdits", "destination": "session"})
    return offers


def _only(words: frozenset[str], command: str) -> bool:
    """Whether a command calls nothing but these programs, and writes to no file."""
    calls = [part.split() for part in _SEPARATORS.split(command)]
    called = [call[0] for call in calls if call]
    return bool(called) and ">" not in command and words.issuperset(called)


def _matches(rules: Sequence[str], name: str, use: Mapping[str, object]) -> bool:
    return any(_is_met(rule, name, use) for rule in rules)


def _is_met(rule: str, name: str, use: Mapping[str, object]) -> bool:
    tool, bracket, content = rule.partition("(")
    if {tool, name} <= {"Agent", "Task"}:
        tool = name
    if not fnmatchcase(name, tool):
        return False
    pattern = content.removesuffix(")").replace(":*", "*")
    said = next((use[key] for key in ("command", "file_path", "url") if key in use), "")
    return not bracket or fnmatchcase(str(said), pattern)


def _spelled(update: Mapping[str, object]) -> list[str]:
    return [_spell(object_or_empty(rule)) for rule in list_or_empty(update.get("rules"))]


def _spell(rule: Mapping[str, object]) -> str:
    content = rule.get("ruleContent")
    return f"{rule.get('toolName')}({content})" if content else str(rule.get("toolName"))
