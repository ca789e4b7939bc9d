"""What a fake CLI says: its frames, one method each, in the shapes of 2.1.332."""

from __future__ import annotations

import itertools
import json
import uuid
from typing import TYPE_CHECKING, Final, final

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from claude_trio.testing._fake_transport import FakeTransport

__all__ = ["MODEL", "VERSION", "Background", "Frames", "Speaker"]

VERSION: Final = "2.1.332"
MODEL: Final = "claude-fake"
_CAPABILITIES: Final = ("interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1")


@final
@attrs.frozen(kw_only=True)
class Background:
    """A task of the CLI: an agent or a shell."""

    id: str
    run_id: str
    call_id: str
    type: str
    description: str
    backgrounded: bool
    owner: str | None
    """The agent that started it; None if the main conversation did."""

    @property
    def is_agent(self) -> bool:
        """Whether it is no shell."""
        return self.type == "local_agent"


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
    """Write frames to stdout, and number everything that has an id."""

    def __init__(
        self, transport: FakeTransport, session_id: str, cwd: str, written: Callable[[int], None]
    ) -> None:
        self._transport, self._written = transport, written
        self.session_id, self.cwd = session_id, cwd
        self.model, self.mode = MODEL, "default"
        self._numbers, self._frames = itertools.count(1), itertools.count(1)
        self._state = "idle"
        self._results = 0

    def number(self) -> int:
        """Give a number that was not used yet."""
        return next(self._numbers)

    def new_uuid(self) -> str:
        """Give an id that was not used yet."""
        return str(uuid.UUID(int=self.number()))

    def write(self, frame: Mapping[str, object]) -> None:
        """Write a frame as it is."""
        line = json.dumps(frame, separators=(",", ":"))
        self._transport.write(line.encode() + b"\n")
        self._written(next(self._frames))

    def _say(self, **fields: object) -> None:
        self.write({**fields, "session_id": self.session_id, "uuid": self.new_uuid()})

    # -- what frames the conversation

    def state(self, state: str) -> None:
        """Tell the state, if it is a new one."""
        if state != self._state:
            self._state = state
            self._say(type="system", subtype="session_state_changed", state=state)

    def lifecycle(self, prompt: Mapping[str, object], state: str) -> None:
        """Tell how far a prompt has come; one without a uuid cannot be told of."""
        if prompt.get("uuid") is not None:
            self._say(type="command_lifecycle", command_uuid=prompt["uuid"], state=state)

    def init(self) -> None:
        """Begin a run."""
        self._say(
            type="system",
            subtype="init",
            cwd=self.cwd,
            model=self.model,
            tools=["Task", "Bash", "Read", "Write"],
            permissionMode=self.mode,
            claude_code_version=VERSION,
            capabilities=list(_CAPABILITIES),
        )

    def status(self) -> None:
        """Tell the permission mode."""
        self._say(type="system", subtype="status", status=None, permissionMode=self.mode)

    def result(self, ending: Mapping[str, object], prompts: Sequence[Mapping[str, object]]) -> None:
        """End a run."""
        told = [prompt["uuid"] for prompt in prompts if prompt.get("uuid") is not None]
        self._say(
            type="result",
            **ending,
            num_turns=1,
            total_cost_usd=0.01 * (self._results + 1),
            user_message_uuids=told,
            result_index=self._results,
        )
        self._results += 1

    # -- the conversation

    def event(self, message_id: str, event: Mapping[str, object]) -> None:
        """Stream a part of a message."""
        self._say(
            type="stream_event", event=event, parent_tool_use_id=None, api_message_id=message_id
        )

    def assistant(
        self, speaker: Speaker, message_id: str, block: Mapping[str, object], **more: object
    ) -> None:
        """Say one block of a message."""
        message: dict[str, object] = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [block],
            "stop_reason": None,
            "usage": {},
        }
        self._say(type="assistant", message=message, **speaker.fields, **more)

    def user(self, speaker: Speaker, block: Mapping[str, object], **more: object) -> None:
        """Say what the model is told: the result of a tool, or an interruption."""
        message: dict[str, object] = {"role": "user", "content": [block]}
        self._say(type="user", message=message, **speaker.fields, **more)

    def tool_result(self, speaker: Speaker, call_id: str, text: str, *, failed: bool) -> None:
        """Say what a tool has given."""
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
        self.user(speaker, block)

    # -- tasks

    def task(self, subtype: str, task: Background, **more: object) -> None:
        """Tell something of a task."""
        self._say(type="system", subtype=subtype, task_id=task.id, run_id=task.run_id, **more)

    def task_started(self, task: Background) -> None:
        """Tell that a task begins."""
        above = {} if task.owner is None else {"parent_task_id": task.owner}
        self.task(
            "task_started",
            task,
            tool_use_id=task.call_id,
            description=task.description,
            is_backgrounded=task.backgrounded,
            task_type=task.type,
            **above,
        )

    def task_ended(self, task: Background, status: str, summary: str) -> None:
        """Tell that a task has ended: ``completed``, ``failed`` or ``killed``."""
        self.task("task_updated", task, patch={"status": status})
        self.task(
            "task_notification",
            task,
            tool_use_id=task.call_id,
            status="stopped" if status == "killed" else status,
            summary=summary,
        )

    def tasks(self, live: Sequence[Background]) -> None:
        """List the tasks in the background."""
        listed = [
            {
                "task_id": task.id,
                "run_id": task.run_id,
                "task_type": task.type,
                "description": task.description,
            }
            for task in live
        ]
        self._say(type="system", subtype="background_tasks_changed", tasks=listed)

    # -- control

    def answer(self, request_id: str, response: Mapping[str, object]) -> None:
        """Answer a request of the host."""
        body = {"subtype": "success", "request_id": request_id, "response": response}
        self.write({"type": "control_response", "response": body})

    def refuse(self, request_id: str, error: str, code: str) -> None:
        """Answer a request of the host with an error."""
        body = {"subtype": "error", "request_id": request_id, "error": error, "error_code": code}
        self.write({"type": "control_response", "response": body})

    def ask(
        self, speaker: Speaker, request_id: str, call_id: str, name: str, use: Mapping[str, object]
    ) -> None:
        """Ask for the permission to use a tool."""
        request: dict[str, object] = {
            "subtype": "can_use_tool",
            "tool_name": name,
            "display_name": name,
            "input": use,
            "tool_use_id": call_id,
            "permission_suggestions": [],
        }
        if speaker.agent is not None:
            request["agent_id"] = speaker.agent.id
        self.write({"type": "control_request", "request_id": request_id, "request": request})

    def withdraw(self, request_id: str) -> None:
        """Say that an answer is not wanted any more."""
        self.write({"type": "control_cancel_request", "request_id": request_id})
