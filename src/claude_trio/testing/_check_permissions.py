"""`check_permission_handler`: the laws of a handler that decides who may use a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from claude_trio._ndjson import encode
from claude_trio.permissions import Allow, Defer, Deny, to_response
from claude_trio.testing._handler_laws import Trial
from claude_trio.testing._odd_requests import odd_requests, ordinary_requests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from claude_trio.permissions import PermissionHandler, PermissionRequest

__all__ = ["check_permission_handler"]

_SECONDS: Final = 60.0


def check_permission_handler(
    handler: PermissionHandler,
    *,
    requests: Iterable[PermissionRequest] = (),
    beside: Callable[[], Awaitable[object]] | None = None,
    seconds: float = _SECONDS,
) -> None:
    """Check that a permission handler obeys its laws, whatever it decides.

    It is asked ordinary requests and the oddest that there can be: tools that nobody knows, inputs
    that are empty, huge or of any shape, fields that are missing.  The laws are those of
    `HandlerLaw`:

    - It answers each with `Allow`, `Deny` or `DEFER`; input and updates are such that JSON can hold
      them.
    - It answers within ``seconds``, and raises nothing; least of all an exception group.
    - It answers several requests that are open at the same time.
    - It may be cancelled at each step of an ordinary request: it ends, with nothing but the
      cancellation, and answers the next request.
    - It leaves no task, thread, descriptor or process behind.

    A `Policy` that has no opinion denies.  A function with opinions is checked as a policy:
    ``check_permission_handler(first_of(opinion))``.

    Args:
      handler: What ``on_permission`` takes.
      requests: More requests that it is asked, and cancelled in.
      beside: An async function that runs while the handler is asked, and is cancelled after each
        time: the person at the other end of an `ask`, for example.
      seconds: How long an answer may take, in virtual seconds.

    Raises:
      BadHandler: if it breaks a law; it says which, by which request, and how.
      ValueError: if ``seconds`` is not above zero, or not finite.
      RuntimeError: if it is called within a run of Trio: the test must be no async function.

    Concurrency:
      It runs on Trio's mock clock, and starts many runs.  To that clock a thread or a process takes
      no time at all: a handler that waits for one needs a fake of it here.
    """
    trial = Trial(handler=handler, judge=_judge, beside=beside, seconds=seconds)
    own = ((f"request {number} of yours", request) for number, request in enumerate(requests, 1))
    trial.check([*ordinary_requests(), *own], odd_requests())


def _judge(request: PermissionRequest, answer: object) -> None:
    match answer:
        case Defer():
            pass
        case Allow() | Deny():
            encode(to_response(answer, request))
        case _:
            raise TypeError("expected Allow, Deny or DEFER")
