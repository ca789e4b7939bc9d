"""What the CLI asks the Messages API, read and told apart.

Beside the conversation the CLI asks for titles, summaries, verdicts and the like.  Nothing in a
request names its purpose, so that each is known by the words or the schema that the CLI sends with
it; what matches nothing belongs to the conversation.  The marks are those of CLI 2.1.332 and
2.1.197.
"""

from __future__ import annotations

import enum
import itertools
import json
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["ApiRequest", "RequestKind", "read_request"]

_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
# The CLI's first system block is a note for the bill, not for the model.
_BILLING_NOTE: Final = "x-anthropic-billing-header:"
# Blocks that the CLI puts beside what the user said, or in the user's name: how each begins and
# ends.  2.1.332 has most of them in a reminder; 2.1.197 tells of tasks and hooks without one.
_ADDED: Final = (
    ("<system-reminder>", "</system-reminder>"),
    ("<local-command-", ">"),
    ("<command-name>", "</command-args>"),
    ("<command-message>", ">"),
    ("<task-notification>", "</task-notification>"),
    ("[Request interrupted by user", "]"),
    ("[structured-output-enforce] ", ""),
    ("Stop hook feedback:\n", ""),
    ("This session is being continued from a previous conversation", ""),
)


@enum.unique
class RequestKind(enum.Enum):
    """Tell what a request is for."""

    MAIN = "main"
    """The conversation itself."""
    SUBAGENT = "subagent"
    """The conversation of an agent that the main one started."""
    TITLE = "title"
    """A title for the session."""
    COMPACTION = "compaction"
    """A summary that replaces the conversation so far."""
    SUGGESTION = "suggestion"
    """What the user may type next."""
    SIDE_QUESTION = "side_question"
    """A question outside of the conversation."""
    AGENT_SUMMARY = "agent_summary"
    """A line that says what an agent is doing."""
    TOOL_SUMMARY = "tool_summary"
    """A line that says what some tool calls did."""
    RECAP = "recap"
    """A recap for a user who was away."""
    HOOK = "hook"
    """A hook of type ``prompt``."""
    HOOK_AGENT = "hook_agent"
    """A hook of type ``agent``."""
    CLASSIFIER = "classifier"
    """The verdict of permission mode ``auto`` on a tool call."""
    WEB_SEARCH = "web_search"
    """A search with the API's own tool."""
    WEB_PAGE = "web_page"
    """A question about a page that was fetched."""
    MODEL_PROBE = "model_probe"
    """Whether a model is there."""


@attrs.frozen(kw_only=True)
class ApiRequest:
    """One request for a message.

    Attributes:
      kind: What it is for.
      model: The model that is asked.
      system: The system prompt, its blocks joined by empty lines.
      messages: The conversation, as it was sent.
      tools: The names of the tools that the model may call.
      prompts: The texts of the user so far, in order; without what the CLI adds to them.
      last_user_text: The last of them, if the last user message has one; empty if that brings
        nothing but tool results or words of the CLI.
      stream: Whether the answer is to be streamed.
      session_id: The CLI's session.
      agent_id: The agent that asks, in a request of a subagent.
      headers: The HTTP headers with their names in lower case, less those that carry secrets.
      body: All of the request.
    """

    kind: RequestKind
    model: str
    system: str
    messages: tuple[Mapping[str, object], ...]
    tools: tuple[str, ...]
    prompts: tuple[str, ...]
    last_user_text: str
    stream: bool
    session_id: str | None
    agent_id: str | None
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: Mapping[str, object] = attrs.field(repr=False)

    @property
    def is_side(self) -> bool:
        """Whether it belongs to no conversation, neither the main one nor a subagent's."""
        return self.kind not in {RequestKind.MAIN, RequestKind.SUBAGENT}


