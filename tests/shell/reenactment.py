"""Play a recording of the real CLI again, on a fake one: the same model, the same host.

A recording holds all that this takes.  Each of its prompts carries, as ``[[fake: {...}]]``, what
the scripted model said to it, and the lines of the host stand in it with their times.
`reenacted` makes a script of the one and a host of the other, and gives what a fake says to them;
`kind` says what of a frame the two have to agree in.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from claude_trio.testing import (
    FakeClaude,
    Reply,
    ToolError,
    Usage,
    call_tools,
    cut,
    fail,
    faults,
    hang,
    pause,
    say,
    think,
)
from claude_trio.testing._fake_transport import FakeTransport
from claude_trio.testing._replies import Thinking

__all__ = ["UNLIKE", "Json", "Reenacted", "kind", "reenacted", "rows_of"]

Json = dict[str, Any]

MARK: Final = "[[fake: "
UNLIKE: Final = frozenset(
    {"prompt_suggestion", "rate_limit_event", "thinking_tokens", "transcript_mirror"}
)
"""What a fake does not say, or not as often."""
PASSED_ON: Final = frozenset(
    {
        *("apply_flag_settings", "file_suggestions", "generate_session_title", "get_context_usage"),
        *("get_hooks_listing", "get_plan", "get_session_cost", "get_settings", "get_status"),
        *("get_usage", "get_workspace_diff", "list_models", "list_permission_rules"),
        *("reload_skills", "rewind_conversation", "set_max_thinking_tokens"),
    }
)
"""The control requests to which a fake gives the answers that it is given."""
UNFINISHED: Final = {"stdin-split-line": (1, 3)}
"""Which of the lines that are no frames were sent without the end of a line."""
TOGETHER: Final = 0.002
"""What the host wrote within so many seconds, it wrote at once."""
LATENCY: Final = 0.01
AGENTS_LATENCY: Final = 0.05
"""How long the models take to answer.  Agents take longer to start, in the real CLI."""
LONG: Final = 3600.0
"""What has not come by then does not come."""


def rows_of(path: Path) -> tuple[Json, list[Json]]:
    """Read the header and the rows of a recording, but for what the API was asked."""
    with path.open(encoding="utf-8") as lines:
        header, *rows = map(json.loads, lines)
    return header, [
        row
        for row in rows
        if row["dir"] != "ctl" or not row["frame"].get("event", "").startswith("api")
    ]


def frames_of(rows: Sequence[Json]) -> list[Json]:
    return [row["frame"] for row in rows if row["dir"] == "out" and "raw" not in row]


# -- the model


def scripts_in(text: str) -> list[Json]:
    """Find the scripts in a text, but for those that are inside of another."""
    found: list[Json] = []
    at = 0
    while (at := text.find(MARK, at)) >= 0:
        at += len(MARK)
        with contextlib.suppress(ValueError):
            script, at = json.JSONDecoder().raw_decode(text, at)
            found.append(script)
    return found


def replies(script: Json) -> Iterator[Reply]:
    """Give what the model says to a script, with the tries that fail."""
    for step in script.get("steps", [script]):
        yield from tries(step)
        if "cut" not in step or "tools" not in step:
            yield spoken(step)
        if step.get("text") == "":
            yield spoken(step)  # It is asked for once more.
    if "then" in script:
        then = script["then"]
        yield spoken(then) if isinstance(then, dict) else say(then)


def tries(step: Json) -> Iterator[Reply]:
    """Give the tries of a step that fail."""
    if "error" in step:
        error: Json = step["error"]
        once = fail(error["status"], error.get("message"), retry_after=error.get("retry_after"))
        yield from [once] * error["times"] if "times" in error else endless(once)
    if "cut" in step:
        how: Json = step["cut"]
        yield from [broken(step, how["after"], cut())] * how.get("times", 3)
    if "stream_error" in step:
        yield broken(step, step["stream_error"]["after"], fail(529))


def endless(reply: Reply) -> Iterator[Reply]:
    while True:
        yield attrs.evolve(reply, always=True)


def spoken(step: Json) -> Reply:
    """Give what a step says when nothing goes wrong."""
    reply = think(step["thinking"]) if "thinking" in step else Reply()
    for block in step.get("blocks", ()):
        reply += say(block["text"]) if "text" in block else Reply(parts=(Thinking(text=""),))
    text = "filler" if "fill" in step else step.get("text", "Recovered." if "error" in step else "")
    if text:
        pieces = math.ceil(len(text) / step.get("chunk", len(text)))
        reply += say(text, chunks=pieces, delay=step.get("delay", 0.0))
    if "tools" in step:
        reply += call_tools(*[(each["name"], each["input"]) for each in step["tools"]])
    if "hang" in step:
        reply += hang()
    usage = Usage(**step["usage"]) if "usage" in step else Usage()
    return attrs.evolve(reply, stop_reason=step.get("stop_reason"), usage=usage)


def broken(step: Json, after: int, how: Reply) -> Reply:
    """Give what a step says until it breaks off."""
    whole = spoken(step)
    if "tools" in step:
        # A call that breaks off in its middle is like a thought that does.
        return attrs.evolve(whole, parts=whole.parts[:-1]) + think("and") + how
    pauses = sum(isinstance(part, type(pause(0).parts[0])) for part in whole.parts[: 2 * after])
    return attrs.evolve(whole, parts=whole.parts[: after + min(pauses, after - 1)]) + how


class Model:
    """The scripted model: it goes by the last script that it was told."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._row: Iterator[Reply] = iter(())
        self._told = ""

    def __call__(self, told: str) -> Reply:
        scripts = scripts_in(told)
        if scripts and told != self._told:
            self._row = replies(scripts[-1])
        self._told = told if scripts else ""
        return pause(self._latency) + next(self._row, say("Done."))


