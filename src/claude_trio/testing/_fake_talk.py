"""One conversation of a fake model, the main one or an agent's: what it says, and what it calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from claude_trio.testing._fake_calls import Calls
from claude_trio.testing._fake_stream import Message
from claude_trio.testing._replies import Cut, Failure, Hold, Pause, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._fake_calls import Outcome
    from claude_trio.testing._fake_frames import Speaker
    from claude_trio.testing._fake_run import Run
    from claude_trio.testing._fake_script import Model
    from claude_trio.testing._replies import ToolCall

__all__ = ["ApiFailed", "Ending", "Talk"]

_MISFITS: Final = 5
"""How many values that do not fit the schema are too many."""
_CONTINUATIONS: Final = 3
_OVERLOADED: Final = 529
_OVERLOADS: Final = 3
"""How many overloads in a row bring the fallback model."""
_LONGEST_DELAY: Final = 32.0
# How often a request is tried again in another shape, without a word.
_QUIET_TRIES: Final = {400: 5, 404: 1}
_FINAL: Final = frozenset({402, 403, 413})
_CATEGORIES: Final = {
    400: "unknown",
    401: "authentication_failed",
    402: "billing_error",
    403: "authentication_failed",
    404: "model_not_found",
    413: "invalid_request",
    429: "rate_limit",
}


class ApiFailed(Exception):
    """The API has failed, and is not asked again."""

    def __init__(self, failure: Failure | Cut) -> None:
        super().__init__()
        if isinstance(failure, Cut):
            self.status: int | None = None
            self.text, self.kind = "API Error: Connection error.", None
        else:
            self.status, self.kind = failure.status, failure.type
            spoken = failure.status == 402  # noqa: PLR2004  It is shown without words of the CLI's.
            self.text = failure.message if spoken else f"API Error: {self.status} {failure.message}"
        too_long = self.status == 400 and "prompt is too long" in self.text.lower()  # noqa: PLR2004
        large = self.status == 413  # noqa: PLR2004  The status of what is too large.
        self.reason = "prompt_too_long" if too_long else "image_error" if large else "api_error"
        self.category = _CATEGORIES.get(self.status or 0, "server_error")
        if too_long:
            self.category = "invalid_request"


@final
@attrs.frozen(kw_only=True)
class Ending:
    """How an answer ends.

    Attributes:
      text: What was said last.
      fields: What the result says of the end.
    """

    text: str = ""
    fields: Mapping[str, object] = attrs.field(factory=dict)

    @classmethod
    def good(cls, text: str, reason: str, **more: object) -> Ending:
        """End well."""
        fields = {"subtype": "success", "is_error": False, "result": text}
        return cls(text=text, fields={**fields, "terminal_reason": reason, **more})

    @classmethod
    def bad(cls, subtype: str, reason: str, error: str) -> Ending:
        """End in an error."""
        fields = {"subtype": subtype, "is_error": True, "errors": [error]}
        return cls(fields={**fields, "terminal_reason": reason})


@final
class Talk:
    """The main conversation, or an agent's."""

    def __init__(self, run: Run, speaker: Speaker, model: Model) -> None:
        self._run, self._speaker, self._model = run, speaker, model
        self._frames = run.frames
        self._calls = Calls(run, speaker)
        self._message: Message | None = None
        self.stop_reason: str | None = None
        """Why the model has stopped, the last time that it did."""
        self._asked = 0
        """How many messages it has said."""
        self._nudged: dict[str, int] = {}

    @property
    def is_main(self) -> bool:
        """Whether it is no agent's."""
        return self._speaker.agent is None

    async def answer(self, told: str) -> Ending:
        """Answer what the model is told, with all the tools that this takes.

        Raises:
          ApiFailed: if the API fails for good.
        """
        self._model.renew()
        while True:
            if self.is_main and self._run.is_over_budget:
                return self._over_budget()
            reply, message = await self._ask_model(told)
            self._asked += 1
            if reply.ending is not None:
                return self._scripted(reply.ending, message.text)
            ending = await self._go_on(message)
            if isinstance(ending, Ending):
                return ending
            told = ending

    def abort(self, *, tells: bool = True) -> tuple[str, str]:
        """Say what an interrupt has cut off.

        Args:
          tells: Whether the model is told of the interrupt.

        Returns:
          The word for where that was, and the text until then.
        """
        message, self._message = self._message, None
        text = message.say_aborted() if message is not None else ""
        in_tools = self._calls.reject()
        if self.is_main:
            self._run.tasks.kill_agents(background=False)
        if tells:
            what = " for tool use" if in_tools else ""
            self._frames.text(self._speaker, f"[Request interrupted by user{what}]")
        if message is not None:
            message.close_aborted()
        return "tools" if in_tools else "streaming", text

    # -- after a message

    async def _go_on(self, message: Message) -> Ending | str:
        """Do what a message asks for; return the end, or what the model is told next."""
        if self.is_main and self._run.is_over_budget:
            return self._over_budget()
        if message.calls:
            outcome = await self._calls.make(message.calls)
            if not self.is_main:
                return outcome.told
            ending = self._end_of(outcome)
            return self._run.fold(outcome.told) if ending is None else ending
        nudge = self._nudge(message)
        if nudge is not None:
            self._frames.text(self._speaker, nudge, isSynthetic=True)
            return nudge
        feedback = await self._stop(message.text)
        return Ending.good(message.text, "completed") if feedback is None else feedback

    def _end_of(self, outcome: Outcome) -> Ending | None:
        """Say whether calls end the turn."""
        launch = self._run.launch
        if outcome.deferred is not None:
            return _deferred(*outcome.deferred)
        if outcome.stopped:
            return Ending.good("", "hook_stopped")
        if outcome.structured is not None:
            text = json.dumps(outcome.structured, separators=(",", ":"))
            return Ending.good(text, "completed", structured_output=outcome.structured)
        if self._calls.misfits >= _MISFITS:
            return Ending.bad(
                "error_max_structured_output_retries",
                "structured_output_retry_exhausted",
                f"Failed to provide valid structured output after {_MISFITS} attempts",
            )
        if launch.max_turns is not None and self._asked >= launch.max_turns:
            text = f"Reached maximum number of turns ({launch.max_turns})"
            return Ending.bad("error_max_turns", "max_turns", text)
        return None

    def _over_budget(self) -> Ending:
        text = f"Reached maximum budget (${self._run.launch.budget or 0:g})"
        return Ending.bad("error_max_budget_usd", "budget_exhausted", text)

    def _scripted(self, fields: Mapping[str, object], text: str) -> Ending:
        good = fields["subtype"] == "success" and "result" not in fields
        more: dict[str, object] = {"result": text} if good else {}
        reason = {} if "terminal_reason" in fields else {"terminal_reason": "completed"}
        return Ending(text=text, fields={**more, **reason, **fields})

    def _nudge(self, message: Message) -> str | None:
        """Say what makes the model go on where it should not have stopped."""
        if message.stop_reason == "max_tokens":
            return self._once("Output token limit hit. Go on.", _CONTINUATIONS)
        if message.stop_reason == "refusal":
            self._frames.system("informational", content="The model refused.", level="notice")
            return self._once("The response above was stopped. Go on.")
        if not message.text and message.blocks == 0:
            return self._once("[Your previous response had no visible output.]")
        if self.is_main and self._run.has_schema:
            return self._once("[structured-output-enforce] Call the StructuredOutput tool.")
        return None

    def _once(self, words: str, most: int = 1) -> str | None:
        self._nudged[words] = self._nudged.get(words, 0) + 1
        return words if self._nudged[words] <= most else None

    async def _stop(self, text: str) -> str | None:
        """Ask the hooks whether that was all; return what they want the model to be told."""
        event = "Stop" if self.is_main else "SubagentStop"
        if not self._run.hooks.has(event):
            return None
        fields: dict[str, object] = {
            "stop_hook_active": bool(self._nudged.get(event)),
            "last_assistant_message": text,
            "background_tasks": [],
            "session_crons": [],
        }
        if (agent := self._speaker.agent) is not None:
            fields |= {"agent_transcript_path": f"/home/user/.claude/agent-{agent.id}.jsonl"}
        verdict = await self._run.hooks.fire(event, self._speaker, fields)
        if verdict.decision != "deny":
            return None
        self._nudged[event] = 1
        feedback = f"Stop hook feedback:\n{verdict.reason}"
        self._frames.text(self._speaker, feedback, isSynthetic=True)
        self._frames.system(
            "notification", key="stop-hook-error", text="a stop hook objects", priority="immediate"
        )
        return feedback

    # -- a message, with as many tries as it takes

    async def _ask_model(self, told: str) -> tuple[Reply, Message]:
        if self.is_main and self._frames.launch.partial:
            self._frames.status("requesting")
        tries = _Tries(self._run, self._speaker)
        while True:
            reply = await self._model.reply(told)
            message = self._message = Message(
                self._frames, self._speaker, streams=tries.streams, shows_text=self._shows_text
            )
            failure = await self._play(message, reply)
            self._message = None
            if failure is None:
                self.stop_reason = message.stop_reason
                self._run.costs.pay(reply.usage)
                return reply, message
            message.break_off()
            if message.blocks and isinstance(failure, Cut):
                # What is complete is kept, and the model goes on behind it.
                told = "The response above was cut off. Go on."
                self._frames.text(self._speaker, told, isSynthetic=True)
                if self.is_main and self._frames.launch.partial:
                    self._frames.status("requesting")
                continue
            await tries.wait(failure, begun=message.begun)

    @property
    def _shows_text(self) -> bool:
        # What an agent in the foreground says is in the result of its call only.
        agent = self._speaker.agent
        return agent is None or agent.backgrounded or self._run.forwards_text

    async def _play(self, message: Message, reply: Reply) -> Failure | Cut | None:
        """Stream a reply; return what went wrong."""
        for part in reply.parts:
            match part:
                case Pause(seconds=seconds):
                    await trio.sleep(seconds)
                case Hold(event=event):
                    await event.wait()
                case Failure() | Cut():
                    return part
                case _:
                    message.add(part)
        if reply.parts or reply.ending is None:
            message.finish(reply)
        return None


