"""What importing the library costs: nothing that only some programs need."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

pytestmark = pytest.mark.slow

PROGRAM: Final = """
import sys
import attrs, msgspec, trio
before = set(sys.modules)
import claude_trio
import json
from claude_trio import _values
print(json.dumps([
    sorted(name for name in set(sys.modules) - before if not name.startswith("claude_trio")),
    sorted(cls.__name__ for cls in _values._made),
    sorted(name for name in sys.modules if name.startswith(
        ("claude_trio.testing", "claude_trio._cli", "claude_trio._options._rules"))),
]))
"""


def test_importing_loads_nothing_but_the_library_and_what_it_depends_on() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    others, made_by_attrs, optional = json.loads(ran.stdout)

    assert [name for name in others if not name.startswith(("json", "_json"))] == []
    # The decoder wants to know what it decodes to.
    assert made_by_attrs == ["StreamEvent"]
    assert optional == []
