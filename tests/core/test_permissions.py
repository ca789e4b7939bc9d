"""The laws of permissions: every request reads, every decision has an answer, doubt denies."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._ndjson import encode
from claude_trio.permissions import (
    DEFER,
    AddDirectories,
    AddRules,
    Allow,
    Decision,
    Deny,
    Destination,
    OtherUpdate,
    PermissionOpinion,
    PermissionRequest,
    PermissionRule,
    Policy,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    RuleBehavior,
    SetMode,
    allow_all,
    allow_tools,
    deny_all,
    deny_tools,
    first_of,
    parse_update,
    to_response,
)

# As the CLI writes it (2.1.332).
RAW: dict[str, object] = {
    "subtype": "can_use_tool",
    "tool_name": "Bash",
    "display_name": "Bash",
    "input": {"command": "touch zz", "description": "d"},
    "description": "d",
    "permission_suggestions": [
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "touch zz *"}],
            "behavior": "allow",
            "destination": "localSettings",
        },
        {"type": "addDirectories", "directories": ["/project"], "destination": "session"},
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    ],
    "blocked_path": "/project/zz",
    "decision_reason": "Path is outside allowed working directories",
    "decision_reason_type": "workingDir",
    "tool_use_id": "toolu_01",
    "agent_id": "a1b2",
    "mcp_server": {"name": "little", "source": "dynamic"},
    "requires_user_interaction": True,
    "title": "Run it?",
    "server_policy_ask_only": True,
}


def asked(tool_name: str = "Bash", **fields: object) -> PermissionRequest:
    return PermissionRequest.from_request("r1", {"tool_name": tool_name, "input": {}, **fields})


def decided(handler: PermissionOpinion, request: PermissionRequest) -> Decision | None:
    """Run a handler that has nothing to wait for."""
    steps = handler(request).__await__()
    with pytest.raises(StopIteration) as stop:
        next(steps)
    value: Decision | None = stop.value.value
    return value


# --------------------------------------------------------------------------------- requests


def test_a_request_reads_into_its_attributes() -> None:
    request = PermissionRequest.from_request("r1", RAW)
    assert request == PermissionRequest(
        id="r1",
        tool_name="Bash",
        input={"command": "touch zz", "description": "d"},
        tool_use_id="toolu_01",
        agent_id="a1b2",
        title="Run it?",
        display_name="Bash",
        description="d",
        decision_reason="Path is outside allowed working directories",
        decision_reason_type="workingDir",
        blocked_path="/project/zz",
        requires_user_interaction=True,
        mcp_server="little",
        raw=RAW,
    )
    assert request.raw["server_policy_ask_only"] is True
    assert request.suggestions == (
        AddRules(
            rules=(PermissionRule(tool_name="Bash", rule_content="touch zz *"),),
            behavior=RuleBehavior.ALLOW,
            destination=Destination.LOCAL_SETTINGS,
        ),
        AddDirectories(directories=("/project",), destination=Destination.SESSION),
        SetMode(mode="acceptEdits", destination=Destination.SESSION),
    )


@pytest.mark.parametrize("odd", [None, 3, [], {}, [None], [3], [{}], {"name": 3}, True])
@pytest.mark.parametrize("field", [*RAW, "nothing"])
def test_what_is_missing_or_odd_counts_as_not_given(field: str, odd: object) -> None:
    for raw in ({**RAW, field: odd}, {k: v for k, v in RAW.items() if k != field}):
        request = PermissionRequest.from_request("r1", raw)
        assert isinstance(request.tool_name, str)
        assert request.input.keys() <= {"command", "description", "name"}
        assert request.raw == raw
        assert to_response(Allow(), request)["updatedInput"] == request.input


def test_a_request_without_a_name_and_an_input_is_denied_and_allowed_like_any_other() -> None:
    request = PermissionRequest.from_request("r1", {})
    assert request == PermissionRequest(id="r1", tool_name="", input={})
    assert isinstance(decided(deny_all, request), Deny)
    assert to_response(Allow(), request) == {"behavior": "allow", "updatedInput": {}}


# ---------------------------------------------------------------------------------- answers


def test_allow_always_carries_an_input() -> None:
    request = asked(input={"command": "ls"})
    assert to_response(Allow(), request) == {
        "behavior": "allow",
        "updatedInput": {"command": "ls"},
    }
    assert to_response(Allow({"command": "pwd"}), request)["updatedInput"] == {"command": "pwd"}
    assert to_response(Allow(updated_input={}), request)["updatedInput"] == {}


def test_allow_sends_back_what_the_cli_offered_as_it_came() -> None:
    request = PermissionRequest.from_request("r1", RAW)
    response = to_response(Allow(updated_permissions=request.suggestions), request)
    assert response["updatedPermissions"] == RAW["permission_suggestions"]
    assert json.loads(encode(response)) == response
    assert "updatedPermissions" not in to_response(Allow(updated_permissions=[]), request)


def test_deny_always_carries_a_message() -> None:
    assert to_response(Deny("why"), asked()) == {"behavior": "deny", "message": "why"}
    assert to_response(Deny("why", interrupt=True), asked()) == {
        "behavior": "deny",
        "message": "why",
        "interrupt": True,
    }


@pytest.mark.parametrize("message", ["", " ", "\n"])
def test_a_denial_without_words_is_refused(message: str) -> None:
    with pytest.raises(ValueError, match="message"):
        Deny(message)
    with pytest.raises(ValueError, match="message"):
        deny_tools("Bash", message=message)


@pytest.mark.parametrize("value", [None, 1, b"no", ["no"]])
def test_a_message_that_is_no_string_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        Deny(value)


@pytest.mark.parametrize("value", [1, "x", [("a", 1)]])
def test_an_input_that_is_no_mapping_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        Allow(value)


@pytest.mark.parametrize("value", [1, "x", {"type": "setMode"}, [{}], [None]])
def test_permissions_that_are_no_updates_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        Allow(updated_permissions=value)


def test_a_deferral_is_no_answer() -> None:
    with pytest.raises(ValueError, match="open"):
        to_response(DEFER, asked())


@pytest.mark.parametrize("value", [None, True, "allow", {"behavior": "allow"}, Allow, Deny])
def test_what_is_no_decision_is_never_an_answer(value: Any) -> None:
    with pytest.raises(TypeError):
        to_response(value, asked())


# ---------------------------------------------------------------------------------- updates

RULES = (PermissionRule(tool_name="Bash"), PermissionRule(tool_name="Read", rule_content="/x"))
WIRE_RULES = [{"toolName": "Bash"}, {"toolName": "Read", "ruleContent": "/x"}]


@pytest.mark.parametrize(
    ("update", "kind"),
    [(AddRules, "addRules"), (ReplaceRules, "replaceRules"), (RemoveRules, "removeRules")],
)
@pytest.mark.parametrize("behavior", RuleBehavior)
@pytest.mark.parametrize("destination", Destination)
def test_rule_updates_are_spelt_as_the_cli_spells_them(
    update: type[AddRules | ReplaceRules | RemoveRules],
    kind: str,
    behavior: RuleBehavior,
    destination: Destination,
) -> None:
    made = update(rules=RULES, behavior=behavior, destination=destination)
    wire = made.to_wire()
    assert wire == {
        "type": kind,
        "rules": WIRE_RULES,
        "behavior": behavior.value,
        "destination": destination.value,
    }
    assert parse_update(json.loads(encode(wire))) == made


@pytest.mark.parametrize(
    ("made", "wire"),
    [
        (
            AddDirectories(directories=("/a", "/b"), destination=Destination.SESSION),
            {"type": "addDirectories", "directories": ["/a", "/b"], "destination": "session"},
        ),
        (
            RemoveDirectories(directories=(), destination=Destination.CLI_ARG),
            {"type": "removeDirectories", "directories": [], "destination": "cliArg"},
        ),
        (
            SetMode(mode="plan", destination=Destination.USER_SETTINGS),
            {"type": "setMode", "mode": "plan", "destination": "userSettings"},
        ),
        (OtherUpdate(raw={"type": "new", "x": [1]}), {"type": "new", "x": [1]}),
    ],
)
def test_other_updates_are_spelt_as_the_cli_spells_them(made: Any, wire: dict[str, object]) -> None:
    assert made.to_wire() == wire
    assert parse_update(wire) == made


def test_updates_of_different_kinds_are_different() -> None:
    fields: dict[str, Any] = {
        "rules": RULES,
        "behavior": RuleBehavior.DENY,
        "destination": Destination.SESSION,
    }
    assert AddRules(**fields) == AddRules(**fields)
    other: object = RemoveRules(**fields)
    assert AddRules(**fields) != other


WORDS = st.sampled_from(
    [
        "addRules",
        "removeRules",
        "addDirectories",
        "setMode",
        "session",
        "cliArg",
        "allow",
        "new",
        "",
    ]
)
ODD: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["toolName", "ruleContent", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
UPDATES = st.fixed_dictionaries(
    {},
    optional={
        "type": WORDS | ODD,
        "destination": WORDS | ODD,
        "behavior": WORDS | ODD,
        "rules": ODD,
        "directories": ODD,
        "mode": ODD,
        "extra": ODD,
    },
)


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "addRules", "rules": None, "behavior": "allow"},
        {"type": "addRules", "rules": [None], "behavior": "allow"},
        {"type": "addRules", "rules": [{}], "behavior": "allow"},
        {"type": "addRules", "rules": [{"toolName": 3}], "behavior": "allow"},
        {
            "type": "addRules",
            "rules": [{"toolName": "x", "ruleContent": None}],
            "behavior": "allow",
        },
        {"type": "addRules", "rules": [{"toolName": "x"}], "behavior": "perhaps"},
        {"type": "addRules", "rules": [{"toolName": "x"}], "behavior": None},
        {"type": "addDirectories", "directories": "x"},
        {"type": "addDirectories", "directories": ["/a", 3]},
        {"type": "setMode"},
        {"type": "setMode", "mode": 3},
        {"type": "addEverything"},
        {"type": ["addRules"]},
        {"type": "setMode", "mode": "plan", "destination": "elsewhere"},
        {},
    ],
)
def test_an_update_of_an_odd_shape_goes_back_as_it_came(odd: dict[str, object]) -> None:
    raw = {"destination": "session", **odd}
    update = parse_update(raw)
    assert isinstance(update, OtherUpdate)
    assert update.to_wire() == raw


@pytest.mark.slow
@given(UPDATES)
def test_any_update_goes_back_as_it_came(raw: dict[str, object]) -> None:
    assert parse_update(raw).to_wire() == raw


def test_an_update_keeps_what_we_do_not_know_when_it_is_changed() -> None:
    offered = parse_update(
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "ls *", "until": 3}],
            "behavior": "allow",
            "destination": "localSettings",
            "note": "x",
        }
    )
    assert isinstance(offered, AddRules)
    rule = attrs.evolve(offered.rules[0], rule_content=None)
    changed = attrs.evolve(offered, destination=Destination.SESSION, rules=(rule,))
    assert changed.to_wire() == {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "until": 3}],
        "behavior": "allow",
        "destination": "session",
        "note": "x",
    }


# --------------------------------------------------------------------------------- policies

NAMES = ["Bash", "Read", "Write", "mcp__files__read", "Agent", ""]


@pytest.mark.parametrize("name", NAMES)
def test_deny_all_denies_and_allow_all_allows(name: str) -> None:
    denied = decided(deny_all, asked(name))
    assert isinstance(denied, Deny)
    assert not denied.interrupt
    assert decided(allow_all, asked(name)) == Allow()


@pytest.mark.parametrize("name", NAMES)
def test_allow_tools_alone_allows_its_own_and_denies_the_rest(name: str) -> None:
    policy = allow_tools("Read", "Write")
    decision = decided(policy, asked(name))
    assert isinstance(decision, Allow if name in {"Read", "Write"} else Deny)
    assert decided(policy.opinion, asked(name)) == (Allow() if name in {"Read", "Write"} else None)


@pytest.mark.parametrize("name", NAMES)
def test_deny_tools_alone_allows_nothing(name: str) -> None:
    policy = deny_tools("Bash", message="not here")
    decision = decided(policy, asked(name))
    assert isinstance(decision, Deny)
    assert (decision.message == "not here") is (name == "Bash")
    assert decided(policy.opinion, asked(name)) == (Deny("not here") if name == "Bash" else None)


def test_in_first_of_the_first_opinion_wins() -> None:
    policy = first_of(deny_tools("Bash"), allow_tools("Bash", "Read"), deny_tools("Read"))
    assert isinstance(decided(policy, asked("Bash")), Deny)
    assert decided(policy, asked("Read")) == Allow()
    assert isinstance(decided(policy, asked("Write")), Deny)


def test_first_of_ends_with_a_plain_handler_for_the_rest() -> None:
    policy = first_of(deny_tools("Bash"), allow_all)
    assert isinstance(decided(policy, asked("Bash")), Deny)
    assert decided(policy, asked("Write")) == Allow()


def test_first_of_asks_nobody_after_the_first_opinion() -> None:
    async def surprised(_request: PermissionRequest) -> Decision:
        raise AssertionError("asked")

    assert decided(first_of(allow_tools("Read"), surprised), asked("Read")) == Allow()


def test_a_deferral_is_an_opinion() -> None:
    async def later(_request: PermissionRequest) -> Decision:
        return DEFER

    assert decided(first_of(allow_tools("Read"), later, allow_all), asked("Bash")) is DEFER


def test_a_function_of_the_users_may_have_no_opinion() -> None:
    async def only_lists(request: PermissionRequest) -> Allow | None:
        return Allow() if request.input.get("command") == "ls" else None

    for policy in (first_of(only_lists), Policy(only_lists), first_of(first_of(only_lists))):
        assert decided(policy, asked(input={"command": "ls"})) == Allow()
        assert isinstance(decided(policy, asked(input={"command": "rm"})), Deny)


def test_what_nobody_has_an_opinion_on_is_denied() -> None:
    assert isinstance(decided(first_of(), asked()), Deny)
    assert isinstance(decided(allow_tools(), asked()), Deny)
    assert isinstance(decided(deny_tools(), asked()), Deny)


POLICIES: st.SearchStrategy[PermissionOpinion] = st.lists(
    st.sampled_from(NAMES[:-1]), max_size=2
).flatmap(
    lambda names: st.sampled_from(
        [allow_tools(*names), deny_tools(*names), first_of(deny_tools(*names), allow_all)]
    )
)


@pytest.mark.slow
@given(st.lists(POLICIES, max_size=4), st.integers(0, 4), st.sampled_from(NAMES))
def test_first_of_may_be_grouped_in_any_way(
    policies: list[PermissionOpinion], place: int, name: str
) -> None:
    flat = decided(first_of(*policies), asked(name))
    grouped = first_of(first_of(*policies[:place]), first_of(*policies[place:]))
    assert decided(grouped, asked(name)) == flat
    if len(policies) == 1:
        assert decided(policies[0], asked(name)) == flat


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("mcp__files__*", "mcp__files__read", True),
        ("mcp__files__*", "mcp__files", False),
        ("mcp__files__*", "mcp__files2__read", False),
        ("*", "Bash", True),
        ("*", "", True),
        ("Bash", "BashOutput", False),
        ("bash", "Bash", False),
        ("Task", "Agent", True),
        ("Agent", "Task", True),
        ("Agent", "Agent", True),
    ],
)
def test_a_name_fits_itself_and_a_star_what_begins_so(pattern: str, name: str, fits: bool) -> None:
    assert (decided(allow_tools(pattern), asked(name)) == Allow()) is fits
    assert (decided(deny_tools(pattern).opinion, asked(name)) is not None) is fits


@pytest.mark.parametrize("name", ["", "Bash(git *)", "Bash(", "mcp__*__read", " Bash", "Bash\n"])
def test_a_name_that_can_fit_no_tool_is_refused(name: str) -> None:
    for make in (allow_tools, deny_tools):
        with pytest.raises(ValueError, match="name of a tool"):
            make("Read", name)


def test_a_list_of_names_is_no_name() -> None:
    names: Any = ["Read", "Write"]
    with pytest.raises(TypeError):
        allow_tools(names)
