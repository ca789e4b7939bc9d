"""What the CLI tells in passing: to people, about hooks, and of what went wrong beside the turn.

Facts: CLI 2.1.332, or its SDK's types where no such frame has been seen (marked "types").
"""

from __future__ import annotations

from collections.abc import Mapping

from claude_trio._values import field, frozen

from ._base import SessionFrame

__all__ = [
    "ControlRequestProgress",
    "ElicitationComplete",
    "FilesPersisted",
    "HookProgress",
    "HookResponse",
    "HookStarted",
    "Informational",
    "LocalCommandOutput",
    "MemoryRecall",
    "MirrorError",
    "Notification",
    "PermissionDenied",
    "PluginInstall",
    "SessionWritesLost",
    "WorkerShuttingDown",
]


@frozen(kw_only=True, eq=False, repr=False)
class PermissionDenied(SessionFrame):
    """A tool call was denied without asking.

    Advice only: what counts is `ResultMessage.permission_denials`.

    Attributes:
      tool_name: The tool.
      tool_use_id: The call.
      message: What the model was told.
      decision_reason_type: Who decided: ``mode``, ``rule``, ``classifier``, ``asyncAgent``...
      decision_reason: Why, in words.
      decision_reason_code: Why, as a code.
      agent_id: The subagent that made the call.
    """

    tool_name: str
    tool_use_id: str | None = None
    message: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    decision_reason_code: str | None = None
    agent_id: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class Informational(SessionFrame):
    """A line for people, such as why a hook blocked a prompt.

    Attributes:
      content: The line.
      level: ``info``, ``notice``, ``suggestion`` or ``warning``.
      prevent_continuation: Whether the turn stops here.
      prompt_submit_outcome: If a hook stopped the prompt: ``kind`` (``blocked_by_hook``),
        ``prompt_kept``, ``reason``.
      tool_use_id: The call that it is about.
      tag: A word that some hosts know; ignore what you do not.
      is_meta: Whether it is about the conversation rather than in it.
    """

    content: str
    level: str | None = None
    prevent_continuation: bool = False
    prompt_submit_outcome: Mapping[str, object] | None = None
    tool_use_id: str | None = None
    tag: str | None = None
    is_meta: bool = False


@frozen(kw_only=True, eq=False, repr=False)
class Notification(SessionFrame):
    """A short notice for people.

    Attributes:
      text: The notice.
      key: Which one it is; a newer one replaces an older one of the same key.
      priority: ``low``, ``medium``, ``high`` or ``immediate``.
      color: How to colour it.
      timeout_ms: How long to show it, in milliseconds.
    """

    text: str
    key: str | None = None
    priority: str | None = None
    color: str | None = None
    timeout_ms: float | None = None


@frozen(kw_only=True, eq=False, repr=False)
class LocalCommandOutput(SessionFrame):
    """The output of a slash command that the CLI runs by itself (types).

    Attributes:
      content: The output.
    """

    content: str


@frozen(kw_only=True, eq=False, repr=False)
class HookStarted(SessionFrame):
    """A hook of the settings begins.  Hooks that are callbacks of the host have no such frames.

    Attributes:
      hook_id: This run of it.
      hook_name: Event and matcher, such as ``PreToolUse:Bash``.
      hook_event: The event.
    """

    hook_id: str
    hook_name: str | None = None
    hook_event: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class HookProgress(SessionFrame):
    """A hook of the settings has written something (types).

    Attributes:
      hook_id: This run of it.
      hook_name: Event and matcher.
      hook_event: The event.
      output: What it has written.
      stdout: What of it went to stdout.
      stderr: What of it went to stderr.
    """

    hook_id: str
    hook_name: str | None = None
    hook_event: str | None = None
    output: str | None = None
    stdout: str | None = None
    stderr: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class HookResponse(SessionFrame):
    """A hook of the settings has ended.

    Attributes:
      hook_id: This run of it.
      hook_name: Event and matcher.
      hook_event: The event.
      output: What it wrote.
      stdout: What of it went to stdout.
      stderr: What of it went to stderr.
      exit_code: Its exit code.
      outcome: ``success``, ``error`` or ``cancelled``.
    """

    hook_id: str
    hook_name: str | None = None
    hook_event: str | None = None
    output: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    outcome: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ControlRequestProgress(SessionFrame):
    """A control request that takes time is being worked on.

    Attributes:
      request_id: The request, one of the host's own.
      status: ``started``, or ``api_retry`` with the attributes below, as in `ApiRetry`.
      attempt: Which attempt comes next.
      max_retries: How many there are.
      retry_delay_ms: How long it waits, in milliseconds.
      error_status: The HTTP status.
    """

    request_id: str
    status: str | None = None
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ElicitationComplete(SessionFrame):
    """An MCP server says that what it asked for on a web page is done (types).

    Attributes:
      mcp_server_name: The server.
      elicitation_id: What it asked for.
    """

    mcp_server_name: str | None = None
    elicitation_id: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class FilesPersisted(SessionFrame):
    """Files were stored (types).

    Attributes:
      files: Those that were: ``filename``, ``file_id``.
      failed: Those that were not: ``filename``, ``error``.
      processed_at: When.
    """

    files: tuple[Mapping[str, object], ...] = ()
    failed: tuple[Mapping[str, object], ...] = ()
    processed_at: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class MemoryRecall(SessionFrame):
    """Memories were put before the model (types).

    Attributes:
      mode: ``select`` (whole files) or ``synthesize`` (a summary of many).
      memories: Which: ``path``, ``scope`` and perhaps ``content``.
    """

    mode: str | None = None
    memories: tuple[Mapping[str, object], ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class PluginInstall(SessionFrame):
    """A plugin is being installed (types).

    Attributes:
      status: ``started``, ``installed``, ``failed`` or ``completed``.
      name: Whose.
      error: Why it failed; raw text.
    """

    status: str | None = None
    name: str | None = None
    error: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class MirrorError(SessionFrame):
    """Entries of the transcript could not be mirrored (types).

    Attributes:
      error: Why.
      key: Whose they are: ``projectKey``, ``sessionId`` and perhaps ``subpath``.
    """

    error: str | None = None
    key: Mapping[str, object] = field(factory=dict)


@frozen(kw_only=True, eq=False, repr=False)
class SessionWritesLost(SessionFrame):
    """The disk was full: as the CLI ends, it says what it could not save (types).

    Attributes:
      error_code: ``ENOSPC`` or ``EDQUOT``.
      lost: What: ``transcript``, ``global_config``.
      transcript_session_ids: Whose transcripts.
    """

    error_code: str | None = None
    lost: tuple[str, ...] = ()
    transcript_session_ids: tuple[str, ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class WorkerShuttingDown(SessionFrame):
    """The CLI ends on purpose (types).

    Attributes:
      reason: Why, such as ``host_exit``.
    """

    reason: str | None = None
