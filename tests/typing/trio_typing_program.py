"""A program that still uses trio-typing, and uses claude-trio: only type checkers read it.

The stubs of trio-typing replace Trio's own types, and its plugin changes how async context
managers and ``start_soon`` are seen.  Our public API must keep its types under both.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, assert_type

import trio
from trio_typing import TaskStatus, takes_callable_and_args

from claude_trio import (
    Allow,
    Deny,
    PermissionRequest,
    Session,
    SessionOptions,
    TurnFailed,
    open_session,
    run_prompt,
)
from claude_trio.messages import Message, Outcome, Result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

__all__ = ["main"]


@takes_callable_and_args
async def in_order(fn: Callable[..., Awaitable[object]], *args: Any) -> None:
    await fn(*args)


async def guard(request: PermissionRequest) -> Allow | Deny:
    assert_type(request.tool_name, str)
    return Allow() if request.tool_name == "Read" else Deny("read only")


@asynccontextmanager
async def quick_session(nursery: trio.Nursery) -> AsyncIterator[Session]:
    async with open_session(nursery, SessionOptions(model="haiku"), on_permission=guard) as session:
        assert_type(session, Session)
        yield session


async def serve(session: Session, *, task_status: TaskStatus[str | None]) -> None:
    task_status.started(session.session_id)
    async with session.turn("Go on") as turn:
        async for message in turn:
            assert_type(message, Message)


async def main() -> None:
    async with trio.open_nursery() as nursery, quick_session(nursery) as session:
        result = await session.prompt("Hello")
        assert_type(result, Result)
        assert_type(result.outcome, Outcome)
        await nursery.start(serve, session)
        nursery.start_soon(session.interrupt)
        await in_order(session.prompt, "Good-bye")
    try:
        assert_type(await run_prompt("One question"), Result)
    except TurnFailed as error:
        assert_type(error.result, Result | None)
