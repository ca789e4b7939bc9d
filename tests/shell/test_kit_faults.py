"""Laws of the faults of a fake CLI: each is what it says, and the session tells the truth of it."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from claude_trio import (
    Allow,
    ExitCause,
    ExitState,
    LaunchFailed,
    Limits,
    PermissionRequest,
    ProcessExited,
    RemoteProtocolError,
    RequestTimedOut,
    Session,
    SessionClosed,
    Timeouts,
    TurnFailed,
)
from claude_trio.messages import SkippedLine, UnknownMessage
from claude_trio.testing import FakeClaude, call_tool, faults, hang, open_fake_session, say

REFERENCE: Final = Path(__file__).parent.parent.parent / "docs" / "reference" / "testing.rst"
NAMES: Final = [name for name in faults.__all__ if name.islower()]

Fault = faults.Fault
TOUCH: Final = call_tool("Bash", {"command": "touch a"})


def fake(*given: Fault) -> FakeClaude:
    return FakeClaude(lambda told: hang() if told == "hang" else say(told), faults=given)


async def works(session: Session) -> None:
    assert (await session.prompt("still here")).text == "still here"


async def opens_not(*given: Fault, words: str) -> LaunchFailed:
    with pytest.raises(LaunchFailed, match=words) as caught:
        async with open_fake_session(fake(*given)):
            pytest.fail("it must not open")
    return caught.value


# -- what it does not hear, or answers wrongly


async def deaf_to() -> None:
    """It does not hear: requests time out, the ladder goes on to the next rung."""
    given = faults.deaf_to("set_model", "eof")
    async with open_fake_session(fake(given), timeouts=Timeouts(control=5)) as session:
        with pytest.raises(RequestTimedOut):
            await session.set_model("opus")
        await works(session)
    assert session.exit_status.returncode == 143
    assert trio.current_time() == 5 + 5


async def late() -> None:
    """Its answer comes after the caller's deadline, and disturbs nobody."""
    given = faults.late(10, "set_model")
    async with open_fake_session(fake(given), timeouts=Timeouts(control=5)) as session:
        with pytest.raises(RequestTimedOut):
            await session.set_model("opus")
        await trio.sleep(10)
        await works(session)
        assert await session.set_permission_mode("plan") == "plan"


async def pretends() -> None:
    """It says yes to an interrupt and goes on: the backstop ends it."""
    with pytest.raises(SessionClosed):
        async with open_fake_session(fake(faults.pretends("interrupt"))) as session:
            with trio.move_on_after(5):
                await session.prompt("hang")
            await session.prompt("again")
    assert session.exit_status.cause is ExitCause.CANCEL_BACKSTOP
    assert trio.current_time() >= 5 + 30


async def answers_wrong_id() -> None:
    """Nobody has asked under that id: it is as if there were no answer."""
    given = faults.answers_wrong_id("set_model")
    async with open_fake_session(fake(given), timeouts=Timeouts(control=5)) as session:
        with pytest.raises(RequestTimedOut):
            await session.set_model("opus")
        await works(session)


async def answers_twice() -> None:
    """The first answer counts."""
    both = fake(faults.answers_twice())
    async with trio.open_nursery() as nursery:
        transport = await both.launch((), {}, None, nursery)
        asks = {"type": "control_request", "request_id": "a", "request": {"subtype": "mcp_status"}}
        transport.send_nowait(json.dumps(asks).encode() + b"\n")
        transport.close_stdin()
        await transport.wait_exit()
        one, other = transport.receive_nowait().splitlines()
        assert one == other
    async with open_fake_session(fake(faults.answers_twice())) as session:
        assert await session.set_model("opus") == "opus"
        assert await session.set_model("haiku") == "haiku"
        await works(session)


async def withdraws() -> None:
    """The handler is cancelled, nothing is answered, the turn goes on."""
    cancelled = trio.Event()

    async def decide(_request: PermissionRequest) -> Allow:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    slow = FakeClaude([TOUCH, say("denied")], faults=[faults.withdraws(5)])
    async with open_fake_session(slow, on_permission=decide) as session:
        result = await session.prompt("go")
        assert session.pending_permissions == ()
    assert (result.text, trio.current_time()) == ("denied", 5)
    assert cancelled.is_set()
    assert [denial.tool_name for denial in result.permission_denials] == ["Bash"]
    assert not [frame for frame in slow.received if frame["type"] == "control_response"]


# -- what it writes


