"""The fixtures, in runs of pytest of their own: each mode, with pytest-trio and without."""

from __future__ import annotations

import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import claude_trio_pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.slow]

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(claude_trio_pytest.__file__).absolute().parent
MODULE: Final = "claude_trio_pytest"
PLUGIN: Final = "claude_trio.pytest_plugin"
SECONDS: Final = 60
HEAD: Final = """
import os, subprocess, sys, threading
import pytest, trio
from trio.testing import MockClock
from claude_trio.testing import say
"""


class Runner:
    """Runs of pytest that know no settings but those that they are given."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester = pytester
        for name in ("CLAUDE_CLI_PATH", "CLAUDE_TRIO_REQUIRE_CLI", "PYTEST_ADDOPTS"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PYTHONPATH", str(HERE))
        # What is installed here is not what is tested, and takes its time.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        # A home and a PATH without any claude.
        monkeypatch.setenv("HOME", str(pytester.path))
        monkeypatch.setenv("PATH", os.defpath)
        self._monkeypatch = monkeypatch

    def run(
        self,
        test: str,
        *args: str,
        ini: str = "",
        env: Mapping[str, str] | None = None,
        load: bool = True,
    ) -> pytest.RunResult:
        self.pytester.makepyfile(HEAD + test)
        self.pytester.makeini(f"[pytest]\nfilterwarnings = error\n{ini}\n")
        for name, value in (env or {}).items():
            self._monkeypatch.setenv(name, value)
        plugin = ("-p", PLUGIN) if load else ()
        return self.pytester.runpytest_subprocess(
            *plugin, "-p", "no:cacheprovider", "-v", "-rA", *args, timeout=SECONDS
        )


@pytest.fixture
def runner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Runner:
    return Runner(pytester, monkeypatch)


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """Say of each test how it ended; one that an error kept from running has ended in that."""
    lines = [line.split() for line in result.outlines if "::" in line]
    words = {"PASSED", "FAILED", "SKIPPED", "ERROR"}
    return {line[0].partition("::")[2]: line[1] for line in lines if set(line[1:2]) <= words}


# Each mode: the settings, the arguments, and what makes a test of an async function.
MODES: Final = {
    "trio mode": ("trio_mode = true", ("-p", "pytest_trio.plugin"), ""),
    "marked": ("", ("-p", "pytest_trio.plugin"), "trio_test = pytest.mark.trio"),
    "no pytest-trio": (
        "",
        (),
        """
import functools, inspect

def trio_test(function):
    @functools.wraps(function)
    def test(**fixtures):
        trio.run(functools.partial(function, **fixtures), clock=fixtures.get("autojump_clock"))
    return test

@pytest.fixture
def autojump_clock():
    return MockClock(autojump_threshold=0)
""",
    ),
}
IN_EACH_MODE: Final = """
if "trio_test" not in globals():
    trio_test = lambda function: function

@trio_test
async def test_fake(fake_claude, autojump_clock):
    async with fake_claude([say("slow", chunks=2, delay=3600)]) as session:
        started = trio.current_time()
        assert (await session.prompt("hi")).text == "slow"
        assert trio.current_time() - started >= 3600

@trio_test
async def test_api(messages_api):
    with trio.fail_after(30):
        async with messages_api([]) as api:
            host, _, port = api.url.removeprefix("http://").partition(":")
            await (await trio.open_tcp_stream(host, int(port))).aclose()

async def scenario():
    await trio.sleep(1)
    await trio.sleep(1)

def test_cancel(cancel_everywhere):
    assert cancel_everywhere(scenario) >= 2

async def swallows():
    try:
        await trio.sleep(1)
    except BaseException:
        pass

def test_cancel_looks(cancel_everywhere):
    cancel_everywhere(swallows)

def start_thread():
    done = threading.Event()
    thread = threading.Thread(target=done.wait, daemon=True, name="planted")
    thread.start()
    return done, thread

