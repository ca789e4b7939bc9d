"""The page on testing: its tests run as a reader runs them, and are as short as it says."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import claude_trio
from tests.docs_examples import ROOT, examples
from tests.real_cli import real_cli

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real_cli, pytest.mark.slow]

PAGE: Final = "example_docs_testing_"
RECORDING: Final = ROOT / "docs" / "recorded" / "clean-up.ndjson"
LINES: Final = 10
SECONDS: Final = 120
# What each test takes in reality, in a form that can be read.
TIMES: Final = """
def pytest_runtest_logreport(report):
    if report.when == "call":
        print(f"\\n{report.nodeid.partition('::')[2]} took {report.duration:.3f}")
"""


def programs() -> dict[str, str]:
    return {name: text for name, text in examples() if name.startswith(PAGE)}


def shown_in(program: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.parse(program).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if "test_" in name:
                yield node
            case _:
                pass


@pytest.fixture(scope="module")
def names() -> list[str]:
    return [test.name for program in programs().values() for test in shown_in(program)]


def test_each_test_of_the_page_fits_in_ten_lines() -> None:
    long = {
        test.name: length
        for program in programs().values()
        for test in shown_in(program)
        if (length := (test.end_lineno or 0) - test.lineno + 1) > LINES
    }
    assert not long


def test_the_page_imports_nothing_private() -> None:
    for program in programs().values():
        assert "._" not in program
        assert "tests." not in program


def test_the_tests_of_the_page_pass(
    names: list[str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(names) >= 6
    for name, program in programs().items():
        (pytester.path / f"test_{name}.py").write_text(program, encoding="utf-8")
    shutil.copy(RECORDING, pytester.path)
    pytester.makeini("[pytest]\ntrio_mode = true\nfilterwarnings = error\n")
    pytester.makeconftest(TIMES)
    monkeypatch.setenv("CLAUDE_TRIO_REQUIRE_CLI", "1")
    monkeypatch.setenv("CLAUDE_CLI_PATH", str(real_cli()))
    # What is imported here, wherever it is, and no plugin but ours.
    monkeypatch.setenv("PYTHONPATH", str(Path(claude_trio.__file__).absolute().parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = ("-p", "pytest_trio.plugin", "-p", "claude_trio.pytest_plugin")
    result = pytester.runpytest_subprocess(*plugins, "-p", "no:cacheprovider", timeout=SECONDS)
    result.assert_outcomes(passed=len(names))
    took = dict(line.split(" took ") for line in result.outlines if " took " in line)
    assert set(took) == set(names)
    # Half an hour on the mock clock, and nothing to speak of in reality.
    assert float(took["test_half_an_hour_is_all_it_gets"]) < 1
