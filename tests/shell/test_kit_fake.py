"""Laws of fake sessions: what scripts may be, and what a fake does that no recording shows."""

from __future__ import annotations

import functools
import inspect
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    ProcessExited,
    SessionOptions,
    Transport,
    TurnFailed,
    open_session,
)
from claude_trio.messages import (
    AssistantMessage,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    UserMessage,
)
from claude_trio.permissions import allow_all
from claude_trio.testing import (
    Conversation,
    FakeClaude,
    Reply,
    ScriptExhausted,
    ToolError,
    Usage,
    call_agent,
    call_tool,
    end,
    fail,
    faults,
    hang,
    open_fake_session,
    pause,
    say,
    think,
)
from claude_trio.testing._fake_open import SessionArguments
from claude_trio.testing._shuffle import shuffled

Json = dict[str, Any]
Said = Mapping[Any, Json | bytes]
TOUCH: Final = {"command": "touch a"}
STATES: Final = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}
ASKS: Final = ("--permission-prompt-tool=stdio",)
UUID: Final = "11111111-2222-4333-8444-55555555555"


# -- scripts


async def test_a_session_on_a_row_of_replies_says_them_in_their_order(
    autojump_clock: MockClock,
) -> None:
    async with open_fake_session([say("one"), say("two")]) as session:
        assert [(await session.prompt("go")).text for _ in range(2)] == ["one", "two"]
    assert trio.current_time() == 0


async def test_a_function_is_asked_with_what_the_model_is_told(autojump_clock: MockClock) -> None:
    told: list[str] = []

    def model(text: str) -> Reply:
        told.append(text)
        return call_tool("Read", {"file_path": "a"}, returns="content") if text == "a" else say("b")

    async with open_fake_session(model) as session:
        assert (await session.prompt("a")).text == "b"
    assert told == ["a", "content"]


async def test_a_conversation_is_told_of_prompts_and_of_results(autojump_clock: MockClock) -> None:
    told: list[str] = []

    async def script(conversation: Conversation) -> None:
        told.append(await conversation.receive())
        conversation.send(call_tool("Bash", TOUCH, returns="made"))
        told.append(await conversation.receive())
        await trio.sleep(10)
        conversation.send(say("it is made"))
        told.append(await conversation.receive())
        conversation.fake.exit(7)

    with pytest.raises(ProcessExited) as caught:
        async with open_fake_session(script, on_permission=allow_all) as session:
            assert (await session.prompt("make it")).text == "it is made"
            assert trio.current_time() == 10
            await session.prompt("and now")
    assert caught.value.returncode == 7
    assert told == ["make it", "made", "and now"]


async def test_a_reply_to_what_was_interrupted_is_dropped(autojump_clock: MockClock) -> None:
    async def script(conversation: Conversation) -> None:
        assert await conversation.receive() == "one"
        await trio.sleep(100)
        conversation.send(say("too late"))
        assert await conversation.receive() == "two"
        conversation.send(say("in time"))
        with pytest.raises(ValueError, match="receive"):
            conversation.send(say("once more"))

    async with open_fake_session(script) as session:
        with trio.move_on_after(5):
            await session.prompt("one")
        assert (await session.prompt("two")).text == "in time"
    assert trio.current_time() == 100


async def test_what_was_interrupted_before_it_was_received_is_passed_over(
    autojump_clock: MockClock,
) -> None:
    async def script(conversation: Conversation) -> None:
        await trio.sleep(50)
        assert await conversation.receive() == "two"
        conversation.send(say("in time"))

    async with open_fake_session(script) as session:
        with trio.move_on_after(5):
            await session.prompt("one")
        assert (await session.prompt("two")).text == "in time"


@pytest.mark.parametrize("receives", [False, True])
async def test_a_conversation_that_has_ended_has_no_reply(
    autojump_clock: MockClock, receives: bool
) -> None:
    async def script(conversation: Conversation) -> None:
        if receives:
            await conversation.receive()
            await trio.sleep(5)

    with pytest.raises(ScriptExhausted, match="'go'"):
        async with open_fake_session(script) as session:
            with pytest.raises(TurnFailed):
                await session.prompt("go")


@pytest.mark.parametrize("converses", [False, True])
async def test_a_script_that_raises_leaves_the_block_as_it_was_raised(
    autojump_clock: MockClock, converses: bool
) -> None:
    def model(told: str) -> Reply:
        raise LookupError(told)

    async def script(conversation: Conversation) -> None:
        model(await conversation.receive())

    with pytest.raises(LookupError, match="go"):
        async with open_fake_session(script if converses else model) as session:
            await session.prompt("go")
            pytest.fail("the block is cancelled")


async def test_a_script_that_raises_beside_the_block_raises_with_it(
    autojump_clock: MockClock,
) -> None:
    def model(told: str) -> Reply:
        raise LookupError(told)

    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_fake_session(model) as session:
            try:
                await session.prompt("go")
            finally:
                raise KeyError
    assert [type(each) for each in caught.value.exceptions] == [KeyError, LookupError]


