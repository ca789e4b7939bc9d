"""``claude-trio run PROMPT``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

import trio

from claude_trio import ClaudeTrioError, Outcome, Result, SessionOptions, Turn, open_session
from claude_trio._cli._show import cost_line, show_turn
from claude_trio.permissions import allow_tools, deny_all

if TYPE_CHECKING:
    import argparse

__all__ = ["EXIT_CODES", "run_command"]

EXIT_CODES: Final = {Outcome.COMPLETED: 0, Outcome.FAILED: 1, Outcome.INTERRUPTED: 130}


async def run_command(arguments: argparse.Namespace) -> int:
    """Send one prompt, and show its turn."""
    if not arguments.json:
        return EXIT_CODES[(await _run(arguments)).outcome]
    try:
        result = await _run(arguments)
    except (ClaudeTrioError, ValueError) as exc:
        _write_json({"outcome": Outcome.FAILED.value, "error": str(exc)})
        raise
    except KeyboardInterrupt:
        _write_json({"outcome": Outcome.INTERRUPTED.value})
        raise
    _write_json(
        {
            "outcome": result.outcome.value,
            "text": result.text,
            "errors": result.errors,
            "session_id": result.session_id,
            "num_turns": result.num_turns,
            "duration": result.duration,
            "turn_cost_usd": result.turn_cost_usd,
            "total_cost_usd": result.total_cost_usd,
            "structured_output": result.structured_output,
        }
    )
    return EXIT_CODES[result.outcome]


async def _run(arguments: argparse.Namespace) -> Result:
    prompt: str = arguments.prompt
    if prompt == "-":
        prompt = await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
    handler = allow_tools(*arguments.allow) if arguments.allow else deny_all
    options = SessionOptions(model=arguments.model, cwd=arguments.cwd)
    show = _show_json if arguments.json else show_turn
    async with (
        open_session(None, options, on_permission=handler) as session,
        session.turn(prompt, check=False) as turn,
    ):
        await show(turn)
    assert turn.result is not None  # noqa: S101  A block that has no result to give raises.
    result = turn.result
    if not arguments.json:
        sys.stderr.write(f"[{cost_line(result)}]\n")
        if result.outcome is Outcome.FAILED:
            why = "; ".join(result.errors) or result.text or result.subtype
            sys.stderr.write(f"claude-trio: the turn failed: {why}\n")
    return result


async def _show_json(turn: Turn) -> None:
    async for message in turn:
        sys.stdout.write(json.dumps(message.raw) + "\n")
        sys.stdout.flush()


def _write_json(said: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"type": "claude_trio_result", **said}) + "\n")
    sys.stdout.flush()
