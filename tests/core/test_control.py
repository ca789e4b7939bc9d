"""The laws of control requests: one outcome each, and no line that nobody waits for."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from claude_trio._errors import LocalProtocolError
from claude_trio._protocol._control import (
    Answered,
    Cancelled,
    CliRequests,
    Dropped,
    DropReason,
    HostRequests,
    Incoming,
    Refused,
    Reply,
)
from claude_trio.messages import ControlRequest, ControlResponse, from_raw

if TYPE_CHECKING:
    from collections.abc import Callable


def success(request_id: object, **extra: object) -> ControlResponse:
    return response({"subtype": "success", "request_id": request_id, **extra})


def error(request_id: object, **extra: object) -> ControlResponse:
    return response({"subtype": "error", "request_id": request_id, **extra})


def response(body: object) -> ControlResponse:
    message = from_raw({"type": "control_response", "response": body})
    assert isinstance(message, ControlResponse)
    return message


def request(
    request_id: object, subtype: object = "can_use_tool", **fields: object
) -> ControlRequest:
    return raw_request({"request_id": request_id, "request": {"subtype": subtype, **fields}})


def raw_request(raw: dict[str, object]) -> ControlRequest:
    message = from_raw({"type": "control_request", **raw})
    assert isinstance(message, ControlRequest)
    return message


def rpc(request_id: str, server: object, message: object) -> ControlRequest:
    return request(request_id, "mcp_message", server_name=server, message=message)


def call(request_id: str, server: str = "calc", rpc_id: object = 0) -> ControlRequest:
    return rpc(request_id, server, {"jsonrpc": "2.0", "id": rpc_id, "method": "tools/call"})


def cancelled(request_id: str, server: str = "calc", rpc_id: object = 0) -> ControlRequest:
    params = {"requestId": rpc_id, "reason": "interrupted"}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return rpc(request_id, server, message)


def written(line: bytes | None) -> dict[str, object]:
    assert line is not None
    assert line.endswith(b"\n")
    frame = json.loads(line)
    assert isinstance(frame, dict)
    return frame


def replied(line: bytes | None) -> dict[str, object]:
    frame = written(line)
    assert frame["type"] == "control_response"
    body = frame["response"]
    assert isinstance(body, dict)
    return body


# ---------------------------------------------------------------------------- ours to the CLI


def test_ids_come_from_a_counter_so_that_a_recording_replays_exactly() -> None:
    requests = HostRequests()
    ids = [requests.open(subtype)[0] for subtype in ("initialize", "interrupt", "interrupt")]
    assert ids == ["claude-trio-1", "claude-trio-2", "claude-trio-3"]
    assert dict(requests.pending) == dict(
        zip(ids, ["initialize", "interrupt", "interrupt"], strict=True)
    )


def test_a_request_is_written_with_its_fields() -> None:
    request_id, line = HostRequests().open("set_model", model=None, deep={"a": [1]})
    assert written(line) == {
        "type": "control_request",
        "request_id": request_id,
        "request": {"subtype": "set_model", "model": None, "deep": {"a": [1]}},
    }


@pytest.mark.parametrize("value", [object(), float("nan")])
def test_a_request_that_cannot_be_written_is_not_opened(value: object) -> None:
    requests = HostRequests()
    with pytest.raises((TypeError, ValueError)):
        requests.open("x", field=value)
    assert not requests.pending
    assert requests.open("x")[0] == "claude-trio-1"


def test_answers_may_overtake_each_other() -> None:
    requests = HostRequests()
    first, second, third = (requests.open(subtype)[0] for subtype in ("a", "b", "c"))
    for request_id, subtype in ((third, "c"), (first, "a"), (second, "b")):
        answer = requests.receive(success(request_id, response={"for": subtype}))
        assert answer == Answered(request_id=request_id, subtype=subtype, response={"for": subtype})
    assert not requests.pending


@pytest.mark.parametrize("extra", [{}, {"response": None}, {"response": []}, {"response": "text"}])
def test_an_answer_with_nothing_to_say_is_empty(extra: dict[str, object]) -> None:
    requests = HostRequests()
    request_id, _ = requests.open("mcp_toggle")
    answer = requests.receive(success(request_id, **extra))
    assert answer == Answered(request_id=request_id, subtype="mcp_toggle", response={})


def test_an_error_refuses_with_its_text_and_code() -> None:
    requests = HostRequests()
    request_id, _ = requests.open("x")
    answer = requests.receive(error(request_id, error="no", error_code="unsupported_request"))
    assert answer == Refused(
        request_id=request_id, subtype="x", error="no", error_code="unsupported_request"
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"subtype": "pending"},
        {"subtype": None, "response": {"a": 1}},
        {"subtype": "error"},
        {"subtype": "error", "error": 7, "error_code": []},
    ],
)
def test_an_answer_that_is_none_refuses_rather_than_hangs(body: dict[str, object]) -> None:
    requests = HostRequests()
    request_id, _ = requests.open("x")
    answer = requests.receive(response({**body, "request_id": request_id}))
    assert isinstance(answer, Refused)
    assert answer.error
    assert answer.error_code is None
    assert not requests.pending


@pytest.mark.parametrize("request_id", ["nope", "claude-trio-2", "57846180-5da5-4d8c", "1"])
def test_an_answer_to_an_id_that_is_not_ours_is_dropped(request_id: str) -> None:
    requests = HostRequests()
    requests.open("x")
    # So is the CLI's echo of an answer that we gave.
    answer = requests.receive(success(request_id, response={"behavior": "allow"}))
    assert answer == Dropped(request_id=request_id, reason=DropReason.UNKNOWN)
    assert len(requests.pending) == 1


@pytest.mark.parametrize("body", [None, [], "x", {}, {"subtype": "success"}, {"request_id": 1}])
def test_an_answer_without_an_id_is_dropped(body: object) -> None:
    requests = HostRequests()
    requests.open("x")
    answer = requests.receive(response(body))
    assert answer == Dropped(request_id=None, reason=DropReason.MALFORMED)
    assert len(requests.pending) == 1


def test_the_first_answer_counts_and_a_second_is_dropped() -> None:
    requests = HostRequests()
    request_id, _ = requests.open("x")
    requests.receive(success(request_id))
    double = Dropped(request_id=request_id, reason=DropReason.DOUBLE, subtype="x")
    assert requests.receive(error(request_id)) == double
    assert requests.receive(success(request_id)) == double


def test_a_withdrawn_request_is_cancelled_and_its_late_answer_dropped() -> None:
    requests = HostRequests()
    request_id, _ = requests.open("interrupt")
    assert written(requests.withdraw(request_id)) == {
        "type": "control_cancel_request",
        "request_id": request_id,
    }
    assert requests.withdraw(request_id) is None
    late = requests.receive(success(request_id))
    assert late == Dropped(request_id=request_id, reason=DropReason.LATE, subtype="interrupt")
    again = requests.receive(success(request_id))
    assert again == Dropped(request_id=request_id, reason=DropReason.DOUBLE, subtype="interrupt")


def test_what_is_answered_or_unknown_cannot_be_withdrawn() -> None:
    requests = HostRequests()
    request_id, _ = requests.open("x")
    requests.receive(success(request_id))
    assert requests.withdraw(request_id) is None
    assert requests.withdraw("nope") is None


def test_fail_all_settles_what_is_left_and_opens_nothing_more() -> None:
    requests = HostRequests()
    ids = [requests.open("x")[0] for _ in range(3)]
    requests.receive(success(ids[1]))
    assert requests.fail_all() == (ids[0], ids[2])
    assert requests.fail_all() == ()
    assert not requests.pending
    with pytest.raises(LocalProtocolError):
        requests.open("x")
    late = requests.receive(success(ids[0]))
    assert late == Dropped(request_id=ids[0], reason=DropReason.LATE, subtype="x")


def test_what_is_settled_is_remembered_for_long_but_not_for_ever() -> None:
    requests = HostRequests()
    first, second, last = (requests.open("x")[0] for _ in range(3))
    for request_id in (first, second):
        requests.withdraw(request_id)
    for _ in range(1023):
        requests.receive(success(requests.open("y")[0]))
    assert requests.receive(success(first)) == Dropped(request_id=first, reason=DropReason.UNKNOWN)
    assert requests.receive(success(second)) == Dropped(
        request_id=second, reason=DropReason.LATE, subtype="x"
    )
    assert isinstance(requests.receive(success(last)), Answered)


def test_the_view_of_the_open_requests_cannot_be_written_to() -> None:
    for view in (HostRequests().pending, CliRequests(()).pending):
        with pytest.raises(TypeError):
            view["x"] = "y"  # type: ignore[index]


class HostMachine(RuleBasedStateMachine):
    """Requests of ours, in any order of answers and withdrawals, against a plain table."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = HostRequests()
        self.subtypes: dict[str, str] = {}
        self.outcomes: Counter[str] = Counter()
        self.next_drop: dict[str, DropReason] = {}
        self.closed = False

    def some_id(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.subtypes, "nope", "claude-trio-99"]))

    def is_open(self, request_id: str) -> bool:
        return request_id in self.subtypes and not self.outcomes[request_id]

    @rule(subtype=st.sampled_from(["initialize", "interrupt", "set_model"]))
    def open(self, subtype: str) -> None:
        if self.closed:
            with pytest.raises(LocalProtocolError):
                self.requests.open(subtype)
            return
        request_id, line = self.requests.open(subtype)
        assert request_id not in self.subtypes
        assert written(line)["request_id"] == request_id
        self.subtypes[request_id] = subtype

    @rule(
        data=st.data(),
        subtype=st.sampled_from(["success", "error", "progress", None, 3]),
        body=st.sampled_from([{}, {"a": 1}, None, [1], "text"]),
    )
    def answer(self, data: st.DataObject, subtype: object, body: object) -> None:
        request_id = self.some_id(data)
        message = response({"subtype": subtype, "request_id": request_id, "response": body})
        answer = self.requests.receive(message)
        if self.is_open(request_id):
            assert isinstance(answer, Answered if subtype == "success" else Refused)
            assert answer.subtype == self.subtypes[request_id]
            self.outcomes[request_id] += 1
        else:
            reason = self.next_drop.get(request_id, DropReason.UNKNOWN)
            assert isinstance(answer, Dropped)
            assert answer.reason is reason
            assert answer.subtype == self.subtypes.get(request_id)
        assert answer.request_id == request_id
        if request_id in self.subtypes:
            self.next_drop[request_id] = DropReason.DOUBLE

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        request_id = self.some_id(data)
        line = self.requests.withdraw(request_id)
        assert (line is not None) is self.is_open(request_id)
        if line is not None:
            assert written(line)["request_id"] == request_id
            self.outcomes[request_id] += 1
            self.next_drop[request_id] = DropReason.LATE

    @rule()
    def answer_nothing(self) -> None:
        assert self.requests.receive(response({})).__class__ is Dropped

    @precondition(lambda self: len(self.subtypes) > 3)
    @rule()
    def fail_all(self) -> None:
        self.closed = True
        for request_id in self.requests.fail_all():
            self.outcomes[request_id] += 1
            self.next_drop[request_id] = DropReason.LATE

    @invariant()
    def what_is_pending_is_what_has_no_outcome(self) -> None:
        assert list(self.requests.pending) == [i for i in self.subtypes if not self.outcomes[i]]

    def teardown(self) -> None:
        self.outcomes.update(self.requests.fail_all())
        assert self.outcomes == dict.fromkeys(self.subtypes, 1)


