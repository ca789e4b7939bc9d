"""Laws of the fake CLI: it says what the real one says, in the same order.

Each recording of the real CLI is played again on the fake (`reenacted`), and what both say is
compared, by `kind`.  Frames whose order is an accident of times are compared apart: the stream
events of the main conversation, and what each agent says and does.  Left out is what stands in
`UNLIKE`, how often a text is streamed, and a state that is told twice in a row; the blocks of one
message stand together, since the real one asks for a call while the next one streams.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from tests.recordings import KEPT, whole_set
from tests.shell.reenactment import UNLIKE, Json, Reenacted, kind, reenacted, rows_of

PATHS: Final = [path for path in whole_set() if not path.parent.name.startswith("2.1.1")]

NOT_PLAYED: Final = {
    "compact-auto": "the fake's context is never full",
    "content-blocks": "neighbouring texts of a reply run on in one block",
    "control-cancel": "side questions are not answered, and cannot be cancelled",
    "control-misc": "most information is not there",
    "control-thinking": "the settings are not there",
    "end-no-key": "nobody needs a key",
    "end-sighup-agent-background": "a dying fake says nothing of its commands",
    "end-sighup-tool-running": "a dying fake says nothing of its commands",
    "end-sigint-agent-background": "a dying fake says nothing of its commands",
    "end-sigterm-agent-background": "a dying fake says nothing of its commands",
    "end-sigterm-tool-running": "a dying fake says nothing of its commands",
    "end-stdout-closed": "the host reads",
    "hook-events-included": "there are no hooks of settings",
    "mcp-stdio": "there are no servers of other programs",
    "rewind-files": "there are no files",
    "slash-compact-interrupt": "a summary takes no time",
    "slow-reader": "the host reads",
}
"""What a fake does not do, or a host of ours does not; everything else agrees."""

each = pytest.mark.parametrize(
    "path", [path for path in PATHS if path.stem not in NOT_PLAYED], ids=lambda path: path.stem
)


@functools.cache
def real(path: Path) -> tuple[int, list[Json]]:
    header, rows = rows_of(path)
    frames = [row["frame"] for row in rows if row["dir"] == "out" and "raw" not in row]
    return header["exit"], frames


def said(frames: Iterable[Json]) -> list[Json]:
    return [frame for frame in frames if not {frame["type"], frame.get("subtype")} & UNLIKE]


def agent_of(frame: Json) -> str | None:
    """Say whose agent said or did it: the call that started it."""
    if frame["type"] in {"assistant", "user"}:
        return frame.get("parent_tool_use_id")
    return frame.get("tool_use_id") if frame.get("subtype") == "task_progress" else None


def conversation(frames: Iterable[Json]) -> list[str]:
    told: list[Json] = []
    state: object = None
    for frame in said(frames):
        if frame["type"] == "stream_event" or agent_of(frame) is not None:
            continue
        if frame.get("subtype") == "session_state_changed":
            again, state = frame["state"] == state, frame["state"]
            if again:
                continue
        at = len(told)
        if frame["type"] == "assistant":
            message = [n for n, other in enumerate(told) if is_beside(other, frame)]
            at = message[-1] + 1 if message else at
        told.insert(at, frame)
    return [kind(frame) for frame in told]


def is_beside(other: Json, frame: Json) -> bool:
    ids = [each["message"]["id"] for each in (other, frame) if each["type"] == "assistant"]
    return len(set(ids)) < len(ids)


def stream(frames: Iterable[Json]) -> list[str]:
    told: list[str] = []
    for frame in said(frames):
        match frame:
            case {"type": "stream_event"} | {"type": "assistant", "parent_tool_use_id": None}:
                what = kind(frame)
            case {"type": "result"}:
                what = "result"
            case {"subtype": "status", "status": "requesting"}:
                what = "requesting"
            case _:
                continue
        if what != "event content_block_delta" or told[-1:] != [what]:
            told.append(what)
    return told


def agents(frames: Iterable[Json]) -> list[list[str]]:
    told: defaultdict[str, list[str]] = defaultdict(list)
    for frame in said(frames):
        agent = agent_of(frame)
        if agent is not None:
            told[agent].append(kind(frame))
    return sorted(told.values())


async def play(path: Path) -> Reenacted:
    with trio.fail_after(100_000):
        return await reenacted(path)


@each
async def test_the_fake_says_what_the_real_one_said_in_the_same_order(
    autojump_clock: MockClock, path: Path
) -> None:
    code, frames = real(path)
    fake = await play(path)
    assert conversation(fake.frames) == conversation(frames)
    assert stream(fake.frames) == stream(frames)
    assert agents(fake.frames) == agents(frames)
    assert fake.code == code


@pytest.mark.parametrize("name", [path.stem for path in PATHS if path.stem in NOT_PLAYED])
async def test_what_is_not_played_is_not_the_same(autojump_clock: MockClock, name: str) -> None:
    (path,) = (path for path in PATHS if path.stem == name)
    code, frames = real(path)
    fake = await play(path)
    same = [of(fake.frames) == of(frames) for of in (conversation, stream, agents)]
    assert not all([*same, fake.code == code])


# -- shapes


def shapes(frames: Sequence[Json]) -> dict[str, set[str]]:
    """Give the keys of frames, and of what is in them, by what they are."""
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for frame in frames:
        sort = f"{frame['type']}/{frame.get('subtype') if frame['type'] == 'system' else ''}"
        keys[sort] |= frame.keys()
        for inner in ("message", "request", "response", "patch"):
            if isinstance(value := frame.get(inner), dict):
                within = f"{sort}/{inner}/{value.get('subtype', '')}"
                keys[within] |= value.keys()
    return keys


@functools.cache
def all_shapes() -> dict[str, set[str]]:
    return shapes([frame for path in PATHS for frame in real(path)[1]])


@each
async def test_no_frame_of_the_fake_has_a_key_that_the_real_ones_never_have(
    autojump_clock: MockClock, path: Path
) -> None:
    for sort, keys in shapes((await play(path)).frames).items():
        assert keys <= all_shapes()[sort], sort


def test_all_that_a_fake_plays_is_kept() -> None:
    kept = {path.stem for path in KEPT.glob("*.ndjson")}
    assert len(kept - NOT_PLAYED.keys()) > 100
