"""Changes of the permissions: what the CLI offers, and what a decision may carry along."""

from __future__ import annotations

import enum
from collections.abc import Mapping  # noqa: TC003  Whoever reads the types at run time gets them.
from typing import ClassVar, Final, TypeAlias, final

from claude_trio._ndjson import list_or_empty, object_or_empty
from claude_trio._values import field, frozen

__all__ = [
    "AddDirectories",
    "AddRules",
    "Destination",
    "OtherUpdate",
    "PermissionRule",
    "PermissionUpdate",
    "RemoveDirectories",
    "RemoveRules",
    "ReplaceRules",
    "RuleBehavior",
    "SetMode",
    "parse_update",
    "text_or_empty",
]


class Destination(enum.StrEnum):
    """Where a change of the permissions is kept.

    ``SESSION`` is the running session, and is gone with it; ``LOCAL_SETTINGS`` the project's
    ``.claude/settings.local.json``, which the CLI writes.
    """

    SESSION = "session"
    LOCAL_SETTINGS = "localSettings"
    PROJECT_SETTINGS = "projectSettings"
    USER_SETTINGS = "userSettings"
    CLI_ARG = "cliArg"


class RuleBehavior(enum.StrEnum):
    """What a rule does with the calls that it fits."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@final
@frozen(kw_only=True)
class PermissionRule:
    """A tool, or some of its calls: ``Bash`` with the content ``npm run *``, for example.

    Attributes:
      tool_name: The tool.
      rule_content: Which of its calls; None for every one.
      raw: The rule as it came, with the fields that we do not know; empty if it is yours.
    """

    tool_name: str
    rule_content: str | None = None
    raw: Mapping[str, object] = field(factory=dict[str, object], eq=False, repr=False)

    def to_wire(self) -> dict[str, object]:
        """Return the rule as the CLI spells it."""
        wire: dict[str, object] = {**self.raw, "toolName": self.tool_name}
        wire.pop("ruleContent", None)
        return wire if self.rule_content is None else {**wire, "ruleContent": self.rule_content}


@frozen(kw_only=True)
class _Update:
    _type: ClassVar[str]
    destination: Destination
    # The update as it came, with the fields that we do not know; empty if it is yours.
    raw: Mapping[str, object] = field(factory=dict[str, object], eq=False, repr=False)

    def to_wire(self) -> dict[str, object]:
        """Return the update as the CLI spells it."""
        return {**self.raw, "type": self._type, "destination": self.destination.value}


@frozen(kw_only=True)
class _RulesUpdate(_Update):
    rules: tuple[PermissionRule, ...]
    behavior: RuleBehavior

    def to_wire(self) -> dict[str, object]:
        rules = [rule.to_wire() for rule in self.rules]
        return {**super().to_wire(), "rules": rules, "behavior": self.behavior.value}


@final
class AddRules(_RulesUpdate):
    """Add rules."""

    _type = "addRules"


@final
class ReplaceRules(_RulesUpdate):
    """Put rules in the place of all that have the same behavior and destination."""

    _type = "replaceRules"


@final
class RemoveRules(_RulesUpdate):
    """Remove rules."""

    _type = "removeRules"


@frozen(kw_only=True)
class _DirectoriesUpdate(_Update):
    directories: tuple[str, ...]

    def to_wire(self) -> dict[str, object]:
        return {**super().to_wire(), "directories": list(self.directories)}


@final
class AddDirectories(_DirectoriesUpdate):
    """Let the tools work in more directories."""

    _type = "addDirectories"


@final
class RemoveDirectories(_DirectoriesUpdate):
    """Take directories away from the tools."""

    _type = "removeDirectories"


@final
@frozen(kw_only=True)
class SetMode(_Update):
    """Change the permission mode, to ``acceptEdits`` for example."""

    _type = "setMode"
    mode: str

    def to_wire(self) -> dict[str, object]:
        """Return the update as the CLI spells it."""
        return {**super().to_wire(), "mode": self.mode}


@final
@frozen(kw_only=True)
class OtherUpdate:
    """An update of a kind or a shape that we do not know.  It can be sent back as it came."""

    raw: Mapping[str, object]

    def to_wire(self) -> dict[str, object]:
        """Return the update as it came."""
        return dict(self.raw)


PermissionUpdate: TypeAlias = (
    AddRules
    | ReplaceRules
    | RemoveRules
    | SetMode
    | AddDirectories
    | RemoveDirectories
    | OtherUpdate
)
"""A change of the permissions: offered by the CLI, or sent along with an `Allow`."""

_RULES: Final[dict[str, type[AddRules | ReplaceRules | RemoveRules]]] = {
    "addRules": AddRules,
    "replaceRules": ReplaceRules,
    "removeRules": RemoveRules,
}
_DIRECTORIES: Final[dict[str, type[AddDirectories | RemoveDirectories]]] = {
    "addDirectories": AddDirectories,
    "removeDirectories": RemoveDirectories,
}


def parse_update(raw: Mapping[str, object]) -> PermissionUpdate:
    """Read an update that the CLI offers.  Nothing is an error, and `to_wire` gives it back."""
    try:
        update = _parse_update(raw)
    except ValueError:  # An enum does not know the word.
        return OtherUpdate(raw=raw)
    return update if update.to_wire() == raw else OtherUpdate(raw=raw)


def _parse_update(raw: Mapping[str, object]) -> PermissionUpdate:
    kind, destination = (
        text_or_empty(raw.get("type")),
        Destination(text_or_empty(raw.get("destination"))),
    )
    if kind in _RULES:
        rules = tuple(_rule(object_or_empty(rule)) for rule in list_or_empty(raw.get("rules")))
        behavior = RuleBehavior(text_or_empty(raw.get("behavior")))
        return _RULES[kind](rules=rules, behavior=behavior, destination=destination, raw=raw)
    if kind in _DIRECTORIES:
        directories = tuple(map(text_or_empty, list_or_empty(raw.get("directories"))))
        return _DIRECTORIES[kind](directories=directories, destination=destination, raw=raw)
    if kind == "setMode":
        return SetMode(mode=text_or_empty(raw.get("mode")), destination=destination, raw=raw)
    return OtherUpdate(raw=raw)


def _rule(raw: Mapping[str, object]) -> PermissionRule:
    name, content = (
        text_or_empty(raw.get("toolName")),
        text_or_empty(raw.get("ruleContent")) or None,
    )
    return PermissionRule(tool_name=name, rule_content=content, raw=raw)


def text_or_empty(value: object) -> str:
    """Return ``value`` if it is a string."""
    return value if isinstance(value, str) else ""
