"""Compare-and-swap for input in the middle of a turn.

Whoever steers names the turn that it means by a token.  The token changes at each turn's start and
at each accepted steer, so of two that steer at once one wins, and the other learns that the turn
has moved on.  A client's own message id makes a retry harmless, for as long as the session lives.
"""

from __future__ import annotations

from typing import final

from claude_trio._values import frozen

__all__ = [
    "Accepted",
    "ClientMsgIdReuse",
    "Duplicate",
    "NoLiveTurn",
    "NoSteerChannel",
    "StaleTurn",
    "SteerOutcome",
    "SteerRef",
    "Steering",
]


@final
@frozen
class SteerRef:
    """Name one accepted steer."""

    token: int
    """The token that it was accepted with."""
    offset: int
    """Which accepted steer of the session it is, from 0."""
    client_msg_id: str | None = None


@final
@frozen
class Accepted:
    """The steer was taken; steer again with ``token``."""

    ref: SteerRef
    token: int


@final
@frozen
class Duplicate:
    """The same message was accepted before, as ``ref``; nothing was done."""

    ref: SteerRef


@final
@frozen
class StaleTurn:
    """The token is not that of the running turn; nothing was done."""

    expected: int
    actual: int


@final
@frozen
class NoLiveTurn:
    """No turn runs that could be steered; nothing was done."""


@final
@frozen
class ClientMsgIdReuse:
    """The message id was used for another text; nothing was done."""


@final
@frozen
class NoSteerChannel:
    """This session cannot be steered at all."""


SteerOutcome = Accepted | Duplicate | StaleTurn | NoLiveTurn | ClientMsgIdReuse | NoSteerChannel


@final
class Steering:
    """The steers of one session.  Nothing here waits, so each decision is one step.

    Attributes:
      wired: Whether there is a channel to the running turn at all.
      token: The token of the running turn; None if none can be steered.
    """

    def __init__(self, *, wired: bool = True) -> None:
        self.wired = wired
        self.token: int | None = None
        self._last_token = 0
        self._accepted = 0
        self._known: dict[str, tuple[str | None, SteerRef]] = {}

    def turn_started(self) -> int:
        """A turn begins that can be steered; return its token."""
        return self._next_token()

    def turn_ended(self) -> None:
        """The turn is over, or is being cancelled: it can be steered no more."""
        self.token = None

    def steer(
        self, text: str | None, *, expected_token: int, client_msg_id: str | None = None
    ) -> SteerOutcome:
        """Decide on a steer: dedup, then liveness, then compare, then accept."""
        if not self.wired:
            return NoSteerChannel()
        if client_msg_id is not None and client_msg_id in self._known:
            known_text, ref = self._known[client_msg_id]
            return Duplicate(ref) if known_text == text else ClientMsgIdReuse()
        if self.token is None:
            return NoLiveTurn()
        if expected_token != self.token:
            return StaleTurn(expected_token, self.token)
        ref = SteerRef(expected_token, self._accepted, client_msg_id)
        self._accepted += 1
        if client_msg_id is not None:
            self._known[client_msg_id] = (text, ref)
        return Accepted(ref, self._next_token())

    def _next_token(self) -> int:
        self._last_token += 1
        self.token = self._last_token
        return self._last_token