@final
class _Tries:
    """How often a request has been tried, and whether it is tried again."""

    def __init__(self, run: Run, speaker: Speaker) -> None:
        self._run, self._speaker = run, speaker
        self._quiet = self._loud = self._overloads = 0
        self.streams = True
        """Whether the next try streams."""

    async def wait(self, failure: Failure | Cut, *, begun: bool) -> None:
        """Wait for the next try.

        Raises:
          ApiFailed: if there is none.
        """
        status = failure.status if isinstance(failure, Failure) else None
        exc = ApiFailed(failure)
        if exc.reason == "prompt_too_long" or status in _FINAL:
            raise exc
        if isinstance(failure, Failure) and begun and self.streams:
            self.streams = False
            return
        if status in _QUIET_TRIES:
            self._quiet += 1
            if self._quiet > _QUIET_TRIES[status]:
                raise exc
            return
        if self._falls_back(status):
            return
        self._loud += 1
        if self._loud > self._run.launch.retries:
            if not (isinstance(failure, Cut) and self.streams):
                raise exc
            # The last one asks for the whole message at once.
            self.streams = False
            return
        await self._pause(failure, status)

    def _falls_back(self, status: int | None) -> bool:
        self._overloads = self._overloads + 1 if status == _OVERLOADED else 0
        frames, fallback = self._run.frames, self._run.launch.fallback
        if self._overloads < _OVERLOADS or fallback in {None, frames.model}:
            return False
        frames.system(
            "model_fallback",
            trigger="overloaded",
            original_model=frames.model,
            fallback_model=fallback,
            content=f"Switched to {fallback}",
        )
        frames.model, self._loud = str(fallback), 0
        return True

    async def _pause(self, failure: Failure | Cut, status: int | None) -> None:
        seconds = min(0.5 * 2 ** (self._loud - 1), _LONGEST_DELAY)
        if isinstance(failure, Failure) and failure.retry_after is not None:
            seconds = failure.retry_after
        self._run.frames.system(
            "api_retry",
            attempt=self._loud,
            max_retries=self._run.launch.retries,
            retry_delay_ms=round(seconds * 1000),
            error_status=status,
            error=failure.type if isinstance(failure, Failure) else "unknown",
        )
        await trio.sleep(seconds)


def _deferred(call_id: str, call: ToolCall) -> Ending:
    put_off = {"id": call_id, "name": call.name, "input": call.input}
    return Ending.good("", "tool_deferred", deferred_tool_use=put_off)
