"""One life of a fake CLI: it hears the host, and plays turns."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, cast, final

import trio

from claude_trio._ndjson import object_or_empty
from claude_trio.testing._fake_asks import Asks
from claude_trio.testing._fake_costs import Costs
from claude_trio.testing._fake_frames import Frames
from claude_trio.testing._fake_hooks import Hooks
from claude_trio.testing._fake_requests import respond
from claude_trio.testing._fake_rules import Rules
from claude_trio.testing._fake_script import Exhausted, FakeScript, Model, make_model, says_done
from claude_trio.testing._fake_servers import Servers
from claude_trio.testing._fake_tasks import Tasks
from claude_trio.testing._fake_turn import Abort, Prompt, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._fake import FakeClaude
    from claude_trio.testing._fake_launch import Launch
    from claude_trio.testing._fake_transport import FakeTransport
    from claude_trio.testing._fake_trouble import Trouble
    from claude_trio.testing._replies import ToolCall

__all__ = ["Run"]


@final
class Run:
    """One life of the fake: what all its parts share."""

    def __init__(
        self,
        fake: FakeClaude,
        transport: FakeTransport,
        launch: Launch,
        trouble: Trouble,
        nursery: trio.Nursery,
        exhausted: Exhausted,
    ) -> None:
        self._fake, self._transport, self.launch = fake, transport, launch
        self.trouble, self._nursery, self._exhausted = trouble, nursery, exhausted
        self.run_tool, self.answers = fake.run_tool, fake.answers
        self.frames = Frames(launch, self._write)
        self.asks = Asks(self.frames, self.tell_state)
        self.hooks = Hooks(self.asks, self.frames)
        self.rules = Rules(self.frames)
        self.servers = Servers(self.asks)
        self.tasks = Tasks(self, nursery)
        self.costs = Costs()
        self.model = self._model_of(fake.script)
        self.has_schema, self.forwards_text = launch.has_schema, launch.forward_text
        self.turn: Turn | None = None
        self.turns = 0
        """How many turns there have been."""
        self._queue: list[Prompt] = []
        self._known: set[str] = set()
        """The ids of all prompts so far."""
        self._held: list[Mapping[str, object]] = []
        """Results that are said later, since stdin ended before them."""
        self._results = 0
        self._exit_code = 0
        """1 if the last result was an error."""
        self._eof = self._interrupted = self._born_aborted = False
        self.initialized = False
        """Whether ``initialize`` has come."""
        self._woken, self._turn_over = trio.Event(), trio.Event()
        trouble.asks = self.asks
        transport.on_signal(self.signal)

    # -- its life

    async def live(self) -> None:
        """Live until stdin has ended, and all is done that must be."""
        self._nursery.start_soon(self._listen)
        rested = True
        while True:
            while not (self._queue or self.tasks.reports):
                if self._is_done():
                    return
                rested = True
                self._woken = trio.Event()
                await self._woken.wait()
            # A moment in which a prompt can still be withdrawn.
            await trio.lowlevel.checkpoint()
            if self._queue:
                await self._play(Turn(self, self._take(alone=rested)))
            elif self.tasks.reports:
                await self._play(Turn(self, (), self.tasks.reports.pop(0)))
            rested = False

    @property
    def exit_code(self) -> int:
        """With which code it exits by itself."""
        given = self.trouble.exit_code
        return self._exit_code if given is None else given

    def _is_done(self) -> bool:
        if not self._eof or self.tasks.is_busy:
            return False
        if self._interrupted:
            # Behind an interrupt, the end of stdin takes the shells along.
            self.tasks.kill_all()
        return not self.tasks.has_shells

    def _take(self, *, alone: bool) -> list[Prompt]:
        """Take prompts for a turn: those that came during the last one are merged."""
        count = 1
        while not alone and count < len(self._queue):
            if self._queue[0].command is not None or self._queue[count].command is not None:
                break
            count += 1
        taken, self._queue[:count] = self._queue[:count], []
        return taken

    async def _play(self, turn: Turn) -> None:
        self.turn, self._turn_over, self._interrupted = turn, trio.Event(), False
        if self._born_aborted:
            self._born_aborted = False
            self._interrupted = True
            turn.cut_off(Abort.INTERRUPT)
        self.tell_state()
        await turn.play()
        self.turn = None
        self.turns += 1
        self.tell_state()
        self._turn_over.set()

    async def aborted(self) -> None:
        """Wait until the turn has ended, if it is being cut off."""
        await trio.lowlevel.checkpoint()
        if self.turn is not None and self.turn.is_cut_off:
            await self._turn_over.wait()

    # -- what its parts ask for

    def _write(self, frame: Mapping[str, object]) -> None:
        self.trouble.write(frame)

    def wake(self) -> None:
        """Look again at what is to be done."""
        self._woken.set()

    def tell_state(self) -> None:
        """Tell the state, if it is another."""
        busy = self.turn is not None or self._queue or self.tasks.is_busy
        if self.asks.wants_action:
            self.frames.state("requires_action")
        else:
            self.frames.state("running" if busy else "idle")

    def tell_result(self, fields: Mapping[str, object]) -> None:
        """Say a result; one behind the end of stdin is held back while agents work."""
        self._exit_code = int(bool(fields["is_error"]))
        costs = self.costs.tell(self.frames.model)
        self._held.append({"type": "result", **costs, "result_index": self._results, **fields})
        self._results += 1
        if not (self._eof and self.tasks.has_agents):
            held, self._held = self._held, []
            for result in held:
                self.frames.say(**result)

    @property
    def is_over_budget(self) -> bool:
        """Whether more was spent than allowed."""
        return self.launch.budget is not None and self.costs.spent > self.launch.budget

    def agent_model(self, call: ToolCall, prompt: str) -> Model:
        """Make the model of an agent."""
        if call.agent is not None:
            return self._model_of(call.agent)
        for key, script in self._fake.agents.items():
            if key in prompt:
                return self._model_of(script)
        return self.model if callable(self._fake.script) else self._model_of(says_done)

    def _model_of(self, script: FakeScript) -> Model:
        return make_model(script, self._fake, self._nursery, self._exhausted)

    async def wait_servers(self) -> None:
        """Wait until the in-process servers are there, or known not to be."""
        for server in self.servers:
            if server.settled.is_set() and server.status == "failed":
                await server.shake_hands(tries=1)
            await server.settled.wait()
        # Where there is none, nobody waits.

    def connect(self, names: object) -> None:
        """Shake hands with servers that are not known yet."""
        for server in self.servers.add(map(str, cast("list[object]", names))):
            server.introduce()
            self._nursery.start_soon(server.shake_hands)

    def list_tools(self, name: str) -> None:
        """Ask a server for its tools again."""
        server = self.servers.get(name)
        if server is not None:
            self._nursery.start_soon(server.list_tools)

    def fold(self, told: str) -> str:
        """Let prompts and reports that came during a tool call follow its result."""
        folded = [p for p in self._queue if p.command is None and p.priority != "later"]
        texts = [report.text for report in self.tasks.reports]
        self.tasks.reports = []
        self._queue = [prompt for prompt in self._queue if prompt not in folded]
        if self.turn is not None:
            self.turn.fold(folded)
        texts += [prompt.text for prompt in folded]
        return "\n".join(texts) or told

    def interrupt_turn(self) -> None:
        """Cut the running turn off, as an interrupt does."""
        for question in self.asks.of():
            if question.speaker.agent is None:
                self.asks.withdraw(question)
        if self.turn is not None:
            self.turn.cut_off(Abort.INTERRUPT)

    # -- what the host says

    async def _listen(self) -> None:
        while (line := await self._transport.read_line()) is not None:
            # What was written together is heard together, before anybody acts on any of it.
            self._hear_line(line)
            if not self._transport.has_line:
                self.asks.rest()
        if self.trouble.hears_eof:
            self._eof = True
            self.asks.close()
            self.wake()
            await trio.sleep(self.launch.ceiling)
            self._give_up_agents()

    def _give_up_agents(self) -> None:
        if self.tasks.has_agents:
            self._transport.complain("Background tasks are still running, and are given up\n")
            self.tasks.kill_agents(background=True)
            self.tell_state()
            self._transport.exit(self.exit_code)

    def signal(self, number: int) -> None:
        """End by a signal."""
        self.tasks.stop_shells()
        if number != signal.SIGINT:
            self._transport.exit(128 + number)
        elif self.turn is None:
            self._transport.exit(0)
        else:
            self.end_session()
            self.trouble.exit_code = 0

    def _hear_line(self, line: bytes) -> None:
        text = line.strip()
        if not text:
            return
        try:
            frame: object = json.loads(text.decode(errors="replace"))
        except ValueError:
            self._die(f"Error parsing streaming input line (type=unknown, {len(text)} chars)")
            return
        if isinstance(frame, dict):
            self._hear(cast("dict[str, object]", frame))

    def _die(self, words: str) -> None:
        self._transport.complain(f"{words}\n")
        self._transport.exit(1)

    def _hear(self, frame: Mapping[str, object]) -> None:
        self._fake.hear(frame)
        match frame:
            case {"type": "user"}:
                role = object_or_empty(frame.get("message")).get("role", "undefined")
                if role == "user":
                    self._queue_prompt(Prompt(frame))
                else:
                    self._die(f"Error: Expected message role 'user', got '{role}'")
            case {"type": "control_request", "request": dict(body)}:
                respond(self, frame.get("request_id"), cast("dict[str, object]", body))
            case {"type": "control_request"}:
                self._die("Error: Missing request on control_request")
            case {"type": "control_response"}:
                if self.launch.replay:
                    self.frames.write(frame)
                self.asks.answered(object_or_empty(frame.get("response")))
            case _:
                pass

    def _queue_prompt(self, prompt: Prompt) -> None:
        if prompt.uuid is not None:
            if prompt.uuid in self._known:
                self.frames.idle_again()  # Not a word more.
                return
            self._known.add(prompt.uuid)
        self._queue.append(prompt)
        self.tell_state()
        self.frames.lifecycle(prompt.uuid, "queued")
        if prompt.priority == "now" and self.turn is not None:
            self.turn.cut_off(Abort.URGENT_PROMPT)
        self.wake()

    def cancel_prompt(self, uuid: object) -> bool:
        """Drop a prompt that waits."""
        for prompt in self._queue:
            if prompt.uuid is not None and prompt.uuid == uuid:
                self._queue.remove(prompt)
                self.frames.lifecycle(prompt.uuid, "cancelled")
                self.tell_state()
                return True
        return False

    def interrupt(self, request_id: object, *, spare: bool, drop: bool) -> None:
        """Stop what runs, in the order of the real one."""
        self._interrupted = True
        wanted_action = self.asks.wants_action
        for question in self.asks.of():
            if question.subtype != "mcp_message" and not (spare and question.speaker.agent):
                self.asks.withdraw(question)
        for server in self.servers:
            server.cancel()
        if not spare:
            self.tasks.kill_agents(background=True)
        dropped, self._queue = (self._queue, []) if drop else ([], self._queue)
        for prompt in dropped:
            self.frames.lifecycle(prompt.uuid, "cancelled")
        queued = [prompt.uuid for prompt in self._queue if prompt.uuid is not None]
        receipt: dict[str, object] = {"still_queued": queued}
        if drop:
            receipt["cancelled"] = [p.uuid for p in dropped if p.uuid is not None]
        self.frames.answer(request_id, receipt)
        if self.turn is not None:
            self.turn.cut_off(Abort.INTERRUPT)
        self._born_aborted = self.turn is None and bool(self._queue)
        if wanted_action and not self.asks.wants_action:
            self.frames.state("running")
        elif self.turn is None:
            self.frames.idle_again()
        self.tell_state()
        self.wake()

    def end_session(self) -> None:
        """End as soon as the turn is cut off."""
        self.interrupt_turn()
        for prompt in self._queue:
            self.frames.lifecycle(prompt.uuid, "discarded")
        self._queue = []
        self._eof = self._interrupted = True
        self.tasks.kill_agents(background=True)
        self.wake()
