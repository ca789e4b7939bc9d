"""The laws of `ask`: one answer each, and no tool waits for somebody who has gone."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from claude_trio import Question, ask
from claude_trio.permissions import DEFER, Allow, Decision, Deny, PermissionRequest, first_of


def asked(request_id: str = "r1") -> PermissionRequest:
    return PermissionRequest(id=request_id, tool_name="Bash", input={})


class Asked:
    """A handler at work on a request, in a task of its own."""

    def __init__(self, channel: trio.abc.SendChannel[Question], request_id: str = "r1") -> None:
        self.request = asked(request_id)
        self.scope = trio.CancelScope()
        self.decision: Decision | None = None
        self._handler = ask(channel)

    async def run(self) -> None:
        with self.scope:
            self.decision = await self._handler(self.request)


@pytest.mark.parametrize("decision", [Allow(), Allow({"a": 1}), Deny("no"), DEFER])
async def test_the_reply_is_the_decision(decision: Decision) -> None:
    send, receive = trio.open_memory_channel[Question](0)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        question = await receive.receive()
        assert question.request is one.request
        assert question.pending
        assert one.decision is None
        assert question.reply(decision)
    assert one.decision == decision


async def test_only_the_first_reply_counts() -> None:
    send, receive = trio.open_memory_channel[Question](0)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        question = await receive.receive()
        assert question.reply(Deny("no"))
        assert not question.reply(Allow())
        assert not question.pending
    assert not question.reply(Allow())
    assert one.decision == Deny("no")


async def test_several_questions_may_be_answered_in_any_order() -> None:
    send, receive = trio.open_memory_channel[Question](3)
    tasks = [Asked(send, name) for name in ("r1", "r2", "r3")]
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task.run)
        questions = {q.request.id: q for q in [await receive.receive() for _ in tasks]}
        for name in ("r3", "r1", "r2"):
            assert questions[name].reply(Deny(name))
            await wait_all_tasks_blocked()
    assert [task.decision for task in tasks] == [Deny("r1"), Deny("r2"), Deny("r3")]


@pytest.mark.parametrize("end", ["ours", "theirs"])
async def test_a_closed_channel_denies(end: str) -> None:
    send, receive = trio.open_memory_channel[Question](1)
    (send if end == "ours" else receive).close()
    assert isinstance(await ask(send)(asked()), Deny)


async def test_a_channel_that_closes_while_a_question_waits_to_be_sent_denies() -> None:
    send, receive = trio.open_memory_channel[Question](0)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        await wait_all_tasks_blocked()
        receive.close()
    assert isinstance(one.decision, Deny)


async def test_a_question_that_was_taken_outlives_its_channel() -> None:
    send, receive = trio.open_memory_channel[Question](0)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        question = await receive.receive()
        receive.close()
        send.close()
        await wait_all_tasks_blocked()
        assert question.reply(Allow())
    assert one.decision == Allow()


async def test_a_reply_to_a_withdrawn_question_does_not_count() -> None:
    send, receive = trio.open_memory_channel[Question](0)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        question = await receive.receive()
        nursery.start_soon(question.wait_settled)
        await wait_all_tasks_blocked()
        one.scope.cancel()
    assert not question.pending
    assert not question.reply(Allow())
    assert one.decision is None


async def test_a_question_that_was_withdrawn_unread_comes_settled() -> None:
    send, receive = trio.open_memory_channel[Question](1)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        await wait_all_tasks_blocked()
        one.scope.cancel()
    question = receive.receive_nowait()
    assert not question.pending
    assert not question.reply(Allow())
    await question.wait_settled()


async def test_a_cancelled_ask_leaves_no_question_behind() -> None:
    send, receive = trio.open_memory_channel[Question](0)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        await wait_all_tasks_blocked()
        one.scope.cancel()
    with pytest.raises(trio.WouldBlock):
        receive.receive_nowait()


async def test_a_reply_wins_over_a_cancellation_that_comes_after_it() -> None:
    # Trio wakes the two tasks in either order.
    for _ in range(20):
        send, receive = trio.open_memory_channel[Question](0)
        one = Asked(send)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.run)
            question = await receive.receive()
            assert question.reply(Allow())
            one.scope.cancel()
        assert one.decision == Allow()


@pytest.mark.parametrize("value", [None, True, "allow", {"behavior": "allow"}, Allow])
async def test_a_reply_that_is_no_decision_leaves_the_question_open(value: Any) -> None:
    send, receive = trio.open_memory_channel[Question](0)
    one = Asked(send)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        question = await receive.receive()
        with pytest.raises(TypeError):
            question.reply(value)
        assert question.pending
        assert question.reply(Allow())
    assert one.decision == Allow()


@pytest.mark.parametrize("closed", [False, True])
async def test_every_ask_is_a_checkpoint(closed: bool) -> None:
    send, receive = trio.open_memory_channel[Question](1)
    if closed:
        receive.close()
        with trio.testing.assert_checkpoints():
            await ask(send)(asked())
    with trio.CancelScope() as scope:
        scope.cancel()
        await ask(send)(asked())
    assert scope.cancelled_caught


async def test_ask_is_a_handler_like_any_other() -> None:
    send, receive = trio.open_memory_channel[Question](0)
    receive.close()
    assert isinstance(await first_of(ask(send))(asked()), Deny)