def agents_of(rows: Sequence[Json]) -> dict[str, Any]:
    """Make a model for each agent, by its prompt."""
    agents: dict[str, Any] = {}
    scripts = [
        script
        for row in rows
        if row["dir"] == "in"
        for text in texts_in(row["frame"])
        for script in scripts_in(text)
    ]
    while scripts:
        script = scripts.pop()
        for step in script.get("steps", [script]):
            for tool in step.get("tools", ()):
                if tool["name"] == "Agent":
                    agents[tool["input"]["prompt"]] = Model(AGENTS_LATENCY)
                    scripts += scripts_in(tool["input"]["prompt"])
    return agents


def texts_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for inner in value:
                yield from texts_in(inner)
        case dict():
            for inner in value.values():
                yield from texts_in(inner)


class Tools:
    """What the tools gave in the recording, by what they were called with."""

    def __init__(self, rows: Sequence[Json]) -> None:
        called: dict[str, str] = {}
        self._given: defaultdict[str, list[Json]] = defaultdict(list)
        for block in (block for frame in frames_of(rows) for block in blocks_of(frame)):
            if block["type"] == "tool_use":
                called[block["id"]] = self._key(block["name"], block["input"])
            elif block["type"] == "tool_result":
                self._given[called[block["tool_use_id"]]].append(block)

    def _key(self, name: str, use: object) -> str:
        return f"{name} {json.dumps(use, sort_keys=True)}"

    def __call__(self, name: str, use: Mapping[str, object]) -> str:
        given = self._given[self._key(name, use)]
        block = given.pop(0) if given else {"content": ""}
        if block.get("is_error"):
            raise ToolError(str(block["content"]))
        return str(block["content"])


def blocks_of(frame: Json) -> list[Json]:
    message = frame.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


# -- what a frame is

SYSTEM: Final = (
    *("state", "task_type", "is_backgrounded", "owned_by_subagent", "summary_is_report"),
    *("status", "permissionMode", "level", "attempt", "max_retries", "error_status", "trigger"),
    "last_tool_name",
)
FLAGS: Final = ("aborted", "isSynthetic", "isReplay", "error", "is_api_error_message")
RESULT: Final = (
    *("subtype", "is_error", "terminal_reason", "stop_reason", "num_turns", "api_error_status"),
    "result_index",
)
PRESENT: Final = ("errors", "local_command", "structured_output")