@trio_test
async def test_leaky(no_leaks):
    start_thread()

@trio_test
async def test_tidy(no_leaks):
    done, thread = start_thread()
    done.set()
    thread.join()

@trio_test
async def test_careless():
    start_thread()
"""


@pytest.mark.parametrize("mode", MODES)
def test_the_fixtures_work_in_each_mode(mode: str, runner: Runner) -> None:
    ini, args, prelude = MODES[mode]
    result = runner.run(prelude + IN_EACH_MODE, *args, ini=ini)
    assert outcomes(result) == {
        "test_fake": "PASSED",
        "test_api": "PASSED",
        "test_cancel": "PASSED",
        "test_cancel_looks": "FAILED",
        "test_leaky": "FAILED",
        "test_tidy": "PASSED",
        "test_careless": "PASSED",
    }
    result.stdout.fnmatch_lines(
        ["E*LawBroken: *swallowed*", "*AssertionError*left*", "*thread 'planted'*"]
    )
    # The fake's two hours pass on its own clock.
    assert result.duration < SECONDS


def test_no_leaks_sees_descriptors_and_processes_and_spares_fixtures(runner: Runner) -> None:
    test = """
@pytest.fixture
def file(tmp_path):
    with open(tmp_path / "file", "w") as file:
        yield file

def test_descriptor(no_leaks):
    os.pipe()

def test_process(no_leaks):
    global process
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

def test_fixtures(file, no_leaks, tmp_path, capfd, monkeypatch):
    assert file.fileno()

def test_own_failure(no_leaks):
    os.pipe()
    raise KeyError("mine")

def test_skipped(no_leaks):
    pytest.skip("not today")

@pytest.mark.usefixtures("no_leaks")
class TestAll:
    def test_leaky(self):
        os.pipe()

    @pytest.mark.parametrize("number", [1, 2])
    def test_tidy(self, number):
        assert number

class TestOwnFixture:
    @pytest.fixture
    def no_leaks(self):
        return "mine"

    def test_leaky(self, no_leaks):
        os.pipe()
        assert no_leaks == "mine"

@pytest.fixture(scope="session", autouse=True)
def end():
    yield
    process.communicate()
"""
    result = runner.run(test)
    assert outcomes(result) == {
        "test_descriptor": "FAILED",
        "test_process": "FAILED",
        "test_fixtures": "PASSED",
        "test_own_failure": "FAILED",
        "test_skipped": "SKIPPED",
        "TestAll::test_leaky": "FAILED",
        "TestAll::test_tidy[1]": "PASSED",
        "TestAll::test_tidy[2]": "PASSED",
        "TestOwnFixture::test_leaky": "PASSED",
    }
    result.stdout.fnmatch_lines(["*descriptor *pipe*", "*child *input()*", "*KeyError: 'mine'*"])


# Where the real CLI is.


@pytest.fixture
def program(pytester: pytest.Pytester) -> Path:
    path = pytester.path / "bin" / "claude"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_test_without_a_cli_is_skipped_or_fails_as_the_environment_says(
    program: Path, runner: Runner
) -> None:
    test = f"""
@pytest.fixture
def env(monkeypatch, request):
    for name, value in request.param.items():
        monkeypatch.setenv(name, value)

def sets(**env):
    return pytest.mark.parametrize("env", [env], indirect=True, ids=[""])

# `env` comes first in each.
@sets()
def test_none(env, real_claude): pass

@sets(CLAUDE_TRIO_REQUIRE_CLI="")
def test_empty(env, real_claude): pass

@sets(CLAUDE_TRIO_REQUIRE_CLI="0")
def test_zero(env, real_claude): pass

@sets(CLAUDE_TRIO_REQUIRE_CLI="1")
def test_required(env, real_claude): pass

@sets(CLAUDE_CLI_PATH="/no/such/claude")
def test_wrong(env, real_claude): pass

