"""The stand-in for the Messages API: what it is asked, its scripts, and its block."""

from __future__ import annotations

import gc
import math
import os
import socket
import struct
from typing import TYPE_CHECKING, Any

import attrs
import h11
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from claude_trio import SessionOptions
from claude_trio._options import to_environment
from claude_trio._scopes import background_tasks
from claude_trio.testing import (
    ApiRequest,
    MessagesApi,
    Reply,
    RequestKind,
    ScriptExhausted,
    answer_side,
    call_agent,
    call_tools,
    fail,
    hang,
    open_messages_api,
    pause,
    say,
    think,
)
from claude_trio.testing._api_script import Director
from claude_trio.testing._replies import Text, Thinking
from tests.shell.messages_api_client import (
    REMINDER,
    REPLIES,
    SIDES,
    Answer,
    Client,
    ask_about,
    assemble,
    body,
    serving,
    user,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from claude_trio.testing._api_script import Script

# What is asked.


def test_a_request_is_read_without_what_the_cli_adds() -> None:
    messages = [
        user(REMINDER, "first\n"),
        {"role": "assistant", "content": "yes"},
        user("<command-name>/x</command-name>\n<command-args>a</command-args>", "second"),
        user("[Request interrupted by user]", "third"),
        {"role": "system", "content": "# Environment"},
    ]
    system = [{"type": "text", "text": "x-anthropic-billing-header: v=1;"}, *user("Be.")["content"]]
    request = ask_about(
        {"model": "m", "system": system, "messages": messages, "tools": [{"name": "Bash"}]},
        {"x-api-key": "secret", "authorization": "secret", "x-claude-code-session-id": "s"},
    )
    assert (request.kind, request.is_side) == (RequestKind.MAIN, False)
    assert (request.system, request.tools, request.stream) == ("Be.", ("Bash",), False)
    assert (request.prompts, request.last_user_text) == (("first", "second", "third"), "third")
    assert (request.session_id, request.agent_id) == ("s", None)
    assert "secret" not in repr(request.headers)


def test_a_request_with_tool_results_has_no_last_user_text() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "hi"}
    messages = [user("go"), {"role": "user", "content": [result, user(REMINDER)["content"][0]]}]
    request = ask_about(body(messages=messages))
    assert (request.prompts, request.last_user_text) == (("go",), "")


@pytest.mark.parametrize("name", SIDES)
async def test_side_requests_are_known_and_use_up_no_reply(
    name: str, autojump_clock: trio.abc.Clock
) -> None:
    kind, fields = SIDES[name]
    agent = {"x_claude_code_agent_id": "a1"} if name == "agent" else {}
    async with serving([say("the script's")], agents={"": [say("the agent's")]}) as bench:
        side = await bench.connect(**agent).ask(fields)
        main = await bench.connect().ask()
    assert [request.kind for request in bench.server.requests] == [kind, RequestKind.MAIN]
    assert bench.server.requests[0].is_side
    assert side.status == 200
    assert "script's" not in side.data.decode()
    assert "script's" in main.data.decode()


@pytest.mark.parametrize(
    "added",
    [
        "<command-message>init</command-message>\n<command-name>/init</command-name>",
        "<task-notification>\n<task-id>a1</task-id>\n</task-notification>",
        "[structured-output-enforce] You MUST call the StructuredOutput tool.",
        "Stop hook feedback:\nnot yet",
        "This session is being continued from a previous conversation that ran out of context.",
    ],
)
def test_what_the_cli_says_in_the_users_name_is_no_prompt(added: str) -> None:
    request = ask_about(body(messages=[user("go"), user(added)]))
    assert (request.prompts, request.last_user_text) == (("go",), "")


def test_a_request_in_which_no_user_speaks_is_the_main_one_s() -> None:
    request = ask_about(body(messages=[{"role": "assistant", "content": "yes"}]))
    assert (request.kind, request.prompts) == (RequestKind.MAIN, ())


# Scripts.


def texts_of(answers: Sequence[Answer]) -> list[str]:
    return [
        assemble(answer.events)["content"][0]["text"] if answer.status == 200 else "error"
        for answer in answers
    ]


async def test_a_script_that_ran_out_says_so(autojump_clock: trio.abc.Clock) -> None:
    async with serving([say("one")]) as bench:
        client = bench.connect()
        answers = [await client.ask(body(text)) for text in ("first", "second")]
    assert texts_of(answers) == ["one", "error"]
    assert answers[1].status == 402  # Which the CLI takes for an answer.
    assert "'second'" in answers[1].json["error"]["message"]
    assert [request.last_user_text for request in bench.director.unanswered] == ["second"]


