"""Frames of a type of their own, and what cannot be read.

Facts: CLI 2.1.332, or its SDK's types where no such frame has been seen (marked "types").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from ._base import SessionFrame, WireObject

__all__ = [
    "ActiveGoal",
    "AuthStatus",
    "CommandLifecycle",
    "ConversationReset",
    "PromptSuggestion",
    "RateLimitEvent",
    "SkippedLine",
    "ToolUseSummary",
    "TranscriptMirror",
    "UnknownMessage",
]


@attrs.frozen(kw_only=True, eq=False, repr=False)
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


@attrs.frozen(kw_only=True, eq=False, repr=False)
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


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TranscriptMirror(WireObject):
    """What is being added to the session's file.

    Attributes:
      file_path: The file.
      entries: The entries.
    """

    file_path: str
    entries: tuple[Mapping[str, object], ...] = ()


@attrs.frozen(kw_only=True, eq=False, repr=False)
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
    rate_limit_info: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, eq=False, repr=False)
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


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PromptSuggestion(SessionFrame):
    """What the user might say next; it comes after the result.

    Attributes:
      suggestion: The prompt.
    """

    suggestion: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolUseSummary(SessionFrame):
    """What some tool calls came to (types).

    Attributes:
      summary: The summary.
      preceding_tool_use_ids: The calls.
    """

    summary: str
    preceding_tool_use_ids: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ActiveGoal(SessionFrame):
    """The goal that the session works for (types).

    Attributes:
      value: ``condition``, ``iterations``, ``set_at``, ``tokens_at_start`` and perhaps
        ``last_reason``; None if there is no goal any more.
    """

    value: Mapping[str, object] | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
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


@attrs.frozen(kw_only=True)
class SkippedLine:
    """A line that had to be skipped: over the limit, or begun as an object and no JSON.

    It is no message: what was in it is lost, perhaps a result.

    Attributes:
      size: How long the line was, in bytes.
      head: Its first bytes.
    """

    size: int
    head: bytes
