"""What the documentation shows can be run."""

from __future__ import annotations

import pytest

from tests.docs_examples import examples


def test_the_readme_shows_a_program() -> None:
    assert any(name.startswith("example_readme") for name, _ in examples())


@pytest.mark.parametrize(("name", "program"), list(examples()), ids=lambda value: value[:40])
def test_every_example_imports_what_exists(name: str, program: str) -> None:
    # Not as "__main__": what it defines is made, and nothing is started.
    exec(compile(program, f"<{name}>", "exec"), {"__name__": name})