TestHostRequests = pytest.mark.slow(HostMachine.TestCase)
TestHostRequests.settings = settings(max_examples=60, stateful_step_count=40)


# ---------------------------------------------------------------------------- the CLI's to us

KNOWN = ("can_use_tool", "hook_callback", "mcp_message")


def test_a_known_request_waits_for_its_answer() -> None:
    requests = CliRequests(KNOWN)
    incoming = requests.receive(request("r1", input={"a": 1}))
    assert isinstance(incoming, Incoming)
    assert incoming.request == {"subtype": "can_use_tool", "input": {"a": 1}}
    assert dict(requests.pending) == {"r1": incoming}
    assert replied(requests.answer("r1", {"behavior": "deny"})) == {
        "subtype": "success",
        "request_id": "r1",
        "response": {"behavior": "deny"},
    }
    assert not requests.pending


def test_a_refusal_is_an_error_that_names_the_request() -> None:
    requests = CliRequests(KNOWN)
    requests.receive(request("r1"))
    assert replied(requests.refuse("r1", "no")) == {
        "subtype": "error",
        "request_id": "r1",
        "error": "no",
    }


@pytest.mark.parametrize("subtype", ["ui_pane", "", None, 3, ["can_use_tool"]])
def test_an_unknown_request_is_answered_so_that_the_cli_goes_on(subtype: object) -> None:
    requests = CliRequests(KNOWN)
    reply = requests.receive(request("r1", subtype))
    assert isinstance(reply, Reply)
    body = replied(reply.line)
    assert body["subtype"] == "error"
    assert body["request_id"] == "r1"
    assert body["error_code"] == "unsupported_request"
    assert not requests.pending


