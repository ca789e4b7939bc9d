"""What an option may be: one validator for each kind, and each error begins with the option's name.

None is "not given" and always passes where it is the default.  A wrong type is a `TypeError`, a
wrong value a `ValueError`.  No error repeats a value that may be a secret or a long text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, cast
from uuid import UUID

from claude_trio._options._convert import to_json
from claude_trio._options._flags import TAKEN_FLAGS

if TYPE_CHECKING:
    import attrs

__all__ = [
    "LONGEST_ARGUMENT",
    "RUN_VARIABLE",
    "agents",
    "amount",
    "argument",
    "arguments",
    "blocks",
    "compaction",
    "counted",
    "each_skill",
    "environment",
    "extra_args",
    "header",
    "json_object",
    "names",
    "path_arguments",
    "path_or_json",
    "prose",
    "rules",
    "servers",
    "switch",
    "switch_or_argument",
    "text_mapping",
    "tristate",
    "uuid",
]

# Linux takes no longer string on a command line or in an environment: 128 KiB with its NUL.
LONGEST_ARGUMENT: Final = 131_071
# What a process and all that it starts carry in their environment.
RUN_VARIABLE: Final = "CLAUDE_TRIO_RUN"

_FLAG: Final = r"[A-Za-z0-9][A-Za-z0-9-]*"

T = TypeVar("T")


def _refuse_type(option: str, wanted: str, value: object) -> NoReturn:
    raise TypeError(f"{option}: {wanted} is wanted, not {type(value).__name__}")


def _text(option: str, value: object) -> str:
    if not isinstance(value, str):
        _refuse_type(option, "a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{option}: holds a lone surrogate, which UTF-8 cannot carry") from None
    return value


def _argument(option: str, value: object) -> str:
    text = _text(option, value)
    if "\0" in text:
        raise ValueError(f"{option}: holds a NUL, which no argument can carry")
    if not text:
        raise ValueError(f"{option}: is empty; leave it out instead")
    return text


def _path(option: str, value: object) -> str:
    text = _argument(option, value)
    if text.lstrip().startswith("{"):
        raise ValueError(f"{option}: is read as a path; give JSON as a mapping")
    return text


def _items(option: str, value: object) -> tuple[object, ...]:
    if not isinstance(value, tuple):
        _refuse_type(option, "a sequence of strings", value)
    return cast("tuple[object, ...]", value)


def _object(option: str, value: object) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        _refuse_type(option, "a mapping", value)
    return cast("Mapping[object, object]", value)


def _json_object(option: str, value: object) -> Mapping[object, object]:
    _object(option, value)
    try:
        text = to_json(value)
    except TypeError as error:
        raise TypeError(f"{option}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{option}: {error}") from None
    _text(option, text)
    return _object(option, value)


def _number(option: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse_type(option, "an int", value)
    if value < least:
        raise ValueError(f"{option}: is {value}, and the least is {least}")


def argument(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept text that stands behind a flag."""
    if value is not None:
        _argument(field.name, value)


