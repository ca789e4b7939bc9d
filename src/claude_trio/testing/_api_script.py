"""Which reply a request gets.

A script in a row answers the requests of the main conversation, one after the other, and nothing
else uses it up: agents have rows of their own, and what the CLI asks on the side is answered by a
table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias, final

from claude_trio._errors import ClaudeTrioError
from claude_trio.testing._api_requests import ApiRequest, RequestKind
from claude_trio.testing._replies import Reply, ToolCall, call_tool, fail, say

__all__ = ["Agents", "Director", "Script", "ScriptExhausted", "ScriptFunction", "answer_side"]

ScriptFunction: TypeAlias = Callable[[ApiRequest], Reply | Awaitable[Reply]]
"""Chooses the reply to a request; may be async, and wait for what it likes."""

Script: TypeAlias = Sequence[Reply] | ScriptFunction
"""Replies in a row, or a function that chooses each."""

Agents: TypeAlias = Mapping[str, Sequence[Reply]]
"""For agents whose prompt contains the key: their replies in a row, anew for each agent."""

# The CLI does not try a 402 again, and shows its text without words of its own.
_EXHAUSTED_STATUS: Final = 402


@final
class ScriptExhausted(ClaudeTrioError):
    """Tell that the CLI asked for more replies than the script has.

    Attributes:
      requests: The requests that found none.
    """

    def __init__(self, requests: Sequence[ApiRequest]) -> None:
        super().__init__(
            f"the script ran out of replies: {'; '.join(_describe(each) for each in requests)}"
        )
        self.requests: tuple[ApiRequest, ...] = tuple(requests)


@final
class Director:
    """Hand out the replies of a script."""

    def __init__(self, script: Script, *, agents: Agents, side: ScriptFunction) -> None:
        self._script = script if callable(script) else _Row(_checked(script))
        self._agents = {marker: _checked(replies) for marker, replies in agents.items()}
        self._agent_rows: dict[str, _Row] = {}
        self._called: list[tuple[str, Sequence[Reply]]] = []
        self._side = side
        self.unanswered: list[ApiRequest] = []

    def choose(self, request: ApiRequest) -> Reply | Awaitable[Reply]:
        """Choose the reply, at once or as something to wait for.

        Rows are used up in the order of the calls.  What a function of the script raises comes out
        as it is.
        """
        chooser = self._chooser(request)
        if not isinstance(chooser, _Row):
            return chooser(request)
        reply = chooser.take(request)
        return self._no_reply(request) if reply is None else reply

    def expect_agents(self, reply: Reply) -> None:
        """Have the agents that a reply starts take the replies that it brings for them."""
        for part in reply.parts:
            if isinstance(part, ToolCall) and part.agent is not None:
                self._called.append((str(part.input.get("prompt", "")).strip(), part.agent))

    def _chooser(self, request: ApiRequest) -> _Row | ScriptFunction:
        if request.is_side:
            return self._side
        if request.agent_id is None:
            return self._script
        row = self._agent_rows.get(request.agent_id)
        if row is not None:
            return row
        replies = self._replies_for(request.prompts[0] if request.prompts else "")
        if replies is not None:
            row = self._agent_rows[request.agent_id] = _Row(replies)
            return row
        return _done if isinstance(self._script, _Row) else self._script

    def _replies_for(self, task: str) -> Sequence[Reply] | None:
        """Find what a new agent says: what came with its call, or else what its prompt names."""
        for called in self._called:
            if called[0] == task:
                self._called.remove(called)
                return called[1]
        for marker, replies in self._agents.items():
            if marker in task:
                return replies
        return None

    def _no_reply(self, request: ApiRequest) -> Reply:
        self.unanswered.append(request)
        return fail(_EXHAUSTED_STATUS, f"the script has no reply left for: {_describe(request)}")


@final
class _Row:
    """Replies one after the other; one that is ``always`` stays for its prompt."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = iter(replies)
        self._staying: tuple[Reply, tuple[str, ...]] | None = None

    def take(self, request: ApiRequest) -> Reply | None:
        if self._staying is not None:
            reply, prompts = self._staying
            # The CLI may put a summary in the place of what came earlier, and try again.
            if prompts[len(prompts) - len(request.prompts) :] == request.prompts:
                return reply
            self._staying = None
        taken = next(self._replies, None)
        if taken is not None and taken.always:
            self._staying = (taken, request.prompts)
        return taken


def _checked(replies: Sequence[Reply]) -> tuple[Reply, ...]:
    for reply in replies:
        if not isinstance(reply, Reply):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a script is made of replies, and {reply!r} is none")
    return tuple(replies)


def answer_side(request: ApiRequest) -> Reply:
    """Answer what the CLI asks on the side: what it can use, and as little as that."""
    return _SIDE_ANSWERS.get(request.kind, _DONE)


def _done(_request: ApiRequest) -> Reply:
    return _DONE


def _describe(request: ApiRequest) -> str:
    last = repr(request.last_user_text[:200]) if request.last_user_text else "tool results"
    return f"the {request.kind.value} request after {last}"


_DONE: Final = say("Done.")
_SUMMARY: Final = "<analysis>\nAll was said.\n</analysis>\n<summary>\nA scripted talk.\n</summary>"
_SIDE_ANSWERS: Final[dict[RequestKind, Reply]] = {
    RequestKind.TITLE: say('{"title": "Scripted session"}'),
    RequestKind.COMPACTION: say(_SUMMARY),
    RequestKind.SUGGESTION: say("run the tests"),
    RequestKind.SIDE_QUESTION: say("A scripted answer."),
    RequestKind.AGENT_SUMMARY: say("Working on the task"),
    RequestKind.TOOL_SUMMARY: say("Used tools"),
    RequestKind.RECAP: say("The work goes on."),
    RequestKind.HOOK: say('{"ok": true}'),
    RequestKind.HOOK_AGENT: call_tool("StructuredOutput", {"ok": True}),
    RequestKind.CLASSIFIER: say("<block>no</block>"),
    RequestKind.WEB_SEARCH: say("Nothing was found."),
    RequestKind.WEB_PAGE: say("The page says nothing of it."),
}
