"""The laws of the environment: what is inherited, what is ours, and who has the last word."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._options import (
    LONGEST_ARGUMENT,
    RUN_VARIABLE,
    SessionOptions,
    to_environment,
)
from claude_trio._options._command_line import ENCLOSING

OURS: Final = {
    "CLAUDE_AGENT_SDK_CLIENT_APP",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
}

NAMES: Final = (
    *("PATH", "PWD", "NODE_OPTIONS", "TRACEPARENT", "TRACESTATE", "A", "B"),
    *sorted(ENCLOSING),
    *sorted(OURS),
)
texts = st.sampled_from(("", "1", "ü", "--inspect"))
environments = st.dictionaries(st.sampled_from(NAMES), texts, max_size=8)
changes = st.dictionaries(st.sampled_from(NAMES), st.none() | texts, max_size=8)


@given(inherited=environments, env=changes)
def test_the_caller_has_the_last_word(
    inherited: dict[str, str], env: dict[str, str | None]
) -> None:
    options = SessionOptions(env=env, cwd="/work", auto_memory=False, client_app="x")
    environment = to_environment(options, inherited)
    for name, value in env.items():
        assert environment.get(name) == value


@given(inherited=environments, env=changes)
def test_what_nobody_speaks_of_is_inherited(
    inherited: dict[str, str], env: dict[str, str | None]
) -> None:
    environment = to_environment(SessionOptions(env=env), inherited)
    spoken_of = {*ENCLOSING, *OURS, *env, "NODE_OPTIONS", "TRACESTATE"}
    for name in inherited.keys() - spoken_of:
        assert environment[name] == inherited[name]
    assert environment.keys() <= {*inherited, *OURS, *env}


@given(inherited=environments, env=changes)
def test_nothing_of_an_enclosing_session_is_inherited(
    inherited: dict[str, str], env: dict[str, str | None]
) -> None:
    environment = to_environment(SessionOptions(env=env), inherited)
    assert environment.keys() & ENCLOSING <= {"CLAUDE_CODE_ENTRYPOINT", *env}


@given(inherited=environments, env=changes)
def test_what_is_given_stays_as_it_is(
    inherited: dict[str, str], env: dict[str, str | None]
) -> None:
    before = dict(inherited)
    to_environment(SessionOptions(env=env), inherited, run="r")
    assert inherited == before


def test_an_enclosing_session_leaves_its_own_entry_point_behind() -> None:
    environment = to_environment(SessionOptions(), {"CLAUDE_CODE_ENTRYPOINT": "cli"})
    assert environment["CLAUDE_CODE_ENTRYPOINT"] == "sdk-py"


def test_the_callers_own_marks_win_over_ours() -> None:
    env = {"CLAUDECODE": "1", "CLAUDE_CODE_SDK_READS_SESSION_STATE": None}
    environment = to_environment(SessionOptions(env=env), {})
    assert environment["CLAUDECODE"] == "1"
    assert "CLAUDE_CODE_SDK_READS_SESSION_STATE" not in environment


def test_the_programs_own_name_is_inherited() -> None:
    inherited = {"CLAUDE_AGENT_SDK_CLIENT_APP": "app/1"}
    assert to_environment(SessionOptions(), inherited)["CLAUDE_AGENT_SDK_CLIENT_APP"] == "app/1"


def test_an_option_wins_over_what_is_inherited() -> None:
    inherited = {"CLAUDE_AGENT_SDK_CLIENT_APP": "app/1"}
    environment = to_environment(SessionOptions(client_app="app/2"), inherited)
    assert environment["CLAUDE_AGENT_SDK_CLIENT_APP"] == "app/2"


@pytest.mark.parametrize("debugger", ["--inspect", "--inspect-brk=0", "-r x --inspect", "--debug"])
def test_a_debugger_of_this_process_does_not_end_the_cli(debugger: str) -> None:
    assert "NODE_OPTIONS" not in to_environment(SessionOptions(), {"NODE_OPTIONS": debugger})


def test_other_options_for_node_are_inherited() -> None:
    inherited = {"NODE_OPTIONS": "--max-old-space-size=4096"}
    assert to_environment(SessionOptions(), inherited)["NODE_OPTIONS"] == inherited["NODE_OPTIONS"]


def test_the_state_of_another_trace_is_not_inherited() -> None:
    inherited = {"TRACEPARENT": "old", "TRACESTATE": "old"}
    assert to_environment(SessionOptions(), inherited).items() >= inherited.items()
    environment = to_environment(SessionOptions(env={"TRACEPARENT": "new"}), inherited)
    assert environment["TRACEPARENT"] == "new"
    assert "TRACESTATE" not in environment


def test_the_working_directory_is_named_right_or_not_at_all() -> None:
    inherited = {"PWD": "/old"}
    assert to_environment(SessionOptions(), inherited)["PWD"] == "/old"
    assert to_environment(SessionOptions(cwd="/new"), inherited)["PWD"] == "/new"
    assert "PWD" not in to_environment(SessionOptions(cwd="new"), inherited)
    options = SessionOptions(cwd="/new", env={"PWD": "/mine"})
    assert to_environment(options, inherited)["PWD"] == "/mine"


def test_nested_runs_keep_the_outer_marks() -> None:
    options = SessionOptions()
    outer = to_environment(options, {}, run="a")
    assert outer[RUN_VARIABLE] == "a"
    inner = to_environment(options, outer, run="b")
    assert inner[RUN_VARIABLE] == "a:b"
    assert to_environment(options, inner, run="c")[RUN_VARIABLE] == "a:b:c"
    assert to_environment(options, inner)[RUN_VARIABLE] == "a:b"


def test_the_runs_mark_is_not_the_callers() -> None:
    for value in ("x", None):
        with pytest.raises(ValueError, match=f"^env: '{RUN_VARIABLE}'"):
            SessionOptions(env={RUN_VARIABLE: value})


@pytest.mark.parametrize("name", ["", "A=B", "A\0", "\ud800"])
def test_what_names_no_variable_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^env: "):
        SessionOptions(env={name: "1"})


@pytest.mark.parametrize("value", ["a\0", "\ud800", "x" * LONGEST_ARGUMENT])
def test_what_no_variable_can_hold_is_refused_with_its_name(value: str) -> None:
    with pytest.raises(ValueError, match=r"^env: 'KEY': h"):
        SessionOptions(env={"KEY": value})


def test_a_variable_may_have_what_linux_takes() -> None:
    longest = "x" * (LONGEST_ARGUMENT - len("KEY="))
    assert to_environment(SessionOptions(env={"KEY": longest}), {})["KEY"] == longest
