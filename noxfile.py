"""Every check of the project: ``nox`` runs them all, ``nox -l`` lists them.

Each session has an environment of its own and installs what it needs from the package index;
nothing on the machine but Python is used.  Arguments after ``--`` go to the tool of the session.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import nox

__all__: list[str] = []

NOX: Final = "nox>=2025.10.14"
nox.needs_version = NOX.removeprefix("nox")
nox.options.default_venv_backend = "venv"
nox.options.error_on_external_run = True

PROJECT: Final = nox.project.load_toml("pyproject.toml")
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
# These promise every branch; the rest promises what `fail_under` in pyproject.toml says.
CORE: Final = (
    "*/claude_trio/_ndjson.py",
    "*/claude_trio/_options*",
    "*/claude_trio/_protocol/*",
    "*/claude_trio/_values.py",
    "*/claude_trio/messages/*",
)
QUICK: Final = ("-m", "not slow and not real_cli")
FRAGMENT: Final = re.compile(r"(\d+|\+[a-z0-9-]+)\.([a-z]+)(\.\d+)?\.rst")


def _version_of(python: str) -> str | None:
    """Ask an interpreter for its version; None if it is not there or cannot make environments."""
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        # pyenv's shims exist for versions that are not switched on: only a run tells.
        asked = subprocess.run(
            [python, "-c", code], check=False, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


def _places(version: str) -> list[str]:
    """Say where an interpreter may be: on PATH, or where pyenv and uv keep theirs."""
    name = f"python{version}"
    found = [shutil.which(name, path=place) for place in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    uv = Path("~/.local/share/uv/python").expanduser()
    kept = [
        *sorted(pyenv.glob(f"versions/{version}.*/bin/{name}")),
        *sorted(uv.glob(f"cpython-{version}.*/bin/{name}")),
    ]
    return [sys.executable, *filter(None, found), *map(str, kept)]


@functools.cache
def interpreters() -> dict[str, str]:
    """Find one interpreter for each supported version that this machine has, oldest first."""
    found: dict[str, str] = {}
    for version in SUPPORTED:
        for python in _places(version):
            if _version_of(python) == version:
                found[version] = python
                break
    if not found:
        raise SystemExit(f"no Python of {', '.join(SUPPORTED)} is to be found")
    return found


OLDEST: Final = next(iter(interpreters()))
NEWEST: Final = list(interpreters())[-1]


def _group(*names: str) -> list[str]:
    return list(nox.project.dependency_groups(PROJECT, *names))


@nox.session
@nox.parametrize("python", [nox.param(path, id=key) for key, path in interpreters().items()])
def tests(session: nox.Session) -> None:
    """Run the tests on every interpreter of the machine; the newest measures coverage.

    The oldest and the newest run them all, and what lies between runs the quick ones: neither the
    CLI nor the system is another there.
    """
    session.install(".", *_group("test"))
    ends = {interpreters()[OLDEST], interpreters()[NEWEST]}
    chosen = session.posargs or ([] if session.python in ends else QUICK)
    if session.python != interpreters()[NEWEST] or session.posargs:
        session.run("python", "-m", "pytest", *chosen)
        return
    data = session.create_tmp()
    session.env["COVERAGE_FILE"] = str(Path(data, "coverage").absolute())
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest")
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")
    session.run("coverage", "report", f"--include={','.join(CORE)}", "--fail-under=100")


@nox.session(python=interpreters()[OLDEST])
def tests_lowest(session: nox.Session) -> None:
    """Run the quick tests with the lowest versions that we say we work with."""
    lowest = [bound.replace(">=", "==") for bound in PROJECT["project"]["dependencies"]]
    session.install(".", *lowest, *_group("test"))
    session.run("python", "-m", "pytest", *QUICK, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the form, the rules of Trio, and who imports whom."""
    session.install(".", *_group("lint"))
    session.run("ruff", "format", "--check", "--diff", ".")
    session.run("ruff", "check", ".")
    session.run("flake8", "src", "tests", "docs", "noxfile.py")
    session.run("lint-imports", "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types with mypy and pyright, and that every public name has one."""
    session.install(".", *_group("types", "test", "docs"), NOX)
    examples = session.create_tmp()
    session.run("python", "-m", "tests.docs_examples", examples)
    session.run("mypy")
    with session.chdir(examples):
        session.run("mypy", "--strict", "--config-file=", ".")
    session.run("pyright")
    session.run("pyright", "--verifytypes", "claude_trio", "--ignoreexternal")


@nox.session(python=interpreters()[OLDEST])
def types_trio_typing(session: nox.Session) -> None:
    """Check a program that still uses trio-typing, which replaces Trio's own types, against us."""
    # The last mypy that the plugin works with.
    session.install(".[typing]", "mypy==1.7.1")
    program = "tests/typing/trio_typing_program.py"
    session.run("mypy", "--config-file=tests/typing/trio_typing.ini", program)


@nox.session(default=False)
def demo(session: nox.Session) -> None:
    """Run the demo on the real ``claude``, which is fetched as for the tests."""
    session.install(".")
    code = "from tests.real_cli import real_cli; print(real_cli())"
    found = session.run("python", "-c", code, silent=True)
    session.run("claude-trio", "demo", env={"CLAUDE_CLI_PATH": str(found).strip()})


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning or a dead reference is an error."""
    session.install(".", *_group("docs"))
    session.run("sphinx-build", "-W", "-n", "--keep-going", "-b", "html", "docs", "docs/_build")


@nox.session
def news(session: nox.Session) -> None:
    """Check the news fragments; with a git revision, also that the changes since then have one."""
    session.install(*_group("news"))
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    for path in sorted(Path("newsfragments").iterdir()):
        name = FRAGMENT.fullmatch(path.name)
        if path.name != "README.rst" and (name is None or name[2] not in kinds):
            session.error(f"{path} is not named as newsfragments/README.rst says")
        if not path.read_text(encoding="utf-8").strip():
            session.error(f"{path} says nothing")
    session.run("towncrier", "build", "--draft", "--version", "next")
    if session.posargs:
        session.run("towncrier", "check", "--compare-with", *session.posargs)