async def silent() -> None:
    """A turn without a frame is given up after ``Timeouts.silence``; before, it waits."""
    given = faults.silent(at=4)
    async with open_fake_session(fake(given), timeouts=Timeouts(silence=60)) as session:
        with pytest.raises((TurnFailed, SessionClosed)):
            await session.prompt("go")
        assert trio.current_time() >= 60
    await opens_not(faults.silent(), words="initialize")


async def closes_stdout() -> None:
    """Without stdout there is no session: it is ended, and says why."""
    with pytest.raises(SessionClosed) as caught:
        async with open_fake_session(fake(faults.closes_stdout(at=4))) as session:
            await session.prompt("go")
    assert isinstance(caught.value.__cause__, RemoteProtocolError)
    assert session.exit_status.cause is ExitCause.PROTOCOL


async def noise() -> None:
    """Lines that are no frames are kept, and disturb nothing."""
    async with open_fake_session(fake(faults.noise(at=5))) as session:
        await works(session)
        assert b"Debugger attached." in session.diagnostics
        await works(session)


async def garbage() -> None:
    """What begins like a frame and is none may have been the result: the turn fails."""
    async with open_fake_session(fake(faults.garbage(at=5))) as session:
        async with session.subscribe() as events:
            with pytest.raises(RemoteProtocolError):
                await session.prompt("go")
            await works(session)
            await session.aclose()
            skipped = [event async for event in events if isinstance(event, SkippedLine)]
    assert len(skipped) == 3


async def unknown_frames() -> None:
    """What is not known goes through to whoever listens."""
    async with open_fake_session(fake(faults.unknown_frames(at=5))) as session:
        async with session.subscribe() as events:
            await works(session)
            await session.aclose()
            unknown = [event async for event in events if isinstance(event, UnknownMessage)]
    assert [event.raw.get("mood") for event in unknown] == ["odd", "odd"]


async def giant_line() -> None:
    """A line below ``Limits.frame`` passes, whatever its size; one above fails the turn."""
    given = faults.giant_line(3_000_000, at=5)
    async with open_fake_session(fake(given)) as session:
        await works(session)
    async with open_fake_session(fake(given), limits=Limits(frame=1_000_000)) as session:
        with pytest.raises(RemoteProtocolError, match="2999999"):
            await session.prompt("go")
        await works(session)


async def cuts_line() -> None:
    """A line that breaks off fails the turn, and the session lives."""
    async with open_fake_session(fake(faults.cuts_line(at=5))) as session:
        with pytest.raises(RemoteProtocolError):
            await session.prompt("go")
        await works(session)


async def missing() -> None:
    """A result that never comes is waited for: silence, or the caller's own deadline, ends it."""
    given = faults.missing("result", "command_lifecycle", "session_state_changed")
    async with open_fake_session(fake(given)) as session:
        with trio.move_on_after(1000) as scope:
            await session.prompt("go")
        assert scope.cancelled_caught
    async with open_fake_session(fake(faults.missing("session_state_changed"))) as session:
        await works(session)
    async with open_fake_session(fake(faults.missing("command_lifecycle"))) as session:
        await works(session)
        await works(session)


async def repeats() -> None:
    """A frame that comes twice counts once."""
    given = faults.repeats("result", "session_state_changed", "command_lifecycle", "init")
    async with open_fake_session(fake(given)) as session:
        for text in ("one", "two", "three"):
            assert (await session.prompt(text)).text == text


async def in_pieces() -> None:
    """Lines come whole however they are cut."""
    async with open_fake_session(fake(faults.in_pieces(3))) as session:
        assert (await session.prompt("wörd — 語")).text == "wörd — 語"


async def stderr() -> None:
    """It is drained, whatever comes, and its end is in every error."""
    given = faults.stderr("out of paper\n", 100_000)
    async with open_fake_session(fake(given, faults.dies(3))) as session:
        with pytest.raises(ProcessExited, match="out of paper"):
            await session.prompt("go")
        assert len(session.exit_status.stderr_tail) <= 65536


# -- how it reads, starts and ends


async def narrow_stdin() -> None:
    """A long prompt goes in piece by piece."""
    async with open_fake_session(fake(faults.narrow_stdin(7))) as session:
        assert (await session.prompt("x" * 1000)).text == "x" * 1000


