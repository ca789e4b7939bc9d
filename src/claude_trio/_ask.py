"""The permission handler that asks somebody else and waits: `ask`."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import attrs
import trio

from claude_trio.permissions import Allow, Decision, Defer, Deny

if TYPE_CHECKING:
    from claude_trio.permissions import PermissionHandler, PermissionRequest

__all__ = ["Question", "ask"]


@final
@attrs.define(eq=False, repr=False)
class _Answer:
    settled: trio.Event = attrs.field(factory=trio.Event, init=False)
    decision: Decision | None = attrs.field(default=None, init=False)

    def settle(self, decision: Decision | None) -> bool:
        if self.settled.is_set():
            return False
        self.decision = decision
        self.settled.set()
        return True


@final
@attrs.frozen(eq=False)
class Question:
    """A permission request that waits for `reply`.

    Attributes:
      request: What is asked.
    """

    request: PermissionRequest
    _answer: _Answer = attrs.field(repr=False)

    @property
    def pending(self) -> bool:
        """Whether the request still waits for an answer."""
        return not self._answer.settled.is_set()

    def reply(self, decision: Decision) -> bool:
        """Answer the request, from a task of the same run.

        `DEFER` leaves it to `Session.answer_permission`.

        Returns:
          Whether this is the answer: false if there was one before, or if none is wanted any
          more.

        Raises:
          TypeError: if ``decision`` is no decision; the request still waits.
        """
        match decision:
            case Allow() | Deny() | Defer():
                return self._answer.settle(decision)
            case _:
                raise TypeError(f"expected Allow, Deny or DEFER, not {decision!r}")

    async def wait_settled(self) -> None:
        """Wait until no answer is wanted any more, to put a dialog away for example."""
        await self._answer.settled.wait()


def ask(channel: trio.abc.SendChannel[Question]) -> PermissionHandler:
    """Make a handler that sends each request to whoever reads a channel, and waits.

    Several questions can be open at the same time, and be answered in any order.  Whoever takes
    a question has to answer it: until then the tool waits, without a limit of its own.  When the
    request is withdrawn, because the turn is interrupted for example, the question is settled and
    a later answer does not count.  A closed channel denies.

    Args:
      channel: Where the questions go.  It is not closed by this.
    """

    async def handler(request: PermissionRequest, /) -> Decision:
        answer = _Answer()
        try:
            await channel.send(Question(request, answer))
            # A reply counts even if a cancellation follows it before this task runs again.
            if answer.decision is None:
                await answer.settled.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.lowlevel.checkpoint()
        finally:
            answer.settle(None)
        return answer.decision or Deny("Nobody is there to ask for permission.")

    return handler
