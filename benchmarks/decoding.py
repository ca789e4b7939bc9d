"""What it costs to decode what the CLI says: ours against ``json``, msgspec alone and the SDK.

    python -m venv .bench && .bench/bin/pip install . claude-agent-sdk==0.2.189
    .bench/bin/python benchmarks/decoding.py

Every round runs every variant once, in a new random order, and counts the thread's own CPU time,
so that a busy machine disturbs all alike.  Every variant begins with the bytes as 64 KiB reads of a
pipe bring them.  Compare ratios within one table, never the figures of two runs.

=============  =======================================================================
json           ``json.loads`` of each line
msgspec        ``msgspec.json.decode`` of each line, to a dict: the floor
sdk            the official SDK's way: ``json.loads``, then its ``parse_message``
ours, taken    through `Connection`, and each message taken
msgspec, cut   as ``msgspec``, of lines that are cut already
ours, cut      `decode` alone, of lines that are cut already: compare with ``msgspec, cut``
ours, queued   through `Connection`, and none taken: what a turn costs that nobody reads
=============  =======================================================================
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from claude_trio._protocol._connection import Connection
from claude_trio._protocol._events import Conversation
from claude_trio.messages import StreamEvent, decode

if TYPE_CHECKING:
    from collections.abc import Callable


READ: Final = 65536  # What one read of a pipe brings.
GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden"


def deltas(size: int, count: int = 400) -> list[bytes]:
    """Make text deltas as the CLI writes them, of ``size`` bytes each."""
    frame = {
        "type": "stream_event",
        "event": {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": ""},
        },
        "session_id": "0c1d0c5e-7a4b-4a0e-9a53-3f1f7c1b2a10",
        "parent_tool_use_id": None,
        "uuid": "5c2b7d0e-93a1-4c39-8d9c-0d4e1f2a3b4c",
        "api_message_id": "msg_01Fake000001",
    }
    empty = len(msgspec.json.encode(frame))
    frame["event"]["delta"]["text"] = "word " * 1000  # type: ignore[index]
    text = ("word " * (size // 5 + 1))[: max(0, size - empty)]
    frame["event"]["delta"]["text"] = text  # type: ignore[index]
    return [msgspec.json.encode(frame)] * count


def mix() -> list[bytes]:
    """Take each kind of frame of a conversation, deltas most often, as in a streamed turn."""
    kinds = ("assistant", "user", "result", "system", "stream_event", "command_lifecycle")
    frames = [
        msgspec.json.encode(json.loads(path.read_bytes()))
        for path in sorted(GOLDEN.glob("*.json"))
        if path.stem.startswith(kinds)
    ]
    if not frames:
        sys.exit(f"no frames in {GOLDEN}")
    return (frames + deltas(282, count=3 * len(frames))) * 2


def reads_of(lines: list[bytes]) -> list[bytes]:
    """Give the bytes of ``lines`` as the reads of a pipe bring them."""
    text = b"".join(line + b"\n" for line in lines)
    return [text[at : at + READ] for at in range(0, len(text), READ)]


def split_and(reads: list[bytes], decode: Callable[[bytes], object]) -> int:
    """Split what was read, and decode each line."""
    count, rest = 0, b""
    for data in reads:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            decode(line)
            count += 1
    return count


def ours(reads: list[bytes], *, take: bool) -> int:
    """Read through a `Connection`; take each message as a `Turn` does, or none."""
    connection = Connection.make(limit=1 << 26, follow_up=2, settle=600, requests=())
    count = 0
    for data in reads:
        for event in connection.receive_data(data, 0.0):
            if isinstance(event, Conversation):
                count += len(event.lines)
                if take and event.message is None:
                    for line in event.lines:
                        message = decode(line)
                        if message.__class__ is StreamEvent:
                            message.event  # noqa: B018
                        else:
                            message.raw  # noqa: B018
    return count


def lines_alone(lines: list[bytes], decode: Callable[[bytes], object]) -> int:
    """Decode lines that are cut already."""
    for line in lines:
        decode(line)
    return len(lines)


def variants(lines: list[bytes]) -> dict[str, Callable[[], int]]:
    """Give each variant as a function that decodes all lines, and counts them."""
    reads = reads_of(lines)
    found: dict[str, Callable[[], int]] = {
        "json": functools.partial(split_and, reads, json.loads),
        "msgspec": functools.partial(split_and, reads, msgspec.json.decode),
        "ours, taken": functools.partial(ours, reads, take=True),
        "ours, queued": functools.partial(ours, reads, take=False),
    }
    found["msgspec, cut"] = functools.partial(lines_alone, lines, msgspec.json.decode)
    found["ours, cut"] = functools.partial(lines_alone, lines, decode)
    sdk = _sdk_parser()
    if sdk is not None:
        found["sdk"] = functools.partial(split_and, reads, sdk)
    return found


def _sdk_parser() -> Callable[[bytes], object] | None:
    try:
        module = importlib.import_module("claude_agent_sdk._internal.message_parser")
    except ImportError:
        sys.stderr.write("the peer is missing: pip install claude-agent-sdk==0.2.189\n")
        return None
    parse: Callable[[dict[str, object]], object] = module.parse_message
    errors = importlib.import_module("claude_agent_sdk._errors")

    def parsed(line: bytes) -> object:
        raw = json.loads(line)
        try:
            return parse(raw) or raw
        except errors.MessageParseError:  # A frame that it does not know.
            return raw

    return parsed


def measure(lines: list[bytes], rounds: int) -> dict[str, list[float]]:
    """Time every variant in every round; nanoseconds a frame."""
    chosen = list(variants(lines).items())
    times: dict[str, list[float]] = {name: [] for name, _ in chosen}
    for number in range(rounds + 1):
        random.shuffle(chosen)
        for name, run in chosen:
            started = time.thread_time_ns()
            run()
            spent = (time.thread_time_ns() - started) / len(lines)
            if number:  # The first round warms up.
                times[name].append(spent)
    return times


def report(title: str, lines: list[bytes], rounds: int) -> None:
    """Print one table."""
    times = measure(lines, rounds)
    size = sum(map(len, lines)) / len(lines)
    floor = statistics.median(times["msgspec"])
    print(f"\n{title}: {len(lines)} lines of {size:.0f} bytes on average, {rounds} rounds")
    print(f"{'variant':14} {'ns/frame':>9} {'quartile':>9} {'x msgspec':>10}")
    for name, values in sorted(times.items(), key=lambda pair: statistics.median(pair[1])):
        middle = statistics.median(values)
        low, _, high = statistics.quantiles(values, n=4)
        print(f"{name:14} {middle:9.0f} {(high - low) / middle:8.1%} {middle / floor:10.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    rounds: int = parser.parse_args().rounds
    report("text deltas of 282 bytes", deltas(282), rounds)
    report("text deltas of 400 bytes", deltas(400), rounds)
    report("text deltas of 4 KiB", deltas(4096, count=100), rounds)
    report("a mix of frames", mix(), rounds)


if __name__ == "__main__":
    main()
