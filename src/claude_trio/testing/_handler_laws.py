"""The laws of every handler that a user writes, whatever it decides on, and how they are tried.

A handler of one kind or another differs in what it is asked and in what counts as an answer; that
is a `Trial`.  The rest is the same for all: each trial is a scenario of `cancel_everywhere`, which
sees to the clock, to what goes round in circles and to what is left behind.
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import math
import reprlib
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

import attrs
import trio

from claude_trio._scopes import background_tasks
from claude_trio.testing._cancel import LawBroken, cancel_everywhere, cancel_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

__all__ = ["BadHandler", "HandlerLaw", "Trial"]

Request = TypeVar("Request")

_LONGEST: Final = 400


@enum.unique
class HandlerLaw(enum.Enum):
    """What a handler must do, whatever it decides."""

    DECIDES = "it answers with a decision that can be sent"
    IN_TIME = "it answers in time"
    TAKES_EVERYTHING = "it takes whatever it is asked"
    NO_GROUP = "it raises no exception group"
    TOGETHER = "it answers requests that are open at the same time"
    SURVIVES_CANCELLATION = "it survives a cancellation at any point"
    LEAVES_NOTHING = "it leaves nothing behind"


@final
class BadHandler(AssertionError):
    """Tell which law a handler breaks.

    ``__cause__`` is what the handler raised, or the `LawBroken` that says where it was cancelled.

    Attributes:
      law: The law.
      asked: What was odd about the request that it was asked, or which one it was.
      request: The request.
      reason: What the handler did.
    """

    def __init__(self, law: HandlerLaw, asked: str, request: object, reason: str) -> None:
        super().__init__(law, asked, request, reason)
        self.law = law
        self.asked = asked
        self.request = request
        self.reason = reason

    def __str__(self) -> str:
        shown = _short.repr(self.request)
        law = f"a handler breaks the law: {self.law.value}"
        return f"{law}\nasked for {self.asked}, {self.reason}\nthe request: {shown}"


def _is_some_time(_trial: object, _attribute: object, seconds: float) -> None:
    if not 0 < seconds < math.inf:
        raise ValueError(f"an answer may take some seconds, and not {seconds}")


@final
@attrs.define(eq=False, kw_only=True)
class Trial(Generic[Request]):
    """How handlers of one kind are tried.

    Attributes:
      handler: What is tried.
      judge: Raises if an answer to a request is none that can be sent.
      beside: Runs while the handler is asked.
      seconds: How long an answer may take, in virtual seconds.
    """

    handler: Callable[[Request], object]
    judge: Callable[[Request, object], object]
    beside: Callable[[], Awaitable[object]] | None
    seconds: float = attrs.field(validator=_is_some_time)
    _found: list[BadHandler] = attrs.field(factory=list, init=False)
    _finished: bool = attrs.field(default=False, init=False)

    def check(
        self, ordinary: Iterable[tuple[str, Request]], odd: Iterable[tuple[str, Request]]
    ) -> None:
        """Try all laws, the plainest first.

        Args:
          ordinary: Requests, each with words for what is asked.  The handler is cancelled at each
            step while it is asked them.
          odd: More of them, which it is only asked.

        Raises:
          BadHandler: if a law is broken.
        """
        ordinary = tuple(ordinary)
        everything = [*ordinary, *odd]
        try:
            self._try(everything, HandlerLaw.TAKES_EVERYTHING)
        except BadHandler:
            for each in everything:  # Alone, to tell which one it is.
                self._try([each], HandlerLaw.TAKES_EVERYTHING)
            raise
        # Twice: a handler may hold something for one kind of request.
        self._try([*ordinary, *ordinary], HandlerLaw.TOGETHER)
        for each in ordinary:
            self._try([each], HandlerLaw.SURVIVES_CANCELLATION)

    def _try(self, asked: list[tuple[str, Request]], law: HandlerLaw) -> None:
        async def scenario() -> None:
            self._found.clear()
            self._finished = False
            async with self._company():
                await self._cancelled_or_not(asked, law)
                await self._ask(asked, law)
            self._finished = True
            if self._found:
                raise self._found[0]

        try:
            # An answer that comes late is told by its own time.
            cancel_everywhere(scenario, seconds=(len(asked) + 1) * self.seconds + 1)
        except LawBroken as exc:
            if exc.__cause__ is not None and not self._found:
                raise  # What runs beside the handler is to blame.
            verdict = self._verdict(exc, asked[0], law)
            raise verdict from verdict.__cause__

    async def _cancelled_or_not(self, asked: list[tuple[str, Request]], law: HandlerLaw) -> None:
        """Do what is cancelled at each step: ask, if that is what is tried."""
        try:
            with cancel_here():
                # A handler need not wait for anything.  Before the second step a cancellation is
                # not heard here, so that it is the handler's first wait which is told.
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.cancel_shielded_checkpoint()
                if law is HandlerLaw.SURVIVES_CANCELLATION:
                    await self._ask(asked, law)
        except Exception as exc:  # noqa: BLE001  It came with the cancellation, in a group.
            self._note(asked[0], exc, law)
            await trio.lowlevel.checkpoint()

    async def _ask(self, asked: list[tuple[str, Request]], law: HandlerLaw) -> None:
        if law is not HandlerLaw.TOGETHER:
            for each in asked:
                await self._ask_one(each, law)
            return  # noqa: ASYNC910  There is something to ask.
        async with trio.open_nursery() as nursery:
            for each in asked:
                nursery.start_soon(self._ask_one, each, law)

    async def _ask_one(self, asked: tuple[str, Request], law: HandlerLaw) -> None:
        started = trio.current_time()
        try:
            answer = await self._answer(asked)
        except Exception as exc:  # noqa: BLE001  It is reported.
            self._note(asked, exc, law)
            await trio.lowlevel.checkpoint()
            return
        took = trio.current_time() - started
        if took > self.seconds:
            reason = f"it took {took:g} virtual seconds, and has {self.seconds:g}"
            self._blame(HandlerLaw.IN_TIME, asked, reason)
        try:
            self.judge(asked[1], answer)
        except (TypeError, ValueError) as exc:
            reason = f"it answered {_short.repr(answer)}: {exc}"
            self._blame(HandlerLaw.DECIDES, asked, reason, exc)

    async def _answer(self, asked: tuple[str, Request]) -> object:
        answer = self.handler(asked[1])
        if inspect.isawaitable(answer):
            return await answer
        await trio.lowlevel.checkpoint()
        self._blame(HandlerLaw.DECIDES, asked, "it answers at once, and is no async function")
        return answer

    def _note(self, asked: tuple[str, Request], exc: Exception, law: HandlerLaw) -> None:
        if isinstance(exc, BaseExceptionGroup):
            law = HandlerLaw.NO_GROUP
        self._blame(law, asked, f"it raised {type(exc).__name__}: {_short.repr(str(exc))}", exc)

    def _blame(
        self,
        law: HandlerLaw,
        asked: tuple[str, Request],
        reason: str,
        cause: Exception | None = None,
    ) -> None:
        self._found.append(BadHandler(law, *asked, reason))
        self._found[-1].__cause__ = cause

    def _verdict(
        self, broken: LawBroken, asked: tuple[str, Request], law: HandlerLaw
    ) -> BadHandler:
        if self._found:
            found = self._found[0]
            where = "" if broken.step is None else f"\n{broken}"
            verdict = BadHandler(found.law, found.asked, found.request, f"{found.reason}{where}")
            verdict.__cause__ = found.__cause__
            return verdict
        if law is not HandlerLaw.SURVIVES_CANCELLATION:
            law = HandlerLaw.LEAVES_NOTHING if self._finished else HandlerLaw.IN_TIME
        verdict = BadHandler(law, *asked, str(broken))
        verdict.__cause__ = broken
        return verdict

    @contextlib.asynccontextmanager
    async def _company(self) -> AsyncIterator[None]:
        async with background_tasks() as nursery:
            if self.beside is not None:
                nursery.start_soon(self.beside)
            yield


_short: Final = reprlib.Repr()
_short.maxother = _short.maxstring = _LONGEST
