"""What is due at a time, apart from what the protocol waits for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, final

import attrs
import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Alarms"]


@final
@attrs.define(eq=False, repr=False)
class Alarms:
    """The deadlines of a session that its keeper watches."""

    poked: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Set when the keeper has to look again at what is due."""
    set_for: float = attrs.field(default=math.inf, init=False)
    """When the keeper wakes by itself."""
    backstop_at: float = attrs.field(default=math.inf, init=False)
    """When a cancelled turn that has not ended ends the session."""
    _graces: list[tuple[float, Callable[[], None]]] = attrs.field(factory=list, init=False)

    @property
    def due_at(self) -> float:
        """When the next one is due."""
        if not self._graces:
            return self.backstop_at  # It is asked at every read.
        return min([self.backstop_at, *[at for at, _ in self._graces]])

    def add_grace(self, at: float, end: Callable[[], None]) -> None:
        """Let the tasks of a cancelled turn wind down by themselves until then."""
        self._graces.append((at, end))
        self.poked.set()

    def ring(self, now: float) -> None:
        """End the graces that are over."""
        over = [end for at, end in self._graces if at <= now]
        self._graces = [(at, end) for at, end in self._graces if at > now]
        for end in over:
            end()

    def end_graces(self) -> None:
        """End all of them: the session has ended."""
        self.ring(math.inf)
