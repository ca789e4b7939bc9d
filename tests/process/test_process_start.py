"""What does not start says why, and at once."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from claude_trio import _errors, spawn
from claude_trio._process._program import places
from claude_trio.testing import assert_no_leaks
from tests.process.programs import command, read_all, read_line, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_CAT = shutil.which("cat") or "/bin/cat"
_NOBODY = 65534


async def _failure(
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    kind: type[_errors.ClaudeTrioError] = _errors.LaunchFailed,
) -> str:
    env = os.environ if env is None else env
    with assert_no_leaks(), trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            with pytest.raises(kind) as caught:
                await spawn(argv, env, None if cwd is None else str(cwd), nursery)
    return str(caught.value)


def _file(path: Path, content: str = "#!/bin/sh\necho ready\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    return path


@contextlib.contextmanager
def _unprivileged() -> Iterator[None]:
    """Be somebody for whom rights matter."""
    user = os.geteuid()
    os.seteuid(user or _NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


async def test_missing_program_is_not_found(tmp_path: Path) -> None:
    program = str(tmp_path / "claude")
    assert program in await _failure([program], kind=_errors.CLINotFound)


async def test_path_through_a_file_is_not_found(tmp_path: Path) -> None:
    program = str(_file(tmp_path / "file") / "claude")
    assert program in await _failure([program], kind=_errors.CLINotFound)


async def test_dangling_link_is_not_found_and_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "claude").symlink_to("/nowhere/at-all")
    text = await _failure([str(tmp_path / "claude")], kind=_errors.CLINotFound)
    assert "/nowhere/at-all" in text


async def test_file_without_rights_is_not_executable(tmp_path: Path) -> None:
    program = _file(tmp_path / "claude", mode=0o644)
    assert await _failure([str(program)]) == f"{program} is not executable"


async def test_directory_is_no_program(tmp_path: Path) -> None:
    assert "is a directory" in await _failure([str(tmp_path)])


async def test_file_of_another_format_says_so(tmp_path: Path) -> None:
    program = _file(tmp_path / "claude", "MZ not for here")
    assert "exec format error" in await _failure([str(program)])


async def test_missing_interpreter_is_not_a_missing_program(tmp_path: Path) -> None:
    program = _file(tmp_path / "claude", "#!/no/such/node --flag\n")
    text = await _failure([str(program)])
    assert "exists" in text
    assert "/no/such/node --flag" in text


async def test_interpreter_without_rights_is_named(tmp_path: Path) -> None:
    interpreter = _file(tmp_path / "node", mode=0o644)
    program = _file(tmp_path / "claude", f"#!{interpreter}\n")
    assert f"interpreter may not: {interpreter}" in await _failure([str(program)])


async def test_missing_loader_is_not_a_missing_program(tmp_path: Path) -> None:
    # An ELF file names its loader, which is of the same length here, but nowhere.
    binary = Path(_CAT).read_bytes()
    start = binary.index(b"/lib64/ld-" if b"/lib64/ld-" in binary else b"/lib/ld-")
    program = tmp_path / "claude"
    program.write_bytes(binary[:start] + b"/non" + binary[start + 4 :])
    program.chmod(0o755)
    text = await _failure([str(program)])
    assert "exists" in text
    assert "another C library" in text


async def test_missing_directory_wins_over_everything(tmp_path: Path) -> None:
    for program in (_CAT, "cat", "no-such-program", "/no/such/program"):
        text = await _failure([program], cwd=tmp_path / "gone")
        assert text == f"the working directory '{tmp_path / 'gone'}' does not exist"


async def test_file_is_no_working_directory(tmp_path: Path) -> None:
    text = await _failure([_CAT], cwd=_file(tmp_path / "file"))
    assert text.endswith("is not a directory")


async def test_empty_path_is_no_working_directory() -> None:
    assert await _failure([_CAT], cwd="") == "the working directory '' does not exist"


async def test_directory_without_rights_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(0o000)
    with _unprivileged():
        text = await _failure([_CAT], cwd=folder)
    assert "may not be entered (permission denied)" in text


async def test_too_long_argument_is_named_but_not_shown() -> None:
    secret = "s3cret" * 30_000
    argv = [_CAT, "--short", "x", "--append-system-prompt", secret]
    text = await _failure(argv)
    assert "argument 4 (after --append-system-prompt) with 180000 bytes" in text
    assert "s3cret" not in text
    text = await _failure([_CAT, f"--agents={secret}", secret[:9]])
    assert "argument 1 (--agents) with 180009 bytes" in text
    text = await _failure([_CAT, secret])
    assert "argument 1 with" in text
    assert "s3cret" not in text


async def test_too_long_variable_is_named_but_not_shown() -> None:
    text = await _failure([_CAT], {"SECRET": "s3cret" * 30_000})
    assert "the environment variable SECRET with 180007 bytes" in text
    assert "s3cret" not in text


async def test_nul_in_an_argument_is_a_failure_of_the_launch() -> None:
    assert "null byte" in await _failure([_CAT, "a\0b"])


async def test_no_descriptor_left_says_so() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            highest = os.dup(0)
            os.close(highest)
            failures = []
            try:
                # At each of the places that need one: three pipes, and that of `subprocess`.
                for left in range(0, 8, 2):
                    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + left, hard))
                    with pytest.raises(_errors.LaunchFailed, match="too many open files") as caught:
                        await spawn([_CAT], os.environ, None, nursery)
                    failures.append(caught.value)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert all(isinstance(failure.__cause__, OSError) for failure in failures)


async def test_error_of_the_system_is_the_cause(tmp_path: Path) -> None:
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            with pytest.raises(_errors.CLINotFound) as caught:
                await spawn([str(tmp_path / "claude")], os.environ, None, nursery)
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert caught.value.looked == (str(tmp_path / "claude"),)


async def _first_line(argv: Sequence[str], env: Mapping[str, str], cwd: str | None = None) -> str:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await spawn(argv, env, cwd, nursery)
            try:
                return await read_line(transport)
            finally:
                with trio.CancelScope(shield=True):
                    await transport.aclose(sweep=False)


def _says(path: Path, text: str) -> Path:
    return _file(path, f"#!/bin/sh\necho {text}\n")


async def test_choice_comes_before_path(tmp_path: Path) -> None:
    chosen = _says(tmp_path / "mine", "chosen")
    _says(tmp_path / "bin/claude", "on the path")
    env = {"PATH": str(tmp_path / "bin"), "CLAUDE_CLI_PATH": str(chosen)}
    assert await _first_line(["claude"], env) == "chosen"
    assert await _first_line(["claude"], {**env, "CLAUDE_CLI_PATH": ""}) == "on the path"


async def test_missing_choice_is_not_replaced(tmp_path: Path) -> None:
    _says(tmp_path / "bin/claude", "on the path")
    env = {"PATH": str(tmp_path / "bin"), "CLAUDE_CLI_PATH": str(tmp_path / "gone")}
    text = await _failure(["claude"], env, kind=_errors.CLINotFound)
    assert "CLAUDE_CLI_PATH says" in text


async def test_path_comes_before_the_usual_places(tmp_path: Path) -> None:
    _says(tmp_path / "bin/claude", "on the path")
    _says(tmp_path / ".npm-global/bin/claude", "installed")
    env = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    assert await _first_line(["claude"], env) == "on the path"
    assert await _first_line(["claude"], {**env, "PATH": "/nowhere"}) == "installed"


async def test_what_may_not_run_is_passed_over(tmp_path: Path) -> None:
    _file(tmp_path / "a/claude", mode=0o644)
    (tmp_path / "b/claude").mkdir(parents=True)
    _says(tmp_path / "c/claude", "third")
    path = os.pathsep.join(str(tmp_path / name) for name in "abc")
    assert await _first_line(["claude"], {"PATH": path}) == "third"


async def test_only_one_that_may_not_run_is_named(tmp_path: Path) -> None:
    program = _file(tmp_path / "tool", mode=0o644)
    assert str(program) in await _failure(["tool"], {"PATH": str(tmp_path)})


async def test_relative_entries_of_path_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _says(tmp_path / "bin/tool", "planted")
    monkeypatch.chdir(tmp_path)
    env = {"PATH": f"bin{os.pathsep}.{os.pathsep}"}
    text = await _failure(["tool"], env, cwd=tmp_path / "bin", kind=_errors.CLINotFound)
    assert "PATH is empty" in text


async def test_every_place_is_named() -> None:
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            with pytest.raises(_errors.CLINotFound) as caught:
                await spawn(["no-such-tool"], {"PATH": "/a:/b:/a"}, None, nursery)
    assert caught.value.looked == ("/a/no-such-tool", "/b/no-such-tool")
    assert all(place in str(caught.value) for place in caught.value.looked)


def test_installers_places_are_those_of_the_official_sdks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert places("claude", {"PATH": "/bin", "HOME": "/home/me"}) == (
        "/bin/claude",
        "/home/me/.npm-global/bin/claude",
        "/usr/local/bin/claude",
        "/home/me/.local/bin/claude",
        "/home/me/node_modules/.bin/claude",
        "/home/me/.yarn/bin/claude",
        "/home/me/.claude/local/claude",
    )
    monkeypatch.delenv("HOME")
    assert places("claude", {"PATH": ""}) == ("/usr/local/bin/claude",)
    monkeypatch.setenv("HOME", "/home/mine")
    scratch = places("claude", {"PATH": "/bin", "HOME": "/tmp/scratch"})
    assert "/tmp/scratch/.local/bin/claude" in scratch
    assert "/home/mine/.local/bin/claude" in scratch
    assert places("ssh", {"PATH": "/bin", "HOME": "/home/me"}) == ("/bin/ssh",)
    assert places("ssh", {}) == ("/bin/ssh", "/usr/bin/ssh")


async def test_path_with_a_slash_is_relative_to_the_working_directory(tmp_path: Path) -> None:
    _says(tmp_path / "bin/tool", "here")
    assert await _first_line(["bin/tool"], {}, str(tmp_path)) == "here"
    text = await _failure(["bin/other"], {}, tmp_path, kind=_errors.CLINotFound)
    assert str(tmp_path / "bin/other") in text


async def test_environment_and_directory_are_those_given(tmp_path: Path) -> None:
    script = "import os; print(os.getcwd(), sorted(os.environ), flush=True)"
    argv = [sys.executable, "-I", "-S", "-c", script]
    line = await _first_line(argv, {"ONLY": "this", "LC_ALL": "C.UTF-8"}, str(tmp_path))
    assert line == f"{tmp_path} ['LC_ALL', 'ONLY']"


async def test_process_leads_a_session_and_a_group_of_its_own() -> None:
    with trio.fail_after(5), assert_no_leaks():
        async with trio.open_nursery() as nursery:
            transport = await start(nursery, "waits")
            assert os.getpgid(transport.pid) == os.getsid(transport.pid) == transport.pid
            await transport.aclose(sweep=False)


async def test_process_inherits_no_descriptor_but_its_three(tmp_path: Path) -> None:
    with trio.fail_after(5), assert_no_leaks(), (tmp_path / "file").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        async with trio.open_nursery() as nursery:
            other = await start(nursery, "waits")
            listing = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
            argv = [*command("waits")[:-1], "-c", listing]
            transport = await spawn(argv, os.environ, None, nursery)
            assert await read_all(transport) == b"[0, 1, 2]\n"
            await transport.aclose(sweep=False)
            await other.aclose(sweep=False)
