"""The envelopes of the control protocol, which runs between the messages.

Facts: CLI 2.1.332.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from ._base import WireObject
from ._fields import kind, wire

__all__ = [
    "ControlCancelRequest",
    "ControlRequest",
    "ControlResponse",
    "KeepAlive",
]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ControlRequest(WireObject):
    """The CLI asks the host for something, and waits for the answer.

    Attributes:
      request_id: What the answer must name; empty if the CLI gave none.
      subtype: What it asks: ``can_use_tool``, ``hook_callback``, ``mcp_message``,
        ``elicitation``, ``request_user_dialog`` and others.
      request: The request, its subtype included.
    """

    _inner: ClassVar[str | None] = "request"

    request_id: str
    subtype: str = attrs.field(metadata=wire("subtype", inside=True))
    request: Mapping[str, object]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ControlResponse(WireObject):
    """The answer to a request of the host, or an echo of one that the host gave.

    Attributes:
      request_id: What it answers; empty if it names nothing.
      ok: Whether the CLI did what was asked.
      response: What came of it; empty if there is nothing to say.
      error: If not `ok`, why, in words; else empty.
      error_code: Why, as a code: ``unsupported_request``, ``invalid_mode``,
        ``bypass_not_launched``, ``reload_plugins_busy``.
      pending_permission_requests: With the answer to ``initialize``: requests that still wait.
      pending_user_dialog_requests: Likewise.
      pending_elicitation_requests: Likewise.
    """

    _inner: ClassVar[str | None] = "response"

    request_id: str = attrs.field(metadata=wire("request_id", inside=True))
    ok: bool = attrs.field(
        metadata={
            **wire("subtype", inside=True),
            **kind((str,), lambda subtype: subtype == "success"),
        }
    )
    response: Mapping[str, object] = attrs.field(
        factory=dict, metadata=wire("response", inside=True)
    )
    error: str = ""
    error_code: str | None = None
    pending_permission_requests: tuple[Mapping[str, object], ...] = ()
    pending_user_dialog_requests: tuple[Mapping[str, object], ...] = ()
    pending_elicitation_requests: tuple[Mapping[str, object], ...] = ()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ControlCancelRequest(WireObject):
    """The CLI does not want an answer to a request any more; it is not answered itself.

    Attributes:
      request_id: The request.
    """

    request_id: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class KeepAlive(WireObject):
    """A sign of life, which means nothing else.

    Attributes:
      startup_mark: A checkpoint of the start-up, where the environment asks for them.
    """

    startup_mark: str | None = None