@pytest.mark.parametrize("fields", [{}, {"request": None}, {"request": []}, {"request": "x"}])
def test_a_request_that_asks_nothing_is_answered(fields: dict[str, object]) -> None:
    reply = CliRequests(KNOWN).receive(raw_request({"request_id": "r1", **fields}))
    assert isinstance(reply, Reply)
    assert replied(reply.line)["request_id"] == "r1"
    assert replied(reply.line)["subtype"] == "error"


@pytest.mark.parametrize(
    "fields", [{}, {"request_id": None}, {"request_id": 5}, {"request_id": ""}]
)
def test_a_request_without_an_id_is_answered_without_one(fields: dict[str, object]) -> None:
    requests = CliRequests(KNOWN)
    reply = requests.receive(raw_request({"request": {"subtype": "can_use_tool"}, **fields}))
    assert isinstance(reply, Reply)
    assert "request_id" not in replied(reply.line)
    assert not requests.pending


def test_an_id_in_flight_does_not_run_twice() -> None:
    requests = CliRequests(KNOWN)
    requests.receive(request("r1"))
    for again in (
        request("r1"),
        request("r1", "hook_callback"),
        request("r1", "unknown"),
        raw_request({"request_id": "r1"}),
        cancelled("r1"),
    ):
        dropped = requests.receive(again)
        assert isinstance(dropped, Dropped)
        assert dropped.reason is DropReason.DOUBLE
    assert requests.answer("r1", {}) is not None
    assert requests.answer("r1", {}) is None


