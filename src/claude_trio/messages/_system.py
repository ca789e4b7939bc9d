"""What the CLI says of itself: what it is, what it does, and what it is about to try again.

Facts: CLI 2.1.332, or its SDK's types where no such frame has been seen (marked "types").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from claude_trio._values import field, frozen

from ._base import SessionFrame

__all__ = [
    "ApiRetry",
    "CommandsChanged",
    "CompactBoundary",
    "InitMessage",
    "ModelFallback",
    "ModelRefusalFallback",
    "ModelRefusalNoFallback",
    "SessionStateChanged",
    "SessionTitleChanged",
    "StatusMessage",
    "ThinkingTokens",
]


@frozen(kw_only=True, eq=False, repr=False)
class InitMessage(SessionFrame):
    """A turn begins; every turn has one, whoever started it.

    Attributes:
      cwd: The working directory.
      original_cwd: The one that the session began in.
      additional_directories: Further directories that it may work in.
      model: The model.
      permission_mode: ``default``, ``acceptEdits``, ``bypassPermissions``, ``plan``, ``dontAsk``,
        ``auto``.
      tools: The tools; ``Task`` stands for the one whose calls are named ``Agent``.
      mcp_servers: For each MCP server ``name``, ``status`` and ``source``.
      mcp_server_errors: What went wrong with MCP servers.
      slash_commands: The slash commands, without the slash.
      terminal_slash_commands: Those among them that make sense in a terminal only.
      agents: The types of subagents.
      skills: The skills.
      plugins: For each plugin ``name``, ``path``, ``source`` and perhaps ``version``.
      plugin_errors: What went wrong with plugins: ``plugin``, ``type``, ``message``.
      capabilities: Words for what this CLI can do beyond the first of its kind.
      api_key_source: Where the credential comes from: ``ANTHROPIC_API_KEY``, ``apiKeyHelper``,
        ``/login managed key``, ``none``.
      claude_code_version: The CLI's version.
      output_style: The style of answers.
      betas: Beta features of the API (types).
      effort: The effort of the next answer (types).
      fast_mode_state: ``off``, ``cooldown``, ``on``.
      fast_mode_disabled_reason: Why fast mode is off.
      memory_paths: Where memory is kept.
      messaging_socket_path: The socket for messages between sessions.
      sandbox_enabled: Whether commands run in a sandbox.
      analytics_disabled: Whether nothing is counted.
      product_feedback_disabled: Whether nobody is asked for feedback.
      served_by_anthropic: Whether the model is Anthropic's own API's.
      per_turn_effort_active: Whether the effort is chosen for each turn.
      ultrathink_available: Whether the word raises the effort.
      ultrathink_typed_raises: Whether it does so in a prompt that was typed.
      view_mode: How much a terminal would show.
      user_message_uuids: The prompts that the turn answers.
    """

    cwd: str | None = None
    original_cwd: str | None = None
    additional_directories: tuple[str, ...] = ()
    model: str | None = None
    permission_mode: str | None = None
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[Mapping[str, object], ...] = ()
    mcp_server_errors: tuple[object, ...] = ()
    slash_commands: tuple[str, ...] = ()
    terminal_slash_commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    plugins: tuple[Mapping[str, object], ...] = ()
    plugin_errors: tuple[Mapping[str, object], ...] = ()
    capabilities: tuple[str, ...] = ()
    api_key_source: str | None = None
    claude_code_version: str | None = None
    output_style: str | None = None
    betas: tuple[str, ...] = ()
    effort: str | None = None
    fast_mode_state: str | None = None
    fast_mode_disabled_reason: str | None = None
    memory_paths: Mapping[str, object] = field(factory=dict)
    messaging_socket_path: str | None = None
    sandbox_enabled: bool = False
    analytics_disabled: bool = False
    product_feedback_disabled: bool = False
    served_by_anthropic: bool = False
    per_turn_effort_active: bool = False
    ultrathink_available: bool = False
    ultrathink_typed_raises: bool = False
    view_mode: str | None = None
    user_message_uuids: tuple[str, ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class StatusMessage(SessionFrame):
    """What the CLI is doing just now, or a change of the permission mode.

    Attributes:
      status: ``requesting`` (a call of the model begins; with partial messages only),
        ``compacting``, or None for neither.
      permission_mode: The mode, if it has changed.
      compact_result: After a compaction: ``success`` or ``failed``.
      compact_error: Why it failed.
      compact_output_chars: How long the summary is, in characters.
      user_message_uuids: The prompts that the turn answers.
    """

    status: str | None = None
    permission_mode: str | None = None
    compact_result: str | None = None
    compact_error: str | None = None
    compact_output_chars: int | None = None
    user_message_uuids: tuple[str, ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class SessionStateChanged(SessionFrame):
    """Whether the session is at work.  It is sent only if the environment asks for it.

    Attributes:
      state: ``running`` (a turn, an agent, or a turn that is owed), ``requires_action`` (a
        permission or an elicitation is open) or ``idle`` (none of these).
      sdk_host_only: Whether it is meant for a library like this one.
    """

    state: str
    sdk_host_only: bool = False


@frozen(kw_only=True, eq=False, repr=False)
class SessionTitleChanged(SessionFrame):
    """The session has a new title.

    Attributes:
      title: The title.
    """

    title: str


@frozen(kw_only=True, eq=False, repr=False)
class CommandsChanged(SessionFrame):
    """The slash commands have changed (types).

    Attributes:
      commands: All of them, in place of those before: ``name``, ``description``,
        ``argumentHint`` and others.
    """

    commands: tuple[Mapping[str, object], ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class CompactBoundary(SessionFrame):
    """What was said before has been replaced by a summary.

    Attributes:
      trigger: ``manual`` or ``auto``.
      pre_tokens: The tokens of the context before.
      post_tokens: And after.
      cumulative_dropped_tokens: The tokens dropped since the session began.
      duration_ms: How long it took, in milliseconds.
      preserved_segment: Which messages stay: ``head_uuid``, ``anchor_uuid``, ``tail_uuid``.
      preserved_messages: The same one by one: ``anchor_uuid``, ``uuids``, ``all_uuids``.
      logical_parent_uuid: The last message before it.
    """

    _inner: ClassVar[str | None] = "compact_metadata"

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    cumulative_dropped_tokens: int | None = None
    duration_ms: float | None = None
    preserved_segment: Mapping[str, object] | None = None
    preserved_messages: Mapping[str, object] | None = None
    logical_parent_uuid: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ApiRetry(SessionFrame):
    """A call of the API failed and will be tried again.

    Attributes:
      attempt: Which attempt comes next, from 1.
      max_retries: How many there are.
      retry_delay_ms: How long it waits, in milliseconds.
      error_status: The HTTP status; None if there was no answer.
      error: The category, as in `AssistantMessage.error`.
      no_response: If the API did not answer in time: ``waited_ms``, ``retry_wait_ms`` (types).
    """

    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None
    error: str | None = None
    no_response: Mapping[str, object] | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ModelFallback(SessionFrame):
    """The CLI goes on with the fallback model.

    Attributes:
      trigger: Why: ``overloaded``.
      original_model: The model that was asked for.
      fallback_model: The model that answers now.
      content: The same for people.
    """

    trigger: str | None = None
    original_model: str | None = None
    fallback_model: str | None = None
    content: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ModelRefusalFallback(SessionFrame):
    """The model refused, and another one is asked (types).

    Attributes:
      trigger: ``refusal``.
      direction: ``retry``.
      scope: ``session`` (the session's model has changed) or ``local`` (this answer only).
      original_model: The model that refused.
      fallback_model: The model that is asked.
      request_id: The API's id of the refused request.
      api_refusal_category: The API's category.
      api_refusal_explanation: The API's words; for display only.
      retracted_message_uuids: The messages to remove.
      refused_user_message_uuid: The prompt that was refused.
      content: The same for people.
    """

    trigger: str | None = None
    direction: str | None = None
    scope: str | None = None
    original_model: str | None = None
    fallback_model: str | None = None
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    retracted_message_uuids: tuple[str, ...] = ()
    refused_user_message_uuid: str | None = None
    content: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ModelRefusalNoFallback(SessionFrame):
    """The model refused, and no other is asked (types).

    Attributes:
      original_model: The model that refused.
      request_id: The API's id of the refused request.
      api_refusal_category: The API's category.
      api_refusal_explanation: The API's words; for display only.
      refused_user_message_uuid: The prompt that was refused.
      content: The same for people.
    """

    original_model: str | None = None
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    refused_user_message_uuid: str | None = None
    content: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ThinkingTokens(SessionFrame):
    """An estimate of how much the model has thought (with partial messages).

    Attributes:
      estimated_tokens: The tokens of the thought so far.
      estimated_tokens_delta: Those that have come since the last estimate.
      user_message_uuid: The prompt that the turn answers.
    """

    estimated_tokens: int | None = None
    estimated_tokens_delta: int | None = None
    user_message_uuid: str | None = None
