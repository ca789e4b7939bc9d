"""Laws of recording: all of the wire, nothing of the secrets, and no harm to the session."""

from __future__ import annotations

import json
import os
import resource
import stat
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from claude_trio import (
    Allow,
    CLINotFound,
    PermissionRequest,
    ProcessExited,
    SessionOptions,
    open_session,
    spawn,
)
from claude_trio.testing import FakeClaude, call_tool, faults, hang, recording, replay, say
from claude_trio.testing._redact import MARK
from claude_trio.testing._wire_log import load
from tests.recordings import rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from claude_trio import Transport
    from claude_trio.testing import Recorder

KEY: Final = "sk-ant-api03-AbCdEfGh-123_456"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talk.ndjson"


def header(path: Path) -> Any:
    return json.loads(path.read_bytes().split(b"\n")[0])


def frames(path: Path, way: str) -> list[Any]:
    return [row["frame"] for row in rows(path) if row["dir"] == way]


def events(path: Path) -> list[str]:
    """What happened that is no line; whether the end of stdout was read is chance."""
    told = frames(path, "ctl")
    return [f.get("signal", f["event"]) for f in told if f["event"] != "stdout_eof"]


async def allow(request: PermissionRequest) -> Allow:
    return Allow()


async def read_all(transport: Transport) -> bytes:
    parts = []
    while data := await transport.receive():
        parts.append(data)
    return b"".join(parts)


async def record_bytes(recorder: Recorder, fake: FakeClaude, said: Sequence[bytes]) -> bytes:
    """Let the CLI write some bytes at a time; return what the host has got."""
    got = b""
    async with trio.open_nursery() as nursery:
        transport = await recorder.launch(("claude",), {}, None, nursery)
        for data in said:
            fake.write(data)
            got += await transport.receive()
        transport.close_stdin()
        await transport.wait_exit()
        got += await read_all(transport)
        await transport.aclose(sweep=True)
    return got


async def replay_bytes(path: Path) -> bytes:
    with replay(path) as cli:
        async with trio.open_nursery() as nursery:
            transport = await cli.launch(("claude",), {}, None, nursery)
            transport.close_stdin()
            return await read_all(transport)


# --------------------------------------------------------------------------------- the wire

ODD: Final = (
    b'{"type": "x",  "a": 1.50, "b": 1e3}\n',
    b'{"type":"x","text":"\\u00e9 \\ud83d / \\/ \\u2028"}\n',
    '{"type":"x","text":"é \u2028\u0085"}\n'.encode(),
    b'{"type":"x","text":"bytes \xff\xfe"}\n',
    b'{"type":"x","a":1}\r\n',
    b"Warning: \xff no JSON\n\n  \n42\n[1]\n",
    b'{"type":"x","te',
    b'xt":"in two pieces"}\n{"type":"x"}\n{"type":"x","text":"cut o',
)


