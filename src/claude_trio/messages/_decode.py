"""From a line, or the object on it, to the message that it is.

Events of the stream are most of what comes, and are decoded straight into their class for the
price of a dict.  They are told by how the line begins.  Everything else becomes a dict first: the
order of keys is arbitrary, and a result of CLI 2.1.332 does not begin with its type.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from ._base import of_wire, set_source
from ._control import ControlCancelRequest, ControlRequest, ControlResponse, KeepAlive
from ._conversation import AssistantMessage, StreamEvent, ToolProgress, UserMessage
from ._json import parse_object
from ._notices import (
    ControlRequestProgress,
    ElicitationComplete,
    FilesPersisted,
    HookProgress,
    HookResponse,
    HookStarted,
    Informational,
    LocalCommandOutput,
    MemoryRecall,
    MirrorError,
    Notification,
    PermissionDenied,
    PluginInstall,
    SessionWritesLost,
    WorkerShuttingDown,
)
from ._other import (
    ActiveGoal,
    AuthStatus,
    CommandLifecycle,
    ConversationReset,
    PromptSuggestion,
    RateLimitEvent,
    ToolUseSummary,
    TranscriptMirror,
    UnknownMessage,
)
from ._result import ResultMessage
from ._system import (
    ApiRetry,
    CommandsChanged,
    CompactBoundary,
    InitMessage,
    ModelFallback,
    ModelRefusalFallback,
    ModelRefusalNoFallback,
    SessionStateChanged,
    SessionTitleChanged,
    StatusMessage,
    ThinkingTokens,
)
from ._tasks import (
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)

__all__ = ["Message", "decode", "from_raw"]

Message: TypeAlias = (
    AssistantMessage
    | UserMessage
    | StreamEvent
    | ResultMessage
    | ToolProgress
    | InitMessage
    | StatusMessage
    | SessionStateChanged
    | SessionTitleChanged
    | CommandsChanged
    | CompactBoundary
    | ApiRetry
    | ModelFallback
    | ModelRefusalFallback
    | ModelRefusalNoFallback
    | ThinkingTokens
    | TaskStarted
    | TaskProgress
    | TaskUpdated
    | TaskNotification
    | BackgroundTasksChanged
    | PermissionDenied
    | Informational
    | Notification
    | LocalCommandOutput
    | HookStarted
    | HookProgress
    | HookResponse
    | ControlRequestProgress
    | ElicitationComplete
    | FilesPersisted
    | MemoryRecall
    | PluginInstall
    | MirrorError
    | SessionWritesLost
    | WorkerShuttingDown
    | CommandLifecycle
    | ConversationReset
    | TranscriptMirror
    | RateLimitEvent
    | AuthStatus
    | PromptSuggestion
    | ToolUseSummary
    | ActiveGoal
    | ControlRequest
    | ControlResponse
    | ControlCancelRequest
    | KeepAlive
    | UnknownMessage
)
"""Everything that the CLI says."""

_SYSTEM: Final[dict[str, type[Message]]] = {
    "api_retry": ApiRetry,
    "background_tasks_changed": BackgroundTasksChanged,
    "commands_changed": CommandsChanged,
    "compact_boundary": CompactBoundary,
    "control_request_progress": ControlRequestProgress,
    "elicitation_complete": ElicitationComplete,
    "files_persisted": FilesPersisted,
    "hook_progress": HookProgress,
    "hook_response": HookResponse,
    "hook_started": HookStarted,
    "informational": Informational,
    "init": InitMessage,
    "local_command_output": LocalCommandOutput,
    "memory_recall": MemoryRecall,
    "mirror_error": MirrorError,
    "model_fallback": ModelFallback,
    "model_refusal_fallback": ModelRefusalFallback,
    "model_refusal_no_fallback": ModelRefusalNoFallback,
    "notification": Notification,
    "permission_denied": PermissionDenied,
    "plugin_install": PluginInstall,
    "session_state_changed": SessionStateChanged,
    "session_title_changed": SessionTitleChanged,
    "session_writes_lost": SessionWritesLost,
    "status": StatusMessage,
    "task_notification": TaskNotification,
    "task_progress": TaskProgress,
    "task_started": TaskStarted,
    "task_updated": TaskUpdated,
    "thinking_tokens": ThinkingTokens,
    "worker_shutting_down": WorkerShuttingDown,
}

_TYPES: Final[dict[str, type[Message]]] = {
    "active_goal": ActiveGoal,
    "assistant": AssistantMessage,
    "auth_status": AuthStatus,
    "command_lifecycle": CommandLifecycle,
    "control_cancel_request": ControlCancelRequest,
    "control_request": ControlRequest,
    "control_response": ControlResponse,
    "conversation_reset": ConversationReset,
    "keep_alive": KeepAlive,
    "prompt_suggestion": PromptSuggestion,
    "rate_limit_event": RateLimitEvent,
    "result": ResultMessage,
    "stream_event": StreamEvent,
    "tool_progress": ToolProgress,
    "tool_use_summary": ToolUseSummary,
    "transcript_mirror": TranscriptMirror,
    "user": UserMessage,
}

_STREAM_EVENT: Final = b'{"type":"stream_event"'
_decode_stream_event: Final = msgspec.json.Decoder(StreamEvent).decode


def decode(line: bytes) -> Message:
    """Decode a line of the CLI.

    Args:
      line: The line, with or without its end.

    Returns:
      The message.  A type or subtype that is not known gives an `UnknownMessage`; a field that
      does not fit, its attribute's default.

    Raises:
      ValueError: if the line is no JSON object; see `parse_object`.
    """
    if line.startswith(_STREAM_EVENT):
        try:
            message = _decode_stream_event(line)
        except (ValueError, RecursionError):
            pass
        else:
            set_source(message, line)
            return message
    return from_raw(parse_object(line))


def from_raw(raw: dict[str, object]) -> Message:
    """Make the message of a JSON object; see `decode`.

    Args:
      raw: The object.  It becomes the message's `raw`, so do not change it afterwards.
    """
    name = raw.get("type")
    kinds = _TYPES
    if name == "system":
        name = raw.get("subtype")
        kinds = _SYSTEM
    # A list or an object there could not be looked up.
    cls = kinds.get(name) if isinstance(name, str) else None
    return of_wire(cls or UnknownMessage, raw)