@sets(CLAUDE_CLI_PATH={str(program)!r}, CLAUDE_TRIO_REQUIRE_CLI="1")
def test_named(env, real_claude): assert str(real_claude) == {str(program)!r}

@sets(PATH={os.pathsep.join([str(program.parent), os.defpath])!r})
def test_on_path(env, real_claude): assert str(real_claude) == {str(program)!r}
"""
    result = runner.run(test)
    assert outcomes(result) == {
        "test_none[]": "SKIPPED",
        "test_empty[]": "SKIPPED",
        "test_zero[]": "SKIPPED",
        "test_required[]": "ERROR",
        "test_wrong[]": "ERROR",
        "test_named[]": "PASSED",
        "test_on_path[]": "PASSED",
    }
    reason = "no claude CLI to test with: there is no program 'claude'"
    result.stdout.fnmatch_lines([f"*{reason}; looked at:", f"SKIPPED*{reason}"])


def test_the_option_names_the_cli_before_the_environment_does(
    program: Path, runner: Runner
) -> None:
    test = f"def test_it(real_claude):\n    assert str(real_claude) == {str(program)!r}\n"
    other = {"CLAUDE_CLI_PATH": "/no/such/claude"}
    # It may be relative to where pytest was started.
    relative = program.relative_to(runner.pytester.path)
    runner.run(test, f"--claude-cli={relative}", env=other).assert_outcomes(passed=1)
    wrong = runner.run(test, "--claude-cli=/nor/this", env={"CLAUDE_CLI_PATH": str(program)})
    wrong.assert_outcomes(errors=1)
    wrong.stdout.fnmatch_lines(["*/nor/this*"])


def test_what_is_real_refuses_a_mock_clock(program: Path, runner: Runner) -> None:
    test = """
async def test_api(messages_api, autojump_clock): pass
async def test_cli(real_claude, mock_clock): pass
"""
    ini, args, _prelude = MODES["trio mode"]
    result = runner.run(test, *args, ini=ini, env={"CLAUDE_CLI_PATH": str(program)})
    assert outcomes(result) == {"test_api": "ERROR", "test_cli": "ERROR"}
    result.stdout.fnmatch_lines(["*messages_api needs the real clock*autojump_clock*"])
    result.stdout.fnmatch_lines(["*real_claude needs the real clock*mock_clock*"])


# How the plugin gets there.


def test_the_entry_point_is_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # By any other name, `-p` would register it once more, which pytest refuses.
    assert project["entry-points"]["pytest11"] == {MODULE: MODULE}


@pytest.mark.parametrize("asked_for", [(), (PLUGIN, MODULE)])
def test_an_installed_plugin_is_loaded_once_however_it_is_asked_for(
    asked_for: tuple[str, ...], runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site" / "planted-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{MODULE} = {MODULE}\n")
    path = os.pathsep.join([str(installed.parent), str(HERE)])
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    args = [argument for name in asked_for for argument in ("-p", name)]
    runner.pytester.makeconftest(f"pytest_plugins = {asked_for!r}")
    test = "def test_it(real_claude):\n    pass\n"
    result = runner.run(test, *args, load=False, env={"PYTHONPATH": path})
    result.assert_outcomes(skipped=1)


def test_a_run_that_uses_no_fixture_imports_neither_the_package_nor_trio(runner: Runner) -> None:
    runner.pytester.makeini("[pytest]\n")  # Else that of a folder above would count.
    runner.pytester.makepyfile("def test_it():\n    pass\n")
    code = f"""
import sys, pytest
assert pytest.main(["-q", "-p", "{MODULE}", "-p", "no:cacheprovider"]) == 0
print("imported:", [name for name in sys.modules if name.startswith(("claude_trio", "trio"))])
"""
    result = runner.pytester.run(sys.executable, "-c", code, timeout=SECONDS)
    result.stdout.fnmatch_lines([f"imported: [[]'{MODULE}'[]]"])
