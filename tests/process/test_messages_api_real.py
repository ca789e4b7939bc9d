"""The real CLI holds whole conversations with the stand-in for the Messages API."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest
import trio

from claude_trio.messages import AssistantMessage
from claude_trio.permissions import allow_all
from claude_trio.testing import (
    MessagesApi,
    RequestKind,
    assert_no_leaks,
    call_agent,
    call_tool,
    call_tools,
    fail,
    hang,
    hold,
    open_messages_api,
    say,
    think,
)
from tests.process.real import NEW, OLD, bash, real_session
from tests.real_cli import real_cli

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from claude_trio.testing import Reply

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

Json = dict[str, Any]
SECONDS: Final = 60
DUPLEX: Final = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")
MORE: Final = ("--verbose", "--include-partial-messages", "--permission-mode", "default")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with assert_no_leaks():
        yield


def clean(environment: Mapping[str, str | None]) -> dict[str, str]:
    """Give the API's environment, the place of the programs, and the mark of `assert_no_leaks`."""
    ours = {name: value for name, value in os.environ.items() if "LEAK_CHECK" in name}
    set_ = {name: value for name, value in environment.items() if value is not None}
    return {"PATH": os.defpath, **ours, **set_}


class Cli:
    """One process of the CLI; what it says is read when it is asked for."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._rest = b""
        self._lines: list[bytes] = []

    async def send(self, frame: Json) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(frame).encode() + b"\n")

    async def next_frame(self) -> Json:
        assert self.process.stdout is not None
        while not self._lines:
            data = await self.process.stdout.receive_some()
            assert data, "the CLI has closed its stdout"
            *self._lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        frame: Json = json.loads(self._lines.pop(0))
        return frame

    async def until(self, wanted: Callable[[Json], bool]) -> list[Json]:
        frames = [await self.next_frame()]
        while not wanted(frames[-1]):
            frames.append(await self.next_frame())
        return frames

    async def request(self, subtype: str, **fields: Any) -> None:
        request = {"subtype": subtype, **fields}
        await self.send({"type": "control_request", "request_id": subtype, "request": request})

    async def control(self, subtype: str, **fields: Any) -> None:
        await self.request(subtype, **fields)
        frames = await self.until(lambda frame: frame["type"] == "control_response")
        assert frames[-1]["response"]["subtype"] == "success"

    async def say(self, text: str) -> None:
        await self.send({"type": "user", "message": {"role": "user", "content": text}})

    async def prompt(self, text: str) -> list[Json]:
        await self.say(text)
        return await self.until(is_result)


def is_result(frame: Json) -> bool:
    return bool(frame["type"] == "result")


def blocks(frames: list[Json], kind: str) -> list[Json]:
    """Give the blocks of one kind in what was said by all sides."""
    contents = [frame["message"]["content"] for frame in frames if "message" in frame]
    return [block for content in contents for block in content if block["type"] == kind]


@asynccontextmanager
async def running(api: MessagesApi, cwd: Path, *args: str) -> AsyncIterator[Cli]:
    """Run the CLI while the block runs; an orderly end of the block is one of the CLI."""
    process = await trio.lowlevel.open_process(
        [str(real_cli()), *DUPLEX, *MORE, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean(api.environment()),
        cwd=cwd,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with process.stdin, process.stdout:
        try:
            cli = Cli(process)
            await cli.control("initialize")
            yield cli
            await process.stdin.aclose()
            await process.wait()
        finally:
            with trio.CancelScope(shield=True):
                process.kill()
                await process.wait()


async def test_a_conversation_of_texts(tmp_path: Path) -> None:
    with trio.fail_after(SECONDS):
        script = [think("hm") + say("hello there", chunks=3, delay=0.01), say("bye")]
        async with open_messages_api(script) as api, running(api, tmp_path) as cli:
            frames = await cli.prompt("hi")
            again = await cli.prompt("again")
        assert (frames[-1]["result"], again[-1]["result"]) == ("hello there", "bye")
        deltas = [frame["event"] for frame in frames if frame["type"] == "stream_event"]
        texts = [event["delta"].get("text") for event in deltas if "delta" in event]
        assert [text for text in texts if text] == ["hel", "lo t", "here"]
        assert [block["thinking"] for block in blocks(frames, "thinking")] == ["hm"]
        assert [request.kind for request in api.requests] == [RequestKind.MAIN] * 2
        assert api.requests[1].prompts == ("hi", "again")
        assert api.requests[0].session_id == frames[-1]["session_id"]
        assert "Bash" in api.requests[0].tools


async def test_a_turn_with_parallel_tool_calls(tmp_path: Path) -> None:
    with trio.fail_after(SECONDS):
        echoes = [("Bash", {"command": f"echo {word}"}) for word in ("one", "two")]
        script = [call_tools(*echoes, text="let me look"), say("done")]
        async with open_messages_api(script) as api, running(api, tmp_path) as cli:
            frames = await cli.prompt("look")
        assert [block["input"] for block in blocks(frames, "tool_use")] == [
            arguments for _, arguments in echoes
        ]
        results = {block["content"] for block in blocks(frames, "tool_result")}
        assert results == {"one", "two"}
        assert frames[-1]["result"] == "done"
        assert api.requests[1].last_user_text == ""


@pytest.mark.parametrize("background", [False, True])
async def test_a_subagent_has_its_own_conversation(background: bool, tmp_path: Path) -> None:
    agent: Json = {"description": "look", "prompt": "HELPER: look around"}
    agent |= {"subagent_type": "general-purpose", "run_in_background": background}
    go_on = trio.Event()
    with trio.fail_after(SECONDS):
        script = [call_tool("Agent", agent), *[say("waiting")] * background, say("all done")]
        helper = [hold(go_on) + call_tool("Bash", {"command": "echo seen"}), say("I saw it")]
        async with (
            open_messages_api(script, agents={"HELPER": helper}) as api,
            running(api, tmp_path) as cli,
        ):
            await cli.say("delegate")
            if background:  # The parent has ended its turn before the agent goes on.
                await cli.until(is_result)
            go_on.set()
            frames = await cli.until(is_result)
        assert frames[-1]["result"] == "all done"
        own = [request for request in api.requests if request.kind is RequestKind.SUBAGENT]
        assert [request.prompts for request in own] == [("HELPER: look around",)] * 2
        assert own[0].agent_id == own[1].agent_id
        assert "seen" in json.dumps(own[1].messages)


@pytest.mark.parametrize("script", [say("it begins ") + hang(), hang()])
async def test_an_interrupt_ends_a_slow_reply(script: Any, tmp_path: Path) -> None:
    with trio.fail_after(SECONDS):
        async with (
            open_messages_api([script, say("still here")]) as api,
            running(api, tmp_path) as cli,
        ):
            await cli.say("go on and on")
            await api.wait_requests(1)
            if script != hang():
                await cli.until(lambda frame: "delta" in frame.get("event", {}))
            await cli.request("interrupt")  # Its answer and the result come in either order.
            interrupted = await cli.until(is_result)
            after = await cli.prompt("and now?")
        assert interrupted[-1]["subtype"] == "error_during_execution"
        assert after[-1]["result"] == "still here"
        assert api.requests[-1].last_user_text == "and now?"


async def test_errors_are_tried_again_once_and_always(tmp_path: Path) -> None:
    with trio.fail_after(SECONDS):
        script = [fail(529), say("at last"), fail(400, "no good", always=True), say("fine")]
        async with open_messages_api(script) as api, running(api, tmp_path) as cli:
            texts = [(await cli.prompt(text))[-1] for text in ("a", "b", "c")]
        assert [result["result"] for result in texts] == [
            "at last",
            "API Error: 400 no good",
            "fine",
        ]
        assert [result["api_error_status"] for result in texts] == [None, 400, None]
        assert len(api.requests) > 4


async def test_what_the_cli_asks_on_the_side_is_answered(tmp_path: Path) -> None:
    with trio.fail_after(SECONDS):
        async with (
            open_messages_api([say("one"), say("two")]) as api,
            running(api, tmp_path) as cli,
        ):
            await cli.prompt("hi")
            await cli.control(
                "generate_session_title", description="fix the login bug", persist=True
            )
            await cli.control("side_question", question="why?")
            await cli.control("set_model", model="claude-sonnet-4-6")
            compacted = await cli.prompt("/compact")
            frames = await cli.prompt("go on")
        assert not compacted[-1]["is_error"]
        assert frames[-1]["result"] == "two"
        kinds = [request.kind for request in api.requests if request.is_side]
        assert kinds == [
            RequestKind.TITLE,
            RequestKind.SIDE_QUESTION,
            RequestKind.MODEL_PROBE,
            RequestKind.COMPACTION,
        ]


SCHEMA: Final = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ADA: Final = {"name": "Ada", "age": 36}


def structured(value: Mapping[str, object]) -> Reply:
    """Answer in the way that the CLI asks for when it was given a schema."""
    return call_tool("StructuredOutput", value)


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_structured_output_is_a_tool_whose_schema_is_the_callers(
    version: str, tmp_path: Path
) -> None:
    script = [structured(ADA), structured({"name": "Bob", "age": 7})]
    options: Json = {"cwd": tmp_path, "version": version, "json_schema": SCHEMA}
    async with real_session(script, **options) as (session, api):
        results = [await session.prompt(text) for text in ("one", "two")]
        tools: Any = api.requests[0].body["tools"]
        assert [tool["input_schema"] for tool in tools if tool["name"] == "StructuredOutput"] == [
            SCHEMA
        ]
    assert [result.structured_output for result in results] == [ADA, {"name": "Bob", "age": 7}]


async def test_structured_output_that_is_wrong_or_missing_is_asked_for_again(
    tmp_path: Path,
) -> None:
    wrong = structured({"name": "Ada"})
    script = [wrong, structured(ADA), say("no"), structured(ADA), say("no"), say("never")]
    async with real_session(script, cwd=tmp_path, json_schema=SCHEMA) as (session, api):
        outputs = [(await session.prompt(text)).structured_output for text in ("a", "b", "c")]
        assert "must have required property 'age'" in str(api.requests[1].messages)
        # The reminder is the CLI's, and no word of the user.
        assert api.requests[-1].prompts == ("a", "b", "c")
        assert api.requests[-1].last_user_text == ""
    assert outputs == [ADA, ADA, None]


async def test_structured_output_that_stays_wrong_fails_the_turn(tmp_path: Path) -> None:
    script = [attrs.evolve(structured({"name": "Ada"}), always=True), structured(ADA)]
    async with real_session(script, cwd=tmp_path, json_schema=SCHEMA) as (session, api):
        failed = await session.prompt("one", check=False)
        assert len(api.requests) == 5
        assert (await session.prompt("two")).structured_output == ADA
    assert failed.subtype == "error_max_structured_output_retries"


async def test_agents_side_by_side_have_conversations_of_their_own(tmp_path: Path) -> None:
    tasks = {name: f"{name}: look around" for name in ("LEFT", "RIGHT")}
    left, right = (
        call_agent(task, bash(f"echo {name}-seen"), say(f"{name} is done"), background=False)
        for name, task in tasks.items()
    )
    script = [left + right, say("both are back")]
    async with real_session(script, cwd=tmp_path, on_permission=allow_all) as (session, api):
        assert (await session.prompt("delegate")).text == "both are back"
        own = [request for request in api.requests if request.kind is RequestKind.SUBAGENT]
        assert len({request.agent_id for request in own}) == 2
        for name, task in tasks.items():
            first, second = [request for request in own if request.prompts == (task,)]
            assert first.agent_id == second.agent_id
            assert f"{name}-seen" in str(second.messages)
        assert all(f"{name} is done" in str(api.requests[-1].messages) for name in tasks)


async def test_messages_of_the_cli_carry_the_ids_of_their_requests(tmp_path: Path) -> None:
    async with real_session([say("one"), say("two")], cwd=tmp_path) as (session, _api):
        ids: list[str | None] = []
        for text in ("a", "b"):
            async with session.turn(text) as turn:
                ids += [
                    message.request_id
                    async for message in turn
                    if isinstance(message, AssistantMessage)
                ]
    assert len({*ids}) == 2
    assert all((each or "").startswith("req_") for each in ids)
