"""``claude-trio run PROMPT``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import trio

from claude_trio import Outcome, SessionOptions, open_session
from claude_trio._cli._show import cost_line, show_turn
from claude_trio.permissions import allow_tools, deny_all

if TYPE_CHECKING:
    import argparse

__all__ = ["run_command"]


async def run_command(arguments: argparse.Namespace) -> int:
    """Send one prompt, and show its turn."""
    prompt: str = arguments.prompt
    if prompt == "-":
        prompt = await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
    handler = allow_tools(*arguments.allow) if arguments.allow else deny_all
    options = SessionOptions(model=arguments.model, cwd=arguments.cwd)
    async with open_session(None, options, on_permission=handler) as session:
        async with session.turn(prompt, check=False) as turn:
            await show_turn(turn)
        result = turn.outcome(check=True)
        sys.stderr.write(f"[{cost_line(result)}]\n")
    return 0 if result.outcome is Outcome.COMPLETED else 1
