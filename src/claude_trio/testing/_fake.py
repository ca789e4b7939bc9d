"""`FakeClaude`: a scripted CLI in memory, with no process, no file and no real time.

It follows the order of frames of the real one (2.1.332) for the conversations that it can play:
texts, whole or streamed; tool calls, which ask for permission; interrupts; prompts that wait.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs
import trio

from claude_trio.testing._fake_transport import FakeTransport
from claude_trio.testing._replies import Cut, Failure, Hold, Pause, Reply, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from claude_trio._transport import Transport

__all__ = ["FakeClaude", "FakeScript"]

FakeScript: TypeAlias = "Sequence[Reply] | Callable[[str], Reply]"
"""The model's replies in order, or a function of the last text that the model was told."""

_VERSION: Final = "2.1.332"
_MODEL: Final = "claude-fake"


def _run_nothing(name: str, _arguments: Mapping[str, object]) -> str:
    return f"({name} completed with no output)"


@final
@attrs.define(eq=False)
class FakeClaude:
    """A CLI that plays a script.

    ``FakeClaude(script).launch`` is a `Launcher`.  Each launch starts the script anew.

    Args:
      script: What the model says.
      run_tool: What a tool that was allowed returns, by its name and arguments.
      asks: Whether a call of this tool asks for permission.
      deaf_to: What it does not hear: ``"initialize"``, ``"interrupt"``, ``"eof"``, ``"term"``.
      dies_with: The exit code with which it dies in the middle of its first turn.

    Attributes:
      received: The frames that the host wrote, oldest first.
    """

    script: FakeScript
    run_tool: Callable[[str, Mapping[str, object]], str] = _run_nothing
    asks: Callable[[str], bool] = bool
    deaf_to: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)
    dies_with: int | None = None
    received: list[Mapping[str, object]] = attrs.field(factory=list, init=False)

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],  # noqa: ARG002  It needs no environment.
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> Transport:
        """Start the fake; its task ends when it exits."""
        await trio.lowlevel.checkpoint()
        transport = FakeTransport("term" in self.deaf_to)
        run = _Run(self, transport, _session_id(argv), cwd or "/home/user/project")
        nursery.start_soon(run.live)
        return transport


def _session_id(argv: Sequence[str]) -> str:
    for argument in argv:
        name, _, value = argument.partition("=")
        if name == "--session-id" and value:
            return value
    return str(uuid.UUID(int=1))


class _ApiFailedError(Exception):
    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status = status