async def test_a_script_that_raises_before_the_session_is_open_raises_alone(
    autojump_clock: MockClock,
) -> None:
    async def script(_conversation: Conversation) -> None:
        raise LookupError("at once")

    fake = FakeClaude(script, faults=[faults.starts_after(5)])
    with pytest.raises(LookupError, match="at once"):
        async with open_fake_session(fake):
            pytest.fail("it must not open")


async def test_a_launched_fake_whose_script_raises_dies_with_the_traceback(
    autojump_clock: MockClock,
) -> None:
    def model(told: str) -> Reply:
        raise LookupError(f"nothing to say to {told}")

    with pytest.raises(ProcessExited, match="nothing to say to go") as caught:
        async with open_session(launch=FakeClaude(model).launch) as session:
            await session.prompt("go")
    assert caught.value.returncode == 1


async def test_a_script_without_a_reply_fails_the_turn_and_then_the_block(
    autojump_clock: MockClock,
) -> None:
    with pytest.raises(ScriptExhausted, match="'two'") as caught:
        async with open_fake_session([say("fine")]) as session:
            await session.prompt("one")
            with pytest.raises(TurnFailed, match="no reply left for: 'two'"):
                await session.prompt("two")
    assert [request.last_user_text for request in caught.value.requests] == ["two"]


async def test_the_blocks_own_exception_leaves_bare_and_has_a_note(
    autojump_clock: MockClock,
) -> None:
    with pytest.raises(TurnFailed) as caught:
        async with open_fake_session([]) as session:
            await session.prompt("one")
    assert "ran out of replies" in caught.value.__notes__[0]


def test_what_is_no_reply_is_no_script() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="'hello'"):
            async with open_fake_session(["hello"]):  # type: ignore[list-item]
                pass

    trio.run(main, clock=MockClock(autojump_threshold=0))


async def test_each_launch_starts_the_script_anew(autojump_clock: MockClock) -> None:
    fake = FakeClaude([say("one"), say("two")])
    for _ in range(2):
        async with open_fake_session(fake) as session:
            assert (await session.prompt("go")).text == "one"


async def test_an_outer_cancellation_passes(autojump_clock: MockClock) -> None:
    with trio.move_on_after(5) as scope:
        async with open_fake_session([hang()]) as session:
            await session.prompt("go")
    assert scope.cancelled_caught
    assert trio.current_time() == 5


def test_a_fake_session_takes_what_a_session_takes() -> None:
    takes = inspect.signature(open_session).parameters.keys() - {"launch"}
    assert SessionArguments.__annotations__.keys() == takes


async def test_the_options_of_the_session_reach_the_fake(autojump_clock: MockClock) -> None:
    options = SessionOptions(include_partial_messages=False, permission_mode="acceptEdits")
    write = call_tool("Write", {"file_path": "a"}, returns="written")
    async with open_fake_session([write, say("done", chunks=4)], options=options) as session:
        async with session.turn("go") as turn:
            kinds = [type(message) async for message in turn]
        assert turn.result is not None
        assert turn.result.text == "done"
    assert StreamEvent not in kinds
    assert AssistantMessage in kinds


# -- tools


async def test_a_tool_gives_what_its_call_returns_or_else_what_is_said_for_all(
    autojump_clock: MockClock,
) -> None:
    def run_tool(name: str, use: Mapping[str, object]) -> str:
        if name == "Grep":
            raise ToolError("nothing found")
        return f"{name} {use['file_path']}"

    told: list[str] = []
    script = [
        call_tool("Read", {"file_path": "a"}),
        call_tool("Read", {"file_path": "b"}, returns="its own"),
        call_tool("Read", {"file_path": "c"}, fails="gone"),
        call_tool("Grep", {"pattern": "x"}),
        call_tool("Polish"),
        say("done"),
    ]
    replies = iter(script)

    def model(text: str) -> Reply:
        told.append(text)
        return next(replies)

    async with open_fake_session(FakeClaude(model, run_tool=run_tool)) as session:
        assert (await session.prompt("go")).text == "done"
    assert told[1:-1] == ["Read a", "its own", "gone", "nothing found"]
    assert "No such tool available: Polish" in told[-1]


# -- a host that sees every frame


def prompt(text: str = "go", uuid: str | None = None, **more: object) -> Json:
    frame = {"type": "user", "message": {"role": "user", "content": text}, **more}
    return frame if uuid is None else {**frame, "uuid": uuid}


def control(subtype: str, **fields: object) -> Json:
    request = {"subtype": subtype, **fields}
    return {"type": "control_request", "request_id": subtype, "request": request}


def allows(request: Json) -> Json | None:
    return {"behavior": "allow"} if request["subtype"] == "can_use_tool" else {}


