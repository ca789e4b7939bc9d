"""What a fake CLI says: its frames, one method each, in the shapes of 2.1.332."""

from __future__ import annotations

import itertools
import json
import re
import uuid
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from claude_trio.testing._fake_launch import VERSION, Launch, States

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["BUILT_IN", "Background", "Frames", "Speaker", "spell"]

_CAPABILITIES: Final = ("interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1")
BUILT_IN: Final = (
    *("Task", "AskUserQuestion", "Bash", "Edit", "EnterPlanMode", "ExitPlanMode", "Glob", "Grep"),
    *("NotebookEdit", "Read", "ScheduleWakeup", "Skill", "TaskStop", "ToolSearch", "WebFetch"),
    *("WebSearch", "Write"),
)
# What the real one writes as an escape although JSON lets it stand raw, and half an emoji, which
# has no bytes of its own.
_ESCAPED: Final = re.compile("[\x7f\x85\u200d\u2028\u2029\ufeff\ud800-\udfff]")


def spell(frame: Mapping[str, object]) -> bytes:
    """Spell a frame as the real one does: compact, on one line, and mostly unescaped."""
    text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


@final
@attrs.define(kw_only=True, eq=False)
class Background:
    """A task of the CLI: an agent or a shell."""

    id: str
    run_id: str
    call_id: str
    type: str
    description: str
    prompt: str | None
    backgrounded: bool
    owner: str | None
    """The agent that started it; None if the main conversation did."""
    depth: int
    started: float = attrs.field(factory=trio.current_time)
    uses: int = 0
    """How many tools it has called."""

    @property
    def is_agent(self) -> bool:
        """Whether it is no shell."""
        return self.type == "local_agent"

    @property
    def reports(self) -> bool:
        """Whether it reports to the conversation when it ends."""
        return self.is_agent and self.backgrounded

    @property
    def usage(self) -> dict[str, object]:
        """What it is said to have used."""
        milliseconds = round((trio.current_time() - self.started) * 1000)
        tokens = 120 * (self.uses + 1)
        return {"total_tokens": tokens, "tool_uses": self.uses, "duration_ms": milliseconds}


@final
@attrs.frozen
class Speaker:
    """Whose frame it is: the main conversation's, or an agent's."""

    agent: Background | None = None

    @property
    def fields(self) -> Mapping[str, object]:
        """What a frame says of its speaker."""
        if self.agent is None:
            return {"parent_tool_use_id": None}
        return {
            "parent_tool_use_id": self.agent.call_id,
            "agent_id": self.agent.id,
            "subagent_type": "general-purpose",
            "task_description": self.agent.description,
        }


