"""The turn machine: two enums and one table, for a Claude session and an ACP session alike.

The machine knows nothing of clocks, bytes or callers.  It says which move is legal; whoever makes
the move acts on the new state.  What depends on the order of arrival (was this cancel meant for
the turn that runs now, or for one before it?) is decided by the guards `prompt` and `cancel`
before the table is asked, so the table needs no flags.
"""

from __future__ import annotations

import enum
from typing import Final, final

from claude_trio._errors import LocalProtocolError, RemoteProtocolError

__all__ = ["TRANSITIONS", "Input", "State", "TurnMachine"]


class State(enum.Enum):
    """Where a session stands."""

    IDLE = "idle"
    """No turn of ours runs."""
    PROMPTING = "prompting"
    """A prompt was written, and its result has not come."""
    HELD = "held"
    """The result has come; only agents, or what they owe, hold the turn."""
    CANCELLING = "cancelling"
    """The turn was cancelled, and its end has not come."""
    CLOSED = "closed"
    """Nothing more happens."""


class Input(enum.Enum):
    """What can happen to a session."""

    PROMPT = "prompt"
    """A prompt is written."""
    PROMPT_LATCHED = "prompt latched"
    """A prompt whose cancel has overtaken it: it is never written."""
    STEER = "steer"
    """Input for the running turn is written."""
    CANCEL = "cancel"
    """Stop the running turn."""
    CANCEL_STALE = "cancel stale"
    """A cancel that was meant for an earlier turn."""
    RESULT = "result"
    """What was written is answered, and agents hold the turn."""
    TURN_OVER = "turn over"
    """Nothing that belongs to the turn can come any more."""
    CLOSE = "close"
    """The session ends."""


# Every legal move.  A pair that is not here is an error: add the pair or fix the caller, never
# catch it.  The documentation draws this table.
TRANSITIONS: Final[dict[tuple[State, Input], State]] = {
    (State.IDLE, Input.PROMPT): State.PROMPTING,
    (State.IDLE, Input.PROMPT_LATCHED): State.IDLE,
    (State.IDLE, Input.CANCEL): State.IDLE,
    (State.IDLE, Input.CANCEL_STALE): State.IDLE,
    (State.IDLE, Input.CLOSE): State.CLOSED,
    (State.PROMPTING, Input.STEER): State.PROMPTING,
    (State.PROMPTING, Input.CANCEL): State.CANCELLING,
    (State.PROMPTING, Input.CANCEL_STALE): State.PROMPTING,
    (State.PROMPTING, Input.RESULT): State.HELD,
    (State.PROMPTING, Input.TURN_OVER): State.IDLE,
    (State.PROMPTING, Input.CLOSE): State.CLOSED,
    # A steer owes a result again; a follow-up's result leaves the turn as it was.
    (State.HELD, Input.STEER): State.PROMPTING,
    (State.HELD, Input.CANCEL): State.CANCELLING,
    (State.HELD, Input.CANCEL_STALE): State.HELD,
    (State.HELD, Input.RESULT): State.HELD,
    (State.HELD, Input.TURN_OVER): State.IDLE,
    (State.HELD, Input.CLOSE): State.CLOSED,
    (State.CANCELLING, Input.CANCEL): State.CANCELLING,
    (State.CANCELLING, Input.CANCEL_STALE): State.CANCELLING,
    (State.CANCELLING, Input.RESULT): State.CANCELLING,
    (State.CANCELLING, Input.TURN_OVER): State.IDLE,
    (State.CANCELLING, Input.CLOSE): State.CLOSED,
    (State.CLOSED, Input.CANCEL): State.CLOSED,
    (State.CLOSED, Input.CANCEL_STALE): State.CLOSED,
    (State.CLOSED, Input.CLOSE): State.CLOSED,
}

_FROM_THE_CLI: Final = frozenset({Input.RESULT, Input.TURN_OVER})


@final
class TurnMachine:
    """The state of one session, and the guard that turns receive numbers into inputs.

    Receive numbers come from one counter in the order of arrival.  A cancel latches its number in
    every state; a prompt with a smaller number was cancelled before it was handled, and a cancel
    with a smaller number than the running prompt's was meant for a turn before it.
    """

    def __init__(self, state: State = State.IDLE) -> None:
        self.state = state
        self._last_cancel = -1
        self._prompted_at = -1

    def prompt(self, number: int) -> State:
        """Take in a prompt; the state stays `IDLE` if its cancel has overtaken it.

        Raises:
          LocalProtocolError: if a turn runs, or the session is closed.
        """
        if number < self._last_cancel:
            return self.handle(Input.PROMPT_LATCHED)
        state = self.handle(Input.PROMPT)
        self._prompted_at = number
        return state

    def cancel(self, number: int) -> State:
        """Take in a cancel, in any state."""
        self._last_cancel = max(self._last_cancel, number)
        stale = number < self._prompted_at
        return self.handle(Input.CANCEL_STALE if stale else Input.CANCEL)

    def handle(self, what: Input) -> State:
        """Make a move, and return the new state.

        Raises:
          LocalProtocolError: if the move is not in the table and was ours to make.
          RemoteProtocolError: if it is not in the table and the peer made it.
        """
        try:
            self.state = TRANSITIONS[self.state, what]
        except KeyError:
            text = f"{what.value!r} is impossible while {self.state.value}"
            if what in _FROM_THE_CLI:
                raise RemoteProtocolError(text) from None
            raise LocalProtocolError(text) from None
        return self.state