@attrs.define
class Host:
    """It says things at given times, and answers what it is asked."""

    fake: FakeClaude
    argv: Sequence[str] = ()
    answers: Callable[[Json], Json | None] = allows
    env: Mapping[str, str] = STATES
    asked: list[Json] = attrs.Factory(list)
    frames: list[Json] = attrs.Factory(list)
    code: int | None = None
    stderr: str = ""

    async def says(self, said: Said, *, until: float) -> list[Json]:
        """Say it all, end stdin, and return what the fake has said."""
        async with trio.open_nursery() as nursery:
            transport = await self.fake.launch(self.argv, self.env, None, nursery)
            nursery.start_soon(self._read, transport)
            try:
                await self._say(transport, said, until)
                self.code = await transport.wait_exit()
            finally:
                transport.kill()
            self.stderr = transport.stderr_tail
        return self.frames

    async def _say(self, transport: Transport, said: Said, until: float) -> None:
        start = trio.current_time()
        for at, what in said.items():
            await trio.sleep_until(start + at)
            line = what if isinstance(what, bytes) else json.dumps(what).encode() + b"\n"
            transport.send_nowait(line)
        await trio.sleep_until(start + until)
        transport.close_stdin()

    async def _read(self, transport: Transport) -> None:
        rest = b""
        while data := await transport.receive():
            *lines, rest = (rest + data).split(b"\n")
            for frame in map(json.loads, lines):
                self.frames.append({**frame, "at": trio.current_time()})
                if frame["type"] == "control_request":
                    self.asked.append(frame["request"])
                    answer = self.answers(frame["request"])
                    if answer is not None:
                        body = {"subtype": "success", "request_id": frame["request_id"]}
                        told = {
                            "type": "control_response",
                            "response": {**body, "response": answer},
                        }
                        transport.send_nowait(json.dumps(told).encode() + b"\n")


def of(frames: Sequence[Json], kind: str) -> list[Json]:
    return [frame for frame in frames if kind in {frame.get("type"), frame.get("subtype")}]


def kinds(frames: Sequence[Json]) -> list[str]:
    return [frame.get("subtype") or frame["type"] for frame in frames]


def results(frames: Sequence[Json]) -> list[Json]:
    return [frame for frame in frames if frame["type"] == "result"]


# -- what is asked, and who decides


@pytest.mark.parametrize(
    ("use", "argv", "asked", "ran"),
    [
        ({"command": "touch a"}, (), 1, True),
        ({"command": "ls -l | wc && sleep 1"}, (), 0, True),
        ({"command": "echo a > b"}, (), 1, True),
        ({"command": "touch a"}, ("--allowedTools=Read,Bash(touch *)",), 0, True),
        ({"command": "touch a"}, ("--allowedTools", "Bash(rm *)"), 1, True),
        ({"command": "touch a"}, ("--allowedTools=Bash(touch:*)",), 0, True),
        ({"command": "touch a"}, ("--disallowedTools=Bash(touch *)",), 0, False),
        ({"command": "touch a"}, ("--permission-mode=acceptEdits",), 0, True),
        ({"command": "curl a"}, ("--permission-mode=acceptEdits",), 1, True),
        ({"command": "touch a"}, ("--permission-mode=plan",), 0, False),
        ({"command": "touch a"}, ("--permission-mode=dontAsk",), 0, False),
        ({"command": "touch a"}, ("--permission-mode=dontAsk", "--allowedTools=Bash"), 0, True),
        ({"command": "touch a"}, ("--permission-mode=auto",), 0, True),
        ({"command": "touch a"}, ("--permission-prompts=none",), 0, False),
        ({"file_path": "/home/user/project/a"}, (), 0, True),
        ({"file_path": "/etc/passwd"}, (), 1, True),
    ],
)
async def test_rules_and_modes_decide_before_the_host_is_asked(
    autojump_clock: MockClock, use: Json, argv: Sequence[str], asked: int, ran: bool
) -> None:
    called: list[object] = []
    tool = "Bash" if "command" in use else "Read"
    fake = FakeClaude(
        [call_tool(tool, use), say("done")],
        run_tool=lambda name, _use: str(called.append(name)),
    )
    host = Host(fake, [*ASKS, *argv])
    frames = await host.says({0: prompt()}, until=10)
    assert len(of(host.asked, "can_use_tool")) == asked
    assert called == ([tool] if ran else [])
    assert len(of(frames, "permission_denied")) == (not ran)
    assert len(results(frames)[0]["permission_denials"]) == (not ran)


async def test_what_the_host_allows_from_now_on_is_not_asked_again(
    autojump_clock: MockClock,
) -> None:
    def answers(request: Json) -> Json:
        return {"behavior": "allow", "updatedPermissions": request["permission_suggestions"]}

    write = [call_tool("Write", {"file_path": name}) for name in "ab"]
    host = Host(FakeClaude([*write, say("done")]), ASKS, answers)
    frames = await host.says({0: prompt()}, until=1)
    assert len(host.asked) == 1
    assert [frame["permissionMode"] for frame in of(frames, "status")] == ["acceptEdits"]


async def test_a_question_is_answered_in_the_changed_input(autojump_clock: MockClock) -> None:
    def answers(request: Json) -> Json:
        told = {**request["input"], "answers": {"Which?": "Blue"}}
        return {"behavior": "allow", "updatedInput": told}

    told: list[str] = []

    def model(text: str) -> Reply:
        told.append(text)
        asks = {"questions": [{"question": "Which?"}]}
        return call_tool("AskUserQuestion", asks) if text == "go" else say("done")

    host = Host(FakeClaude(model), [*ASKS, "--permission-mode=bypassPermissions"], answers)
    await host.says({0: prompt()}, until=1)
    assert told == ["go", 'Your questions have been answered: "Which?"="Blue"']
    assert host.asked[0]["requires_user_interaction"] is True


