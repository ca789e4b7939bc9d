"""Laws of the fake CLI: it says the same things in the same order as the real one did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from claude_trio import Transport
from claude_trio.testing import FakeClaude, Reply, call_tool, hang, pause, say
from tests.recordings import KEPT, recorded_output
from tests.shell.scripted import Json, agent

BASH = call_tool("Bash", {"command": "sleep 2"})
MODEL = say("word ") + hang()


def label(frame: Mapping[str, Any]) -> str:
    """Say what kind of frame it is, in what of it the order is about."""
    match frame:
        case {"type": "system", "subtype": str(subtype)}:
            patch = frame.get("patch", {})
            return f"{subtype} {frame.get('state') or frame.get('status') or patch.get('status')}"
        case {"type": "assistant" | "user" as kind, "message": {"content": [{"type": block}]}}:
            return f"{kind} {block}"
        case {"type": "result"}:
            origin = (frame.get("origin") or {}).get("kind")
            return f"result {frame['subtype']} {frame['terminal_reason']} {origin}"
        case {"type": "control_request", "request": {"subtype": subtype}}:
            return f"asks {subtype}"
        case {"type": "command_lifecycle", "state": state}:
            return f"lifecycle {state}"
        case _:
            return str(frame["type"])


def of_agent(frame: Mapping[str, object]) -> bool:
    return frame.get("parent_tool_use_id") is not None


def skeleton(frames: Sequence[Mapping[str, Any]], *, agents: bool) -> list[str]:
    # How a message streams, and how far a task is, are told in more detail by the real one, which
    # also lists the longer commands of agents and may tell its state again.
    left_out = {"stream_event", "rate_limit_event", "control_response"}
    labels = [
        label(frame)
        for frame in frames
        if frame["type"] not in left_out
        and of_agent(frame) is agents
        and not frame.get("owned_by_subagent")
    ]
    told: list[str] = []
    states: list[str] = []
    for text in labels:
        again = text.startswith("session_state_changed") and states[-1:] == [text]
        if text.startswith("session_state_changed"):
            states.append(text)
        if not again and not text.startswith(("status", "task_progress")):
            told.append(text)
    return told


@attrs.frozen(kw_only=True)
class Play:
    """What is said to a CLI, and when."""

    script: list[Reply]
    agents: list[Reply] = attrs.Factory(list)
    says: dict[float, Json]
    asks: tuple[str, ...] = ()


def prompt(uuid: str | None = None) -> Json:
    frame: Json = {"type": "user", "message": {"role": "user", "content": "go"}}
    return frame if uuid is None else {**frame, "uuid": uuid}


def control(**request: object) -> Json:
    return {"type": "control_request", "request_id": "r", "request": request}


AGENT = [pause(1) + BASH, say("it is there")]

PLAYS = {
    "subagent-background": Play(
        script=[agent(), say("it runs"), say("done")], agents=AGENT, says={0: prompt()}
    ),
    "subagent-background-interrupt-mid-turn": Play(
        script=[agent(), MODEL],
        agents=[BASH],
        says={0: prompt(), 1: control(subtype="interrupt")},
    ),
    "subagent-background-interrupt-spare": Play(
        script=[agent(), MODEL, say("done")],
        agents=AGENT,
        says={0: prompt(), 0.5: control(subtype="interrupt", spare_background_tasks=True)},
    ),
    "prompt-while-tool-runs": Play(
        script=[BASH, say("both")],
        says={0: prompt(), 1: prompt("33333333-2222-4333-8444-555555555555")},
        asks=("Bash",),
    ),
    "interrupt-cancel-queued": Play(
        script=[MODEL],
        says={
            0: prompt(),
            1: prompt("22222222-2222-4333-8444-555555555555"),
            2: control(subtype="interrupt", cancel_queued=True),
        },
    ),
}


def send(transport: Transport, frame: Json) -> None:
    transport.send_nowait(json.dumps(frame).encode() + b"\n")


async def played(play: Play) -> list[Mapping[str, Any]]:
    """Play it to the fake, with a host that allows everything."""
    start = trio.current_time()
    fake = FakeClaude(play.script, asks=play.asks.__contains__, agents={"look": play.agents})
    seen = b""

    async def read(transport: Transport) -> None:
        nonlocal seen
        while data := await transport.receive():
            seen += data
            for line in data.splitlines():
                frame = json.loads(line)
                if frame["type"] == "control_request":
                    body = {"subtype": "success", "request_id": frame["request_id"]}
                    allow = {**body, "response": {"behavior": "allow"}}
                    send(transport, {"type": "control_response", "response": allow})

    async with trio.open_nursery() as nursery:
        transport = await fake.launch((), {}, None, nursery)
        nursery.start_soon(read, transport)
        for at, frame in play.says.items():
            await trio.sleep_until(at + start)
            send(transport, frame)
        await trio.sleep(100)
        transport.close_stdin()
    return [json.loads(line) for line in seen.splitlines()]


@pytest.mark.parametrize("name", PLAYS)
async def test_the_fake_says_what_the_real_one_said_in_the_same_order(
    autojump_clock: MockClock, name: str
) -> None:
    real = [frame for _, frame in recorded_output(KEPT / f"{name}.ndjson")]
    fake = await played(PLAYS[name])
    states = any("session_state_changed" in text for text in skeleton(real, agents=False))
    main = [s for s in skeleton(fake, agents=False) if states or "session_state" not in s]
    assert main == skeleton(real, agents=False)
    assert skeleton(fake, agents=True) == skeleton(real, agents=True)
