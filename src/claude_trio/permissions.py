"""Who may use a tool: the CLI's requests, the decisions on them, and ready-made policies.

A handler is one async function from a `PermissionRequest` to a `Decision`::

    async def guard(request: PermissionRequest) -> Allow | Deny:
        return Allow() if request.tool_name == "Read" else Deny("read only")

A `Policy` is a handler that may have no opinion on a request.  `first_of` asks one after the
other, and the first opinion counts.  One rule covers the rest: what nobody has an opinion on is
denied.  So ``deny_tools("Bash")`` alone allows nothing, and
``first_of(deny_tools("Bash"), allow_all)`` allows everything else.

A handler is asked only what the CLI itself would ask a person.  An allow rule, a read-only shell
command and some permission modes never ask; a ``PreToolUse`` hook sees every call.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias, final

import attrs

from claude_trio._ndjson import list_or_empty, object_or_empty

if TYPE_CHECKING:
    from types import UnionType

__all__ = [
    "DEFER",
    "AddDirectories",
    "AddRules",
    "Allow",
    "Decision",
    "Defer",
    "Deny",
    "Destination",
    "OtherUpdate",
    "PermissionHandler",
    "PermissionOpinion",
    "PermissionRequest",
    "PermissionRule",
    "PermissionUpdate",
    "Policy",
    "RemoveDirectories",
    "RemoveRules",
    "ReplaceRules",
    "RuleBehavior",
    "SetMode",
    "allow_all",
    "allow_tools",
    "deny_all",
    "deny_tools",
    "first_of",
    "parse_update",
    "to_response",
]


class Destination(enum.StrEnum):
    """Where a change of the permissions is kept."""

    SESSION = "session"
    """In the running session, and gone with it."""
    LOCAL_SETTINGS = "localSettings"
    """In the project's ``.claude/settings.local.json``, which the CLI writes."""
    PROJECT_SETTINGS = "projectSettings"
    USER_SETTINGS = "userSettings"
    CLI_ARG = "cliArg"


