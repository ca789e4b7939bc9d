"""Each option, one by one: what the CLI is started with, and what it is told."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import attrs
import pytest

from claude_trio._options import (
    AgentDefinition,
    CommandLine,
    FileArgument,
    SessionOptions,
    to_command_line,
    to_environment,
)
from claude_trio._options._flags import ENVIRONMENT, FIELDS, FLAGS, TAKEN_FLAGS

if TYPE_CHECKING:
    from collections.abc import Mapping

ID: Final = "0b7f3c1e-9a54-4f62-8d1b-6a2f4c9e1d70"
OTHER_ID: Final = "c3c1f9e8-2b1d-4a8e-9f43-5d0c6b7a8e92"

DEFAULT: Final = (
    "--output-format=stream-json",
    "--verbose",
    "--input-format=stream-json",
    "--permission-prompt-tool=stdio",
    "--permission-mode=default",
    "--include-partial-messages",
)
DEFAULT_ENVIRONMENT: Final = {
    "CLAUDE_AGENT_SDK_CLIENT_APP": "claude-trio",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
}


class Color(enum.Enum):
    RED = "red"


class Text(str, enum.Enum):  # noqa: UP042  Its `str()` is not its value.
    RED = "red"


class Row:
    """One value of one option; ``given`` is what it needs beside it."""

    def __init__(
        self,
        option: str,
        value: object,
        *args: str,
        removed: str | None = None,
        initialize: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        unset: str | None = None,
        **given: object,
    ) -> None:
        self.option, self.value, self.args = option, value, list(args)
        self.removed = [] if removed is None else [removed]
        self.initialize = initialize or {}
        self.env, self.unset = env or {}, unset
        self.given = given

    def __repr__(self) -> str:
        return f"{self.option}={self.value!r}"


def options_of(**options: Any) -> SessionOptions:
    return SessionOptions(**options)


SWITCHES: Final = {
    "continue_": "--continue",
    "no_session_persistence": "--no-session-persistence",
    "session_mirror": "--session-mirror",
    "allow_dangerously_skip_permissions": "--allow-dangerously-skip-permissions",
    "restricted": "--restricted",
    "brief": "--brief",
    "strict_mcp_config": "--strict-mcp-config",
    "disable_slash_commands": "--disable-slash-commands",
    "bare": "--bare",
    "safe_mode": "--safe-mode",
    "include_hook_events": "--include-hook-events",
    "replay_user_messages": "--replay-user-messages",
    "debug_to_stderr": "--debug-to-stderr",
    "await_initialize": "--await-initialize",
}

AGENT: Final = {"description": "reviews", "prompt": "You review."}

TABLE: Final = (
    # How the CLI is started.
    Row("command", ["ssh", "host", Path("claude")]),
    Row("keep_daemons", True),
    Row("cwd", "/work", env={"PWD": "/work"}),
    Row("cwd", Path("/work"), env={"PWD": "/work"}),
    Row("cwd", "sub", unset="PWD"),
    Row("env", {"A": "1"}, env={"A": "1"}),
    Row("env", {"A": ""}, env={"A": ""}),
    Row("env", {}),
    Row("env", {"CLAUDE_CODE_ENTRYPOINT": None}, unset="CLAUDE_CODE_ENTRYPOINT"),
    Row("extra_args", {}),
    Row("extra_args", {"new-flag": "-x", "new-switch": None}, "--new-flag=-x", "--new-switch"),
    Row("extra_args", {"new-flag": ""}, "--new-flag="),
    # Which conversation.
    Row("session_id", ID, f"--session-id={ID}"),
    Row("session_id", UUID(ID), f"--session-id={ID}"),
    Row("session_id", ID.upper(), f"--session-id={ID}"),
    Row("session_id", ID, f"--session-id={ID}", resume=OTHER_ID, fork_session=True),
    Row("session_id", ID, f"--session-id={ID}", continue_=True, fork_session=True),
    Row("resume", ID, f"--resume={ID}"),
    Row("resume", UUID(ID), f"--resume={ID}"),
    Row("resume", "a title", "--resume=a title"),
    Row("fork_session", True, "--fork-session", resume=ID),
    Row("fork_session", True, "--fork-session", continue_=True),
    Row("resume_session_at", ID, f"--resume-session-at={ID}", resume=OTHER_ID),
    Row(
        *("resume_drops_turn", ID, f"--resume-drops-turn={ID}"),
        resume=OTHER_ID,
        resume_session_at=OTHER_ID,
    ),
    Row("title", "A title", initialize={"title": "A title"}),
    Row("title", "", initialize={"title": ""}),
    Row(
        *("file_checkpointing", True),
        env={"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"},
    ),
    Row("file_checkpointing", False, unset="CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"),
    # The model.
    Row("model", "opus", "--model=opus"),
    Row("model", "-x", "--model=-x"),
    Row("model", Text.RED, "--model=red"),
    Row("model", Color.RED, "--model=red"),
    Row("fallback_model", "haiku", "--fallback-model=haiku"),
    Row("fallback_model", "haiku,sonnet", "--fallback-model=haiku,sonnet"),
    Row("fallback_model", ["haiku", "sonnet"], "--fallback-model=haiku,sonnet"),
    Row("fallback_model", []),
    Row("betas", ["a", "b,c"], "--betas=a", "--betas=b,c"),
    Row("betas", []),
    Row("effort", "low", "--effort=low"),
    Row("thinking", "adaptive", "--thinking=adaptive"),
    Row("max_thinking_tokens", 2000, "--max-thinking-tokens=2000"),
    Row("max_thinking_tokens", 0, "--max-thinking-tokens=0"),
    Row("thinking_display", "omitted", "--thinking-display=omitted"),
    Row("max_turns", 3, "--max-turns=3"),
    Row("max_budget_usd", 0.5, "--max-budget-usd=0.5"),
    Row("max_budget_usd", 2, "--max-budget-usd=2"),
    Row("task_budget", 50_000, "--task-budget=50000"),
    Row("autocompact", 200_000, "--autocompact=200000"),
    Row("autocompact", "auto", "--autocompact=auto"),
    # What it is told.
    Row("system_prompt", "You are x.", initialize={"systemPrompt": ["You are x."]}),
    Row("system_prompt", ["a", "b"], initialize={"systemPrompt": ["a", "b"]}),
    Row("system_prompt", "", initialize={"systemPrompt": [""]}),
    Row("system_prompt", [], initialize={"systemPrompt": []}),
    Row("system_prompt_file", Path("/p.txt"), "--system-prompt-file=/p.txt"),
    Row("append_system_prompt", "And y.", initialize={"appendSystemPrompt": "And y."}),
    Row("append_system_prompt", "", initialize={"appendSystemPrompt": ""}),
    Row("append_system_prompt_file", "/p.txt", "--append-system-prompt-file=/p.txt"),
    Row(
        *("append_subagent_system_prompt", "And z."),
        initialize={"appendSubagentSystemPrompt": "And z."},
        env={"CLAUDE_CODE_ENABLE_APPEND_SUBAGENT_PROMPT": "1"},
    ),
    Row("system_prompt_snapshot", True, initialize={"systemPromptSnapshot": True}),
    Row("system_prompt_snapshot", False, initialize={"systemPromptSnapshot": False}),
    Row("exclude_dynamic_sections", True, initialize={"excludeDynamicSections": True}),
    Row("exclude_dynamic_sections", False, initialize={"excludeDynamicSections": False}),
    Row("plan_mode_instructions", "Think.", initialize={"planModeInstructions": "Think."}),
    Row("json_schema", {"type": "object"}, initialize={"jsonSchema": {"type": "object"}}),
    Row("json_schema", {}, initialize={"jsonSchema": {}}),
    # What it may do.
    Row("tools", ["Bash", "Read"], "--tools=Bash,Read"),
    Row("tools", "default", "--tools=default"),
    Row("tools", [], "--tools="),
    Row("allowed_tools", ["Read", "Bash(git log:*)"], "--allowedTools=Read,Bash(git log:*)"),
    Row("allowed_tools", []),
    Row("disallowed_tools", ["Bash(rm *)", "Edit"], "--disallowedTools=Bash(rm *),Edit"),
    Row("disallowed_tools", []),
    Row("tool_aliases", {"Bash": "mcp__a__b"}, initialize={"toolAliases": {"Bash": "mcp__a__b"}}),
    Row("tool_aliases", {}, initialize={"toolAliases": {}}),
    Row(
        "skills",
        ["a", "p:b"],
        "--allowedTools=Skill(a),Skill(p:b)",
        initialize={"skills": ["a", "p:b"]},
    ),
    Row("skills", "all", "--allowedTools=Skill"),
    Row("skills", [], initialize={"skills": []}),
    Row("permission_mode", "plan", "--permission-mode=plan", removed="--permission-mode=default"),
    Row("permission_mode", "default"),
    Row(
        *("permission_prompt_tool", "mcp__a__ask", "--permission-prompt-tool=mcp__a__ask"),
        removed="--permission-prompt-tool=stdio",
    ),
    Row("permission_prompts", "none", "--permission-prompts=none"),
    Row("sandbox", {}, '--settings={"sandbox":{}}'),
    Row("sandbox", {"enabled": False}, '--settings={"sandbox":{"enabled":false}}'),
    Row(
        *("sandbox", {"enabled": True}),
        '--settings={"sandbox":{"enabled":true,"failIfUnavailable":true}}',
    ),
    Row(
        *("sandbox", {"enabled": True, "failIfUnavailable": False}),
        '--settings={"sandbox":{"enabled":true,"failIfUnavailable":false}}',
    ),
    Row(
        *("question_preview_format", "html"),
        env={"CLAUDE_CODE_QUESTION_PREVIEW_FORMAT": "html"},
    ),
    # Agents.
    Row("agents", {"r": AGENT}, initialize={"agents": {"r": AGENT}}),
    Row(
        "agents",
        {"r": AgentDefinition(description="reviews", prompt="You review.")},
        initialize={"agents": {"r": AGENT}},
    ),
    Row("agents", {}, initialize={"agents": {}}),
    Row("agent", "r", "--agent=r"),
    Row("forward_subagent_text", True, initialize={"forwardSubagentText": True}),
    Row("forward_subagent_text", False, initialize={"forwardSubagentText": False}),
    Row("agent_progress_summaries", True, initialize={"agentProgressSummaries": True}),
    # Where things come from.
    Row("setting_sources", ["user", "project"], "--setting-sources=user,project"),
    Row("setting_sources", [], "--setting-sources="),
    Row("settings", {"model": "haiku"}, '--settings={"model":"haiku"}'),
    Row("settings", {}, "--settings={}"),
    Row("settings", "/s.json", "--settings=/s.json"),
    Row("settings", Path("/s.json"), "--settings=/s.json"),
    Row("managed_settings", {"a": [1]}, '--managed-settings={"a":[1]}'),
    Row("auto_memory", True, env={"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"}),
    Row("auto_memory", False, env={"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}),
    Row(
        *("mcp_servers", {"a": {"command": "x"}}),
        '--mcp-config={"mcpServers":{"a":{"command":"x"}}}',
    ),
    Row("mcp_servers", {}, '--mcp-config={"mcpServers":{}}'),
    Row("mcp_config", "/m.json", "--mcp-config=/m.json"),
    Row("mcp_config", ["/m.json", Path("/n.json")], "--mcp-config=/m.json", "--mcp-config=/n.json"),
    Row("mcp_config", []),
    Row("plugin_dirs", ["/a", Path("/b")], "--plugin-dir=/a", "--plugin-dir=/b"),
    Row("plugin_dirs_no_mcp", Path("/a"), "--plugin-dir-no-mcp=/a"),
    Row("plugin_urls", ["http://a/b.zip"], "--plugin-url=http://a/b.zip"),
    Row("add_dirs", ["/a, b", Path("-c")], "--add-dir=/a, b", "--add-dir=-c"),
    Row("add_dirs", []),
    Row("project_config_root", Path("/r"), "--project-config-root=/r"),
    Row("worktree", True, "--worktree"),
    Row("worktree", False),
    Row("worktree", "w", "--worktree=w"),
    # What is heard, and what helps.
    Row("include_partial_messages", False, removed="--include-partial-messages"),
    Row("prompt_suggestions", True, "--prompt-suggestions=true"),
    Row("prompt_suggestions", False, "--prompt-suggestions=false"),
    Row("supported_dialog_kinds", ["a"], initialize={"supportedDialogKinds": ["a"]}),
    Row("supported_dialog_kinds", [], initialize={"supportedDialogKinds": []}),
    Row("debug", True, "--debug"),
    Row("debug", False),
    Row("debug", "hooks,!mcp", "--debug=hooks,!mcp"),
    Row("debug_file", Path("/d.log"), "--debug-file=/d.log"),
    Row("client_app", "app/1", env={"CLAUDE_AGENT_SDK_CLIENT_APP": "app/1"}),
    Row("client_app", "", env={"CLAUDE_AGENT_SDK_CLIENT_APP": ""}),
    *(Row(option, True, flag) for option, flag in SWITCHES.items()),
    *(Row(option, False) for option in SWITCHES),
)
NAMES: Final = frozenset(field.name for field in attrs.fields(SessionOptions))


def without(base: CommandLine, line: CommandLine) -> list[str | FileArgument]:
    """Give what one command line has and the other has not, in its order."""
    return [argument for argument in line.args if argument not in base.args]


@pytest.mark.parametrize("row", TABLE, ids=repr)
def test_an_option_becomes_exactly_this(row: Row) -> None:
    base, options = options_of(**row.given), options_of(**row.given, **{row.option: row.value})
    line, base_line = to_command_line(options), to_command_line(base)
    assert without(base_line, line) == row.args
    assert without(line, base_line) == row.removed
    assert dict(line.initialize) == {**base_line.initialize, **row.initialize}


@pytest.mark.parametrize("row", TABLE, ids=repr)
def test_an_option_changes_exactly_these_variables(row: Row) -> None:
    inherited = {"KEPT": "1", "PWD": "/old", "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}
    expected = {**inherited, **DEFAULT_ENVIRONMENT, **row.env}
    if row.unset is not None:
        del expected[row.unset]
    options = options_of(**row.given, **{row.option: row.value})
    assert to_environment(options, inherited) == expected


def test_by_default_nothing_more_is_said() -> None:
    line = to_command_line(SessionOptions())
    assert line.args == DEFAULT
    assert line.initialize == {}
    assert to_environment(SessionOptions(), {}) == DEFAULT_ENVIRONMENT


def test_every_option_has_its_rows() -> None:
    assert {row.option for row in TABLE} == NAMES


def test_every_option_travels_one_way() -> None:
    elsewhere = ["command", "cwd", "env", "extra_args", "keep_daemons", "sandbox"]
    ways = [*elsewhere, *(row[0] for table in (FLAGS, FIELDS, ENVIRONMENT) for row in table)]
    assert sorted(ways) == sorted(NAMES)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_default_may_be_said_and_says_nothing(name: str) -> None:
    bare = SessionOptions()
    options = options_of(**{name: getattr(bare, name)})
    assert options == bare
    assert to_command_line(options) == to_command_line(bare)


@pytest.mark.parametrize("row", TABLE, ids=repr)
def test_a_flag_that_the_library_writes_is_no_extra(row: Row) -> None:
    options = options_of(**row.given, **{row.option: row.value})
    written = [str(argument) for argument in to_command_line(options).args]
    extras = set(options.extra_args)
    assert {arg.partition("=")[0].removeprefix("--") for arg in written} - extras <= set(
        TAKEN_FLAGS
    )


def test_options_keep_the_order_of_the_table_and_extras_come_last() -> None:
    options = SessionOptions(
        extra_args={"zzz": "1", "aaa": None},
        debug=True,
        add_dirs=["/a"],
        model="opus",
        permission_mode="plan",
        session_id=ID,
    )
    assert to_command_line(options).args == (
        *DEFAULT[:4],
        "--permission-mode=plan",
        f"--session-id={ID}",
        "--model=opus",
        "--add-dir=/a",
        "--include-partial-messages",
        "--debug",
        "--zzz=1",
        "--aaa",
    )


# Session ids.


def test_a_new_session_gets_the_id_that_was_chosen_for_it() -> None:
    assert f"--session-id={ID}" in to_command_line(SessionOptions(), session_id=ID).args


def test_a_fork_gets_the_id_that_was_chosen_for_it() -> None:
    for options in (
        SessionOptions(resume=OTHER_ID, fork_session=True),
        SessionOptions(continue_=True, fork_session=True),
    ):
        assert f"--session-id={ID}" in to_command_line(options, session_id=ID).args


def test_a_session_that_goes_on_keeps_its_id() -> None:
    for options in (SessionOptions(resume=OTHER_ID), SessionOptions(continue_=True)):
        args = to_command_line(options, session_id=ID).args
        assert not [arg for arg in args if str(arg).startswith("--session-id")]


def test_the_options_own_id_comes_before_the_chosen_one() -> None:
    args = to_command_line(SessionOptions(session_id=OTHER_ID), session_id=ID).args
    assert f"--session-id={OTHER_ID}" in args
    assert f"--session-id={ID}" not in args


# What is made of several options.


def test_skills_join_the_rules_that_are_given() -> None:
    options = SessionOptions(allowed_tools=["Read", "Skill(a)"], skills=["a", "b"])
    assert "--allowedTools=Read,Skill(a),Skill(b)" in to_command_line(options).args


def test_the_sandbox_joins_the_settings() -> None:
    options = SessionOptions(settings={"model": "haiku"}, sandbox={"network": {}})
    expected = '--settings={"model":"haiku","sandbox":{"network":{}}}'
    assert expected in to_command_line(options).args
    assert options.settings == {"model": "haiku"}


def test_an_awaited_initialize_takes_what_may_be_secret() -> None:
    servers = {"a": {"command": "x", "env": {"KEY": "secret"}}}
    options = SessionOptions(
        await_initialize=True,
        settings={"apiKeyHelper": "secret"},
        sandbox={"enabled": False},
        managed_settings={"b": 1},
        mcp_servers=servers,
        plugin_dirs=["/p"],
        plugin_dirs_no_mcp=["/q"],
    )
    line = to_command_line(options)
    assert without(to_command_line(SessionOptions()), line) == [
        "--await-initialize",
        "--initialize-fields=settings",
        "--managed-settings-in-initialize",
    ]
    assert line.initialize == {
        "settings": {"apiKeyHelper": "secret", "sandbox": {"enabled": False}},
        "managedSettings": {"b": 1},
        "mcpServers": servers,
        "plugins": [
            {"type": "local", "path": "/p"},
            {"type": "local", "path": "/q", "skipMcpDiscovery": True},
        ],
    }


def test_an_awaited_initialize_keeps_empty_apart_from_missing() -> None:
    options = SessionOptions(await_initialize=True, settings={}, mcp_servers={})
    line = to_command_line(options)
    assert "--initialize-fields=settings" in line.args
    assert line.initialize == {"settings": {}, "mcpServers": {}}
    assert to_command_line(SessionOptions(await_initialize=True)).initialize == {}


def test_an_awaited_initialize_leaves_a_path_on_the_command_line() -> None:
    line = to_command_line(SessionOptions(await_initialize=True, settings="/s.json"))
    assert without(to_command_line(SessionOptions(await_initialize=True)), line) == [
        "--settings=/s.json"
    ]
    assert line.initialize == {}


def test_isolated_ignores_what_others_have_configured() -> None:
    isolated = SessionOptions.isolated()
    assert isolated == SessionOptions(setting_sources=(), strict_mcp_config=True, auto_memory=False)
    args = to_command_line(isolated).args
    assert {"--setting-sources=", "--strict-mcp-config"} <= set(args)


def test_isolated_gives_way_to_what_is_said() -> None:
    options = SessionOptions.isolated(setting_sources=["project"], model="haiku")
    assert options.setting_sources == ("project",)
    assert options.model == "haiku"
    assert options.strict_mcp_config


# What travels is not what was given in.


def test_a_definition_is_spelled_as_the_cli_does() -> None:
    agent = AgentDefinition(
        description="d",
        prompt="p",
        tools=["Read"],
        disallowed_tools=[],
        mcp_servers=["a", {"b": {"command": "x"}}],
        max_turns=3,
        background=False,
        effort="low",
        permission_mode="plan",
        initial_prompt="go",
        omit_claude_md=True,
        auto_compact_window=100_000,
        observer="o",
        observer_message="m",
    )
    assert to_command_line(SessionOptions(agents={"r": agent})).initialize["agents"] == {
        "r": {
            "description": "d",
            "prompt": "p",
            "tools": ["Read"],
            "disallowedTools": [],
            "mcpServers": ["a", {"b": {"command": "x"}}],
            "maxTurns": 3,
            "background": False,
            "effort": "low",
            "permissionMode": "plan",
            "initialPrompt": "go",
            "omitClaudeMd": True,
            "autoCompactWindow": 100_000,
            "observer": "o",
            "observerMessage": "m",
        }
    }


def test_later_changes_of_the_callers_own_do_not_reach_the_options() -> None:
    env: dict[str, str | None] = {"A": "1"}
    nested: dict[str, object] = {"deny": []}
    dirs = ["/a"]
    options = SessionOptions(env=env, settings={"permissions": nested}, add_dirs=dirs)
    env["A"] = "2"
    nested["allow"] = ["Bash"]
    dirs.append("/b")
    assert options == SessionOptions(
        env={"A": "1"}, settings={"permissions": {"deny": []}}, add_dirs=["/a"]
    )


def test_a_changed_copy_is_checked_again() -> None:
    options = SessionOptions(model="opus")
    assert attrs.evolve(options, model="haiku").model == "haiku"
    with pytest.raises(ValueError, match=r"^fallback_model: "):
        attrs.evolve(options, fallback_model=["opus"])
