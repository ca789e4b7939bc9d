"""The walls: how large things may grow, and what each module says of itself."""

from __future__ import annotations

import ast
import inspect
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import claude_trio

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "src" / "claude_trio"
MODULES: Final = sorted(PACKAGE.rglob("*.py"))
MODULE_LINES: Final = 500
FUNCTION_LINES: Final = 40
FACADE_STATEMENTS: Final = 60
FACADE_NAMES: Final = 50

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE))


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count from the ``def`` to the end, less the docstring."""
    first = function.body[0]
    has_docstring = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if has_docstring else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def _assigned_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def _imports_annotations(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(name.name == "annotations" for name in node.names)
        for node in tree.body
    )


def test_there_are_modules_to_look_at() -> None:
    assert PACKAGE / "__init__.py" in MODULES


@each_module
def test_no_module_is_over_its_wall(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


@each_module
def test_no_function_is_over_its_wall(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    long = {f.name: _lines(f) for f in _functions(tree) if _lines(f) > FUNCTION_LINES}
    assert not long


@each_module
def test_every_module_says_what_it_is_and_what_it_offers(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert "__all__" in _assigned_names(tree)
    assert _imports_annotations(tree)


def test_the_facade_is_small_and_holds_no_logic() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    docstring, *statements = tree.body
    assert isinstance(docstring, ast.Expr)
    logic = [node for node in statements if not isinstance(node, ast.ImportFrom | ast.Assign)]
    assert len(logic) <= 1  # The loop that says where the names live.
    assert len(tree.body) <= FACADE_STATEMENTS
    assert len(claude_trio.__all__) <= FACADE_NAMES
    assert len(set(claude_trio.__all__)) == len(claude_trio.__all__)


def test_what_the_facade_exports_says_that_it_lives_in_a_public_module() -> None:
    exported = {name: getattr(claude_trio, name) for name in claude_trio.__all__}
    assert not {
        name: thing.__module__
        for name, thing in exported.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and "._" in thing.__module__
    }


def test_the_readme_and_ci_run_the_same_command() -> None:
    command = "python3 -m venv .venv && .venv/bin/pip install nox && .venv/bin/nox"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    script = ROOT / ".ci" / "run"
    assert command in script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
