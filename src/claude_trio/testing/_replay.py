"""A fake CLI that says what was recorded."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import attrs
import trio

from claude_trio._errors import ClaudeTrioError
from claude_trio.testing._player import Player, ReplayMismatch
from claude_trio.testing._redact import Redactor
from claude_trio.testing._wire_log import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from claude_trio._transport import Transport
    from claude_trio.testing._redact import Redact
    from claude_trio.testing._wire_log import Recording

__all__ = ["Replay", "replay"]


@contextmanager
def replay(
    path: str | PathLike[str],
    *,
    redact: Redact | None = None,
    timing: bool = False,
    patience: float = 60,
) -> Iterator[Replay]:
    """Play a recording: a fake CLI in memory, on Trio's clock.

    ``open_session(launch=cli.launch)`` within the block holds the recorded conversation once
    more.  The CLI says what it said as soon as the host has said and done what it said and did
    before that.  Once the host does anything else, the CLI exits with 1, the difference is the
    last text of its stderr, and the block raises `ReplayMismatch`, whatever else was raised in it;
    only to a host that left early, because it failed, that is no more than a note.

    What is compared: each line of stdin, the end of stdin, and signals, in their order.  Answers
    to different requests of the CLI may overtake each other, and so may questions that were asked
    at the same time.  What is not: the command line, the environment, times, the session's id and
    the ids that a host makes: they are translated in both directions.  What the host says is
    redacted like the recording before it is compared.

    Args:
      path: A file that `recording` has written, or ``claude-trio record``.
      redact: What the recording was given.  It is also the way to compare what differs in each
        run, such as a date: make it the same.
      timing: Whether the CLI takes the time that it took.
      patience: How long the host may take for what it does next, in seconds in addition to what it
        took in the recording.  Without such a bound, two who wait for each other would hang.

    Raises:
      ReplayMismatch: at the end of the block, if the host did something else than was recorded, or
        the recording was not played to its end.
      OSError: if the file cannot be read.
      ValueError: if it is no recording.
    """
    cli = Replay(load(path), redact, timing, patience)
    try:
        yield cli
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as exc:  # A cancellation, too, may come of the mismatch.
        # Whoever fails leaves early; but that the CLI is gone is what the mismatch did.
        early = cli.left_early and not isinstance(exc, ClaudeTrioError)
        if cli.mismatch is not None and not early:
            raise cli.mismatch from exc
        if (error := cli.mismatch or cli.left) is not None:
            exc.add_note(str(error))
        raise
    if (error := cli.mismatch or cli.left) is not None:
        raise error


@final
@attrs.define(eq=False)
class Replay:
    """A CLI that says what was recorded; `replay` gives one."""

    _recording: Recording
    _redact: Redact | None
    _timing: bool
    _patience: float
    _transport: _ReplayTransport | None = attrs.field(default=None, init=False)

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,  # noqa: ARG002  It looks at no file.
        nursery: trio.Nursery,
        /,
    ) -> Transport:
        """Start the recorded CLI; a `Launcher`.

        Raises:
          RuntimeError: if it was started before: a recording is of one process.
        """
        await trio.lowlevel.checkpoint()
        if self._transport is not None:
            raise RuntimeError("a recording is of one process, and that was started before")
        redactor = Redactor(env, self._redact)
        player = Player(self._recording, redactor, self._patience, self._timing)
        self._transport = _ReplayTransport(player)
        player.begin(argv, trio.current_time())
        nursery.start_soon(self._transport.live)
        return self._transport

    def send_signal(self, number: int) -> None:
        """Send it a signal, as another program would; after its exit, do nothing.

        A session sends SIGTERM and SIGKILL only.
        """
        if self._transport is not None:
            self._transport.send_signal(number)

    @property
    def mismatch(self) -> ReplayMismatch | None:
        """What the host did that was not recorded; None so far."""
        return None if self._transport is None else self._transport.player.mismatch

    @property
    def left_early(self) -> bool:
        """Whether the mismatch is what a host does that leaves: an interrupt, EOF or a signal."""
        return self._transport is not None and self._transport.player.left_early

    @property
    def left(self) -> ReplayMismatch | None:
        """Say what of the recording was not played; None if all was."""
        path = self._recording.path
        if self._transport is None:
            return ReplayMismatch("it was not played: nobody started it", path=path, line=None)
        player = self._transport.player
        text = player.left
        return None if text is None else ReplayMismatch(text, path=path, line=player.line)


@final
@attrs.define(eq=False)
class _ReplayTransport:
    """The two pipes and the exit of a recorded CLI."""

    player: Player
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    _poked: trio.Event = attrs.field(factory=trio.Event, init=False)
    _exited: trio.Event = attrs.field(factory=trio.Event, init=False)
    _stdin_closed: bool = attrs.field(default=False, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    pid: None = attrs.field(default=None, init=False)

    async def live(self) -> None:  # noqa: ASYNC910  It may have exited at once.
        """Keep time until the CLI exits or its transport is closed."""
        # Like a process, it does not hear of the nursery's cancellation.
        with trio.CancelScope(shield=True):  # noqa: ASYNC912  As above.
            self._look()
            while not (self._exited.is_set() or self._closed):
                self._poked = trio.Event()
                with trio.move_on_at(self.player.due_at):
                    await self._poked.wait()
                self.player.tick(trio.current_time())
                self._look()

    def _look(self) -> None:
        if self.player.code is not None:
            self._exited.set()
        self._changed.unpark_all()
        self._poked.set()

    @property
    def stderr_tail(self) -> str:
        return self.player.stderr

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint_if_cancelled()
        while not (self.player.out or self.player.stdout_closed or self._closed):
            await self._changed.park()
        return self.receive_nowait()

    def receive_nowait(self) -> bytes:
        if self._closed:
            raise trio.ClosedResourceError
        if not self.player.out and not self.player.stdout_closed:
            raise trio.WouldBlock
        data = bytes(self.player.out)
        self.player.out.clear()
        return data

    def send_nowait(self, data: bytes) -> int:
        if self._stdin_closed or self._closed:
            raise trio.ClosedResourceError
        if self.player.code is not None:
            raise trio.BrokenResourceError
        self.player.receive_data(data, trio.current_time())
        self._look()
        return len(data)

    async def wait_writable(self) -> None:
        await trio.lowlevel.checkpoint()

    def close_stdin(self) -> None:
        if not self._stdin_closed:
            self._stdin_closed = True
            self.player.receive_eof(trio.current_time())
            self._look()

    def send_signal(self, number: int) -> None:
        self.player.receive_signal(signal.Signals(number).name, trio.current_time())
        self._look()

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait_exit(self) -> int:
        await self._exited.wait()
        return self.player.code or 0

    async def aclose(self, *, sweep: bool | None) -> bool:  # noqa: ARG002  There is nothing to sweep.
        self.kill()
        self._closed = self._stdin_closed = True
        self._look()
        await trio.lowlevel.checkpoint()
        return True
