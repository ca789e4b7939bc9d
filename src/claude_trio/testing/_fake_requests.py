"""How a fake CLI answers the control requests of the host, in the words of 2.1.332."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from claude_trio.testing._fake_frames import MODEL, VERSION, Frames

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Asked", "respond"]

_MODES: Final = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")
_MODELS: Final = ("default", "haiku", "opus", "sonnet")
_MODE: Final = "Cannot set permission mode"


class Asked(Protocol):
    """The CLI whose requests are answered."""

    frames: Frames

    def interrupt(self, request_id: str, *, spare: bool, drop: bool) -> None:
        """Stop what runs."""
        ...

    def end_task(self, task_id: str, status: str, summary: str) -> bool:
        """End a task."""
        ...


def respond(
    cli: Asked,
    answers: Mapping[str, Mapping[str, object]],
    request_id: str,
    body: Mapping[str, object],
) -> None:
    """Do what is asked, and answer.

    Args:
      cli: Who was asked.
      answers: What is answered to subtypes that mean nothing to the fake.
      request_id: The request's id.
      body: What is asked.
    """
    frames, subtype = cli.frames, str(body.get("subtype"))
    match subtype:
        case "initialize":
            info: dict[str, object] = {
                "commands": [],
                "claude_code_version": VERSION,
                "session_state": "idle",
            }
            frames.answer(request_id, info)
        case "interrupt":
            spare, drop = body.get("spare_background_tasks"), body.get("cancel_queued")
            cli.interrupt(request_id, spare=bool(spare), drop=bool(drop))
        case "set_model":
            _set_model(frames, request_id, body.get("model"))
        case "set_permission_mode":
            _set_mode(frames, request_id, body.get("mode"))
        case "stop_task":
            cli.end_task(str(body.get("task_id")), "killed", "")
            frames.answer(request_id, {})
        case _ if subtype in answers:
            frames.answer(request_id, answers[subtype])
        case _:
            text = f"Unsupported control request subtype: {subtype}"
            frames.refuse(request_id, text, "unsupported_request")


def _set_model(frames: Frames, request_id: str, model: object) -> None:
    if model is None:
        frames.model = MODEL
    elif not isinstance(model, str):
        frames.refuse(request_id, "set_model: model must be a string", "invalid_request")
        return
    elif model not in _MODELS and not model.startswith("claude-"):
        frames.refuse(request_id, f"Model '{model}' not found", "not_found")
        return
    else:
        frames.model = model
    frames.answer(request_id, {"model": frames.model})


def _set_mode(frames: Frames, request_id: str, mode: object) -> None:
    if mode == "bypassPermissions":
        text = f"{_MODE} to {mode} because the session was not launched with it"
        frames.refuse(request_id, text, "bypass_not_launched")
    elif mode in {*_MODES, "manual"}:
        frames.mode = "default" if mode == "manual" else str(mode)
        frames.answer(request_id, {"mode": frames.mode})
        frames.status()
    else:
        text = f"{_MODE}: must be one of {', '.join(_MODES)}"
        frames.refuse(request_id, text, "invalid_mode")
