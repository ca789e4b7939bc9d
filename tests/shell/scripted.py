"""What tests of sessions share: replies that start work beside a turn, and what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from claude_trio.testing import FakeClaude, call_tool, say

if TYPE_CHECKING:
    from claude_trio.testing import Reply

Json = dict[str, Any]

BROKEN: Final = b'{"type":"assistant","message":{"content":[{"type":"te\n'
"""A line that begins like a frame of the conversation, and breaks off."""


def agent(prompt: str = "look", *, background: bool = True) -> Reply:
    use = {"description": prompt, "prompt": prompt, "run_in_background": background}
    return call_tool("Agent", use)


def shell(seconds: float) -> Reply:
    return call_tool("Bash", {"command": f"sleep {seconds}", "run_in_background": True})


def command(seconds: float) -> Reply:
    return call_tool("Bash", {"command": f"sleep {seconds}"})


def asking(seconds: float) -> Reply:
    """A command that changes something, so that it is asked for."""
    return call_tool("Bash", {"command": f"sleep {seconds}; touch done"})


def working(seconds: float, *, asks: bool = False) -> list[Reply]:
    """What an agent says that works for some time, by a tool or by itself."""
    work = asking(seconds) if asks else say("I look", chunks=2, delay=seconds)
    return [work, say("it is there")] if asks else [work]


def written(fake: FakeClaude, kind: str) -> list[Json]:
    return [dict(frame) for frame in fake.received if frame["type"] == kind]


def subtypes(fake: FakeClaude) -> list[str]:
    return [frame["request"]["subtype"] for frame in written(fake, "control_request")]


def decisions(fake: FakeClaude) -> list[Json]:
    return [frame["response"] for frame in written(fake, "control_response")]
