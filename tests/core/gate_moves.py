"""What can happen next in a simulated world, and a player that picks at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from claude_trio._protocol._turns import State
from tests.core.gate_world import SETTLE, World
from tests.core.simulated_cli import SimulatedCLI
from tests.core.simulated_values import States

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from random import Random

    from tests.core.simulated_values import Choose, Worker

__all__ = ["MOVES", "Move", "walk"]


@attrs.frozen(kw_only=True, eq=False)
class Move:
    name: str
    ready: Callable[[World], bool]
    make: Callable[[World, Choose], None]
    weight: int = 2


def _in_run(world: World) -> bool:
    run = world.cli.run
    return run is not None and run.begun and not run.aborted


def _workers(world: World, **wanted: bool) -> list[Worker]:
    return [
        w
        for w in world.cli.workers.values()
        if all(getattr(w, name) is value for name, value in wanted.items())
    ]


def _asking(world: World) -> list[Worker]:
    return [world.cli.workers[i] for i in sorted(world.cli.asking)]


def _start_agent(world: World, choose: Choose) -> None:
    kind = choose(["local_agent", "local_agent", "local_workflow"])
    world.cli.start_worker(kind, background=choose([True, True, False]))


def _start_nested(world: World, choose: Choose) -> None:
    parent = choose(_workers(world, is_agent=True, background=True))
    world.cli.start_worker("local_agent", background=True, parent=parent)


def _start_shell(world: World, choose: Choose) -> None:
    world.cli.start_worker("local_bash", background=choose([True, True, False]))


def _in_any_run(world: World) -> bool:
    return world.cli.run is not None and world.cli.run.begun


def _steerable(world: World) -> bool:
    return world.gate.machine.state in {State.PROMPTING, State.HELD}


def _can_speak(world: World) -> bool:
    # Where a report has no name, the line of a monitor cannot be told from the end of an agent.
    named = world.dialect.detailed or world.dialect.states is States.EAGER
    return named and bool(_workers(world, is_agent=False, background=True))


def _cli(make: Callable[[SimulatedCLI, Choose], None]) -> Callable[[World, Choose], None]:
    return lambda world, choose: make(world.cli, choose)


MOVES: Final = (
    Move(
        name="wait",
        ready=lambda _: True,
        make=lambda world, choose: world.wait(choose([0.02, 0.1, 0.5, 3.0]), choose),
        weight=4,
    ),
    Move(
        name="silence",
        ready=lambda _: True,
        make=lambda world, choose: world.wait(SETTLE + 1, choose),
        weight=0,
    ),
    Move(name="to_host", ready=lambda w: bool(w.cli.out), make=World.to_host, weight=12),
    Move(name="to_cli", ready=lambda w: bool(w.unread), make=World.to_cli, weight=6),
    Move(name="drain", ready=lambda _: True, make=World.drain, weight=1),
    Move(
        name="prompt",
        ready=lambda w: w.gate.machine.state is State.IDLE,
        make=World.prompt,
        weight=8,
    ),
    Move(
        name="prompt_latched",
        ready=lambda w: w.gate.machine.state is State.IDLE and w.last_cancel > 0,
        make=World.prompt_latched,
        weight=1,
    ),
    Move(name="steer", ready=_steerable, make=World.steer),
    Move(name="cancel", ready=lambda _: True, make=World.cancel, weight=1),
    Move(
        name="cancel_stale",
        ready=lambda w: w.last_prompt > 0,
        make=World.cancel_stale,
        weight=1,
    ),
    Move(
        name="stop_task",
        ready=lambda w: bool(w.gate.tasks.live),
        make=World.stop_task,
        weight=1,
    ),
    Move(
        name="take",
        ready=lambda w: w.cli.run is None and bool(w.cli.queue),
        make=_cli(SimulatedCLI.take),
        weight=6,
    ),
    Move(
        name="begin",
        ready=lambda w: w.cli.run is not None and not w.cli.run.begun,
        make=_cli(lambda cli, _: cli.begin()),
        weight=6,
    ),
    Move(name="fold", ready=_in_run, make=_cli(SimulatedCLI.fold)),
    Move(name="finish", ready=_in_any_run, make=_cli(SimulatedCLI.finish), weight=4),
    Move(
        name="fail",
        ready=_in_any_run,
        make=_cli(lambda cli, choose: cli.finish(choose, failed=True)),
        weight=1,
    ),
    Move(name="start_agent", ready=_in_run, make=_start_agent, weight=4),
    Move(
        name="start_nested",
        ready=lambda w: bool(_workers(w, is_agent=True, background=True)),
        make=_start_nested,
        weight=1,
    ),
    Move(
        name="revive",
        ready=lambda w: _in_run(w) and bool(w.cli.revivable),
        make=_cli(lambda cli, choose: cli.revive(choose(cli.revivable))),
        weight=1,
    ),
    Move(
        name="to_background",
        ready=lambda w: bool(_workers(w, is_agent=True, background=False)),
        make=lambda w, choose: w.cli.move_to_background(
            choose(_workers(w, is_agent=True, background=False))
        ),
        weight=1,
    ),
    Move(
        name="end_agent",
        ready=lambda w: bool(_workers(w, is_agent=True)),
        make=lambda w, choose: w.cli.end_worker(choose(_workers(w, is_agent=True)), choose),
        weight=4,
    ),
    Move(
        name="report", ready=lambda w: bool(w.cli.late), make=_cli(lambda c, _: c.hand_in_report())
    ),
    Move(
        name="ask",
        ready=lambda w: bool(_workers(w, is_agent=True)),
        make=lambda w, choose: w.cli.ask(choose(_workers(w, is_agent=True))),
        weight=1,
    ),
    Move(
        name="answer",
        ready=lambda w: bool(w.cli.asking),
        make=lambda w, choose: w.cli.answer(choose(_asking(w))),
    ),
    Move(name="start_shell", ready=_in_run, make=_start_shell, weight=1),
    Move(
        name="end_shell",
        ready=lambda w: bool(_workers(w, is_agent=False)),
        make=lambda w, choose: w.cli.end_worker(choose(_workers(w, is_agent=False)), choose),
        weight=1,
    ),
    Move(
        name="speak",
        ready=_can_speak,
        make=lambda w, choose: w.cli.speak(choose(_workers(w, is_agent=False, background=True))),
        weight=1,
    ),
    Move(
        name="wake_up",
        # Nothing tells the result of a wake-up from that of a prompt without lifecycle.
        ready=lambda w: w.dialect.lifecycle,
        make=_cli(lambda cli, _: cli.wake_up()),
        weight=1,
    ),
)


# What makes the world go round, whatever else a walk has a taste for.
_ALWAYS: Final = {"to_host": 12, "to_cli": 6, "wait": 3, "prompt": 6, "take": 5, "begin": 5}


def walk(world: World, rng: Random, steps: int, *, only: Collection[str] = ()) -> None:
    """Play at random, with a random taste for each move, to the end.

    Args:
      world: Where.
      rng: What chooses.
      steps: How many moves.
      only: The names of the moves to play, beside those without which nothing happens.
    """
    taste = {move.name: move.weight * rng.choice([0, 1, 1, 3]) for move in MOVES}
    if only:
        taste = {name: 3 if name in only else 0 for name in taste}
    taste |= {"silence": rng.choice([0, 0, 0, 1]), "finish": 3, **_ALWAYS}
    for _ in range(steps):
        ready = [m for m in MOVES if taste[m.name] and m.ready(world)]
        move = rng.choices(ready, [taste[m.name] for m in ready])[0]
        move.make(world, rng.choice)
    if rng.choice([True, True, False]):
        world.settle_down(rng.choice)
    world.end(rng.choice)
