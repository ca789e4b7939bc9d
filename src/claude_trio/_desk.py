"""The permission requests of one session: who decides on each, and which still wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, final

import attrs
import trio

from claude_trio.permissions import (
    Decision,
    Defer,
    Deny,
    PermissionHandler,
    PermissionRequest,
    to_response,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from claude_trio._protocol._control import Incoming

__all__ = ["Desk"]


@final
@attrs.define(eq=False, repr=False)
class Desk:
    """Ask the handler, keep what it defers, and take the answer that comes later."""

    handler: PermissionHandler
    patience: float
    """How long the handler may take, in seconds."""
    _pending: dict[str, PermissionRequest] = attrs.field(factory=dict, init=False)

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The requests that nobody has decided on, oldest first."""
        return tuple(self._pending.values())

    async def ask(self, incoming: Incoming) -> Mapping[str, object] | None:
        """Let the handler decide; None if it defers.

        Raises:
          TypeError: if it returns something else.
        """
        request = PermissionRequest.from_request(incoming.request_id, incoming.request)
        self._pending[request.id] = request
        deferred = False
        try:
            decision = await self._decision(request)
            deferred = isinstance(decision, Defer)
            return None if deferred else to_response(decision, request)
        finally:
            if not deferred:
                self.withdraw(request.id)

    async def _decision(self, request: PermissionRequest) -> Decision:
        if math.isinf(self.patience):  # No scope where there is no deadline.
            return await self.handler(request)
        with trio.move_on_after(self.patience):
            return await self.handler(request)
        return Deny("no decision was made in time")

    def decide(self, request_id: str, decision: Decision) -> Mapping[str, object] | None:
        """Take a decision from outside; None if nobody waits for it.

        Raises:
          ValueError: if it is `DEFER`; the request stays open.
          TypeError: if it is no decision; the request stays open.
        """
        if isinstance(decision, Defer):
            raise ValueError("a request that waits for its answer cannot be deferred again")
        request = self._pending.get(request_id)
        if request is None:
            return None
        response = to_response(decision, request)
        self.withdraw(request_id)
        return response

    def withdraw(self, request_id: str) -> None:
        """Nobody waits for this one any more."""
        self._pending.pop(request_id, None)

    def give_up(self, *, spare_agents: bool) -> list[str]:
        """Forget what is deferred, since its turn is being cancelled; return the ids."""
        ids = [r.id for r in self._pending.values() if not (spare_agents and r.agent_id)]
        for request_id in ids:
            self.withdraw(request_id)
        return ids
