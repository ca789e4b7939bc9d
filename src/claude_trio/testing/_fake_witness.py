"""What goes wrong with the script of a fake CLI, for whoever wants to know."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, cast, final

from claude_trio.testing._api_requests import ApiRequest, RequestKind
from claude_trio.testing._api_script import ScriptExhausted
from claude_trio.testing._fake_script import Exhausted

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Witness"]


@final
class Witness:
    """Remembers the exceptions of a script, and what it had no reply for."""

    def __init__(self, on_failure: Callable[[], None] | None = None) -> None:
        self._on_failure = on_failure
        self._failures: list[Exception] = []
        self.exhausted: Exhausted = Exhausted()

    def see(self, exc: Exception) -> str:
        """See an exception, and return its traceback."""
        exc = _bare(exc)
        self._failures.append(exc)
        if self._on_failure is not None:
            self._on_failure()
        return "".join(traceback.format_exception(None, exc, exc.__traceback__))

    def verdict(self, raised: BaseException | None) -> BaseException | None:
        """Choose what leaves a block that has raised this."""
        exhausted = None
        if self.exhausted.told:
            exhausted = ScriptExhausted([_request(told) for told in self.exhausted.told])
        if raised is not None and exhausted is not None:
            raised.add_note(str(exhausted))
        match [*([] if raised is None else [raised]), *self._failures]:
            case []:
                return exhausted
            case [single]:
                return single
            case everything:
                return BaseExceptionGroup("the block and its script failed", everything)


def _bare(exc: Exception) -> Exception:
    if not isinstance(exc, ExceptionGroup):
        return exc
    inner = cast("ExceptionGroup[Exception]", exc).exceptions
    return _bare(inner[0]) if len(inner) == 1 else exc


def _request(told: str) -> ApiRequest:
    return ApiRequest(
        kind=RequestKind.MAIN,
        model="",
        system="",
        messages=(),
        tools=(),
        prompts=(told,),
        last_user_text=told,
        stream=True,
        session_id=None,
        agent_id=None,
        headers={},
        body={},
    )
