"""What the CLI is started with: its arguments, its environment, and the first fields it is sent.

Every value is bound to its flag by an equals sign.  In two words, a value that begins with a dash
would be another flag, and some flags take any number of words.

On the environment the caller has the last word, but for one name: the run's mark, by which the
library finds again what it has started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never, cast, final

from claude_trio._options._check import LONGEST_ARGUMENT, RUN_VARIABLE
from claude_trio._options._convert import to_json
from claude_trio._options._flags import ENVIRONMENT, FIELDS, FLAGS, How
from claude_trio._values import field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from claude_trio._options._session import SessionOptions

__all__ = ["ENCLOSING", "CommandLine", "FileArgument", "to_command_line", "to_environment"]

# Without --verbose the CLI refuses to write stream-json.
_BASE: Final = ("--output-format=stream-json", "--verbose", "--input-format=stream-json")
# What these hold may be secret.
_SECRET: Final = ("--settings=", "--managed-settings=", "--mcp-config=")
# The CLI reads these of `initialize` in place of their flags, if it awaits it.
_AWAITED: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("settings", "settings", ("--initialize-fields=settings",)),
    ("managed_settings", "managedSettings", ("--managed-settings-in-initialize",)),
    ("mcp_servers", "mcpServers", ()),
)

# What a session sets for its own children, so that it speaks of that session and not of ours.
ENCLOSING: Final = frozenset(
    {
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_AGENT_SDK_VERSION",
        "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_STARTER_MAY_HOLD_CONNECTOR_FILE",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
    }
)

_OURS: Final[dict[str, str]] = {
    # The CLI knows the entry points of SDKs by their exact names: with any other it keeps no track
    # of its children, and may start background work of its own (CLI 2.1.332).
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    # The version is not known yet.  2.1.332 obeys either, 2.1.197 only the second, and with both
    # each sends the session's state once.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
}
_CLIENT_APP: Final = ("CLAUDE_AGENT_SDK_CLIENT_APP", "claude-trio")

# With one of these the CLI exits with 1 and without a word (CLI 2.1.332 and 2.1.197), and a
# debugger sets them for every child of the program that it watches.
_DEBUGGER: Final = ("--inspect", "--debug")


@final
@frozen(kw_only=True)
class FileArgument:
    """An argument that is too long for a command line, and goes into a file.

    Whoever starts the CLI writes ``content`` to a file that only the user can read, passes
    ``argument(path)``, and keeps the file while the CLI lives.  So the CLI must see the same files.
    """

    option: str
    flag: str
    content: str = field(repr=False)
    suffix: str

    def argument(self, path: str) -> str:
        """Return the argument that names the file."""
        return f"{self.flag}={path}"


@final
@frozen(kw_only=True)
class CommandLine:
    """What the CLI is started with, without the program, and what `initialize` carries."""

    args: tuple[str | FileArgument, ...] = field(repr=False)
    initialize: Mapping[str, object] = field(repr=False)

    @property
    def shown(self) -> tuple[str, ...]:
        """The arguments without what may be secret, for errors and recordings."""
        return tuple(_shown(arg) for arg in self.args)


def _shown(arg: str | FileArgument) -> str:
    if isinstance(arg, FileArgument):
        return arg.argument("...")
    secret = arg.startswith(_SECRET) and arg.partition("=")[2].startswith("{")
    return f"{arg.partition('=')[0]}=..." if secret else arg


def to_command_line(options: SessionOptions, *, session_id: str | None = None) -> CommandLine:
    """Say how the CLI is started, and what it is told first.

    Args:
      options: What is wanted.
      session_id: The id for a session that is new and whose options give none.

    Raises:
      ValueError: if a value is too long for a command line and can go nowhere else.
    """
    initialize = _initialize(options)
    args = [*_BASE, *_flagged(options, session_id), *_extra(options)]
    return CommandLine(args=tuple(args), initialize=initialize)


def _flagged(options: SessionOptions, session_id: str | None) -> Iterator[str | FileArgument]:
    values = _derived(options, session_id)
    for option, flag, how in FLAGS:
        value = values.get(option, getattr(options, option))
        if value is not None and value is not False:
            yield from _written(option, flag, how, value)
    if options.await_initialize:
        for option, _field, flags in _AWAITED:
            yield from flags if _awaited(options, option) is not None else ()


def _derived(options: SessionOptions, session_id: str | None) -> dict[str, object]:
    """Give the values that are not simply those of the options."""
    goes_on = options.continue_ or options.resume is not None
    values: dict[str, object] = {
        "permission_prompt_tool": options.permission_prompt_tool or "stdio",
        # Left out, settings and the account would decide who is asked.
        "permission_mode": options.permission_mode or "default",
        "allowed_tools": _allowed(options),
        "settings": _settings(options),
        "mcp_servers": _servers(options),
    }
    if options.session_id is None and (options.fork_session or not goes_on):
        values["session_id"] = session_id
    if options.prompt_suggestions is not None:
        values["prompt_suggestions"] = str(options.prompt_suggestions).lower()
    if options.await_initialize:
        awaited = (option for option, _field, _flags in _AWAITED)
        values |= {option: None for option in awaited if _awaited(options, option) is not None}
        values |= {"plugin_dirs": None, "plugin_dirs_no_mcp": None}
    return values


def _written(option: str, flag: str, how: How, value: object) -> Iterator[str | FileArgument]:
    match how:
        case How.SWITCH:
            yield flag
        case How.VALUE:
            yield _bound(option, flag, str(value))
        case How.MAYBE_VALUE:
            yield flag if value is True else _bound(option, flag, str(value))
        case How.JOINED | How.RULES:
            if value or how is How.JOINED:
                yield _bound(option, flag, ",".join(cast("tuple[str, ...]", value)))
        case How.EACH:
            for item in cast("tuple[str, ...]", value):
                yield _bound(option, flag, item)
        case How.JSON:
            yield _bound(option, flag, to_json(value))
        case How.JSON_OR_PATH:
            yield _json_or_path(option, flag, value)
        case _:
            assert_never(how)


def _size(argument: str) -> int:
    return len(argument.encode())


def _bound(option: str, flag: str, value: str) -> str:
    argument = f"{flag}={value}"
    if (size := _size(argument)) > LONGEST_ARGUMENT:
        raise ValueError(
            f"{option}: has {size} bytes as an argument, and the most is {LONGEST_ARGUMENT}"
        )
    return argument


def _json_or_path(option: str, flag: str, value: object) -> str | FileArgument:
    if isinstance(value, str):
        return _bound(option, flag, value)
    text = to_json(value)
    if _size(f"{flag}={text}") > LONGEST_ARGUMENT:
        return FileArgument(option=option, flag=flag, content=text, suffix=".json")
    return f"{flag}={text}"


def _extra(options: SessionOptions) -> Iterator[str]:
    for name, value in options.extra_args.items():
        yield f"--{name}" if value is None else _bound("extra_args", f"--{name}", value)


def _allowed(options: SessionOptions) -> tuple[str, ...] | None:
    if options.skills is None:
        return options.allowed_tools
    everything = options.skills == ("all",)
    rules = ("Skill",) if everything else tuple(f"Skill({name})" for name in options.skills)
    given = options.allowed_tools or ()
    return (*given, *(rule for rule in dict.fromkeys(rules) if rule not in given))


def _settings(options: SessionOptions) -> Mapping[str, object] | str | None:
    if options.sandbox is None or isinstance(options.settings, str):
        return options.settings
    sandbox = dict(options.sandbox)
    if sandbox.get("enabled") is True:
        # Otherwise a sandbox whose programs are missing only warns, and runs commands without one.
        sandbox.setdefault("failIfUnavailable", True)
    return {**(options.settings or {}), "sandbox": sandbox}


def _servers(options: SessionOptions) -> Mapping[str, object] | None:
    return None if options.mcp_servers is None else {"mcpServers": options.mcp_servers}


def _awaited(options: SessionOptions, option: str) -> Mapping[str, object] | None:
    value = _settings(options) if option == "settings" else getattr(options, option)
    return None if isinstance(value, str) else cast("Mapping[str, object] | None", value)


def _plugins(options: SessionOptions) -> list[dict[str, object]]:
    whole: list[dict[str, object]] = [{"path": path} for path in options.plugin_dirs or ()]
    bare: list[dict[str, object]] = [
        {"path": path, "skipMcpDiscovery": True} for path in options.plugin_dirs_no_mcp or ()
    ]
    return [{"type": "local", **plugin} for plugin in (*whole, *bare)]


def _initialize(options: SessionOptions) -> dict[str, object]:
    fields: dict[str, object] = {}
    for option, name in FIELDS:
        value: object = getattr(options, option)
        if value is not None:
            fields[name] = (
                list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
            )
    if options.skills == ("all",):
        del fields["skills"]
    if options.await_initialize:
        for option, name, _flags in _AWAITED:
            if (awaited := _awaited(options, option)) is not None:
                fields[name] = awaited
        if plugins := _plugins(options):
            fields["plugins"] = plugins
    return fields


def to_environment(
    options: SessionOptions, inherited: Mapping[str, str], *, run: str | None = None
) -> dict[str, str]:
    """Make the environment for a CLI.

    Args:
      options: What is wanted.
      inherited: The environment of this process.
      run: The run's own mark, which goes behind that of the run which this process is part of.
    """
    environment = {name: value for name, value in inherited.items() if name not in ENCLOSING}
    if any(flag in environment.get("NODE_OPTIONS", "") for flag in _DEBUGGER):
        del environment["NODE_OPTIONS"]
    environment |= _OURS
    environment.setdefault(*_CLIENT_APP)
    _apply(environment, dict(_of_options(options)))
    if "TRACEPARENT" in options.env:
        # An inherited state belongs to another trace.
        environment.pop("TRACESTATE", None)
    _apply(environment, options.env)
    if run is not None:
        outer = inherited.get(RUN_VARIABLE)
        environment[RUN_VARIABLE] = f"{outer}:{run}" if outer else run
    return environment


def _apply(environment: dict[str, str], changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


def _of_options(options: SessionOptions) -> Iterator[tuple[str, str | None]]:
    for option, name, when_true, when_false in ENVIRONMENT:
        value: object = getattr(options, option)
        if isinstance(value, bool):
            yield name, when_true if value else when_false
        elif value is not None:
            yield name, str(value)
    if options.append_subagent_system_prompt is not None:
        # Its flag would set this too, the field of `initialize` does not (CLI 2.1.332).
        yield "CLAUDE_CODE_ENABLE_APPEND_SUBAGENT_PROMPT", "1"
    if options.cwd is not None:
        # A relative path is no PWD; without one, programs ask the system.
        yield "PWD", options.cwd if options.cwd.startswith("/") else None