def test_an_id_may_be_used_again_once_it_is_settled() -> None:
    requests = CliRequests(KNOWN)
    for settle in (
        lambda: requests.answer("r1", {}),
        lambda: requests.refuse("r1", "no"),
        lambda: requests.receive_cancel("r1"),
    ):
        assert isinstance(requests.receive(request("r1")), Incoming)
        settle()
        assert not requests.pending


SETTLE: dict[str, Callable[[CliRequests], object]] = {
    "answered": lambda requests: requests.answer("r1", {}),
    "refused": lambda requests: requests.refuse("r1", "no"),
    "withdrawn": lambda requests: requests.receive_cancel("r1"),
    "closed": lambda requests: requests.fail_all(),
}


@pytest.mark.parametrize("how", SETTLE)
def test_nothing_is_written_for_what_nobody_waits_for(how: str) -> None:
    requests = CliRequests(KNOWN)
    requests.receive(request("r1"))
    SETTLE[how](requests)
    for request_id in ("r1", "never", ""):
        assert requests.answer(request_id, {}) is None
        assert requests.answer(request_id, {"x": object()}) is None
        assert requests.refuse(request_id, "no") is None
        assert not requests.receive_cancel(request_id)


@pytest.mark.parametrize("answer", [{"x": object()}, {"x": float("nan")}, {"x": b""}])
def test_an_answer_that_cannot_be_written_leaves_the_request_open(
    answer: dict[str, object],
) -> None:
    requests = CliRequests(KNOWN)
    requests.receive(request("r1"))
    with pytest.raises((TypeError, ValueError)):
        requests.answer("r1", answer)
    assert list(requests.pending) == ["r1"]
    assert requests.refuse("r1", "no") is not None


def test_after_fail_all_nothing_is_taken() -> None:
    requests = CliRequests(KNOWN)
    for request_id in ("r1", "r2", "r3"):
        requests.receive(request(request_id))
    requests.answer("r2", {})
    assert requests.fail_all() == ("r1", "r3")
    assert requests.fail_all() == ()
    for late in (request("r4"), request("r5", "unknown"), request(None), cancelled("r6")):
        dropped = requests.receive(late)
        assert isinstance(dropped, Dropped)
        assert dropped.reason is DropReason.LATE
    assert not requests.pending


# ------------------------------------------------------------------------- in-process tools

ACK = {"mcp_response": {"jsonrpc": "2.0", "result": {}}}


def test_a_cancelled_call_needs_no_answer_and_its_notification_has_one() -> None:
    requests = CliRequests(KNOWN)
    requests.receive(call("r1", rpc_id=7))
    outcome = requests.receive(cancelled("n1", rpc_id=7))
    assert isinstance(outcome, Cancelled)
    assert outcome.request_id == "r1"
    assert replied(outcome.line) == {
        "subtype": "success",
        "request_id": "n1",
        "response": ACK,
    }
    assert requests.answer("r1", {}) is None
    assert not requests.pending


