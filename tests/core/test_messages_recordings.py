"""What the real CLI has said is known, and nothing of it is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from claude_trio.messages import (
    AssistantMessage,
    ToolResultBlock,
    UnknownBlock,
    UnknownMessage,
    UserMessage,
    decode,
    from_raw,
)
from tests.core.golden_frames import GOLDENS, attribute_names
from tests.recordings import recorded_output, whole_set

if TYPE_CHECKING:
    from pathlib import Path

    from claude_trio.messages import Message

GOLD = {(g.frame["type"], g.frame.get("subtype")): g.cls for g in GOLDENS}


def blocks_of(message: Message) -> list[object]:
    if not isinstance(message, AssistantMessage | UserMessage):
        return []
    inner = [
        b for block in message.content if isinstance(block, ToolResultBlock) for b in block.content
    ]
    return [*message.content, *inner]


@pytest.mark.parametrize("path", whole_set(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_recorded_frame_is_known_and_whole(path: Path) -> None:
    for line, frame in recorded_output(path):
        message = decode(line)

        assert not isinstance(message, UnknownMessage), frame
        assert type(message).__name__ == GOLD[frame["type"], frame.get("subtype")]
        assert message.raw == frame
        assert message == from_raw(frame)
        assert not any(isinstance(block, UnknownBlock) for block in blocks_of(message)), frame
        for name in attribute_names(type(message)):
            getattr(message, name)


def test_there_are_recordings() -> None:
    assert whole_set()
