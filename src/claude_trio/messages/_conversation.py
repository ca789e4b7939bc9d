"""What is said: by the model, to the model, and while it is being said.

Facts: CLI 2.1.332.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from claude_trio._values import field, frozen

from ._base import SessionFrame, WireObject, set_source
from ._blocks import CONTENT, ContentBlock, text_of
from ._fields import items, mapping, number, optional_text, parse_object, texts, wire

__all__ = ["AssistantMessage", "StreamEvent", "ToolProgress", "UserMessage"]


@frozen(kw_only=True, eq=False, repr=False)
class AssistantMessage(SessionFrame):
    """A block of the model's answer, finished, or a text of the CLI in the model's place.

    A response of several blocks comes as several of these with one `message_id`; on them
    `stop_reason` is None and `usage` is not final.

    Attributes:
      content: The blocks; as a rule one.
      model: The model; ``<synthetic>`` for a text of the CLI's own.
      message_id: The API's id of the response.
      stop_reason: Why the response ended, where that is known.
      stop_sequence: The sequence that ended it.
      usage: The tokens so far, as the API counts them.
      parent_tool_use_id: In a subagent, the call that started it.
      agent_id: In a subagent, its task id.
      subagent_type: In a subagent, its type.
      task_description: In a subagent, what it was asked for.
      timestamp: When the block was finished, ISO 8601; for display only.
      request_id: The API's id of the request.
      user_message_uuid: On the first one of a turn: the last prompt that it answers.
      user_message_uuids: On the first one of a turn: all prompts that it answers.
      error: If the API failed, how: ``authentication_failed``, ``oauth_org_not_allowed``,
        ``account_on_hold``, ``verification_required``, ``billing_error``, ``rate_limit``,
        ``overloaded``, ``invalid_request``, ``model_not_found``, ``server_error``,
        ``max_output_tokens``, ``cloud_credential_error``, ``unknown``.  The content is then the
        text for people.
      is_api_error_message: Whether it tells of a failure of the API.
      api_error_status: The HTTP status of that failure.
      api_error_type: The API's own word for it.
      api_error: The CLI's word for it, such as ``connection_failed``.
      aborted: Whether an interrupt cut it off; the text may end in mid-word.
      supersedes: The uuids of earlier messages that this one replaces.
      tool_use_meta: How to show the tool calls.
      thinking_duration_ms: How long the model thought, in milliseconds.
      thinking_display: How thinking is shown.
      local_command_source: The output of a slash command as it was, in its tags.
      local_command_run: That command: ``command``, ``args``.
      local_command_outcome: How it ended, if not well: ``kind`` is ``failed``.
      context_usage: For ``/context``: the numbers behind the text.
      usage_report: For ``/usage``: the numbers behind the text.
      resume_reason: Why the turn goes on after the CLI was restarted.
      resumed_from_incomplete_thinking: Whether it goes on from a thought that was cut off.
    """

    _inner: ClassVar[str | None] = "message"

    content: tuple[ContentBlock, ...] = field(metadata=CONTENT)
    model: str | None = None
    message_id: str | None = field(default=None, metadata=wire("id", inside=True))
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Mapping[str, object] = field(factory=dict)
    parent_tool_use_id: str | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    timestamp: str | None = None
    request_id: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: tuple[str, ...] = ()
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    api_error_type: str | None = None
    api_error: str | None = None
    aborted: bool = False
    supersedes: tuple[str, ...] = ()
    tool_use_meta: tuple[Mapping[str, object], ...] = ()
    thinking_duration_ms: float | None = None
    thinking_display: str | None = None
    local_command_source: str | None = None
    local_command_run: Mapping[str, object] | None = None
    local_command_outcome: Mapping[str, object] | None = None
    context_usage: Mapping[str, object] | None = None
    usage_report: Mapping[str, object] | None = None
    resume_reason: str | None = None
    resumed_from_incomplete_thinking: bool = False

    @property
    def text(self) -> str:
        """The text of the content, joined."""
        return text_of(self.content)


@frozen(kw_only=True, eq=False, repr=False)
class UserMessage(SessionFrame):
    """What the model is told: results of tools, prompts that are replayed, words of the CLI.

    Attributes:
      content: The blocks.  After an interrupt, a text ``[Request interrupted by user]`` or
        ``[Request interrupted by user for tool use]``.
      parent_tool_use_id: In a subagent, the call that started it.
      agent_id: In a subagent, its task id.
      subagent_type: In a subagent, its type.
      task_description: In a subagent, what it was asked for.
      timestamp: When it was made, ISO 8601; for display only.
      is_synthetic: Whether the CLI added it by itself, such as a summary or a reminder.
      is_replay: Whether it repeats a prompt, or reports a change of the model.
      tool_use_result: What a tool returned, in its own shape; a text if it failed.
      tool_result_meta: For each result, who decided about the permission.
      origin: Where a prompt came from: ``kind`` is ``human``, ``task-notification``, ``channel``,
        ``peer`` and others.
      priority: That of a replayed prompt: ``now``, ``next``, ``later``.
      should_query: Whether the prompt asks for an answer.
      client_composed: Whether the prompt is taken literally, without slash commands.
      refused_message_id: On a retry after a refusal: what was refused.
      refusal_retry: Whether it is such a retry.
      file_attachments: The files of a replayed prompt.
    """

    _inner: ClassVar[str | None] = "message"

    content: tuple[ContentBlock, ...] = field(metadata=CONTENT)
    parent_tool_use_id: str | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    timestamp: str | None = None
    is_synthetic: bool = False
    is_replay: bool = False
    tool_use_result: object = None
    tool_result_meta: tuple[Mapping[str, object], ...] = ()
    origin: Mapping[str, object] | None = None
    priority: str | None = None
    should_query: bool = True
    client_composed: bool = False
    refused_message_id: str | None = None
    refusal_retry: bool = False
    file_attachments: tuple[object, ...] = ()

    @property
    def text(self) -> str:
        """The text of the content, joined; without the results of tools."""
        return text_of(self.content)


@frozen(kw_only=True, eq=False, repr=False)
class StreamEvent(WireObject):
    """An event of the API's stream, as the answer is being written.

    They come with ``include_partial_messages`` only, and never from a subagent.  The
    `AssistantMessage` of a block comes before that block's ``content_block_stop``.

    Most of what a turn brings are these, and of most only the event is looked at.  So it alone is
    read at first, and everything else from `raw` when it is asked for.  To make one by hand with
    more than an event, use `from_raw`.

    Attributes:
      event: The event: ``type`` is ``message_start``, ``content_block_start``,
        ``content_block_delta``, ``content_block_stop``, ``message_delta`` or ``message_stop``.
    """

    # The decoder fills a slot faster than an entry of a dict.
    __slots__ = ("__weakref__", "event")

    event: dict[str, object]

    def __init__(self, *, event: dict[str, object]) -> None:
        object.__setattr__(self, "event", event)

    @property
    def raw(self) -> Mapping[str, object]:
        """All that came, unknown fields included; empty if it was built by hand."""
        if isinstance(line := getattr(self, "_source", None), bytes):
            set_source(self, self._parse(line))
        return super().raw

    def _parse(self, line: bytes) -> dict[str, object]:
        try:
            return parse_object(line)
        except ValueError:
            # The decoder has passed over an unknown field that no object can hold, such as an
            # endless integer.
            return {"type": "stream_event", "event": self.event}

    @property
    def text_delta(self) -> str:
        """The text that the event adds to the answer; empty if it adds none."""
        delta = mapping(self.event.get("delta"))
        is_text = delta.get("type") == "text_delta"
        return (optional_text(delta.get("text")) or "") if is_text else ""

    @property
    def uuid(self) -> str | None:
        """Its own id."""
        return optional_text(self.raw.get("uuid"))

    @property
    def session_id(self) -> str | None:
        """The session that it belongs to."""
        return optional_text(self.raw.get("session_id"))

    @property
    def parent_tool_use_id(self) -> str | None:
        """In a subagent, the call that started it; never seen."""
        return optional_text(self.raw.get("parent_tool_use_id"))

    @property
    def api_message_id(self) -> str | None:
        """The API's id of the response: the `message_id` of its `AssistantMessage`."""
        return optional_text(self.raw.get("api_message_id"))

    @property
    def ttft_ms(self) -> float | None:
        """On ``message_start``: milliseconds from the request to the first token."""
        return number(self.raw.get("ttft_ms"))

    @property
    def thinking_display(self) -> str | None:
        """On ``message_start``: how thinking is shown."""
        return optional_text(self.raw.get("thinking_display"))

    @property
    def user_message_uuid(self) -> str | None:
        """On the first event of a turn: the last prompt that it answers."""
        return optional_text(self.raw.get("user_message_uuid"))

    @property
    def user_message_uuids(self) -> tuple[str, ...]:
        """On the first event of a turn: all prompts that it answers."""
        return texts(self.raw.get("user_message_uuids"))

    @property
    def resume_reason(self) -> str | None:
        """Why the turn goes on after the CLI was restarted."""
        return optional_text(self.raw.get("resume_reason"))

    @property
    def abandoned_blocks(self) -> Mapping[str, object]:
        """After an interrupt: ``from_block_index``, the first block that will not be finished."""
        return mapping(self.raw.get("abandoned_blocks"))

    @property
    def owed_rows(self) -> tuple[object, ...]:
        """On ``message_start``: the CLI's own note of rows that are to follow."""
        return items(self.raw.get("owed_rows"))

    def _values(self) -> tuple[object, ...]:
        return (
            self.event,
            self.uuid,
            self.session_id,
            self.parent_tool_use_id,
            self.api_message_id,
            self.ttft_ms,
            self.thinking_display,
            self.user_message_uuid,
            self.user_message_uuids,
            self.resume_reason,
            self.abandoned_blocks,
            self.owed_rows,
        )


@frozen(kw_only=True, eq=False, repr=False)
class ToolProgress(SessionFrame):
    """A sign of life of a long tool call or hook, every 30 seconds.

    Attributes:
      tool_use_id: The id of the sign itself: ``<call>-heartbeat-<n>``, or
        ``hook-<event>-<call>-heartbeat-<n>``.
      tool_name: The tool.
      parent_tool_use_id: The call.
      elapsed_time_seconds: How long it runs.
      heartbeat: Whether it is nothing but a sign of life.
      task_id: The task that the call belongs to.
      subagent_type: The type of the subagent that the call runs.
      subagent_retry: The retry that this subagent waits for: ``attempt``, ``max_retries``,
        ``retry_delay_ms``, ``error_status``, ``error_category``.
    """

    tool_use_id: str
    tool_name: str
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: float | None = None
    heartbeat: bool = False
    task_id: str | None = None
    subagent_type: str | None = None
    subagent_retry: Mapping[str, object] | None = None
