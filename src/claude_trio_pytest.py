"""Fixtures for pytest over `claude_trio.testing`, with pytest-trio or without.

No fixture is async and none runs a task: most give a function of the kit, to be called where the
test pleases.  So they are the same in trio mode, for tests marked ``trio``, for tests that call
`trio.run`, and where there is no pytest-trio.

pytest imports this module in every run where the package is installed.  So it is none of the
package, and imports neither that nor Trio before a fixture is used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from claude_trio import Session
    from claude_trio.testing import MessagesApi

__all__ = [
    "cancel_everywhere",
    "fake_claude",
    "messages_api",
    "no_leaks",
    "pytest_addoption",
    "pytest_runtest_call",
    "real_claude",
]

_REQUIRE: Final = "CLAUDE_TRIO_REQUIRE_CLI"
_CHOICE: Final = "CLAUDE_CLI_PATH"
_MOCK_CLOCKS: Final = frozenset({"autojump_clock", "mock_clock"})
_checks_leaks: Final = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line."""
    group = parser.getgroup("claude-trio")
    group.addoption(
        "--claude-cli",
        metavar="PATH",
        help=f"the claude that real_claude gives; else {_CHOICE}, PATH and the usual places count",
    )


@pytest.fixture
def fake_claude() -> Callable[..., AbstractAsyncContextManager[Session]]:
    """Open sessions on a scripted CLI in memory: `claude_trio.testing.open_fake_session`.

    ``async with fake_claude([say("hello")]) as session`` takes no real time if the test asks for
    pytest-trio's ``autojump_clock`` as well; nobody else can set the clock of a test.
    """
    from claude_trio.testing import open_fake_session

    return open_fake_session


@pytest.fixture
def messages_api(
    request: pytest.FixtureRequest,
) -> Callable[..., AbstractAsyncContextManager[MessagesApi]]:
    """Serve a scripted Messages API: `claude_trio.testing.open_messages_api`.

    A mock clock does not see what happens on a socket: a test that asks for one fails.
    """
    from claude_trio.testing import open_messages_api

    _refuse_mock_clocks(request)
    return open_messages_api


@pytest.fixture
def real_claude(request: pytest.FixtureRequest) -> Path:
    """Find the real CLI: ``SessionOptions(command=[real_claude])``.

    It is the one that the option ``--claude-cli=PATH`` names, or else what a session finds, by the
    environment variable ``CLAUDE_CLI_PATH`` for example.  Without one the test is skipped; it fails
    if one was named, or if the environment variable ``CLAUDE_TRIO_REQUIRE_CLI`` is set, and not
    to 0.

    A mock clock does not see what happens in a process: a test that asks for one fails.
    """
    from pathlib import Path

    from claude_trio import CLINotFound, LaunchFailed
    from claude_trio.testing import find_claude

    _refuse_mock_clocks(request)
    named: str | None = request.config.getoption("--claude-cli")
    env = {**os.environ, _CHOICE: named} if named else os.environ
    try:
        return Path(find_claude(env))
    except (CLINotFound, LaunchFailed) as exc:
        reason = f"no claude CLI to test with: {exc}"
    if env.get(_CHOICE) or os.environ.get(_REQUIRE, "0") not in {"", "0"}:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason.partition(";")[0])  # Without the places, for each test that is skipped.


@pytest.fixture
def cancel_everywhere() -> Callable[..., int]:
    """Cancel a scenario at each of its steps: `claude_trio.testing.cancel_everywhere`.

    It starts runs of Trio: the test is no async function.
    """
    from claude_trio.testing import cancel_everywhere

    return cancel_everywhere


@pytest.fixture
def no_leaks(request: pytest.FixtureRequest) -> None:
    """Fail the test if it leaves anything running or open: `claude_trio.testing.assert_no_leaks`.

    The test itself is looked at, after its run of Trio: what its other fixtures set up before it,
    and take down after it, does not count.
    """
    request.node.stash[_checks_leaks] = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run the test, and look at what it leaves if ``no_leaks`` was asked to."""
    if not item.stash.get(_checks_leaks, False):
        return (yield)
    from claude_trio.testing import assert_no_leaks

    with assert_no_leaks():
        return (yield)


def _refuse_mock_clocks(request: pytest.FixtureRequest) -> None:
    clocks = _MOCK_CLOCKS.intersection(request.fixturenames)
    if clocks:
        what = f"{request.fixturename} needs the real clock, and cannot be used"
        pytest.fail(f"{what} with {', '.join(sorted(clocks))}", pytrace=False)
