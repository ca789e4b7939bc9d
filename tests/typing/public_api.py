"""What the types of the public API are: only type checkers read this."""

from __future__ import annotations

from typing import assert_type

import trio

from claude_trio import (
    Allow,
    Deny,
    PermissionRequest,
    Session,
    SessionOptions,
    Turn,
    TurnFailed,
    open_session,
    run_prompt,
)
from claude_trio.messages import Message, Outcome, Result

__all__ = ["guard", "main"]


async def guard(request: PermissionRequest) -> Allow | Deny:
    assert_type(request.tool_name, str)
    return Allow() if request.tool_name == "Read" else Deny("read only")


async def main() -> None:
    options = SessionOptions(model="haiku")
    async with (
        trio.open_nursery() as nursery,
        open_session(nursery, options, on_permission=guard) as session,
    ):
        assert_type(session, Session)
        assert_type(session.session_id, str | None)
        assert_type(await session.prompt("Hello"), Result)
        async with session.turn("Go on", check=False) as turn:
            assert_type(turn, Turn)
            async for message in turn:
                assert_type(message, Message)
    try:
        result = await run_prompt("One question")
    except TurnFailed as error:
        assert_type(error.result, Result | None)
    else:
        assert_type(result.outcome, Outcome)
        assert_type(result.text, str)