# -- hooks

DECISIONS: Final = ("deny", "defer", "ask", "allow", "")


def hooked(*ids: str, event: str = "PreToolUse", **more: object) -> Json:
    return control("initialize", hooks={event: [{"hookCallbackIds": list(ids), **more}]})


@pytest.mark.parametrize("one", DECISIONS)
@pytest.mark.parametrize("other", DECISIONS)
async def test_the_stronger_decision_of_two_hooks_wins(
    autojump_clock: MockClock, one: str, other: str
) -> None:
    def answers(request: Json) -> Json | None:
        if request["subtype"] == "can_use_tool":
            return {"behavior": "allow"}
        decision = one if request["callback_id"] == "one" else other
        specific = {"hookEventName": "PreToolUse", "permissionDecision": decision}
        return {"hookSpecificOutput": specific} if decision else {}

    called: list[object] = []
    fake = FakeClaude(
        [call_tool("Bash", TOUCH), say("done")],
        run_tool=lambda name, _use: str(called.append(name)),
    )
    host = Host(fake, ASKS, answers)
    frames = await host.says({0: hooked("one", "other"), 1: prompt()}, until=5)
    wins = next(decision for decision in DECISIONS if decision in {one, other})
    assert len(of(host.asked, "can_use_tool")) == (wins in {"ask", ""})
    assert called == (["Bash"] if wins in {"ask", "allow", ""} else [])
    (result,) = results(frames)
    assert ("deferred_tool_use" in result) == (wins == "defer")
    assert len(result["permission_denials"]) == (wins == "deny")


@pytest.mark.parametrize(
    ("matcher", "called"),
    [
        ("Bash", True),
        ("Read|Bash", True),
        ("B.*", True),
        ("", True),
        ("*", True),
        ("Bas", False),
        ("Bashing", False),
        ("B.s", False),
    ],
)
async def test_only_the_hooks_that_match_are_called(
    autojump_clock: MockClock, matcher: str, called: bool
) -> None:
    host = Host(FakeClaude([call_tool("Bash", TOUCH), say("done")]), ASKS)
    await host.says({0: hooked("one", matcher=matcher), 1: prompt()}, until=5)
    assert len(of(host.asked, "hook_callback")) == called


async def test_an_input_that_a_hook_has_changed_runs_unasked(autojump_clock: MockClock) -> None:
    def answers(request: Json) -> Json:
        changed = {"hookEventName": "PreToolUse", "updatedInput": {"command": "rm b"}}
        return {"hookSpecificOutput": changed}

    called: list[object] = []
    fake = FakeClaude(
        [call_tool("Bash", TOUCH), say("done")],
        run_tool=lambda _name, use: str(called.append(use)),
    )
    host = Host(fake, ASKS, answers)
    await host.says({0: hooked("one"), 1: prompt()}, until=5)
    assert called == [{"command": "rm b"}]
    assert not of(host.asked, "can_use_tool")


async def test_a_second_initialize_replaces_the_hooks(autojump_clock: MockClock) -> None:
    host = Host(FakeClaude([call_tool("Bash", TOUCH), say("done")]), ASKS)
    await host.says({0: hooked("one"), 1: hooked("two"), 2: prompt()}, until=5)
    assert [each["callback_id"] for each in of(host.asked, "hook_callback")] == ["two"]


async def test_a_hook_is_told_what_it_is_about(autojump_clock: MockClock) -> None:
    host = Host(FakeClaude([call_tool("Bash", TOUCH), say("done")]), ASKS)
    await host.says({0: hooked("one"), 1: prompt()}, until=5)
    (told,) = [request["input"] for request in of(host.asked, "hook_callback")]
    assert (told["tool_name"], told["tool_input"]) == ("Bash", TOUCH)
    assert (told["hook_event_name"], told["permission_mode"]) == ("PreToolUse", "default")


# -- in-process servers

LISTED: Final = {"tools": [{"name": "greet", "annotations": {"readOnlyHint": True}}]}


def serves(request: Json) -> Json | None:
    """Answer as a server with one tool would; its calls take for ever."""
    if request["subtype"] != "mcp_message":
        return {"behavior": "allow"}
    message = request["message"]
    given = {"initialize": {"serverInfo": {"name": "own"}}, "tools/list": LISTED}
    if message["method"] == "tools/call":
        return None
    answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": given.get(message["method"], {})}
    return {"mcp_response": answer}