@final
class _Run:
    """One life of the fake."""

    def __init__(
        self, fake: FakeClaude, transport: FakeTransport, session_id: str, cwd: str
    ) -> None:
        self.fake, self.transport = fake, transport
        self.session_id, self.cwd = session_id, cwd
        self.count = itertools.count(1)
        self.replies = iter(()) if callable(fake.script) else iter(fake.script)
        self.prompts: list[Mapping[str, object]] = []
        self.asked: dict[str, trio.MemorySendChannel[Mapping[str, object]]] = {}
        self.scope: trio.CancelScope | None = None
        self.eof = False
        self.results = 0
        self.failed = False
        self.woken = trio.Event()

    async def live(self) -> None:
        # Like a process, it does not hear of the nursery's cancellation.
        with trio.CancelScope(shield=True) as life:
            self.transport.on_exit(life.cancel)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.listen)
                await self.play()
                nursery.cancel_scope.cancel()
            self.transport.exit(1 if self.failed else 0)

    # -- what the host says

    async def listen(self) -> None:
        while (line := await self.transport.read_line()) is not None:
            if line.strip():
                self.hear(json.loads(line))
        if "eof" not in self.fake.deaf_to:
            self.eof = True
            self.woken.set()

    def hear(self, frame: Mapping[str, object]) -> None:
        self.fake.received.append(frame)
        match frame:
            case {"type": "user"}:
                self.prompts.append(frame)
                self.state("running")
                self.lifecycle(frame, "queued")
                self.woken.set()
            case {"type": "control_request", "request_id": str(request_id), "request": dict(body)}:
                self.requested(request_id, body)
            case {"type": "control_response", "response": dict(envelope)}:
                channel = self.asked.pop(str(envelope.get("request_id")), None)
                if channel is not None:
                    channel.send_nowait(envelope)
            case _:
                pass

    def requested(self, request_id: str, body: Mapping[str, object]) -> None:
        subtype = body.get("subtype")
        if subtype in self.fake.deaf_to:
            return
        answer: dict[str, object] = {}
        if subtype == "initialize":
            answer = {"commands": [], "claude_code_version": _VERSION, "session_state": "idle"}
        elif subtype == "interrupt":
            answer = {"still_queued": [], "cancelled": self.drop(bool(body.get("cancel_queued")))}
        self.write(
            type="control_response",
            response={"subtype": "success", "request_id": request_id, "response": answer},
        )
        if subtype == "interrupt" and self.scope is not None:
            for open_id in list(self.asked):
                del self.asked[open_id]
                self.write(type="control_cancel_request", request_id=open_id)
            self.scope.cancel()

    def drop(self, everything: bool) -> list[object]:  # noqa: FBT001  It is the wire's flag.
        dropped = list(self.prompts) if everything else []
        for prompt in dropped:
            self.prompts.remove(prompt)
            self.lifecycle(prompt, "cancelled")
        if dropped and self.scope is None:
            self.state("idle")
        return [prompt.get("uuid") for prompt in dropped]

    # -- what it does

    async def play(self) -> None:
        while True:
            while not self.prompts:
                if self.eof:
                    return
                self.woken = trio.Event()
                await self.woken.wait()
            # A moment in which a prompt can still be withdrawn.
            await trio.lowlevel.checkpoint()
            if self.prompts:
                await self.turn(self.prompts.pop(0))

    async def turn(self, prompt: Mapping[str, object]) -> None:
        self.lifecycle(prompt, "started")
        self.write(
            type="system",
            subtype="init",
            cwd=self.cwd,
            model=_MODEL,
            tools=["Task", "Bash", "Read", "Write"],
            permissionMode="default",
            claude_code_version=_VERSION,
            capabilities=["interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1"],
        )
        if self.fake.dies_with is not None:
            self.transport.exit(self.fake.dies_with)
            await trio.lowlevel.checkpoint()  # It is over: the exit has cancelled this.
        ending: dict[str, object] = {}
        with trio.CancelScope() as self.scope:
            ending = await self.ending(_told(prompt))
        aborted, self.scope = self.scope.cancelled_caught, None
        if aborted:
            self.user([{"type": "text", "text": "[Request interrupted by user]"}])
            ending = {
                "subtype": "error_during_execution",
                "is_error": True,
                "errors": ["[ede_diagnostic] interrupted"],
                "terminal_reason": "aborted_streaming",
            }
        self.result(prompt, ending)
        self.lifecycle(prompt, "cancelled" if aborted else "completed")
        if not self.prompts:
            self.state("idle")

    async def ending(self, told: str) -> dict[str, object]:
        try:
            text, failed, status = await self.answer(told), False, None
        except _ApiFailedError as exc:
            # The real one tries again first, and ends with the same frames.
            text, failed, status = str(exc), True, exc.status
            block = {"type": "text", "text": text}
            self.assistant(f"msg_fake{next(self.count):06}", block)
        return {
            "subtype": "success",
            "is_error": failed,
            "result": text,
            "terminal_reason": "api_error" if failed else "completed",
            **({"api_error_status": status} if failed else {}),
        }

    async def answer(self, told: str) -> str:
        while True:
            script = self.fake.script
            reply = script(told) if callable(script) else next(self.replies, Reply())
            said, calls = await self.stream(reply)
            if not calls:
                return said
            results = [await self.call(call) for call in calls]
            told = results[-1]

    async def stream(self, reply: Reply) -> tuple[str, list[tuple[str, ToolCall]]]:
        message_id = f"msg_fake{next(self.count):06}"
        self.event(message_id, {"type": "message_start", "message": {"id": message_id}})
        said = ""
        calls: list[tuple[str, ToolCall]] = []
        for part in reply.parts:
            match part:
                case Text(text=text):
                    self.delta(message_id, text, first=not said)
                    said += text
                case Pause(seconds=seconds):
                    await trio.sleep(seconds)
                case Hold(event=event):
                    await event.wait()
                case ToolCall():
                    calls.append((part.id or f"toolu_fake{next(self.count):06}", part))
                case Thinking(text=text):
                    self.assistant(message_id, {"type": "thinking", "thinking": text})
                case Failure(status=status, message=text):
                    raise _ApiFailedError(f"API Error: {status} {text}", status)
                case Cut():
                    raise _ApiFailedError("API Error: the connection was reset", None)
        self.finish(message_id, said, calls)
        return said, calls

    def delta(self, message_id: str, text: str, *, first: bool) -> None:
        if first:
            block = {"type": "text", "text": ""}
            start = {"type": "content_block_start", "index": 0, "content_block": block}
            self.event(message_id, start)
        delta = {"type": "text_delta", "text": text}
        self.event(message_id, {"type": "content_block_delta", "index": 0, "delta": delta})

    def finish(self, message_id: str, said: str, calls: Sequence[tuple[str, ToolCall]]) -> None:
        # The whole block comes before the event that ends it.
        if said or not calls:
            self.assistant(message_id, {"type": "text", "text": said})
            self.event(message_id, {"type": "content_block_stop", "index": 0})
        for call_id, call in calls:
            use = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.input}
            self.assistant(message_id, use)
        self.event(message_id, {"type": "message_stop"})

    async def call(self, numbered: tuple[str, ToolCall]) -> str:
        call_id, call = numbered
        arguments, denied = dict(call.input), ""
        if self.fake.asks(call.name):
            envelope = await self.ask(call_id, call)
            body = envelope.get("response")
            decision = body if isinstance(body, Mapping) else {}
            if decision.get("behavior") == "allow":
                changed = decision.get("updatedInput")
                arguments = dict(changed) if isinstance(changed, Mapping) else arguments
            else:
                denied = str(decision.get("message") or envelope.get("error"))
        text = denied or self.fake.run_tool(call.name, arguments)
        self.user(
            [
                {
                    "type": "tool_result",
                    "tool_use_id": call_id,
                    "content": text,
                    "is_error": bool(denied),
                }
            ]
        )
        return text

    async def ask(self, call_id: str, call: ToolCall) -> Mapping[str, object]:
        request_id = str(uuid.UUID(int=next(self.count)))
        self.state("requires_action")
        sender, receiver = trio.open_memory_channel[Mapping[str, object]](1)
        self.asked[request_id] = sender
        self.write(
            type="control_request",
            request_id=request_id,
            request={
                "subtype": "can_use_tool",
                "tool_name": call.name,
                "display_name": call.name,
                "input": call.input,
                "tool_use_id": call_id,
                "permission_suggestions": [],
            },
        )
        envelope = await receiver.receive()
        self.state("running")
        return envelope

    # -- what it says

    def write(self, **frame: object) -> None:
        line = json.dumps(frame, separators=(",", ":"))
        self.transport.write(line.encode() + b"\n")

    def frame(self, **fields: object) -> None:
        own = {"session_id": self.session_id, "uuid": str(uuid.UUID(int=next(self.count)))}
        self.write(**fields, **own)

    def state(self, state: str) -> None:
        self.frame(type="system", subtype="session_state_changed", state=state)

    def lifecycle(self, prompt: Mapping[str, object], state: str) -> None:
        if prompt.get("uuid") is not None:
            self.frame(type="command_lifecycle", command_uuid=prompt["uuid"], state=state)

    def event(self, message_id: str, event: Mapping[str, object]) -> None:
        self.frame(
            type="stream_event", event=event, parent_tool_use_id=None, api_message_id=message_id
        )

    def assistant(self, message_id: str, block: Mapping[str, object]) -> None:
        message: dict[str, object] = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": _MODEL,
            "content": [block],
            "stop_reason": None,
            "usage": {},
        }
        self.frame(type="assistant", message=message, parent_tool_use_id=None)

    def user(self, content: Sequence[Mapping[str, object]]) -> None:
        message: dict[str, object] = {"role": "user", "content": content}
        self.frame(type="user", message=message, parent_tool_use_id=None)

    def result(self, prompt: Mapping[str, object], ending: Mapping[str, object]) -> None:
        self.failed = bool(ending["is_error"])
        told = [prompt["uuid"]] if prompt.get("uuid") is not None else []
        self.frame(
            type="result",
            **ending,
            num_turns=1,
            total_cost_usd=0.01 * (self.results + 1),
            user_message_uuids=told,
            result_index=self.results,
        )
        self.results += 1


def _told(prompt: Mapping[str, object]) -> str:
    message = prompt.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(b["text"]) for b in blocks if isinstance(b, Mapping) and "text" in b)
