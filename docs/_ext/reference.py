"""What the reference needs beyond autodoc.

Signatures stand as they are written: ``Message`` is more use to a reader than the forty classes of
that union.  A bare name is then looked up among everything that is documented.  A public name is
unique in this project; if one is not, its reference stays dead and the build says so.

A class with private fields is made by the library, so it is shown without its constructor.

A name that the facade exports is documented on the facade's page alone, though its module offers
it too, and a base class that is private gives way to its own bases.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Final, NoReturn

import attrs
from sphinx.util.nodes import make_refnode

import claude_trio

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import ExtensionMetadata

__all__ = ["setup"]

_FACADE_PAGE: Final = "reference/claude_trio"


def _leave_annotations_alone(*_args: object, **_kwargs: object) -> NoReturn:
    """Stand in for ``typing.get_type_hints``: Sphinx takes what is written if that fails."""
    raise NameError("annotations stay as they are written")


def _find_bare_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    if node["refdomain"] != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    found = {
        (entry.docname, entry.node_id)
        for full, entry in env.domains.python_domain.objects.items()
        if full.rpartition(".")[2] == name
    }
    if len(found) != 1:
        return None
    ((page, anchor),) = found
    return make_refnode(app.builder, node["refdoc"], page, anchor, content, name)


def _skip_what_the_facade_shows(
    app: Sphinx, what: str, _name: str, found: object, _skip: bool, _options: object
) -> bool | None:
    if what != "module" or app.env.docname == _FACADE_PAGE:
        return None
    shown = (getattr(claude_trio, name) for name in claude_trio.__all__)
    return True if any(found is one for one in shown) else None


def _hide_private_constructors(
    _app: Sphinx,
    what: str,
    _name: str,
    found: object,
    _options: object,
    _signature: str | None,
    _returns: str | None,
) -> tuple[str, None] | None:
    if what != "class" or not isinstance(found, type) or not attrs.has(found):
        return None
    private = any(field.init and field.name.startswith("_") for field in attrs.fields(found))
    return ("", None) if private else None


def _name_public_bases(
    _app: Sphinx, _name: str, _found: object, _options: object, bases: list[type]
) -> None:
    bases[:] = [typing.get_origin(base) or base for base in bases]
    while private := [base for base in bases if base.__name__.startswith("_")]:
        at = bases.index(private[0])
        bases[at : at + 1] = [base for base in private[0].__bases__ if base not in bases]
    if len(bases) > 1 and object in bases:
        bases.remove(object)


def _keep_colons(
    _app: Sphinx, what: str, _name: str, _found: object, _options: object, lines: list[str]
) -> None:
    """Keep napoleon from reading an attribute's ``A change: see below`` as a type and its text."""
    if what in {"attribute", "data", "property"} and lines and lines[0].strip():
        lines[0] = f": {lines[0]}"


def setup(app: Sphinx) -> ExtensionMetadata:
    """Tell Sphinx of them."""
    app.setup_extension("sphinx.ext.autodoc")
    typing.get_type_hints = _leave_annotations_alone
    app.connect("missing-reference", _find_bare_name)
    app.connect("autodoc-skip-member", _skip_what_the_facade_shows)
    app.connect("autodoc-process-signature", _hide_private_constructors)
    app.connect("autodoc-process-bases", _name_public_bases)
    app.connect("autodoc-process-docstring", _keep_colons, priority=100)  # Napoleon's is 500.
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
