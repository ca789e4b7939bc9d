"""Which result answers which prompt.

The CLI does not give one result per prompt.  It merges prompts that wait, folds one that comes
while a tool runs into the running turn, drops one that was cancelled before it began, and starts
turns that nobody asked for.  A *run* here is one turn of the CLI, from ``system/init`` to
``result``.

A current CLI names the prompts that a result answers (``user_message_uuids``) and tells what
becomes of each (``command_lifecycle``); then the ledger only follows.  An older one says neither
(2.1.197), and order decides: prompts are taken oldest first, so the result of a run answers the
oldest that waits.  A prompt that was written while a run went on may have been folded into it or
may wait for the next run; the ledger then waits for what comes, and marks what nothing decides.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Final, final

from claude_trio._values import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Fate", "Ledger", "Prompt", "RunResult", "Standing"]


class Standing(enum.Enum):
    """How far a prompt has come, as far as the CLI has told."""

    WRITTEN = "written"
    QUEUED = "queued"
    STARTED = "started"
    ENDED = "ended"
    """Its lifecycle is over; the result that answers it is still to come."""


class Fate(enum.Enum):
    """What became of a prompt; each has exactly one."""

    ANSWERED = "answered"
    """By a result, also by that of an interrupted turn."""
    WITHDRAWN = "withdrawn"
    """Cancelled before it began: no result, ever."""
    DISCARDED = "discarded"
    """The CLI was told to end the session first."""
    REFUSED = "refused"
    """Declined by a policy."""
    REPEATED = "repeated"
    """Its uuid was used before, so the CLI dropped it without a word."""
    LOST = "lost"
    """The CLI went away first."""


@final
class Prompt:
    """One prompt or steer that was written.

    Attributes:
      ordinal: Which one it is, from 0.
      uuid: Its id, if it has one.
      standing: How far it has come.
      fate: What became of it.
      result: The ordinal of the result that answers it.
      certain: False if nothing that came decides which result that is.
      maybe: The ordinal of the last result that came while it may have been part of that run.
      results_before: How many results had come when it started.
    """

    __slots__ = (
        *("certain", "fate", "maybe", "ordinal", "result", "results_before", "standing", "uuid"),
        "__weakref__",
    )

    def __init__(self, ordinal: int, uuid: str | None) -> None:
        self.ordinal = ordinal
        self.uuid = uuid
        self.standing = Standing.WRITTEN
        self.fate: Fate | None = None
        self.result: int | None = None
        self.certain = True
        self.maybe: int | None = None
        self.results_before = 0


@final
class RunResult(Record):
    """One result as the ledger sees it."""

    __slots__ = ("ordinal", "unsolicited")

    def __init__(self, *, ordinal: int, unsolicited: bool) -> None:
        self.ordinal = ordinal
        self.unsolicited = unsolicited


@final
class _Run(Record):
    __slots__ = ("newest", "scheduled")

    def __init__(self, newest: int, *, scheduled: bool) -> None:
        self.newest = newest  # The ordinal of the newest prompt that was written when it began.
        self.scheduled = scheduled


_TERMINAL: Final = {
    "discarded": Fate.DISCARDED,
    "refused": Fate.REFUSED,
}


@final
class Ledger:
    """The prompts of one CLI process, and what became of each.

    Times are inputs, in seconds on any clock.

    Attributes:
      quiet: How long after a result nothing may begin before folding is taken as decided.
      prompts: All of them, by their ordinals.
      results: How many results have come.
      last_result_at: When the last one came.
      run: The run that goes on.
      state: The session state that the CLI reported last; None if it never has.
      speaks_lifecycle: Whether it tells what becomes of prompts.
    """

    def __init__(self, quiet: float) -> None:
        self.quiet = quiet
        self.prompts: list[Prompt] = []
        self.results = 0
        self.last_result_at = -math.inf
        self.run: _Run | None = None
        self.state: str | None = None
        self.speaks_lifecycle = False
        self._open: list[Prompt] = []
        self._by_uuid: dict[str, Prompt] = {}
        self._scheduled = False

    @property
    def outstanding(self) -> Sequence[Prompt]:
        """The prompts that have no fate yet, oldest first."""
        return self._open

    def write(self, uuid: str | None) -> Prompt:
        """Enter a prompt that goes to the CLI."""
        prompt = Prompt(len(self.prompts), uuid)
        self.prompts.append(prompt)
        if uuid is not None and uuid in self._by_uuid:
            prompt.fate = Fate.REPEATED
            return prompt
        if uuid is not None:
            self._by_uuid[uuid] = prompt
        self._open.append(prompt)
        return prompt

    def init(self) -> None:
        """A run begins."""
        self.run = _Run(len(self.prompts) - 1, scheduled=self._scheduled)
        self._scheduled = False

    def lifecycle(self, uuid: str, state: str, *, scheduled: bool = False) -> None:
        """The CLI tells how far a prompt has come."""
        self.speaks_lifecycle = True
        prompt = self._by_uuid.get(uuid)
        if prompt is None:
            self._scheduled = self._scheduled or (scheduled and state == "started")
            return
        if prompt.fate is not None:
            return
        prompt.maybe = None  # Had it been part of a run, this would have come before its result.
        if state == "queued":
            prompt.standing = Standing.QUEUED
        elif state == "started":
            prompt.standing = Standing.STARTED
            prompt.results_before = self.results
        elif state in _TERMINAL:
            self._settle(prompt, _TERMINAL[state])
        elif state in {"completed", "cancelled"}:
            self._lifecycle_over(prompt, cancelled=state == "cancelled")

    def _lifecycle_over(self, prompt: Prompt, *, cancelled: bool) -> None:
        if prompt.standing is not Standing.STARTED:
            self._settle(prompt, Fate.WITHDRAWN if cancelled else Fate.REPEATED)
        elif self.results > prompt.results_before:
            # A result names 64 prompts at most; the rest are told by their end alone.
            self._settle(prompt, Fate.ANSWERED, self.results - 1)
        else:
            prompt.standing = Standing.ENDED

    def withdrawn(self, uuids: Sequence[str]) -> None:
        """An interrupt's answer names prompts that it dropped before they began."""
        for uuid in uuids:
            prompt = self._by_uuid.get(uuid)
            if prompt is not None and prompt.fate is None:
                self._settle(prompt, Fate.WITHDRAWN)

    def result(
        self,
        now: float,
        *,
        uuids: Sequence[str] = (),
        origin: str | None = None,
    ) -> RunResult:
        """A result ends the run; say what it answers.

        Args:
          now: The time.
          uuids: The prompts that it names.
          origin: The kind of its origin, where it has one.
        """
        run, self.run = self.run, None
        self._scheduled = False  # If a wake-up was folded into this run.
        ordinal, self.results = self.results, self.results + 1
        self.last_result_at = now
        if uuids:
            answered = self._named(uuids)
        elif origin not in {None, "human"} or (run is not None and run.scheduled):
            answered = []
            self._may_be_folded(self._untold(), ordinal)
        else:
            answered = self._by_order(run, ordinal)
        for prompt in answered:
            self._settle(prompt, Fate.ANSWERED, ordinal, certain=prompt.certain)
        return RunResult(ordinal=ordinal, unsolicited=not answered)

    def _named(self, uuids: Sequence[str]) -> list[Prompt]:
        named = {p.ordinal for uuid in uuids if (p := self._by_uuid.get(uuid)) is not None}
        newest = max(named, default=-1)
        # Prompts are taken oldest first: one without a uuid that is older than a named one
        # has been taken as well.
        return [
            p
            for p in self._open
            if p.ordinal in named
            or p.standing is Standing.ENDED
            or (p.uuid is None and p.ordinal < newest)
        ]

    def _untold(self) -> list[Prompt]:
        # The prompts of which the CLI says nothing until their result comes.
        return [
            p
            for p in self._open
            if p.standing is Standing.WRITTEN and (p.uuid is None or not self.speaks_lifecycle)
        ]

    def _by_order(self, run: _Run | None, ordinal: int) -> list[Prompt]:
        answered = [
            p for p in self._open if p.standing is Standing.STARTED or p.standing is Standing.ENDED
        ]
        untold = self._untold()
        if untold and not answered and (run is None or untold[0].ordinal <= run.newest):
            first = untold.pop(0)
            # If a result came before, it may have been folded into that run, and this result
            # be the answer to one behind it.
            first.certain = first.maybe is None or not untold
            answered = [first]
        self._may_be_folded(untold, ordinal)
        return answered

    def _may_be_folded(self, prompts: Sequence[Prompt], ordinal: int) -> None:
        for prompt in prompts:
            prompt.maybe = ordinal

    def session_state(self, state: str) -> None:
        """The CLI reports its state."""
        self.state = state
        if state != "idle":
            return
        self.run = None
        for prompt in list(self._open):
            # Its lifecycle is over, and no result has come or will: it was aborted at its start.
            if prompt.standing is Standing.ENDED:
                self._settle(prompt, Fate.WITHDRAWN)

    @property
    def idle(self) -> bool | None:
        """Whether the CLI says that nothing runs or is owed; None if it does not say."""
        return None if self.state is None else self.state == "idle"

    def deadline(self) -> float:
        """When `tick` has something to decide; infinity if nothing waits."""
        at_rest = self.run is None and self.idle is not False
        if at_rest and any(p.maybe is not None for p in self._open):
            return self.last_result_at + self.quiet
        return math.inf

    def tick(self, now: float) -> None:
        """Decide what only the passing of time decides."""
        if now >= self.deadline():
            for prompt in [p for p in self._open if p.maybe is not None]:
                self._settle(prompt, Fate.ANSWERED, prompt.maybe, certain=False)

    def eof(self) -> None:
        """Nothing more comes."""
        self.run = None
        for prompt in list(self._open):
            if prompt.maybe is not None:
                self._settle(prompt, Fate.ANSWERED, prompt.maybe, certain=False)
            else:
                self._settle(prompt, Fate.LOST)

    def _settle(
        self, prompt: Prompt, fate: Fate, result: int | None = None, *, certain: bool = True
    ) -> None:
        prompt.fate, prompt.result, prompt.certain = fate, result, certain
        self._open.remove(prompt)
