"""`FakeClaude`: a scripted CLI in memory, with no process, no file and no real time.

It follows the order of frames of the real one (2.1.332), which tests hold it to, and refuses what
that refuses.  A test may also let it do what a CLI should not: by its faults, or by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import attrs
import trio

from claude_trio.testing._fake_frames import spell
from claude_trio.testing._fake_launch import read_launch
from claude_trio.testing._fake_run import Run
from claude_trio.testing._fake_transport import FakeTransport
from claude_trio.testing._fake_trouble import Trouble
from claude_trio.testing._fake_witness import Witness
from claude_trio.testing.faults import Starting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from claude_trio._transport import Transport
    from claude_trio.testing._fake_launch import Launch
    from claude_trio.testing._fake_script import FakeScript
    from claude_trio.testing.faults import Fault

__all__ = ["FakeClaude"]


def _run_nothing(name: str, _arguments: Mapping[str, object]) -> str:
    return f"({name} completed with no output)"


@final
@attrs.define(eq=False)
class FakeClaude:
    """A CLI that plays a script.

    ``FakeClaude(script).launch`` is a `Launcher`; `open_fake_session` opens a session on it.  Each
    launch starts the script anew, and reads its command line and its environment as the real CLI
    does: the session id, the permission mode and rules, what is streamed and told, the limits.

    A call of the tool ``Agent`` runs an agent: in the background, unless its input says
    ``"run_in_background": False``.  A ``Bash`` call whose input says ``"run_in_background": True``
    is a shell in the background.  A command that has ``sleep 5`` in it takes five seconds.
    ``ScheduleWakeup`` starts a turn later.  The tools of the host's in-process MCP servers are
    called there.  All others give what the call ``returns``, or else what ``run_tool`` says.

    Args:
      script: What the model says: replies that it takes in their order, a function of what it is
        told, or an async function that converses.
      run_tool: What a tool that may run returns, by its name and arguments; `ToolError` raised in
        it is the tool's error.
      agents: For each agent whose prompt contains the key: its script.  Agents that match no key
        say "Done." if the script is a row of replies.
      answers: What it answers to the control requests of a subtype; most others it refuses.
      faults: What it does wrong.

    Attributes:
      received: The frames that the host wrote, oldest first.
    """

    script: FakeScript
    run_tool: Callable[[str, Mapping[str, object]], str] = attrs.field(
        default=_run_nothing, kw_only=True
    )
    agents: Mapping[str, FakeScript] = attrs.field(factory=dict, kw_only=True)
    answers: Mapping[str, Mapping[str, object]] = attrs.field(factory=dict, kw_only=True)
    faults: Sequence[Fault] = attrs.field(default=(), kw_only=True)
    received: list[Mapping[str, object]] = attrs.field(factory=list, init=False)
    _transport: FakeTransport = attrs.field(init=False, repr=False)
    _run: Run = attrs.field(init=False, repr=False)
    _heard: trio.lowlevel.ParkingLot = attrs.field(
        factory=trio.lowlevel.ParkingLot, init=False, repr=False
    )

    async def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> Transport:
        """Start the fake; its task ends when it exits.

        A script that raises ends it with code 1, and the traceback on its stderr.
        """
        return await self.launch_seen(Witness(), argv, env, cwd, nursery)

    async def launch_seen(
        self,
        witness: Witness,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        nursery: trio.Nursery,
        /,
    ) -> FakeTransport:
        """Start the fake, and let somebody see what goes wrong with its script.

        :meta private:
        """
        await trio.lowlevel.checkpoint()
        transport = self._transport = FakeTransport()
        trouble = Trouble(self.faults, transport)
        launch = read_launch(argv, env, cwd)
        nursery.start_soon(self._live, transport, trouble, launch, witness)
        return transport

    async def _live(
        self, transport: FakeTransport, trouble: Trouble, launch: Launch, witness: Witness
    ) -> None:
        code = 1
        # Like a process, it does not hear of the nursery's cancellation.
        with trio.CancelScope(shield=True) as life:
            transport.on_exit(life.cancel)
            try:
                async with trio.open_nursery() as nursery:
                    run = self._run = Run(
                        self, transport, launch, trouble, nursery, witness.exhausted
                    )
                    await trouble.start(nursery)
                    code = await _play(run, trouble, transport)
                    nursery.cancel_scope.cancel()
            except Exception as exc:  # noqa: BLE001  The witness raises it.
                transport.complain(witness.see(exc))
        transport.exit(code)

    def hear(self, frame: Mapping[str, object]) -> None:
        """Keep a frame of the host.

        :meta private:
        """
        self.received.append(frame)
        self._heard.unpark_all()

    # -- what a test does with the last one that was started

    async def wait_received(self, count: int) -> Sequence[Mapping[str, object]]:
        """Wait until the host has written so many frames in all, and give them.

        Cancellation:
          A checkpoint.  If cancelled, nothing has changed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while len(self.received) < count:
            await self._heard.park()
        return self.received[:count]

    def start_turn(self, told: str = "") -> None:
        """Start a turn that no prompt has asked for, as a monitor or a trigger does.

        Args:
          told: What the model is told.
        """
        self._run.tasks.report(told)

    def write(self, data: bytes) -> None:
        """Write bytes to stdout, whatever they are."""
        self._transport.write(data)

    def send(self, frame: Mapping[str, object]) -> None:
        """Write a frame to stdout."""
        self.write(spell(frame))

    def read_stdin(self, reading: bool) -> None:  # noqa: FBT001  It is a switch.
        """Stop reading stdin, or go on."""
        self._transport.read_stdin(reading)

    def close_stdout(self) -> None:
        """Close stdout, and live on."""
        self._transport.close_stdout()

    def exit(self, code: int) -> None:
        """Exit at once; the code is negative for a signal."""
        self._transport.exit(code)


async def _play(run: Run, trouble: Trouble, transport: FakeTransport) -> int:
    """Live, or refuse to; return the exit code."""
    refusal = trouble.refusal
    if run.launch.problem is not None:
        refusal = Starting(words=run.launch.problem)
    if refusal is None:
        await run.live()
        await trouble.linger()
        return run.exit_code
    words = refusal.words or ""
    transport.complain(f"{words}\n")
    if refusal.with_result:
        fields = {"subtype": "error_during_execution", "is_error": True, "num_turns": 0}
        run.frames.say(type="result", **fields, errors=[words], total_cost_usd=0, result_index=0)
    return refusal.code
