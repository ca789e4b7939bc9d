"""A gate, and short words for what a CLI says to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from claude_trio._protocol._gate import Gate
from claude_trio._protocol._turns import State

if TYPE_CHECKING:
    from claude_trio._protocol._gate import OwnTurn

__all__ = ["FOLLOW_UP", "SETTLE", "Talk", "bare", "held", "old"]

FOLLOW_UP: Final = 2.0
SETTLE: Final = 600.0


class Talk:
    """A gate, and a CLI that says by itself what the real one says around a run."""

    def __init__(self, *, lifecycle: bool = True, states: bool = True) -> None:
        self.gate = Gate(follow_up=FOLLOW_UP, settle=SETTLE)
        self.now = 0.0
        self.number = 0
        self.lifecycle = lifecycle
        self.states = states

    def prompt(self, uuid: str = "p", *, hold_open: bool = True) -> OwnTurn:
        self.number += 1
        turn = self.gate.prompt(uuid, self.number, hold_open=hold_open)
        assert turn is not None
        return turn

    def cancel(self, *, spare: bool = False) -> bool:
        self.number += 1
        return self.gate.cancel(self.number, spare_agents=spare)

    def state(self, state: str) -> None:
        if self.states:
            self.gate.session_state(state)

    def life(self, uuid: str, *states: str) -> None:
        for state in states if self.lifecycle else ():
            self.gate.lifecycle(uuid, state)

    def begin(self, *uuids: str) -> None:
        self.gate.heard(self.now)
        self.state("running")
        for uuid in uuids:
            self.life(uuid, "queued", "started")
        self.gate.init()

    def result(
        self, *uuids: str, origin: str | None = None, run_id: str | None = None
    ) -> OwnTurn | None:
        self.gate.heard(self.now)
        named = uuids if self.lifecycle else ()
        turn = self.gate.result(self.now, uuids=named, origin=origin, run_id=run_id)
        for uuid in uuids:
            self.life(uuid, "completed")
        return turn

    def follow_up(self, run_id: str | None = None) -> OwnTurn | None:
        """A whole run in which the model reacts to a task."""
        self.begin()
        return self.result(origin="task-notification", run_id=run_id)

    def agent(self, name: str = "a", *, background: bool = True, kind: str = "local_agent") -> None:
        if self.lifecycle:
            self.gate.task_started(name, kind, run_id=f"{name}.1", backgrounded=background)
        else:
            self.gate.task_started(name, kind)

    def end(self, name: str = "a", status: str = "completed") -> None:
        self.gate.heard(self.now)
        self.gate.task_updated(self.now, name, status=status)
        self.gate.task_notified(self.now, name)

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self.gate.deadline() <= until:
            self.now = self.gate.deadline()
            self.gate.tick(self.now)
        self.now = until


def old() -> Talk:
    """2.1.197: no lifecycle, and idle right after each result."""
    return Talk(lifecycle=False)


def bare() -> Talk:
    """A CLI that reports neither lifecycle nor state."""
    return Talk(lifecycle=False, states=False)


def held(talk: Talk) -> OwnTurn:
    """A turn that is answered, while an agent of it works in the background."""
    turn = talk.prompt()
    talk.begin("p")
    talk.agent()
    talk.result("p")
    assert talk.gate.machine.state is State.HELD
    return turn
