"""Scripts of fake CLIs that lie in files: JSON, with the names of the steps in Python.

A file is a row of replies, or an object that has one as its ``script`` and may have ``agents``,
``tools``, ``answers`` and ``faults``.  A step is an object with its name and its first argument,
and its other arguments beside that; a list of steps is one reply that has them all::

    {
      "script": [
        {"call_tool": "Bash", "input": {"command": "touch a"}, "returns": "made"},
        [{"say": "It is ", "chunks": 3, "delay": 0.1}, {"pause": 5}, {"say": "made."}],
        {"call_agent": ["look around", {"say": "nothing"}], "background": false},
        "hang"
      ],
      "faults": [{"dies": -9, "at": 12}, {"deaf_to": ["eof", "term"]}, "noise"]
    }
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import operator
import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec

from claude_trio.testing import _replies, faults
from claude_trio.testing._fake import FakeClaude
from claude_trio.testing._replies import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._fake_script import FakeScript

__all__ = ["BadScript", "load_fake"]

_STEPS: Final = ("call_agent", "call_tool", "call_tools", "cut", "end", "fail", "hang", "pause")
_STEPS_TO_SAY: Final = ("say", "think")
_LONGEST: Final = 60
_PARTS: Final = frozenset({"agents", "answers", "faults", "script", "tools"})


class _Maker(Protocol):
    """A function that makes a step or a fault."""

    def __call__(self, *args: object, **kwargs: object) -> object: ...


class BadScript(ValueError):
    """Tell what is wrong with a script, and where."""


def load_fake(source: str) -> FakeClaude:
    """Load a fake: from a script file, or from a Python object.

    Args:
      source: The path of a JSON file, or ``module:name``, where the name stands for a `FakeClaude`
        or for a script.  Modules are looked for in the current directory too.

    Raises:
      BadScript: if there is nothing of the kind; it names the place.
    """
    path = Path(source)
    module, colon, name = source.partition(":")
    if colon and module and name and not path.exists():
        return _from_module(source, module, name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise BadScript(f"{source} cannot be read: {exc}") from exc
    try:
        return _read(json.loads(text), source)
    except json.JSONDecodeError as exc:
        raise BadScript(f"{source} is not JSON: {exc}") from exc


def _from_module(source: str, module: str, name: str) -> FakeClaude:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = operator.attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError) as exc:
        raise BadScript(f"{source} cannot be imported: {exc}") from exc
    if isinstance(found, FakeClaude):
        return found
    if not callable(found) and not isinstance(found, list | tuple):
        raise BadScript(f"{source} is neither a FakeClaude nor a script, but {found!r}")
    return FakeClaude(cast("FakeScript", found))


def _read(value: object, place: str) -> FakeClaude:
    parts: dict[str, object] = {"script": value}
    if not isinstance(value, list):
        parts = _mapping(value, place)
    for part in parts.keys() - _PARTS:
        raise BadScript(f"{place}: there is no {part!r}; {_listed(_PARTS)} are there")
    if "script" not in parts:
        raise BadScript(f"{place}: there is no 'script'")
    tools = _mapping(parts.get("tools", {}), f"{place}: tools")
    answers = _mapping(parts.get("answers", {}), f"{place}: answers")
    agents = _mapping(parts.get("agents", {}), f"{place}: agents")
    return FakeClaude(
        _row(parts["script"], f"{place}: script"),
        run_tool=functools.partial(_run_tool, tools),
        agents={key: _row(row, f"{place}: agents[{key!r}]") for key, row in agents.items()},
        answers={
            key: _mapping(each, f"{place}: answers[{key!r}]") for key, each in answers.items()
        },
        faults=[
            cast("faults.Fault", _call(_FAULTS, fault, f"{place}: faults[{number}]"))
            for number, fault in enumerate(_list(parts.get("faults", []), f"{place}: faults"))
        ],
    )


def _run_tool(tools: Mapping[str, object], name: str, _use: Mapping[str, object]) -> str:
    return str(tools.get(name, f"({name} completed with no output)"))


def _row(value: object, place: str) -> list[Reply]:
    return [_reply(each, f"{place}[{n}]") for n, each in enumerate(_list(value, place))]


def _reply(value: object, place: str) -> Reply:
    if not isinstance(value, list):
        return cast("Reply", _call(_STEPS_BY_NAME, value, place))
    reply = Reply()
    for number, step in enumerate(cast("list[object]", value)):
        reply += _reply(step, f"{place}[{number}]")
    return reply


def _call(known: Mapping[str, _Maker], step: object, place: str) -> object:
    """Make what a step stands for."""
    fields: dict[str, object] = {step: []} if isinstance(step, str) else _mapping(step, place)
    names = fields.keys() & known.keys()
    if len(names) != 1:
        raise BadScript(f"{place}: {_shown(step)} is none of {_listed(known)}")
    (name,) = names
    first = fields[name]
    given = cast("list[object]", first) if isinstance(first, list) else [first]
    named = {key: value for key, value in fields.items() if key != name}
    function = known[name]
    try:
        bound = inspect.signature(function).bind(*given, **named)
    except TypeError as exc:
        raise BadScript(f"{place}: {name}: {exc}") from None
    arguments = _converted(function, bound, f"{place}: {name}")
    try:
        return function(*arguments.args, **arguments.kwargs)
    except ValueError as exc:
        raise BadScript(f"{place}: {name}: {exc}") from None


def _converted(
    function: _Maker, bound: inspect.BoundArguments, place: str
) -> inspect.BoundArguments:
    """Check each argument against its type, and make replies of steps."""
    hints = typing.get_type_hints(function)
    for name, value in bound.arguments.items():
        sort = bound.signature.parameters[name].kind
        hint = hints[name]
        if sort is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(
                _argument(each, hint, f"{place}: {name}[{number}]")
                for number, each in enumerate(value)
            )
        elif sort is not inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = _argument(value, hint, f"{place}: {name}")
    return bound


def _argument(value: object, hint: object, place: str) -> object:
    if hint is Reply:
        return _reply(value, place)
    try:
        return msgspec.convert(value, type=hint)
    except msgspec.ValidationError as exc:
        raise BadScript(f"{place}: {exc}") from None


def _mapping(value: object, place: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise BadScript(f"{place}: {_shown(value)} is no object")
    return cast("dict[str, object]", value)


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise BadScript(f"{place}: {_shown(value)} is no list")
    return cast("list[object]", value)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _listed(names: object) -> str:
    return ", ".join(sorted(cast("set[str]", names)))


_STEPS_BY_NAME: Final[dict[str, _Maker]] = {
    name: getattr(_replies, name) for name in (*_STEPS, *_STEPS_TO_SAY)
}
_FAULTS: Final[dict[str, _Maker]] = {
    name: getattr(faults, name) for name in faults.__all__ if name.islower()
}
