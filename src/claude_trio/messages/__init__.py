"""What the CLI says: one frozen class for each kind of frame, and `decode`.

Whatever the CLI sends is a `Message`, and every message has all that came in its `raw`.  Nothing
that a newer or older CLI might send is an error: a frame that is not known is an `UnknownMessage`,
a block that is not known an `UnknownBlock`, and a field that is absent or does not fit leaves its
attribute at the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, TypeAlias

import msgspec

from ._base import SessionFrame, WireObject, of_wire, set_source
from ._blocks import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    ServerToolResultBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolReferenceBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from ._conversation import AssistantMessage, StreamEvent, ToolProgress, UserMessage
from ._fields import parse_object
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
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    ConversationReset,
    KeepAlive,
    PromptSuggestion,
    RateLimitEvent,
    SkippedLine,
    ToolUseSummary,
    TranscriptMirror,
    UnknownMessage,
)
from ._result import Outcome, PermissionDenial, Result, ResultMessage
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
    BackgroundTask,
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)

__all__ = [
    "ActiveGoal",
    "ApiRetry",
    "AssistantMessage",
    "AuthStatus",
    "BackgroundTask",
    "BackgroundTasksChanged",
    "CommandLifecycle",
    "CommandsChanged",
    "CompactBoundary",
    "ContentBlock",
    "ControlCancelRequest",
    "ControlRequest",
    "ControlRequestProgress",
    "ControlResponse",
    "ConversationReset",
    "DocumentBlock",
    "ElicitationComplete",
    "FilesPersisted",
    "HookProgress",
    "HookResponse",
    "HookStarted",
    "ImageBlock",
    "Informational",
    "InitMessage",
    "KeepAlive",
    "LocalCommandOutput",
    "MemoryRecall",
    "Message",
    "MirrorError",
    "ModelFallback",
    "ModelRefusalFallback",
    "ModelRefusalNoFallback",
    "Notification",
    "Outcome",
    "PermissionDenial",
    "PermissionDenied",
    "PluginInstall",
    "PromptSuggestion",
    "RateLimitEvent",
    "RedactedThinkingBlock",
    "Result",
    "ResultMessage",
    "ServerToolResultBlock",
    "ServerToolUseBlock",
    "SessionFrame",
    "SessionStateChanged",
    "SessionTitleChanged",
    "SessionWritesLost",
    "SkippedLine",
    "StatusMessage",
    "StreamEvent",
    "TaskNotification",
    "TaskProgress",
    "TaskStarted",
    "TaskUpdated",
    "TextBlock",
    "ThinkingBlock",
    "ThinkingTokens",
    "ToolProgress",
    "ToolReferenceBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "ToolUseSummary",
    "TranscriptMirror",
    "UnknownBlock",
    "UnknownMessage",
    "UserMessage",
    "WireObject",
    "WorkerShuttingDown",
    "decode",
    "from_raw",
    "parse_object",
]

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

# Events of the stream are most of what comes, and are decoded straight into their class for the
# price of a dict.  They are told by how the line begins.  Everything else becomes a dict first: the
# order of keys is arbitrary, and a result of CLI 2.1.332 does not begin with its type.
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


# Tracebacks, pickles and the documentation name the place that programs import from.  So it is
# here that the annotations of a class are evaluated, if somebody asks for its types at run time.
_IN_ANNOTATIONS = (ClassVar, Mapping)
for _name in __all__:
    _exported = globals()[_name]
    if getattr(_exported, "__module__", "").startswith(__name__):
        _exported.__module__ = __name__
