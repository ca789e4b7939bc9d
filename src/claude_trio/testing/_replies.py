"""What a scripted model answers: small values that add up.

A reply is a row of parts, and ``+`` joins rows: ``think("hm") + say("Let me look") +
call_tool("Read", {"file_path": "a.py"})``.  Parts that say something are streamed in their order;
neighbouring texts run on in one content block, also across a pause, so that
``say("one ") + pause(5) + say("two")`` is a text that stops for five seconds in the middle.  What
goes wrong is a part as well, and its place tells when: a `fail` that comes first refuses the
request with its HTTP status, a later one is an error in the middle of the stream.

What a tool gives, and how a turn ends, is the CLI's part: the real one sees to both, and a fake
does what `call_tool` and `end` say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003  Script files look the types up.
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

if TYPE_CHECKING:
    import trio

__all__ = [
    "Cut",
    "Failure",
    "Hold",
    "Part",
    "Pause",
    "Reply",
    "Text",
    "Thinking",
    "ToolCall",
    "Usage",
    "call_agent",
    "call_tool",
    "call_tools",
    "cut",
    "end",
    "fail",
    "hang",
    "hold",
    "pause",
    "say",
    "think",
]

_DESCRIPTION: Final = 30
_ERROR_TYPES: Final[dict[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@attrs.frozen(kw_only=True)
class Text:
    """A piece of the answer's text; one delta on the wire.

    Attributes:
      text: The words.
    """

    text: str


@attrs.frozen(kw_only=True)
class Thinking:
    """A piece of thinking; one delta on the wire.

    Attributes:
      text: The thought.
      signature: What the API signs it with; the CLI hands it back unread.
    """

    text: str
    signature: str = "c2lnbmF0dXJl"


@attrs.frozen(kw_only=True)
class ToolCall:
    """One call of a tool.

    Attributes:
      name: The tool, as the model knows it; an agent is the tool ``Agent``.
      input: Its arguments.
      id: The call's id; made up if None.
      returns: What a fake gives as its result; None leaves it to the fake.
      fails: The error that a fake gives instead.
      agent: What the agent says that a call of ``Agent`` starts; None leaves it to the ``agents``
        of whoever plays the script.
    """

    name: str
    input: Mapping[str, object]
    id: str | None = None
    returns: str | None = None
    fails: str | None = None
    agent: tuple[Reply, ...] | None = None


@attrs.frozen(kw_only=True)
class Pause:
    """A time in which nothing is sent.

    Attributes:
      seconds: How long; `math.inf` until the client hangs up.
    """

    seconds: float = attrs.field(validator=attrs.validators.ge(0))


@attrs.frozen(kw_only=True)
class Hold:
    """A wait for something outside of the script.

    Attributes:
      event: Nothing is sent until this is set.
    """

    event: trio.Event


@attrs.frozen(kw_only=True)
class Failure:
    """An error of the API: the answer ends here.

    Attributes:
      status: The HTTP status; in the middle of a stream it only chooses the type.
      type: The API's word for it.
      message: Text for people.
      retry_after: Seconds to wait before another try, sent as ``retry-after``; None sends nothing.
    """

    status: int = attrs.field(validator=[attrs.validators.ge(400), attrs.validators.le(599)])
    type: str
    message: str
    retry_after: float | None = None


@attrs.frozen(kw_only=True)
class Cut:
    """The connection breaks here, with no end of the answer."""


Part: TypeAlias = Text | Thinking | ToolCall | Pause | Hold | Failure | Cut


@attrs.frozen(kw_only=True)
class Usage:
    """What an answer is said to have used, in tokens.

    Attributes:
      input_tokens: What was read anew.
      output_tokens: What was written.
      cache_creation_input_tokens: What was read, and put into the cache.
      cache_read_input_tokens: What came from the cache.
    """

    input_tokens: int = 100
    output_tokens: int = 20
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


@attrs.frozen(kw_only=True)
class Reply:
    """One whole answer of the model; without parts, an empty one.

    Attributes:
      parts: What happens, in order.
      stop_reason: Why the model stops; None chooses ``tool_use`` or ``end_turn``.
      usage: The tokens that it is said to have used.
      always: Whether a script in a row stays at this reply until the user says something new, so
        that every retry gets it again.
      ending: The fields of the result with which a fake ends the turn here; None goes on as usual.
    """

    parts: tuple[Part, ...] = ()
    stop_reason: str | None = None
    usage: Usage = Usage()
    always: bool = False
    ending: Mapping[str, object] | None = None

    def __add__(self, other: Reply) -> Reply:
        """Let ``other`` follow; where both choose something, the later one counts."""
        if not isinstance(other, Reply):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return Reply(
            parts=self.parts + other.parts,
            stop_reason=other.stop_reason or self.stop_reason,
            usage=self.usage if other.usage == Usage() else other.usage,
            always=self.always or other.always,
            ending=self.ending if other.ending is None else other.ending,
        )


def say(text: str, *, chunks: int = 1, delay: float = 0.0, stop_reason: str | None = None) -> Reply:
    """Answer with a text.

    Args:
      text: What the model says.
      chunks: In how many pieces it is streamed, of about the same length.
      delay: Seconds between one piece and the next.
      stop_reason: Why the model stops, for example ``"max_tokens"``.
    """
    return Reply(parts=_in_pieces(text, chunks, delay), stop_reason=stop_reason)


def think(text: str, *, chunks: int = 1, delay: float = 0.0) -> Reply:
    """Think, which is sent as a block of its own.

    Args:
      text: What the model thinks.
      chunks: In how many pieces it is streamed.
      delay: Seconds between one piece and the next.
    """
    pieces = _in_pieces(text, chunks, delay)
    return Reply(
        parts=tuple(Thinking(text=part.text) if isinstance(part, Text) else part for part in pieces)
    )


def call_tool(
    name: str,
    input: Mapping[str, object] | None = None,  # noqa: A002  The API's word for it.
    *,
    text: str = "",
    id: str | None = None,  # noqa: A002  The API's word for it.
    returns: str | None = None,
    fails: str | None = None,
) -> Reply:
    """Call one tool; ``+`` adds a call that runs beside it.

    Args:
      name: The tool.
      input: Its arguments.
      text: What the model says before the call.
      id: The call's id; made up if None.
      returns: What a fake gives as the tool's result, if the call is allowed.  The real CLI runs
        the tool.
      fails: The error that a fake gives instead.
    """
    call = ToolCall(name=name, input=input or {}, id=id, returns=returns, fails=fails)
    return (say(text) if text else Reply()) + Reply(parts=(call,))


def call_agent(
    prompt: str,
    *replies: Reply,
    background: bool = True,
    description: str = "",
    text: str = "",
) -> Reply:
    """Let an agent work: a call of the tool ``Agent``.

    Args:
      prompt: What the agent is told.
      *replies: What the agent says, one after the other; without any, the ``agents`` of whoever
        plays the script tell.
      background: Whether the turn goes on meanwhile.
      description: A few words on the task, for people; the beginning of the prompt if empty.
      text: What the model says before the call.
    """
    use = {
        "description": description or prompt[:_DESCRIPTION],
        "prompt": prompt,
        "subagent_type": "general-purpose",
        "run_in_background": background,
    }
    call = ToolCall(name="Agent", input=use, agent=replies or None)
    return (say(text) if text else Reply()) + Reply(parts=(call,))


def call_tools(*calls: tuple[str, Mapping[str, object]], text: str = "") -> Reply:
    """Call several tools in one answer.

    Args:
      *calls: For each call the tool's name and its arguments.
      text: What the model says before them.
    """
    if not calls:
        raise ValueError("there is no tool to call")
    reply = say(text) if text else Reply()
    for name, arguments in calls:
        reply += call_tool(name, arguments)
    return reply


def fail(
    status: int,
    message: str | None = None,
    *,
    type: str | None = None,  # noqa: A002  The API's word for it.
    retry_after: float | None = None,
    always: bool = False,
) -> Reply:
    """Fail with an error of the API.

    The CLI tries most statuses again, and each try takes the next reply of a script in a row:
    ``[fail(529), say("at last")]`` fails once.  An ``always`` failure stays for all tries of the
    prompt, and the script goes on with the next prompt.

    Args:
      status: The HTTP status, 400 to 599.
      message: Text for people.
      type: The API's word for it; the usual one of the status if None.
      retry_after: Seconds that the client is asked to wait before it tries again.
      always: Whether every further try of this prompt fails as well.
    """
    kind = type or _ERROR_TYPES.get(status, "api_error" if status >= 500 else _ERROR_TYPES[400])  # noqa: PLR2004  A class of HTTP statuses.
    failure = Failure(
        status=status,
        type=kind,
        message=kind if message is None else message,
        retry_after=retry_after,
    )
    return Reply(parts=(failure,), always=always)


def end(subtype: str = "success", **fields: object) -> Reply:
    """End the turn with a result of this kind; what stands before it has been said.

    A fake does so.  The real CLI ends its turns by itself, and goes on as if this were not there.

    Args:
      subtype: The kind of the result, such as ``"error_during_execution"``.
      **fields: What else the result says; without ``is_error``, all but ``"success"`` are errors.
    """
    return Reply(ending={"subtype": subtype, "is_error": subtype != "success", **fields})


def pause(seconds: float) -> Reply:
    """Send nothing for a time; first in a reply, not even the headers."""
    return Reply(parts=(Pause(seconds=seconds),))


def hold(event: trio.Event) -> Reply:
    """Send nothing until ``event`` is set."""
    return Reply(parts=(Hold(event=event),))


def hang() -> Reply:
    """Send nothing more, and never end: only an interrupt or a timeout of the client helps."""
    return pause(math.inf)


def cut() -> Reply:
    """Break the connection; what stands before it in the reply has been sent."""
    return Reply(parts=(Cut(),))


def _in_pieces(text: str, chunks: int, delay: float) -> tuple[Text | Pause, ...]:
    if chunks < 1:
        raise ValueError(f"chunks is {chunks}, and must be at least 1")
    parts: list[Text | Pause] = []
    for number in range(chunks):
        piece = text[len(text) * number // chunks : len(text) * (number + 1) // chunks]
        if not piece:
            continue
        if parts and delay:
            parts.append(Pause(seconds=delay))
        parts.append(Text(text=piece))
    return tuple(parts)
