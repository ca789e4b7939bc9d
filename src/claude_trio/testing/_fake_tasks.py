"""What a fake CLI runs beside its turns: agents, shells, and turns that it has planned."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from claude_trio.testing._fake_calls import ToolError
from claude_trio.testing._fake_frames import Background, Speaker
from claude_trio.testing._fake_talk import ApiFailed, Talk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._fake_run import Run
    from claude_trio.testing._replies import ToolCall

__all__ = ["Report", "Tasks", "seconds_of"]

_SLEEP: Final = re.compile(r"\bsleep (\d+(?:\.\d+)?|inf)")
_TASK_AFTER: Final = 3.0
"""A command that runs longer becomes a task."""


def seconds_of(use: Mapping[str, object]) -> float:
    """Say how long a command runs: ``sleep 5`` takes five seconds."""
    return math.fsum(float(each) for each in _SLEEP.findall(str(use.get("command", ""))))


@final
@attrs.frozen(kw_only=True)
class Report:
    """Something that starts a turn without a prompt.

    Attributes:
      text: What the model is told.
      task: The task that has ended.
      prompt: The id that its turn goes by, if it was planned.
    """

    text: str
    task: Background | None = None
    prompt: str | None = None

    @property
    def origin(self) -> Mapping[str, object] | None:
        """What its result says of where the turn came from; nothing for a planned one."""
        if self.prompt is not None:
            return None
        run_id = {} if self.task is None else {"runId": self.task.run_id}
        return {"kind": "task-notification", "producer": "session-task", **run_id}


@final
@attrs.define(eq=False)
class _Live:
    """A task that runs."""

    task: Background
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    changed: trio.Event = attrs.field(factory=trio.Event)
    """Set when it has ended, or gone to the background."""
    report: str = ""
    failed: bool = False
    stopped: bool = False
    """Whether somebody has ended just this one."""


@final
class Tasks:
    """All tasks that run, and what is to be told of those that do not any more."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run, self._nursery = run, nursery
        self._frames = run.frames
        self._live: dict[str, _Live] = {}
        self.reports: list[Report] = []
        self._owed = 0
        """How many reports are about to come."""

    @property
    def is_busy(self) -> bool:
        """Whether agents live, or a turn is owed to what has ended."""
        return self.has_agents or bool(self.reports) or self._owed > 0

    @property
    def has_agents(self) -> bool:
        """Whether an agent lives."""
        return any(live.task.is_agent for live in self._live.values())

    @property
    def has_shells(self) -> bool:
        """Whether a command runs in the background."""
        return any(live.task.backgrounded and not live.task.is_agent for live in self._all())

    def _all(self) -> list[_Live]:
        return list(self._live.values())

    # -- how they begin

    async def run_agent(
        self, speaker: Speaker, call_id: str, call: ToolCall, use: Mapping[str, object]
    ) -> str:
        """Run an agent, or start it in the background; return what its caller is told.

        Raises:
          ToolError: if somebody stops it while its caller waits.
        """
        # What agents start, they wait for.
        background = use.get("run_in_background", True) is not False and speaker.agent is None
        live = self._start("local_agent", speaker, call_id, use, background=background)
        self._nursery.start_soon(self._run_agent, live, call, str(use.get("prompt", "")))
        if background:
            await trio.lowlevel.checkpoint()
            return f"Async agent launched successfully. agentId: {live.task.id}"
        try:
            await live.changed.wait()
        except trio.Cancelled:
            # What the turn waits for is ended with the turn, in its place among the frames.
            if speaker.agent is not None and not live.task.backgrounded:
                self.end(live, "killed", "")
            raise
        if live.task.backgrounded:
            return f"Async agent launched successfully. agentId: {live.task.id}"
        if live.stopped:
            raise ToolError("[Request interrupted by user for tool use]")
        return live.report

    async def _run_agent(self, live: _Live, call: ToolCall, prompt: str) -> None:
        speaker = Speaker(live.task)
        talk = Talk(self._run, speaker, self._run.agent_model(call, prompt))
        hooks, agent = self._run.hooks, {"agent_type": "general-purpose"}
        with live.scope:
            if hooks.has("SubagentStart"):
                await hooks.fire("SubagentStart", speaker, {**agent, "agent_id": live.task.id})
            if not live.task.backgrounded:
                self._frames.text(speaker, prompt)
            try:
                live.report = (await talk.answer(prompt)).text
            except ApiFailed as exc:
                live.report, live.failed = exc.text, True
            self.end(live, "failed" if live.failed else "completed", live.report)
        if live.scope.cancelled_caught:
            await self._run.aborted()
            # A caller that waited for the agent has said it all, unless only the agent was stopped.
            if live.task.backgrounded or live.stopped:
                talk.abort(tells=live.task.backgrounded)
            if live.stopped and live.task.backgrounded:
                self._owed -= 1
                self._tell(Report(text="The agent was stopped", task=live.task))
        live.changed.set()

    async def run_command(
        self, speaker: Speaker, call_id: str, use: Mapping[str, object]
    ) -> str | None:
        """Run a command, or start it in the background; return what is said of that.

        Raises:
          ToolError: if somebody stops it while its caller waits.
        """
        seconds = seconds_of(use)
        if use.get("run_in_background"):
            live = self._start("local_bash", speaker, call_id, use, background=True)
            self._nursery.start_soon(self._run_shell, live, seconds)
            return f"Command running in background with ID: {live.task.id}"
        await trio.sleep(min(seconds, _TASK_AFTER))
        if seconds < _TASK_AFTER:
            return None
        live = self._start("local_bash", speaker, call_id, use, background=False)
        rest = trio.current_time() + seconds - _TASK_AFTER
        try:
            with trio.move_on_at(rest):
                await live.changed.wait()
        except trio.Cancelled:
            self._frames.task_notification(live.task, "stopped", live.task.description)
            raise
        finally:
            if not live.task.backgrounded:
                self._live.pop(live.task.id, None)
        if live.stopped:
            raise ToolError("Exit code 137")
        if live.task.backgrounded:
            self._nursery.start_soon(self._run_shell, live, rest - trio.current_time())
            return f"Command was moved to the background with ID: {live.task.id}"
        self._frames.task_notification(live.task, "completed", live.task.description)
        return None

    async def _run_shell(self, live: _Live, seconds: float) -> None:
        with live.scope:
            await trio.sleep(seconds)
            self.end(live, "completed", f"Background command {live.task.description!r} completed")

    def schedule(self, use: Mapping[str, object]) -> str:
        """Plan a turn; return what the model is told of it."""
        delay = use.get("delaySeconds", 60)
        seconds = float(delay) if isinstance(delay, int | float) else 60.0
        self._nursery.start_soon(self._wake, seconds, str(use.get("prompt", "")))
        return f"Next wakeup in {seconds:g} s"

    async def _wake(self, seconds: float, text: str) -> None:
        await trio.sleep(seconds)
        self._tell(Report(text=text, prompt=self._frames.new_uuid()))

    def _start(
        self,
        kind: str,
        speaker: Speaker,
        call_id: str,
        use: Mapping[str, object],
        *,
        background: bool,
    ) -> _Live:
        number = self._frames.number()
        task = Background(
            id=f"{kind.removeprefix('local_')[0]}fake{number:06}",
            run_id=f"run-{number:06}",
            call_id=call_id,
            type=kind,
            description=str(use.get("description") or use.get("command", "")),
            prompt=str(use.get("prompt", "")),
            backgrounded=background,
            owner=speaker.agent.id if speaker.agent else None,
            depth=speaker.agent.depth + 1 if speaker.agent else 1,
        )
        live = self._live[task.id] = _Live(task)
        if background:
            self._list()
        self._frames.task_started(task)
        return live

    def _list(self) -> None:
        self._frames.tasks([live.task for live in self._all() if live.task.backgrounded])

    # -- how they end

    def end(self, live: _Live, status: str, summary: str) -> None:
        """End a task, and say so; one that was killed has nothing to report."""
        if self._live.pop(live.task.id, None) is None:
            return
        self._frames.task_updated(
            live.task, status=status, end_time=round(trio.current_time() * 1000)
        )
        told = "stopped" if status == "killed" else status
        self._frames.task_notification(live.task, told, summary)
        if live.task.backgrounded:
            self._list()
        if status == "killed":
            live.scope.cancel()
        elif live.task.backgrounded:
            self._tell(Report(text=summary, task=live.task))
        self._run.wake()

    def report(self, text: str) -> None:
        """Start a turn as soon as there is none."""
        self._tell(Report(text=text))

    def _tell(self, report: Report) -> None:
        self.reports.append(report)
        self._run.tell_state()
        self._run.wake()

    def kill_agents(self, *, background: bool) -> None:
        """Kill the agents in the background, or the others; forget what others of them reported."""
        if background:
            self.reports = [r for r in self.reports if r.task is None or not r.task.is_agent]
        for live in self._all():
            if live.task.is_agent and live.task.backgrounded is background:
                self.end(live, "killed", "")

    def stop_shells(self) -> None:
        """Say of the shells that a signal ends them with the CLI."""
        for live in self._all():
            if live.task.backgrounded and not live.task.is_agent:
                del self._live[live.task.id]
                self._frames.task_notification(live.task, "stopped", "")
                self._frames.task_updated(live.task, status="killed")
                self._list()
                live.scope.cancel()

    def kill_all(self) -> None:
        """Kill all, shells too."""
        for live in self._all():
            self.end(live, "killed", "")

    def stop(self, task_id: str) -> None:
        """Stop one task; one that is not there is no error."""
        live = self._live.get(task_id)
        if live is not None:
            live.stopped = True
            self._owed += live.task.reports
            self.end(live, "killed", "")
            if not live.task.is_agent:
                live.changed.set()

    def move_to_background(self) -> bool:
        """Let nobody wait any more; return whether anybody did."""
        waited_for = [
            live for live in self._all() if not (live.task.backgrounded or live.task.owner)
        ]
        for live in waited_for:
            live.task.backgrounded = True
            self._list()
            self._frames.task_updated(live.task, is_backgrounded=True)
            live.changed.set()
        return bool(waited_for)
