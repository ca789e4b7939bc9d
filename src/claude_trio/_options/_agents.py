"""Agents that a session brings along, besides those of the CLI and of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast, final

from claude_trio._options import _check as check
from claude_trio._options._convert import json_mapping, plain, servers, words
from claude_trio._values import field, fields_of, frozen

__all__ = ["AgentDefinition", "Agents", "agents"]


@final
@frozen(kw_only=True)
class AgentDefinition:
    """One kind of agent that the model may start, or that the session itself is.

    None leaves a property to the CLI, an empty sequence says "none".
    """

    description: str = field(validator=check.argument)
    """When to use the agent, for the model that decides it."""
    prompt: str = field(validator=check.argument)
    """Its system prompt."""
    tools: tuple[str, ...] | None = field(default=None, converter=words, validator=check.blocks)
    """The tools that it has; by default those of whoever starts it."""
    disallowed_tools: tuple[str, ...] | None = field(
        default=None, converter=words, validator=check.blocks
    )
    """The tools that it does not have."""
    model: str | None = field(default=None, converter=plain, validator=check.argument)
    """An alias, a model's id or ``"inherit"``."""
    mcp_servers: tuple[str | Mapping[str, object], ...] | None = field(
        default=None, converter=servers
    )
    """Names of servers, or their configurations."""
    skills: tuple[str, ...] | None = field(default=None, converter=words, validator=check.blocks)
    """The skills that its context begins with."""
    max_turns: int | None = field(default=None, validator=check.counted(1))
    """How often it may call the model."""
    background: bool | None = field(default=None, validator=check.tristate)
    """Whether it always runs in the background."""
    effort: str | int | None = None
    """How hard it thinks."""
    permission_mode: str | None = field(default=None, converter=plain, validator=check.argument)
    """Its permission mode."""
    memory: str | None = field(default=None, converter=plain, validator=check.argument)
    """Whose memory it keeps: ``"user"``, ``"project"`` or ``"local"``."""
    initial_prompt: str | None = field(default=None, validator=check.prose)
    """The first prompt, if the session itself is this agent."""
    omit_claude_md: bool | None = field(default=None, validator=check.tristate)
    """Whether it works without the ``CLAUDE.md`` files."""
    auto_compact_window: int | None = field(default=None, validator=check.counted(1))
    """The tokens at which it compacts its conversation."""
    observer: str | None = field(default=None, validator=check.argument)
    """The agent that watches it in the background."""
    observer_message: str | None = field(default=None, validator=check.prose)
    """What is added to each digest for the observer."""


Agents: TypeAlias = Mapping[str, Mapping[str, object]]


def _key(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _definition(agent: AgentDefinition | Mapping[str, object]) -> Mapping[str, object]:
    if not isinstance(agent, AgentDefinition):
        return agent
    values = {name: getattr(agent, name) for name in fields_of(AgentDefinition)}
    return {_key(name): value for name, value in values.items() if value is not None}


def agents(
    value: Mapping[str, AgentDefinition | Mapping[str, object]] | None,
) -> Agents | None:
    """Spell definitions as the CLI does."""
    if not isinstance(value, Mapping):
        return value
    spelled = {name: _definition(agent) for name, agent in value.items()}
    return cast("Agents", json_mapping(spelled))
