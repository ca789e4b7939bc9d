"""What tests and demos need to run sessions without a network or a key.

`FakeClaude` is a CLI in memory, for Trio's mock clock; `open_messages_api` is a loopback stand-in
for the Messages API, on which the real CLI runs offline.  Both play scripts made of the same
replies.
"""

from __future__ import annotations

from claude_trio.testing import faults
from claude_trio.testing._api_requests import ApiRequest, RequestKind
from claude_trio.testing._api_script import ScriptExhausted, answer_side
from claude_trio.testing._cancel import LawBroken, cancel_everywhere, cancel_here
from claude_trio.testing._check_permissions import check_permission_handler
from claude_trio.testing._check_session import check_session
from claude_trio.testing._fake import FakeClaude
from claude_trio.testing._fake_calls import ToolError
from claude_trio.testing._fake_file import BadScript, load_fake
from claude_trio.testing._fake_open import open_fake_session
from claude_trio.testing._fake_script import Conversation
from claude_trio.testing._find import find_claude
from claude_trio.testing._handler_laws import BadHandler, HandlerLaw
from claude_trio.testing._leaks import assert_no_leaks
from claude_trio.testing._messages_api import MessagesApi, open_messages_api
from claude_trio.testing._player import ReplayMismatch
from claude_trio.testing._recorder import Recorder, recording
from claude_trio.testing._replay import Replay, replay
from claude_trio.testing._replies import (
    Reply,
    Usage,
    call_agent,
    call_tool,
    call_tools,
    cut,
    end,
    fail,
    hang,
    hold,
    pause,
    say,
    think,
)

__all__ = [
    "ApiRequest",
    "BadHandler",
    "BadScript",
    "Conversation",
    "FakeClaude",
    "HandlerLaw",
    "LawBroken",
    "MessagesApi",
    "Recorder",
    "Replay",
    "ReplayMismatch",
    "Reply",
    "RequestKind",
    "ScriptExhausted",
    "ToolError",
    "Usage",
    "answer_side",
    "assert_no_leaks",
    "call_agent",
    "call_tool",
    "call_tools",
    "cancel_everywhere",
    "cancel_here",
    "check_permission_handler",
    "check_session",
    "cut",
    "end",
    "fail",
    "faults",
    "find_claude",
    "hang",
    "hold",
    "load_fake",
    "open_fake_session",
    "open_messages_api",
    "pause",
    "recording",
    "replay",
    "say",
    "think",
]
