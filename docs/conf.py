"""How Sphinx builds the documentation."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

__all__: list[str] = []

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "claude-trio"
author = "the claude-trio authors"
project_copyright = f"2026, {author}"
release = version = installed_version("claude-trio")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib_trio",
    "reference",
    "state_machine",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = project

# `name` in a docstring is a link where there is something to link to.
default_role = "py:obj"
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_custom_sections = ["Cancellation", "Concurrency"]
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

nitpick_ignore_regex = [
    ("py:obj", r".*"),
    # What is documented elsewhere.  The build asks no other site, so these are not links.
    (
        "py:.*",
        r"(attrs?|collections|contextlib|enum|os|outcome|pathlib|trio|types|typing|uuid)\.[\w.]+",
    ),
    # What the library hands to its own objects; programs neither make nor name these.
    ("py:class", r"ApiServer|Conversation|Frame|OwnTurn|ProcessTransport|_Item"),
    ("py:exc", r"(trio\.)?\w*(Error|Exception|ExceptionGroup|WouldBlock)"),
    # The same, as written where the import stands under TYPE_CHECKING.
    ("py:class", r"AbstractAsyncContextManager|AsyncIterator|Awaitable|Callable|Iterator|Mapping"),
    ("py:class", r"Path|PathLike|Self|Sequence|TracebackType|Ts|UUID"),
]
