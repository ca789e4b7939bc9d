"""How a fake CLI answers the control requests of the host, in the words of 2.1.332."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from claude_trio._ndjson import list_or_empty, object_or_empty
from claude_trio.testing._fake_launch import MODEL, VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio.testing._fake_run import Run

__all__ = ["respond"]

_MODES: Final = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")
_MODELS: Final = ("default", "haiku", "opus", "sonnet")
_MODE: Final = "Cannot set permission mode"


def respond(run: Run, request_id: object, body: Mapping[str, object]) -> None:
    """Do what is asked, and answer."""
    subtype = str(body.get("subtype", "undefined"))
    if not run.trouble.hears(request_id, subtype):
        return
    frames = run.frames
    match subtype:
        case _ if run.trouble.pretends(subtype):
            frames.answer(request_id, {})
        case "initialize":
            _initialize(run, request_id, body)
        case "interrupt":
            spare, drop = body.get("spare_background_tasks"), body.get("cancel_queued")
            run.interrupt(request_id, spare=bool(spare), drop=bool(drop))
        case "end_session":
            frames.answer(request_id, None)
            run.end_session()
        case "set_model":
            _set_model(run, request_id, body.get("model"))
        case "set_permission_mode":
            _set_mode(run, request_id, body.get("mode"))
        case "cancel_async_message":
            uuid = body.get("message_uuid")
            done = run.cancel_prompt(uuid)
            told = {"cancelled": True, "message_uuid": uuid} if done else {"cancelled": False}
            frames.answer(request_id, told)
        case _ if subtype in run.answers:
            frames.answer(request_id, run.answers[subtype])
        case _:
            _respond_on_work(run, request_id, subtype, body)


def _respond_on_work(
    run: Run, request_id: object, subtype: str, body: Mapping[str, object]
) -> None:
    """Answer what is about tasks and the session, and pass on the rest."""
    frames = run.frames
    match subtype:
        case "stop_task" if not isinstance(body.get("task_id"), str):
            frames.refuse(request_id, "stop_task: task_id must be a string")
        case "stop_task":
            run.tasks.stop(str(body["task_id"]))
            frames.answer(request_id, {})
            frames.idle_again()
            run.tell_state()
        case "background_tasks":
            moved = run.tasks.move_to_background()
            frames.answer(request_id, {} if moved else {"backgrounded": False})
        case "rewind_files":
            frames.refuse(request_id, "File rewinding is not enabled.")
        case "rename_session":
            frames.system("session_title_changed", title=body.get("title"))
            frames.answer(request_id, None)
        case _:
            _respond_on_servers(run, request_id, subtype, body)


def _respond_on_servers(
    run: Run, request_id: object, subtype: str, body: Mapping[str, object]
) -> None:
    """Answer what is about servers, and refuse the rest."""
    frames, server = run.frames, str(body.get("serverName"))
    match subtype:
        case "mcp_status":
            frames.answer(request_id, {"mcpServers": [each.describe() for each in run.servers]})
        case "mcp_set_servers":
            _set_servers(run, request_id, object_or_empty(body.get("servers")))
        case "mcp_message":
            frames.answer(request_id, None)
            method = object_or_empty(body.get("message")).get("method")
            if method == "notifications/tools/list_changed":
                run.list_tools(str(body.get("server_name")))
        case "mcp_reconnect" | "mcp_toggle" if run.servers.get(server) is None:
            frames.refuse(request_id, f"Server not found: {server}")
        case _:
            text = f"Unsupported control request subtype: {subtype}"
            frames.refuse(request_id, text, "unsupported_request")


def _initialize(run: Run, request_id: object, body: Mapping[str, object]) -> None:
    frames = run.frames
    hooked = run.hooks.register(body.get("hooks"))
    run.has_schema |= body.get("jsonSchema") is not None
    run.forwards_text |= body.get("forwardSubagentText") is True
    title = body.get("title", None if run.initialized else run.launch.title)
    if title is not None:
        frames.system("session_title_changed", title=title)
    run.connect([*run.launch.servers, *list_or_empty(body.get("sdkMcpServers"))])
    info: dict[str, object] = {
        "commands": [],
        "agents": [],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": [],
        "account": {},
        "claude_code_version": VERSION,
        "current_permission_mode": frames.mode,
        "session_state": "idle",
        **({"hooks_applied": True} if hooked else {}),
    }
    frames.answer(request_id, info, pending_permission_requests=[])
    if run.initialized or run.turns:
        frames.system("background_tasks_changed", tasks=[])
    run.initialized = True


def _set_servers(run: Run, request_id: object, servers: Mapping[str, object]) -> None:
    named = [n for n, each in servers.items() if object_or_empty(each).get("type") == "sdk"]
    # Those of the command line stay.
    gone = [s.name for s in run.servers if s.name not in {*named, *run.launch.servers}]
    added = [name for name in servers if run.servers.get(name) is None]
    run.servers.remove(gone)
    run.connect(named)
    run.frames.answer(request_id, {"added": added, "removed": gone, "errors": {}})


def _set_model(run: Run, request_id: object, model: object) -> None:
    frames = run.frames
    if model is not None and not isinstance(model, str):
        frames.refuse(request_id, "set_model: model must be a string", "invalid_request")
        return
    if model is not None and model not in _MODELS and not model.startswith("claude-"):
        frames.refuse(request_id, f"Model '{model}' not found", "not_found")
        return
    chosen = MODEL if model in {None, "default"} else str(model)
    if (run.turns or run.turn) and chosen != frames.model:
        frames.replay(f"<local-command-stdout>Set model to {chosen}</local-command-stdout>", None)
    frames.model = chosen
    frames.answer(request_id, {"model": chosen})


def _set_mode(run: Run, request_id: object, mode: object) -> None:
    frames = run.frames
    if mode == "bypassPermissions" and not run.launch.may_bypass:
        text = f"{_MODE} to {mode} because the session was not launched with it"
        frames.refuse(request_id, text, "bypass_not_launched")
    elif mode in {*_MODES, "manual"}:
        chosen = "default" if mode == "manual" else str(mode)
        frames.answer(request_id, {"mode": chosen})
        frames.tell_mode(chosen)
    else:
        text = f"{_MODE}: must be one of {', '.join(_MODES)}"
        frames.refuse(request_id, text, "invalid_mode")
