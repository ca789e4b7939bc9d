"""What options refuse: wrong types and values, smuggled flags and rules, what is too long."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._options import (
    LONGEST_ARGUMENT,
    AgentDefinition,
    FileArgument,
    SessionOptions,
    to_command_line,
    warnings_for,
)
from claude_trio._options._flags import FLAGS, TAKEN_FLAGS, How

ID: Final = "0b7f3c1e-9a54-4f62-8d1b-6a2f4c9e1d70"
FLAG_OF: Final = {option: flag for option, flag, _how in FLAGS}
DEFAULT: Final = to_command_line(SessionOptions()).args

# What some options need beside them.
GIVEN: Final[dict[str, dict[str, object]]] = {
    "resume_session_at": {"resume": "s"},
    "resume_drops_turn": {"resume": "s", "resume_session_at": "m"},
}
TEXTS: Final = (
    *("resume", "resume_session_at", "resume_drops_turn", "model", "effort", "thinking"),
    *("thinking_display", "system_prompt_file", "append_system_prompt_file", "agent"),
    *("permission_mode", "permission_prompt_tool", "permission_prompts", "settings"),
    *("project_config_root", "worktree", "debug", "debug_file"),
)
LISTS: Final = (
    *("fallback_model", "betas", "tools", "allowed_tools", "disallowed_tools", "setting_sources"),
    *("mcp_config", "plugin_dirs", "plugin_dirs_no_mcp", "plugin_urls", "add_dirs"),
)
JOINED: Final = [option for option, _flag, how in FLAGS if how in {How.JOINED, How.RULES}]
PROSE: Final = (
    *("append_system_prompt", "append_subagent_system_prompt", "plan_mode_instructions", "title"),
)


def options_of(**options: Any) -> SessionOptions:
    return SessionOptions(**options)


def refuse(error: type[Exception], option: str, value: object, **more: Any) -> str:
    with pytest.raises(error, match=rf"^{option}: ") as refused:
        options_of(**{option: value, **GIVEN.get(option, {}), **more})
    return str(refused.value)


def accepted(option: str, value: object, **more: Any) -> SessionOptions | None:
    """Make options, or hold a refusal to its form."""
    try:
        return options_of(**{option: value}, **more)
    except ValueError as error:
        said = str(error)
    assert said.startswith(f"{option}: ")
    return None


def each(option: str, *values: object) -> list[tuple[str, object]]:
    return [(option, value) for value in values]


# Types.


WRONG_TYPES: Final[tuple[tuple[str, object], ...]] = (
    *each("command", "claude", 3, ["a", 3], [None], {"a": "b"}),
    *each("cwd", 3, b"/x"),
    *each("env", None, ["A=1"], {"A": 1}, {"A": True}, {"A": b"1"}, {1: "1"}),
    *each("extra_args", None, "--x", {"x": 1}, {1: "x"}),
    ("session_id", 3),
    *each("model", 3, b"opus", True, ["opus"], Path("opus")),
    *each("fallback_model", 3, b"haiku", [3], {"haiku": 1}),
    *each("betas", "a", b"a", [b"a"], [Path("a")]),
    *each("max_turns", "3", 3.0, True),
    *each("max_budget_usd", "3", True),
    *each("autocompact", "off", True),
    *each("system_prompt", 3, [3], b"x"),
    *each("append_system_prompt", 3, b"x"),
    *each("json_schema", "{}", 3, {"a": Path("/x")}, {"a": {1, 2}}),
    *each("allowed_tools", "Bash", {"Bash": True}, [3]),
    *each("tools", {"type": "preset"}, 3),
    *each("skills", 3, [3]),
    *each("tool_aliases", ["a"], {"a": 3}, {3: "a"}),
    *each("agents", [], {"r": "x"}, {"r": {"description": "d"}}),
    *each("settings", 3, b"/s.json", {"a": b"x"}),
    *each("mcp_servers", "/m.json", {"a": "x"}),
    *each("mcp_config", 3, [3], {"a": {}}, b"/m.json"),
    *each("add_dirs", 3, b"/x", {"/x": 1}),
    *each("worktree", None, 3),
    *each("continue_", None, 1, "yes"),
    *each("prompt_suggestions", 1, "true"),
    ("client_app", 3),
)


@pytest.mark.parametrize(("option", "value"), WRONG_TYPES)
def test_a_wrong_type_is_refused_with_the_options_name(option: str, value: object) -> None:
    refuse(TypeError, option, value)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="max_turn"):
        options_of(max_turn=3)
    with pytest.raises(TypeError, match="max_turn"):
        SessionOptions.isolated(max_turn=3)


# Values.


CYCLE: Final[dict[str, object]] = {}
CYCLE["itself"] = CYCLE

WRONG_VALUES: Final[tuple[tuple[str, object], ...]] = (
    *((option, "") for option in TEXTS),
    *((option, [""]) for option in LISTS),
    *((option, "a\0b") for option in TEXTS),
    *((option, ["a\0b"]) for option in LISTS),
    *((option, "a\ud800b") for option in (*TEXTS, *PROSE)),
    *((option, ["a\udfffb"]) for option in LISTS),
    *((option, ["a,b"]) for option in ("fallback_model", "setting_sources")),
    *((option, ["a\nb"]) for option in ("fallback_model", "setting_sources")),
    ("fallback_model", "haiku,"),
    *each("system_prompt", "\ud800", ["\ud800"]),
    *each("session_id", "", "x", "--version", "0b7f3c1e-9a54", f"{ID}x"),
    *each("command", [""], ["a\0"], ["\ud800"]),
    *each("cwd", "", "/a\0", "/\udcff"),
    *each("max_turns", 0, -1),
    ("max_thinking_tokens", -1),
    ("task_budget", 0),
    *each("max_budget_usd", 0, -1.0, math.inf, math.nan),
    *each("autocompact", 0, 99_999),
    *each("json_schema", {"a": math.nan}, CYCLE, {"a": "\ud800"}, {"\ud800": 1}),
    *each("settings", '{"model": "x"}', " {}", {"a": "\ud800"}),
    ("mcp_config", ['{"mcpServers": {}}']),
    ("mcp_servers", {"a": {"type": "sdk", "name": "a"}}),
    ("mcp_servers", {"": {}}),
    ("agents", {"": {"description": "d", "prompt": "p"}}),
    ("agents", {"r": {"description": "", "prompt": "p"}}),
    ("agents", {"r": {"description": "d", "prompt": "p", "max_turns": 3}}),
    *each("client_app", "ä", "a\r\nX-Evil: 1", "a\0"),
    *each("tool_aliases", {"": "a"}, {"a": ""}),
    ("supported_dialog_kinds", [""]),
)


@pytest.mark.parametrize(("option", "value"), WRONG_VALUES)
def test_a_wrong_value_is_refused_with_the_options_name(option: str, value: object) -> None:
    refuse(ValueError, option, value)


def test_what_nests_too_deeply_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    refuse(ValueError, "settings", deep)


def test_any_mapping_is_a_json_object() -> None:
    settings = MappingProxyType({"a": MappingProxyType({"b": 1})})
    assert SessionOptions(settings=settings).settings == {"a": {"b": 1}}


WRONG_COMBINATIONS: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    ("continue_", {"continue_": True, "resume": "s"}),
    ("fork_session", {"fork_session": True}),
    ("session_id", {"session_id": ID, "resume": "s"}),
    ("session_id", {"session_id": ID, "continue_": True}),
    ("resume_session_at", {"resume_session_at": "m"}),
    ("resume_session_at", {"resume_session_at": "m", "continue_": True}),
    ("resume_drops_turn", {"resume_drops_turn": "p", "resume": "s"}),
    ("session_mirror", {"session_mirror": True, "no_session_persistence": True}),
    ("fallback_model", {"model": "opus", "fallback_model": "opus"}),
    ("fallback_model", {"model": "opus", "fallback_model": ["haiku", "opus"]}),
    ("max_thinking_tokens", {"thinking": "disabled", "max_thinking_tokens": 1}),
    ("system_prompt", {"system_prompt": "", "system_prompt_file": "/p"}),
    ("append_system_prompt", {"append_system_prompt": "", "append_system_prompt_file": "/p"}),
    ("sandbox", {"sandbox": {}, "settings": "/s.json"}),
    ("sandbox", {"sandbox": {}, "settings": {"sandbox": {}}}),
)


@pytest.mark.parametrize(("option", "options"), WRONG_COMBINATIONS)
def test_options_that_exclude_each_other_are_refused(
    option: str, options: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=rf"^{option}: "):
        options_of(**options)


def test_no_thinking_may_be_said_twice() -> None:
    assert SessionOptions(thinking="disabled", max_thinking_tokens=0).max_thinking_tokens == 0


# Flags that values would smuggle in.


SMUGGLED: Final = (
    "--version",
    "-p",
    "--",
    "-",
    "--model=x",
    "a --bare",
    "a\n--bare",
    "=x",
    '"',
    "'",
)


@pytest.mark.parametrize("option", TEXTS)
@pytest.mark.parametrize("value", SMUGGLED)
def test_a_value_is_bound_to_its_flag(option: str, value: str) -> None:
    given = GIVEN.get(option, {})
    args = to_command_line(options_of(**{option: value}, **given)).args
    base = to_command_line(options_of(**given)).args
    assert f"{FLAG_OF[option]}={value}" in args
    assert len(args) == len(base) + (
        FLAG_OF[option] not in {str(a).partition("=")[0] for a in base}
    )


@given(option=st.sampled_from(TEXTS), value=st.text())
def test_no_text_adds_an_argument_or_becomes_one(option: str, value: str) -> None:
    given = GIVEN.get(option, {})
    if (options := accepted(option, value, **given)) is None:
        return
    base = {str(arg).partition("=")[0] for arg in to_command_line(options_of(**given)).args}
    args = [str(arg) for arg in to_command_line(options).args]
    flag = FLAG_OF[option]
    assert [arg.partition("=")[0] for arg in args].count(flag) == 1
    assert f"{flag}={getattr(options, option)}" in args
    assert {arg.partition("=")[0] for arg in args} == base | {flag}


@given(option=st.sampled_from(LISTS), value=st.lists(st.text(), max_size=4))
def test_no_item_of_a_list_adds_an_argument_or_becomes_one(option: str, value: list[str]) -> None:
    if (options := accepted(option, value)) is None:
        return
    flag = FLAG_OF[option]
    added = [str(arg) for arg in to_command_line(options).args if arg not in DEFAULT]
    assert all(arg.startswith(f"{flag}=") for arg in added)
    assert len(added) == (len(value) if option not in JOINED else len(added[:1]))
    assert ",".join(arg.removeprefix(f"{flag}=") for arg in added) == ",".join(value)


@given(st.dictionaries(st.text(min_size=1), st.none() | st.text(), max_size=4))
def test_extras_add_one_argument_each(extras: dict[str, str | None]) -> None:
    if (options := accepted("extra_args", extras)) is None:
        return
    added = to_command_line(options).args[len(DEFAULT) :]
    expected = [
        f"--{key}" if value is None else f"--{key}={value}" for key, value in extras.items()
    ]
    assert list(added) == expected


@pytest.mark.parametrize("flag", ["", "-", "--", "--new", "-n", "new=1", "new flag", "new\n", "ä"])
def test_an_extra_that_is_no_flag_is_refused(flag: str) -> None:
    refuse(ValueError, "extra_args", {flag: None})


@pytest.mark.parametrize("flag", sorted(TAKEN_FLAGS))
def test_an_extra_that_the_library_stands_for_is_refused(flag: str) -> None:
    said = refuse(ValueError, "extra_args", {flag: "x"})
    assert repr(flag) in said
    for option in re.findall(r"the option '(\w+)'", said):
        assert option in {field.name for field in attrs.fields(SessionOptions)}


@pytest.mark.parametrize("value", ["a\0", "\ud800"])
def test_an_extra_that_cannot_be_passed_is_refused(value: str) -> None:
    assert "'new'" in refuse(ValueError, "extra_args", {"new": value})


# Rules and skills.


def cli_rules(argument: str) -> list[str]:
    """Split a list of rules as CLI 2.1.332 does, written down anew."""
    rules: list[str] = []
    rule, inside = "", False
    for character in argument:
        match character:
            case "(":
                inside, rule = True, rule + character
            case ")":
                inside, rule = False, rule + character
            case "," | " " if not inside:
                rules.append(rule.strip())
                rule = ""
            case _:
                rule += character
    return [rule for rule in (*rules, rule.strip()) if rule]


LEGAL_RULES: Final = (
    *("Read", "mcp__server__tool", "mcp__server", "mcp__server__*", "Bash()", "Bash(*)"),
    *("Bash(git commit:*)", "Bash(git log, git show)", "Edit(/docs/**)", "Read(~/a b/*)"),
    *("WebFetch(domain:example.com)", "Bash(-x --y)", "-x", "Edit(//a/ü/日本)", "Skill(p:b)"),
)
SMUGGLED_RULES: Final = (
    *("Read,Bash", "Read Bash", "x) Bash(*", "Read, Bash(*)", "Bash(a),Bash", "Bash(a) Bash"),
    *("Bash(", "Bash(a", "Bash(a(b) c)", "Bash(a(b),c)", "Bash((a b) Edit)", ") Bash(a"),
    *("", " ", ",", " Read", "Read ", "Read\n", "\tRead", "Re\nad", "\ufeffRead", "Read\u2028"),
    *("Read\x00", "Read\x85", "\u00a0Read", "Read\u3000"),
)


@pytest.mark.parametrize("option", ["allowed_tools", "disallowed_tools", "tools"])
@pytest.mark.parametrize("rule", LEGAL_RULES)
def test_a_legal_rule_passes_unchanged(option: str, rule: str) -> None:
    args = to_command_line(options_of(**{option: [rule, "Glob"]})).args
    assert f"{FLAG_OF[option]}={rule},Glob" in args
    assert cli_rules(f"{rule},Glob") == [rule, "Glob"]


@pytest.mark.parametrize("option", ["allowed_tools", "disallowed_tools", "tools"])
@pytest.mark.parametrize("rule", SMUGGLED_RULES)
def test_a_rule_that_would_be_read_as_another_is_refused(option: str, rule: str) -> None:
    assert repr(rule) in refuse(ValueError, option, ["Glob", rule])


@given(st.lists(st.text(alphabet="ab(), :*\\-\n"), min_size=1, max_size=3))
def test_the_cli_reads_the_rules_that_were_meant(rules: list[str]) -> None:
    if (options := accepted("allowed_tools", rules)) is None:
        return
    argument = next(a for a in to_command_line(options).args if str(a).startswith("--allowed"))
    assert cli_rules(str(argument).partition("=")[2]) == rules


WRONG_SKILLS: Final = (
    *("x) Bash(*", "a,b", "a(b", "a)b", "*", "a:*", "a *", "a*b", "/a", "a\\b", "a\\", "", " a"),
    *("a ", "a\n", "\ufeffa", "\ud800", "a\x00", "a\u2029b"),
)


@pytest.mark.parametrize("name", WRONG_SKILLS)
def test_a_skill_that_would_be_another_rule_is_refused(name: str) -> None:
    refuse(ValueError, "skills", ["pdf", name])


@given(st.lists(st.text(alphabet="ab(), :*\\/-\n"), min_size=1, max_size=3))
def test_a_skill_allows_itself_and_nothing_else(names: list[str]) -> None:
    if (options := accepted("skills", names)) is None:
        return
    argument = next(a for a in to_command_line(options).args if str(a).startswith("--allowed"))
    rules = cli_rules(str(argument).partition("=")[2])
    assert rules == list(dict.fromkeys(f"Skill({name})" for name in names))


# Length.


def longest(flag: str) -> str:
    return "x" * (LONGEST_ARGUMENT - len(flag) - 1)


@pytest.mark.parametrize("option", [option for option in TEXTS if option != "permission_prompts"])
def test_an_argument_may_have_what_linux_takes_and_no_more(option: str) -> None:
    given, text = GIVEN.get(option, {}), longest(FLAG_OF[option])
    assert (
        f"{FLAG_OF[option]}={text}" in to_command_line(options_of(**{option: text}, **given)).args
    )
    with pytest.raises(ValueError, match=rf"^{option}: has {LONGEST_ARGUMENT + 1} bytes"):
        to_command_line(options_of(**{option: text + "x"}, **given))


def test_bytes_are_counted_and_not_characters() -> None:
    with pytest.raises(ValueError, match=r"^model: has 200008 bytes"):
        to_command_line(SessionOptions(model="ä" * 100_000))


@pytest.mark.parametrize("option", LISTS)
def test_a_list_that_is_too_long_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match=rf"^{option}: has \d+ bytes"):
        to_command_line(options_of(**{option: ["x" * LONGEST_ARGUMENT]}))


def test_long_json_that_no_file_can_hold_is_refused_unless_initialize_is_awaited() -> None:
    long = {"a": "x" * LONGEST_ARGUMENT}
    with pytest.raises(ValueError, match=r"^managed_settings: has"):
        to_command_line(SessionOptions(managed_settings=long))
    line = to_command_line(SessionOptions(managed_settings=long, await_initialize=True))
    assert line.initialize == {"managedSettings": long}


def test_an_extra_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^extra_args: has"):
        to_command_line(SessionOptions(extra_args={"new": longest("")}))


@pytest.mark.parametrize("option", ["settings", "mcp_servers", "sandbox"])
def test_long_json_goes_into_a_file(option: str) -> None:
    flag = FLAG_OF.get(option, "--settings")
    short = to_command_line(options_of(**{option: {"a": {"b": ""}}})).args
    empty = next(str(arg) for arg in short if str(arg).startswith(flag))
    room = LONGEST_ARGUMENT - len(empty)
    fits = to_command_line(options_of(**{option: {"a": {"b": "x" * room}}})).args
    assert max(len(str(arg)) for arg in fits) == LONGEST_ARGUMENT
    over = to_command_line(options_of(**{option: {"a": {"b": "x" * (room + 1)}}})).args
    (file,) = [arg for arg in over if isinstance(arg, FileArgument)]
    assert (file.flag, file.suffix) == (flag, ".json")
    assert file.option == (option if option in FLAG_OF else "settings")
    assert file.content == empty.partition("=")[2].replace('""', f'"{"x" * (room + 1)}"')
    assert file.argument("/f.json") == f"{flag}=/f.json"


@pytest.mark.parametrize("option", [*PROSE, "system_prompt"])
def test_a_long_text_is_never_an_argument(option: str) -> None:
    line = to_command_line(options_of(**{option: "x" * 1_000_000}))
    assert line.args == DEFAULT
    assert len(line.initialize) == 1


def test_many_agents_and_directories_are_fine() -> None:
    agents = {str(n): AgentDefinition(description="d", prompt="x" * 10_000) for n in range(60)}
    dirs = [f"/{n}" for n in range(300)]
    line = to_command_line(SessionOptions(agents=agents, add_dirs=dirs))
    assert line.args[len(DEFAULT) - 1 : -1] == tuple(f"--add-dir={name}" for name in dirs)


# What is shown.


def test_the_repr_shows_what_is_given_and_no_secret() -> None:
    options = SessionOptions(
        model="opus",
        env={"API_KEY": "secret"},
        extra_args={"token": "secret"},
        settings={"apiKeyHelper": "secret"},
        mcp_servers={"a": {"env": {"KEY": "secret"}}},
        add_dirs=["/a"],
        system_prompt="x" * 1000,
    )
    shown = repr(options)
    assert "secret" not in shown
    assert "x" * 100 not in shown
    assert shown.startswith("SessionOptions(env={'API_KEY': ...}, extra_args={'token': ...}, ")
    assert "model='opus'" in shown
    assert "continue_" not in shown
    assert repr(SessionOptions()) == "SessionOptions()"


def test_the_command_line_shows_no_secret() -> None:
    long = "secret" * 30_000
    line = to_command_line(
        SessionOptions(
            model="opus",
            settings={"apiKeyHelper": "secret"},
            mcp_servers={"a": {"env": {"KEY": long}}},
            mcp_config="/m.json",
            append_system_prompt="secret",
        )
    )
    assert "secret" not in repr(line)
    assert "secret" not in repr(line.args[-3:])
    assert "secret" not in " ".join(line.shown)
    assert set(line.shown) - set(DEFAULT) == {
        "--model=opus",
        "--settings=...",
        "--mcp-config=...",
        "--mcp-config=/m.json",
    }


@pytest.mark.parametrize("value", ["secret\0", "secret\ud800"])
def test_a_refusal_shows_no_secret(value: str) -> None:
    assert "secret" not in refuse(ValueError, "env", {"KEY": value})
    assert "secret" not in refuse(ValueError, "extra_args", {"key": value})


# Warnings.


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({}, []),
        ({"permission_mode": "plan"}, []),
        ({"permission_mode": "bypassPermissions"}, ["permission_mode"]),
        ({"permission_mode": "dontAsk"}, ["permission_mode"]),
        ({"permission_prompts": "none"}, ["permission_prompts"]),
        ({"permission_prompts": "host"}, []),
        ({"permission_prompt_tool": "mcp__a__b"}, ["permission_prompt_tool"]),
        ({"permission_prompt_tool": "stdio"}, []),
        ({"allowed_tools": ["Bash(git log:*)", "Skill(a)"]}, []),
        ({"allowed_tools": ["Read", "Edit()", "Bash(*)", "Glob(:*)"]}, ["allowed_tools"] * 4),
        ({"allowed_tools": ["mcp__server"]}, ["allowed_tools"]),
        ({"skills": "all"}, []),
        ({"settings": {"permissions": {"allow": ["Read", "Bash(ls)"]}}}, ["settings"]),
        ({"settings": {"permissions": {"allow": ["Bash(ls)", 3]}}}, []),
        ({"settings": {"permissions": {"allow": "Read"}}}, []),
        ({"settings": {"permissions": []}}, []),
        ({"settings": "/s.json"}, []),
        ({"sandbox": {"enabled": True}}, ["sandbox"]),
        ({"sandbox": {"enabled": False}}, []),
        ({"sandbox": {"enabled": True, "autoAllowBashIfSandboxed": False}}, []),
    ],
)
def test_what_keeps_requests_from_the_handler_is_warned_of(
    options: dict[str, object], warned: list[str]
) -> None:
    assert [text.partition(":")[0] for text in warnings_for(options_of(**options))] == warned
