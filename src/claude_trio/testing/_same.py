"""Whether a host says what was recorded, though its ids are others in each run."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Final, cast, final

import attrs

from claude_trio._ndjson import object_or_empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Ids", "commute", "lay_out"]

_UUID: Final = re.compile(
    r"(?<![0-9A-Fa-f])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Fa-f])"
)
# What the CLI says about a request of the host.
_ANSWERS: Final = ('"control_response"', '"control_request_progress"')
_REQUEST_ID: Final = re.compile(r'("request_id"\s*:\s*)("(?:[^"\\]|\\.)*")')
# The id that a host gives to what it says.
_OWN: Final = {
    "user": "uuid",
    "control_request": "request_id",
    "control_cancel_request": "request_id",
}
_WIDTH: Final = 100
_LONGEST: Final = 60


@final
@attrs.define(eq=False)
class Ids:
    """Which id of this run stands for which recorded one, both ways.

    The CLI's ids are what they were.  The host's are new in each run: the uuids that it says
    first, and the ids of its requests.
    """

    _uuids: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    _requests: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    _heard: set[str] = attrs.field(factory=set[str], init=False)
    """The uuids that the CLI has said."""

    def bind(self, recorded: str, live: str) -> bool:
        """Let one uuid stand for another; return whether it can."""
        return _bind(self._uuids, recorded, live)

    def say(self, line: str) -> str:
        """Give a line of the CLI as it is in this run."""
        self._heard.update(_UUID.findall(line))
        if any(word in line for word in _ANSWERS):
            line = _REQUEST_ID.sub(self._our_request, line)
        return self._live(line)

    def same(self, recorded: Mapping[str, object] | str, live: Mapping[str, object] | str) -> bool:
        """Whether the host says the same; if it does, learn its ids."""
        told, said = _core(recorded), _core(live)
        if _UUID.split(told) != _UUID.split(said):
            return False
        before = dict(self._uuids), dict(self._requests)
        pairs = zip(_UUID.findall(told), _UUID.findall(said), strict=True)
        if all(self._same_uuid(*pair) for pair in pairs) and self._same_own(recorded, live):
            return True
        self._uuids, self._requests = before
        return False

    def difference(self, recorded: object, live: object) -> str:
        """Show how what the host says differs from what was recorded."""
        told = [*lay_out(json.loads(self._live(_core(recorded))))]
        said = [*lay_out(json.loads(_core(live)))]
        lines = [*difflib.unified_diff(told, said, "recorded", "said now", lineterm="")]
        if not lines:
            lines = ["only an id is another one than before:", *lay_out(live)]
        more = [f"... and {len(lines) - _LONGEST} lines more"] if len(lines) > _LONGEST else []
        return "\n".join([*lines[:_LONGEST], *more])

    def _live(self, text: str) -> str:
        return _UUID.sub(lambda found: self._uuids.get(found[0], found[0]), text)

    def _our_request(self, found: re.Match[str]) -> str:
        recorded: str = json.loads(found[2])
        return found[1] + json.dumps(self._requests.get(recorded, recorded))

    def _same_uuid(self, recorded: str, live: str) -> bool:
        if recorded in self._heard and recorded not in self._uuids:
            return recorded == live
        return self.bind(recorded, live)

    def _same_own(self, recorded: object, live: object) -> bool:
        told, said = object_or_empty(recorded), object_or_empty(live)
        own = _OWN.get(str(told.get("type")), "")
        match told.get(own), said.get(own):
            case str() as told_id, str() as said_id:
                ids = self._uuids if own == "uuid" else self._requests
                return _bind(ids, told_id, said_id)
            case _:
                return True


def _bind(ids: dict[str, str], recorded: str, live: str) -> bool:
    if recorded in ids or live in ids.values():
        return ids.get(recorded) == live
    ids[recorded] = live
    return True


def _core(frame: object) -> str:
    """Write what a frame says, without what makes no difference."""
    # The CLI takes no notice of the session's id in what the host says.
    told = object_or_empty(frame)
    own = _OWN.get(str(told.get("type")))
    less = {key: told[key] for key in told if key not in {own, "session_id"}} if own else frame
    return json.dumps(_without_nulls(less), sort_keys=True)


def _without_nulls(value: object) -> object:
    # To the CLI, what is null is not there.
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {name: _without_nulls(inner) for name, inner in items if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in cast("list[object]", value)]
    return value


def commute(one: object, other: object) -> bool:
    """Whether it does not matter which of two frames of the host comes first.

    The CLI keeps answers, and questions, apart by their ids.
    """
    kinds = {object_or_empty(frame).get("type") for frame in (one, other)}
    if kinds == {"control_request"}:
        asked = [object_or_empty(object_or_empty(f).get("request")) for f in (one, other)]
        return all(f.get("subtype") not in {"initialize", "interrupt"} for f in asked)
    return kinds == {"control_response"}


def lay_out(frame: object) -> Iterator[str]:
    """Write a frame in lines that are not too long."""
    laid_out = json.dumps(frame, indent=2, sort_keys=True, ensure_ascii=False)
    for line in [frame] if isinstance(frame, str) else laid_out.split("\n"):
        # Of a long text only the part that differs is of interest.
        yield from [line[at : at + _WIDTH] for at in range(0, len(line), _WIDTH)] or [""]