def kind(frame: Json) -> str:  # noqa: PLR0911  One case for each kind of frame.
    """Say what kind of frame it is, with all of it that is not its own words, ids and times."""
    match frame:
        case {"type": "system", "subtype": "init"}:
            return "init"
        case {"type": "system", "subtype": subtype}:
            patch = {**frame.get("patch", {}), "end_time": None}
            told: Json = {name: frame[name] for name in SYSTEM if name in frame}
            return f"{subtype} {told} {patch} {len(frame.get('tasks', ()))}"
        case {"type": "assistant" | "user" as who}:
            blocks = [block_kind(block) for block in blocks_of(frame)]
            return f"{who} {blocks} {[name for name in FLAGS if frame.get(name)]}"
        case {"type": "stream_event", "event": {"type": event}}:
            return f"event {event}"
        case {"type": "result"}:
            told = {name: frame[name] for name in RESULT if frame.get(name) is not None}
            origin = (frame.get("origin") or {}).get("kind")
            return f"result {told} {origin} {[name for name in PRESENT if name in frame]}"
        case {"type": "control_request", "request": dict(request)}:
            return f"asks {asked(request)}"
        case {"type": "control_response", "response": dict(response)}:
            short = [*response.get("response", {})][:3]
            given = sorted(short) if len(short) < 3 else []
            return f"answers {response['subtype']} {response.get('error_code')} {given}"
        case {"type": "command_lifecycle", "state": state}:
            return f"lifecycle {state} {frame.get('wakeup_source')}"
        case _:
            return str(frame["type"])


def block_kind(block: Json) -> str:
    sort = str(block["type"]).removeprefix("redacted_")
    return f"{sort} {block.get('name', '')}{' failed' if block.get('is_error') else ''}"


def asked(request: Json) -> str:
    """Say what the host is asked, in what tells it from other questions."""
    match request:
        case {"subtype": "can_use_tool"}:
            agent = "an agent" if "agent_id" in request else "the model"
            return f"can_use_tool {request['tool_name']} for {agent}"
        case {"subtype": "hook_callback"}:
            return f"hook {request['callback_id']} {request['input']['hook_event_name']}"
        case {"subtype": "mcp_message"}:
            return f"mcp {request['server_name']} {request['message'].get('method')}"
        case _:
            return str(request.get("subtype"))


# -- the host


@attrs.define
class Reenacted:
    """What the fake said, and how it ended."""

    frames: list[Json] = attrs.Factory(list)
    code: int | None = None


class Host:
    """It says what the recorded host said, at the same places."""

    def __init__(self, rows: Sequence[Json], transport: FakeTransport, scenario: str) -> None:
        self._rows, self._transport, self._scenario = rows, transport, scenario
        self.said = Reenacted()
        self._seen: dict[tuple[str, int], float] = {}
        """When the n-th frame of a kind came."""
        self._counts: Counter[str] = Counter()
        self._changed = trio.lowlevel.ParkingLot()
        self._raw = 0
        """How many lines that are no frames have been sent."""
        self._questions: defaultdict[str, list[Json]] = defaultdict(list)
        for row in rows:
            if row["dir"] == "out" and row["frame"]["type"] == "control_request":
                self._questions[asked(row["frame"]["request"])].append(row)
        ids = {row["frame"]["request_id"] for each in self._questions.values() for row in each}
        self._answers = [row for row in rows if answered(row) in ids]

    async def read(self, nursery: trio.Nursery) -> None:
        """Read what the fake says, and answer its questions."""
        rest = b""
        while data := await self._transport.receive():
            *lines, rest = (rest + data).split(b"\n")
            for frame in map(json.loads, lines):
                self.said.frames.append(frame)
                self._counts[kind(frame)] += 1
                self._seen[kind(frame), self._counts[kind(frame)]] = trio.current_time()
                if frame["type"] == "control_request":
                    self._answer(nursery, frame)
            self._changed.unpark_all()
        assert not rest

    def _answer(self, nursery: trio.Nursery, frame: Json) -> None:
        questions = self._questions[asked(frame["request"])]
        if not questions:
            return
        question = questions.pop(0)
        for row in self._answers:
            if answered(row) == question["frame"]["request_id"]:
                answer = json.loads(json.dumps(row["frame"]))
                answer["response"]["request_id"] = frame["request_id"]
                message = (answer["response"].get("response") or {}).get("mcp_response", {})
                if "id" in message:
                    message["id"] = frame["request"]["message"]["id"]
                seconds = row["t"] - question["t"]
                # What is answered at once is answered in the order of the recording.
                in_order = row["t"] * 1e-6
                wait = seconds if seconds > TOGETHER else in_order
                nursery.start_soon(self._send_later, wait, answer)

    async def _send_later(self, seconds: float, frame: Json) -> None:
        await trio.sleep(seconds)
        self._send(json.dumps(frame).encode() + b"\n")

    def _send(self, data: bytes) -> None:
        # The fake may be gone, as the real one was.
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self._transport.send_nowait(data)

    async def say(self) -> None:
        """Say all that is no answer."""
        anchor: Json | None = None
        counts: Counter[str] = Counter()
        last = -1.0
        for row in self._rows:
            match row:
                case {"dir": "out", "frame": dict(frame)}:
                    if not {frame["type"], frame.get("subtype")} & UNLIKE:
                        anchor = row
                        counts[kind(frame)] += 1
                case {"dir": "in"} if row not in self._answers:
                    if row["t"] - last > TOGETHER:
                        await self._reach(anchor, counts, row["t"])
                    last = row["t"]
                    self._send(self._line(row))
                case {"dir": "ctl", "frame": {"event": "stdin_closed"}}:
                    await self._reach(anchor, counts, row["t"])
                    self._transport.close_stdin()
                case {"dir": "ctl", "frame": {"event": "signal", "signal": name}}:
                    await self._reach(anchor, counts, row["t"])
                    self._signal(signal.Signals[name])

    async def _reach(self, anchor: Json | None, counts: Counter[str], at: float) -> None:
        """Wait until it is as long after the last frame as it was in the recording."""
        if anchor is None:
            return
        place = (kind(anchor["frame"]), counts[kind(anchor["frame"])])
        while place not in self._seen:
            await self._changed.park()
        later = at - anchor["t"]
        await trio.sleep_until(self._seen[place] + (later if later > TOGETHER else 0))

    def _line(self, row: Json) -> bytes:
        if "raw" in row:
            self._raw += 1
            part = self._raw in UNFINISHED.get(self._scenario, ())
            return str(row["frame"]).encode() + (b"" if part else b"\n")
        text = json.dumps(row["frame"])
        for recorded, ours in zip(tasks_in(frames_of(self._rows)), tasks_in(self.said.frames)):  # noqa: B905  Only those that have begun.
            text = text.replace(recorded, ours)
        return text.encode() + b"\n"

    def _signal(self, number: signal.Signals) -> None:
        if number is signal.SIGKILL:
            self._transport.kill()
        else:
            self._transport.signal(number)