def read_request(headers: Mapping[str, str], body: bytes) -> ApiRequest:
    """Read a request of ``POST /v1/messages``.

    Args:
      headers: The HTTP headers, their names in lower case.
      body: The JSON text.

    Raises:
      ValueError: if the body is not a JSON object with messages.
    """
    try:
        decoded: object = json.loads(body)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    fields = _mapping(decoded)
    messages = tuple(_mapping(message) for message in _list(fields.get("messages")))
    if not messages:
        raise ValueError("messages: at least one message is required")
    said = [_said(message) for message in messages if message.get("role") == "user"]
    request = ApiRequest(
        kind=RequestKind.MAIN,
        model=str(fields.get("model", "")),
        system="\n\n".join(
            text for text in _texts(fields.get("system")) if not text.startswith(_BILLING_NOTE)
        ),
        messages=messages,
        tools=tuple(str(_mapping(tool).get("name", "")) for tool in _list(fields.get("tools"))),
        prompts=tuple(itertools.chain.from_iterable(said)),
        last_user_text=said[-1][-1] if said and said[-1] else "",
        stream=fields.get("stream") is True,
        session_id=headers.get("x-claude-code-session-id"),
        agent_id=headers.get("x-claude-code-agent-id"),
        headers={name: value for name, value in headers.items() if name not in _SECRET_HEADERS},
        body=fields,
    )
    return attrs.evolve(request, kind=_kind_of(request))


def _kind_of(request: ApiRequest) -> RequestKind:
    for kind, matches in _SIDES:
        if matches(request):
            return kind
    return RequestKind.MAIN if request.agent_id is None else RequestKind.SUBAGENT


_Test: TypeAlias = "Callable[[ApiRequest], bool]"


def _system_says(words: str) -> _Test:
    return lambda request: words in request.system


def _user_says(words: str) -> _Test:
    return lambda request: any(text.startswith(words) for text in _last_user_texts(request))


def _wants_field(name: str) -> _Test:
    def matches(request: ApiRequest) -> bool:
        form = _mapping(_mapping(request.body.get("output_config")).get("format"))
        schema = _mapping(form.get("schema"))
        return name in _mapping(schema.get("properties"))

    return matches


# The order matters where a fork of an agent's conversation carries the agent's id: what is asked
# last counts more than who asks.
_SIDES: Final[tuple[tuple[RequestKind, _Test], ...]] = (
    (RequestKind.MODEL_PROBE, lambda request: request.body.get("max_tokens") == 1),
    (RequestKind.TITLE, _wants_field("title")),
    (RequestKind.HOOK, _wants_field("ok")),
    (RequestKind.COMPACTION, _user_says("CRITICAL: Respond with TEXT ONLY.")),
    (RequestKind.SUGGESTION, _user_says("[SUGGESTION MODE:")),
    (RequestKind.SIDE_QUESTION, _user_says("<system-reminder>This is a side question from")),
    (RequestKind.AGENT_SUMMARY, _user_says("Describe your most recent action in 3-5 words")),
    (RequestKind.AGENT_SUMMARY, _user_says("Describe the agent's most recent action in 3-5 words")),
    (RequestKind.RECAP, _user_says("The user stepped away and is coming back. Recap in")),
    (RequestKind.TOOL_SUMMARY, _system_says("summary label describing what these tool calls")),
    (RequestKind.HOOK_AGENT, _system_says("You are verifying a stop condition in Claude Code.")),
    (RequestKind.CLASSIFIER, _system_says("You are a security monitor for autonomous AI coding")),
    (RequestKind.WEB_SEARCH, lambda request: request.tools == ("web_search",)),
    (RequestKind.WEB_PAGE, lambda request: not request.tools and _has_web_page(request)),
)


def _has_web_page(request: ApiRequest) -> bool:
    return any("Web page content:" in text for text in _last_user_texts(request))


def _last_user_texts(request: ApiRequest) -> list[str]:
    for message in reversed(request.messages):
        if message.get("role") == "user":
            return list(_texts(message.get("content")))
    return []


def _texts(content: object) -> Iterator[str]:
    """Give the texts of what is a text or a list of blocks."""
    if isinstance(content, str):
        yield content
    for block in _list(content):
        text = _mapping(block).get("text")
        if isinstance(text, str):
            yield text


def _said(message: Mapping[str, object]) -> list[str]:
    """Give what the user said in a message, block by block."""
    texts = (text.strip() for text in _texts(message.get("content")))
    return [text for text in texts if text and not _is_added(text)]


def _is_added(text: str) -> bool:
    return any(text.startswith(begin) and text.endswith(end) for begin, end in _ADDED)


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
