"""How a turn looks in a terminal or a pipe."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final, final

from claude_trio.messages import (
    AssistantMessage,
    StreamEvent,
    TaskNotification,
    TaskStarted,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from claude_trio import Result, Turn
    from claude_trio.messages import ContentBlock, Message

__all__ = ["cost_line", "show_turn"]

_LONGEST_LINE: Final = 100


async def show_turn(turn: Turn, *, indent: str = "", until: str | None = None) -> None:
    """Print the text of a turn as it comes, and its tools.

    Args:
      turn: The turn.
      indent: What each line begins with.
      until: Stop once this text has streamed.
    """
    page = _Page(indent)
    async for message in turn:
        page.show(message)
        if until is not None and page.streamed == until:
            break
    page.end_line()


def cost_line(result: Result) -> str:
    """Say in one line how a turn ended, how long it took and what it cost."""
    parts = [result.outcome.value]
    if result.duration is not None:
        parts.append(f"{result.duration:.1f} s")
    if result.turn_cost_usd is not None:
        parts.append(f"${result.turn_cost_usd:.4f}")
    return ", ".join(parts)


@final
class _Page:
    def __init__(self, indent: str) -> None:
        self._indent = indent
        self.streamed = ""
        self._open = False

    def show(self, message: Message) -> None:
        match message:
            case StreamEvent():
                if message.event.get("type") in {"message_start", "content_block_start"}:
                    self.streamed = ""
                self.streamed += message.text_delta
                self._text(message.text_delta)
            case AssistantMessage(parent_tool_use_id=None):
                # A block that was streamed comes once more as a whole.
                self._text(message.text.removeprefix(self.streamed))
                self.streamed = ""
                self._blocks(message.content)
            case UserMessage(parent_tool_use_id=None):
                self._blocks(message.content)
            case TaskStarted(is_backgrounded=True):
                self._line(f"~ in the background: {message.description}")
            case TaskNotification():
                self._line(f"~ {message.status}: {_short(message.summary or '')}")
            case _:
                pass

    def _blocks(self, content: Sequence[ContentBlock]) -> None:
        for block in content:
            if isinstance(block, ToolUseBlock):
                self._line(f"> {block.name} {_short(block.input)}")
            elif isinstance(block, ToolResultBlock):
                error = "error: " if block.is_error else ""
                self._line(f"< {error}{_short(_said(block))}")

    def end_line(self) -> None:
        if self._open:
            sys.stdout.write("\n")
            self._open = False
        sys.stdout.flush()

    def _text(self, text: str) -> None:
        if text:
            start = "" if self._open else self._indent
            sys.stdout.write(start + text.replace("\n", f"\n{self._indent}"))
            sys.stdout.flush()
            self._open = True

    def _line(self, text: str) -> None:
        self.end_line()
        sys.stdout.write(f"{self._indent}{text}\n")
        sys.stdout.flush()


def _said(result: ToolResultBlock) -> str:
    return "\n".join([block.text for block in result.content if isinstance(block, TextBlock)])


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
