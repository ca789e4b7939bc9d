"""Say of recordings, with hindsight, which result answers which prompt and when each turn is over.

Run as ``python tests/tools/hindsight.py FOLDER``; the table goes to stdout.  Nothing here knows the
package.  A recording lies open from its first line to its last, so what the core has to wait for
is looked up; where the core cannot know what comes, the rules of the design say what it does.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ABOUT", "Recording", "entry_of", "read"]

ABOUT: Final = """\
Made by tests/tools/hindsight.py of 261 recordings of CLI 2.1.332 and 37 of CLI 2.1.197, and read
against them by hand: all with a task, an interrupt, a queue, a slash command or a sudden end, and
all of 2.1.197.  The core had no part in it.
Lines are counted as in the file of the recording; its header is line 1.
prompts: the line of each prompt, its fate, and the line of the result that answers it.
undecided: no frame names the prompt, and order leaves more than one possibility, so the core has
to say that it does not know; the result is the one that the texts of the recording tell.
unsolicited: the results that belong to no turn of ours.
turns: a prompt opens one, or joins the one that is open; one that was written while a cancelled
turn came to its end opens one at that end.  results: all that belong to the turn.
over: the line that ends the turn; null if the stream ended first.  why: what that line is.
time: no line is, but a wait of two seconds was over before that line came.
Five times hindsight knows that a turn was over with its last result, and the core has to wait all
the same, for a prompt that may be queued or a follow-up that may be owed:
permission-while-prompted and, of 2.1.197, prompt-while-tool-runs, prompt-while-tool-runs-replay,
prompts-three-queued and subagent-foreground.
"""

Frame = dict[str, Any]

AGENTS: Final = frozenset({"local_agent", "local_workflow"})
FOLLOW_UP: Final = 2.0
NEVER: Final = math.inf


@attrs.frozen
class Row:
    line: int
    t: float
    way: str
    frame: Frame

    @property
    def kind(self) -> str:
        kind = str(self.frame.get("type", ""))
        return str(self.frame.get("subtype", kind)) if kind == "system" else kind


@attrs.define(eq=False)
class Prompt:
    line: int
    uuid: str | None
    says: str | None
    """What the scripted model says last when it is asked this; None if that is not known."""
    fate: str = "lost"
    settled: float = NEVER
    """The line that tells its fate."""
    result: int | None = None
    decided: bool = True


@attrs.frozen
class Run:
    """One turn of the CLI, from its init to its result."""

    init: int
    result: Row
    scheduled: bool

    @property
    def named(self) -> list[str]:
        return list(self.result.frame.get("user_message_uuids", []))

    @property
    def asked(self) -> bool:
        origin = self.result.frame.get("origin")
        return not self.scheduled and (origin is None or origin.get("kind") == "human")


@attrs.define(eq=False)
class Agent:
    started: int
    run: str | None
    background: bool | None
    ended: float = NEVER
    ended_t: float = NEVER
    follow_up: int = 0
    """The line of the result of its follow-up; 0 if none came."""


@attrs.define(eq=False)
class Turn:
    members: list[Prompt]
    begun: float
    cancel: float = NEVER
    """The line of the interrupt."""
    cancelled: str | None = None
    over: float = NEVER
    why: str = "eof"
    results: list[int] = attrs.field(factory=list)


@attrs.define(eq=False)
class Recording:
    name: str
    rows: list[Row]
    prompts: list[Prompt] = attrs.field(factory=list)
    runs: list[Run] = attrs.field(factory=list)
    agents: list[Agent] = attrs.field(factory=list)
    turns: list[Turn] = attrs.field(factory=list)

    def out(self) -> Iterator[Row]:
        return (row for row in self.rows if row.way == "out")

    def state(self, line: float) -> str | None:
        states = [
            row.frame["state"]
            for row in self.out()
            if row.kind == "session_state_changed" and row.line <= line
        ]
        return states[-1] if states else None


# ------------------------------------------------------------------------------------- reading


def read(path: Path, name: str) -> Recording:
    recording = Recording(name, list(_rows(path)))
    for row in recording.rows:
        if row.way == "in" and row.kind == "user":
            recording.prompts.append(Prompt(row.line, row.frame.get("uuid"), _says(row.frame)))
    recording.runs.extend(_runs(recording))
    recording.agents.extend(_agents(recording))
    _attribute(recording)
    _find_turns(recording)
    return recording


def _rows(path: Path) -> Iterator[Row]:
    typed = ""
    for line, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line == 1 or not text:
            continue
        told = json.loads(text)
        frame = told["frame"]
        if told["dir"] == "in" and isinstance(frame, str):
            # A line that was written in pieces is a frame as soon as the pieces make one.
            typed += frame
            frame = _parsed(typed)
            if frame or not typed.startswith("{"):
                typed = ""
        yield Row(line, told["t"], told["dir"], frame if isinstance(frame, dict) else {})


def _parsed(text: str) -> Frame:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _says(frame: Frame) -> str | None:
    content = (frame.get("message") or {}).get("content", "")
    if isinstance(content, list):
        content = " ".join(block.get("text", "") for block in content)
    found = re.search(r"\[\[fake: (.*)\]\]", content, re.DOTALL)
    script = _parsed(found[1]) if found else {}
    if script.get("steps"):
        script = script["steps"][-1]
    said = script.get("then", script.get("text"))
    return said if isinstance(said, str) else None


def _runs(recording: Recording) -> Iterator[Run]:
    init, scheduled = 0, False
    for row in recording.out():
        if row.kind == "command_lifecycle" and row.frame.get("wakeup_source"):
            scheduled = True
        elif row.kind == "init":
            init = row.line
        elif row.kind == "result":
            yield Run(init or row.line, row, scheduled)
            init, scheduled = 0, False


def _agents(recording: Recording) -> Iterator[Agent]:
    live: dict[str, Agent] = {}
    for row in recording.out():
        frame, task = row.frame, str(row.frame.get("task_id"))
        if row.kind == "task_started" and frame.get("task_type") in AGENTS:
            live[task] = Agent(row.line, frame.get("run_id"), frame.get("is_backgrounded"))
        elif row.kind == "task_updated" and task in live:
            live[task].background = frame["patch"].get("is_backgrounded", live[task].background)
        elif row.kind == "task_notification" and task in live:
            agent = live.pop(task)
            agent.ended, agent.ended_t = row.line, row.t
            agent.follow_up = _follow_up(recording, agent)
            yield agent
    yield from live.values()


def _follow_up(recording: Recording, agent: Agent) -> int:
    for run in recording.runs:
        if not run.asked and run.init > agent.ended:
            named = (run.result.frame.get("origin") or {}).get("runId")
            if named in {None, agent.run}:
                return run.result.line
    return 0


# --------------------------------------------------------------------------------- attribution


def _attribute(recording: Recording) -> None:
    seen: set[str | None] = set()
    waiting: list[Prompt] = []
    for prompt in recording.prompts:
        dropped = _dropped(recording, prompt)
        if prompt.uuid is not None and prompt.uuid in seen:
            prompt.fate, prompt.settled = "repeated", prompt.line
        elif dropped is not None:
            prompt.fate, prompt.settled = dropped
        else:
            waiting.append(prompt)
        seen.add(prompt.uuid)
    runs = [run for run in recording.runs if run.asked]
    ways = list(_ways(waiting, runs, []))
    for index, prompt in enumerate(waiting):
        _choose(prompt, runs, {way[index] for way in ways})


def _dropped(recording: Recording, prompt: Prompt) -> tuple[str, int] | None:
    """Its fate and the line that tells it, if the CLI says that it has not run and will not."""
    fates = {"cancelled": "withdrawn", "discarded": "discarded", "refused": "refused"}
    started = False
    for row in recording.out() if prompt.uuid is not None else ():
        if row.kind == "control_response":
            told = (row.frame["response"].get("response") or {}).get("cancelled")
            if isinstance(told, list) and prompt.uuid in told:
                return "withdrawn", row.line
        elif row.kind == "command_lifecycle" and row.frame["command_uuid"] == prompt.uuid:
            started = started or row.frame["state"] == "started"
            if row.frame["state"] in fates and not started:
                return fates[row.frame["state"]], row.line
    return None


def _ways(
    prompts: list[Prompt], runs: list[Run], taken: list[int | None]
) -> Iterator[list[int | None]]:
    """Give every way in which the runs may have taken the prompts; None is one that still waits.

    Prompts are taken in order, and a run that answers to prompts answers at least one.
    """
    if len(taken) == len(prompts):
        if all(k in taken for k in range(len(runs))):
            yield taken
        return
    prompt = prompts[len(taken)]
    naming = [k for k, run in enumerate(runs) if prompt.uuid in run.named]
    after = [k for k, run in enumerate(runs) if run.result.line > prompt.line]
    choices: list[int | None] = [naming[0]] if naming else [*after, None]
    last = taken[-1] if taken else 0
    for k in choices:
        if k is None or (last is not None and k >= last):
            yield from _ways(prompts, runs, [*taken, k])


def _choose(prompt: Prompt, runs: list[Run], choices: set[int | None]) -> None:
    possible = sorted(k for k in choices if k is not None)
    if not possible:
        return
    # The model says what the newest prompt of a run asks for; what waits with it is merged.
    said = [k for k in possible if runs[k].result.frame.get("result") == prompt.says]
    chosen = runs[said[0] if said else possible[-1]].result.line
    prompt.fate, prompt.result, prompt.decided = "answered", chosen, len(choices) == 1
    prompt.settled = chosen if prompt.decided else NEVER


# --------------------------------------------------------------------------------------- turns


def _find_turns(recording: Recording) -> None:
    turns, late = recording.turns, list[Prompt]()

    def open_late() -> None:
        if late and turns[-1].over < NEVER:
            turns.append(Turn(list(late), turns[-1].over))
            late.clear()
            _settle(recording, turns[-1])

    for prompt in recording.prompts:
        if turns and turns[-1].over < prompt.line:
            open_late()
        if not turns or turns[-1].over < prompt.line:
            turns.append(Turn([prompt], prompt.line))
        elif turns[-1].cancel < prompt.line:
            late.append(prompt)
        else:
            turns[-1].members.append(prompt)
        _settle(recording, turns[-1])
    open_late()
    for turn in turns:
        turn.results = sorted(_results(recording, turn))


def _settle(recording: Recording, turn: Turn) -> None:
    turn.over, turn.why = NEVER, "eof"
    spared = _cancel(recording, turn)
    held = all(prompt.settled < turn.cancel for prompt in turn.members)
    how = "spared" if spared else "held" if held else "running"
    for row in recording.rows:
        written = row.way == "in" and all(prompt.settled == row.line for prompt in turn.members)
        if row.line < turn.members[-1].line or not (row.way == "out" or written):
            continue
        turn.cancelled = how if turn.cancel < row.line else None
        if _is_over(recording, turn, row.line):
            turn.over, turn.why = row.line, _why(turn, row)
            return
    _settle_by_time(recording, turn)


def _cancel(recording: Recording, turn: Turn) -> bool:
    """Find the interrupt of the turn, and say whether it spares agents."""
    for row in recording.rows:
        request = row.frame.get("request")
        if row.way != "in" or row.line <= turn.begun or not isinstance(request, dict):
            continue
        if request.get("subtype") == "interrupt":
            turn.cancel = row.line
            return bool(request.get("spare_background_tasks"))
    return False


def _is_over(recording: Recording, turn: Turn, line: int) -> bool:
    if any(prompt.settled > line for prompt in turn.members):
        return False
    if turn.cancelled in {"running", "spared"}:
        return True
    agents = [a for a in recording.agents if turn.begun < a.started <= line]
    state = recording.state(line)
    if any(agent.ended > line for agent in agents) or state not in {None, "idle"}:
        return False
    if turn.cancelled == "held":
        return True
    if any(agent.follow_up > line for agent in agents):
        return False
    # Without state frames: an agent in the foreground owes nothing, and of another only time tells
    # that nothing comes.
    return state == "idle" or all(a.background is False or a.follow_up for a in agents)


def _why(turn: Turn, row: Row) -> str:
    if row.kind == "result":
        return "result" if any(p.result == row.line for p in turn.members) else "follow-up"
    names = {
        "user": "write",
        "session_state_changed": "idle",
        "task_notification": "task",
        "command_lifecycle": "lifecycle",
        "control_response": "answer",
    }
    return names.get(row.kind, row.kind)


def _settle_by_time(recording: Recording, turn: Turn) -> None:
    """Where no line ends the turn, time does, if it is given the time."""
    agents = [agent for agent in recording.agents if agent.started > turn.begun]
    lost = any(prompt.fate == "lost" for prompt in turn.members)
    if lost or recording.state(NEVER) is not None or any(a.ended == NEVER for a in agents):
        return
    quiet = max(row.t for row in recording.rows for p in turn.members if row.line == p.result)
    owing = [a.ended_t for a in agents if a.background is not False and not a.follow_up]
    due = max([quiet, *owing]) + FOLLOW_UP
    end = next(row for row in recording.rows if row.frame.get("event") == "stdout_eof")
    if due <= end.t:
        turn.over = next(row.line for row in recording.rows if row.t >= due)
        turn.why = "time"


def _results(recording: Recording, turn: Turn) -> set[int]:
    own = {prompt.result for prompt in turn.members if prompt.result is not None}
    if turn.cancelled in {"running", "spared"}:
        return own
    agents = [a for a in recording.agents if turn.begun < a.started <= turn.over]
    return own | {a.follow_up for a in agents if 0 < a.follow_up <= turn.over}


# --------------------------------------------------------------------------------------- table


def entry_of(recording: Recording) -> dict[str, object]:
    """One entry of the table."""
    own = {line for turn in recording.turns for line in turn.results}
    return {
        "prompts": [
            [p.line, p.fate if p.decided else "undecided", *([p.result] if p.result else [])]
            for p in recording.prompts
        ],
        "unsolicited": [r.result.line for r in recording.runs if r.result.line not in own],
        "turns": [
            {
                "prompts": [prompt.line for prompt in turn.members],
                "results": turn.results,
                "over": None if turn.over == NEVER else int(turn.over),
                "why": turn.why,
            }
            for turn in recording.turns
        ],
    }


def main(folder: Path) -> None:
    entries = []
    for path in sorted(folder.rglob("*.ndjson")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        entries.append(f"  {json.dumps(name)}: {json.dumps(entry_of(read(path, name)))}")
    print('{"about": [')
    print(",\n".join(f"  {json.dumps(line)}" for line in ABOUT.splitlines()))
    print('], "recordings": {')
    print(",\n".join(entries))
    print("}}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
