"""Scripts of a fake CLI: rows of replies, functions, and conversations."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast, final

import attrs
import trio

from claude_trio.testing._replies import Reply, fail, say

if TYPE_CHECKING:
    from claude_trio.testing._fake import FakeClaude

__all__ = ["Conversation", "Exhausted", "FakeScript", "Model", "make_model", "says_done"]

# The CLI does not try a 402 again, and shows its text without words of its own.
_EXHAUSTED_STATUS: Final = 402
_SHOWN: Final = 200


class Model(Protocol):
    """What a conversation is held with."""

    async def reply(self, told: str) -> Reply:
        """Say what the model replies to what it is told."""
        ...

    def renew(self) -> None:
        """Take it that the user has said something new."""
        ...


@final
@attrs.define(eq=False)
class Conversation:
    """What an async script converses over: it is told something, and says something.

    It plays the model.  What it is told is a prompt, the result of a tool that it has called, or
    what the CLI has to say in between; what prompts have been folded into a turn comes with the
    result that they follow.

    Attributes:
      fake: The CLI between the model and the host, for what no model can do.
    """

    fake: FakeClaude
    _asked: trio.MemoryReceiveChannel[_Request]
    _current: _Request | None = attrs.field(default=None, init=False)

    async def receive(self) -> str:
        """Wait until the model is told something, and return that.

        What an interrupt has made worthless meanwhile is passed over.

        Cancellation:
          A checkpoint.
        """
        while (request := await self._asked.receive()).abandoned:
            pass
        self._current = request
        return request.told

    def send(self, reply: Reply) -> None:
        """Reply to what was received last; dropped if that was interrupted meanwhile.

        Raises:
          ValueError: if nothing has been received, or it has its reply already.
        """
        if self._current is None:
            raise ValueError("there is nothing to reply to: receive something first")
        request, self._current = self._current, None
        request.reply = reply
        request.replied.set()


_Converses: TypeAlias = Callable[[Conversation], Awaitable[None]]
FakeScript: TypeAlias = Sequence[Reply] | Callable[[str], Reply] | _Converses
"""The model's replies in a row, a function of what the model is told, or an async function."""


@final
@attrs.define(eq=False)
class _Request:
    told: str
    replied: trio.Event = attrs.field(factory=trio.Event, init=False)
    reply: Reply | None = attrs.field(default=None, init=False)
    abandoned: bool = attrs.field(default=False, init=False)


@final
class Exhausted:
    """What a script was told when it had nothing to say any more."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def reply(self, told: str) -> Reply:
        """Fail, and remember why."""
        self.told.append(told)
        return fail(_EXHAUSTED_STATUS, f"the script has no reply left for: {told[:_SHOWN]!r}")


@final
class _Row:
    """Replies one after the other; one that is ``always`` stays for its prompt."""

    def __init__(self, replies: Sequence[Reply], exhausted: Exhausted) -> None:
        for reply in replies:
            if not isinstance(reply, Reply):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"a script is made of replies, and {reply!r} is none")
        self._replies = iter(replies)
        self._exhausted = exhausted
        self._staying: Reply | None = None

    async def reply(self, told: str) -> Reply:
        await trio.lowlevel.checkpoint()
        if self._staying is not None:
            return self._staying
        taken = next(self._replies, None)
        if taken is None:
            return self._exhausted.reply(told)
        if taken.always:
            self._staying = taken
        return taken

    def renew(self) -> None:
        self._staying = None


@final
class _Function:
    def __init__(self, function: Callable[[str], Reply]) -> None:
        self._function = function

    async def reply(self, told: str) -> Reply:
        await trio.lowlevel.checkpoint()
        return self._function(told)

    def renew(self) -> None:
        pass


@final
class _Talker:
    """An async function that converses, and is exhausted when it returns."""

    def __init__(self, exhausted: Exhausted) -> None:
        self._exhausted = exhausted
        self._ask, self._asked = trio.open_memory_channel[_Request](math.inf)
        self._open: list[_Request] = []
        self._ended = False

    async def run(self, script: _Converses, fake: FakeClaude) -> None:
        await script(Conversation(fake, self._asked))
        self._ended = True
        for request in self._open:
            request.replied.set()

    async def reply(self, told: str) -> Reply:
        request = _Request(told)
        self._open.append(request)
        self._ask.send_nowait(request)
        try:
            if not self._ended:
                await request.replied.wait()
        finally:
            request.abandoned = True
            self._open.remove(request)
        return self._exhausted.reply(told) if request.reply is None else request.reply

    def renew(self) -> None:
        pass


def make_model(
    script: FakeScript, fake: FakeClaude, nursery: trio.Nursery, exhausted: Exhausted
) -> Model:
    """Make the model that a script describes; one that converses runs in the nursery."""
    if not callable(script):
        return _Row(script, exhausted)
    if _converses(script):
        talker = _Talker(exhausted)
        nursery.start_soon(talker.run, cast("_Converses", script), fake)
        return talker
    return _Function(cast("Callable[[str], Reply]", script))


def _converses(script: object) -> bool:
    return inspect.iscoroutinefunction(script) or inspect.iscoroutinefunction(
        getattr(script, "__call__", None)  # noqa: B004  An object may be called, and wait.
    )


def says_done(_told: str) -> Reply:
    """Be an agent that nobody has written a script for."""
    return say("Done.")
