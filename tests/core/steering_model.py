"""Steering against a model that keeps the history and looks up in it what must happen."""

from __future__ import annotations

from typing import Final

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from claude_trio._protocol._steering import (
    Accepted,
    ClientMsgIdReuse,
    Duplicate,
    NoLiveTurn,
    NoSteerChannel,
    StaleTurn,
    Steering,
    SteerOutcome,
    SteerRef,
)

__all__ = ["SteeringAgainstItsModel"]

NO_TURN: Final = 0
"""A token that no turn ever has."""

texts = st.sampled_from(["go left", "go right", "", None])
message_ids = st.sampled_from([None, None, "m1", "m2", ""])
back = st.integers(0, 4)
"""Which token the caller presents: the last one, the one before, and so on."""


@attrs.frozen
class _Entry:
    """One accepted steer, as a journal would keep it."""

    message_id: str | None
    text: str | None
    ref: SteerRef


class SteeringAgainstItsModel(RuleBasedStateMachine):
    @initialize(wired=st.sampled_from([True, True, True, False]))
    def begin(self, *, wired: bool) -> None:
        self.steering = Steering(wired=wired)
        self.wired = wired
        self.live = False
        self.tokens = [NO_TURN]
        self.journal: list[_Entry] = []

    def _new(self, token: int) -> None:
        assert token > max(self.tokens), "a token is never used twice"
        self.tokens.append(token)

    @precondition(lambda self: not self.live)
    @rule()
    def turn_starts(self) -> None:
        self._new(self.steering.turn_started())
        self.live = True

    @rule()
    def turn_ends_or_is_cancelled(self) -> None:
        self.steering.turn_ended()
        self.live = False

    @rule(text=texts, message_id=message_ids, back=back)
    def steer(self, text: str | None, message_id: str | None, back: int) -> None:
        token = self.tokens[max(len(self.tokens) - 1 - back, 0)]
        self._steer(text, message_id, token)

    @rule(text=texts, message_id=message_ids)
    def steer_with_a_token_to_come(self, text: str | None, message_id: str | None) -> None:
        self._steer(text, message_id, self.tokens[-1] + 1)

    @precondition(lambda self: self.journal)
    @rule(data=st.data(), same_token=st.booleans())
    def deliver_again(self, data: st.DataObject, *, same_token: bool) -> None:
        entry = data.draw(st.sampled_from(self.journal))
        token = entry.ref.token if same_token else self.tokens[-1]
        self._steer(entry.text, entry.message_id, token)

    @precondition(lambda self: self.live)
    @rule(text=texts)
    def two_steer_at_once(self, text: str | None) -> None:
        token = self.tokens[-1]
        outcomes = [self._steer(text, None, token), self._steer(text, None, token)]
        won = [outcome for outcome in outcomes if isinstance(outcome, Accepted)]
        assert len(won) == (1 if self.wired else 0)

    def _steer(self, text: str | None, message_id: str | None, token: int) -> SteerOutcome:
        expected = self._expected(text, message_id, token)
        outcome = self.steering.steer(text, expected_token=token, client_msg_id=message_id)
        if expected is None:
            assert isinstance(outcome, Accepted)
            assert outcome.ref == SteerRef(token, len(self.journal), message_id)
            self._new(outcome.token)
            self.journal.append(_Entry(message_id, text, outcome.ref))
        else:
            assert outcome == expected
        return outcome

    def _expected(
        self, text: str | None, message_id: str | None, token: int
    ) -> SteerOutcome | None:
        """Say what must come out; None if the steer must be accepted."""
        if not self.wired:
            return NoSteerChannel()
        known = [e for e in self.journal if e.message_id is not None]
        for entry in known:
            if entry.message_id == message_id:
                return Duplicate(entry.ref) if entry.text == text else ClientMsgIdReuse()
        if not self.live:
            return NoLiveTurn()
        if token != self.tokens[-1]:
            return StaleTurn(expected=token, actual=self.tokens[-1])
        return None

    @invariant()
    def the_token_is_that_of_the_live_turn(self) -> None:
        assert self.steering.token == (self.tokens[-1] if self.live else None)

    @invariant()
    def no_message_is_accepted_twice(self) -> None:
        named = [entry.message_id for entry in self.journal if entry.message_id is not None]
        assert len(named) == len(set(named))
