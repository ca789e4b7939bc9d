"""Make the kept recordings of raw ones: what the CLI says at length becomes a few neutral words.

Run as ``python tests/tools/neutralise.py FOLDER``, where ``FOLDER`` holds raw recordings (those of
an older CLI in a folder that is named like its version); the result replaces ``tests/recorded``.

No row, frame, key or number is added, dropped or moved, and every word of the protocol stays.  A
string stays if it is a single word, or if it is ours: what the host wrote, and what a prompt has
the scripted model say.  Any other text becomes ``some <key>``, and a catalogue keeps one entry.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["CHOSEN", "neutralised"]

# Every kind of frame, every fate, every way in which a turn ends, all that a fake CLI plays, both
# versions.
CHOSEN: Final = (
    "2.1.197/background-bash",
    "2.1.197/end-sigterm-streaming",
    "2.1.197/interrupt-with-queue",
    "2.1.197/prompt-while-tool-runs",
    "2.1.197/prompts-three-queued",
    "2.1.197/sdk-mcp",
    "2.1.197/subagent-background-interrupt",
    "2.1.197/subagent-background-state",
    "2.1.197/subagent-background-state-public",
    "2.1.197/subagent-foreground",
    "api-400",
    "api-429-once",
    "api-prompt-too-long",
    "api-retry-interrupt",
    "api-unreachable",
    "ask-user-question",
    "background-bash-eof",
    "background-bash-interrupt",
    "background-bash-stop",
    "background-tasks-request",
    "bash-long-foreground",
    "cancel-async-message",
    "control-cancel",
    "control-end-session-mid-turn",
    "control-permission-mode",
    "control-permission-mode-bypass",
    "control-set-model",
    "control-unknown",
    "empty-answer",
    "end-bad-flag",
    "end-eof-after-prompts",
    "end-kill-agent-background",
    "end-sighup-idle",
    "end-sigint-streaming",
    "exit-plan-mode",
    "fallback-model",
    "hook-compact",
    "hook-error-block",
    "hook-events-included",
    "hook-open-eof",
    "hook-open-interrupt",
    "hook-permission-request-first",
    "hook-post-tool-use",
    "hook-post-tool-use-stop",
    "hook-pre-tool-use-deny",
    "hook-pre-tool-use-error",
    "hook-pre-tool-use-modify",
    "hook-pre-tool-use-two",
    "hook-session-start-end",
    "hook-stop",
    "hook-subagent",
    "hook-timeout",
    "hook-user-prompt-submit",
    "initialize-options",
    "initialize-twice",
    "interrupt-cancel-queued",
    "interrupt-mid-stream",
    "interrupt-parallel-permissions",
    "interrupt-right-after-prompt",
    "interrupt-then-prompt-at-once",
    "max-budget",
    "max-turns-last",
    "no-permission-prompt-tool",
    "permission-mode-dont-ask",
    "permission-open-eof",
    "permission-open-interrupt",
    "permission-while-prompted",
    "permissions-parallel",
    "permissions-parallel-concurrent",
    "permissions-parallel-deny-interrupt",
    "plan-mode-tool",
    "prompt-priority-later",
    "prompt-priority-now",
    "prompt-suggestions",
    "prompt-while-tool-runs",
    "prompt-while-tool-runs-replay",
    "prompts-back-to-back",
    "prompts-three-queued",
    "same-uuid-twice",
    "schedule-wakeup",
    "sdk-mcp-by-initialize",
    "sdk-mcp-errors",
    "sdk-mcp-list-changed",
    "sdk-mcp-open-eof",
    "sdk-mcp-open-interrupt",
    "sdk-mcp-parallel",
    "sdk-mcp-serial",
    "sdk-mcp-unanswered",
    "session-id-invalid",
    "session-mirror",
    "session-resume-unknown",
    "slash-clear",
    "slash-queued",
    "stdin-bad-user-frame",
    "stdin-control-without-request",
    "stdin-malformed-mid-turn",
    "stdin-odd-lines",
    "stdin-split-line",
    "stop-max-tokens",
    "stop-refusal",
    "stop-task-background",
    "stop-task-foreground",
    "stream-cut-always",
    "stream-cut-once",
    "stream-cut-tool-input",
    "stream-error-event",
    "structured-output",
    "structured-output-always-wrong",
    "structured-output-never",
    "structured-output-wrong",
    "subagent-background",
    "subagent-background-during-turn",
    "subagent-background-eof-ceiling",
    "subagent-background-eof-permission",
    "subagent-background-interrupt-mid-turn",
    "subagent-background-interrupt-spare",
    "subagent-background-permission-interrupt",
    "subagent-background-prompt-meanwhile",
    "subagent-foreground-partial",
    "subagent-interrupt",
    "subagent-two-background",
    "subagent-two-parallel",
    "text-turn-state-public",
    "thinking-partial",
    "tool-allowed-by-flag",
    "tool-allowed-partial",
    "tool-bad-answers",
    "tool-denied-interrupt",
    "tool-updated-permissions-mode",
    "unicode-text",
)

CATALOGUES: Final = frozenset(
    {
        "agents",
        "available_output_styles",
        "commands",
        "models",
        "plugins",
        "skills",
        "slash_commands",
        "terminal_slash_commands",
        "tools",
    }
)
LONGEST: Final = 60
WORD: Final = re.compile(r"[^\s`\\]*")
KEPT: Final = frozenset(
    {"[Request interrupted by user]", "[Request interrupted by user for tool use]"}
)
OURS_LONGEST: Final = 400


def neutralised(raw: str) -> str:
    """Neutralise the text of one recording."""
    header, *lines = raw.strip("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    ours = {text for row in rows if row["dir"] == "in" for text in _said(row["frame"])}
    return "".join(
        json.dumps(row, separators=(",", ":")) + "\n"
        for row in [json.loads(header), *(_row(row, ours) for row in rows)]
    )


def _row(row: dict[str, Any], ours: set[str]) -> dict[str, Any]:
    if "raw" in row or _is_ours(row["dir"], row["frame"]):
        return row
    frame = _neutral(row["frame"], "line", ours)
    same = frame == row["frame"]
    told = {key: value for key, value in row.items() if same or key not in _ABOUT_THE_LINE}
    return {**told, "frame": frame}


def _is_ours(way: str, frame: Any) -> bool:
    return way == "in" or (way == "ctl" and "processes" not in frame)


_ABOUT_THE_LINE: Final = frozenset({"line", "bytes", "elided", "trimmed"})


def _said(frame: object) -> Iterator[str]:
    """Every text of ours: the prompts, and within them what the model is to say and to do."""
    for text in _texts(frame):
        yield text
        found = re.search(r"\[\[fake: (.*)\]\]", text, re.DOTALL)
        if found:
            try:
                yield from _said(json.loads(found[1]))
            except ValueError:
                continue


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _neutral(value: Any, key: str, ours: set[str]) -> Any:
    if isinstance(value, str):
        return _text(value, key, ours)
    if isinstance(value, dict):
        return {name: _neutral(inner, name, ours) for name, inner in value.items()}
    if isinstance(value, list):
        if key in CATALOGUES:
            value = [_entry(entry) for entry in value[:1]]
        elif key == "capabilities":
            value = [name for name in value if "lifecycle" in name or "interrupt" in name]
        return [_neutral(inner, key, ours) for inner in value]
    return value


def _entry(entry: Any) -> Any:
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        return {**entry, "name": "one"}
    return "one" if isinstance(entry, str) else entry


def _text(text: str, key: str, ours: set[str]) -> str:
    if text in KEPT or (len(text) <= LONGEST and WORD.fullmatch(text)):
        return text.replace("/tmp/", "/home/user/")
    if len(text) <= OURS_LONGEST and (text in ours or _is_part(text, key, ours)):
        return text
    return f"some {key}"


def _is_part(text: str, key: str, ours: set[str]) -> bool:
    """Whether it is a delta of what the model was told to say."""
    return key in {"text", "thinking", "partial_json"} and any(text in whole for whole in ours)


def main(folder: Path, kept: Path) -> None:
    for old in kept.rglob("*.ndjson"):
        old.unlink()
    for name in CHOSEN:
        path = kept / f"{name}.ndjson"
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = (folder / f"{name}.ndjson").read_text(encoding="utf-8")
        path.write_text(neutralised(raw), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parent.parent / "recorded")
