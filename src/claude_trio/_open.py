"""How a session is opened and left."""

from __future__ import annotations

import functools
import uuid
import warnings
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, final

import trio

from claude_trio import _machine, _scopes
from claude_trio._desk import Desk
from claude_trio._errors import (
    ClaudeTrioError,
    LaunchFailed,
    ProcessExited,
    RequestRefused,
    RequestTimedOut,
    SessionClosed,
)
from claude_trio._exit import ExitCause
from claude_trio._link import Link
from claude_trio._link._keeper import keep
from claude_trio._options import (
    Limits,
    SessionOptions,
    Timeouts,
    to_command_line,
    to_environment,
    warnings_for,
)
from claude_trio._process import spawn
from claude_trio._protocol._connection import Connection
from claude_trio._protocol._outcome import Spending
from claude_trio._session import Session, make_session
from claude_trio.permissions import PermissionHandler, deny_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from claude_trio._transport import Launcher, Transport

__all__ = ["open_session"]


@asynccontextmanager
async def open_session(
    nursery: trio.Nursery | None = None,
    options: SessionOptions | None = None,
    *,
    on_permission: PermissionHandler = deny_all,
    timeouts: Timeouts = Timeouts(),
    limits: Limits = Limits(),
    launch: Launcher = spawn,
) -> AsyncIterator[Session]:
    """Start a CLI and hold it open; the one way to a `Session`.

    Entering returns when the CLI has answered ``initialize``.  Leaving the block, in whatever
    way, ends the CLI and everything that it started, in bounded time.  The block's own exception
    leaves as it is.

    Args:
      nursery: Where the session's tasks live; without one, it opens its own.
      options: How the CLI is started.
      on_permission: Decides on the use of tools; without one, every request is denied.
      timeouts: The deadlines that are ours.
      limits: The bounds of the buffers.
      launch: Starts the CLI: a process, or a fake.

    Raises:
      ValueError: if an option cannot be used.
      CLINotFound: if there is no CLI.
      LaunchFailed: if it does not start, or does not answer; with its own words.
      CallbackError: at the end of the block, if a callback raised outside of a turn.

    Cancellation:
      Entering and leaving are checkpoints.  If entering is cancelled, the CLI is ended before it
      returns.
    """
    if nursery is None:
        async with (
            _scopes.PlainNursery() as own,
            open_session(
                own,
                options,
                on_permission=on_permission,
                timeouts=timeouts,
                limits=limits,
                launch=launch,
            ) as session,
        ):
            yield session
        return
    plan = _Plan(options or SessionOptions(), on_permission, timeouts, limits)
    if launch is spawn:
        launch = functools.partial(spawn, stderr_tail=limits.stderr_tail)
    async with _machine.written(plan.arguments) as arguments:
        transport = await launch(
            (*plan.program, *arguments), plan.environment, plan.options.cwd, nursery
        )
        opening = _Opening(plan, transport, nursery)
        try:
            yield await opening.handshake()
        finally:
            await opening.close()  # noqa: ASYNC102  It shields itself, and the ladder bounds it.
    error = opening.link.error
    if opening.link.cause is ExitCause.CALLBACK and error is not None:
        raise error


@final
class _Plan:
    """What is started, and with which settings."""

    def __init__(
        self,
        options: SessionOptions,
        on_permission: PermissionHandler,
        timeouts: Timeouts,
        limits: Limits,
    ) -> None:
        self.options, self.timeouts, self.limits = options, timeouts, limits
        self.on_permission = on_permission
        self.session_id = _session_id(options)
        command_line = to_command_line(options, session_id=self.session_id)
        self.program = tuple(options.command or ("claude",))
        self.arguments = command_line.args
        self.initialize = command_line.initialize
        self.environment = to_environment(options, _machine.environment(), run=str(uuid.uuid4()))
        for text in warnings_for(options) if on_permission is not deny_all else ():
            warnings.warn(text, stacklevel=6)


def _session_id(options: SessionOptions) -> str | None:
    """Say which id the session will have; None if only the CLI knows."""
    if options.session_id is not None:
        return options.session_id
    if options.fork_session or not (options.resume is not None or options.continue_):
        return str(uuid.uuid4())
    # What is resumed may be named by its title.
    return options.resume if options.resume and _is_uuid(options.resume) else None


