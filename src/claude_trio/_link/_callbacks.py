"""The CLI's requests, each answered by a task of its own.

One that raises, is cancelled or runs out of time is answered fail-closed, with an error: the CLI
denies the tool and goes on.  One that the CLI withdraws is cancelled and not answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

import attrs
import trio

from claude_trio import _scopes
from claude_trio._errors import CallbackError, LocalProtocolError

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Awaitable, Callable, Mapping

    from claude_trio._protocol._control import Incoming
    from claude_trio._protocol._gate import OwnTurn

__all__ = ["Callback", "Callbacks", "Handler"]

Handler: TypeAlias = "Callable[[Incoming], Awaitable[Mapping[str, object] | None]]"
"""Answers one kind of request; None leaves it open, to be answered later."""


@final
@attrs.define(eq=False, repr=False)
class Callback:
    """One request that is being handled."""

    request: Incoming
    turn: OwnTurn | None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    @property
    def of_agent(self) -> bool:
        """Whether a subagent waits for it."""
        return self.request.request.get("agent_id") is not None


@final
@attrs.define(eq=False, repr=False)
class Callbacks:
    """The callbacks that run."""

    nursery: trio.Nursery
    handlers: Mapping[str, Handler]
    answer: Callable[[str, Mapping[str, object]], object]
    refuse: Callable[[str, str], object]
    failed: Callable[[OwnTurn | None, CallbackError], None]
    _running: dict[str, Callback] = attrs.field(factory=dict, init=False)
    _tasks: set[trio.lowlevel.Task] = attrs.field(factory=set, init=False)

    def start(self, turn: OwnTurn | None, request: Incoming, context: contextvars.Context) -> None:
        """Handle a request in a task of its own, in the context of its turn."""
        callback = self._running[request.request_id] = Callback(request, turn)
        # The task gets a copy of it.
        context.run(self.nursery.start_soon, self._call, callback)

    def cancel(self, request_id: str) -> None:
        """Cancel one, if it runs."""
        callback = self._running.get(request_id)
        if callback is not None:
            callback.scope.cancel()

    def cancel_all(self, *, spare_agents: bool = False) -> None:
        """Cancel those that run; what subagents ask may be spared."""
        for callback in self._running.values():
            if not (spare_agents and callback.of_agent):
                callback.scope.cancel()

    def check_not_inside(self, what: str) -> None:
        """Raise if the current task is a callback, or was started by one."""
        if self._tasks and _scopes.inside(self._tasks):
            message = f"{what} from inside a callback would wait for the callback itself"
            raise LocalProtocolError(message)

    async def _call(self, callback: Callback) -> None:  # noqa: ASYNC910  A task of its own.
        request = callback.request
        task = trio.lowlevel.current_task()
        self._tasks.add(task)
        error = "no decision was made"
        response: Mapping[str, object] | None = None
        try:
            try:
                with callback.scope:
                    # It may have been withdrawn in the very read that brought it.
                    await trio.lowlevel.checkpoint_if_cancelled()
                    response = await self.handlers[request.subtype](request)
                    error = ""
                if not error and response is not None:
                    self.answer(request.request_id, response)
            # Outside of the scope: a group that mixes `Cancelled` with an error is split by then.
            except Exception as exc:  # noqa: BLE001  It is answered for, and surfaces in `failed`.
                error = f"the callback raised {type(exc).__name__}"
                self.failed(callback.turn, _callback_error(request.subtype, exc))
        finally:
            self._tasks.discard(task)
            del self._running[request.request_id]
            if error:
                self.refuse(request.request_id, error)


def _callback_error(subtype: str, exc: Exception) -> CallbackError:
    name = f"the handler of {subtype!r}"
    error = CallbackError(f"{name} raised {type(exc).__name__}: {exc}", callback=name)
    error.__cause__ = exc
    return error