async def test_an_in_process_tool_is_called_by_its_own_name_and_cancelled_once(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([call_tool("mcp__own__greet", {"name": "Ada"}, id="toolu_1")])
    host = Host(fake, [*ASKS, "--allowedTools=mcp__own"], serves)
    said = {0: control("initialize", sdkMcpServers=["own"]), 1: prompt(), 2: control("interrupt")}
    frames = await host.says({**said, 3: control("interrupt")}, until=5)
    messages = [request["message"] for request in of(host.asked, "mcp_message")]
    assert [message["method"] for message in messages] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "notifications/cancelled",
    ]
    called, cancelled = messages[-2:]
    assert called["params"]["name"] == "greet"
    assert called["params"]["arguments"] == {"name": "Ada"}
    assert called["params"]["_meta"]["claudecode/toolUseId"] == "toolu_1"
    assert cancelled["params"]["requestId"] == called["id"]
    (init,) = of(frames, "init")
    assert "mcp__own__greet" in init["tools"]
    assert init["mcp_servers"] == [{"name": "own", "status": "connected", "source": "sdk"}]


async def test_an_answer_without_a_response_hangs_even_past_the_end_of_stdin(
    autojump_clock: MockClock,
) -> None:
    def answers(request: Json) -> Json | None:
        answer = serves(request)
        return {"nonsense": 1} if answer is None else answer

    fake = FakeClaude([call_tool("mcp__own__greet")])
    host = Host(fake, [*ASKS, "--allowedTools=mcp__own"], answers)
    with trio.move_on_after(10_000) as scope:
        await host.says({0: control("initialize", sdkMcpServers=["own"]), 1: prompt()}, until=5)
    assert scope.cancelled_caught
    assert host.code is None


async def test_setting_the_servers_drops_those_that_are_not_listed_again(
    autojump_clock: MockClock,
) -> None:
    config = {"mcpServers": {"stays": {"type": "sdk", "name": "stays"}}}
    host = Host(FakeClaude([say("a")]), ["--mcp-config", json.dumps(config)], serves)
    said = {
        0: control("initialize", sdkMcpServers=["own"]),
        1: control("mcp_set_servers", servers={}),
    }
    frames = await host.says({**said, 2: control("mcp_status"), 3: prompt()}, until=5)
    answers = [f["response"]["response"] for f in frames if f["type"] == "control_response"]
    assert answers[1] == {"added": [], "removed": ["own"], "errors": {}}
    assert [server["name"] for server in answers[2]["mcpServers"]] == ["stays"]


# -- turns


async def test_an_interrupt_before_the_end_of_stdin_takes_the_shells_along(
    autojump_clock: MockClock,
) -> None:
    script = [call_tool("Bash", {"command": "sleep 99", "run_in_background": True}), say("it runs")]
    host = Host(FakeClaude(script))
    frames = await host.says({0: prompt(), 1: control("interrupt")}, until=2)
    assert trio.current_time() == 2
    assert kinds(frames)[-3:] == [
        "task_updated",
        "task_notification",
        "background_tasks_changed",
    ]


async def test_the_end_of_stdin_alone_waits_for_the_shells_and_what_they_bring(
    autojump_clock: MockClock,
) -> None:
    script = [
        call_tool("Bash", {"command": "sleep 99", "run_in_background": True}),
        say("it runs"),
        say("it is done"),
    ]
    host = Host(FakeClaude(script))
    frames = await host.says({0: prompt()}, until=2)
    assert trio.current_time() == 99
    assert [result["result"] for result in results(frames)] == ["it runs", "it is done"]


async def test_a_turn_behind_an_interrupt_lets_the_shells_be_waited_for_again(
    autojump_clock: MockClock,
) -> None:
    shell = call_tool("Bash", {"command": "sleep 99", "run_in_background": True})
    host = Host(FakeClaude([shell, say("it runs"), say("again"), say("it is done")]))
    await host.says({0: prompt(), 1: control("interrupt"), 2: prompt()}, until=3)
    assert trio.current_time() == 99


async def test_a_result_behind_the_end_of_stdin_waits_for_the_agents(
    autojump_clock: MockClock,
) -> None:
    agent = call_agent("look", pause(50) + say("found"))
    host = Host(FakeClaude([agent, pause(5) + say("it runs"), say("it is done")]))
    frames = await host.says({0: prompt(uuid=UUID)}, until=1)
    assert [result["at"] for result in results(frames)] == [50, 50]
    assert [frame["at"] for frame in of(frames, "command_lifecycle")] == [0, 0, 5]
    assert [result["result_index"] for result in results(frames)] == [0, 1]


@pytest.mark.parametrize("seed", range(10))
def test_the_last_frames_of_a_killed_agent_come_after_the_idle(seed: int) -> None:
    script = [call_agent("look", call_tool("Bash", {"command": "sleep 99"})), say("a") + hang()]
    host = Host(FakeClaude(script))

    async def main() -> list[Json]:
        return await host.says({0: prompt(), 1: control("interrupt")}, until=2)

    with shuffled(seed):
        frames = trio.run(main, clock=MockClock(autojump_threshold=0))
    idle = next(n for n, f in enumerate(frames) if f.get("state") == "idle")
    behind = frames[idle + 1 :]
    assert [frame["parent_tool_use_id"] is not None for frame in behind] == [True, True]
    assert frames.index(results(frames)[0]) < idle