async def stops_reading() -> None:
    """A host that gets rid of nothing for ``Timeouts.write`` closes the session."""
    given = faults.stops_reading(at=2, size=100)
    with pytest.raises(SessionClosed):
        async with open_fake_session(fake(given)) as session:
            await session.prompt("x" * 1000)
    assert session.exit_status.cause is ExitCause.STDIN_STALLED
    assert trio.current_time() >= 30


async def starts_after() -> None:
    """A slow start is waited for, up to ``Timeouts.initialize``."""
    async with open_fake_session(fake(faults.starts_after(50))) as session:
        assert trio.current_time() == 50
        await works(session)
    await opens_not(faults.starts_after(70), words="initialize")


async def refuses_to_start() -> None:
    """The CLI's own words, at once."""
    for with_result in (False, True):
        started = trio.current_time()
        given = faults.refuses_to_start("No conversation found", with_result=with_result)
        error = await opens_not(given, words="No conversation found")
        assert error.returncode == 1
        assert bool(error.last_frames) is with_result
        assert trio.current_time() == started


async def dies() -> None:
    """An exit in mid-turn is an error whatever the code; later calls have it as their cause."""
    for code in (0, 1, 7, -9, -11):
        async with open_fake_session(fake(faults.dies(code))) as session:
            with pytest.raises(ProcessExited) as caught:
                await session.prompt("go")
            assert (caught.value.returncode, caught.value.signal) == (
                code,
                -code if code < 0 else None,
            )
            with pytest.raises(SessionClosed) as later:
                await session.prompt("again")
            assert isinstance(later.value.__cause__, ProcessExited)
    # The result's line is torn: what stood in it is lost, and nothing is made of it.
    async with open_fake_session(fake(faults.dies(0, at=12, torn=30))) as session:
        with pytest.raises((ProcessExited, RemoteProtocolError)):
            await session.prompt("go")


async def exits_with() -> None:
    """A code of its own at an orderly end takes no result away."""
    async with open_fake_session(fake(faults.exits_with(1))) as session:
        await works(session)
    assert session.exit_status.returncode == 1
    assert session.exit_status.state is ExitState.COMPLETED


async def lingers() -> None:
    """It may take ``Timeouts.eof`` to leave; then it is told to."""
    for seconds, code in ((3, 0), (30, 143)):
        async with open_fake_session(fake(faults.lingers(seconds))) as session:
            await works(session)
            closed = trio.current_time()
        assert trio.current_time() - closed == min(seconds, 5)
        assert session.exit_status.returncode == code


async def holds_stdout() -> None:
    """Exit is not EOF: nobody waits for the one who holds stdout open."""
    async with open_fake_session(fake(faults.holds_stdout(), faults.dies(-9))) as session:
        with pytest.raises(ProcessExited):
            await session.prompt("go")
        assert trio.current_time() == 0


LAWS: Final[dict[str, Callable[[], Awaitable[None]]]] = {
    law.__name__: law
    for law in (
        *(deaf_to, late, pretends, answers_wrong_id, answers_twice, withdraws),
        *(silent, closes_stdout, noise, garbage, unknown_frames, giant_line, cuts_line),
        *(missing, repeats, in_pieces, stderr, narrow_stdin, stops_reading, starts_after),
        *(refuses_to_start, dies, exits_with, lingers, holds_stdout),
    )
}


@pytest.mark.parametrize("name", NAMES)
async def test_the_session_tells_the_truth_of_each_fault(
    autojump_clock: MockClock, name: str
) -> None:
    with trio.fail_after(10_000):
        await LAWS[name]()


async def test_faults_add_up(autojump_clock: MockClock) -> None:
    given = (faults.starts_after(5), faults.in_pieces(1), faults.noise(2), faults.exits_with(3))
    async with open_fake_session(fake(*given, faults.stderr("one\n"), faults.stderr("two\n"))) as s:
        await works(s)
    assert (s.exit_status.returncode, s.exit_status.stderr_tail) == (3, "one\ntwo\n")


@pytest.mark.parametrize("count", range(1, 14))
async def test_a_cli_that_tears_any_of_its_frames_and_dies_is_never_taken_for_one_that_answers(
    autojump_clock: MockClock, count: int
) -> None:
    with pytest.raises((ProcessExited, LaunchFailed, RemoteProtocolError)):
        async with open_fake_session(fake(faults.dies(5, at=count, torn=20))) as session:
            await session.prompt("go")
            await session.prompt("again")


def test_the_reference_names_each_fault() -> None:
    table = re.findall(r"^``(\w+)``", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in table if name in NAMES] == NAMES
