"""The command line as a person runs it: as a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from claude_trio.__main__ import main
from claude_trio.testing import assert_no_leaks, open_messages_api, say
from tests.real_cli import real_cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with assert_no_leaks():
        yield


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {
        k: v for k, v in os.environ.items() if k.startswith(("PYTHON", "COVERAGE", "CLAUDE_TRIO"))
    }
    return {**kept, "PATH": "/usr/bin:/bin", "HOME": str(home), **more}


def offline(home: Path) -> dict[str, str]:
    """Give an environment in which the real CLI finds no API."""
    return environment(
        home,
        CLAUDE_CLI_PATH=str(real_cli()),
        ANTHROPIC_API_KEY="fake",
        ANTHROPIC_BASE_URL="http://127.0.0.1:9",
        CLAUDE_CODE_MAX_RETRIES="0",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_ERROR_REPORTING="1",
        DISABLE_TELEMETRY="1",
    )


def run(*arguments: str, env: dict[str, str], **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "claude_trio", *arguments]
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        command, env=env, capture_output=True, text=True, timeout=60, check=False, **more
    )


@pytest.mark.real_cli
def test_the_demo_runs_the_real_cli_where_there_is_one(tmp_path: Path) -> None:
    done = run("demo", env=environment(tmp_path, CLAUDE_CLI_PATH=str(real_cli())))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "real claude CLI, 2.1.332" in done.stdout
    assert done.stdout.count("you: ") == 5
    assert "[interrupted" in done.stdout
    assert "it has 2 results" in done.stdout
    assert "may it use Write: yes" in done.stdout
    assert "Left running: nothing." in done.stdout
    assert done.stderr == ""


def test_the_demo_runs_a_fake_where_there_is_no_cli_and_says_so(tmp_path: Path) -> None:
    done = run("demo", env=environment(tmp_path))
    if shutil.which("claude", path="/usr/bin:/bin:/usr/local/bin"):
        done = run("demo", "--fake", env=environment(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a fake in memory" in done.stdout
    assert done.stdout.count("you: ") == 5
    assert "[interrupted" in done.stdout
    assert "it has 2 results" in done.stdout
    assert "Left running: nothing." in done.stdout


@pytest.mark.real_cli
def test_run_prints_the_answer_of_a_failing_api_and_fails(tmp_path: Path) -> None:
    env = offline(tmp_path)
    done = run("run", "hello", env=env, cwd=tmp_path)
    assert done.returncode == 1
    assert "the turn failed" in done.stderr


@pytest.mark.real_cli
async def test_run_prints_the_answer_and_exits_with_zero(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with open_messages_api([say("the answer", chunks=2), say("the answer")]) as api:
            told = {k: v for k, v in api.environment().items() if v is not None}
            env = environment(tmp_path, CLAUDE_CLI_PATH=str(real_cli()), **told)
            plain = await answered(env, "run", "hello")
            assert plain == b"the answer\n"
            lines = (await answered(env, "run", "--json", "hello")).splitlines()
            last = json.loads(lines[-1])
            assert (last["outcome"], last["text"]) == ("completed", "the answer")


async def answered(env: dict[str, str], *arguments: str) -> bytes:
    command = [sys.executable, "-m", "claude_trio", *arguments]
    done = await trio.run_process(command, env=env, cwd=env["HOME"], capture_stdout=True)
    return bytes(done.stdout)


@pytest.mark.real_cli
def test_run_prints_json_lines_and_ends_with_its_own(tmp_path: Path) -> None:
    done = run("run", "--json", "hello", env=offline(tmp_path), cwd=tmp_path)
    assert done.returncode == 1
    *messages, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"assistant", "result"} <= {message["type"] for message in messages}
    assert last["type"] == "claude_trio_result"
    assert last["outcome"] == "failed"
    assert last["session_id"] == messages[-1]["session_id"]


def test_json_says_also_that_nothing_was_started(tmp_path: Path) -> None:
    env = environment(tmp_path, CLAUDE_CLI_PATH=str(tmp_path / "claude"))
    done = run("run", "--json", "hello", env=env)
    assert done.returncode == 3
    (last,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["type"] == "claude_trio_result"
    assert str(tmp_path / "claude") in last["error"]


def test_run_without_a_cli_says_where_it_looked(tmp_path: Path) -> None:
    done = run("run", "hello", env=environment(tmp_path, CLAUDE_CLI_PATH=str(tmp_path / "claude")))
    assert done.returncode == 3
    assert str(tmp_path / "claude") in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["run"], ["no-such-command"]])
def test_wrong_usage_exits_with_two(tmp_path: Path, arguments: list[str]) -> None:
    done = run(*arguments, env=environment(tmp_path))
    assert done.returncode == 2
    assert "usage:" in done.stderr


@pytest.mark.real_cli
def test_ctrl_c_ends_the_cli_and_exits_with_130(tmp_path: Path) -> None:
    env = environment(tmp_path, CLAUDE_CLI_PATH=str(real_cli()))
    command = [sys.executable, "-u", "-m", "claude_trio", "demo"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("you: "):
                process.send_signal(signal.SIGINT)
                break
        process.stdout.read()
        assert process.wait(30) == 130


def test_a_reader_that_goes_away_ends_it_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "claude_trio", "demo", "--fake"]
    env = environment(tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == 1


def test_the_command_exits_with_the_code_of_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["claude-trio", "demo", "--fake"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
