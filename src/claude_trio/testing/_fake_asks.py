"""What a fake CLI asks its host, and has not been answered yet."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, final

import attrs
import trio

from claude_trio._ndjson import object_or_empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from claude_trio.testing._fake_frames import Frames, Speaker

__all__ = ["Answer", "Asks", "Question"]


@final
@attrs.frozen(kw_only=True)
class Answer:
    """What the host has answered.

    Attributes:
      response: What it says; empty if it says nothing.
      error: Its error instead; None if there is none.
      closed: Whether there will be no answer, since stdin has ended.
    """

    response: Mapping[str, object] = attrs.field(factory=dict)
    error: str | None = None
    closed: bool = False


@final
class Question:
    """One request to the host."""

    def __init__(self, asks: Asks, id: str, subtype: str, speaker: Speaker) -> None:  # noqa: A002
        self.id, self.subtype, self.speaker = id, subtype, speaker
        self._asks = asks
        self._answered = trio.Event()
        self._answer = Answer()
        self._place = 0
        """How many questions were answered in front of it, at once."""

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return self._asks.holds(self)

    async def answer(self) -> Answer:
        """Wait for the answer."""
        await self._answered.wait()
        # Those that are answered at once go on in that order, whatever Trio's scheduler would
        # make of it: each a step behind the one in front.
        for _ in range(self._place):
            await trio.lowlevel.checkpoint()
        return self._answer

    def settle(self, answer: Answer, place: int) -> None:
        """Take an answer."""
        self._answer, self._place = answer, place
        self._answered.set()


@final
class Asks:
    """The questions that are open, oldest first."""

    def __init__(self, frames: Frames, tell_state: Callable[[], None]) -> None:
        self._frames, self._tell_state = frames, tell_state
        self._open: dict[str, Question] = {}
        self._closed = False
        self._settled = 0
        """How many were answered since all was heard."""

    @property
    def wants_action(self) -> bool:
        """Whether somebody has to decide on a permission."""
        return any(question.subtype == "can_use_tool" for question in self._open.values())

    def holds(self, question: Question) -> bool:
        """Whether a question is open."""
        return question.id in self._open

    def of(self, speaker: Speaker | None = None) -> list[Question]:
        """Give the open questions, or those of one speaker."""
        return [q for q in self._open.values() if speaker is None or q.speaker == speaker]

    def ask(self, speaker: Speaker, **request: object) -> Question:
        """Ask the host."""
        subtype = str(request["subtype"])
        question = Question(self, self._frames.new_uuid(), subtype, speaker)
        self._open[question.id] = question
        self._tell_state()
        if self._closed:
            # A question after the end of stdin is asked of nobody.
            self._take(question, Answer(closed=True))
        else:
            self._frames.ask(question.id, request)
        return question

    @contextlib.contextmanager
    def asking(self, speaker: Speaker, **request: object) -> Iterator[Question]:
        """Ask the host; a question that is open when the block is left is let go."""
        question = self.ask(speaker, **request)
        try:
            yield question
        finally:
            self._open.pop(question.id, None)

    def mention(self, **request: object) -> None:
        """Ask something whose answer nobody waits for."""
        self._frames.ask(self._frames.new_uuid(), request)

    def answered(self, envelope: Mapping[str, object]) -> bool:
        """Take what the host answers; one that nobody waits for changes nothing."""
        question = self._open.get(str(envelope.get("request_id")))
        if question is None:
            return False
        if envelope.get("subtype") == "success":
            self._take(question, Answer(response=object_or_empty(envelope.get("response"))))
        else:
            self._take(question, Answer(error=str(envelope.get("error"))))
        return True

    def withdraw(self, question: Question) -> None:
        """Take a question back."""
        if self._open.pop(question.id, None) is not None:
            self._frames.withdraw(question.id)

    def give_up(self, request_id: str) -> None:
        """Take a question back, and go on as if it had been refused."""
        question = self._open.get(request_id)
        if question is not None:
            self._frames.withdraw(request_id)
            self._take(question, Answer(error="the request was withdrawn"))

    def rest(self) -> None:
        """Take it that nothing more has been written at once."""
        self._settled = 0

    def close(self) -> None:
        """Take it that nobody answers any more."""
        self._closed = True
        for question in self.of():
            self._take(question, Answer(closed=True))

    def _take(self, question: Question, answer: Answer) -> None:
        del self._open[question.id]
        question.settle(answer, self._settled)
        self._settled += 1
        self._tell_state()