async def test_a_failing_request_is_tried_again_ever_more_slowly(
    autojump_clock: MockClock,
) -> None:
    frames = await Host(FakeClaude([fail(529, always=True), say("fine")])).says(
        {0: prompt(), 1000: prompt()}, until=2000
    )
    delays = [frame["retry_delay_ms"] / 1000 for frame in of(frames, "api_retry")]
    assert delays == [0.5, 1, 2, 4, 8, 16, 32, 32, 32, 32]
    failed, fine = results(frames)
    assert failed["at"] == sum(delays)
    assert (failed["subtype"], failed["is_error"], failed["api_error_status"]) == (
        "success",
        True,
        529,
    )
    assert fine["result"] == "fine"


async def test_each_try_takes_the_next_reply_and_waits_as_long_as_it_is_told(
    autojump_clock: MockClock,
) -> None:
    script = [fail(429, retry_after=90), fail(500), say("at last")]
    (result,) = results(await Host(FakeClaude(script)).says({0: prompt()}, until=1000))
    assert (result["at"], result["result"], result["is_error"]) == (91, "at last", False)


async def test_clearing_begins_another_session_and_counts_anew(autojump_clock: MockClock) -> None:
    host = Host(FakeClaude([say("a"), say("b")]), ["--session-id", UUID + "0"])
    frames = await host.says({0: prompt(), 1: prompt("/clear"), 2: prompt()}, until=3)
    ids = [result["session_id"] for result in results(frames)]
    assert ids[0] == UUID + "0"
    assert ids[1] == ids[2] != ids[0]
    costs = [result["total_cost_usd"] for result in results(frames)]
    assert costs == pytest.approx([0.0008, 0, 0.0008])


async def test_a_fork_has_the_session_id_that_it_is_given(autojump_clock: MockClock) -> None:
    argv = ["--resume=" + UUID + "1", "--fork-session", "--session-id=" + UUID + "2"]
    (result,) = results(await Host(FakeClaude([say("a")]), argv).says({0: prompt()}, until=1))
    assert result["session_id"] == UUID + "2"


async def test_a_repeated_prompt_is_dropped_with_no_more_than_the_same_idle(
    autojump_clock: MockClock,
) -> None:
    host = Host(FakeClaude([say("a"), say("b")]))
    frames = await host.says({0: prompt(uuid=UUID), 1: prompt(uuid=UUID)}, until=2)
    idle, again = [frame for frame in frames if frame.get("state") == "idle"]
    assert {**idle, "at": 1} == again == frames[-1]
    assert len(results(frames)) == 1


@pytest.mark.parametrize(
    "line", [b'{"type":"user","mess', b"{]\n", b'{"type":"user","message":{"role":"assistant"}}\n']
)
async def test_what_the_real_one_dies_of_the_fake_dies_of(
    autojump_clock: MockClock, line: bytes
) -> None:
    host = Host(FakeClaude([hang()]))
    frames = await host.says({0: prompt(), 1: line}, until=1)
    assert host.code == 1
    assert "Error" in host.stderr
    assert not results(frames)


async def test_prompts_that_wait_are_told_together(autojump_clock: MockClock) -> None:
    told: list[str] = []

    def model(text: str) -> Reply:
        told.append(text)
        return pause(5) + say("a")

    said = {0: prompt("one"), 1: prompt("two"), 2: prompt("/cost"), 3: prompt("three")}
    frames = await Host(FakeClaude(model)).says({**said, 4: prompt("four")}, until=100)
    assert told == ["one", "two", "three\nfour"]
    assert [result["num_turns"] for result in results(frames)] == [1, 1, 0, 1]


async def test_what_comes_during_a_tool_call_is_told_with_its_result(
    autojump_clock: MockClock,
) -> None:
    told: list[str] = []
    replies = iter([call_tool("Bash", {"command": "sleep 2"}), say("both")])

    def model(text: str) -> Reply:
        told.append(text)
        return next(replies)

    said = {0: prompt("one", UUID + "0"), 1: prompt("two", UUID + "1")}
    (result,) = results(await Host(FakeClaude(model)).says(said, until=10))
    assert told == ["one", "two"]
    assert result["user_message_uuids"] == [UUID + "0", UUID + "1"]


async def test_a_turn_ends_as_the_script_says(autojump_clock: MockClock) -> None:
    odd = say("half") + end("error_odd", errors=["odd"], terminal_reason="oddness")
    host = Host(FakeClaude([odd, end(result="all"), say("next")]))
    frames = await host.says({0: prompt(), 1: prompt(), 2: prompt()}, until=3)
    first, second, third = results(frames)
    assert (first["subtype"], first["is_error"], first["errors"]) == ("error_odd", True, ["odd"])
    assert (first["terminal_reason"], first["num_turns"]) == ("oddness", 1)
    assert (second["result"], second["is_error"]) == ("all", False)
    assert third["result"] == "next"
    assert [len(of(frames, "assistant"))] == [2]


async def test_the_budget_is_for_the_whole_session(autojump_clock: MockClock) -> None:
    dear = Reply(
        parts=say("dear").parts, usage=Usage(input_tokens=0, cache_creation_input_tokens=1_000_000)
    )
    host = Host(FakeClaude([say("cheap"), dear, say("never")]), ["--max-budget-usd=3"])
    frames = await host.says({0: prompt(), 1: prompt(), 2: prompt()}, until=3)
    assert [result["subtype"] for result in results(frames)] == [
        "success",
        "error_max_budget_usd",
        "error_max_budget_usd",
    ]
    assert results(frames)[1]["total_cost_usd"] == pytest.approx(4.0012)