def _runs_servers(options: SessionOptions) -> bool:
    """Whether the options name programs, such as MCP servers, that run without a prompt."""
    return any(
        (
            options.mcp_servers,
            options.mcp_config,
            options.settings,
            options.plugin_dirs,
            options.plugin_urls,
        )
    )


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


@final
class _Opening:
    """A CLI that was started: its tasks, the handshake, and its end."""

    def __init__(self, plan: _Plan, transport: Transport, nursery: trio.Nursery) -> None:
        self.plan = plan
        self.desk = Desk(plan.on_permission, plan.timeouts.permission)
        connection = Connection.make(
            limit=plan.limits.frame,
            follow_up=plan.timeouts.follow_up,
            settle=plan.timeouts.settle,
            requests={"can_use_tool"},
            session_id=plan.session_id,
        )
        self.link = Link(
            nursery,
            connection,
            transport,
            plan.timeouts,
            plan.limits,
            {"can_use_tool": self.desk.ask},
            self.desk.withdraw,
            plan.options.keep_daemons,
            self._deny_deferred,
            runs_servers=_runs_servers(plan.options),
        )
        # The nursery may be cancelled while the body sits elsewhere, and cannot hear of it.
        self.foreign = not _scopes.encloses(nursery)
        resumed = plan.options.resume is not None or plan.options.continue_
        self.session = make_session(self.link, self.desk, Spending(resumed=resumed))
        self.running = 0
        self.gone = trio.Event()
        self.reading = trio.CancelScope(shield=True)
        self.watching = trio.CancelScope(shield=True)

    def _deny_deferred(self, spare_agents: bool) -> None:  # noqa: FBT001  It is a callback.
        for request_id in self.desk.give_up(spare_agents=spare_agents):
            self.link.refuse(request_id, "the turn was interrupted")

    async def handshake(self) -> Session:
        """Start the tasks, and wait until the CLI has answered ``initialize``."""
        link, nursery = self.link, self.link.nursery
        # A nursery around this task cannot be cancelled without this task's hearing of it.
        canary = (self._canary,) if self.foreign else ()
        for work in (self._keep, self._read, self._watch, *canary):
            nursery.start_soon(self._run, work, name=work)
            self.running += 1
        try:
            info = await link.request("initialize", **self.plan.initialize)
        except (ProcessExited, SessionClosed, RequestRefused, RequestTimedOut) as exc:
            await self.close()  # noqa: ASYNC120  It shields itself.
            raise self._launch_failed(exc) from exc
        link.server_info, link.opened = info, True
        return self.session

    def _launch_failed(self, exc: ClaudeTrioError) -> ClaudeTrioError:
        status = self.link.status
        said: object = exc.args[0]
        match self.link.error:
            case LaunchFailed() as error:
                said = error.args[0]
            case ProcessExited() as error:
                said = f"{error.args[0]} before it answered 'initialize'"
            case _ if isinstance(exc, SessionClosed):
                return exc
            case _:
                pass
        return LaunchFailed(
            str(said),
            returncode=status.returncode,
            stderr_tail=status.stderr_tail,
            last_frames=status.last_frames,
        )

    async def close(self) -> None:
        """End the session, and wait until nothing of it is left."""
        self.link.request_close(ExitCause.CLOSED)
        with trio.CancelScope(shield=True):
            if not self.running and not self.gone.is_set():
                await self._keep()  # The nursery took no task.
                self.gone.set()
            await self.gone.wait()

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self.running -= 1
            if not self.running:
                self.gone.set()

    async def _keep(self) -> None:
        with trio.CancelScope(shield=True):
            try:
                await keep(self.link)
            finally:
                self.link.settle()
                self.reading.cancel()
                self.watching.cancel()
                self.link.closed.set()

    async def _read(self) -> None:
        with self.reading:
            await self.link.read()

    async def _watch(self) -> None:
        with self.watching:
            await self.link.watch()

    async def _canary(self) -> None:
        try:
            await self.link.closed.wait()
        except trio.Cancelled:
            text = "the nursery of the session was cancelled"
            self.link.request_close(ExitCause.CLOSED, SessionClosed(text))
            raise