async def test_each_byte_that_the_cli_wrote_comes_again(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([])
    with recording(path, launch=fake.launch) as recorder:
        got = await record_bytes(recorder, fake, ODD)
    assert got == b"".join(ODD)
    assert await replay_bytes(path) == got


async def test_a_long_line_in_small_pieces_is_one_line(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([])
    line = b'{"type":"x","text":"' + b"word " * 80_000 + b'"}\n'
    pieces = [line[at : at + 500] for at in range(0, len(line), 500)]
    with recording(path, launch=fake.launch) as recorder:
        assert await record_bytes(recorder, fake, pieces) == line
    assert await replay_bytes(path) == line


async def test_a_file_has_the_form_of_the_recordings_of_the_real_cli(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([say("hello")], faults=[faults.stderr("a warning\n\nanother\n")])
    with recording(path, launch=fake.launch) as recorder:
        async with open_session(None, launch=recorder.launch) as session:
            await trio.sleep(1.5)
            await session.prompt("hi")
    first, *told = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert [*first] == ["scenario", "cli_version", "argv", "env", "exit"]
    assert (first["scenario"], first["cli_version"], first["exit"]) == ("talk", "2.1.332", 0)
    assert first["argv"][0] == "claude"
    assert first["env"]["CLAUDE_CODE_ENTRYPOINT"] == "sdk-py"
    assert "PATH" not in first["env"]
    assert all([*row][:3] == ["t", "dir", "frame"] for row in told)
    assert [row["t"] for row in told] == sorted(row["t"] for row in told)
    assert {row["t"] for row in told} == {0, 1.5}
    assert [told[0]["dir"], told[1]["dir"]] == ["in", "out"]
    assert events(path) == ["stdin_closed", "exit"]
    assert frames(path, "err") == ["a warning", "", "another"]
    assert told[-1]["frame"] == {"event": "exit", "code": 0}


@pytest.mark.parametrize("dies_with", [7, -9])
async def test_a_cli_that_dies_is_recorded_to_its_end_and_dies_again(
    autojump_clock: MockClock, path: Path, dies_with: int
) -> None:
    fake = FakeClaude([say("x")], faults=[faults.dies(dies_with), faults.stderr("out of memory")])
    with recording(path, launch=fake.launch) as recorder:
        with pytest.raises(ProcessExited):
            async with open_session(None, launch=recorder.launch) as session:
                await session.prompt("hi")
    assert header(path)["exit"] == dies_with
    with replay(path) as cli:
        with pytest.raises(ProcessExited) as caught:
            async with open_session(None, launch=cli.launch) as session:
                await session.prompt("hi")
    assert caught.value.returncode == dies_with
    assert caught.value.stderr_tail == "out of memory\n"


async def test_what_is_read_after_the_exit_is_recorded_before_it(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([])
    with recording(path, launch=fake.launch) as recorder:
        async with trio.open_nursery() as nursery:
            transport = await recorder.launch((), {}, None, nursery)
            fake.write(b'{"type":"last"}\n')
            fake.exit(3)
            assert await transport.wait_exit() == 3
            assert await read_all(transport) == b'{"type":"last"}\n'
            await transport.aclose(sweep=True)
    assert [row["frame"] for row in rows(path)] == [
        {"type": "last"},
        {"event": "stdout_eof"},
        {"event": "exit", "code": 3},
    ]


async def test_a_signal_after_the_exit_is_none(autojump_clock: MockClock, path: Path) -> None:
    fake = FakeClaude([])
    with recording(path, launch=fake.launch) as recorder:
        async with trio.open_nursery() as nursery:
            transport = await recorder.launch((), {}, None, nursery)
            fake.exit(0)
            await transport.wait_exit()
            transport.terminate()
            transport.kill()
            await transport.aclose(sweep=True)
    assert events(path) == ["exit"]


async def test_a_stdout_that_is_held_open_is_no_obstacle(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([say("x")], faults=[faults.holds_stdout()])
    with recording(path, launch=fake.launch) as recorder:
        async with open_session(None, launch=recorder.launch) as session:
            await session.prompt("hi")
    assert frames(path, "ctl")[-1] == {"event": "exit", "code": 0}
    with replay(path) as cli:
        async with open_session(None, launch=cli.launch) as session:
            await session.prompt("hi")


async def test_the_signals_of_a_session_are_recorded_and_waited_for(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([say("x")], faults=[faults.deaf_to(*["eof", "term"])])
    with recording(path, launch=fake.launch) as recorder:
        async with open_session(None, launch=recorder.launch):
            pass
    assert events(path) == ["stdin_closed", "SIGTERM", "SIGKILL", "exit"]
    start = trio.current_time()
    with replay(path) as cli:
        async with open_session(None, launch=cli.launch):
            pass
    assert trio.current_time() - start == pytest.approx(10)


async def test_a_line_that_was_written_in_part_is_recorded_when_it_is_whole(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([say("x")], faults=[faults.narrow_stdin(50)])
    with recording(path, launch=fake.launch) as recorder:
        async with open_session(None, launch=recorder.launch) as session:
            await session.prompt("word " * 100)
    assert [frame["type"] for frame in frames(path, "in")] == ["control_request", "user"]
    with replay(path) as cli:
        async with open_session(None, launch=cli.launch) as session:
            await session.prompt("word " * 100)


async def test_a_last_line_without_its_end_comes_before_the_end(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([])
    with recording(path, launch=fake.launch) as recorder:
        async with trio.open_nursery() as nursery:
            transport = await recorder.launch((), {}, None, nursery)
            transport.send_nowait(b'{"type":"user"}')
            transport.close_stdin()
            transport.close_stdin()
            await transport.wait_exit()
            await transport.aclose(sweep=True)
    first, second, *_ = rows(path)
    assert (first["frame"], first["cut"]) == ({"type": "user"}, True)
    assert second["frame"] == {"event": "stdin_closed"}
    assert events(path) == ["stdin_closed", "exit"]


# ----------------------------------------------------------------------------- the secrets


async def test_no_planted_secret_reaches_the_file(
    autojump_clock: MockClock, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = "mine-0123456789", "theirs-0123456789"
    monkeypatch.setenv("OUR_SECRET", mine)
    monkeypatch.setenv("HOME", "/srv/alice")
    spelled = KEY.replace("-", "\\u002d")
    fake = FakeClaude(
        [
            call_tool("Bash", {"command": f"curl -H 'x: {KEY}' /srv/alice", theirs: [mine]}),
            say(f"it was {KEY} and {mine}"),
        ],
        run_tool=lambda *_: json.dumps({"nested": json.dumps({"apiKey": "hidden-1"})}),
        faults=[faults.stderr(f"no such key: {theirs}\n")],
    )
    options = SessionOptions(
        env={"ANTHROPIC_API_KEY": theirs}, settings={"env": {"A_TOKEN": "hidden-2"}}
    )
    with recording(path, launch=fake.launch, redact=lambda t: t.replace("ACME", "-")) as recorder:
        async with open_session(
            None, options, on_permission=allow, launch=recorder.launch
        ) as session:
            async with session.turn(f"my token: hidden-3, for ACME, {KEY}") as turn:
                fake.write(f'{{"type":"x","k":"{spelled}","k":"x"}}\n'.encode())
                fake.write(f'{{"type":"x","{spelled}":1}}\nnoise {mine} ACME\n'.encode())
            assert turn.result is not None
            assert turn.result.text == f"it was {KEY} and {mine}"
    text = path.read_text(encoding="utf-8")
    for secret in (KEY, spelled, "u002dant", mine, theirs, "hidden-", "/srv/alice", "ACME"):
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text
    assert text.count(MARK) > 12
    assert {"-": 1}.keys() <= set(text)


async def test_what_was_redacted_is_played_to_a_host_that_says_the_secret_again(
    autojump_clock: MockClock, path: Path
) -> None:
    async def talk(session: Any) -> str:
        return str((await session.prompt(f"use {KEY} in /home/alice")).text)

    use = call_tool("Bash", {"command": f"curl {KEY}", "token": "abc"})
    fake = FakeClaude([use, say(f"{KEY} it is")])
    with recording(path, launch=fake.launch) as recorder:
        async with open_session(None, on_permission=allow, launch=recorder.launch) as session:
            assert await talk(session) == f"{KEY} it is"
    with replay(path) as cli:
        async with open_session(None, on_permission=allow, launch=cli.launch) as session:
            assert await talk(session) == f"{MARK} it is"


def event(**more: Any) -> bytes:
    return json.dumps({"type": "stream_event", "event": more}).encode() + b"\n"


def delta(index: int, text: str, name: str = "text") -> bytes:
    return event(type="content_block_delta", index=index, delta={name: text})


def start(index: int) -> bytes:
    return event(type="content_block_start", index=index, content_block={})


def stop(index: int) -> bytes:
    return event(type="content_block_stop", index=index)


def pieces(path: Path) -> list[str]:
    found = [f["event"]["delta"] for f in frames(path, "out") if "delta" in f.get("event", {})]
    return [text for each in found for text in each.values()]


OTHER: Final = b'{"type":"other"}\n'


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([start(0), *(delta(0, c) for c in f"a {KEY} b"), stop(0)], [f"a {MARK} b"]),
        ([start(0), delta(0, KEY[:9]), OTHER, delta(0, KEY[9:]), stop(0)], [MARK]),
        # Two at a time; one that has no end because the message was aborted; one at the exit.
        (
            [start(0), start(1), delta(0, KEY[:9]), delta(1, "x"), delta(0, KEY[9:]), stop(0)],
            [MARK, "x"],
        ),
        ([start(0), delta(0, KEY[:9]), delta(0, KEY[9:]), event(type="message_start")], [MARK]),
        ([start(0), delta(0, KEY[:9]), delta(0, KEY[9:]), b'{"type":"result"}\n'], [MARK]),
        ([start(0), delta(0, KEY[:9]), delta(0, KEY[9:])], [MARK]),
        ([start(0), delta(0, '{"to'), delta(0, 'ken":"ab"}'), stop(0)], [f'{{"token":"{MARK}"}}']),
        # What looks like a secret in a piece only is none.
        (
            [start(0), delta(0, "ta"), delta(0, "sk-0123456789abcdefghij"), stop(0)],
            ["ta", "sk-0123456789abcdefghij"],
        ),
        ([start(0), delta(0, "sk-"), delta(0, "token: none"), stop(0)], [f"sk-token: {MARK}"]),
        ([start(0), delta(0, "max token"), delta(0, "s: 5"), stop(0)], ["max token", "s: 5"]),
    ],
)
@pytest.mark.parametrize("name", ["text", "partial_json", "thinking"])
async def test_a_secret_that_streams_in_pieces_is_taken_out(
    autojump_clock: MockClock, path: Path, said: list[bytes], told: list[str], name: str
) -> None:
    fake = FakeClaude([])
    said = [data.replace(b'"text":', f'"{name}":'.encode()) for data in said]
    with recording(path, launch=fake.launch) as recorder:
        got = await record_bytes(recorder, fake, said)
    assert got == b"".join(said)
    assert KEY[9:] not in path.read_text(encoding="utf-8")
    assert [text for text in pieces(path) if text] == told
    # Nothing was moved, added or lost.
    kinds = [json.loads(line)["type"] for line in got.splitlines()]
    assert [frame["type"] for frame in frames(path, "out")] == kinds


async def test_a_signal_in_mid_block_does_not_let_a_piece_escape(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([], faults=[faults.deaf_to(*["term"])])
    with recording(path, launch=fake.launch) as recorder:
        async with trio.open_nursery() as nursery:
            transport = await recorder.launch((), {}, None, nursery)
            for data in (start(0), delta(0, KEY[:9])):
                fake.write(data)
            await transport.receive()
            transport.terminate()
            fake.write(delta(0, KEY[9:]))
            await transport.receive()
            fake.exit(0)
            await transport.wait_exit()
            await transport.aclose(sweep=True)
    assert "".join(pieces(path)) == MARK


async def test_only_the_owner_can_read_a_recording(autojump_clock: MockClock, path: Path) -> None:
    fake = FakeClaude([])
    old = os.umask(0)
    try:
        with recording(path, launch=fake.launch) as recorder:
            await record_bytes(recorder, fake, [])
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# ----------------------------------------------------------------------------- when it ends


async def test_what_was_recorded_is_in_the_file_at_once(
    autojump_clock: MockClock, path: Path
) -> None:
    with recording(path, launch=FakeClaude([say("one"), hang()]).launch) as recorder:
        async with open_session(None, launch=recorder.launch) as session:
            await session.prompt("hi")
            # As it would be if the program was killed now.
            assert header(path)["exit"] is None
            assert [row.way for row in load(path).rows][-1] == "out"
            told = frames(path, "out")
            assert "result" in [frame["type"] for frame in told]
            with trio.move_on_after(1):
                await session.prompt("wait")
    assert frames(path, "out")[: len(told)] == told
    assert frames(path, "ctl")[-1]["event"] == "exit"


async def test_a_cancelled_session_is_recorded_to_its_end(
    autojump_clock: MockClock, path: Path
) -> None:
    with recording(path, launch=FakeClaude([hang()]).launch) as recorder:
        with trio.move_on_after(5) as scope:
            async with open_session(None, launch=recorder.launch) as session:
                await session.prompt("hi")
    assert scope.cancelled_caught
    assert frames(path, "ctl")[-1] == {"event": "exit", "code": 1}
    asked = [frame["request"]["subtype"] for frame in frames(path, "in") if "request" in frame]
    # The turn that was left, and what still ran when stdin was closed.
    assert asked == ["initialize", "interrupt", "interrupt"]
    with replay(path) as cli, trio.move_on_after(5) as scope:
        async with open_session(None, launch=cli.launch) as session:
            await session.prompt("hi")
    assert scope.cancelled_caught


async def test_a_failing_hook_stops_the_recording_and_not_the_session(
    autojump_clock: MockClock, path: Path
) -> None:
    def fails(text: str) -> str:
        if "secret plan" in text:
            raise ZeroDivisionError
        return text

    texts: list[str] = []
    with pytest.raises(ZeroDivisionError) as caught:
        with recording(path, launch=FakeClaude([say("one")]).launch, redact=fails) as recorder:
            async with open_session(None, launch=recorder.launch) as session:
                texts.append((await session.prompt("the secret plan")).text)
    assert texts == ["one"]
    assert caught.value.__notes__ == [f"the recording {path} stops here"]
    assert "secret plan" not in path.read_text(encoding="utf-8")
    assert [row.way for row in load(path).rows] == ["in", "out"]


async def test_the_error_of_the_program_comes_before_that_of_the_recording(
    autojump_clock: MockClock, path: Path
) -> None:
    def fails(text: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(KeyError) as caught:
        with recording(path, launch=FakeClaude([]).launch, redact=fails) as recorder:
            async with open_session(None, launch=recorder.launch):
                raise KeyError
    assert "ZeroDivisionError" in caught.value.__notes__[0]


async def test_a_disk_that_takes_no_more_is_told(autojump_clock: MockClock, path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(OSError, match="large") as caught:
        with recording(path, launch=FakeClaude([say("one")]).launch) as recorder:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
            try:
                async with open_session(None, launch=recorder.launch) as session:
                    assert (await session.prompt("hi")).text == "one"
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.__notes__ == [f"the recording {path} stops here"]
    assert len(load(path).rows) > 1  # What is there can be read, though the last line is torn.


async def test_a_recording_is_of_one_process(autojump_clock: MockClock, path: Path) -> None:
    with recording(path, launch=FakeClaude([]).launch) as recorder:
        async with open_session(None, launch=recorder.launch):
            pass
        before = path.read_bytes()
        with pytest.raises(RuntimeError, match="one process"):
            async with open_session(None, launch=recorder.launch):
                pass
    assert path.read_bytes() == before


async def test_two_do_not_record_into_one_file(autojump_clock: MockClock, path: Path) -> None:
    fake = FakeClaude([say("one")])
    with recording(path, launch=fake.launch) as recorder:
        async with open_session(None, launch=recorder.launch) as session:
            with pytest.raises(BlockingIOError), recording(path):
                pass
            await session.prompt("hi")
    assert "result" in [frame["type"] for frame in frames(path, "out")]


async def test_an_older_recording_is_replaced(autojump_clock: MockClock, path: Path) -> None:
    path.write_text("old " * 10_000, encoding="utf-8")
    fake = FakeClaude([])
    with recording(path, launch=fake.launch) as recorder:
        await record_bytes(recorder, fake, [])
    assert "old" not in path.read_text(encoding="utf-8")


def test_a_launcher_that_nobody_uses_is_an_error(path: Path) -> None:
    with pytest.raises(RuntimeError, match="nothing was recorded"), recording(path):
        pass


def test_a_file_that_cannot_be_written_is_an_error_at_once(path: Path) -> None:
    with pytest.raises(FileNotFoundError), recording(path / "x"):
        raise AssertionError


async def test_a_cli_that_is_not_there_is_the_launchers_error(path: Path) -> None:
    with pytest.raises(CLINotFound):
        with recording(path, launch=spawn) as recorder:
            async with open_session(
                None, SessionOptions(command=["/no/such/claude"]), launch=recorder.launch
            ):
                pass
    assert header(path)["argv"][0] == "/no/such/claude"
    assert list(rows(path)) == []


async def test_what_is_still_held_back_is_written_when_the_block_ends(
    autojump_clock: MockClock, path: Path
) -> None:
    fake = FakeClaude([])
    async with trio.open_nursery() as nursery:
        with recording(path, launch=fake.launch) as recorder:
            transport = await recorder.launch((), {}, None, nursery)
            fake.write(start(0) + delta(0, KEY))
            await wait_all_tasks_blocked()
            assert await transport.receive()
            assert frames(path, "out") == []
            for end in (b'{"type":"result"}\n', event(type="message_delta"), stop(0)):
                fake.write(end + start(0) + delta(0, KEY))
                assert await transport.receive()
                # A block is held back until it is known to be over, and no longer.
                assert frames(path, "out")[-1] == json.loads(end)
        assert pieces(path) == [MARK] * 4
        transport.kill()
        await transport.aclose(sweep=True)
    assert pieces(path) == [MARK] * 4
