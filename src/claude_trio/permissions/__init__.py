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
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final

from claude_trio._ndjson import list_or_empty, object_or_empty
from claude_trio._values import field, frozen
from claude_trio.permissions._updates import (
    AddDirectories,
    AddRules,
    Destination,
    OtherUpdate,
    PermissionRule,
    PermissionUpdate,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    RuleBehavior,
    SetMode,
    parse_update,
    text_or_empty,
)

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


@final
@frozen(kw_only=True)
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
    raw: Mapping[str, object] = field(factory=dict[str, object], repr=False)
    """Everything that came."""

    # Hidden from type checkers, which would take any misspelt attribute for one of these.
    if not TYPE_CHECKING:  # pragma: no branch

        def __getattr__(self, name: str) -> object:
            # Of one that came, an attribute is read when it is asked for first.
            read, held = _READ.get(name), self.__dict__
            if read is None or "raw" not in held:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = held[name] = read(held["raw"].get(name))
            return value

    @functools.cached_property
    def suggestions(self) -> tuple[PermissionUpdate, ...]:
        """Updates that a person could be offered ("always allow"), for `Allow`."""
        offered = map(object_or_empty, list_or_empty(self.raw.get("permission_suggestions")))
        return tuple(map(parse_update, offered))

    @classmethod
    def from_request(cls, request_id: str, request: Mapping[str, object]) -> PermissionRequest:
        """Read a ``can_use_tool`` request.  What is missing or odd counts as not given."""
        made = object.__new__(cls)
        vars(made).update(id=request_id, raw=request)
        return made


def _optional_text(value: object) -> str | None:
    return text_or_empty(value) or None


# What makes an attribute of what the request has under the same name.
_READ: Final[dict[str, Callable[[object], object]]] = {
    "tool_name": text_or_empty,
    "input": object_or_empty,
    "tool_use_id": _optional_text,
    "agent_id": _optional_text,
    "title": _optional_text,
    "display_name": _optional_text,
    "description": _optional_text,
    "decision_reason": _optional_text,
    "decision_reason_type": _optional_text,
    "blocked_path": _optional_text,
    "requires_user_interaction": lambda value: value is True,
    "mcp_server": lambda value: _optional_text(object_or_empty(value).get("name")),
}


def _check_type(value: object, expected: type | UnionType, what: str) -> None:
    if not isinstance(value, expected):
        raise TypeError(f"{what}, not {value!r}")


@final
@frozen
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
@frozen
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
    interrupt: bool = field(default=False, kw_only=True)

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
@frozen
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


# Tracebacks, pickles and the documentation name the place that programs import from.
for _name in __all__:
    _exported = globals()[_name]
    if getattr(_exported, "__module__", "").startswith(__name__):
        _exported.__module__ = __name__
