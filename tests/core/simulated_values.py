"""What a simulated CLI speaks and works with."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard, TypeVar

import attrs

from claude_trio._protocol._tasks import AGENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from claude_trio._protocol._gate import Gate, OwnTurn
    from claude_trio._protocol._ledger import Fate, Prompt

__all__ = [
    "BARE",
    "BEGIN_LAG",
    "CURRENT",
    "DIALECTS",
    "MUTE",
    "NAMED",
    "OLD",
    "REPORT_LAG",
    "TAKE_LAG",
    "Choose",
    "Dialect",
    "Frame",
    "Report",
    "Run",
    "Sent",
    "States",
    "TrueResult",
    "Waiting",
    "WakeUp",
    "Worker",
    "is_agents",
]

T = TypeVar("T")

NAMED: Final = 2
"""How many prompts a result names at most; the real CLI names 64."""
TAKE_LAG: Final = 0.5
"""What waits in the queue of a CLI at rest is taken up within this."""
BEGIN_LAG: Final = 0.2
"""A run that was taken up says so within this."""
REPORT_LAG: Final = 0.3
"""An old CLI lets this pass between an agent's end and its report."""


class Choose(Protocol):
    """Whoever plays: Hypothesis, or a random generator."""

    def __call__(self, options: Sequence[T], /) -> T: ...


class States(enum.Enum):
    HONEST = "idle means that nothing runs and nothing is owed"
    EAGER = "idle follows a result, also with a live agent"
    SILENT = "no state is reported"


@attrs.frozen(kw_only=True)
class Dialect:
    name: str
    states: States
    lifecycle: bool
    """Prompts are named in lifecycle and result; interrupts drop the queue, and may spare."""
    detailed: bool
    """Tasks have a run and a place, and there are snapshots of those in the background."""
    reports_at_once: bool
    """An agent's notification comes at its end, and not when the model takes it up."""


CURRENT: Final = Dialect(
    name="2.1.332", states=States.HONEST, lifecycle=True, detailed=True, reports_at_once=True
)
MUTE: Final = attrs.evolve(CURRENT, name="2.1.332, no state", states=States.SILENT)
OLD: Final = Dialect(
    name="2.1.197", states=States.EAGER, lifecycle=False, detailed=False, reports_at_once=False
)
BARE: Final = Dialect(
    name="bare", states=States.SILENT, lifecycle=False, detailed=False, reports_at_once=True
)
DIALECTS: Final = (CURRENT, MUTE, OLD, BARE)


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """One line of the CLI: what the gate is told of it, and the truth about a result."""

    label: str
    tell: Callable[[Gate, float], object]
    result: TrueResult | None = None
    """None for any frame that is no result."""


@attrs.frozen(kw_only=True, eq=False)
class TrueResult:
    """Whose a result truly is."""

    asked_by: frozenset[OwnTurn]
    """The turns whose prompts it answers."""
    reacts_for: frozenset[OwnTurn]
    """The turns whose agent caused its run."""
    nobodys: bool
    """Whether a shell, a monitor or a wake-up caused its run, and it answers nothing."""


@attrs.define(eq=False)
class Sent:
    """One prompt that the host wrote, and what truly becomes of it."""

    prompt: Prompt
    turn: OwnTurn
    fate: Fate | None = None
    result: int | None = None
    taken: bool = False
    """Whether a run has taken it up."""

    @property
    def uuid(self) -> str:
        assert self.prompt.uuid is not None
        return self.prompt.uuid


@attrs.define(eq=False)
class Worker:
    """One task."""

    id: str
    type: str
    run_id: str
    owners: frozenset[OwnTurn]
    background: bool
    parent: Worker | None = None
    announced: bool = False
    """Whether the host has heard of it."""

    @property
    def is_agent(self) -> bool:
        return self.type in AGENT_TYPES

    @property
    def reports(self) -> bool:
        """Whether its end is told to the model of the main conversation."""
        return self.background and self.parent is None


@attrs.define(eq=False)
class Report:
    """What a worker has said, until the model takes it up."""

    worker: Worker
    at: float
    told: bool
    """Whether the notification was sent."""


@attrs.define(eq=False)
class WakeUp:
    uuid: str
    at: float


@attrs.define(eq=False)
class Waiting:
    sent: Sent
    at: float


@attrs.define(eq=False)
class Run:
    taken_at: float
    prompts: list[Sent]
    reports: list[Report]
    wake_up: WakeUp | None
    owners: set[OwnTurn]
    folded: list[Sent] = attrs.field(factory=list)
    begun: bool = False
    aborted: bool = False
    cause: Report | None = None

    @property
    def asked_for(self) -> bool:
        """Whether a prompt opened it."""
        return self.cause is None and self.wake_up is None

    @property
    def reacts_for(self) -> set[OwnTurn]:
        """The turns whose agents it reacts to."""
        return {o for r in self.reports if r.worker.is_agent for o in r.worker.owners}


def is_agents(item: Waiting | Report | WakeUp) -> TypeGuard[Report]:
    return isinstance(item, Report) and item.worker.is_agent
