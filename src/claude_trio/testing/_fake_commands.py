"""The slash commands of a fake CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from claude_trio.testing._fake_frames import Speaker
from claude_trio.testing._fake_talk import Ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_trio.testing._fake_run import Run
    from claude_trio.testing._fake_turn import Prompt

__all__ = ["name_of", "run_command", "unsaid"]

_MAIN: Final = Speaker()
_KNOWN: Final = frozenset({"clear", "compact", "context", "cost", "model"})


def name_of(text: str) -> str | None:
    """Name the command that a text is; None if it goes to the model."""
    name = text.split(maxsplit=1)[0][1:] if text.startswith("/") else ""
    return name if name in _KNOWN else None


def unsaid(text: str = "", **more: object) -> Ending:
    """End a turn in which the model was not asked."""
    fields = {"subtype": "success", "is_error": False, "result": text, "num_turns": 0}
    return Ending(text=text, fields={**fields, **more})


async def run_command(run: Run, name: str, prompt: Prompt, begin: Callable[[], None]) -> Ending:
    """Run a command; ``begin`` says the turn's first frame."""
    match name:
        case "clear":
            await _clear(run, prompt)
            begin()
            text = ""
        case "compact":
            await _compact(run, begin)
            text = ""
        case "model":
            begin()
            run.frames.model = prompt.text.partition(" ")[2] or run.frames.model
            text = f"Set model to {run.frames.model}"
            _say(run, name, text)
        case _:
            begin()
            cost = f"Estimated cost: ${run.costs.spent:.4f}"
            text = cost if name == "cost" else f"Model: {run.frames.model}"
            _say(run, name, text)
    return unsaid(text, local_command=name)


async def _clear(run: Run, prompt: Prompt) -> None:
    """Forget the conversation: a new session begins in the same process."""
    if run.hooks.has("SessionEnd"):
        await run.hooks.fire("SessionEnd", _MAIN, {"reason": "clear"})
    named = {} if prompt.uuid is None else {"user_message_uuid": prompt.uuid}
    run.frames.say(
        type="conversation_reset",
        new_conversation_id=run.frames.new_uuid(),
        trigger="clear",
        **named,
    )
    run.frames.system("background_tasks_changed", tasks=[])
    run.frames.session_id = run.frames.new_uuid()
    run.costs.forget()
    if run.hooks.has("SessionStart"):
        await run.hooks.fire("SessionStart", _MAIN, {"source": "clear"})
    # Nobody may hear of it.


async def _compact(run: Run, begin: Callable[[], None]) -> None:
    """Replace the conversation by a summary."""
    frames, hooks = run.frames, run.hooks
    if not run.turns:
        begin()
        _say(run, "compact", "Error: No messages to compact")
        return
    frames.status("compacting")
    told = {"trigger": "manual", "custom_instructions": ""}
    for event, fields in (
        ("PreCompact", told),
        ("SessionStart", {"source": "compact"}),
        ("PostCompact", {"trigger": "manual", "compact_summary": "A summary."}),
    ):
        if hooks.has(event):
            await hooks.fire(event, _MAIN, fields)
    frames.status(None, compact_result="success")
    begin()
    frames.system("compact_boundary", compact_metadata={"trigger": "manual", "pre_tokens": 1000})
    frames.user(_MAIN, "This session is continued from a summary.", isSynthetic=True)
    frames.replay("<local-command-stdout>Compacted</local-command-stdout>", None)


def _say(run: Run, name: str, text: str) -> None:
    message: dict[str, object] = {
        "id": run.frames.new_uuid(),
        "type": "message",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": text}],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {},
    }
    run.frames.assistant(_MAIN, message, local_command_source=name)