def test_rpc_ids_belong_to_their_server_and_a_number_is_no_string() -> None:
    requests = CliRequests(KNOWN)
    calls = {
        "r1": ("calc", 0),
        "r2": ("files", 0),
        "r3": ("calc", "0"),
        "r4": ("calc", 1),
    }
    for request_id, (server, rpc_id) in calls.items():
        requests.receive(call(request_id, server, rpc_id))
    for request_id in ("r3", "r1", "r4", "r2"):
        server, rpc_id = calls[request_id]
        outcome = requests.receive(cancelled(f"n{request_id}", server, rpc_id))
        assert isinstance(outcome, Cancelled)
        assert outcome.request_id == request_id


@pytest.mark.parametrize(
    ("server", "rpc_id"),
    [("calc", 9), ("other", 1), ("calc", "1"), ("calc", True), ("calc", 1.0), ("calc", None)],
)
def test_the_cancel_of_a_call_that_is_not_open_cancels_nothing(server: str, rpc_id: object) -> None:
    requests = CliRequests(KNOWN)
    requests.receive(call("r1", rpc_id=1))
    outcome = requests.receive(cancelled("n1", server, rpc_id))
    assert isinstance(outcome, Cancelled)
    assert outcome.request_id is None
    assert replied(outcome.line)["response"] == ACK
    assert list(requests.pending) == ["r1"]


@pytest.mark.parametrize("how", ["answered", "refused", "withdrawn"])
def test_the_cancel_of_a_settled_call_does_not_touch_the_next_with_its_rpc_id(how: str) -> None:
    requests = CliRequests(KNOWN)
    requests.receive(call("r1"))
    SETTLE[how](requests)
    nothing = requests.receive(cancelled("n1"))
    assert isinstance(nothing, Cancelled)
    assert nothing.request_id is None
    requests.receive(call("r2"))
    outcome = requests.receive(cancelled("n2"))
    assert isinstance(outcome, Cancelled)
    assert outcome.request_id == "r2"


def test_of_two_calls_with_one_rpc_id_the_newer_is_cancelled() -> None:
    requests = CliRequests(KNOWN)
    requests.receive(call("r1"))
    requests.receive(call("r2"))
    assert requests.answer("r1", {}) is not None
    outcome = requests.receive(cancelled("n1"))
    assert isinstance(outcome, Cancelled)
    assert outcome.request_id == "r2"


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"method": 3},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": True, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": [1], "method": "tools/list"},
    ],
)
def test_any_other_message_to_a_server_is_a_request_like_all_others(message: object) -> None:
    requests = CliRequests(KNOWN)
    for server in ("calc", None, 3):
        incoming = requests.receive(rpc(f"r{server}", server, message))
        assert isinstance(incoming, Incoming)
        assert requests.answer(f"r{server}", ACK) is not None


def test_without_servers_of_ours_their_messages_are_refused() -> None:
    for message in (call("r1"), cancelled("n1")):
        assert isinstance(CliRequests(("can_use_tool",)).receive(message), Reply)


JSON: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["subtype", "request_id", "request", "response", "message", "id", "params"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(["request_id", "request"]), JSON),
    st.dictionaries(st.sampled_from(["server_name", "message"]), JSON),
)
def test_no_request_is_too_odd_to_be_answered(
    raw: dict[str, object], fields: dict[str, object]
) -> None:
    requests = CliRequests(KNOWN)
    for message in (raw_request(raw), request("r1", "mcp_message", **fields)):
        taken = requests.receive(message)
        if isinstance(taken, Incoming):
            assert requests.answer(taken.request_id, {}) is not None
        else:
            assert isinstance(taken, Reply | Cancelled)
            assert replied(taken.line)["subtype"] in {"success", "error"}
        assert not requests.pending


@pytest.mark.slow
@given(JSON)
def test_no_answer_is_too_odd_to_be_taken(body: object) -> None:
    requests = HostRequests()
    requests.open("x")
    assert isinstance(requests.receive(response(body)), Answered | Refused | Dropped)


