"""How a turn ended: the frame that the CLI sends, and what a program gets of it.

Facts: CLI 2.1.332.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from claude_trio._values import field, frozen

from ._base import SessionFrame, WireObject, of_wire, parts, set_source

__all__ = ["Outcome", "PermissionDenial", "Result", "ResultMessage"]

# What the CLI puts among the errors of an interrupted turn for its own makers.
_DIAGNOSTIC: Final = "[ede_diagnostic]"


class Outcome(enum.Enum):
    """How a turn ended."""

    COMPLETED = "completed"
    """The model finished, or a hook or a newer prompt ended the turn in good order."""
    INTERRUPTED = "interrupted"
    """Somebody stopped it, perhaps before it began."""
    FAILED = "failed"
    """The API failed, or a limit was reached."""


@frozen(kw_only=True, eq=False, repr=False)
class PermissionDenial(WireObject):
    """A tool call that was denied in a turn.

    Attributes:
      tool_name: The tool.
      tool_use_id: The call.
      tool_input: Its arguments.
    """

    tool_name: str
    tool_use_id: str | None = None
    tool_input: Mapping[str, object] = field(factory=dict)


@frozen(kw_only=True, eq=False, repr=False)
class ResultMessage(SessionFrame):
    """A turn has ended.

    `subtype` and `is_error` are independent of each other: a failure of the API is ``success``
    with `is_error`; an interrupt is ``error_during_execution``, and only `terminal_reason` tells
    it from a failure.

    Attributes:
      subtype: ``success``, ``error_during_execution``, ``error_max_turns``,
        ``error_max_budget_usd``, ``error_max_structured_output_retries``.
      is_error: Whether it is an error.
      terminal_reason: Why the turn ended: ``completed``, ``api_error``, ``prompt_too_long``,
        ``image_error``, ``aborted_streaming``, ``aborted_tools``, ``max_turns``,
        ``budget_exhausted``, ``structured_output_retry_exhausted``, ``hook_stopped``,
        ``tool_deferred`` and others; None if no turn ran.
      result: The last text of the model, or that of the error; None for the error subtypes.
      errors: What went wrong; of an interrupted turn, a diagnostic that is not for people.
      stop_reason: Why the last response ended: ``end_turn``, ``tool_use``, ``max_tokens``,
        ``refusal`` and others.
      num_turns: How often the model was called; 0 for a slash command.
      duration_ms: How long the turn took, in milliseconds.
      duration_api_ms: How long the API took, all turns of the process together.
      ttft_ms: Milliseconds to the first token.
      ttft_stream_ms: The same, as seen by the stream.
      time_to_request_ms: Milliseconds to the first request.
      first_content_frame_ms: Milliseconds to the first frame with content.
      request_sent_wall_ms: When the first request was sent, in milliseconds since 1970.
      first_request_input_tokens: The tokens of the first request.
      first_request_cache_read_input_tokens: Those of them that came from the cache.
      usage: The tokens of the turn, without subagents, as the API counts them.
      model_usage: By model, tokens and ``costUSD`` of all turns so far, with subagents.
      model_usage_since_last_result: The same, since the result before; None if it is not said.
      total_cost_usd: What all turns so far have cost, in US dollars.
      permission_denials: The tool calls that were denied.
      structured_output: What the schema asked for, if the model met it.
      deferred_tool_use: The call that a hook deferred: ``id``, ``name``, ``input``.
      user_message_uuid: The last prompt that the turn answers.
      user_message_uuids: All prompts that it answers, 64 at most.
      begun_message_ids: The API's ids of the responses that began in it (with partial messages).
      queued_turn_count: How many prompts of people still wait.
      result_index: Which result of the process this is, from 0.
      origin: Who asked: ``kind`` is ``human``, ``task-notification`` (a background task has
        ended) and others; None for most prompts, and for what a schedule started.
      api_error_status: The HTTP status of a failure of the API.
      api_error_type: The API's own word for it.
      api_error: The CLI's word for it.
      local_command: The slash command that made this result.
      subagent_stats: How many subagents were started, and how they ended.
      fast_mode_state: ``off``, ``cooldown``, ``on``.
      fast_mode_disabled_reason: Why fast mode is off.
      safety_stops: How often the model refused.
      startup_failure_reason: Why the CLI did not start.
      invalid_config_file: The file that kept it from starting.
      credential_expires_at: When the sign-in ends, ISO 8601.
      resume_reason: Why the turn went on after the CLI was restarted.
    """

    subtype: str
    is_error: bool = False
    terminal_reason: str | None = None
    result: str | None = None
    errors: tuple[str, ...] = ()
    stop_reason: str | None = None
    num_turns: int | None = None
    duration_ms: float | None = None
    duration_api_ms: float | None = None
    ttft_ms: float | None = None
    ttft_stream_ms: float | None = None
    time_to_request_ms: float | None = None
    first_content_frame_ms: float | None = None
    request_sent_wall_ms: float | None = None
    first_request_input_tokens: int | None = None
    first_request_cache_read_input_tokens: int | None = None
    usage: Mapping[str, object] = field(factory=dict)
    model_usage: Mapping[str, object] = field(factory=dict)
    model_usage_since_last_result: Mapping[str, object] | None = None
    total_cost_usd: float | None = None
    permission_denials: tuple[PermissionDenial, ...] = field(
        default=(), metadata=parts(PermissionDenial)
    )
    structured_output: object = None
    deferred_tool_use: Mapping[str, object] | None = None
    user_message_uuid: str | None = None
    user_message_uuids: tuple[str, ...] = ()
    begun_message_ids: tuple[str, ...] = ()
    queued_turn_count: int | None = None
    result_index: int | None = None
    origin: Mapping[str, object] | None = None
    api_error_status: int | None = None
    api_error_type: str | None = None
    api_error: str | None = None
    local_command: str | None = None
    subagent_stats: Mapping[str, object] | None = None
    fast_mode_state: str | None = None
    fast_mode_disabled_reason: str | None = None
    safety_stops: int | None = None
    startup_failure_reason: str | None = None
    invalid_config_file: Mapping[str, object] | None = None
    credential_expires_at: str | None = None
    resume_reason: str | None = None


@frozen(kw_only=True, eq=False, repr=False)
class Result(WireObject):
    """What came of a turn.

    Times are in seconds, costs in US dollars.  `raw` is that of the `ResultMessage`; it is empty
    if the turn ended without one.

    Attributes:
      outcome: How the turn ended.
      text: The last text of the model, or that of the error; empty if there is none.
      subtype: The CLI's word for the end; see `ResultMessage`.
      errors: What went wrong, for people.
      stop_reason: Why the last response ended.
      terminal_reason: Why the turn ended.
      session_id: The session.
      usage: The tokens of the turn, without subagents, as the API counts them.
      model_usage: By model, tokens and ``costUSD`` of all turns so far, with subagents.
      total_cost_usd: What all turns so far have cost.
      turn_cost_usd: What this one has cost, where that is known.
      num_turns: How often the model was called.
      duration: How long the turn took.
      duration_api: How long the API took, all turns of the process together.
      ttft: How long the first token took.
      structured_output: What the schema asked for, if the model met it.
      permission_denials: The tool calls that were denied.
      api_error_status: The HTTP status of a failure of the API.
      local_command: The slash command that made this result.
      uuid: The frame's own id.
    """

    outcome: Outcome
    text: str = ""
    subtype: str | None = None
    errors: tuple[str, ...] = ()
    stop_reason: str | None = None
    terminal_reason: str | None = None
    session_id: str | None = None
    usage: Mapping[str, object] = field(factory=dict)
    model_usage: Mapping[str, object] = field(factory=dict)
    total_cost_usd: float | None = None
    turn_cost_usd: float | None = None
    num_turns: int = 0
    duration: float | None = None
    duration_api: float | None = None
    ttft: float | None = None
    structured_output: object = None
    permission_denials: tuple[PermissionDenial, ...] = ()
    api_error_status: int | None = None
    local_command: str | None = None
    uuid: str | None = None

    @classmethod
    def from_message(
        cls, message: ResultMessage, *, outcome: Outcome, turn_cost_usd: float | None
    ) -> Result:
        """Make the result of a turn of its frame.

        Args:
          message: The frame.
          outcome: How the turn ended; the frame alone does not always tell.
          turn_cost_usd: What the turn has cost; the frame gives totals.
        """
        result = object.__new__(cls)
        object.__setattr__(result, "outcome", outcome)
        object.__setattr__(result, "turn_cost_usd", turn_cost_usd)
        if message.raw:
            # The rest is read when it is asked for, as from every frame.
            set_source(result, cast("dict[str, object]", message.raw))
        else:
            for name, read in _READ.items():
                object.__setattr__(result, name, read(message))
        return result

    # Hidden from type checkers, as in the class above it.
    if not TYPE_CHECKING:  # pragma: no branch

        def __getattr__(self, name: str) -> object:
            if name not in _READ:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = _READ[name](of_wire(ResultMessage, self._source))
            object.__setattr__(self, name, value)
            return value

    @classmethod
    def interrupted(cls, *, session_id: str | None = None) -> Result:
        """Make the result of a turn that was stopped and has no frame."""
        return cls(outcome=Outcome.INTERRUPTED, session_id=session_id)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


# How each attribute of a `Result` that stands in its frame is read from that.
_READ: Final[dict[str, Callable[[ResultMessage], object]]] = {
    "text": lambda message: message.result or "",
    "subtype": lambda message: message.subtype or None,
    "errors": lambda message: tuple(
        error for error in message.errors if not error.startswith(_DIAGNOSTIC)
    ),
    "num_turns": lambda message: message.num_turns or 0,
    "duration": lambda message: _seconds(message.duration_ms),
    "duration_api": lambda message: _seconds(message.duration_api_ms),
    "ttft": lambda message: _seconds(message.ttft_ms),
    **{
        name: operator.attrgetter(name)
        for name in (
            "stop_reason",
            "terminal_reason",
            "session_id",
            "usage",
            "model_usage",
            "total_cost_usd",
            "structured_output",
            "permission_denials",
            "api_error_status",
            "local_command",
            "uuid",
        )
    },
}
