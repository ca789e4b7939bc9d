"""``claude-trio record`` and ``replay`` as programs that stand in for the CLI."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from claude_trio import Allow, PermissionRequest, ProcessExited, SessionOptions, open_session
from claude_trio.testing import assert_no_leaks, call_tool, open_messages_api, replay, say
from tests.process.alive import is_alive
from tests.process.programs import command
from tests.process.real import NEW, OLD
from tests.real_cli import real_cli
from tests.recordings import rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from claude_trio import Session

pytestmark = pytest.mark.slow

CLAUDE_TRIO: Final = (sys.executable, "-m", "claude_trio")
PIPE: Final = subprocess.PIPE
SECONDS: Final = 60


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with assert_no_leaks():
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talk.ndjson"


def stand_in(folder: Path, program: str) -> dict[str, str]:
    """Let a program of the tests be what is recorded."""
    file = folder / "claude"
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command(program))} "$@"\n')
    file.chmod(0o755)
    return {**os.environ, "CLAUDE_CLI_PATH": str(file)}


def record(path: Path, *words: str) -> list[str]:
    return [*CLAUDE_TRIO, "record", str(path), "--", *words]


def events(path: Path) -> list[str]:
    told = [row["frame"] for row in rows(path) if row["dir"] == "ctl"]
    return [str(f.get("signal", f["event"])) for f in told if isinstance(f, dict)]


def lines(path: Path, way: str) -> list[object]:
    return [row["frame"] for row in rows(path) if row["dir"] == way]


def exit_of(path: Path) -> object:
    return json.loads(path.read_bytes().split(b"\n")[0])["exit"]


def run(
    argv: list[str], *, env: Mapping[str, str] | None = None, given: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        argv, env=env, input=given, capture_output=True, timeout=SECONDS, check=False
    )


# --------------------------------------------------------------------------- the real CLI


async def allow(request: PermissionRequest) -> Allow:
    return Allow()


async def talk(session: Session, note: Path) -> list[str]:
    first = await session.prompt("What can you do?")
    second = await session.prompt(f"Write {note.name}, with {KEY}.")
    async with session.turn("Tell me more") as turn:
        async for _ in turn.text:
            await turn.interrupt()
            break
    # The turn is over at its result.  Whether the CLI has said by then that it is idle decides what
    # a host says that closes, and would differ from one run to the next.
    await session.wait_idle()
    return [first.text, second.text, turn.result.outcome.value if turn.result else ""]


KEY: Final = "sk-ant-api03-AbCdEfGh-123_456"


@pytest.mark.real_cli
@pytest.mark.parametrize("version", [NEW, OLD])
async def test_the_real_cli_is_recorded_by_standing_in_for_it_and_replayed(
    tmp_path: Path, version: str
) -> None:
    path, note = tmp_path / "talk.ndjson", tmp_path / "note.txt"
    use = {"file_path": str(note), "content": f"as asked: {KEY}\n"}
    script = [
        say("I write files.", chunks=3, delay=0.02),
        call_tool("Write", use, text="I will."),
        say(f"It says {KEY} now.", chunks=12, delay=0.01),
        say("word " * 200, chunks=200, delay=0.05),
    ]
    with trio.fail_after(SECONDS):
        async with open_messages_api(script) as api:
            options = SessionOptions(
                command=record(path),
                cwd=tmp_path,
                env={
                    **api.environment(),
                    "CLAUDE_CLI_PATH": str(real_cli(version)),
                    "A_SECRET": "my-own-secret",
                },
            )
            async with open_session(None, options, on_permission=allow) as session:
                said = await talk(session, note)
        assert session.exit_status.group_gone
        assert said == ["I write files.", f"It says {KEY} now.", "interrupted"]
        assert note.read_text() == f"as asked: {KEY}\n"
        text = path.read_text()
        assert KEY not in text
        assert "AbCdEfGh" not in text
        assert "my-own-secret" not in text
        assert json.loads(text.split("\n")[0])["cli_version"] == version
        # The interrupted turn was the last.
        assert exit_of(path) == session.exit_status.returncode == 1
        redacted = [said[0], "It says [redacted] now.", said[2]]
        note.unlink()
        with replay(path) as cli:
            async with open_session(None, on_permission=allow, launch=cli.launch) as session:
                assert await talk(session, note) == redacted
        options = SessionOptions(command=[*CLAUDE_TRIO, "replay", str(path)], cwd=tmp_path)
        async with open_session(None, options, on_permission=allow) as session:
            assert await talk(session, note) == redacted
        assert session.exit_status.returncode == 1
        assert not note.exists()
        async with open_session(None, options, on_permission=allow) as session:
            with pytest.raises(ProcessExited) as caught:
                await session.prompt("Something else")
        assert '+    "content": "Something else",' in str(caught.value)
        assert session.exit_status.returncode == 1


@pytest.mark.real_cli
async def test_the_real_cli_and_its_tools_end_when_their_host_is_gone(
    tmp_path: Path, path: Path
) -> None:
    started = tmp_path / "started"
    script = [call_tool("Bash", {"command": f"touch {started}; sleep 60"})]
    flags = "--output-format=stream-json --verbose --input-format=stream-json --allowedTools=Bash"
    with trio.fail_after(SECONDS):
        async with open_messages_api(script) as api:
            told = {name: value for name, value in api.environment().items() if value is not None}
            env = {**os.environ, **told, "CLAUDE_CLI_PATH": str(real_cli())}
            argv = record(path, *flags.split())
            process = await trio.lowlevel.open_process(
                argv, env=env, cwd=tmp_path, stdin=PIPE, stdout=PIPE
            )
            assert process.stdin is not None
            assert process.stdout is not None
            prompt = {"type": "user", "message": {"role": "user", "content": "go"}}
            await process.stdin.send_all(json.dumps(prompt).encode() + b"\n")
            while not started.exists():
                await trio.sleep(0.01)
            await process.stdin.aclose()
            await process.stdout.aclose()
            assert await process.wait() == 143
    assert events(path)[:2] == ["stdin_closed", "SIGTERM"]


# ------------------------------------------------------------------------------- record


def test_what_goes_in_and_out_is_passed_on_as_it_is(tmp_path: Path, path: Path) -> None:
    file = tmp_path / "claude"
    file.write_text("#!/bin/sh\necho $* >&2; cat; printf '\\377 last' >&2; exit 7\n")
    file.chmod(0o755)
    env = {**os.environ, "CLAUDE_CLI_PATH": str(file)}
    said = b'{"type":"x",  "a":1}\nbytes \xff\xfe\n\n{"cut'
    done = run(record(path, "--flag", "two words", "--"), given=said, env=env)
    assert (done.returncode, done.stdout) == (7, said)
    assert done.stderr == b"--flag two words --\n\xff last"
    head = json.loads(path.read_bytes().split(b"\n")[0])
    assert head["argv"] == ["claude", "--flag", "two words", "--"]
    assert head["exit"] == 7
    assert lines(path, "in") == lines(path, "out")
    assert len(lines(path, "out")) == 4
    assert lines(path, "err") == ["--flag two words --", "\ufffd last"]
    assert events(path)[0] == "stdin_closed"
    assert events(path)[-1] == "exit"
    again = run([*CLAUDE_TRIO, "replay", str(path)], given=said)
    assert (again.returncode, again.stdout) == (7, said)
    assert again.stderr.decode() == "--flag two words --\n\ufffd last\n"


def test_megabytes_come_through_to_a_slow_reader(tmp_path: Path, path: Path) -> None:
    env = stand_in(tmp_path, "speaks")
    with subprocess.Popen(record(path, "30", "100000"), env=env, stdout=PIPE) as process:
        assert process.stdout is not None
        size = 0
        while data := os.read(process.stdout.fileno(), 10_000):
            size += len(data)
        assert process.wait(SECONDS) == 0
    assert size == 3_000_000
    assert len(lines(path, "out")) == 30


def test_megabytes_go_in(tmp_path: Path, path: Path) -> None:
    done = run(record(path), given=b"x" * 3_000_000, env=stand_in(tmp_path, "counts"))
    assert done.stdout == b"3000000\n"


def test_floods_of_stderr_go_through_and_their_end_is_kept(tmp_path: Path, path: Path) -> None:
    done = run(record(path, "5"), given=b"", env=stand_in(tmp_path, "floods"))
    assert len(done.stderr) > 4_900_000
    assert done.stderr.endswith(b"the end")
    assert lines(path, "err")[-1] == "the end"
    assert path.stat().st_size < 500_000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_who_waits_learns_of_the_signal_that_ended_the_cli(
    tmp_path: Path, path: Path, number: signal.Signals
) -> None:
    done = run(record(path, str(-number), "5"), env=stand_in(tmp_path, "exits"))
    assert (done.returncode, done.stdout) == (-number, b"xxxxx")
    assert exit_of(path) == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_passed_on(tmp_path: Path, path: Path, number: signal.Signals) -> None:
    process = started(record(path), stand_in(tmp_path, "waits"))
    process.send_signal(number)
    assert finished(process) == -number
    assert events(path)[0] == number.name


def started(argv: list[str], env: Mapping[str, str], **more: Any) -> subprocess.Popen[bytes]:
    """Start a program, and wait for its first line."""
    process = subprocess.Popen(argv, env=env, stdin=PIPE, stdout=PIPE, **more)
    assert process.stdout is not None
    assert process.stdout.readline() in {b"ready\n", b"TERM\n"}
    return process


def finished(process: subprocess.Popen[bytes]) -> int:
    with process:
        return process.wait(SECONDS)


def test_a_cli_that_is_deaf_to_signals_stays_until_it_is_killed(tmp_path: Path, path: Path) -> None:
    process = started(record(path, "deaf"), stand_in(tmp_path, "waits"), start_new_session=True)
    process.terminate()
    assert process.stdout is not None
    assert process.stdout.readline() == b"TERM\n"
    # A host's last resort reaches both, since they are in one group.
    os.killpg(process.pid, signal.SIGKILL)
    assert finished(process) == -signal.SIGKILL
    assert lines(path, "out") == ["ready", "TERM"]  # What was recorded so far can be read.
    assert exit_of(path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
def test_a_cli_does_not_outlive_its_recorder(tmp_path: Path, path: Path) -> None:
    process = started(record(path), stand_in(tmp_path, "waits"))
    (child,) = children_of(process.pid)
    process.kill()
    assert finished(process) == -signal.SIGKILL
    until(lambda: not is_alive(child))


def children_of(pid: int) -> list[int]:
    return [
        int(text)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for text in (task / "children").read_text().split()
    ]


def until(done: Any) -> None:
    async def wait() -> None:
        with trio.fail_after(SECONDS):
            while not done():
                await trio.sleep(0.01)

    trio.run(wait)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a reader's death")
def test_a_cli_ends_when_its_host_is_gone(tmp_path: Path, path: Path) -> None:
    process = started(record(path), stand_in(tmp_path, "waits"))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)  # Like the CLI, it does not end with stdin alone.
    process.stdout.close()
    assert process.wait(SECONDS) == -signal.SIGTERM
    assert events(path)[:2] == ["stdin_closed", "SIGTERM"]


def test_a_host_that_stops_reading_is_not_noticed(tmp_path: Path, path: Path) -> None:
    env = stand_in(tmp_path, "counts")
    process = subprocess.Popen(record(path), env=env, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    process.stdout.close()
    process.communicate(b"abc")
    assert process.returncode == 0
    assert lines(path, "out") == ["3"]


def test_what_the_cli_left_behind_does_not_hold_it_up(tmp_path: Path, path: Path) -> None:
    process = subprocess.Popen(
        record(path, "holds", "leaves", "setsid"),
        env=stand_in(tmp_path, "family"),
        stdin=PIPE,
        stdout=PIPE,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert process.wait(SECONDS) == 0
    process.communicate()
    assert exit_of(path) == 0
    os.kill(child, signal.SIGKILL)
    until(lambda: not is_alive(child))


@pytest.mark.parametrize("signalled", [True, False])
def test_a_host_that_does_not_read_is_waited_for_unless_it_wants_an_end(
    tmp_path: Path, path: Path, signalled: bool
) -> None:
    argv, env = record(path, "1500", "100"), stand_in(tmp_path, "speaks")
    with subprocess.Popen(argv, env=env, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        until(lambda: path.exists() and b'"out"' in path.read_bytes())
        if signalled:
            process.terminate()
            process.wait(SECONDS)
        else:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            assert len(process.stdout.read()) == 150_000
    assert exit_of(path) == process.returncode
    assert process.returncode == 0 or signalled


def test_what_a_host_says_stands_behind_what_it_could_hear_and_nothing_else(
    tmp_path: Path, path: Path
) -> None:
    file = tmp_path / "claude"
    file.write_text(f"#!/bin/sh\necho ready\nexec yes {TICK.decode()}\n")
    file.chmod(0o755)
    heard, told = 0, []
    env = {**os.environ, "CLAUDE_CLI_PATH": str(file)}
    with started(record(path), env, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(6):
            until_stuck(process)
            process.send_signal(signal.SIGSTOP)
            while state(process) != "T":
                time.sleep(0.001)
            process.stdin.write(b"said\n")
            while select.select([process.stdout], [], [], 0)[0]:
                heard += len(os.read(process.stdout.fileno(), 10_000))
            told.append(heard // len(TICK + b"\n"))
            # Now it has both to pass on: what was said, and what could not be heard before that.
            process.send_signal(signal.SIGCONT)
        process.terminate()
    ticks, noted = 0, []
    for row in rows(path):
        ticks += row["frame"] == TICK.decode()
        noted += [ticks] if row["frame"] == "said" else []
    assert noted == told


def until_stuck(process: subprocess.Popen[bytes]) -> None:
    """Wait until the pipe is full, and the recorder waits for who reads it."""
    assert process.stdout is not None
    looks: list[tuple[int, str]] = []
    while len(looks) < 20 or len(set(looks[-20:])) > 1 or looks[-1][1] != "S" or not looks[-1][0]:
        held = fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4))
        looks.append((int.from_bytes(held, sys.byteorder), state(process)))
        time.sleep(0.002)


def state(process: subprocess.Popen[bytes]) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


TICK: Final = b"ticktickticktic"


def test_files_are_read_and_written_as_well_as_pipes(tmp_path: Path, path: Path) -> None:
    (tmp_path / "in").write_bytes(b"x" * 100_000)
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb") as taken:
        argv, env = record(path), stand_in(tmp_path, "counts")
        done = subprocess.run(argv, env=env, stdin=given, stdout=taken, check=False)
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == b"100000\n"


@pytest.mark.parametrize("program", ["record", "replay"])
def test_what_is_shared_with_others_stays_blocking(
    tmp_path: Path, path: Path, program: str
) -> None:
    env = stand_in(tmp_path, "waits")
    path.write_text('{"scenario":"x","argv":[]}\n{"t":0,"dir":"out","frame":"ready","raw":true}\n')
    argv = record(path) if program == "record" else [*CLAUDE_TRIO, "replay", str(path)]
    process = started(argv, env)
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        their_end = os.open(f"/proc/{process.pid}/fd/{int(pipe is process.stdout)}", os.O_RDWR)
        os.close(their_end)
    flags = [flags_of(process.pid, fd) for fd in (0, 1)]
    assert not any(flag & os.O_NONBLOCK for flag in flags)
    process.terminate()
    finished(process)


def flags_of(pid: int, fd: int) -> int:
    told = Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
    return int(told.split("flags:")[1].split()[0], 8)


def test_without_a_cli_it_says_where_it_looked(tmp_path: Path, path: Path) -> None:
    env = {**os.environ, "CLAUDE_CLI_PATH": str(tmp_path / "none")}
    done = run(record(path), env=env)
    assert done.returncode == 3
    assert str(tmp_path / "none").encode() in done.stderr
    assert not path.exists()


def test_a_file_that_cannot_be_written_is_told_before_the_cli_starts(tmp_path: Path) -> None:
    done = run(record(tmp_path / "no" / "x.ndjson"), env=stand_in(tmp_path, "waits"))
    assert done.returncode == 1
    assert b"cannot record to" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_recording_does_not_record_itself(tmp_path: Path, path: Path) -> None:
    file = tmp_path / "claude"
    file.write_text(f'#!/bin/sh\nexec {shlex.join(record(path))} "$@"\n')
    file.chmod(0o755)
    done = run(record(tmp_path / "y.ndjson"), env={**os.environ, "CLAUDE_CLI_PATH": str(file)})
    assert done.returncode == 1
    assert b"is a recording itself" in done.stderr


@pytest.mark.parametrize("words", [["record"], ["replay"], ["replay", "--patience", "x", "y"]])
def test_wrong_usage_exits_with_two(words: list[str]) -> None:
    done = run([*CLAUDE_TRIO, *words])
    assert done.returncode == 2
    assert b"usage:" in done.stderr


# ------------------------------------------------------------------------------- replay


def recorded(path: Path, *told: object) -> list[str]:
    """Write a recording: an object is a line of the CLI, a list one of the host, or an event."""
    head = {"scenario": "s", "cli_version": "1", "argv": ["claude"], "env": {}, "exit": 0}
    written: list[object] = [head]
    for each in told:
        match each:
            case [str(text)]:
                written.append({"t": 0, "dir": "in", "frame": text, "raw": True})
            case {"event": _}:
                written.append({"t": 0, "dir": "ctl", "frame": each})
            case str():
                written.append({"t": 0, "dir": "err", "frame": each})
            case _:
                written.append({"t": 0, "dir": "out", "frame": each})
    path.write_text("".join(json.dumps(row) + "\n" for row in written))
    return [*CLAUDE_TRIO, "replay", str(path)]


CLOSED: Final = {"event": "stdin_closed"}


def test_a_replay_says_what_was_said_and_exits_as_it_did(path: Path) -> None:
    argv = recorded(path, {"a": 1}, "oh", ["hi"], {"b": 2}, CLOSED, {"event": "exit", "code": 4})
    done = run(argv, given=b"hi\n")
    assert (done.returncode, done.stdout, done.stderr) == (4, b'{"a":1}\n{"b":2}\n', b"oh\n")


def test_a_mismatch_is_shown_on_stderr_and_exits_with_one(path: Path) -> None:
    argv = recorded(path, {"a": 1}, "oh", ["hi"], {"b": 2}, CLOSED, {"event": "exit", "code": 4})
    done = run(argv, given=b"ho\n")
    assert (done.returncode, done.stdout) == (1, b'{"a":1}\n')
    told = done.stderr.decode()
    assert told.startswith(f"oh\nclaude-trio: {path}, line 4: the host says something else")
    assert "-hi\n+ho\n" in told
    assert told.count("-hi") == 1
    assert "Traceback" not in told


@pytest.mark.parametrize("said", [b"", b"hi"])
def test_a_host_that_leaves_early_is_a_mismatch_or_not(path: Path, said: bytes) -> None:
    argv = recorded(path, ["hi"], CLOSED, {"event": "exit", "code": 0})
    done = run(argv, given=said)
    assert done.returncode == (0 if said else 1)
    assert (b"but now the host closes stdin" in done.stderr) is not said


def test_a_host_that_says_nothing_is_not_waited_for_for_ever(path: Path) -> None:
    argv = recorded(path, ["hi"], CLOSED, {"event": "exit", "code": 0})
    with subprocess.Popen(
        [*argv[:-1], "--patience", "0.2", argv[-1]], stdin=PIPE, stderr=PIPE
    ) as p:
        assert p.stderr is not None
        assert b"nothing came" in p.stderr.read()
        assert p.wait(SECONDS) == 1


def test_a_replay_takes_the_time_that_it_took_if_told_so(path: Path) -> None:
    argv = recorded(path, {"event": "exit", "code": 0})
    path.write_text(path.read_text().replace('"t": 0', '"t": 30'))
    assert run(argv).returncode == 0
    with subprocess.Popen([*argv[:-1], "--timing", argv[-1]], stdin=PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_replay_takes_the_signals_that_were_sent(path: Path, number: signal.Signals) -> None:
    told = [{"event": "signal", "signal": number.name}, {"event": "exit", "code": 143}]
    path.write_text("")
    argv = recorded(path, {"a": 1}, *told)
    with subprocess.Popen(argv, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b'{"a":1}\n'
        process.send_signal(number)
        assert process.wait(SECONDS) == 143
    with subprocess.Popen(recorded(path, {"a": 1}, ["hi"]), stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(SECONDS) == 1


def test_a_replay_ends_by_the_signal_that_ended_the_cli(path: Path) -> None:
    argv = recorded(path, {"event": "exit", "code": -signal.SIGKILL})
    assert run(argv).returncode == -signal.SIGKILL


def test_a_replay_ends_with_its_host(path: Path) -> None:
    argv = recorded(path, ["hi"])
    host = [sys.executable, "-c", "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"]
    with subprocess.Popen([*host, *argv], stdin=PIPE, stdout=PIPE) as process:
        process.kill()
    # The replay has the pipes still: it ends when they do, and nothing is left.
    assert process.stdin is not None
    until(lambda: not [pid for pid in pids_of(str(path)) if is_alive(pid)])


def pids_of(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in words:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("text", [None, "no recording\n"])
def test_what_is_no_recording_is_told(path: Path, text: str | None) -> None:
    if text is not None:
        path.write_text(text)
    done = run([*CLAUDE_TRIO, "replay", str(path)], given=b"")
    assert done.returncode == 1
    assert str(path).encode() in done.stderr
    assert b"Traceback" not in done.stderr
