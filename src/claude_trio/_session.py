"""A session: what it offers while it is open, and what it tells afterwards."""

from __future__ import annotations

import enum
import functools
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, final

import trio

from claude_trio._exit import ExitCause, ExitStatus
from claude_trio._flow import TurnFlow
from claude_trio._protocol._turns import State
from claude_trio._subscribers import Feed, Lag, Subscription, make_subscription
from claude_trio._turn import Turn, TurnBlock
from claude_trio._values import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from claude_trio._desk import Desk
    from claude_trio._link import Link
    from claude_trio._protocol._gate import OwnTurn
    from claude_trio._protocol._outcome import Spending
    from claude_trio.messages import Message, Result
    from claude_trio.permissions import Decision, PermissionRequest

__all__ = [
    "InterruptReceipt",
    "LiveTask",
    "PromptContent",
    "Session",
    "SessionState",
    "make_session",
]

PromptContent: TypeAlias = str | Sequence[Mapping[str, object]]
"""What a prompt says: text, or content blocks in the API's own shape."""


class SessionState(enum.Enum):
    """What a session is doing."""

    IDLE = "idle"
    """Nothing of ours; a prompt can be sent."""
    PROMPTING = "prompting"
    """A turn runs, or its background agents do."""
    CANCELLING = "cancelling"
    """A turn was cancelled and has not ended; a prompt would wait."""
    CLOSED = "closed"


@final
@frozen(kw_only=True)
class LiveTask:
    """Something that runs beside the conversation.

    Attributes:
      id: Its id.
      type: ``local_agent``, ``local_workflow``, ``local_bash`` and others.
      description: What it is for.
      backgrounded: Whether it runs in the background; None where the CLI does not say (2.1.197).
    """

    id: str
    type: str
    description: str
    backgrounded: bool | None


@final
@frozen(kw_only=True)
class InterruptReceipt:
    """What an interrupt did.

    Attributes:
      sent: Whether there was something to stop; if not, nothing was sent.
      cancelled: The uuids of prompts that were dropped before they began.
      still_queued: The uuids of prompts that the CLI goes on with all the same.
    """

    sent: bool
    cancelled: tuple[str, ...] = ()
    still_queued: tuple[str, ...] = ()


