"""The wire of the stand-in for the Messages API: HTTP, events, and what breaks them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs
import h11
import pytest
import trio
from hypothesis import given
from trio.testing import wait_all_tasks_blocked

from claude_trio.testing import Reply, Usage, call_tools, cut, fail, hang, hold, pause, say
from claude_trio.testing._api_events import Ids, MessageStream, whole_message
from tests.shell.messages_api_client import (
    REPLIES,
    Answer,
    assemble,
    body,
    serving,
)

if TYPE_CHECKING:
    from claude_trio.testing import ApiRequest


async def test_a_streamed_text_has_the_events_of_the_api(autojump_clock: trio.abc.Clock) -> None:
    async with serving([say("hello")]) as bench:
        answer = await bench.connect().ask()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    start, opened, delta, stopped, ending, end = answer.events
    message = start["message"]
    assert (message["role"], message["model"], message["content"]) == ("assistant", "m", [])
    assert opened["content_block"] == {"type": "text", "text": ""}
    assert delta["delta"] == {"type": "text_delta", "text": "hello"}
    assert (opened["index"], delta["index"], stopped["index"]) == (0, 0, 0)
    assert ending["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert ending["usage"] == attrs.asdict(Usage())
    assert (stopped["type"], end["type"]) == ("content_block_stop", "message_stop")


@given(REPLIES)
def test_a_reply_is_the_same_message_streamed_or_whole(reply: Reply) -> None:
    stream = MessageStream("m", reply, Ids())
    pieces = [stream.begin()]
    pieces += [stream.add(part) for part in reply.parts]  # type: ignore[arg-type]
    data = b"".join([*pieces, stream.end()])
    events = Answer(status=200, headers={}, data=data).events
    assert assemble(events) == json.loads(whole_message("m", reply, Ids()))


async def test_parallel_calls_are_blocks_of_one_message(autojump_clock: trio.abc.Clock) -> None:
    reply = call_tools(("Read", {"path": "a"}), ("Bash", {"command": "b"}), text="look")
    async with serving([reply, reply]) as bench:
        client = bench.connect()
        messages = [assemble((await client.ask()).events) for _ in range(2)]
    content = messages[0]["content"]
    assert [block["type"] for block in content] == ["text", "tool_use", "tool_use"]
    assert [block["input"] for block in content[1:]] == [{"path": "a"}, {"command": "b"}]
    assert messages[0]["stop_reason"] == "tool_use"
    ids = [block["id"] for message in messages for block in message["content"][1:]]
    assert len({*ids, *(message["id"] for message in messages)}) == 6


async def test_a_text_comes_in_its_pieces_at_its_times(autojump_clock: trio.abc.Clock) -> None:
    async with serving([pause(3) + say("abcdef", chunks=3, delay=2) + pause(5)]) as bench:
        answer = await bench.connect().ask()
    assert [round(time) for time, _ in answer.times] == [3, 5, 7, 12]
    deltas = [event["delta"] for event in answer.events if event["type"] == "content_block_delta"]
    assert [delta["text"] for delta in deltas] == ["ab", "cd", "ef"]


async def test_texts_run_on_in_one_block_across_a_pause(autojump_clock: trio.abc.Clock) -> None:
    go_on = trio.Event()
    async with serving([say("one ") + pause(1) + hold(go_on) + say("two")]) as bench:
        client = bench.connect()
        await client.send(body(), "POST", "/v1/messages")
        await wait_all_tasks_blocked()
        go_on.set()
        message = assemble((await client.receive()).events)
    assert message["content"] == [{"type": "text", "text": "one two"}]


async def test_a_request_without_stream_gets_one_json_object(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving([pause(2) + say("hello"), fail(529), cut()]) as bench:
        client = bench.connect()
        whole = await client.ask(body(stream=False))
        assert trio.current_time() == pytest.approx(2)
        assert whole.headers["content-type"] == "application/json"
        assert whole.json["content"] == [{"type": "text", "text": "hello"}]
        assert (await client.ask(body(stream=False))).status == 529
        with pytest.raises(h11.RemoteProtocolError):
            await client.ask(body(stream=False))


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (429, "rate_limit_error"), (529, "overloaded_error")],
)
async def test_a_failure_that_comes_first_refuses_the_request(
    status: int, kind: str, autojump_clock: trio.abc.Clock
) -> None:
    async with serving([pause(1) + fail(status, "no", retry_after=1.5)]) as bench:
        answer = await bench.connect().ask()
    assert (answer.status, answer.headers["retry-after"]) == (status, "1.5")
    assert answer.json == {"type": "error", "error": {"type": kind, "message": "no"}}


@pytest.mark.parametrize(
    ("seconds", "header"), [(0, "0"), (0.25, "0.25"), (10, "10"), (12_345_678.5, "12345678.5")]
)
async def test_retry_after_is_a_plain_number(
    seconds: float, header: str, autojump_clock: trio.abc.Clock
) -> None:
    async with serving([fail(429, retry_after=seconds)]) as bench:
        assert (await bench.connect().ask()).headers["retry-after"] == header


async def test_each_response_has_a_request_id_of_its_own(autojump_clock: trio.abc.Clock) -> None:
    async with serving([say("streamed"), say("whole"), fail(529)]) as bench:
        client = bench.connect()
        answers = [await client.ask(body(stream=stream)) for stream in (True, False, True)]
        answers.append(await client.ask(None, "HEAD", "/"))
    ids = [answer.headers["request-id"] for answer in answers]
    assert len({*ids}) == 4
    assert all(each.startswith("req_") for each in ids)


async def test_a_later_failure_is_an_event_of_the_stream(autojump_clock: trio.abc.Clock) -> None:
    async with serving([say("so far") + fail(529, "no"), say("ok")]) as bench:
        client = bench.connect()
        answer = await client.ask()
        assert (answer.status, answer.events[-1]["type"]) == (200, "error")
        assert answer.events[-1]["error"] == {"type": "overloaded_error", "message": "no"}
        assert (await client.ask()).status == 200


async def test_a_cut_stream_breaks_off_inside_its_block(autojump_clock: trio.abc.Clock) -> None:
    async with serving([say("so far") + cut()]) as bench:
        client = bench.connect()
        await client.send(body(), "POST", "/v1/messages")
        await client.next_event()
        pieces = [(await client.next_event()).data]
        with pytest.raises(h11.RemoteProtocolError):
            await client.next_event()
        assert b"so far" in pieces[0]
        assert b"content_block_stop" not in pieces[0]


async def test_a_hang_lasts_until_the_client_hangs_up(autojump_clock: trio.abc.Clock) -> None:
    async with serving([hang(), say("so far") + hang()]) as bench:
        for _ in range(2):
            client = bench.connect()
            await client.send(body(), "POST", "/v1/messages")
            await trio.sleep(10_000)
            assert bench.open == 1
            await client.stream.aclose()
            await wait_all_tasks_blocked()
            assert bench.open == 0
    assert not bench.server.failures


async def test_a_client_that_hangs_up_cancels_the_script(autojump_clock: trio.abc.Clock) -> None:
    cancelled = trio.Event()

    async def script(_request: ApiRequest) -> Reply:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with serving(script) as bench:
        client = bench.connect()
        await client.send(body(), "POST", "/v1/messages")
        await wait_all_tasks_blocked()
        await client.stream.aclose()
        await cancelled.wait()
        await wait_all_tasks_blocked()
    assert (bench.open, bench.server.failures) == (0, [])


async def test_a_script_that_fails_while_it_is_cancelled_is_heard(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def script(_request: ApiRequest) -> Reply:
        async with trio.open_nursery():
            try:
                await trio.sleep_forever()
            finally:
                raise KeyError("clean-up")

    async with serving(script) as bench:
        client = bench.connect()
        await client.send(body(), "POST", "/v1/messages")
        await wait_all_tasks_blocked()
        await client.stream.aclose()
        await bench.failed.wait()
    (failure,) = bench.server.failures
    assert isinstance(failure, ExceptionGroup)
    assert failure.subgroup(KeyError) is not None


async def test_a_connection_serves_one_request_after_the_other(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving([say(str(number)) for number in range(3)]) as bench:
        client = bench.connect()
        texts = [assemble((await client.ask()).events)["content"][0]["text"] for _ in range(3)]
        assert texts == ["0", "1", "2"]
        client.headers["connection"] = "close"
        await client.ask(None, "HEAD", "/")
        assert await client.stream.receive_some() == b""
        idle = bench.connect()
        await idle.stream.aclose()
        await wait_all_tasks_blocked()
        assert bench.open == 0


async def test_an_early_next_request_waits_for_its_turn(autojump_clock: trio.abc.Clock) -> None:
    async with serving([pause(1) + say("one"), say("two")]) as bench:
        client = bench.connect()
        data = json.dumps(body()).encode()
        request = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s"
        for _ in range(2):
            await client.stream.send_all(request % (len(data), data))
            await wait_all_tasks_blocked()
        received = b""
        while received.count(b"message_stop\ndata") < 2:
            received += await client.stream.receive_some()
        assert received.index(b'"one"') < received.index(b'"two"')


async def test_a_client_that_hangs_up_after_an_early_request_is_noticed(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving([pause(1) + say("one") + hang()]) as bench:
        client = bench.connect()
        await client.send(body(), "POST", "/v1/messages")
        await client.stream.send_all(b"POST")
        await wait_all_tasks_blocked()
        await client.stream.aclose()
        await trio.sleep(2)
        assert bench.open == 0


async def test_a_request_may_come_byte_by_byte(autojump_clock: trio.abc.Clock) -> None:
    async with serving([say("ok")]) as bench:
        client = bench.connect(expect="100-continue")
        data = json.dumps(body("\u00e4\u2028z")).encode()
        head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
        for byte in head + b"content-length: %d\r\n\r\n" % len(data):
            await client.stream.send_all(bytes([byte]))
        assert (await client.stream.receive_some()).startswith(b"HTTP/1.1 100 ")
        for byte in data:
            await client.stream.send_all(bytes([byte]))
        assert (await client.stream.receive_some()).startswith(b"HTTP/1.1 200 ")
    assert bench.server.requests[0].last_user_text == "\u00e4\u2028z"


@pytest.mark.parametrize("sent", [b"\x16\x03\x01 nonsense\r\n\r\n", b"POST /v1/mess"])
async def test_what_is_no_http_ends_the_connection_alone(
    sent: bytes, autojump_clock: trio.abc.Clock
) -> None:
    async with serving([say("ok")]) as bench:
        broken, fine = bench.connect(), bench.connect()
        await broken.stream.send_all(sent)
        if not sent.endswith(b"\n"):
            await broken.stream.send_eof()  # type: ignore[attr-defined]
        assert (await broken.stream.receive_some()).startswith(b"HTTP/1.1 400 ")
        assert (await fine.ask()).status == 200


async def test_a_body_beyond_the_limit_of_the_api_is_refused(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving() as bench:
        client = bench.connect()
        await client.stream.send_all(
            b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 33554433\r\n\r\n"
        )
        await client.stream.send_all(bytes(33554433))
        assert (await client.stream.receive_some()).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"model": "m"}', b"[" * 100_000])
async def test_a_body_that_is_no_request_is_refused(
    data: bytes, autojump_clock: trio.abc.Clock
) -> None:
    async with serving([say("ok")]) as bench:
        client = bench.connect()
        answer = await client.ask(data)
        assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
        assert (await client.ask()).status == 200


async def test_other_endpoints_are_served_as_far_as_the_cli_needs_them(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with serving() as bench:
        client = bench.connect()
        assert (await client.ask(None, "HEAD", "/")).status == 200
        assert (await client.ask(None, "HEAD", "/api/hello")).status == 200
        counted = await client.ask(body("x" * 400), target="/v1/messages/count_tokens?beta=true")
        assert counted.json["input_tokens"] > 100
        for method, target in (("GET", "/v1/messages"), ("POST", "/v1/other")):
            missing = await client.ask(None, method, target)
            assert (missing.status, missing.json["error"]["type"]) == (404, "not_found_error")
    assert not bench.server.requests
