"""The deadlines and the limits: their values, and what they may be."""

from __future__ import annotations

import math
from typing import Any, Final

import attrs
import pytest

from claude_trio._options import Limits, Timeouts

TIMEOUTS: Final = {
    "initialize": 60,
    "control": 60,
    "permission": math.inf,
    "hook": 60,
    "write": 30,
    "silence": math.inf,
    "grace": 2,
    "interrupt": 30,
    "settle": 600,
    "follow_up": 2,
    "eof": 5,
    "term": 5,
    "kill": 5,
}
LIMITS: Final = {
    "frame": 64 << 20,
    "turn_buffer": 64 << 20,
    "outbound": 1024,
    "stderr_tail": 64 << 10,
}


def make(kind: type[Timeouts | Limits], name: str, value: Any) -> Timeouts | Limits:
    return kind(**{name: value})


def test_the_defaults_are_these() -> None:
    assert attrs.asdict(Timeouts()) == TIMEOUTS
    assert attrs.asdict(Limits()) == LIMITS


@pytest.mark.parametrize("name", TIMEOUTS)
@pytest.mark.parametrize("value", [1, 0.001, math.inf])
def test_a_deadline_is_a_positive_number_of_seconds(name: str, value: float) -> None:
    assert getattr(make(Timeouts, name, value), name) == value


@pytest.mark.parametrize("name", TIMEOUTS)
@pytest.mark.parametrize("value", [0, -1, -math.inf, math.nan])
def test_other_numbers_are_no_deadline(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: "):
        make(Timeouts, name, value)


@pytest.mark.parametrize("name", TIMEOUTS)
@pytest.mark.parametrize("value", [None, "1", True])
def test_what_is_no_number_is_no_deadline(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: "):
        make(Timeouts, name, value)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_a_positive_int(name: str) -> None:
    assert getattr(make(Limits, name, 1), name) == 1
    for value in (0, -1):
        with pytest.raises(ValueError, match=rf"^{name}: "):
            make(Limits, name, value)
    for wrong in (None, "1", True, 1.0, math.inf):
        with pytest.raises(TypeError, match=rf"^{name}: "):
            make(Limits, name, wrong)
