"""Laws of the connection: what comes in means the same events, and what goes out is whole lines."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_trio._errors import LocalProtocolError
from claude_trio._protocol._connection import Connection
from claude_trio._protocol._control import Answered, Refused
from claude_trio._protocol._events import (
    Conversation,
    RequestAnswered,
    RequestReceived,
    RequestWithdrawn,
    Send,
    Skipped,
    TurnEnded,
)
from claude_trio._protocol._gate import Cancelled
from claude_trio._protocol._ledger import Fate
from claude_trio._protocol._steering import Accepted, NoLiveTurn, StaleTurn
from claude_trio.messages import (
    AssistantMessage,
    InitMessage,
    ResultMessage,
    SkippedLine,
    UnknownMessage,
)

if TYPE_CHECKING:
    from claude_trio._protocol._events import Event

UUID = "aaaaaaaa-2222-4333-8444-555555555555"
STEER = "bbbbbbbb-2222-4333-8444-555555555555"


def make() -> Connection:
    return Connection.make(
        limit=100_000, follow_up=2, settle=600, requests={"can_use_tool"}, session_id="mine"
    )


def line(**frame: Any) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def init(**more: Any) -> bytes:
    return line(type="system", subtype="init", capabilities=["msg_lifecycle_v1"], **more)


def life(state: str, uuid: str = UUID) -> bytes:
    return line(type="command_lifecycle", command_uuid=uuid, state=state)


def state(name: str) -> bytes:
    return line(type="system", subtype="session_state_changed", state=name)


def result(*uuids: str, **more: Any) -> bytes:
    return line(type="result", subtype="success", user_message_uuids=uuids, **more)


def assistant(text: str) -> bytes:
    return line(type="assistant", message={"content": [{"type": "text", "text": text}]})


def response(request_id: str, body: Any = None, **more: Any) -> bytes:
    envelope = {"subtype": "success", "request_id": request_id, "response": body, **more}
    return line(type="control_response", response=envelope)


def ask(request_id: str, subtype: str = "can_use_tool", **more: Any) -> bytes:
    return line(type="control_request", request_id=request_id, request={"subtype": subtype, **more})


TURN = (
    state("running")
    + life("queued")
    + life("started")
    + init(session_id="theirs")
    + assistant("one")
    + assistant("two")
    + result(UUID)
    + life("completed")
    + state("idle")
)


def shown(events: list[Event]) -> list[object]:
    """Flatten events, so that how they were grouped does not count."""
    found: list[object] = []
    for event in events:
        if isinstance(event, Conversation):
            turn = event.turn is not None
            found += [(turn, frame.said) for frame in event.frames]
        elif isinstance(event, TurnEnded):
            found.append(("ended", event.turn.prompt.uuid))
        else:
            found.append(event)
    return found


def test_a_turn_comes_as_its_messages_and_then_its_end() -> None:
    connection = make()
    turn, data = connection.send_prompt("hello", UUID)
    assert json.loads(data) == {
        "type": "user",
        "message": {"role": "user", "content": "hello"},
        "parent_tool_use_id": None,
        "session_id": "",
        "uuid": UUID,
    }
    assert data.endswith(b"\n")
    events = connection.receive_data(TURN, 0)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].turn is turn
    assert turn.over
    messages = [pair[1] for pair in shown(events[:-1]) if isinstance(pair, tuple) and pair[0]]
    kinds = [type(message) for message in messages]
    assert kinds.count(AssistantMessage) == 2
    assert kinds.index(InitMessage) < kinds.index(AssistantMessage) < kinds.index(ResultMessage)
    assert connection.session_id == "theirs"


@given(st.lists(st.integers(0, len(TURN)), max_size=12))
def test_the_same_bytes_mean_the_same_events_however_they_are_cut(cuts: list[int]) -> None:
    whole, cut = make(), make()
    for connection in (whole, cut):
        connection.send_prompt("hello", UUID)
    expected = shown(whole.receive_data(TURN, 0))
    edges = [0, *sorted(cuts), len(TURN)]
    events = [
        event
        for start, end in itertools.pairwise(edges)
        for event in cut.receive_data(TURN[start:end], 0)
    ]
    assert shown(events) == expected


@given(
    st.binary(max_size=400)
    | st.lists(st.sampled_from([TURN, b"{", b'{"type":', b"\n"])).map(b"".join)
)
def test_garbage_gives_events_and_nothing_else(data: bytes) -> None:
    connection = make()
    connection.send_prompt("hello", UUID)
    for event in [*connection.receive_data(data, 0), *connection.receive_eof(0)]:
        if isinstance(event, Conversation) and event.message is None:
            continue  # What is broken in these shows when it is taken.
        shown([event])
    assert connection.close() == ()


def test_a_second_prompt_in_a_turn_is_impossible_and_changes_nothing() -> None:
    connection = make()
    connection.send_prompt("hello", UUID)
    with pytest.raises(LocalProtocolError):
        connection.send_prompt("more", STEER)
    assert [type(e) for e in connection.receive_data(TURN, 0)][-1] is TurnEnded


def test_a_prompt_that_is_taken_back_is_withdrawn_and_its_turn_ends() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    assert connection.take_back_prompt() == [TurnEnded(turn)]
    assert turn.prompt.fate is Fate.WITHDRAWN
    connection.send_prompt("and now this", STEER)


def test_taking_back_nothing_ends_nothing() -> None:
    assert make().take_back_prompt() == []


def test_it_tells_whether_the_cli_waits_for_an_answer() -> None:
    connection = make()
    assert not connection.asked
    connection.receive_data(ask("r1"), 0)
    assert connection.asked
    connection.answer("r1", {})
    assert not connection.asked


def test_a_line_that_begins_well_and_is_broken_says_so_when_it_is_taken() -> None:
    connection = make()
    (event,) = connection.receive_data(b'{"type":"assistant", broken\n', 0)
    assert isinstance(event, Conversation)
    (frame,) = event.frames
    assert frame.said == SkippedLine(size=27, head=b'{"type":"assistant", broken')
    assert frame.said is frame.said
    assert connection.last_frames == []


def test_strays_and_withdrawals_of_nothing_say_nothing() -> None:
    connection = make()
    assert connection.receive_data(response("stray", {}), 0) == []
    unknown = line(type="control_cancel_request", request_id="never asked")
    assert connection.receive_data(unknown, 0) == []
    nothing = {"server_name": "s", "message": {"method": "notifications/cancelled"}}
    tools = Connection.make(limit=1000, follow_up=2, settle=600, requests={"mcp_message"})
    (event,) = tools.receive_data(ask("r1", "mcp_message", **nothing), 0)
    assert isinstance(event, Send)
    call = {"server_name": "s", "message": {"id": 1, "method": "tools/call"}}
    tools.receive_data(ask("r2", "mcp_message", **call), 0)
    message = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    events = tools.receive_data(ask("r3", "mcp_message", server_name="s", message=message), 0)
    assert events[0] == RequestWithdrawn("r2")
    assert isinstance(events[1], Send)


def test_a_cli_that_promises_lifecycle_and_sends_none_is_taken_by_order() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    connection.receive_data(init() + result(), 0)
    assert turn.over
    assert turn.prompt.fate is Fate.ANSWERED


def test_a_result_that_answers_a_prompt_after_all_can_still_be_had() -> None:
    connection = make()
    connection.receive_data(init(), 0)
    turn, _ = connection.send_prompt("hello", UUID)
    folded_into = result(uuid="r1", origin={"kind": "task-notification"})
    (event,) = connection.receive_data(folded_into, 0)
    assert isinstance(event, Conversation)
    assert event.turn is None
    assert connection.tick(2) == [TurnEnded(turn)]
    assert turn.prompt.result is not None
    message = connection.recent_result(turn.prompt.result)
    assert message is not None
    assert message.uuid == "r1"
    assert connection.recent_result(1000) is None


def test_a_uuid_is_used_once() -> None:
    connection = make()
    connection.send_prompt("hello", UUID)
    connection.receive_data(TURN, 0)
    with pytest.raises(LocalProtocolError, match=UUID):
        connection.send_prompt("again", UUID)
    connection.send_prompt("again", STEER)


def test_a_snapshot_that_is_no_list_ends_no_task() -> None:
    connection = make()
    connection.send_prompt("hello", UUID)
    agent = {"task_id": "a1", "task_type": "local_agent"}
    connection.receive_data(
        life("started") + line(type="system", subtype="task_started", **agent), 0
    )
    connection.receive_data(line(type="system", subtype="background_tasks_changed", tasks=None), 0)
    assert connection.gate.tasks.live
    connection.receive_data(line(type="system", subtype="background_tasks_changed", tasks=[]), 0)
    assert not connection.gate.tasks.live


def test_noise_is_kept_aside_and_a_line_that_is_lost_is_reported() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    connection.receive_data(life("started"), 0)
    events = connection.receive_data(
        b"[debug] hello\n" + b'{"type":"result", broken\n' + b"\x1b[2J\x1b[H" + assistant("x"), 0
    )
    assert list(connection.noise) == [b"[debug] hello"]
    assert isinstance(events[0], Skipped)
    assert events[0].turn is turn
    assert events[0].line.head.startswith(b'{"type":"result"')
    assert isinstance(events[1], Conversation)
    assert isinstance(events[1].message, AssistantMessage)


def test_a_line_over_the_limit_is_skipped_and_the_next_one_comes() -> None:
    connection = make()
    events = connection.receive_data(assistant("x" * 200_000) + result(), 0)
    assert isinstance(events[0], Skipped)
    assert events[0].line.size > 200_000
    assert isinstance(events[1], Conversation)


def test_a_last_line_without_its_end_is_taken_or_reported() -> None:
    connection = make()
    connection.receive_data(result()[:-1], 0)
    (event,) = connection.receive_eof(0)
    assert isinstance(event, Conversation)
    connection = make()
    connection.receive_data(result()[:-9], 0)
    assert isinstance(connection.receive_eof(0)[0], Skipped)


def test_an_unknown_frame_goes_through() -> None:
    (event,) = make().receive_data(line(type="brand_new", x=1), 0)
    assert isinstance(event, Conversation)
    assert isinstance(event.message, UnknownMessage)


def test_a_request_of_the_cli_is_answered_once() -> None:
    connection = make()
    (event,) = connection.receive_data(ask("r1", tool_name="Bash"), 0)
    assert isinstance(event, RequestReceived)
    assert event.request.request["tool_name"] == "Bash"
    answer = connection.answer("r1", {"behavior": "deny", "message": "no"})
    assert answer is not None
    assert json.loads(answer)["response"]["request_id"] == "r1"
    assert connection.answer("r1", {}) is None
    assert connection.refuse("r1", "late") is None
    assert connection.refuse("never asked", "wrong") is None


def test_a_request_that_nobody_knows_is_refused_so_that_the_cli_goes_on() -> None:
    (event,) = make().receive_data(ask("r1", "brand_new"), 0)
    assert isinstance(event, Send)
    assert json.loads(event.data)["response"]["subtype"] == "error"


def test_a_withdrawn_request_is_told_once_and_needs_no_answer() -> None:
    connection = make()
    connection.receive_data(ask("r1"), 0)
    cancel = line(type="control_cancel_request", request_id="r1")
    assert connection.receive_data(cancel, 0) == [RequestWithdrawn("r1")]
    assert connection.receive_data(cancel, 0) == []
    assert connection.answer("r1", {}) is None


def test_a_double_request_is_dropped() -> None:
    connection = make()
    assert len(connection.receive_data(ask("r1") + ask("r1"), 0)) == 1


def test_answers_find_their_requests_and_strays_are_dropped() -> None:
    connection = make()
    first, _ = connection.send_request("initialize")
    second, _ = connection.send_request("set_model", model="haiku")
    events = connection.receive_data(
        response("stray", {}) + response(second, {"model": "x"}) + response(second, {}), 0
    )
    assert [e.answer for e in events if isinstance(e, RequestAnswered)] == [
        Answered(request_id=second, subtype="set_model", response={"model": "x"})
    ]
    (event,) = connection.receive_data(response(first, subtype="error", error="no"), 0)
    assert isinstance(event, RequestAnswered)
    assert isinstance(event.answer, Refused)


def test_a_request_that_was_given_up_takes_no_late_answer() -> None:
    connection = make()
    request_id, _ = connection.send_request("set_model")
    withdrawal = connection.withdraw_request(request_id)
    assert withdrawal is not None
    assert json.loads(withdrawal) == {"type": "control_cancel_request", "request_id": request_id}
    assert connection.receive_data(response(request_id, {}), 0) == []
    assert connection.withdraw_request(request_id) is None


def test_the_answer_to_an_interrupt_settles_what_it_dropped() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    request_id, data, events = connection.send_interrupt(cancel_queued=True, spare_agents=False)
    assert json.loads(data)["request"] == {"subtype": "interrupt", "cancel_queued": True}
    assert events == []
    answer = response(request_id, {"still_queued": [], "cancelled": [UUID, 7]})
    events = connection.receive_data(answer, 0)
    assert isinstance(events[0], RequestAnswered)
    assert isinstance(events[1], TurnEnded)
    assert turn.prompt.fate is Fate.WITHDRAWN


def test_a_spared_interrupt_ends_a_turn_that_only_agents_hold_at_once() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    agent = line(type="system", subtype="task_started", task_id="a1", task_type="local_agent")
    connection.receive_data(state("running") + life("started") + init() + agent + result(UUID), 0)
    assert not turn.over
    _, data, events = connection.send_interrupt(cancel_queued=True, spare_agents=True)
    assert json.loads(data)["request"]["spare_background_tasks"] is True
    assert events == [TurnEnded(turn)]
    assert turn.cancelled is Cancelled.SPARED


def test_a_deadline_that_passes_ends_a_turn_that_is_owed_nothing_more() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    agent = {"task_id": "a1", "task_type": "local_agent"}
    connection.receive_data(
        life("started")
        + init()
        + line(type="system", subtype="task_started", **agent)
        + line(type="system", subtype="task_notification", task_id="a1", status="completed")
        + result(UUID),
        10,
    )
    assert not turn.over
    assert connection.deadline == 12
    assert connection.tick(11) == []
    assert connection.tick(12) == [TurnEnded(turn)]


def test_an_unfamiliar_end_of_a_task_is_no_end() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    agent = {"task_id": "a1", "task_type": "local_agent"}
    connection.receive_data(
        life("started")
        + init()
        + line(type="system", subtype="task_started", **agent)
        + line(type="system", subtype="task_notification", task_id="a1", status="x-new")
        + result(UUID)
        + state("running"),
        0,
    )
    connection.tick(100)
    assert not turn.over


def test_a_steer_is_written_only_if_its_token_is_the_turns_own() -> None:
    connection = make()
    assert connection.send_steer("now", STEER, expected_token=1) == (NoLiveTurn(), None)
    turn, _ = connection.send_prompt("hello", UUID)
    token = connection.steering.token
    assert token is not None
    outcome, data = connection.send_steer("now", STEER, expected_token=token + 1)
    assert outcome == StaleTurn(token + 1, token)
    assert data is None
    outcome, data = connection.send_steer("now", STEER, expected_token=token)
    assert isinstance(outcome, Accepted)
    assert data is not None
    assert json.loads(data)["uuid"] == STEER
    events = connection.receive_data(state("running") + life("started") + init() + result(UUID), 0)
    assert not turn.over
    assert not any(isinstance(event, TurnEnded) for event in events)
    later = life("started", STEER) + init() + result(STEER) + state("idle")
    assert isinstance(connection.receive_data(later, 0)[-1], TurnEnded)
    assert connection.send_steer("more", STEER, expected_token=token)[0] == NoLiveTurn()


def test_closing_tells_which_requests_nobody_will_answer() -> None:
    connection = make()
    turn, _ = connection.send_prompt("hello", UUID)
    request_id, _ = connection.send_request("set_model")
    assert connection.close() == (request_id,)
    assert turn.prompt.fate is Fate.LOST
    with pytest.raises(LocalProtocolError):
        connection.send_prompt("more", STEER)
    with pytest.raises(LocalProtocolError):
        connection.send_request("set_model")


def test_the_last_frames_are_kept_for_reports() -> None:
    connection = make()
    connection.receive_data(TURN, 0)
    assert [frame["type"] for frame in connection.last_frames][-1] == "system"
    assert len(connection.last_frames) == 5
