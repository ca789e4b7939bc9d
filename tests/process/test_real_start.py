"""A real CLI that does not start: its own words, at once, as an error of its own."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING

import pytest

from claude_trio import CLINotFound, LaunchFailed, open_session
from claude_trio.testing import say
from tests.process.real import NEW, OLD, cli_options, real_api, within
from tests.real_cli import real_cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from claude_trio.testing import MessagesApi

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

# `Timeouts.initialize` is a minute; the old CLI takes a second to say what is wrong.
AT_ONCE = 8.0
NOBODY = 65534


async def launch_error(
    api: MessagesApi, cwd: Path, *, version: str = NEW, **options: object
) -> LaunchFailed:
    with within(AT_ONCE), pytest.raises(LaunchFailed) as caught:
        async with open_session(None, cli_options(api, cwd, version=version, **options)):
            pytest.fail("it must not open")
    return caught.value


async def test_a_missing_cli_is_not_found(tmp_path: Path) -> None:
    async with real_api([]) as api:
        for command in ("/no/such/claude", "no-such-claude"):
            with within(AT_ONCE), pytest.raises(CLINotFound, match=command) as caught:
                async with open_session(None, cli_options(api, tmp_path, command=[command])):
                    pytest.fail("it must not open")
            assert caught.value.looked


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Be somebody for whom rights matter."""
    user = os.geteuid()
    os.seteuid(user or NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


async def test_a_working_directory_that_is_none_is_named(tmp_path: Path) -> None:
    file, closed = tmp_path / "file", tmp_path / "closed"
    file.touch()
    closed.mkdir(0o000)
    async with real_api([]) as api:
        error = await launch_error(api, tmp_path / "gone")
        assert "gone' does not exist" in str(error)
        assert error.returncode is None
        assert "file' is not a directory" in str(await launch_error(api, file))
        with unprivileged():
            error = await launch_error(api, closed)
        assert "closed' may not be entered (permission denied)" in str(error)


async def test_a_file_that_is_not_executable_is_no_cli(tmp_path: Path) -> None:
    copy = tmp_path / "claude"
    copy.write_bytes(real_cli().read_bytes()[:4096])
    async with real_api([]) as api:
        copy.chmod(0o644)
        assert "is not executable" in str(await launch_error(api, tmp_path, command=[str(copy)]))
        copy.chmod(0o755)
        # Half a download.
        error = await launch_error(api, tmp_path, command=[str(copy)])
        assert str(copy) in str(error) or error.signal is not None


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_flag_that_does_not_exist_is_refused_on_stderr(
    tmp_path: Path, version: str
) -> None:
    async with real_api([]) as api:
        error = await launch_error(
            api, tmp_path, version=version, extra_args={"no-such-flag": None}
        )
    assert "unknown option '--no-such-flag'" in error.stderr_tail
    assert "unknown option '--no-such-flag'" in str(error)
    assert error.returncode == 1


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_an_unknown_session_cannot_be_resumed(tmp_path: Path, version: str) -> None:
    gone = str(uuid.uuid4())
    async with real_api([]) as api:
        error = await launch_error(api, tmp_path, version=version, resume=gone)
    assert f"No conversation found with session ID: {gone}" in str(error)
    assert error.returncode == 1
    assert error.last_frames or error.stderr_tail


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_session_id_cannot_be_taken_twice(tmp_path: Path, version: str) -> None:
    async with real_api([say("one")]) as api:
        options = cli_options(api, tmp_path, version=version)
        async with open_session(None, options) as session:
            await session.prompt("go")
        taken = session.session_id
        assert taken is not None
        error = await launch_error(api, tmp_path, version=version, session_id=taken)
        assert f"Session ID {taken} is already in use" in str(error)
        assert error.returncode == 1


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_a_file_of_mcp_servers_must_be_there_and_be_one(tmp_path: Path, version: str) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    missing = tmp_path / "missing.json"
    async with real_api([]) as api:
        for path, words in ((missing, "not found"), (broken, "Invalid MCP")):
            error = await launch_error(api, tmp_path, version=version, mcp_config=str(path))
            assert words in str(error)
            assert error.returncode == 1


async def test_a_failed_launch_can_be_tried_again(tmp_path: Path) -> None:
    async with real_api([say("one")]) as api:
        await launch_error(api, tmp_path, extra_args={"no-such-flag": None})
        async with open_session(None, cli_options(api, tmp_path)) as session:
            assert (await session.prompt("go")).text == "one"