def answered(row: Json) -> str | None:
    """Say which request a row answers."""
    if row["dir"] != "in" or "raw" in row or row["frame"].get("type") != "control_response":
        return None
    return str(row["frame"]["response"].get("request_id"))


def tasks_in(frames: Sequence[Json]) -> list[str]:
    return [frame["task_id"] for frame in frames if frame.get("subtype") == "task_started"]


# -- all of it


async def reenacted(path: Path) -> Reenacted:
    """Play a recording on a fake."""
    header, rows = rows_of(path)
    unreachable = "ANTHROPIC_BASE_URL" in header["env"]
    fake = FakeClaude(
        (lambda _told: cut()) if unreachable else Model(LATENCY),
        run_tool=Tools(rows),
        agents=agents_of(rows),
        answers=answers_of(rows),
        faults=refusal_of(header, rows),
    )
    async with trio.open_nursery() as nursery:
        transport = await fake.launch(header["argv"], header["env"], None, nursery)
        assert isinstance(transport, FakeTransport)
        host = Host(rows, transport, header["scenario"])
        nursery.start_soon(host.read, nursery)
        with trio.move_on_after(LONG):
            await host.say()
            host.said.code = await transport.wait_exit()
        transport.kill()
        nursery.cancel_scope.cancel()
    return host.said


def answers_of(rows: Sequence[Json]) -> dict[str, Json]:
    """Give what the real one answered to control requests, by their subtypes."""
    asked_for = {
        row["frame"]["request_id"]: row["frame"]["request"].get("subtype")
        for row in rows
        if row["dir"] == "in" and "raw" not in row and "request" in row["frame"]
    }
    answers: dict[str, Json] = {}
    for frame in frames_of(rows):
        response = frame.get("response", {})
        subtype = asked_for.get(response.get("request_id"))
        if subtype in PASSED_ON and response["subtype"] == "success":
            answers.setdefault(subtype, response.get("response", {}))
    return answers


def refusal_of(header: Json, rows: Sequence[Json]) -> list[faults.Fault]:
    """Say why the real one did not start, if it did not, and was not told so by its flags."""
    frames = frames_of(rows)
    was_asked = any(row["dir"] == "in" for row in rows)
    if not was_asked or any(frame["type"] == "control_response" for frame in frames):
        return []
    words = next((str(row["frame"]) for row in rows if row["dir"] == "err"), None)
    return [] if words is None else [faults.refuses_to_start(words, with_result=bool(frames))]
