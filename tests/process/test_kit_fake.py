"""``claude-trio-fake``: a script as a program, which nobody can tell from the CLI on its pipes."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from claude_trio import (
    ExitCause,
    ExitState,
    LaunchFailed,
    ProcessExited,
    RemoteProtocolError,
    Session,
    SessionClosed,
    SessionOptions,
    Timeouts,
    open_session,
)
from claude_trio.permissions import allow_all
from claude_trio.testing import BadScript, FakeClaude, Reply, assert_no_leaks, load_fake, say
from claude_trio.testing._fake_main import main

pytestmark = pytest.mark.slow

Json = dict[str, Any]
PROGRAM: Final = (
    sys.executable,
    "-c",
    "from claude_trio.testing._fake_main import main; main()",
)
SECONDS: Final = 60
PIPE: Final = subprocess.PIPE
PROMPT: Final = b'{"type":"user","message":{"role":"user","content":"go"}}\n'

CONVERSATION: Final[list[Any]] = [
    {"call_tool": "Bash", "input": {"command": "touch a"}, "text": "Let me", "returns": "made"},
    [{"think": "hm"}, {"say": "wörd ", "chunks": 3, "delay": 0.01}, {"pause": 0.1}, {"say": "語"}],
    {"call_agent": ["look around", {"call_tool": "Grep", "input": {}}, {"say": "nothing"}]},
    {"say": "it looks"},
    {"say": "it found nothing"},
    {"fail": 403, "message": "no"},
]

# What stands for itself in tests of `MODULE:NAME`.
ROW: Final = [say("from a row")]
FAKE: Final = FakeClaude(ROW)


def function(told: str) -> Reply:
    return say(f"told {told}")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with assert_no_leaks():
        yield


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.json"


def program(script: Path, value: object) -> list[str]:
    script.write_text(json.dumps(value), encoding="utf-8")
    return [*PROGRAM, str(script)]


def faulty(script: Path, *faults: object) -> SessionOptions:
    row = [{"say": "one"}, {"say": "two"}, {"say": "three"}]
    return SessionOptions(command=program(script, {"script": row, "faults": list(faults)}))


async def works(session: Session) -> None:
    assert (await session.prompt("go")).text in {"one", "two", "three"}


# -- a CLI like any other


async def test_a_session_holds_a_whole_conversation_with_it(script: Path) -> None:
    options = SessionOptions(command=program(script, CONVERSATION))
    with trio.fail_after(SECONDS):
        async with open_session(None, options, on_permission=allow_all) as session:
            assert (await session.prompt("go")).text == "wörd 語"
            async with session.turn("look around") as turn:
                pass
            assert turn.result is not None
            assert turn.result.text == "it found nothing"
            assert len(turn.results) == 2
            failed = await session.prompt("go", check=False)
            assert failed.api_error_status == 403
    assert session.exit_status.state is ExitState.COMPLETED
    # As of the real one, whose last result was an error.
    assert session.exit_status.returncode == 1


async def test_it_says_what_the_fake_in_memory_says(script: Path) -> None:
    flags = ["--include-partial-messages"]
    said = (
        PROMPT + b'{"type":"control_request","request_id":"m","request":{"subtype":"nonsense"}}\n'
    )
    done = await run([*program(script, CONVERSATION[1:]), *flags], said)
    fake = load_fake(str(script))
    async with trio.open_nursery() as nursery:
        transport = await fake.launch(flags, {}, str(Path.cwd()), nursery)
        transport.send_nowait(said)
        transport.close_stdin()
        code = await transport.wait_exit()
        assert [steady(line) for line in transport.receive_nowait().splitlines()] == [
            steady(line) for line in done.stdout.splitlines()
        ]
    assert done.returncode == code == 0


def steady(line: bytes) -> Json:
    frame: Json = json.loads(line)
    return {name: value for name, value in frame.items() if not name.startswith("duration")}


async def run(argv: Sequence[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    with trio.fail_after(SECONDS):
        return await trio.run_process(
            argv, stdin=given, capture_stdout=True, capture_stderr=True, check=False
        )


@pytest.mark.parametrize(
    ("name", "text"), [("ROW", "from a row"), ("FAKE", "from a row"), ("function", "told go")]
)
async def test_a_script_in_python_is_named_by_its_module(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent.parent)
    options = SessionOptions(command=[*PROGRAM, f"tests.process.test_kit_fake:{name}"])
    with trio.fail_after(SECONDS):
        async with open_session(None, options) as session:
            assert (await session.prompt("go")).text == text


async def test_it_reads_from_files_as_well_as_from_pipes(script: Path, tmp_path: Path) -> None:
    given, got = tmp_path / "in", tmp_path / "out"
    given.write_bytes(PROMPT)
    argv = program(script, [{"say": "hello"}])
    with given.open("rb") as stdin, got.open("wb") as stdout, trio.fail_after(SECONDS):
        await trio.run_process(argv, stdin=stdin, stdout=stdout)
    assert json.loads(got.read_bytes().splitlines()[-1])["result"] == "hello"


async def test_it_says_which_cli_it_is() -> None:
    assert (await run([*PROGRAM, "any.json", "--version"])).stdout == b"2.1.332 (Claude Code)\n"
    assert (await run([*PROGRAM, "--version"])).stdout == b"2.1.332 (Claude Code)\n"
    assert b"usage: claude-trio-fake" in (await run([*PROGRAM, "--help"])).stdout
    assert (await run(PROGRAM)).returncode == 2


async def test_it_refuses_the_flags_that_the_cli_refuses(script: Path) -> None:
    done = await run([*program(script, []), "--verbose", "--no-such-flag"])
    assert done.returncode == 1
    assert done.stderr == b"error: unknown option '--no-such-flag'\n"


def test_the_package_installs_it() -> None:
    project = tomllib.loads(
        Path(__file__).parent.parent.parent.joinpath("pyproject.toml").read_text()
    )
    name = project["project"]["scripts"]["claude-trio-fake"]
    entry = importlib.metadata.EntryPoint("claude-trio-fake", name, "console_scripts")
    assert entry.load() is main


# -- bad scripts


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", "script.json is not JSON"),
        ({}, "there is no 'script'"),
        (
            {"script": [], "fault": []},
            "there is no 'fault'; agents, answers, faults, script, tools",
        ),
        ({"script": {}}, "script: {} is no list"),
        ([{"sya": "x"}], 'script[0]: {"sya": "x"} is none of call_agent, call_tool'),
        ([{"say": "x", "pause": 1}], "script[0]: "),
        ([5], "script[0]: 5 is no object"),
        (["hold"], 'script[0]: "hold" is none of'),
        ([[{"say": "x"}, {"say": 1}]], "script[0][1]: say: text: Expected `str`, got `int`"),
        ([{"say": "x", "chunk": 2}], "script[0]: say: got an unexpected keyword argument 'chunk'"),
        ([{"say": "x", "chunks": 0}], "script[0]: say: chunks is 0"),
        (["call_tool"], "script[0]: call_tool: missing a required argument: 'name'"),
        ([{"call_agent": ["p", {"say": 1}]}], "call_agent: replies[0]: say: text: Expected"),
        ([{"fail": 200}], "script[0]: fail: "),
        ({"script": [], "agents": {"a": 1}}, "agents['a']: 1 is no list"),
        ({"script": [], "answers": {"a": 1}}, "answers['a']: 1 is no object"),
        ({"script": [], "faults": ["nosie"]}, 'faults[0]: "nosie" is none of answers_twice'),
        ({"script": [], "faults": [{"dies": 9, "att": 1}]}, "faults[0]: dies: got an unexpected"),
    ],
)
def test_a_bad_script_is_refused_by_its_place(script: Path, value: object, words: str) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    script.write_text(text, encoding="utf-8")
    with pytest.raises(BadScript) as caught:
        load_fake(str(script))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "source", ["no/such.json", "no_such_module:x", "json:no_such_name", "json:__name__"]
)
async def test_what_cannot_be_loaded_is_said_on_stderr(source: str) -> None:
    done = await run([*PROGRAM, source])
    assert done.returncode == 2
    assert done.stderr.startswith(f"claude-trio-fake: {source} ".encode())
    assert b"Traceback" not in done.stderr


# -- how it ends


async def test_it_ends_with_its_stdin(script: Path) -> None:
    done = await run(program(script, [{"say": "one"}]))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)]
)
async def test_it_obeys_signals_as_the_real_one_does(
    script: Path, number: signal.Signals, code: int
) -> None:
    argv = program(script, [[{"say": "half"}, "hang"]])
    with trio.fail_after(SECONDS):
        async with started([*argv, "--include-partial-messages"]) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send_all(PROMPT)
            said = b""
            while b"text_delta" not in said:
                said += await process.stdout.receive_some()
            process.send_signal(number)
            async for data in process.stdout:
                said += data
            assert await process.wait() == code
    results = [line for line in said.splitlines() if b'"type":"result"' in line]
    # Only SIGINT leaves it time to end the turn.
    assert len(results) == (number is signal.SIGINT)


@contextlib.asynccontextmanager
async def started(argv: Sequence[str]) -> AsyncIterator[trio.Process]:
    process = await trio.lowlevel.open_process(argv, stdin=PIPE, stdout=PIPE)
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                await pipe.aclose()


async def test_a_host_that_hangs_up_is_not_missed(script: Path) -> None:
    async with started(program(script, [{"say": "one", "chunks": 10, "delay": 0.01}])) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdout.aclose()
        await process.stdin.send_all(PROMPT)
        await process.stdin.aclose()
        with trio.fail_after(SECONDS):
            assert await process.wait() == 0


@pytest.mark.parametrize("code", [3, -signal.SIGKILL, -signal.SIGSEGV])
async def test_it_dies_as_it_is_told(script: Path, code: int) -> None:
    with trio.fail_after(SECONDS), pytest.raises(ProcessExited) as caught:
        async with open_session(None, faulty(script, {"dies": code, "at": 9})) as session:
            await works(session)
            await works(session)
    assert caught.value.returncode == code


async def test_one_that_is_deaf_is_killed(script: Path) -> None:
    options = faulty(script, {"deaf_to": ["eof", "term"]})
    with trio.fail_after(SECONDS):
        async with open_session(None, options, timeouts=Timeouts(eof=0.5, term=0.5)) as session:
            await works(session)
    assert session.exit_status.signal == signal.SIGKILL


async def test_what_it_says_on_stderr_is_heard_however_much_it_is(script: Path) -> None:
    flood = {"stderr": ["it hurts\n", 1_000_000]}
    with trio.fail_after(SECONDS):
        async with open_session(None, faulty(script, flood)) as session:
            await works(session)
            await works(session)
    assert session.exit_status.stderr_tail.endswith("it hurts\n" * 100)


async def test_lines_come_whole_whatever_their_size_and_their_pieces(script: Path) -> None:
    faults = ({"giant_line": 5_000_000, "at": 3}, {"in_pieces": 1000}, {"noise": 5})
    with trio.fail_after(SECONDS):
        async with open_session(None, faulty(script, *faults)) as session:
            await works(session)
            await works(session)


async def test_a_torn_line_is_not_taken_for_a_result(script: Path) -> None:
    with trio.fail_after(SECONDS), pytest.raises((ProcessExited, RemoteProtocolError)):
        async with open_session(None, faulty(script, {"dies": 0, "at": 13, "torn": 40})) as session:
            await works(session)


async def test_a_child_that_holds_stdout_delays_nobody_and_goes_with_the_session(
    script: Path,
) -> None:
    options = faulty(script, "holds_stdout", {"dies": 5})
    with trio.fail_after(SECONDS):
        async with open_session(None, options) as session:
            with pytest.raises(ProcessExited):
                await works(session)
    assert session.exit_status.group_gone


async def test_one_that_reads_no_more_is_given_up(script: Path) -> None:
    options = faulty(script, {"stops_reading": 2, "size": 1000})
    with trio.fail_after(SECONDS), pytest.raises(SessionClosed):
        async with open_session(None, options, timeouts=Timeouts(write=0.5, eof=0.5)) as session:
            await session.prompt("x" * 1_000_000)
    assert session.exit_status.cause is ExitCause.STDIN_STALLED


async def test_one_that_refuses_to_start_says_why(script: Path) -> None:
    options = faulty(script, {"refuses_to_start": "No conversation found", "with_result": True})
    with trio.fail_after(SECONDS), pytest.raises(LaunchFailed, match="No conversation found"):
        async with open_session(None, options):
            pytest.fail("it must not open")
