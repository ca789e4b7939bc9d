"""What the real CLI makes of an API that fails, breaks off and dawdles."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Final

import attrs
import pytest
import trio

from claude_trio import open_session
from claude_trio.messages import ApiRetry
from claude_trio.testing import (
    Reply,
    RequestKind,
    ScriptExhausted,
    call_tool,
    cut,
    fail,
    hang,
    pause,
    say,
)
from tests.process.real import cli_options, real_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from claude_trio import Session
    from claude_trio.messages import Result
    from claude_trio.testing import ApiRequest, MessagesApi

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

# How often CLI 2.1.332 asks when it may try twice: some errors it tries again in other shapes, some
# after a wait, one after a summary of the conversation, and some it believes.
TRIES: Final = {
    400: 6,
    401: 2,
    402: 1,
    403: 1,
    404: 2,
    408: 2,
    409: 2,
    413: 2,
    422: 6,
    429: 2,
    500: 2,
    502: 2,
    503: 2,
    504: 2,
    529: 2,
}


@contextlib.asynccontextmanager
async def session_on(
    script: Sequence[Reply] | Callable[[ApiRequest], Reply], cwd: Path, **env: str
) -> AsyncIterator[tuple[Session, MessagesApi]]:
    async with real_api(script) as api:
        options = cli_options(api, cwd, env={**api.environment(), **env})
        async with open_session(None, options) as session:
            yield session, api


def main_requests(api: MessagesApi) -> int:
    return sum(request.kind is RequestKind.MAIN for request in api.requests)


async def said(session: Session, *prompts: str) -> list[Result]:
    return [await session.prompt(prompt, check=False) for prompt in prompts]


async def test_each_error_that_stays_fails_its_own_prompt_and_no_other(tmp_path: Path) -> None:
    script = [
        reply
        for status in TRIES
        for reply in (fail(status, f"no {status}", always=True), say(f"after {status}"))
    ]
    async with session_on(script, tmp_path, CLAUDE_CODE_MAX_RETRIES="1") as (session, api):
        counts: dict[int, int] = {}
        for status in TRIES:
            before = main_requests(api)
            failed, fine = await said(session, f"fail {status}", f"go on {status}")
            assert failed.api_error_status == status
            assert (fine.api_error_status, fine.text) == (None, f"after {status}")
            counts[status] = main_requests(api) - before - 1
    assert counts == TRIES


async def test_an_error_that_comes_once_is_tried_again(tmp_path: Path) -> None:
    once = [status for status, tries in TRIES.items() if tries > 1]
    script = [reply for status in once for reply in (fail(status), say(f"after {status}"))]
    async with session_on(script, tmp_path, CLAUDE_CODE_MAX_RETRIES="1") as (session, api):
        results = await said(session, *map(str, once))
        assert main_requests(api) == 2 * len(once)
    assert [result.text for result in results] == [f"after {status}" for status in once]


async def test_the_cli_waits_for_as_long_as_retry_after_says(tmp_path: Path) -> None:
    times: list[float] = []
    script = iter([fail(429, retry_after=2), say("at last")])

    def reply(_request: ApiRequest) -> Reply:
        times.append(trio.current_time())
        return next(script)

    async with session_on(reply, tmp_path) as (session, _api):
        async with session.turn("go") as turn:
            retries = [message async for message in turn if isinstance(message, ApiRetry)]
    (retry,) = retries
    assert retry.error_status == 429
    assert (retry.retry_delay_ms or 0) >= 2000  # A little more: not all come back at once.
    assert times[1] - times[0] >= 2


@pytest.mark.parametrize(
    "broken",
    [cut(), say("it begins") + cut(), say("it begins ") + pause(0.2) + say("and ") + cut()],
    ids=["at once", "in a text", "after a pause"],
)
async def test_a_stream_that_is_cut_is_asked_for_again(broken: Reply, tmp_path: Path) -> None:
    async with session_on([broken, say("whole")], tmp_path) as (session, api):
        (result,) = await said(session, "go")
        assert [request.prompts for request in api.requests] == [("go",)] * 2
    assert result.text == "whole"


async def test_a_stream_that_is_always_cut_fails_the_prompt(tmp_path: Path) -> None:
    script = [attrs.evolve(say("it begins") + cut(), always=True), say("still here")]
    async with session_on(script, tmp_path, CLAUDE_CODE_MAX_RETRIES="1") as (session, api):
        failed, fine = await said(session, "go", "and now?")
        assert len(api.requests) >= 3
    assert failed.api_error_status is None
    assert "API Error" in failed.text
    assert fine.text == "still here"


async def test_a_call_that_came_before_the_cut_is_carried_out(tmp_path: Path) -> None:
    touch = call_tool("Bash", {"command": "echo seen", "description": "work"})
    # The CLI may hear of the cut before it has read what came before it.
    script = [touch + pause(0.5) + cut(), say("whole")]
    async with session_on(script, tmp_path) as (session, api):
        (result,) = await said(session, "go")
        assert "seen" in str(api.requests[1].messages)
    assert result.text == "whole"


async def test_an_error_inside_a_stream_is_followed_by_a_request_that_does_not_stream(
    tmp_path: Path,
) -> None:
    async with session_on([say("it be") + fail(529), say("whole")], tmp_path) as (
        session,
        api,
    ):
        (result,) = await said(session, "go")
        assert [request.stream for request in api.requests] == [True, False]
    assert result.text == "whole"


async def test_a_slow_stream_arrives_as_slowly_as_it_is_sent(tmp_path: Path) -> None:
    slow = pause(0.5) + say("one two three", chunks=3, delay=0.5)
    async with session_on([slow], tmp_path) as (session, _api):
        async with session.turn("go") as turn:
            times = [trio.current_time() async for _text in turn.text]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(gaps) == 2
    assert min(gaps) > 0.3


@pytest.mark.parametrize("hanging", [hang(), say("it begins ") + hang()], ids=["head", "text"])
async def test_a_reply_that_hangs_is_the_deadlines_to_end(hanging: Reply, tmp_path: Path) -> None:
    async with session_on([hanging, say("still here")], tmp_path) as (session, api):
        with trio.move_on_after(1) as scope:
            await session.prompt("go")
        assert scope.cancelled_caught
        (fine,) = await said(session, "and now?")
        assert api.requests[-1].last_user_text == "and now?"
    assert fine.text == "still here"


async def test_a_reply_without_words_and_one_that_is_too_long_are_gone_on_with(
    tmp_path: Path,
) -> None:
    script = [Reply(), say("words"), say("long", stop_reason="max_tokens"), say("the rest")]
    async with session_on(script, tmp_path) as (session, api):
        results = await said(session, "one", "two")
        # What the CLI says to its model in between is nothing that the user said.
        assert {request.prompts for request in api.requests} == {("one",), ("one", "two")}
        assert [request.kind for request in api.requests] == [RequestKind.MAIN] * 4
    assert [result.text for result in results] == ["words", "the rest"]


async def test_a_script_that_runs_out_says_so_to_the_cli_and_to_the_test(tmp_path: Path) -> None:
    results: list[Result] = []
    with pytest.raises(ScriptExhausted, match="'b'"):
        await ask_twice(results, tmp_path)
    assert results[0].text == "one"
    assert results[1].api_error_status == 402
    assert "no reply left" in results[1].text


async def ask_twice(results: list[Result], cwd: Path) -> None:
    async with session_on([say("one")], cwd) as (session, _api):
        results += await said(session, "a", "b")
