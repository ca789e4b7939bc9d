"""Who waits for the answer to which request of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import attrs
import trio

from claude_trio._errors import ClaudeTrioError, RequestRefused, RequestTimedOut
from claude_trio._protocol._control import Answered, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

__all__ = ["Answers"]


@final
@attrs.define(eq=False, repr=False)
class _Waiter:
    answer: Answered | Refused | None = None
    done: trio.Event = attrs.field(factory=trio.Event, init=False)


@final
@attrs.define(eq=False, repr=False)
class Answers:
    """The tasks that wait for an answer of the CLI."""

    lost: Callable[[], ClaudeTrioError]
    """Makes the error of a waiter whose session ended."""
    _waiters: dict[str, _Waiter] = attrs.field(factory=dict, init=False)

    async def wait(
        self,
        request_id: str,
        subtype: str,
        seconds: float,
        given_up: Callable[[], None] | None,
    ) -> Mapping[str, object]:
        """Wait for the answer to a request that was just sent.

        Args:
          request_id: Its id.
          subtype: What was asked.
          seconds: How long to wait.
          given_up: Called if the wait ends without an answer while the session lives.

        Raises:
          RequestRefused: if the CLI answers with an error.
          RequestTimedOut: if it does not answer in time.
          ProcessExited: if it goes while we wait.
          SessionClosed: if the session is closed while we wait.
        """
        with _Registered(self._waiters, request_id, given_up) as waiter:
            with trio.move_on_after(seconds):
                await waiter.done.wait()
        match waiter.answer:
            case Answered(response=response):
                return response
            case Refused(error=error, error_code=code):
                raise RequestRefused(subtype, error, code)
            case None:
                if waiter.done.is_set():
                    raise self.lost()
                raise RequestTimedOut(subtype, seconds)

    def settle(self, answer: Answered | Refused) -> None:
        """Hand an answer to whoever waits for it."""
        waiter = self._waiters.get(answer.request_id)
        if waiter is not None:
            waiter.answer = answer
            waiter.done.set()

    def fail_all(self) -> None:
        """Wake everybody: the session has ended."""
        for waiter in self._waiters.values():
            waiter.done.set()


@final
@attrs.define(eq=False, repr=False)
class _Registered:
    waiters: dict[str, _Waiter]
    request_id: str
    given_up: Callable[[], None] | None

    def __enter__(self) -> _Waiter:
        waiter = self.waiters[self.request_id] = _Waiter()
        return waiter

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        waiter = self.waiters.pop(self.request_id)
        if self.given_up is not None and not waiter.done.is_set():
            self.given_up()
