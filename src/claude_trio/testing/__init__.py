"""What tests and demos need to run sessions without a network or a key.

`FakeClaude` is a CLI in memory, for Trio's mock clock; `open_messages_api` is a loopback stand-in
for the Messages API, on which the real CLI runs offline.  Both play scripts made of the same
replies.
"""

from __future__ import annotations

from claude_trio.testing._api_requests import ApiRequest, RequestKind
from claude_trio.testing._api_script import ScriptExhausted, answer_side
from claude_trio.testing._fake import FakeClaude
from claude_trio.testing._messages_api import MessagesApi, open_messages_api
from claude_trio.testing._replies import (
    Reply,
    Usage,
    call_tool,
    call_tools,
    cut,
    fail,
    hang,
    hold,
    pause,
    say,
    think,
)

__all__ = [
    "ApiRequest",
    "FakeClaude",
    "MessagesApi",
    "Reply",
    "RequestKind",
    "ScriptExhausted",
    "Usage",
    "answer_side",
    "call_tool",
    "call_tools",
    "cut",
    "fail",
    "hang",
    "hold",
    "open_messages_api",
    "pause",
    "say",
    "think",
]