async def test_values_that_do_not_fit_the_schema_run_out(autojump_clock: MockClock) -> None:
    misfit = call_tool("StructuredOutput", {"a": 1}, fails="b is missing")
    host = Host(FakeClaude([misfit] * 5), ["--json-schema={}"])
    (result,) = results(await host.says({0: prompt()}, until=1))
    assert result["subtype"] == "error_max_structured_output_retries"


async def test_a_turn_that_nobody_asked_for_says_where_it_comes_from(
    autojump_clock: MockClock,
) -> None:
    told: list[str] = []

    def model(text: str) -> Reply:
        told.append(text)
        return say(f"heard of {text}")

    fake = FakeClaude(model)
    async with open_fake_session(fake) as session, session.subscribe() as events:
        fake.start_turn("a trigger")
        async for event in events:
            if isinstance(event, ResultMessage):
                break
        assert (await session.prompt("mine")).text == "heard of mine"
    assert told == ["a trigger", "mine"]
    assert isinstance(event, ResultMessage)
    assert event.raw["origin"] == {"kind": "task-notification", "producer": "session-task"}


async def test_a_planned_turn_comes_when_it_was_planned_and_keeps_nobody_alive(
    autojump_clock: MockClock,
) -> None:
    wake = call_tool("ScheduleWakeup", {"delaySeconds": 60, "prompt": "look again"})
    host = Host(FakeClaude([wake, say("later"), say("woken"), wake, say("never")]))
    frames = await host.says({0: prompt(), 61: prompt()}, until=62)
    assert [result["at"] for result in results(frames)] == [0, 60, 61]
    assert trio.current_time() == 62


SLOW: Final = call_tool("Bash", {"command": "sleep 20; touch a"})


async def test_a_long_command_that_is_interrupted_ends_as_a_task_as_well(
    autojump_clock: MockClock,
) -> None:
    host = Host(FakeClaude([SLOW]), ASKS)
    frames = await host.says({0: prompt(), 4: control("interrupt")}, until=5)
    behind = frames[frames.index(of(frames, "control_response")[0]) :]
    assert kinds(behind)[1:4] == ["task_notification", "user", "user"]
    assert [frame["status"] for frame in of(frames, "task_notification")] == ["stopped"]


async def test_a_long_command_that_is_stopped_fails_and_the_turn_goes_on(
    autojump_clock: MockClock,
) -> None:
    fake = FakeClaude([SLOW, say("it was stopped")])
    async with open_fake_session(fake, on_permission=allow_all) as session:
        async with session.turn("go") as turn:
            await trio.sleep(4)
            (task,) = session.tasks
            await session.control("stop_task", task_id=task.id)
            results = [m async for m in turn if isinstance(m, UserMessage)]
        (result,) = [block for block in results[0].content if isinstance(block, ToolResultBlock)]
        assert result.is_error
        assert turn.result is not None
        assert turn.result.text == "it was stopped"
    assert trio.current_time() == 4


async def test_a_long_command_may_be_moved_to_the_background_and_reports_later(
    autojump_clock: MockClock,
) -> None:
    host = Host(FakeClaude([SLOW, say("it runs"), say("it is done")]), ASKS)
    frames = await host.says({0: prompt(), 4: control("background_tasks")}, until=30)
    assert [result["at"] for result in results(frames)] == [4, 20]
    started = kinds(frames).index("task_started")
    assert kinds(frames)[started:][:4] == [
        "task_started",
        "background_tasks_changed",
        "task_updated",
        "control_response",
    ]


async def test_what_an_agent_waits_for_is_not_moved_to_the_background(
    autojump_clock: MockClock,
) -> None:
    script = [call_agent("look", call_tool("Bash", {"command": "sleep 9"}), say("found")), say("a")]
    host = Host(FakeClaude([*script, say("b")]))
    frames = await host.says({0: prompt(), 5: control("background_tasks")}, until=10)
    (answer,) = of(frames, "control_response")
    assert answer["response"]["response"] == {"backgrounded": False}


async def test_a_batch_of_calls_is_shown_to_hooks_behind_its_last_result(
    autojump_clock: MockClock,
) -> None:
    reads = call_tool("Read", {"file_path": "a"}) + call_tool("Read", {"file_path": "b"})
    host = Host(FakeClaude([reads, say("done")]))
    frames = await host.says({0: hooked("one", event="PostToolBatch"), 1: prompt()}, until=2)
    (asked,) = host.asked
    assert [call["tool_input"]["file_path"] for call in asked["input"]["tool_calls"]] == ["a", "b"]
    assert kinds(frames)[-6:-3] == ["user", "user", "control_request"]