def arguments(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept texts that stand behind a flag each."""
    for item in () if value is None else _items(field.name, value):
        _argument(field.name, item)


def path_arguments(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept paths behind a flag that takes JSON as well."""
    for item in () if value is None else _items(field.name, value):
        _path(field.name, item)


def names(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept names that stand in one argument, with commas between."""
    for item in () if value is None else _items(field.name, value):
        name = _argument(field.name, item)
        if "," in name or name != name.strip() or not name.isprintable():
            raise ValueError(f"{field.name}: {name!r} is no single name")


def rules(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept permission rules that stand in one argument, with commas between."""
    from claude_trio._options._rules import refuse_rule  # noqa: PLC0415  Few options are rules.

    for item in () if value is None else _items(field.name, value):
        rule = _text(field.name, item)
        if why := refuse_rule(rule):
            raise ValueError(f"{field.name}: {rule!r} {why}")


def each_skill(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept skill names, and ``"all"`` alone."""
    from claude_trio._options._rules import refuse_skill  # noqa: PLC0415  As above.

    for item in () if value is None else _items(field.name, value):
        name = _text(field.name, item)
        if why := refuse_skill(name):
            raise ValueError(f"{field.name}: {name!r} {why}")


def prose(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept any text, empty or long."""
    if value is not None:
        _text(field.name, value)


def blocks(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept any texts."""
    for item in () if value is None else _items(field.name, value):
        _text(field.name, item)


def header(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept what an HTTP header can carry; empty is no header."""
    if value is not None:
        text = _text(field.name, value)
        if not (text.isascii() and text.isprintable()):
            raise ValueError(f"{field.name}: {text!r} cannot stand in an HTTP header")


def uuid(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept a UUID in the CLI's spelling."""
    if value is not None:
        text = _argument(field.name, value)
        try:
            UUID(text)
        except ValueError:
            raise ValueError(f"{field.name}: {text!r} is no UUID") from None


def switch(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept True and False."""
    if not isinstance(value, bool):
        _refuse_type(field.name, "a bool", value)


def tristate(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept True, False and None."""
    if value is not None and not isinstance(value, bool):
        _refuse_type(field.name, "a bool or None", value)


def switch_or_argument(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept True, False and text that stands behind the flag."""
    if not isinstance(value, bool):
        _argument(field.name, value)


def counted(least: int) -> Callable[[object, attrs.Attribute[T], T], None]:
    """Make a validator of whole numbers."""

    def validate(_self: object, field: attrs.Attribute[T], value: T) -> None:
        if value is not None:
            _number(field.name, value, least)

    return validate


def amount(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept a number of dollars."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse_type(field.name, "a number", value)
    if not 0 < value < math.inf:
        raise ValueError(f"{field.name}: is {value}, which is no positive, finite number")


def compaction(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept ``"auto"`` and a number of tokens."""
    if value is not None and value != "auto":
        _number(field.name, value, 100_000)


def json_object(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept what JSON can write as an object."""
    if value is not None:
        _json_object(field.name, value)


def path_or_json(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept a path, and what JSON can write as an object."""
    if isinstance(value, str):
        _path(field.name, value)
    elif value is not None:
        _json_object(field.name, value)


def text_mapping(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept a mapping from text to text."""
    if value is not None:
        for key, item in _object(field.name, value).items():
            _argument(field.name, key)
            _argument(field.name, item)


def servers(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept configurations of MCP servers that run outside of the program."""
    if value is None:
        return
    for name, server in _json_object(field.name, value).items():
        label = f"{field.name}: {_argument(field.name, name)!r}"
        if _object(label, server).get("type") == "sdk":
            raise ValueError(f"{label}: tools in this program are given to open_session itself")


def agents(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept definitions of agents that the CLI does not drop without a word."""
    if value is None:
        return
    for name, agent in _json_object(field.name, value).items():
        label = f"{field.name}: {_argument(field.name, name)!r}"
        definition = _object(label, agent)
        for key in ("description", "prompt"):
            _argument(f"{label}: {key!r}", definition.get(key))
        if wrong := [
            key for key in definition if isinstance(key, str) and "_" in key and key.islower()
        ]:
            raise ValueError(f"{label}: the CLI knows no {wrong[0]!r}; give an AgentDefinition")


def environment(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept variables for a process: text, or None to remove one.  Values stay unsaid."""
    for key, item in _object(field.name, value).items():
        name = _argument(field.name, key)
        if "=" in name:
            raise ValueError(f"{field.name}: {name!r} holds an equals sign")
        if name == RUN_VARIABLE:
            raise ValueError(f"{field.name}: {name!r} is the library's own mark")
        if item is None:
            continue
        label = f"{field.name}: {name!r}"
        text = _text(label, item)
        if "\0" in text:
            raise ValueError(f"{label}: holds a NUL, which no variable can carry")
        if (size := len(f"{name}={text}".encode())) > LONGEST_ARGUMENT:
            raise ValueError(f"{label}: has {size} bytes, and the most is {LONGEST_ARGUMENT}")


def extra_args(_self: object, field: attrs.Attribute[T], value: T) -> None:
    """Accept flags without their dashes that no option and not the library stands for."""
    for key, item in _object(field.name, value).items():
        flag = _argument(field.name, key)
        if not re.fullmatch(_FLAG, flag):
            raise ValueError(f"{field.name}: {flag!r} is no flag; write it without its dashes")
        if why := TAKEN_FLAGS.get(flag):
            raise ValueError(f"{field.name}: {flag!r} is refused: {why}")
        if item is not None and "\0" in _text(f"{field.name}: {flag!r}", item):
            raise ValueError(f"{field.name}: {flag!r} holds a NUL, which no argument can carry")