@final
class Session:
    """One CLI process, held open for many turns.

    There is one way to a session, `open_session`.  Its methods may be called from any task of
    the run that opened it, but not from a thread.
    """

    __slots__ = ("__weakref__", "_desk", "_link", "_spending")

    _link: Link
    _desk: Desk
    _spending: Spending

    def __init__(self) -> None:
        raise TypeError("a Session is opened by open_session(), not made")

    def __repr__(self) -> str:
        return f"<Session {self.session_id} {self.state.value}>"

    # -- turns

    async def prompt(
        self, content: PromptContent, *, check: bool = True, hold_open: bool = True
    ) -> Result:
        """Send a prompt, and wait until its turn is over.

        The turn is over when its result has come and nothing that it started still runs: no
        background agent, and no answer that the CLI owes to one's report.  After a cancelled
        turn, this waits for the CLI to end that one first.

        Args:
          content: What the user says.  Must not be empty.
          check: If false, an error result is returned instead of raised.
          hold_open: If false, the turn ends at its first result; what background agents bring
            later belongs to no turn.

        Returns:
          The last result of the turn; costs in US dollars, times in seconds.  The result of an
          interrupted turn says so in its ``outcome``.

        Raises:
          ValueError: if ``content`` is empty.
          TurnInFlight: if a turn is already running.
          TurnFailed: if the result is an error and ``check`` is true, or if the CLI dropped the
            prompt.
          CallbackError: if a callback raised.
          RemoteProtocolError: if a line was lost, which may have been the result.
          ProcessExited: if the CLI goes while we wait.
          SessionClosed: if the session is closed, or closes while we wait.

        Cancellation:
          A checkpoint.  If cancelled, the prompt was sent whole or not at all; a turn that it
          started is interrupted without waiting for the CLI, and the session stays usable.
        """
        flow = await self._begin(content, hold_open=hold_open, keeps=False)
        try:
            await flow.wait_over()
        except BaseException as exc:  # Whatever ends the wait ends the turn, and goes on as it is.
            flow.abandon(exc)
            raise
        return flow.outcome(check=check)

    def turn(
        self, content: PromptContent, *, check: bool = True, hold_open: bool = True
    ) -> AbstractAsyncContextManager[Turn]:
        """Send a prompt, and give its turn to read.

        Leaving the block by its end waits until the turn is over.  Leaving it by an exception or
        a cancellation interrupts the turn, waits for nothing, and lets the exception through as
        it is.

        Args:
          content: What the user says.  Must not be empty.
          check: If false, an error result is no error at the end of the block.
          hold_open: See `prompt`.

        Raises:
          ValueError: if ``content`` is empty.
          TurnInFlight: if a turn is already running.
          TurnFailed: at the end of the block, if the result is an error and ``check`` is true,
            or if the CLI dropped the prompt.
          Overflow: if nobody read and the buffer was full.
          CallbackError: if a callback raised.
          RemoteProtocolError: if a line was lost, which may have been the result.
          ProcessExited: if the CLI goes in mid-turn.
          SessionClosed: if the session is closed, or closes in mid-turn.

        Cancellation:
          Entering and leaving are checkpoints.  If entering is cancelled, nothing was sent.
        """
        begin = functools.partial(self._begin, content, hold_open=hold_open, keeps=True)
        return TurnBlock(begin, check)

    async def _begin(self, content: PromptContent, *, hold_open: bool, keeps: bool) -> TurnFlow:
        self._link.callbacks.check_not_inside("a turn")
        _check_content(content)
        prompt_id = str(uuid.uuid4())

        def make(own: OwnTurn) -> TurnFlow:
            return TurnFlow(prompt_id, own, self._link, self._spending, keeps)

        return await self._link.begin(content, prompt_id, make, hold_open=hold_open)

    async def interrupt(self, *, spare_agents: bool = False) -> InterruptReceipt:
        """Stop what runs: the turn, its background agents, or what the CLI does by itself.

        A turn that runs ends soon after, with a result whose outcome is ``INTERRUPTED``; this
        does not wait for it.  Background shells go on.

        Args:
          spare_agents: Leave background agents running; they no longer hold the turn.

        Returns:
          What it did.

        Raises:
          RequestRefused: if the CLI refuses.
          RequestTimedOut: if it does not answer in time.
          ProcessExited: if it goes while we wait.
          SessionClosed: if the session is closed, or closes while we wait.

        Cancellation:
          A checkpoint.  If cancelled, the interrupt was sent.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._link.check_open()
        request_id = self._link.interrupt(spare_agents=spare_agents)
        if request_id is None:
            await trio.lowlevel.checkpoint()
            return InterruptReceipt(sent=False)
        seconds = self._link.timeouts.control
        answer = await self._link.answer_to(request_id, "interrupt", seconds)
        return InterruptReceipt(
            sent=True,
            cancelled=_texts(answer.get("cancelled")),
            still_queued=_texts(answer.get("still_queued")),
        )

    # -- control

    async def set_model(self, model: str | None) -> str | None:
        """Choose the model of the turns to come; None is the CLI's default.

        Returns:
          The name of the model in force, where the CLI tells.

        Raises:
          RequestRefused: if there is no such model; the old one stays.
          RequestTimedOut: if the CLI does not answer in time.
          ProcessExited: if it goes while we wait.
          SessionClosed: if the session is closed, or closes while we wait.

        Cancellation:
          A checkpoint.  If cancelled, it may take effect all the same.
        """
        answer = await self._link.request("set_model", model=model)
        return _text(answer.get("model"))

    async def set_permission_mode(self, mode: str) -> str | None:
        """Choose what is asked: ``default``, ``acceptEdits``, ``plan``, ``dontAsk`` and others.

        Requests that are open go on waiting.

        Returns:
          The mode in force, where the CLI tells.

        Raises:
          RequestRefused: if there is no such mode, or it was not enabled at the start; 2.1.197
            takes any word.
          RequestTimedOut: if the CLI does not answer in time.
          ProcessExited: if it goes while we wait.
          SessionClosed: if the session is closed, or closes while we wait.

        Cancellation:
          A checkpoint.  If cancelled, it may take effect all the same.
        """
        answer = await self._link.request("set_permission_mode", mode=mode)
        return _text(answer.get("mode"))

    async def control(self, subtype: str, **fields: object) -> Mapping[str, object]:
        """Ask the CLI for something that this library has no name for.

        Args:
          subtype: What is asked.
          **fields: Its fields, as they go over the wire.

        Returns:
          The answer as it came; empty if there is nothing to say.

        Raises:
          ValueError: if the subtype is one that the session itself lives by.
          RequestRefused: if the CLI refuses, or does not know the subtype.
          RequestTimedOut: if it does not answer in time.
          ProcessExited: if it goes while we wait.
          SessionClosed: if the session is closed, or closes while we wait.

        Cancellation:
          A checkpoint.  If cancelled, the CLI is told that no answer is wanted.
        """
        if subtype in _OWN_SUBTYPES:
            raise ValueError(f"subtype: {subtype!r} is sent by the session itself")
        return await self._link.request(subtype, **fields)

    # -- events

    @asynccontextmanager
    async def subscribe(
        self, capacity: int = 256, *, lag: Lag = Lag.DROP_OLDEST
    ) -> AsyncIterator[Subscription]:
        """Listen to everything that comes, from now on and whatever turn it belongs to.

        Args:
          capacity: How many events are kept for this listener.
          lag: What happens when it does not keep up.

        Raises:
          ValueError: if ``capacity`` is less than one.
          SessionClosed: if the session is closed.
        """
        self._link.check_open()
        feed = Feed(capacity, lag)
        subscription = make_subscription(feed)
        self._link.subscribers.add(feed)
        try:
            yield subscription
        finally:
            self._link.subscribers.remove(feed)
            subscription.close()

    # -- permissions

    @property
    def pending_permissions(self) -> tuple[PermissionRequest, ...]:
        """The permission requests that nobody has decided on, oldest first."""
        return self._desk.pending

    def answer_permission(self, request_id: str, decision: Decision) -> bool:
        """Decide on a permission request that was deferred, or is still with the handler.

        Returns:
          Whether the CLI waited for it; if not, nothing is written.

        Raises:
          ValueError: if the decision is `DEFER`; the request stays open.
          TypeError: if it is no decision; the request stays open.
        """
        response = self._desk.decide(request_id, decision)
        if response is None or not self._link.answer(request_id, response):
            return False
        self._link.callbacks.cancel(request_id)
        return True

    # -- what it is

    @property
    def server_info(self) -> Mapping[str, object]:
        """What the CLI said of itself when it answered ``initialize``."""
        return self._link.server_info

    @property
    def session_id(self) -> str | None:
        """The id of the conversation; None after ``continue_`` until the first turn begins.

        It changes when the conversation is forked or cleared.
        """
        return self._link.connection.session_id

    @property
    def startup(self) -> tuple[Message, ...]:
        """The messages that came before the session was open."""
        return tuple(self._link.startup)

    @property
    def state(self) -> SessionState:
        """What the session is doing."""
        if self._link.close_requested.is_set():
            return SessionState.CLOSED
        return _STATES[self._link.state]

    @property
    def alive(self) -> bool:
        """Whether the session is neither closed nor closing."""
        return not self._link.close_requested.is_set()

    @property
    def tasks(self) -> tuple[LiveTask, ...]:
        """What runs beside the conversation: agents, workflows, background shells."""
        live = self._link.connection.gate.tasks.live
        return tuple(
            LiveTask(
                id=task.id,
                type=task.type,
                description=task.description,
                backgrounded=task.backgrounded,
            )
            for task in live.values()
        )

    @property
    def exit_status(self) -> ExitStatus:
        """How the session ended, or that it runs."""
        return self._link.status

    @property
    def diagnostics(self) -> tuple[bytes, ...]:
        """The last lines of the CLI's output that were no messages."""
        return tuple(self._link.connection.noise)

    async def wait_exit(self) -> ExitStatus:
        """Wait until the session has ended; any number of tasks may, and late ones too.

        Cancellation:
          A checkpoint; the session goes on.
        """
        self._link.callbacks.check_not_inside("wait_exit()")
        await self._link.closed.wait()
        return self._link.status

    async def wait_idle(self) -> None:
        """Wait until no turn of ours runs, the CLI is idle, and no agent lives.

        Background shells do not count.

        Raises:
          ProcessExited: if the CLI goes while we wait.
          SessionClosed: if the session is closed, or closes while we wait.

        Cancellation:
          A checkpoint; the session goes on.
        """
        self._link.callbacks.check_not_inside("wait_idle()")
        self._link.check_open()
        await trio.lowlevel.checkpoint()
        while True:
            if self._link.close_requested.is_set():
                raise self._link.lost_error()
            if self._link.state is State.IDLE and not self._link.connection.gate.busy:
                return
            await self._link.changed.park()

    async def aclose(self) -> None:
        """End the session, and wait until nothing of it is left; again does nothing.

        Cancellation:
          A checkpoint.  It closes all the same, and in bounded time: see `Timeouts`.
        """
        self._link.callbacks.check_not_inside("aclose()")
        self._link.request_close(ExitCause.CLOSED)
        with trio.CancelScope(shield=True):
            await self._link.closed.wait()
        await trio.lowlevel.checkpoint_if_cancelled()


def make_session(link: Link, desk: Desk, spending: Spending) -> Session:
    """Make the session of a CLI that was started; for `open_session` alone."""
    session: Session = object.__new__(Session)
    # What `__init__` would do if it were there for everybody.
    session._link, session._desk, session._spending = link, desk, spending  # noqa: SLF001
    return session


_STATES: Final = {
    State.IDLE: SessionState.IDLE,
    State.PROMPTING: SessionState.PROMPTING,
    State.HELD: SessionState.PROMPTING,
    State.CANCELLING: SessionState.CANCELLING,
    State.CLOSED: SessionState.CLOSED,
}


# They have a meaning for the session beyond their answer.
_OWN_SUBTYPES: Final = frozenset({"initialize", "interrupt"})


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _check_content(content: PromptContent) -> None:
    if isinstance(content, str):
        if not content.strip():
            raise ValueError("content: a prompt must say something")
    elif not content or not all(content):
        raise ValueError("content: a prompt is text, or a list of content blocks that is not empty")