async def test_rules_that_the_host_removes_are_gone(autojump_clock: MockClock) -> None:
    def answers(request: Json) -> Json:
        rules = {"rules": [{"toolName": "Bash", "ruleContent": "rm *"}], "behavior": "allow"}
        update = {"type": "removeRules", **rules, "destination": "session"}
        return {"behavior": "allow", "updatedPermissions": [update]}

    script = [call_tool("Bash", {"command": each}) for each in ("rm a", "touch a", "rm a")]
    host = Host(FakeClaude([*script, say("done")]), [*ASKS, "--allowedTools=Bash(rm *)"], answers)
    await host.says({0: prompt()}, until=1)
    assert [asked["input"]["command"] for asked in host.asked] == ["touch a", "rm a"]


async def test_agents_have_scripts_of_their_own_of_every_kind(autojump_clock: MockClock) -> None:
    async def converses(conversation: Conversation) -> None:
        assert await conversation.receive() == "find three"
        conversation.send(say("three"))

    fake = FakeClaude(
        [call_agent(f"find {name}", background=False) for name in ("one", "two", "three", "four")]
        + [call_agent("here", say("here it is"), background=False), say("done")],
        agents={"one": [say("one")], "two": lambda told: say(told.upper()), "three": converses},
    )
    frames = await Host(fake).says({0: prompt()}, until=1)
    given = [f["message"]["content"][0]["content"] for f in of(frames, "user")[1::2]]
    assert given == ["one", "FIND TWO", "three", "Done.", "here it is"]


async def test_an_agent_whose_model_fails_has_failed(autojump_clock: MockClock) -> None:
    script = [call_agent("look", fail(403)), say("it runs"), say("it failed")]
    frames = await Host(FakeClaude(script)).says({0: prompt()}, until=1)
    assert [frame["status"] for frame in of(frames, "task_notification")] == ["failed"]
    assert [result["result"] for result in results(frames)] == ["it runs", "it failed"]


async def test_an_agent_of_an_agent_is_waited_for_and_dies_with_it(
    autojump_clock: MockClock,
) -> None:
    inner = call_agent("inner", pause(5) + say("deep"))
    script = [call_agent("outer", inner, say("found")), say("it runs"), say("it is done")]
    frames = await Host(FakeClaude(script)).says({0: prompt()}, until=100)
    started = of(frames, "task_started")
    assert [task["spawn_depth"] for task in started] == [1, 2]
    assert started[1]["parent_task_id"] == started[0]["task_id"]
    assert [result["at"] for result in results(frames)] == [0, 5]
    start = trio.current_time()
    killed = await Host(FakeClaude(script)).says({0: prompt(), 1: control("interrupt")}, until=2)
    patches = [frame["patch"]["status"] for frame in of(killed, "task_updated")]
    assert patches == ["killed", "killed"]
    assert [frame["at"] - start for frame in of(killed, "task_updated")] == [1, 1]


async def test_a_test_may_wait_for_what_the_host_has_written(autojump_clock: MockClock) -> None:
    fake = FakeClaude([hang()])
    async with open_fake_session(fake) as session, trio.open_nursery() as nursery:
        nursery.start_soon(session.prompt, "go")
        written = await fake.wait_received(2)
        assert [frame["type"] for frame in written] == ["control_request", "user"]
        with trio.move_on_after(5) as scope:
            await fake.wait_received(3)
        assert scope.cancelled_caught
        nursery.cancel_scope.cancel()


async def test_thoughts_are_blocks_of_their_own(autojump_clock: MockClock) -> None:
    async with open_fake_session([think("hm") + say("well")]) as session:
        async with session.turn("go") as turn:
            said = [m async for m in turn if isinstance(m, AssistantMessage)]
    blocks = [type(block) for message in said for block in message.content]
    assert blocks == [ThinkingBlock, TextBlock]


# -- the same again


@pytest.mark.parametrize("seed", range(10))
def test_what_is_answered_at_once_is_acted_on_in_that_order_whatever_the_scheduler_does(
    seed: int,
) -> None:
    calls = [call_tool("WebFetch", {"url": name}) for name in "abcde"]
    script = [functools.reduce(operator.add, calls), say("done")]
    fake = FakeClaude(script, run_tool=lambda _name, use: str(use["url"]))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            transport = await fake.launch(ASKS, {}, None, nursery)
            transport.send_nowait(json.dumps(prompt()).encode() + b"\n")
            await wait_all_tasks_blocked()
            asked = [json.loads(line) for line in transport.receive_nowait().splitlines()]
            ids = [frame["request_id"] for frame in of(asked, "control_request")]
            allowed = {"subtype": "success", "response": {"behavior": "allow"}}
            for number in (3, 1, 4, 2, 0):
                body = {**allowed, "request_id": ids[number]}
                answer = {"type": "control_response", "response": body}
                transport.send_nowait(json.dumps(answer).encode() + b"\n")
            transport.close_stdin()
            await transport.wait_exit()
            said = [json.loads(line) for line in transport.receive_nowait().splitlines()]
            given = [frame["message"]["content"][0]["content"] for frame in of(said, "user")]
            assert given == ["d", "b", "e", "c", "a"]

    with shuffled(seed):
        trio.run(main, clock=MockClock(autojump_threshold=0))
