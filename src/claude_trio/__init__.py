"""Claude Code in Trio programs: sessions, turns and their ends, with Trio's own shape."""

from __future__ import annotations

from claude_trio._ask import Question, ask
from claude_trio._errors import (
    AuthenticationFailed,
    BudgetExceeded,
    CallbackError,
    ClaudeTrioError,
    CLINotFound,
    LaunchFailed,
    LocalProtocolError,
    MaxTurnsReached,
    Overflow,
    Overloaded,
    ProcessExited,
    PromptTooLong,
    ProtocolError,
    RateLimited,
    RemoteProtocolError,
    RequestRefused,
    RequestTimedOut,
    SessionClosed,
    TurnFailed,
    TurnInFlight,
    TurnOver,
)
from claude_trio._exit import ExitCause, ExitState, ExitStatus
from claude_trio._oneshot import run_prompt
from claude_trio._open import open_session
from claude_trio._options import AgentDefinition, Limits, SessionOptions, Timeouts
from claude_trio._process import spawn
from claude_trio._session import InterruptReceipt, LiveTask, Session, SessionState
from claude_trio._subscribers import Lag, Lagged, Subscription
from claude_trio._transport import Launcher, Transport
from claude_trio._turn import Turn
from claude_trio.messages import Outcome, Result
from claude_trio.permissions import (
    DEFER,
    Allow,
    Deny,
    PermissionHandler,
    PermissionRequest,
)

__all__ = [
    "DEFER",
    "AgentDefinition",
    "Allow",
    "AuthenticationFailed",
    "BudgetExceeded",
    "CLINotFound",
    "CallbackError",
    "ClaudeTrioError",
    "Deny",
    "ExitCause",
    "ExitState",
    "ExitStatus",
    "InterruptReceipt",
    "Lag",
    "Lagged",
    "LaunchFailed",
    "Launcher",
    "Limits",
    "LiveTask",
    "LocalProtocolError",
    "MaxTurnsReached",
    "Outcome",
    "Overflow",
    "Overloaded",
    "PermissionHandler",
    "PermissionRequest",
    "ProcessExited",
    "PromptTooLong",
    "ProtocolError",
    "Question",
    "RateLimited",
    "RemoteProtocolError",
    "RequestRefused",
    "RequestTimedOut",
    "Result",
    "Session",
    "SessionClosed",
    "SessionOptions",
    "SessionState",
    "Subscription",
    "Timeouts",
    "Transport",
    "Turn",
    "TurnFailed",
    "TurnInFlight",
    "TurnOver",
    "ask",
    "open_session",
    "run_prompt",
    "spawn",
]

# Whoever sees a name in a traceback or a repr shall find it where it is imported from.
for _exported in [globals()[name] for name in __all__]:
    if isinstance(_exported, type) or callable(_exported):
        _exported.__module__ = str(_exported.__module__).partition("._")[0]
