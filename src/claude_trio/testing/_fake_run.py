"""One life of a fake CLI: it hears the host, and runs turns, agents and shells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast, final

import attrs
import trio

from claude_trio._ndjson import object_or_empty
from claude_trio.testing._fake_frames import Background, Frames, Speaker
from claude_trio.testing._fake_requests import respond
from claude_trio.testing._fake_talk import ApiFailedError, Talk, seconds_of
from claude_trio.testing._replies import Reply, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from claude_trio.testing._fake import FakeClaude
    from claude_trio.testing._fake_transport import FakeTransport
    from claude_trio.testing._replies import ToolCall

__all__ = ["Run"]


@final
@attrs.define(eq=False)
class _Question:
    """A permission request that the host has not answered."""

    speaker: Speaker
    reply: trio.MemorySendChannel[Mapping[str, object]]


@final
@attrs.define(eq=False)
class _Report:
    """The end of a task that the model was not told of."""

    task: Background
    text: str

    @property
    def origin(self) -> Mapping[str, object]:
        return {
            "kind": "task-notification",
            "producer": "session-task",
            "runId": self.task.run_id,
        }


@final
class Run:
    """One life of the fake; the `Office` of its conversations."""

    def __init__(
        self, fake: FakeClaude, transport: FakeTransport, session_id: str, cwd: str
    ) -> None:
        self._fake, self._transport = fake, transport
        self.run_tool, self.asks = fake.run_tool, fake.asks
        self.frames = Frames(transport, session_id, cwd, self._written)
        self._reply = _replies(fake.script)
        self._prompts: list[Mapping[str, object]] = []
        self._taken: list[Mapping[str, object]] = []
        """The prompts that the running turn answers."""
        self._reports: list[_Report] = []
        self._tasks: dict[str, tuple[Background, trio.CancelScope]] = {}
        self._asked: dict[str, _Question] = {}
        self._scope: trio.CancelScope | None = None
        """The running turn's."""
        self._eof = self._failed = False
        self._woken = trio.Event()
        self._nursery: trio.Nursery

    async def live(self) -> None:
        """Live until stdin ends, or a signal comes."""
        # Like a process, it does not hear of the nursery's cancellation.
        with trio.CancelScope(shield=True) as life:
            self._transport.on_exit(life.cancel)
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._listen)
                await self._play()
                self._nursery.cancel_scope.cancel()
            self._transport.exit(1 if self._failed else 0)

    def _written(self, count: int) -> None:
        if count == self._fake.dies_at:
            self._transport.exit(self._fake.dies_with or 0)

    # -- what the host says

    async def _listen(self) -> None:
        await trio.sleep(self._fake.starts_after)
        while (line := await self._transport.read_line()) is not None:
            if line.strip():
                self._hear(json.loads(line))
        if "eof" not in self._fake.deaf_to:
            self._eof = True
            self._woken.set()

    def _hear(self, frame: Mapping[str, object]) -> None:
        self._fake.received.append(frame)
        match frame:
            case {"type": "user"}:
                self._prompts.append(frame)
                self._tell_state()
                self.frames.lifecycle(frame, "queued")
                self._woken.set()
            case {"type": "control_request", "request_id": str(request_id)}:
                body = object_or_empty(frame.get("request"))
                if body.get("subtype") not in self._fake.deaf_to:
                    respond(self, self._fake.answers, request_id, body)
            case {"type": "control_response"}:
                envelope = object_or_empty(frame.get("response"))
                question = self._asked.pop(str(envelope.get("request_id")), None)
                if question is not None:
                    self._tell_state()
                    question.reply.send_nowait(envelope)
            case _:
                pass

    def interrupt(self, request_id: str, *, spare: bool, drop: bool) -> None:
        """Stop what runs, in the order of the real one."""
        for open_id, question in list(self._asked.items()):
            if not (spare and question.speaker.agent):
                del self._asked[open_id]
                self.frames.withdraw(open_id)
        if not spare:
            self._reports = [r for r in self._reports if not r.task.is_agent]
            for task, _ in [t for t in self._tasks.values() if t[0].is_agent]:
                self.end_task(task.id, "killed", "")
        dropped, self._prompts[:] = (self._prompts[:], []) if drop else ([], self._prompts)
        for prompt in dropped:
            self.frames.lifecycle(prompt, "cancelled")
        uuids = [prompt.get("uuid") for prompt in dropped]
        queued = [prompt.get("uuid") for prompt in self._prompts]
        self.frames.answer(request_id, {"still_queued": queued, "cancelled": uuids})
        if self._scope is not None:
            self._scope.cancel()
        self._tell_state()

    # -- turns

    def _tell_state(self) -> None:
        agents = any(task.is_agent for task, _ in self._tasks.values())
        works = self._scope is not None or agents or self._prompts or self._reports
        if self._asked:
            self.frames.state("requires_action")
        else:
            self.frames.state("running" if works else "idle")

    async def _play(self) -> None:
        rested = True
        while True:
            while not (self._prompts or self._reports):
                if self._eof and not any(task.is_agent for task, _ in self._tasks.values()):
                    return
                rested = True
                self._woken = trio.Event()
                await self._woken.wait()
            # A moment in which a prompt can still be withdrawn.
            await trio.lowlevel.checkpoint()
            if self._prompts:
                # What has come during a turn is merged into one; at rest, the first is taken alone.
                count = 1 if rested else len(self._prompts)
                self._taken, self._prompts[:count] = self._prompts[:count], []
                await self._turn("\n".join(map(_told, self._taken)), {})
            elif self._reports:
                report = self._reports.pop(0)
                self._taken = []
                await self._turn(report.text, {"origin": report.origin})
            rested = False

    async def _turn(self, told: str, more: Mapping[str, object]) -> None:
        ending: Mapping[str, object] = {}
        talk = Talk(self, Speaker(), self._reply)
        with trio.CancelScope() as self._scope:
            self._begin()
            ending = await _ending(talk, told)
        aborted = self._scope.cancelled_caught
        if aborted:
            where = talk.abort()
            ending = {
                "subtype": "error_during_execution",
                "is_error": True,
                "errors": ["[ede_diagnostic] interrupted"],
                "terminal_reason": f"aborted_{where}",
            }
        self._failed = bool(ending["is_error"])
        for prompt in self._taken[1:]:
            self.frames.lifecycle(prompt, "cancelled" if aborted else "completed")
        self.frames.result({**ending, **more}, self._taken)
        for prompt in self._taken[:1]:
            self.frames.lifecycle(prompt, "cancelled" if aborted else "completed")
        self._taken, self._scope = [], None
        self._tell_state()

    def _begin(self) -> None:
        for prompt in self._taken:
            self.frames.lifecycle(prompt, "started")
        self.frames.init()
        self._tell_state()
        if self._fake.dies_with is not None and self._fake.dies_at is None:
            self._transport.exit(self._fake.dies_with)

    def fold(self, told: str) -> str:
        """Let prompts and reports that came during a tool call follow its result."""
        texts = [report.text for report in self._reports]
        for prompt in self._prompts:
            self.frames.lifecycle(prompt, "started")
            texts.append(_told(prompt))
        self._taken += self._prompts
        self._prompts, self._reports = [], []
        return "\n".join(texts) or told

    # -- permissions

    async def ask(self, speaker: Speaker, call_id: str, call: ToolCall) -> Mapping[str, object]:
        """Ask the host, and wait for its answer."""
        request_id = self.frames.new_uuid()
        sender, receiver = trio.open_memory_channel[Mapping[str, object]](1)
        self._asked[request_id] = _Question(speaker, sender)
        self._tell_state()
        self.frames.ask(speaker, request_id, call_id, call.name, call.input)
        return await receiver.receive()

    # -- tasks beside the turns

    async def run_agent(self, speaker: Speaker, call_id: str, call: ToolCall) -> str:
        """Run an agent, or start it in the background; what agents start runs in the foreground."""
        background = bool(call.input.get("run_in_background", True)) and speaker.agent is None
        task, scope = self._new_task(
            "local_agent", speaker, call_id, call.input, background=background
        )
        prompt = str(call.input.get("prompt", ""))
        if background:
            self._nursery.start_soon(self._agent, task, scope, prompt)
            await trio.lowlevel.checkpoint()
            return f"Async agent launched successfully. agentId: {task.id}"
        self.frames.user(Speaker(task), {"type": "text", "text": prompt})
        await self._agent(task, scope, prompt)
        return f"the agent {task.id} has ended"

    def start_shell(self, speaker: Speaker, call_id: str, use: Mapping[str, object]) -> str:
        """Start a command in the background."""
        task, scope = self._new_task("local_bash", speaker, call_id, use, background=True)
        self._nursery.start_soon(self._shell, task, scope, seconds_of(use))
        return f"Command running in background with ID: {task.id}"

    def _new_task(
        self,
        kind: str,
        speaker: Speaker,
        call_id: str,
        use: Mapping[str, object],
        *,
        background: bool,
    ) -> tuple[Background, trio.CancelScope]:
        number = self.frames.number()
        task = Background(
            id=f"{kind.removeprefix('local_')[0]}fake{number:06}",
            run_id=f"run-{number:06}",
            call_id=call_id,
            type=kind,
            description=str(use.get("description", "")),
            backgrounded=background,
            owner=speaker.agent.id if speaker.agent else None,
        )
        self._tasks[task.id] = (task, trio.CancelScope())
        if background:
            self._list_tasks()
        self.frames.task_started(task)
        return self._tasks[task.id]

    def _list_tasks(self) -> None:
        self.frames.tasks([task for task, _ in self._tasks.values() if task.backgrounded])

    async def _agent(self, task: Background, scope: trio.CancelScope, prompt: str) -> None:  # noqa: ASYNC910
        speaker = Speaker(task)
        talk = Talk(self, speaker, self._agent_reply(prompt))
        with scope:
            try:
                status, text = "completed", await talk.answer(prompt)
            except ApiFailedError as exc:
                status, text = "failed", str(exc)
            self.end_task(task.id, status, text)
        if scope.cancelled_caught:
            # These come after the end, and after the state was told.
            talk.abort()

    def _agent_reply(self, prompt: str) -> Callable[[str], Reply]:
        for key, replies in self._fake.agents.items():
            if key in prompt:
                return _replies(replies)
        return self._reply if callable(self._fake.script) else lambda _told: say("Done.")

    async def _shell(self, task: Background, scope: trio.CancelScope, seconds: float) -> None:
        with scope:
            await trio.sleep(seconds)
            self.end_task(task.id, "completed", "Background command completed")

    def end_task(self, task_id: str, status: str, summary: str) -> bool:
        """End a task, and say so; return whether it lived."""
        if task_id not in self._tasks:
            return False
        task, scope = self._tasks.pop(task_id)
        self.frames.task_ended(task, status, summary)
        if task.backgrounded:
            self._list_tasks()
            if status != "killed":
                self._reports.append(_Report(task, summary))
                self._woken.set()
        if status == "killed":
            scope.cancel()
        self._woken.set()
        self._tell_state()
        return True


async def _ending(talk: Talk, told: str) -> dict[str, object]:
    failed, status = False, None
    try:
        text = await talk.answer(told)
    except ApiFailedError as exc:
        # The real one tries again first, and ends with the same frames.
        text, failed, status = str(exc), True, exc.status
        talk.fail(text)
    return {  # noqa: ASYNC910  The script failed before it waited.
        "subtype": "success",
        "is_error": failed,
        "result": text,
        "terminal_reason": "api_error" if failed else "completed",
        **({"api_error_status": status} if failed else {}),
    }


def _replies(script: Sequence[Reply] | Callable[[str], Reply]) -> Callable[[str], Reply]:
    if callable(script):
        return script
    replies = iter(script)
    return lambda _told: next(replies, Reply())


def _told(prompt: Mapping[str, object]) -> str:
    content = object_or_empty(prompt.get("message")).get("content")
    if isinstance(content, str):
        return content
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    texts = [object_or_empty(block).get("text") for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str))
