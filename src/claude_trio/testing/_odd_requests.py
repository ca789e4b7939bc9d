"""Permission requests as a handler may get them: the ordinary ones, and the oddest there can be.

The CLI sends names of tools that nobody knows, inputs of any shape and size, and leaves out what it
has nothing to say on.  What is here is within what `PermissionRequest` promises, and no further.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Final

from claude_trio.permissions import PermissionRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["odd_requests", "ordinary_requests"]

_Json = dict[str, object]

# The full dress of CLI 2.1.332.
_ORDINARY: Final[_Json] = {
    "subtype": "can_use_tool",
    "tool_name": "Bash",
    "display_name": "Bash",
    "input": {"command": "touch made.txt", "description": "Make a file"},
    "title": "Claude wants to make a file",
    "description": "Make a file",
    "permission_suggestions": [
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "touch made.txt"}],
            "behavior": "allow",
            "destination": "localSettings",
        },
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    ],
    "blocked_path": "/home/user/project/made.txt",
    "decision_reason": "The path is not in the working directory",
    "decision_reason_type": "workingDir",
    "tool_use_id": "toolu_01",
}

_HUGE: Final = 1024 * 1024
_DEEP: Final = 200
# Signs beyond the first plane, from right to left, of no width, of no character at all, and half
# of a pair, which JSON can spell.
_UNICODE: Final = "\U0001f980 \u202e\u05d0\u05d1 \u200b\u0000\x1b[31m \u2028\ud800"
_NAMES: Final = (
    "",
    " ",
    "Read",
    "Write",
    "WebFetch",
    "Task",
    "Agent",
    "NoSuchTool",
    "bash",
    "mcp__files__read",
    "mcp____",
    "Bash(rm *)",
    "*",
    "x" * 10_000,
    _UNICODE,
)
_VALUES: Final[tuple[object, ...]] = (None, True, 0, -1.5, "", _UNICODE, [], {}, ["rm", "-rf"])
_QUESTION: Final[_Json] = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "The red one"}],
    "multiSelect": False,
}
_SUGGESTIONS: Final[dict[str, object]] = {
    "no suggestions": [],
    "suggestions of each kind": [
        {"type": kind, "rules": [{"toolName": "Read"}], "behavior": "deny", "destination": place}
        for kind in ("addRules", "replaceRules", "removeRules")
        for place in ("session", "localSettings", "projectSettings", "userSettings", "cliArg")
    ]
    + [
        {"type": kind, "directories": ["/", ""], "destination": "session"}
        for kind in ("addDirectories", "removeDirectories")
    ],
    "suggestions that nobody knows": [{"type": "bribe"}, {}, "what", None, 7],
    "suggestions that are none": "always",
}


def ordinary_requests() -> Iterator[tuple[str, PermissionRequest]]:
    """Yield a request of each kind, with words for what it is for."""
    yield "a command", _request()
    path = "/home/user/project/a.txt"
    yield (
        "a file to write",
        _request(tool_name="Write", input={"file_path": path, "content": "x\n"}, blocked_path=path),
    )
    yield (
        "a page to fetch",
        _request(tool_name="WebFetch", input={"url": "http://127.0.0.1:9/a", "prompt": "What?"}),
    )
    yield (
        "a question for the user",
        _request(
            tool_name="AskUserQuestion",
            input={"questions": [_QUESTION]},
            requires_user_interaction=True,
        ),
    )
    yield (
        "a plan to approve",
        _request(
            tool_name="ExitPlanMode", input={"plan": "# Plan"}, requires_user_interaction=True
        ),
    )
    yield (
        "a tool of an MCP server",
        _request(
            tool_name="mcp__own__greet",
            input={"name": "Ada"},
            mcp_server={"name": "own", "source": "sdk"},
        ),
    )
    yield "a command of a subagent", _request(agent_id="a20e7d33c1b0f5e9a")


def odd_requests() -> Iterator[tuple[str, PermissionRequest]]:
    """Yield requests, each with words for what is odd about it."""
    yield (
        "a request with nothing but an id and a name",
        PermissionRequest(id="1", tool_name="Bash", input={}),
    )
    yield "an empty request", PermissionRequest.from_request("", {})
    for name in _NAMES:
        yield f"a tool called {name[:40]!r}", _request(tool_name=name)
    yield from _odd_inputs()
    for words, suggestions in _SUGGESTIONS.items():
        yield words, _request(permission_suggestions=suggestions)
    for name in _ORDINARY:
        if name not in {"subtype", "tool_name", "input"}:
            yield f"a request without {name}", _request(**{name: None})
            yield f"a request with an odd {name}", _request(**{name: _UNICODE})
    yield "a request with fields that nobody knows", _request(weather={"wind": [1, 2]})


def _odd_inputs() -> Iterator[tuple[str, PermissionRequest]]:
    yield "an empty input", _request(input={})
    yield "an input that is none", _request(input=["not", "a", "mapping"])
    for value in _VALUES:
        given = dict.fromkeys(("command", "file_path", "url", "content", _UNICODE, ""), value)
        yield f"an input whose values are {value!r}", _request(input=given)
    yield "an input of a megabyte", _request(input={"command": "x" * _HUGE, "file_path": "/a"})
    yield "an input of many fields", _request(input={f"field {n}": n for n in range(5000)})
    nested = functools.reduce(lambda inner, _: {"command": inner}, range(_DEEP), _Json())
    yield "an input that is nested deeply", _request(input=nested)
    paths = ("/etc/../etc/passwd", "~", "..", "\\\\host\\share", "//", "/" + "d" * 5000)
    for path in paths:
        yield (
            f"the path {path[:40]!r}",
            _request(
                tool_name="Write", input={"file_path": path, "content": ""}, blocked_path=path
            ),
        )


def _request(**fields: object) -> PermissionRequest:
    """Read a request that differs from the ordinary one; None leaves a field out."""
    changed: Mapping[str, object] = {**_ORDINARY, **fields}
    given = {name: value for name, value in changed.items() if value is not None}
    # A copy, so that whoever changes a request changes no other.
    return PermissionRequest.from_request("req_1", copy.deepcopy(given))
