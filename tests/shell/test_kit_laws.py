"""The laws of permission handlers: each is broken on purpose, and what keeps them all passes."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import trio

from claude_trio import DEFER, Allow, Deny, PermissionRequest, Question, ask
from claude_trio.permissions import (
    AddRules,
    Destination,
    RuleBehavior,
    allow_all,
    allow_tools,
    deny_all,
    deny_tools,
    first_of,
)
from claude_trio.testing import (
    BadHandler,
    HandlerLaw,
    LawBroken,
    check_permission_handler,
)
from claude_trio.testing._odd_requests import odd_requests, ordinary_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from claude_trio import PermissionHandler
    from claude_trio.permissions import Decision, Defer

MINE = PermissionRequest(id="m", tool_name="Mine", input={"mine": True})


# What keeps the laws.


async def suggest(request: PermissionRequest) -> Allow:
    return Allow(request.input, request.suggestions)


async def wait_and_clean_up(_request: PermissionRequest) -> Deny:
    try:
        await trio.sleep(59)
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
    return Deny("too late")


async def fan_out(_request: PermissionRequest) -> Defer:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        nursery.start_soon(trio.sleep, 2)
    return DEFER


@pytest.mark.parametrize(
    "handler",
    [
        allow_all,
        deny_all,
        allow_tools("Read", "mcp__files__*"),
        deny_tools("Bash"),
        first_of(deny_tools("Bash"), allow_tools("Read"), allow_all),
        first_of(),
        suggest,
        wait_and_clean_up,
        fan_out,
    ],
)
def test_what_is_ready_made_and_what_is_well_made_keeps_all_laws(
    handler: PermissionHandler,
) -> None:
    check_permission_handler(handler)


def test_a_handler_that_asks_somebody_is_checked_with_them_at_its_side() -> None:
    send, receive = trio.open_memory_channel[Question](0)

    async def person() -> None:
        async for question in receive:
            await trio.sleep(20)
            question.reply(Allow())

    with pytest.raises(BadHandler) as slow:  # It answers one after the other.
        check_permission_handler(ask(send), beside=person)
    assert slow.value.law is HandlerLaw.IN_TIME
    check_permission_handler(ask(send), beside=person, seconds=20 * 14)
    with pytest.raises(BadHandler) as alone:
        check_permission_handler(ask(send))
    assert alone.value.law is HandlerLaw.IN_TIME
    assert "channel.send" in str(alone.value)


# What breaks them.


async def hang(_request: PermissionRequest) -> NoReturn:
    await trio.sleep_forever()
    raise AssertionError


async def dawdle(_request: PermissionRequest) -> Allow:
    await trio.sleep(60.5)
    return Allow()


async def circle(_request: PermissionRequest) -> NoReturn:
    while True:
        try:
            await trio.sleep(1)
        except BaseException:  # noqa: ASYNC103, BLE001  The worst there is.
            continue


async def say_nothing(_request: PermissionRequest) -> Any:
    return None


async def say_yes(_request: PermissionRequest) -> Any:
    return True


def decide_at_once(_request: PermissionRequest) -> Any:
    return Allow()


async def allow_what_json_cannot_hold(request: PermissionRequest) -> Allow:
    return Allow({**request.input, "when": threading.Lock()})


async def expect_a_command(request: PermissionRequest) -> Allow:
    return Allow({**request.input, "command": f"nice {request.input['command']}"})


async def expect_a_text(request: PermissionRequest) -> Decision:
    safe = str.startswith(request.input.get("command", ""), "ls")  # type: ignore[arg-type]
    return Allow() if safe else Deny("only ls")


async def expect_a_suggestion(request: PermissionRequest) -> Allow:
    return Allow(updated_permissions=request.suggestions[:1] or (request.suggestions[0],))


async def expect_a_reason(request: PermissionRequest) -> Deny:
    return Deny(request.decision_reason)  # type: ignore[arg-type]


async def expect_characters_of_this_world(request: PermissionRequest) -> Allow:
    json.dumps(request.tool_name).encode()
    request.tool_name.encode()
    return Allow()


async def raise_a_group(_request: PermissionRequest) -> NoReturn:
    async with trio.open_nursery():
        raise KeyError("inside")
    raise AssertionError


class OneAtATime:
    def __init__(self) -> None:
        self.busy = trio.lowlevel.ParkingLot()
        self.used = False

    async def __call__(self, _request: PermissionRequest, /) -> Allow:
        if self.used:
            raise trio.BusyResourceError
        self.used = True
        try:
            await trio.sleep(1)
        finally:
            self.used = False
        return Allow()


class KeepsALock:
    """A cancelled call keeps what the next one needs."""

    def __init__(self) -> None:
        self.free = True

    async def __call__(self, _request: PermissionRequest, /) -> Allow:
        while not self.free:
            await trio.sleep(1)
        self.free = False
        await trio.sleep(1)
        self.free = True
        return Allow()


class OneToolForEver:
    """Each request alone is fine with it."""

    def __init__(self) -> None:
        self.run: object = None
        self.tool = ""

    async def __call__(self, request: PermissionRequest, /) -> Allow:
        run = trio.lowlevel.current_root_task()
        if run is not self.run:
            self.run, self.tool = run, request.tool_name
        if request.tool_name != self.tool:
            raise LookupError(request.tool_name)
        return Allow()


async def swallow_cancellation(_request: PermissionRequest) -> Decision:
    try:
        await trio.sleep(1)
    except trio.Cancelled:  # noqa: ASYNC103  That is its fault.
        return Deny("cancelled")
    return Allow()


async def fail_at_cancellation(_request: PermissionRequest) -> Allow:
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        raise KeyError("clean-up") from None
    return Allow()


async def fail_in_a_group_at_cancellation(_request: PermissionRequest) -> Allow:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        await fail_at_cancellation(MINE)
    return Allow()


async def shield_for_ever(_request: PermissionRequest) -> Allow:
    try:
        await trio.sleep(1)
    except trio.Cancelled:  # noqa: ASYNC103  That is its fault.
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()
    return Allow()


async def leave_a_thread(_request: PermissionRequest) -> Allow:
    stop = threading.Event()
    STOPS.append(stop)
    threading.Thread(target=stop.wait, daemon=True).start()
    return Allow()


async def leave_a_task(_request: PermissionRequest) -> Allow:
    trio.lowlevel.spawn_system_task(trio.sleep_forever)
    return Allow()


STOPS: list[threading.Event] = []


@pytest.fixture(autouse=True)
def end_of_threads() -> Iterator[None]:
    yield
    while STOPS:
        STOPS.pop().set()


def law_of(handler: PermissionHandler, **options: Any) -> BadHandler:
    with pytest.raises(BadHandler) as caught:
        check_permission_handler(handler, **options)
    return caught.value


@pytest.mark.parametrize(
    ("handler", "law"),
    [
        (hang, HandlerLaw.IN_TIME),
        (dawdle, HandlerLaw.IN_TIME),
        (circle, HandlerLaw.IN_TIME),
        (say_nothing, HandlerLaw.DECIDES),
        (say_yes, HandlerLaw.DECIDES),
        (decide_at_once, HandlerLaw.DECIDES),
        (allow_what_json_cannot_hold, HandlerLaw.DECIDES),
        (expect_a_command, HandlerLaw.TAKES_EVERYTHING),
        (expect_a_text, HandlerLaw.TAKES_EVERYTHING),
        (expect_a_suggestion, HandlerLaw.TAKES_EVERYTHING),
        (expect_a_reason, HandlerLaw.TAKES_EVERYTHING),
        (expect_characters_of_this_world, HandlerLaw.TAKES_EVERYTHING),
        (OneToolForEver(), HandlerLaw.TAKES_EVERYTHING),
        (raise_a_group, HandlerLaw.NO_GROUP),
        (OneAtATime(), HandlerLaw.TOGETHER),
        (KeepsALock(), HandlerLaw.SURVIVES_CANCELLATION),
        (swallow_cancellation, HandlerLaw.SURVIVES_CANCELLATION),
        (fail_at_cancellation, HandlerLaw.SURVIVES_CANCELLATION),
        (fail_in_a_group_at_cancellation, HandlerLaw.NO_GROUP),
        (shield_for_ever, HandlerLaw.SURVIVES_CANCELLATION),
        (leave_a_thread, HandlerLaw.LEAVES_NOTHING),
        (leave_a_task, HandlerLaw.LEAVES_NOTHING),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_each_law_has_a_handler_that_breaks_it(handler: PermissionHandler, law: HandlerLaw) -> None:
    bad = law_of(handler)
    assert bad.law is law
    assert law.value in str(bad)
    assert bad.asked in str(bad)
    assert isinstance(bad.request, PermissionRequest)
    assert bad.reason in str(bad)


def test_every_law_is_broken_by_one_of_them() -> None:
    # The marks of the test above are the table.
    (mark,) = test_each_law_has_a_handler_that_breaks_it.pytestmark  # type: ignore[attr-defined]
    assert {law for _, law in mark.args[1]} == set(HandlerLaw)


def test_the_error_holds_what_the_handler_raised() -> None:
    bad = law_of(expect_a_command)
    assert isinstance(bad.__cause__, KeyError)
    assert "KeyError" in bad.reason
    assert isinstance(bad, AssertionError)
    # A request may be huge, and its words are for people.
    assert len(str(bad)) < 2000


@pytest.mark.parametrize("fault", [hang, leave_a_task])
def test_the_error_names_the_request_that_is_to_blame(fault: PermissionHandler) -> None:
    async def handler(request: PermissionRequest) -> Decision:
        return await fault(request) if request.tool_name == "WebFetch" else Allow()

    bad = law_of(handler)
    assert isinstance(bad.request, PermissionRequest)
    assert bad.request.tool_name == "WebFetch"


def test_the_error_says_where_a_cancellation_went_wrong() -> None:
    swallowed = law_of(swallow_cancellation)
    assert isinstance(swallowed.__cause__, LawBroken)
    assert swallowed.__cause__.step is not None
    assert "swallow_cancellation" in str(swallowed)
    failed = law_of(fail_at_cancellation)
    assert isinstance(failed.__cause__, KeyError)
    assert "cancelled before step" in str(failed)


def test_requests_of_ones_own_are_asked_too() -> None:
    async def handler(request: PermissionRequest) -> Allow:
        if request is MINE:
            raise LookupError("not this one")
        return Allow()

    check_permission_handler(handler)
    bad = law_of(handler, requests=[MINE])
    assert (bad.law, bad.request) == (HandlerLaw.TAKES_EVERYTHING, MINE)


def test_requests_of_ones_own_are_cancelled_too() -> None:
    async def handler(request: PermissionRequest) -> Decision:
        return await swallow_cancellation(request) if request is MINE else Allow()

    check_permission_handler(handler)
    bad = law_of(handler, requests=[MINE])
    assert (bad.law, bad.request) == (HandlerLaw.SURVIVES_CANCELLATION, MINE)


def test_what_fails_beside_a_handler_is_not_its_fault() -> None:
    async def fail() -> None:
        raise KeyError("beside")

    async def wait(_request: PermissionRequest) -> Allow:
        await trio.sleep(1)
        return Allow()

    with pytest.raises(LawBroken) as caught:
        check_permission_handler(wait, beside=fail)
    assert isinstance(caught.value.__cause__, ExceptionGroup)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_time_is_some_and_not_for_ever(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"seconds"):
        check_permission_handler(allow_all, seconds=seconds)


async def test_a_run_of_trio_is_no_place_to_check_in() -> None:
    with pytest.raises(RuntimeError):
        check_permission_handler(allow_all)


def test_the_requests_show_every_field_given_and_missing() -> None:
    requests = [request for _, request in (*ordinary_requests(), *odd_requests())]
    for name in (
        "tool_use_id",
        "agent_id",
        "display_name",
        "description",
        "decision_reason",
        "decision_reason_type",
        "blocked_path",
        "mcp_server",
        "title",
    ):
        values = {getattr(request, name) for request in requests}
        assert None in values
        assert len(values) > 1, name
    assert {request.requires_user_interaction for request in requests} == {False, True}
    assert any(not request.raw for request in requests)
    assert any(not request.input for request in requests)
    assert max(len(str(request.input)) for request in requests) > 1_000_000
    offered = [each for request in requests for each in request.suggestions]
    assert len({type(each) for each in offered}) == 7
    assert AddRules in {type(each) for each in offered}
    assert {each.behavior for each in offered if isinstance(each, AddRules)} == {
        RuleBehavior.ALLOW,
        RuleBehavior.DENY,
    }
    assert {each.destination for each in offered if isinstance(each, AddRules)} == set(Destination)


def test_the_words_of_the_requests_tell_them_apart() -> None:
    words = [words for words, _ in (*ordinary_requests(), *odd_requests())]
    assert len({*words}) == len(words)


@pytest.mark.parametrize("make", [ordinary_requests, odd_requests])
def test_a_check_gets_requests_that_no_other_has_touched(
    make: Callable[[], Iterator[tuple[str, PermissionRequest]]],
) -> None:
    first, second = dict(make()), dict(make())
    assert all(first[words] is not second[words] for words in first)