@final
class Frames:
    """Say frames, and number everything that has an id."""

    def __init__(self, launch: Launch, write: Callable[[Mapping[str, object]], None]) -> None:
        self.launch, self.write = launch, write
        self.session_id, self.model, self.mode = launch.session_id, launch.model, launch.mode
        self._numbers = itertools.count(1)
        self.prompt_id = self.new_uuid()
        self._state, self._state_uuid = "idle", self.new_uuid()
        self.answered: list[str] = []
        """The uuids of the prompts that the next frame of the model answers."""
        self.to_replay: list[tuple[object, str | None]] = []
        """The prompts to be said again in front of the next message of the model."""
        self.told = 0
        """How many messages the running turn has told the model, after its prompt."""

    def number(self) -> int:
        """Give a number that was not used yet."""
        return next(self._numbers)

    def new_uuid(self) -> str:
        """Give an id that was not used yet."""
        return str(uuid.UUID(int=self.number()))

    def say(self, **fields: object) -> None:
        """Write a frame of the session."""
        self.write({**fields, "session_id": self.session_id, "uuid": self.new_uuid()})

    def system(self, subtype: str, **fields: object) -> None:
        """Write a frame of type ``system``."""
        self.say(type="system", subtype=subtype, **fields)

    # -- what frames the conversation

    def state(self, state: str) -> None:
        """Tell the state, if it is a new one and somebody wants to know."""
        if state != self._state:
            self._state, self._state_uuid = state, self.new_uuid()
            self._tell_state()

    def idle_again(self) -> None:
        """Tell once more that there is nothing to do, where that is so: the same frame."""
        if self._state == "idle":
            self._tell_state()

    def _tell_state(self) -> None:
        if self.launch.states is States.UNTOLD:
            return
        more = {"sdk_host_only": True} if self.launch.states is States.TOLD_TO_THE_HOST else {}
        frame = {"type": "system", "subtype": "session_state_changed", "state": self._state}
        self.write({**frame, **more, "uuid": self._state_uuid, "session_id": self.session_id})

    def lifecycle(self, prompt: str | None, state: str, **more: object) -> None:
        """Tell how far a prompt has come; one without a uuid cannot be told of."""
        if prompt is not None:
            self.say(type="command_lifecycle", command_uuid=prompt, state=state, **more)

    def init(self, tools: Iterable[str], servers: Iterable[Mapping[str, object]]) -> None:
        """Begin a turn."""
        more = {"user_message_uuids": list(self.answered)} if self.answered else {}
        self.system(
            "init",
            cwd=self.launch.cwd,
            model=self.model,
            tools=[*BUILT_IN, *tools],
            mcp_servers=list(servers),
            permissionMode=self.mode,
            slash_commands=["clear", "compact", "context", "cost"],
            apiKeySource="ANTHROPIC_API_KEY",
            claude_code_version=VERSION,
            output_style="default",
            agents=["general-purpose"],
            skills=[],
            plugins=[],
            capabilities=list(_CAPABILITIES),
            **more,
        )

    def status(self, status: str | None, **more: object) -> None:
        """Tell what the CLI is about."""
        self.system("status", status=status, **more)

    def tell_mode(self, mode: str) -> None:
        """Change the permission mode, and tell it if it is another."""
        if mode != self.mode:
            self.mode = mode
            self.status(None, permissionMode=mode)

    # -- the conversation

    def event(self, message_id: str, event: Mapping[str, object]) -> None:
        """Stream a part of a message, where that is wanted."""
        if self.launch.partial:
            self.say(
                type="stream_event", event=event, parent_tool_use_id=None, api_message_id=message_id
            )

    def assistant(self, speaker: Speaker, message: Mapping[str, object], **more: object) -> None:
        """Say one block of a message; the turn's first one names the prompts that it answers."""
        if speaker.agent is None and self.answered:
            uuids, self.answered = self.answered, []
            more = {**more, "user_message_uuid": uuids[-1], "user_message_uuids": uuids}
        self.say(type="assistant", message=message, **speaker.fields, **more)

    def user(self, speaker: Speaker, content: object, **more: object) -> None:
        """Say what the model is told: the result of a tool, or words of the CLI's own."""
        if speaker.agent is None:
            self.told += 1
        message: dict[str, object] = {"role": "user", "content": content}
        self.say(type="user", message=message, **speaker.fields, **more)

    def text(self, speaker: Speaker, text: str, **more: object) -> None:
        """Say words that the model is told."""
        self.user(speaker, [{"type": "text", "text": text}], **more)

    def replay_prompts(self) -> None:
        """Say again what the model is about to answer."""
        prompts, self.to_replay = self.to_replay, []
        for content, prompt in prompts:
            self.replay(content, prompt)

    def replay(self, content: object, prompt: str | None) -> None:
        """Say again what somebody else has said."""
        self.write(
            {
                "type": "user",
                "message": {"role": "user", "content": content},
                "parent_tool_use_id": None,
                "isReplay": True,
                "session_id": self.session_id,
                "uuid": prompt or self.new_uuid(),
            }
        )

    def tool_result(
        self, speaker: Speaker, call_id: str, content: object, *, failed: bool, **more: object
    ) -> None:
        """Say what a tool has given."""
        block: dict[str, object] = {"tool_use_id": call_id, "type": "tool_result"}
        block |= {"content": content} | ({"is_error": failed} if isinstance(content, str) else {})
        self.user(speaker, [block], **more)

    # -- tasks

    def task(self, subtype: str, task: Background, **more: object) -> None:
        """Tell something of a task."""
        owned = {"owned_by_subagent": True} if task.owner and not task.is_agent else {}
        self.system(subtype, task_id=task.id, run_id=task.run_id, **more, **owned)

    def task_started(self, task: Background) -> None:
        """Tell that a task begins."""
        above = {} if task.owner is None else {"parent_task_id": task.owner}
        agent: dict[str, object] = {}
        if task.is_agent:
            agent = {"subagent_type": "general-purpose", "spawn_depth": task.depth}
            agent |= {"prompt": task.prompt}
        self.task(
            "task_started",
            task,
            tool_use_id=task.call_id,
            description=task.description,
            is_backgrounded=task.backgrounded,
            task_type=task.type,
            **agent,
            **above,
        )

    def task_progress(self, task: Background, tool: str, doing: str) -> None:
        """Tell which tool an agent uses."""
        self.task(
            "task_progress",
            task,
            tool_use_id=task.call_id,
            description=f"Running {doing}",
            subagent_type="general-purpose",
            usage=task.usage,
            last_tool_name=tool,
        )

    def task_updated(self, task: Background, **patch: object) -> None:
        """Tell what has changed."""
        self.task("task_updated", task, patch=patch)

    def task_notification(self, task: Background, status: str, summary: str) -> None:
        """Tell how a task has ended: ``completed``, ``failed`` or ``stopped``."""
        report = {"summary_is_report": True} if task.reports and status == "completed" else {}
        usage = {"usage": task.usage} if task.is_agent else {}
        self.task(
            "task_notification",
            task,
            tool_use_id=task.call_id,
            status=status,
            output_file=f"/tmp/claude/tasks/{task.id}.output",  # noqa: S108  It is only a name.
            summary=summary,
            **report,
            **usage,
        )

    def tasks(self, live: Sequence[Background]) -> None:
        """List the tasks in the background."""
        listed = [
            {
                "task_id": task.id,
                "run_id": task.run_id,
                "task_type": task.type,
                "description": task.description,
                **({"subagent_type": "general-purpose"} if task.is_agent else {}),
            }
            for task in live
        ]
        self.system("background_tasks_changed", tasks=listed)

    # -- control

    def answer(
        self, request_id: object, response: Mapping[str, object] | None, **more: object
    ) -> None:
        """Answer a request of the host; one that has nothing to say has no ``response``."""
        body: dict[str, object] = {"subtype": "success", "request_id": request_id}
        body |= {} if response is None else {"response": response}
        self.write({"type": "control_response", "response": {**body, **more}})

    def refuse(self, request_id: object, error: str, code: str | None = None) -> None:
        """Answer a request of the host with an error."""
        body: dict[str, object] = {"subtype": "error", "request_id": request_id, "error": error}
        body |= {} if code is None else {"error_code": code}
        self.write({"type": "control_response", "response": body})

    def ask(self, request_id: str, request: Mapping[str, object]) -> None:
        """Ask the host."""
        self.write({"type": "control_request", "request_id": request_id, "request": request})

    def withdraw(self, request_id: str) -> None:
        """Say that an answer is not wanted any more."""
        self.write({"type": "control_cancel_request", "request_id": request_id})
