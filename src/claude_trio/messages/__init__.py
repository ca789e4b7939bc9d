"""What the CLI says: one frozen class for each kind of frame, and `decode`.

Whatever the CLI sends is a `Message`, and every message has all that came in its `raw`.  Nothing
that a newer or older CLI might send is an error: a frame that is not known is an `UnknownMessage`,
a block that is not known an `UnknownBlock`, and a field that is absent or does not fit leaves its
attribute at the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._base import SessionFrame, WireObject
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
from ._control import ControlCancelRequest, ControlRequest, ControlResponse, KeepAlive
from ._conversation import AssistantMessage, StreamEvent, ToolProgress, UserMessage
from ._decode import Message, decode, from_raw
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

# Tracebacks, pickles and the documentation name the place that programs import from.  So it is
# here that the annotations of a class are evaluated, if somebody asks for its types at run time.
_IN_ANNOTATIONS = (ClassVar, Mapping)
for _name in __all__:
    _exported = globals()[_name]
    if getattr(_exported, "__module__", "").startswith(__name__):
        _exported.__module__ = __name__