class CliMachine(RuleBasedStateMachine):
    """Requests of the CLI: every one has one outcome, and every line its one request."""

    ids = st.sampled_from([f"r{n}" for n in range(6)])
    calls = st.tuples(st.sampled_from(["calc", "files"]), st.sampled_from([0, 1, "0", "1"]))

    def __init__(self) -> None:
        super().__init__()
        self.requests = CliRequests(KNOWN)
        # The open requests, each with the call that it is, if it is one.
        self.open: dict[str, tuple[str, object] | None] = {}
        self.received = self.settled = self.lines = self.silent = 0
        self.closed = False

    def settle(self, request_id: str, line: bytes | None) -> None:
        was_open = request_id in self.open
        assert (line is not None) is was_open
        if was_open:
            assert replied(line)["request_id"] == request_id
            self.lines += 1
            self.settled += 1
            del self.open[request_id]

    def refuse_if_closed_or_open(self, message: ControlRequest) -> bool:
        if not self.closed and message.request_id not in self.open:
            self.received += 1
            return False
        reason = DropReason.LATE if self.closed else DropReason.DOUBLE
        dropped = self.requests.receive(message)
        assert isinstance(dropped, Dropped)
        assert dropped.reason is reason
        return True

    @rule(request_id=ids, subtype=st.sampled_from(["can_use_tool", "hook_callback"]))
    def receive_known(self, request_id: str, subtype: str) -> None:
        message = request(request_id, subtype)
        if not self.refuse_if_closed_or_open(message):
            assert isinstance(self.requests.receive(message), Incoming)
            self.open[request_id] = None

    @rule(request_id=ids, called=calls)
    def receive_call(self, request_id: str, called: tuple[str, object]) -> None:
        message = call(request_id, *called)
        if not self.refuse_if_closed_or_open(message):
            assert isinstance(self.requests.receive(message), Incoming)
            # A server that uses an id twice can only mean the newer call.
            self.open = {i: None if c == called else c for i, c in self.open.items()}
            self.open[request_id] = called

    @rule(request_id=ids, odd=st.sampled_from(["unknown", None, ""]))
    def receive_unknown(self, request_id: str, odd: object) -> None:
        message = request(request_id, odd)
        if not self.refuse_if_closed_or_open(message):
            reply = self.requests.receive(message)
            assert isinstance(reply, Reply)
            assert replied(reply.line)["request_id"] == request_id
            self.lines += 1
            self.settled += 1

    @rule(request_id=ids, called=calls)
    def receive_cancelled(self, request_id: str, called: tuple[str, object]) -> None:
        message = cancelled(request_id, *called)
        if self.refuse_if_closed_or_open(message):
            return
        victim = next((i for i, c in self.open.items() if c == called), None)
        outcome = self.requests.receive(message)
        assert isinstance(outcome, Cancelled)
        assert outcome.request_id == victim
        assert replied(outcome.line)["request_id"] == request_id
        self.lines += 1
        self.settled += 1
        if victim is not None:
            del self.open[victim]
            self.silent += 1
            self.settled += 1

    @rule(request_id=ids)
    def answer(self, request_id: str) -> None:
        self.settle(request_id, self.requests.answer(request_id, {"a": 1}))

    @rule(request_id=ids)
    def refuse(self, request_id: str) -> None:
        self.settle(request_id, self.requests.refuse(request_id, "no"))

    @rule(request_id=ids)
    def answer_with_what_json_has_not(self, request_id: str) -> None:
        if request_id in self.open:
            with pytest.raises(TypeError):
                self.requests.answer(request_id, {"a": object()})
        else:
            assert self.requests.answer(request_id, {"a": object()}) is None

    @rule(request_id=ids)
    def withdraw(self, request_id: str) -> None:
        assert self.requests.receive_cancel(request_id) is (request_id in self.open)
        if request_id in self.open:
            del self.open[request_id]
            self.silent += 1
            self.settled += 1

    @precondition(lambda self: self.received > 8)
    @rule()
    def fail_all(self) -> None:
        self.closed = True
        failed = self.requests.fail_all()
        assert failed == tuple(self.open)
        self.open.clear()
        self.silent += len(failed)
        self.settled += len(failed)

    @invariant()
    def what_is_pending_is_what_has_no_outcome(self) -> None:
        assert list(self.requests.pending) == list(self.open)
        assert self.settled + len(self.open) == self.received
        assert self.lines + self.silent == self.settled


TestCliRequests = pytest.mark.slow(CliMachine.TestCase)
TestCliRequests.settings = settings(max_examples=60, stateful_step_count=40)
