"""Frames of a type of their own: on the session, of the control protocol, and those unknown to us.

Facts: CLI 2.1.332, or its SDK's types where no such frame has been seen (marked "types").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from claude_trio._values import field, frozen

from ._base import SessionFrame, WireObject
from ._fields import kind, wire

__all__ = [
    "ActiveGoal",
    "AuthStatus",
    "CommandLifecycle",
    "ControlCancelRequest",
    "ControlRequest",
    "ControlResponse",
    "ConversationReset",
    "KeepAlive",
    "PromptSuggestion",
    "RateLimitEvent",
    "SkippedLine",
    "ToolUseSummary",
    "TranscriptMirror",
    "UnknownMessage",
]


@frozen(kw_only=True, eq=False, repr=False)
class CommandLifecycle(SessionFrame):
    """What has become of a prompt that was sent with a uuid, or of a turn that a schedule started.

    Attributes:
      command_uuid: The prompt.
      state: ``queued``, ``started``, and then one of ``completed``, ``cancelled`` (withdrawn, or
        its turn was stopped or failed), ``discarded`` (the session ended before it began) and
        ``refused`` (declined by policy).  How the turn went is not said here but in its result.
      wakeup_source: What started it: ``schedule_wakeup``, ``loop_wakeup``.
      scheduled_for: When it was due, in milliseconds since 1970.
    """

    command_uuid: str
    state: str
    wakeup_source: str | None = None
    scheduled_for: float | None = None


@frozen(kw_only=True, eq=False, repr=False)
class ConversationReset(SessionFrame):
    """The conversation begins anew, with a new session id.

    Attributes:
      new_conversation_id: The new id.
      trigger: ``clear``, ``plan_mode_exit``, ``fresh_session`` or ``onboarding``.
      user_message_uuid: The prompt that asked for it.
      timestamp: When, ISO 8601; for display only.
    """

    new_conversation_id: str
    trigger: str | None = None
    user_message_uuid: str | None = None
    timestamp: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class TranscriptMirror(WireObject):
    """What is being added to the session's file.

    Attributes:
      file_path: The file.
      entries: The entries.
    """

    file_path: str
    entries: tuple[Mapping[str, object], ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class RateLimitEvent(SessionFrame):
    """How a subscription's limits stand (types); not sent with an API key.

    Attributes:
      status: ``allowed``, ``allowed_warning`` or ``rejected``.
      rate_limit_type: Which limit: ``five_hour``, ``seven_day``, ``seven_day_opus``,
        ``seven_day_sonnet``, ``seven_day_overage_included``, ``overage``.
      resets_at: When it is reset, in seconds since 1970.
      utilization: How much of it is used, from 0 to 1.
      surpassed_threshold: The mark that was passed.
      overage_status: How the use beyond the plan stands, as in `status`.
      overage_resets_at: When that is reset.
      overage_disabled_reason: Why there is none.
      is_using_overage: Whether it is being used.
      rate_limit_info: All of it, as it came.
    """

    _inner: ClassVar[str | None] = "rate_limit_info"

    status: str | None = None
    rate_limit_type: str | None = None
    resets_at: float | None = None
    utilization: float | None = None
    surpassed_threshold: float | None = None
    overage_status: str | None = None
    overage_resets_at: float | None = None
    overage_disabled_reason: str | None = None
    is_using_overage: bool | None = None
    rate_limit_info: Mapping[str, object] = field(factory=dict)


@frozen(kw_only=True, eq=False, repr=False)
class AuthStatus(SessionFrame):
    """How signing in is going (types).

    Attributes:
      is_authenticating: Whether it still goes on.
      output: What it says.
      error: Why it failed.
    """

    is_authenticating: bool = False
    output: tuple[str, ...] = ()
    error: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class PromptSuggestion(SessionFrame):
    """What the user might say next; it comes after the result.

    Attributes:
      suggestion: The prompt.
    """

    suggestion: str


@frozen(kw_only=True, eq=False, repr=False)
class ToolUseSummary(SessionFrame):
    """What some tool calls came to (types).

    Attributes:
      summary: The summary.
      preceding_tool_use_ids: The calls.
    """

    summary: str
    preceding_tool_use_ids: tuple[str, ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class ActiveGoal(SessionFrame):
    """The goal that the session works for (types).

    Attributes:
      value: ``condition``, ``iterations``, ``set_at``, ``tokens_at_start`` and perhaps
        ``last_reason``; None if there is no goal any more.
    """

    value: Mapping[str, object] | None = None


# The envelopes of the control protocol, which runs between the messages.


@frozen(kw_only=True, eq=False, repr=False)
class ControlRequest(WireObject):
    """The CLI asks the host for something, and waits for the answer.

    Attributes:
      request_id: What the answer must name; empty if the CLI gave none.
      subtype: What it asks: ``can_use_tool``, ``hook_callback``, ``mcp_message``,
        ``elicitation``, ``request_user_dialog`` and others.
      request: The request, its subtype included.
    """

    _inner: ClassVar[str | None] = "request"

    request_id: str
    subtype: str = field(metadata=wire("subtype", inside=True))
    request: Mapping[str, object]


@frozen(kw_only=True, eq=False, repr=False)
class ControlResponse(WireObject):
    """The answer to a request of the host, or an echo of one that the host gave.

    Attributes:
      request_id: What it answers; empty if it names nothing.
      ok: Whether the CLI did what was asked.
      response: What came of it; empty if there is nothing to say.
      error: If not `ok`, why, in words; else empty.
      error_code: Why, as a code: ``unsupported_request``, ``invalid_mode``,
        ``bypass_not_launched``, ``reload_plugins_busy``.
      pending_permission_requests: With the answer to ``initialize``: requests that still wait.
      pending_user_dialog_requests: Likewise.
      pending_elicitation_requests: Likewise.
    """

    _inner: ClassVar[str | None] = "response"

    request_id: str = field(metadata=wire("request_id", inside=True))
    ok: bool = field(
        metadata={
            **wire("subtype", inside=True),
            **kind((str,), lambda subtype: subtype == "success"),
        }
    )
    response: Mapping[str, object] = field(factory=dict, metadata=wire("response", inside=True))
    error: str = ""
    error_code: str | None = None
    pending_permission_requests: tuple[Mapping[str, object], ...] = ()
    pending_user_dialog_requests: tuple[Mapping[str, object], ...] = ()
    pending_elicitation_requests: tuple[Mapping[str, object], ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class ControlCancelRequest(WireObject):
    """The CLI does not want an answer to a request any more; it is not answered itself.

    Attributes:
      request_id: The request.
    """

    request_id: str


@frozen(kw_only=True, eq=False, repr=False)
class KeepAlive(WireObject):
    """A sign of life, which means nothing else.

    Attributes:
      startup_mark: A checkpoint of the start-up, where the environment asks for them.
    """

    startup_mark: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class UnknownMessage(WireObject):
    """A frame that this version does not know; `raw` is all of it.

    Attributes:
      type: The wire's word for it; empty if it gives none.
      subtype: Its second word.
    """

    type: str = ""
    subtype: str | None = None

    def _values(self) -> tuple[object, ...]:
        return (self.type, self.subtype, self.raw)


@frozen(kw_only=True)
class SkippedLine:
    """A line that had to be skipped: over the limit, or begun as an object and no JSON.

    It is no message: what was in it is lost, perhaps a result.

    Attributes:
      size: How long the line was, in bytes.
      head: Its first bytes.
    """

    size: int
    head: bytes