class RuleBehavior(enum.StrEnum):
    """What a rule does with the calls that it fits."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@final
@attrs.frozen(kw_only=True)
class PermissionRule:
    """A tool, or some of its calls: ``Bash`` with the content ``npm run *``, for example."""

    tool_name: str
    rule_content: str | None = None
    """None for every call of the tool."""
    raw: Mapping[str, object] = attrs.field(factory=dict[str, object], eq=False, repr=False)
    """The rule as it came, with the fields that we do not know; empty if it is yours."""

    def to_wire(self) -> dict[str, object]:
        """Return the rule as the CLI spells it."""
        wire: dict[str, object] = {**self.raw, "toolName": self.tool_name}
        wire.pop("ruleContent", None)
        return wire if self.rule_content is None else {**wire, "ruleContent": self.rule_content}


@attrs.frozen(kw_only=True)
class _Update:
    _type: ClassVar[str]
    destination: Destination
    raw: Mapping[str, object] = attrs.field(factory=dict[str, object], eq=False, repr=False)
    """The update as it came, with the fields that we do not know; empty if it is yours."""

    def to_wire(self) -> dict[str, object]:
        """Return the update as the CLI spells it."""
        return {**self.raw, "type": self._type, "destination": self.destination.value}


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
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
@attrs.frozen(kw_only=True)
class SetMode(_Update):
    """Change the permission mode, to ``acceptEdits`` for example."""

    _type = "setMode"
    mode: str

    def to_wire(self) -> dict[str, object]:
        """Return the update as the CLI spells it."""
        return {**super().to_wire(), "mode": self.mode}


@final
@attrs.frozen(kw_only=True)
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
    kind, destination = _text(raw.get("type")), Destination(_text(raw.get("destination")))
    if kind in _RULES:
        rules = tuple(_rule(object_or_empty(rule)) for rule in list_or_empty(raw.get("rules")))
        behavior = RuleBehavior(_text(raw.get("behavior")))
        return _RULES[kind](rules=rules, behavior=behavior, destination=destination, raw=raw)
    if kind in _DIRECTORIES:
        directories = tuple(map(_text, list_or_empty(raw.get("directories"))))
        return _DIRECTORIES[kind](directories=directories, destination=destination, raw=raw)
    if kind == "setMode":
        return SetMode(mode=_text(raw.get("mode")), destination=destination, raw=raw)
    return OtherUpdate(raw=raw)


def _rule(raw: Mapping[str, object]) -> PermissionRule:
    name, content = _text(raw.get("toolName")), _text(raw.get("ruleContent")) or None
    return PermissionRule(tool_name=name, rule_content=content, raw=raw)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


@final
@attrs.frozen(kw_only=True)
class PermissionRequest:
    """The CLI asks whether a tool may be used."""

    id: str
    """The id of the request, for `Session.answer_permission`."""
    tool_name: str
    input: Mapping[str, object]
    """What the tool is called with."""
    tool_use_id: str | None = None
    agent_id: str | None = None
    """The task id of the subagent that asks; None for the main thread."""
    title: str | None = None
    display_name: str | None = None
    description: str | None = None
    decision_reason: str | None = None
    """Why the CLI asks, in its own words."""
    decision_reason_type: str | None = None
    """What made it ask: ``rule``, ``hook``, ``workingDir``, ``safetyCheck``, and others."""
    blocked_path: str | None = None
    """The path that made it ask."""
    requires_user_interaction: bool = False
    """A person has to answer: the tool is itself a question, or a plan to approve."""
    mcp_server: str | None = None
    """The name of the MCP server that the tool belongs to."""
    raw: Mapping[str, object] = attrs.field(factory=dict[str, object], repr=False)
    """Everything that came."""

    @functools.cached_property
    def suggestions(self) -> tuple[PermissionUpdate, ...]:
        """Updates that a person could be offered ("always allow"), for `Allow`."""
        offered = map(object_or_empty, list_or_empty(self.raw.get("permission_suggestions")))
        return tuple(map(parse_update, offered))

    @classmethod
    def from_request(cls, request_id: str, request: Mapping[str, object]) -> PermissionRequest:
        """Read a ``can_use_tool`` request.  What is missing or odd counts as not given."""

        def text(name: str) -> str | None:
            return _text(request.get(name)) or None

        return cls(
            id=request_id,
            tool_name=_text(request.get("tool_name")),
            input=object_or_empty(request.get("input")),
            tool_use_id=text("tool_use_id"),
            agent_id=text("agent_id"),
            title=text("title"),
            display_name=text("display_name"),
            description=text("description"),
            decision_reason=text("decision_reason"),
            decision_reason_type=text("decision_reason_type"),
            blocked_path=text("blocked_path"),
            requires_user_interaction=request.get("requires_user_interaction") is True,
            mcp_server=_text(object_or_empty(request.get("mcp_server")).get("name")) or None,
            raw=request,
        )


def _check_type(value: object, expected: type | UnionType, what: str) -> None:
    if not isinstance(value, expected):
        raise TypeError(f"{what}, not {value!r}")


@final
@attrs.frozen
class Allow:
    """Let the call run.

    Attributes:
      updated_input: What the tool is called with instead of its own input.  The conversation
        keeps the model's own.
      updated_permissions: Changes that come with it, for example one of the suggestions.

    Raises:
      TypeError: if an argument is of another type, so that a mistake shows where it was made.
    """

    updated_input: Mapping[str, object] | None = None
    updated_permissions: Sequence[PermissionUpdate] = ()

    def __attrs_post_init__(self) -> None:
        _check_type(self.updated_input, Mapping | None, "the input of a tool is a mapping")
        for update in self.updated_permissions:
            _check_type(update, PermissionUpdate, "expected a PermissionUpdate")


@final
@attrs.frozen
class Deny:
    """Do not let the call run.

    Attributes:
      message: What the model is told.
      interrupt: Whether the turn ends as well.

    Raises:
      ValueError: if ``message`` is empty.
      TypeError: if it is no string.
    """

    message: str
    interrupt: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        _check_type(self.message, str, "the message of a denial is a string")
        # The CLI takes a denial without a message for an invalid answer.
        if not self.message.strip():
            raise ValueError("a denial needs a message for the model")


@final
class Defer(enum.Enum):
    """The type of `DEFER`."""

    DEFER = "defer"


DEFER: Final = Defer.DEFER
"""Answer later, by `Session.answer_permission`.  Until then the call waits."""

Decision: TypeAlias = Allow | Deny | Defer
"""What a handler says about a request."""


class PermissionHandler(Protocol):
    """Decide on each request: what ``on_permission`` takes."""

    def __call__(self, request: PermissionRequest, /) -> Awaitable[Decision]:
        """Decide on one request.  Several may be open at the same time."""
        ...


PermissionOpinion: TypeAlias = Callable[[PermissionRequest], Awaitable[Decision | None]]
"""Decide on some requests, and return None for the others.  Every handler is one."""


def to_response(decision: Decision, request: PermissionRequest) -> dict[str, object]:
    """Return the answer to a request as the CLI wants it.

    Raises:
      ValueError: if ``decision`` is `DEFER`, which is no answer.
      TypeError: if ``decision`` is no decision.
    """
    match decision:
        case Allow():
            # Some versions want the input also when it is unchanged.
            changed = request.input if decision.updated_input is None else decision.updated_input
            response: dict[str, object] = {"behavior": "allow", "updatedInput": dict(changed)}
            if decision.updated_permissions:
                updates = [update.to_wire() for update in decision.updated_permissions]
                response["updatedPermissions"] = updates
            return response
        case Deny():
            response = {"behavior": "deny", "message": decision.message}
            return {**response, "interrupt": True} if decision.interrupt else response
        case Defer():
            raise ValueError("DEFER leaves the request open: it is no answer")
        case _:
            raise TypeError(f"expected Allow, Deny or DEFER, not {decision!r}")


async def deny_all(request: PermissionRequest) -> Deny:
    """Deny every call."""
    return Deny(f"This session does not allow {request.tool_name or 'this tool'}.")


async def allow_all(_request: PermissionRequest) -> Allow:
    """Allow every call."""
    return Allow()


@final
@attrs.frozen
class Policy:
    """A handler that may have no opinion on a request, and then denies it.

    Within `first_of` it passes the request on instead.

    Args:
      opinion: An async function that decides, or returns None.
    """

    opinion: PermissionOpinion

    async def __call__(self, request: PermissionRequest, /) -> Decision:
        """Decide on one request; deny what there is no opinion on."""
        decision = await self.opinion(request)
        return await deny_all(request) if decision is None else decision


def first_of(*handlers: PermissionOpinion) -> Policy:
    """Make a policy of several: the first that has an opinion decides.

    Args:
      handlers: Policies, handlers, and async functions that return None for what they leave to
        the next.  A plain handler always has an opinion, so what stands behind it is never asked.
    """

    async def opinion(request: PermissionRequest) -> Decision | None:
        for handler in handlers:
            ask = handler.opinion if isinstance(handler, Policy) else handler
            decision = await ask(request)
            if decision is not None:
                return decision
        return None

    return Policy(opinion)


def allow_tools(*names: str) -> Policy:
    """Make a policy that allows some tools, and has no opinion on others.

    Args:
      names: The tools' names; one that ends with ``*`` stands for all that begin so, for example
        ``mcp__files__*``.

    Raises:
      ValueError: if a name can fit no tool, such as the rule ``Bash(git *)``.
    """
    return _on_tools(names, Allow())


def deny_tools(*names: str, message: str = "This tool is not allowed here.") -> Policy:
    """Make a policy that denies some tools, and has no opinion on others.

    Args:
      names: The tools' names, as for `allow_tools`.
      message: What the model is told; must not be empty.

    Raises:
      ValueError: if a name can fit no tool, or ``message`` is empty.
    """
    return _on_tools(names, Deny(message))


# The CLI calls the same tool by the first name in its list of tools, and by the second in every
# request.
_TWO_NAMES: Final = {"Task": "Agent"}


def _on_tools(names: Iterable[str], decision: Allow | Deny) -> Policy:
    for name in names:
        _check_type(name, str, "expected the name of a tool")
        if not name or "(" in name or "*" in name[:-1] or name != name.strip():
            raise ValueError(f"{name!r} is not the name of a tool")
    exact = {_TWO_NAMES.get(name, name) for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))

    async def opinion(request: PermissionRequest) -> Decision | None:
        name = _TWO_NAMES.get(request.tool_name, request.tool_name)
        return decision if name in exact or name.startswith(prefixes) else None

    return Policy(opinion)
