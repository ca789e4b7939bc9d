"""What a session costs: ours against the official SDK and against the least that Trio can do.

    python -m venv .bench && .bench/bin/pip install . claude-agent-sdk==0.2.189
    .bench/bin/python benchmarks/session.py [--rounds 9] [ROW ...]

Each round runs each system once, in a process of its own and in a new random order, against the
same stand-in for the CLI (`stand_in.c`, built with ``cc``).  Figures are medians over the rounds.
Compare ratios within one table, never the figures of two runs.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple, Protocol

HERE: Final = Path(__file__).resolve().parent
SYSTEMS: Final = {"floor": "trio", "ours": "claude_trio", "sdk": "claude_agent_sdk"}


class Row(NamedTuple):
    """One benchmark: what runs, how often, on which stand-in."""

    kind: str
    times: int
    settings: dict[str, int]
    unit: str


ROWS: Final = {
    "import": Row("import", 1, {}, "ms"),
    "open": Row("open", 25, {}, "ms"),
    "turn of 20 frames": Row("turn", 400, {"FRAMES": 20}, "us"),
    "turn of 1 frame": Row("turn", 400, {"FRAMES": 1}, "us"),
    "permission": Row("once", 2000, {"FRAMES": 1, "PERMISSIONS": 2000}, "us"),
    "frame of 400 B": Row("once", 50_000, {"FRAMES": 50_000, "BYTES": 400}, "us"),
}
SCALE: Final = {"ms": 1e3, "us": 1e6}


class Client(Protocol):
    """What the benchmarks do with each system; see `clients.py`."""

    async def open(self) -> None:
        """Start the CLI, and wait until it is ready."""

    async def turn(self, prompt: str) -> int:
        """Take a turn, and count its messages."""

    async def close(self) -> None:
        """End the CLI."""


# -- one measurement, in a process of its own


def cpu() -> float:
    """Give the CPU seconds of this process, without those of the CLI."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure_open(client: Client, count: int) -> dict[str, float]:
    """Open and close, ``count`` times after two that warm up."""
    opened: list[float] = []
    closed: list[float] = []
    before = cpu()
    for number in range(count + 2):
        if number == 2:  # noqa: PLR2004  The first two warm up.
            before = cpu()
        started = time.perf_counter()
        await client.open()
        ready = time.perf_counter()
        await client.close()
        opened.append(ready - started)
        closed.append(time.perf_counter() - ready)
    spent = (cpu() - before) / count
    return {
        "open": statistics.median(opened[2:]),
        "close": statistics.median(closed[2:]),
        "CPU": spent,
    }


async def measure_turns(client: Client, count: int) -> dict[str, float]:
    """Take ``count`` turns."""
    await client.open()
    for _ in range(20):
        await client.turn("warm up")
    gc.collect()
    times: list[float] = []
    before = cpu()
    for _ in range(count):
        started = time.perf_counter()
        await client.turn("go")
        times.append(time.perf_counter() - started)
    spent = (cpu() - before) / count
    await client.close()
    return {"median": statistics.median(times), "CPU": spent}


async def measure_once(client: Client, count: int) -> dict[str, float]:
    """Take one turn, in which something happens ``count`` times."""
    await client.open()
    await client.turn("warm up")
    gc.collect()
    before, started = cpu(), time.perf_counter()
    await client.turn("go")
    wall, spent = time.perf_counter() - started, cpu() - before
    await client.close()
    return {"CPU": spent / count, "wall": wall / count}


def run_here(system: str, row: Row) -> None:
    """Measure, and print the figures."""
    # Only who measures needs what the systems are made of; who compares must run without the SDK.
    import clients  # noqa: PLC0415
    import trio  # noqa: PLC0415

    measure = {"open": measure_open, "turn": measure_turns, "once": measure_once}[row.kind]
    print(json.dumps(trio.run(measure, clients.client(system), row.times)))


# A program by itself, so that nothing but Python's own modules is there before.
IMPORT: Final = """
import sys, time
before, started = time.process_time(), time.perf_counter()
for module in sys.argv[1:]:
    __import__(module)
spent, wall = time.process_time() - before, time.perf_counter() - started
print('{"CPU": %r, "wall": %r, "modules": %d}' % (spent, wall, len(sys.modules)))
"""


# -- all of them, and the table


def build(folder: Path) -> Path:
    """Build the stand-in."""
    compiler = shutil.which("cc")
    if compiler is None:
        sys.exit("these benchmarks need a C compiler, to be found in PATH as cc")
    made = folder / "stand_in"
    subprocess.run([compiler, "-O2", "-o", str(made), str(HERE / "stand_in.c")], check=True)
    return made


def run_apart(system: str, name: str, stand_in: Path) -> dict[str, float]:
    """Measure in a process of its own."""
    row = ROWS[name]
    environment = {
        **os.environ,
        **{f"STAND_IN_{key}": str(value) for key, value in row.settings.items()},
        "STAND_IN": str(stand_in),
        # The official SDK asks the CLI for its version, which is another process.
        "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
    }
    command = [sys.executable, __file__, "--system", system, name]
    if row.kind == "import":
        # Each with Trio, as a program that runs on Trio has it.
        command = [sys.executable, "-c", IMPORT, "trio", SYSTEMS[system]]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=300)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def compare(name: str, systems: list[str], rounds: int, stand_in: Path) -> None:
    """Run one row, and print its table."""
    found: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
    for _ in range(rounds):
        for system in random.sample(systems, len(systems)):
            found[system].append(run_apart(system, name, stand_in))
    unit = ROWS[name].unit
    print(f"\n{name} ({unit}, {rounds} rounds)")
    print(f"{'figure':8}" + "".join(f"{system:>10}" for system in systems) + "  ours / floor, sdk")
    for figure in found["ours"][0]:
        middle = {
            system: statistics.median([figures[figure] for figures in all_rounds])
            for system, all_rounds in found.items()
        }
        ratios = [
            f"{middle['ours'] / middle[other]:.2f}" if other in middle else "-"
            for other in ("floor", "sdk")
        ]
        scale = 1 if figure == "modules" else SCALE[unit]
        shown = "".join(f"{value * scale:10.2f}" for value in middle.values())
        print(f"{figure:8}{shown}  {', '.join(ratios)}")


def main() -> None:
    """Print the tables, or measure for one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--system", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    if given.system:
        run_here(given.system, ROWS[given.rows[0]])
        return
    systems = [name for name, module in SYSTEMS.items() if importlib.util.find_spec(module)]
    if "sdk" not in systems:
        sys.stderr.write("the peer is missing: pip install claude-agent-sdk==0.2.189\n")
    with tempfile.TemporaryDirectory() as folder:
        stand_in = build(Path(folder))
        for name in given.rows or ROWS:
            compare(name, systems, given.rounds, stand_in)


if __name__ == "__main__":
    main()