async def test_an_always_reply_stays_while_only_the_cli_speaks(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving([attrs.evolve(say("no"), always=True)]) as bench:
        client = bench.connect()
        nudge = user("[structured-output-enforce] You MUST call the StructuredOutput tool.")
        answers = [
            await client.ask(fields) for fields in (body("go"), body(messages=[user("go"), nudge]))
        ]
    assert texts_of(answers) == ["no", "no"]


async def test_an_always_reply_stays_when_the_conversation_is_made_shorter(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving([say("one"), fail(413, always=True), say("ok")]) as bench:
        client = bench.connect()
        talks = [("a",), ("a", "b"), ("b",), ("b", "b")]
        answers = [await client.ask(body(messages=[user(text) for text in talk])) for talk in talks]
    assert texts_of(answers) == ["one", "error", "error", "ok"]


async def test_an_always_reply_stays_until_the_user_says_something_new(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving([fail(529, always=True), say("ok")]) as bench:
        client = bench.connect()
        again = {"model": "m", "stream": True, "messages": [user("hi"), user("again")]}
        answers = [await client.ask(fields) for fields in (body(), body(), body(), again)]
    assert texts_of(answers) == ["error", "error", "error", "ok"]


async def test_each_agent_has_a_row_of_its_own(autojump_clock: trio.abc.Clock) -> None:
    agents = {"HELPER": [say("a"), say("b")]}
    async with serving([say("main")], agents=agents) as bench:
        one, two, other = (bench.connect(x_claude_code_agent_id=name) for name in ("1", "2", "3"))
        asked = body(REMINDER, "be a HELPER")
        answers = [await client.ask(asked) for client in (one, two, one, two, one)]
        answers += [await other.ask(body("do")), await bench.connect().ask()]
    assert texts_of(answers) == ["a", "a", "b", "b", "error", "Done.", "main"]
    assert bench.server.requests[0].kind is RequestKind.SUBAGENT


async def test_an_agent_takes_the_replies_that_came_with_its_call(
    autojump_clock: trio.abc.Clock,
) -> None:
    same = [call_agent("look", say("first"), say("more")), call_agent("look", say("second"))]
    script = [*same, call_agent("look around")]
    async with serving(script, agents={"look": [say("by key")]}) as bench:
        main = bench.connect()
        for number in range(3):
            await main.ask(body(f"go {number}"))
        one, two, three, four = (
            bench.connect(x_claude_code_agent_id=name) for name in ("1", "2", "3", "4")
        )
        asked = [(one, "look around"), (two, " look\n"), (three, "look"), (two, "look")]
        answers = [await client.ask(body(text)) for client, text in (*asked, (four, "look"))]
    assert texts_of(answers) == ["by key", "first", "second", "more", "by key"]


async def test_a_function_may_bring_the_replies_of_an_agent(
    autojump_clock: trio.abc.Clock,
) -> None:
    def script(request: ApiRequest) -> Reply:
        if request.agent_id is None:
            return call_agent("look", say("as called"))
        return say("as asked")

    async with serving(script) as bench:
        await bench.connect().ask()
        answers = [
            await bench.connect(x_claude_code_agent_id=name).ask(body("look")) for name in "12"
        ]
    assert texts_of(answers) == ["as called", "as asked"]


async def test_a_function_is_asked_for_all_but_the_side_requests(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def script(request: ApiRequest) -> Reply:
        await trio.sleep(1)
        return say(f"{request.kind.value}: {request.last_user_text}")

    def side(request: ApiRequest) -> Reply:
        return say(f"side: {request.kind.value}")

    async with serving(script, side=side) as bench:
        answers = [
            await bench.connect().ask(),
            await bench.connect(x_claude_code_agent_id="1").ask(),
            await bench.connect().ask(SIDES["title"][1]),
        ]
    assert texts_of(answers) == ["main: hi", "subagent: hi", "side: title"]


def raising(request: ApiRequest) -> Reply:
    raise KeyError(request.last_user_text)


def returning_none(request: ApiRequest) -> Any:
    return None


@pytest.mark.parametrize(("script", "kind"), [(raising, KeyError), (returning_none, TypeError)])
async def test_what_a_script_raises_is_kept_and_breaks_its_connection(
    script: Callable[[ApiRequest], Reply], kind: type[Exception], autojump_clock: trio.abc.Clock
) -> None:
    async with serving(script) as bench:
        with pytest.raises(h11.RemoteProtocolError):
            await bench.connect().ask()
        assert bench.failed.is_set()
        assert [type(failure) for failure in bench.server.failures] == [kind]


async def test_what_no_program_should_catch_goes_through(autojump_clock: trio.abc.Clock) -> None:
    def script(_request: ApiRequest) -> Reply:
        raise SystemExit

    async def block() -> None:
        async with serving(script) as bench:
            await bench.connect().send(body(), "POST", "/v1/messages")
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        await block()
    assert caught.value.split(SystemExit)[1] is None


async def test_requests_can_be_waited_for(autojump_clock: trio.abc.Clock) -> None:
    async with serving([pause(1) + say("one"), hang()]) as bench:
        client = bench.connect()

        async def ask_twice() -> None:
            await client.ask()
            await client.ask()

        bench.nursery.start_soon(ask_twice)
        await bench.server.wait_requests(1)
        assert trio.current_time() == pytest.approx(0)
        await bench.server.wait_requests(2)
        assert trio.current_time() == pytest.approx(1)


@pytest.mark.parametrize("script", ["hello", ["hello"], [None]])
def test_a_script_of_anything_but_replies_is_refused(script: Any) -> None:
    with pytest.raises(TypeError, match="made of replies"):
        Director(script, agents={}, side=answer_side)
    with pytest.raises(TypeError, match="made of replies"):
        Director((), agents={"x": script}, side=answer_side)


@given(st.text(), st.integers(1, 9), st.booleans())
def test_pieces_make_up_the_text(text: str, chunks: int, slow: bool) -> None:
    for make, kind in ((say, Text), (think, Thinking)):
        reply = make(text, chunks=chunks, delay=float(slow))
        pieces = [part.text for part in reply.parts if isinstance(part, kind)]
        assert "".join(pieces) == text
        pauses = len(reply.parts) - len(pieces)
        assert pauses == (max(0, min(chunks, len(text)) - 1) if slow else 0)


@given(REPLIES, REPLIES, REPLIES)
def test_addition_is_associative(one: Reply, two: Reply, three: Reply) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + Reply() == Reply() + one == one
    with pytest.raises(TypeError):
        one + "text"  # type: ignore[operator]


@pytest.mark.parametrize(
    "make",
    [
        lambda: say("x", chunks=0),
        lambda: pause(-1),
        lambda: pause(math.nan),
        lambda: fail(200),
        lambda: fail(600),
        call_tools,
    ],
)
def test_nonsense_is_refused_where_it_is_written(make: Callable[[], Reply]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        make()


# The block.


async def connect(api: MessagesApi) -> Client:
    host, _, port = api.url.removeprefix("http://").partition(":")
    return Client(await trio.open_tcp_stream(host, int(port)))


@pytest.fixture
def inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "CLAUDE_CODE_NEW_THING", "CLAUDE_CLI_PATH"):
        monkeypatch.setenv(name, "mine")


async def test_the_api_is_open_on_loopback_while_its_block_runs() -> None:
    with trio.fail_after(10):
        async with open_messages_api([say("hello")]) as api:
            assert api.url.startswith("http://127.0.0.1:")
            client = await connect(api)
            assert (await client.ask(body("hey"))).status == 200
            assert [request.last_user_text for request in api.requests] == ["hey"]
            assert await trio.Path(api.home).is_dir()
        assert await client.stream.receive_some() == b""
        await client.stream.aclose()
        assert not await trio.Path(api.home).exists()
        with pytest.raises(OSError, match="failed"):
            await connect(api)


async def test_the_api_is_not_to_be_had_on_any_other_address() -> None:
    with trio.fail_after(10):
        async with open_messages_api([]) as api:
            port = int(api.url.rpartition(":")[2])
            # Linux routes all of 127/8 to the machine itself: what listens everywhere answers here.
            with pytest.raises(OSError, match="failed"):
                await trio.open_tcp_stream("127.0.0.2", port)
            await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()


async def test_a_client_that_resets_its_connection_is_no_error() -> None:
    with trio.fail_after(10):
        async with open_messages_api([hang(), say("hello")]) as api:
            reset = await connect(api)
            await reset.send(body(), "POST", "/v1/messages")
            await api.wait_requests(1)
            assert isinstance(reset.stream, trio.SocketStream)
            reset.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await reset.stream.aclose()
            client = await connect(api)
            async with client.stream:
                assert (await client.ask()).status == 200


async def test_the_environment_is_the_cli_s_alone(inherited: None) -> None:
    with trio.fail_after(10):
        async with open_messages_api([]) as api:
            environment = api.environment()
    assert environment["ANTHROPIC_BASE_URL"] == api.url
    assert environment["HOME"] == str(api.home)
    assert environment["CLAUDE_CONFIG_DIR"] == str(api.config_dir)
    removed = {name for name, value in environment.items() if value is None}
    assert removed >= {"CLAUDE_CODE_NEW_THING", "ANTHROPIC_AUTH_TOKEN", "HTTPS_PROXY"}
    assert environment["ANTHROPIC_API_KEY"] not in {None, "mine"}
    assert "CLAUDE_CLI_PATH" not in environment
    assert os.environ["CLAUDE_CODE_NEW_THING"] == "mine"


async def test_the_environment_leaves_to_a_session_what_a_session_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As it is inside of Claude Code, and for a user who has switched memory off.
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")
    with trio.fail_after(10):
        async with open_messages_api([]) as api:
            options = SessionOptions(env=api.environment(), auto_memory=True)
    environment = to_environment(options, os.environ)
    plain = to_environment(SessionOptions(auto_memory=True), {})
    assert {name: environment.get(name) for name in plain} == plain


async def ask_once(script: Script, raised: BaseException | None = None) -> None:
    """Open the API, ask one thing, and leave the block."""
    async with open_messages_api(script) as api:
        client = await connect(api)
        async with client.stream:
            await client.ask()
        if raised is not None:
            raise raised


async def test_running_out_of_replies_is_told_at_the_end_of_the_block() -> None:
    with trio.fail_after(10):
        with pytest.raises(ScriptExhausted, match="'hi'") as caught:
            await ask_once([])
        assert [request.kind for request in caught.value.requests] == [RequestKind.MAIN]
        with pytest.raises(KeyError) as own:
            await ask_once([], KeyError("mine"))
        assert "ran out" in own.value.__notes__[0]


async def test_what_a_script_raises_cancels_the_block_and_leaves_it_bare() -> None:
    with trio.fail_after(10):
        with pytest.raises(KeyError, match="hi") as caught:
            await ask_for_ever(raising)
        assert caught.value.__cause__ is None
        with pytest.raises(ExceptionGroup) as both:
            await ask_for_ever(raising, ValueError("clean-up"))
        assert {type(each) for each in both.value.exceptions} == {KeyError, ValueError}


async def ask_for_ever(script: Script, raised: BaseException | None = None) -> None:
    async with open_messages_api(script) as api:
        try:
            client = await connect(api)
            async with client.stream:
                await client.send(body(), "POST", "/v1/messages")
                await trio.sleep_forever()
        finally:
            if raised is not None:
                raise raised


@pytest.mark.parametrize("reply", [hang(), say("so far") + hang(), say("whole"), Reply()])
async def test_a_cancelled_block_leaves_bare_and_leaves_nothing(reply: Reply) -> None:
    tasks = trio.lowlevel.current_statistics().tasks_living
    homes: list[trio.Path] = []

    async def block() -> None:
        async with open_messages_api([reply]) as api, (await connect(api)).stream as stream:
            homes.append(trio.Path(api.home))
            await Client(stream).send(body(), "POST", "/v1/messages")
            (request,) = await api.wait_requests(1)
            assert request.last_user_text == "hi"
            scope.cancel()
            await trio.sleep_forever()

    with trio.fail_after(10):
        with trio.CancelScope() as scope, pytest.raises(trio.Cancelled):
            await block()
        assert not await homes[0].exists()
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    gc.collect()  # A socket that was forgotten warns here.


async def test_a_nursery_in_the_background_wraps_nothing(autojump_clock: trio.abc.Clock) -> None:
    async def fail_inside() -> None:
        async with background_tasks() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise KeyError

    async def fail_when_cancelled() -> None:
        async with background_tasks() as nursery, trio.open_nursery() as inner:
            inner.start_soon(trio.sleep_forever)
            nursery.cancel_scope.cancel()
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError

    async def fail_behind(own: type[Exception] | None) -> None:
        async with background_tasks() as nursery:
            nursery.start_soon(fail_inside)
            try:
                await trio.sleep_forever()
            finally:
                if own is not None:
                    raise own

    with pytest.raises(KeyError):
        await fail_inside()
    with pytest.raises(ExceptionGroup) as behind:
        await fail_behind(None)
    assert behind.value.split(KeyError)[1] is None
    with pytest.raises(ExceptionGroup) as both:
        await fail_behind(OSError)
    assert both.value.subgroup(KeyError) is not None
    assert both.value.subgroup(OSError) is not None
    # The group of the inner nursery, without the cancellation that was in it.
    with pytest.raises(ExceptionGroup) as caught:
        await fail_when_cancelled()
    assert caught.value.split(ValueError)[1] is None


async def test_a_background_nursery_that_is_cancelled_from_outside_gives_a_bare_cancelled(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def block() -> None:
        async with background_tasks() as nursery:
            nursery.start_soon(trio.sleep_forever)
            scope.cancel()

    with trio.CancelScope() as scope, pytest.raises(trio.Cancelled):
        await block()
