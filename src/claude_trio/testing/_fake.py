"""`FakeClaude`: a scripted CLI in memory, with no process, no file and no real time.

It follows the order of frames of the real one (2.1.332) for the conversations that it can play:
texts, whole or streamed; tool calls, which ask for permission; agents and shells, in the foreground
and in the background; interrupts; prompts that wait or come during a tool call.  A test may also
reach into it and let it do what a CLI should not.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, TypeAlias, final

import attrs
import trio

from claude_trio.testing._fake_run import Run
from claude_trio.testing._fake_transport import FakeTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from claude_trio._transport import Transport
    from claude_trio.testing._replies import Reply

__all__ = ["FakeClaude", "FakeScript"]

FakeScript: TypeAlias = "Sequence[Reply] | Callable[[str], Reply]"
"""The model's replies in order, or a function of the last text that the model was told."""


def _run_nothing(name: str, _arguments: Mapping[str, object]) -> str:
    return f"({name} completed with no output)"


def _words(words: Iterable[str]) -> frozenset[str]:
    return frozenset(words)


@final
@attrs.define(eq=False)
class FakeClaude:
    """A CLI that plays a script.

    ``FakeClaude(script).launch`` is a `Launcher`.  Each launch starts the script anew.

    A call of the tool ``Agent`` runs an agent: in the background, unless its input says
    ``"run_in_background": False``.  A ``Bash`` call whose input says ``"run_in_background": True``
    is a shell in the background.  A command that has ``sleep 5`` in it takes five seconds.

    Args:
      script: What the model says.
      run_tool: What a tool that was allowed returns, by its name and arguments.
      asks: Whether a call of this tool asks for permission.
      deaf_to: What it does not hear: ``"eof"``, ``"term"``, or the subtype of a control request.
      dies_with: The exit code with which it dies in the middle of its first turn; negative for a
        signal.
      agents: For each agent whose prompt contains the key: the replies that it takes in their
        order.  Agents that match no key say "Done." if the script is a row of replies.
      answers: What it answers to the control requests of a subtype; most others it refuses.
      dies_at: It dies right after it has written so many frames, and not in its first turn.
      starts_after: How long it takes to start, in seconds.
      pipe: How many bytes its stdin holds that it has not read yet; without it, any number.
      piece: How many bytes of its stdout the host gets at a time; without it, all.
      holds_stdout: Whether its stdout stays open after its exit.
      stderr: What it writes to stderr.

    Attributes:
      received: The frames that the host wrote, oldest first.
    """

    script: FakeScript
    run_tool: Callable[[str, Mapping[str, object]], str] = _run_nothing
    asks: Callable[[str], bool] = bool
    deaf_to: frozenset[str] = attrs.field(default=frozenset(), converter=_words)
    dies_with: int | None = None
    agents: Mapping[str, Sequence[Reply]] = attrs.field(factory=dict, kw_only=True)
    answers: Mapping[str, Mapping[str, object]] = attrs.field(factory=dict, kw_only=True)
    dies_at: int | None = attrs.field(default=None, kw_only=True)
    starts_after: float = attrs.field(default=0, kw_only=True)
    pipe: int | None = attrs.field(default=None, kw_only=True)
    piece: int | None = attrs.field(default=None, kw_only=True)
    holds_stdout: bool = attrs.field(default=False, kw_only=True)
    stderr: str = attrs.field(default="", kw_only=True)
    received: list[Mapping[str, object]] = attrs.field(factory=list, init=False)
    _transport: FakeTransport = attrs.field(init=False, repr=False)

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],  # noqa: ARG002  It needs no environment.
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> Transport:
        """Start the fake; its task ends when it exits."""
        await trio.lowlevel.checkpoint()
        self._transport = FakeTransport(
            deaf_to_term="term" in self.deaf_to,
            holds_stdout=self.holds_stdout,
            pipe=self.pipe,
            piece=self.piece,
            stderr_tail=self.stderr,
        )
        run = Run(self, self._transport, _session_id(argv), cwd or "/home/user/project")
        nursery.start_soon(run.live)
        return self._transport

    # -- what a test lets the last one that was started do

    def write(self, data: bytes) -> None:
        """Write bytes to stdout, whatever they are."""
        self._transport.write(data)

    def send(self, frame: Mapping[str, object]) -> None:
        """Write a frame to stdout."""
        self.write(json.dumps(frame).encode() + b"\n")

    def read_stdin(self, reading: bool) -> None:  # noqa: FBT001  It is a switch.
        """Stop reading stdin, or go on."""
        self._transport.read_stdin(reading)

    def close_stdout(self) -> None:
        """Close stdout, and live on."""
        self._transport.close_stdout()

    def exit(self, code: int) -> None:
        """Exit at once; the code is negative for a signal."""
        self._transport.exit(code)


def _session_id(argv: Sequence[str]) -> str:
    for argument in argv:
        name, _, value = argument.partition("=")
        if name == "--session-id" and value:
            return value
    return str(uuid.UUID(int=1))
