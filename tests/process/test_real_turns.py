"""Turns on the real CLI: each has its own answer, and permissions decide what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from claude_trio import (
    DEFER,
    Allow,
    Deny,
    ExitState,
    Outcome,
    SessionState,
    TurnFailed,
    open_session,
)
from claude_trio.messages import StreamEvent
from claude_trio.permissions import Decision, allow_all
from claude_trio.testing import fail, hang, say
from tests.process.real import (
    NEW,
    OLD,
    SLOW,
    cli_options,
    real_api,
    real_session,
    within,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from claude_trio import PermissionRequest
    from claude_trio.testing import ApiRequest, Reply

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_three_turns_each_get_their_own_answer(tmp_path: Path, version: str) -> None:
    script = [say("one", chunks=2), say("two"), say("three")]
    async with real_session(script, cwd=tmp_path, version=version) as (session, _):
        started = session.session_id
        async with session.turn("first") as turn:
            assert "".join([text async for text in turn.text]) == "one"
        assert turn.settled
        assert [(await session.prompt("more")).text for _ in range(2)] == ["two", "three"]
        assert session.session_id == started
        await session.wait_idle()
    assert session.exit_status.state is ExitState.COMPLETED
    assert session.exit_status.returncode == 0


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_permission_decides_what_reaches_the_disk(tmp_path: Path, version: str) -> None:
    async def guard(request: PermissionRequest) -> Allow | Deny:
        path = str(request.input["file_path"])
        if path.endswith("changed.txt"):
            return Allow(updated_input={**request.input, "content": "as changed"})
        return Allow() if path.endswith("allowed.txt") else Deny("not that one")

    names = ["allowed.txt", "denied.txt", "changed.txt"]
    script = [reply for name in names for reply in (write(tmp_path / name), say(f"{name}: done"))]
    async with real_session(script, cwd=tmp_path, version=version, on_permission=guard) as (
        session,
        api,
    ):
        results = [await session.prompt(f"write {name}") for name in names]
        assert "not that one" in str(api.requests[3].messages[-1])
    assert [len(result.permission_denials) for result in results] == [0, 1, 0]
    assert {path.name: path.read_text() for path in tmp_path.glob("*.txt")} == {
        "allowed.txt": "as asked",
        "changed.txt": "as changed",
    }


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_deferred_permission_is_answered_later_and_only_once(
    tmp_path: Path, version: str
) -> None:
    ask, asked = trio.open_memory_channel[str](1)

    async def defer(request: PermissionRequest) -> Decision:
        ask.send_nowait(request.id)
        return DEFER

    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    script = [write(first), say("one"), write(second), say("two")]
    async with real_session(script, cwd=tmp_path, version=version, on_permission=defer) as (
        session,
        _,
    ):
        async with session.turn("write") as turn:
            request_id = await asked.receive()
            # The CLI answers other things meanwhile, and goes on waiting.
            await session.set_permission_mode("default")
            assert [request.id for request in session.pending_permissions] == [request_id]
            assert session.state is SessionState.PROMPTING
            assert not first.exists()
            assert session.answer_permission(request_id, Allow())
            assert not session.answer_permission(request_id, Deny("too late"))
            assert not session.pending_permissions
        assert turn.result is not None
        assert (turn.result.text, turn.result.permission_denials) == ("one", ())
        assert first.exists()
        assert not session.answer_permission(request_id, Deny("much too late"))
        async with session.turn("write") as turn:
            assert session.answer_permission(await asked.receive(), Deny("not this time"))
        assert turn.result is not None
        assert turn.result.text == "two"
        assert len(turn.result.permission_denials) == 1
        assert not second.exists()


async def test_a_deferred_permission_ends_with_its_turn(tmp_path: Path) -> None:
    ask, asked = trio.open_memory_channel[str](1)

    async def defer(request: PermissionRequest) -> Decision:
        ask.send_nowait(request.id)
        return DEFER

    path = tmp_path / "never.txt"
    script = [write(path), say("mine")]
    async with real_session(script, cwd=tmp_path, on_permission=defer) as (session, _):
        async with session.turn("write") as turn:
            request_id = await asked.receive()
            await turn.interrupt()
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert not session.pending_permissions
        assert not session.answer_permission(request_id, Allow())
        assert (await session.prompt("this")).text == "mine"
    assert not path.exists()


async def test_unread_messages_hold_nothing_up(tmp_path: Path) -> None:
    script = [say("word " * 150, chunks=150) + hang(), say("mine")]
    async with real_session(script, cwd=tmp_path) as (session, _):
        async with session.subscribe(1000) as events, session.turn("talk") as turn:
            heard = 0
            while heard < 150:
                heard += isinstance(await events.receive(), StreamEvent)
            with within(2):
                await session.set_model("sonnet")
                assert (await session.interrupt()).sent
            messages = [message async for message in turn]
        assert len(messages) > 150
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert (await session.prompt("this")).text == "mine"


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_an_interrupted_turn_says_so_and_the_session_lives(
    tmp_path: Path, version: str
) -> None:
    async with real_session([SLOW, say("mine")], cwd=tmp_path, version=version) as (session, _):
        async with session.turn("slow") as turn:
            async for _text in turn.text:
                with within(2):
                    await turn.interrupt()
                break
        assert turn.result is not None
        assert turn.result.outcome is Outcome.INTERRUPTED
        assert (await session.prompt("this")).text == "mine"


async def test_two_open_sessions_do_not_mix(tmp_path: Path) -> None:
    def answer(request: ApiRequest) -> Reply:
        return say(request.last_user_text.upper(), chunks=3, delay=0.02)

    answers: dict[str, list[str]] = {"a": [], "b": []}
    async with real_api(answer) as api:

        async def talk(name: str) -> None:
            async with open_session(None, cli_options(api, tmp_path)) as session:
                opened.append(session.session_id)
                for number in range(3):
                    result = await session.prompt(f"{name}{number}")
                    assert result.session_id == session.session_id
                    answers[name].append(result.text)

        opened: list[str | None] = []
        async with trio.open_nursery() as nursery:
            for name in answers:
                nursery.start_soon(talk, name)
    assert answers == {"a": ["A0", "A1", "A2"], "b": ["B0", "B1", "B2"]}
    assert len(set(opened)) == 2


async def test_a_failed_api_is_a_failed_turn_and_not_a_crash(tmp_path: Path) -> None:
    script = [fail(403, "not with that key", always=True), say("fine")]
    async with real_session(script, cwd=tmp_path) as (session, _):
        with pytest.raises(TurnFailed, match="not with that key") as caught:
            await session.prompt("go")
        assert caught.value.result is not None
        assert caught.value.result.api_error_status == 403
        assert (await session.prompt("again")).text == "fine"
    assert session.exit_status.state is ExitState.COMPLETED


async def test_an_exit_after_an_error_result_is_no_crash(tmp_path: Path) -> None:
    script = [fail(403, always=True)]
    async with real_session(script, cwd=tmp_path) as (session, _):
        result = await session.prompt("go", check=False)
        assert result.outcome is Outcome.FAILED
    assert session.exit_status.returncode == 1
    assert session.exit_status.state is ExitState.COMPLETED


async def test_long_options_reach_the_cli(tmp_path: Path) -> None:
    long = "be brief. " * 30_000
    async with real_session([say("ok")], cwd=tmp_path, system_prompt=long) as (session, api):
        await session.prompt("go")
    assert long.strip() in api.requests[0].system


async def test_a_handler_that_allows_all_is_asked_once_for_each_call(tmp_path: Path) -> None:
    asked: list[str] = []

    async def count(request: PermissionRequest) -> Decision:
        asked.append(request.tool_name)
        return await allow_all(request)

    both = write(tmp_path / "a.txt") + write(tmp_path / "b.txt")
    async with real_session([both, say("done")], cwd=tmp_path, on_permission=count) as (session, _):
        assert (await session.prompt("write both")).text == "done"
    assert asked == ["Write", "Write"]
    assert {path.name for path in tmp_path.glob("*.txt")} == {"a.txt", "b.txt"}
