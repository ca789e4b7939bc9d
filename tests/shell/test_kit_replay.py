"""Laws of replay: a recording is a CLI that says the same, to a host that says the same."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from trio.testing import MockClock

from claude_trio import (
    Allow,
    LaunchFailed,
    PermissionRequest,
    ProcessExited,
    Session,
    open_session,
)
from claude_trio.testing import (
    FakeClaude,
    ReplayMismatch,
    Reply,
    call_tool,
    recording,
    replay,
    say,
)
from tests.recordings import KEPT, recorded_output, whole_set
from tests.shell.recorded_hosts import (
    Undrivable,
    drive_by_session,
    play_by_bytes,
    renamer,
    undrivable,
)

if TYPE_CHECKING:
    from pathlib import Path

    from claude_trio import Launcher

KEPT_PATHS: Final = sorted(KEPT.glob("**/*.ndjson"))
WHOLE_PATHS: Final = [path for path in whole_set() if path not in KEPT_PATHS]

# What a session does not do, and so the recordings whose host no session can be.  All the others
# are held by one.
REASONS: Final = {
    "a signal to a CLI whose stdin is open": """
        2.1.197/end-sigint-streaming 2.1.197/end-sigterm-streaming background-bash-eof-sigterm
        end-kill-agent-background end-kill-background end-kill-idle end-kill-streaming
        end-kill-tool-running end-sighup-agent-background end-sighup-background end-sighup-idle
        end-sighup-streaming end-sighup-tool-running end-sigint-agent-background
        end-sigint-background end-sigint-idle end-sigint-streaming end-sigint-tool-running
        end-sigint-twice end-sigterm-agent-background end-sigterm-background end-sigterm-idle
        end-sigterm-streaming end-sigterm-tool-running session-resume-after-kill-origin
        session-resume-open-tool-origin
    """,
    "a handshake with options": """
        2.1.197/hook-pre-tool-use-allow 2.1.197/hook-timeout hook-async hook-compact
        hook-error-block hook-events-included hook-open-eof hook-open-interrupt
        hook-permission-request-first hook-permission-request hook-post-tool-use-stop
        hook-post-tool-use hook-pre-tool-use-allow hook-pre-tool-use-deny hook-pre-tool-use-error
        hook-pre-tool-use-modify hook-pre-tool-use-two hook-session-start-end hook-stop
        hook-subagent hook-timeout-block hook-timeout hook-user-prompt-submit initialize-options
        prompt-suggestions sdk-mcp-by-initialize
    """,
    "an interrupt that leaves the queue": """
        2.1.197/interrupt-idle 2.1.197/interrupt-mid-stream 2.1.197/interrupt-with-queue
        2.1.197/permission-open-interrupt 2.1.197/subagent-background-interrupt api-retry-interrupt
        background-bash-interrupt interrupt-before-answer interrupt-idle interrupt-mid-stream-state
        interrupt-mid-stream interrupt-parallel-permissions interrupt-right-after-prompt
        interrupt-then-prompt-at-once interrupt-tool-running interrupt-twice interrupt-with-queue
        permission-open-interrupt slash-compact-interrupt subagent-background-interrupt-mid-turn
        subagent-background-interrupt-spare subagent-background-interrupt
        subagent-background-permission-interrupt subagent-interrupt
    """,
    "a prompt while a turn runs": """
        2.1.197/prompt-while-streaming 2.1.197/prompt-while-tool-runs-replay
        2.1.197/prompt-while-tool-runs 2.1.197/prompts-three-queued cancel-async-message
        interrupt-cancel-queued permission-while-prompted prompt-while-streaming
        prompt-while-tool-runs-replay prompt-while-tool-runs prompts-back-to-back
        prompts-three-queued slash-queued subagent-background-prompt-meanwhile
    """,
    "a question that a session refuses": """
        2.1.197/sdk-mcp big-mcp-result sdk-mcp-errors sdk-mcp-list-changed sdk-mcp-open-eof
        sdk-mcp-open-interrupt sdk-mcp-parallel sdk-mcp-rich-results sdk-mcp-serial
        sdk-mcp-unanswered sdk-mcp
    """,
    "prompts that cannot be told apart": """
        2.1.197/rewind-files 2.1.197/same-uuid-twice 2.1.197/slash-clear replay-user-messages
        rewind-conversation rewind-files same-uuid-twice slash-clear slash-compact
    """,
    "stdin closed while a turn runs": """
        2.1.197/permission-open-eof end-eof-agent-background end-eof-streaming end-eof-tool-running
        permission-open-eof subagent-background-eof-ceiling subagent-background-eof-permission
        subagent-background-eof
    """,
    "the CLI does not start": """
        2.1.197/session-resume-unknown end-bad-mcp-config end-bad-settings session-id-invalid
        session-id-taken session-resume-not-uuid session-resume-unknown
    """,
    "lines that are no frames": """
        stdin-malformed-json stdin-malformed-mid-turn stdin-odd-lines stdin-split-line
        unicode-invalid-stdin
    """,
    "stdin closed while a command runs": """
        2.1.197/background-bash-eof background-bash-eof-ceiling background-bash-eof
        end-eof-background end-stdout-closed
    """,
    "frames of another kind": """
        control-cancel control-unknown stdin-bad-user-frame stdin-control-without-request
    """,
    "no handshake": """
        end-bad-flag end-eof-at-once initialize-late no-initialize
    """,
    "a prompt of a special kind": """
        prompt-priority-later prompt-priority-now prompts-three-queued-later slash-unknown
    """,
    "no wait for the handshake": """
        end-eof-after-initialize end-eof-after-prompts
    """,
    "a second handshake": """
        initialize-twice
    """,
    "an answer that is no decision": """
        tool-bad-answers
    """,
}
REASON_OF: Final = {name: reason for reason, names in REASONS.items() for name in names.split()}


def name_of(path: Path) -> str:
    older = path.parent.name if path.parent.name[0].isdecimal() else ""
    return f"{older}/{path.stem}".removeprefix("/")


def id_of(path: Path) -> str:
    return ("kept-" if path in KEPT_PATHS else "") + name_of(path)


each = pytest.mark.parametrize("path", [*KEPT_PATHS, *WHOLE_PATHS], ids=id_of)


# --------------------------------------------------------------------------- the recordings


@each
async def test_every_recording_says_what_was_recorded_to_a_host_that_does_the_same(
    autojump_clock: MockClock,
    path: Path,
) -> None:
    await play_by_bytes(path)


@each
async def test_every_recording_speaks_of_the_ids_that_its_host_has_now(
    autojump_clock: MockClock, path: Path
) -> None:
    await play_by_bytes(path, renamer(path))


@each
async def test_every_recording_is_held_by_a_session_or_it_is_known_why_not(
    autojump_clock: MockClock, path: Path
) -> None:
    assert await reason_of(path) == REASON_OF.get(name_of(path))


async def reason_of(path: Path) -> str | None:
    if (reason := undrivable(path)) is not None:
        return reason
    told = [frame["uuid"] for _, frame in recorded_output(path) if frame["type"] == "result"]
    try:
        assert [result["uuid"] for result in await drive_by_session(path)] == told
    except Undrivable as exc:
        return str(exc)
    except LaunchFailed:
        return "the CLI does not start"
    except ReplayMismatch as exc:
        # A session interrupts what runs before it closes stdin.
        early = "the host closes stdin\nbut now the host says" in str(exc)
        interrupted = '"subtype": "interrupt"' in str(exc)
        return "stdin closed while a command runs" if early and interrupted else str(exc)
    return None


def test_a_session_holds_half_of_the_recordings_and_the_reasons_name_no_others() -> None:
    names = {name_of(path) for path in WHOLE_PATHS}
    assert not names or set(REASON_OF) <= names
    assert not names or len(names - set(REASON_OF)) > 140
    assert len({name_of(path) for path in KEPT_PATHS} - set(REASON_OF)) > 20


# ----------------------------------------------------------------------------- a round trip

BASH: Final = call_tool("Bash", {"command": "mkdir a"})
SCRIPT: Final = [say("hello", chunks=2, delay=1), BASH, say("there")]
Talk = Callable[[Session], Awaitable[None]]


async def allow(request: PermissionRequest) -> Allow:
    return Allow()


async def hold(
    launch: Launcher, talk: Talk, *, allow: Callable[[PermissionRequest], Any] = allow
) -> Session:
    async with open_session(None, on_permission=allow, launch=launch) as session:
        await talk(session)
    return session


async def record_talk(path: Path, talk: Talk, script: list[Reply] = SCRIPT) -> None:
    with recording(path, launch=FakeClaude(script).launch) as recorder:
        await hold(recorder.launch, talk)


async def two_turns(session: Session) -> None:
    assert (await session.prompt("hi")).text == "hello"
    await trio.sleep(1000)
    assert (await session.prompt("go on")).text == "there"


@pytest.fixture
async def talk_file(autojump_clock: MockClock, tmp_path: Path) -> Path:
    path = tmp_path / "talk.ndjson"
    await record_talk(path, two_turns)
    return path


async def test_a_recorded_session_is_held_once_more(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    with replay(talk_file) as cli:
        session = await hold(cli.launch, two_turns)
    assert session.exit_status.returncode == 0
    assert cli.mismatch is None
    assert cli.left is None


async def test_a_replayed_turn_has_the_same_messages_but_for_the_hosts_ids(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    told: list[Any] = []

    async def listen(session: Session) -> None:
        for text in ("hi", "go on"):
            async with session.turn(text) as turn:
                ids = (turn.id, session.session_id)
                said = [json.dumps(message.raw) async for message in turn]
                told.append([text.replace(ids[0], "P").replace(str(ids[1]), "S") for text in said])
            await trio.sleep(1000)

    await record_talk(talk_file, listen)
    with replay(talk_file) as cli:
        await hold(cli.launch, listen)
    assert len(told[0]) > 5
    assert told[:2] == told[2:]


async def test_a_session_has_the_id_that_it_asked_for(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    ids: list[object] = []

    async def ask(session: Session) -> None:
        ids.append(session.session_id)
        ids.append((await session.prompt("hi")).session_id)
        await session.prompt("go on")

    with replay(talk_file) as cli:
        await hold(cli.launch, ask)
    assert ids[0] == ids[1]
    assert str(ids[0]) not in talk_file.read_text(encoding="utf-8")


async def test_a_replay_takes_no_time_or_the_time_that_it_took(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    async def first(session: Session) -> None:
        start = trio.current_time()
        await session.prompt("hi")
        taken.append(trio.current_time() - start)
        await session.prompt("go on")

    taken: list[float] = []
    for timing in (False, True):
        with replay(talk_file, timing=timing) as cli:
            await hold(cli.launch, first)
    assert taken == pytest.approx([0, 1], abs=0.01)


# ------------------------------------------------------------------------------- mismatches


async def mismatch(path: Path, talk: Talk, **options: Any) -> ReplayMismatch:
    with pytest.raises(ReplayMismatch) as caught:
        with trio.fail_after(10_000), replay(path, **options) as cli:
            await hold(cli.launch, talk)
    assert caught.value.path == path
    assert caught.value.line is not None
    assert str(caught.value).startswith(f"{path}, line {caught.value.line}: ")
    return caught.value


async def another_prompt(session: Session) -> None:
    await session.prompt("hi")
    await session.prompt("go away")


async def no_second_prompt(session: Session) -> None:
    await session.prompt("hi")


async def one_prompt_more(session: Session) -> None:
    await two_turns(session)
    await session.prompt("more")


async def a_question(session: Session) -> None:
    await session.prompt("hi")
    await session.set_model("opus")


async def an_interrupt(session: Session) -> None:
    async with session.turn("hi"):
        pass
    async with session.turn("go on") as turn:
        await turn.interrupt()


@pytest.mark.parametrize(
    ("talk", "words"),
    [
        (another_prompt, '-    "content": "go on",\n+    "content": "go away",'),
        (no_second_prompt, '"content": "go on",'),
        (no_second_prompt, "but now the host closes stdin"),
        (one_prompt_more, "in the recording the host closes stdin\nbut now the host says\n"),
        (one_prompt_more, '"content": "more"'),
        (a_question, '+    "model": "opus",\n+    "subtype": "set_model"'),
        (an_interrupt, '"subtype": "interrupt"'),
    ],
)
async def test_another_deed_of_the_host_is_shown(
    autojump_clock: MockClock, talk_file: Path, talk: Talk, words: str
) -> None:
    assert words in str(await mismatch(talk_file, talk))


async def test_another_answer_is_shown(autojump_clock: MockClock, talk_file: Path) -> None:
    async def change(request: PermissionRequest) -> Allow:
        return Allow(updated_input={"command": "rm"})

    with pytest.raises(ReplayMismatch, match=r'-\s+"command": "mkdir a"\n\+\s+"command": "rm"'):
        with replay(talk_file) as cli:
            await hold(cli.launch, two_turns, allow=change)


async def test_the_session_hears_of_the_mismatch_too(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    async def talk(session: Session) -> None:
        await session.prompt("hi")
        with pytest.raises(ProcessExited) as caught:
            await session.prompt("go away")
        assert caught.value.returncode == 1
        assert '+    "content": "go away",' in str(caught.value)

    # And what the program does with that does not hide it.
    assert '+    "content": "go away",' in str(await mismatch(talk_file, talk))


async def test_a_host_that_says_nothing_is_waited_for_no_longer_than_the_patience(
    autojump_clock: MockClock,
    talk_file: Path,
) -> None:
    async def wait(session: Session) -> None:
        await session.prompt("hi")
        start.append(trio.current_time())
        await session.wait_exit()
        start.append(trio.current_time())

    for patience in (60, 5):
        start: list[float] = []
        error = await mismatch(talk_file, wait, patience=patience)
        assert start[1] - start[0] == pytest.approx(1000 + patience, abs=0.1)
        assert "nothing came; in the recording the host says" in str(error)
        assert '"content": "go on",' in str(error)


async def test_without_end_a_host_may_take_its_time(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    async def late(session: Session) -> None:
        await session.prompt("hi")
        await trio.sleep(10_000)
        await session.prompt("go on")

    with replay(talk_file, patience=math.inf) as cli:
        await hold(cli.launch, late)


async def test_an_error_of_the_program_itself_is_not_hidden_by_its_early_leave(
    autojump_clock: MockClock,
    talk_file: Path,
) -> None:
    async def fails(session: Session) -> None:
        await session.prompt("hi")
        raise KeyError

    with pytest.raises(KeyError) as caught, replay(talk_file) as cli:
        await hold(cli.launch, fails)
    assert "but now the host closes stdin" in caught.value.__notes__[0]

    async def fails_in_mid_turn(session: Session) -> None:
        await session.prompt("hi")
        async with session.turn("go on"):
            raise KeyError

    with pytest.raises(KeyError) as caught, replay(talk_file) as cli:
        await hold(cli.launch, fails_in_mid_turn)
    assert '"subtype": "interrupt"' in caught.value.__notes__[0]


async def test_an_error_that_the_mismatch_has_brought_is_its_cause(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    async def talk(session: Session) -> None:
        await session.prompt("hi")
        await session.prompt("go away")

    assert isinstance((await mismatch(talk_file, talk)).__cause__, ProcessExited)


async def test_a_recording_that_nobody_starts_is_not_played(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    with pytest.raises(ReplayMismatch, match="nobody started it"), replay(talk_file):
        pass
    with pytest.raises(KeyError) as caught, replay(talk_file):
        raise KeyError
    assert "nobody started it" in caught.value.__notes__[0]


async def test_a_recording_is_of_one_process(autojump_clock: MockClock, talk_file: Path) -> None:
    with replay(talk_file) as cli:
        await hold(cli.launch, two_turns)
        with pytest.raises(RuntimeError, match="one process"):
            await hold(cli.launch, two_turns)


async def test_a_cli_that_is_killed_where_it_was_not_is_a_mismatch(
    autojump_clock: MockClock, talk_file: Path
) -> None:
    async with trio.open_nursery() as nursery:
        with pytest.raises(ReplayMismatch, match="but now the host sends SIGKILL"):
            with replay(talk_file) as cli:
                transport = await cli.launch((), {}, None, nursery)
                transport.kill()
                assert await transport.wait_exit() == 1
                transport.terminate()  # It is dead already.
                with pytest.raises(trio.BrokenResourceError):
                    transport.send_nowait(b"{}\n")
                assert await transport.receive() == b""
                assert await transport.aclose(sweep=True)
                with pytest.raises(trio.ClosedResourceError):
                    await transport.receive()


# ------------------------------------------------------------------------------------ order


def deeds(*told: Any) -> str:
    """Write a recording: an object is a line of the CLI, a tuple one of the host."""
    header = {"scenario": "s", "cli_version": "1", "argv": ["claude"], "env": {}, "exit": 0}
    lines = [header]
    for each in told:
        match each:
            case tuple():
                lines.append({"t": 0, "dir": "in", "frame": each[0]})
            case {"event": _}:
                lines.append({"t": 0, "dir": "ctl", "frame": each})
            case _:
                lines.append({"t": 0, "dir": "out", "frame": each})
    return "".join(json.dumps(line) + "\n" for line in lines)


A, B, C = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")


def asks(request_id: str) -> Any:
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": "x"}}


def about(*uuids: str) -> Any:
    return {**asks(str(uuids)), "request": {"subtype": "x", "uuids": uuids}}


def answer(request_id: str) -> Any:
    body = {"subtype": "success", "request_id": request_id, "response": {}}
    return {"type": "control_response", "response": body}


def prompt(text: str, uuid: str | None = None) -> Any:
    frame = {"type": "user", "message": {"role": "user", "content": text}}
    return frame if uuid is None else {**frame, "uuid": uuid}


SAID: Final = {"type": "said"}
ENDS: Final = ({"event": "stdin_closed"}, {"event": "exit", "code": 0})


async def say_all(path: Path, *frames: Any) -> list[Any]:
    """Say it to a recorded CLI, and return what it says."""
    with replay(path) as cli:
        async with trio.open_nursery() as nursery:
            transport = await cli.launch((), {}, None, nursery)
            for frame in frames:
                if cli.mismatch is None:
                    transport.send_nowait(json.dumps(frame).encode() + b"\n")
            transport.close_stdin()
            said = b""
            while data := await transport.receive():
                said += data
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        # Answers to different questions of the CLI, far apart.
        ([asks(A), asks(B), (answer(A),), SAID, (answer(B),)], [answer(B), answer(A)]),
        # Questions that were asked at the same time.
        ([(asks("1"),), (asks("2"),), SAID], [asks("b"), asks("a")]),
        # What is not meant by the first leaves no trace of its ids.
        ([(about(A, A),), (about(B, A),), SAID], [about(B, C), about(C, C)]),
    ],
)
async def test_what_may_overtake_does(
    autojump_clock: MockClock, tmp_path: Path, told: list[Any], said: list[Any]
) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(deeds(*told, *ENDS), encoding="utf-8")
    assert SAID in await say_all(path, *said)


INTERRUPT: Final = {**asks("3"), "request": {"subtype": "interrupt"}}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([(prompt("a"),), (prompt("b"),)], [prompt("b"), prompt("a")]),
        ([(prompt("a"),), (asks("1"),)], [asks("1"), prompt("a")]),
        ([asks(A), (INTERRUPT,), (answer(A),)], [answer(A), INTERRUPT]),
        ([(INTERRUPT,), (asks("4"),)], [asks("5"), INTERRUPT]),
        ([({**asks("1"), "request": {"subtype": "initialize"}},), (asks("2"),)], [asks("2")]),
        ([({**asks("1"), "request": {"subtype": "y"}},), SAID, (asks("2"),)], [asks("2")]),
    ],
)
async def test_what_may_not_overtake_is_a_mismatch(
    autojump_clock: MockClock, tmp_path: Path, told: list[Any], said: list[Any]
) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(deeds(*told, *ENDS), encoding="utf-8")
    with pytest.raises(ReplayMismatch, match="something else"):
        await say_all(path, *said)


# -------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("told", "said"),
    [
        # Uuids that were two are now one, or one that was one is two.
        ([(prompt("a", A),), (prompt("b", B),)], [prompt("a", C), prompt("b", C)]),
        ([(prompt("a", A),), (prompt("b", A),)], [prompt("a", B), prompt("b", C)]),
        # A uuid of the CLI is no other.
        ([{"type": "said", "uuid": A}, (prompt(A),)], [prompt(B)]),
        # An answer to another question.
        ([asks(A), asks(B), (answer(A),)], [answer(B)]),
    ],
)
async def test_another_id_where_it_must_be_the_same_is_a_mismatch(
    autojump_clock: MockClock, tmp_path: Path, told: list[Any], said: list[Any]
) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(deeds(*told, *ENDS), encoding="utf-8")
    with pytest.raises(ReplayMismatch):
        await say_all(path, *said)


async def test_the_cli_speaks_of_the_ids_of_now_wherever_they_stand(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    quoted = json.dumps({"request_id": "1"})
    told = [
        (prompt("a", A),),
        {"type": "said", "uuids": [A, B], "text": f"in {A}.jsonl", "request_id": "1"},
        (asks("1"),),
        {**answer("1"), "quoted": quoted},
        {"type": "system", "subtype": "control_request_progress", "request_id": "1"},
        ({"type": "control_cancel_request", "request_id": "1"},),
    ]
    path = tmp_path / "x.ndjson"
    path.write_text(deeds(*told, *ENDS), encoding="utf-8")
    cancel = {"type": "control_cancel_request", "request_id": "r-7"}
    assert await say_all(path, prompt("a", C), asks("r-7"), cancel) == [
        {"type": "said", "uuids": [C, B], "text": f"in {C}.jsonl", "request_id": "1"},
        {**answer("r-7"), "quoted": quoted},
        {"type": "system", "subtype": "control_request_progress", "request_id": "r-7"},
    ]


# ------------------------------------------------------------------------- odd recordings


async def test_a_recording_that_breaks_off_is_played_as_far_as_it_goes(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "x.ndjson"
    # The writer died in the middle of a line.
    path.write_text(deeds((prompt("a"),), SAID) + '{"t": 0, "dir": "out", "fra', encoding="utf-8")
    assert await say_all(path, prompt("a")) == [SAID]
    with pytest.raises(ReplayMismatch, match="at its end: the recording breaks off here; now the"):
        await say_all(path, prompt("a"), prompt("more"))
    with replay(path) as cli:
        async with trio.open_nursery() as nursery:
            transport = await cli.launch((), {}, None, nursery)
            transport.send_nowait(json.dumps(prompt("a")).encode() + b"\n")
            await trio.sleep(10_000)  # Nobody knows how long the host took.
            transport.terminate()
            assert await transport.wait_exit() == 143


async def test_what_stands_behind_the_exit_is_not_waited_for(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(deeds((prompt("a"),), *ENDS, SAID, (prompt("b"),)), encoding="utf-8")
    assert await say_all(path, prompt("a")) == []


async def test_a_recording_that_was_not_redacted_is_redacted_when_it_is_compared(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    path, text = tmp_path / "x.ndjson", "it is sk-ant-0123456789 in /home/alice"
    path.write_text(deeds((prompt(text),), SAID, *ENDS), encoding="utf-8")
    assert await say_all(path, prompt(text)) == [SAID]
    with pytest.raises(ReplayMismatch) as caught:
        await say_all(path, prompt(f"{text}, really"))
    assert "sk-ant" not in str(caught.value)


async def test_a_frame_that_was_shortened_is_said_as_it_stands(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "x.ndjson"
    row = {"t": 0, "dir": "out", "frame": SAID, "line": '{"type":"said","more":1}'}
    for key in ("elided", "trimmed"):
        path.write_text(deeds() + json.dumps({**row, key: True}) + "\n", encoding="utf-8")
        assert await say_all(path) == [SAID]
    path.write_text(deeds() + json.dumps(row) + "\n", encoding="utf-8")
    assert await say_all(path) == [{**SAID, "more": 1}]


@pytest.mark.parametrize("text", ["", "{}\n", "no JSON\n", deeds()[:20], deeds() + "{}\n"])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.ndjson"), replay(path):
        pass


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replay(tmp_path / "x.ndjson"):
        pass


async def test_what_differs_in_each_run_is_made_the_same_by_the_hook(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    def undated(text: str) -> str:
        return text.replace("Monday", "DAY").replace("Tuesday", "DAY")

    def talk_on(day: str) -> Talk:
        async def talk(session: Session) -> None:
            await session.prompt(f"It is {day}.")

        return talk

    path = tmp_path / "x.ndjson"
    with recording(path, launch=FakeClaude(SCRIPT).launch, redact=undated) as recorder:
        await hold(recorder.launch, talk_on("Monday"))
    with replay(path, redact=undated) as cli:
        await hold(cli.launch, talk_on("Tuesday"))
    assert '-    "content": "It is DAY."' in str(await mismatch(path, talk_on("Tuesday")))
