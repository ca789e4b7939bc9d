"""Draw a turn machine from its table: ``.. state-machine:: the.module``.

The module has two enums, ``State`` and ``Input``, and ``TRANSITIONS`` with every legal move.  What
the page shows is made of them at each build, so that it cannot be out of date.
"""

from __future__ import annotations

import html
import importlib
import math
from typing import TYPE_CHECKING, ClassVar, Final

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from enum import Enum

    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

    Point = tuple[float, float]
    Moves = Mapping[tuple[Enum, Enum], Enum]

__all__ = ["StateMachine", "setup"]

_WIDTH: Final = 920
_HEIGHT: Final = 760
_BOX: Final = (118, 38)
_LINE: Final = 14


class StateMachine(SphinxDirective):
    """Show the states, the inputs, the table and the graph of one machine."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Make the nodes."""
        name = self.arguments[0]
        module = importlib.import_module(name)
        analyzer = ModuleAnalyzer.for_module(name)
        self.env.note_dependency(analyzer.srcname)
        said = analyzer.find_attr_docs()
        moves: Moves = module.TRANSITIONS
        states, inputs = list(module.State), list(module.Input)
        return [
            nodes.rubric(text="States"),
            _definitions(states, said),
            nodes.rubric(text="Inputs"),
            _definitions(inputs, said),
            nodes.rubric(text="Moves"),
            _matrix(states, inputs, moves),
            nodes.raw("", _svg(states, moves), format="html"),
        ]


def _definitions(
    members: Sequence[Enum], said: Mapping[tuple[str, str], Sequence[str]]
) -> nodes.definition_list:
    found = nodes.definition_list()
    for member in members:
        words = " ".join(said.get((type(member).__name__, member.name), ())).strip()
        found += nodes.definition_list_item(
            "",
            nodes.term("", "", nodes.literal(text=member.name)),
            nodes.definition("", nodes.paragraph(text=words)),
        )
    return found


def _matrix(states: Sequence[Enum], inputs: Sequence[Enum], moves: Moves) -> nodes.table:
    """Make a row for each input and a column for each state; an empty cell is an error."""
    group = nodes.tgroup(cols=len(states) + 1)
    group += [nodes.colspec(colwidth=1) for _ in range(len(states) + 1)]
    group += nodes.thead("", _row(["", *(state.name for state in states)]))
    body = nodes.tbody()
    for what in inputs:
        after = [moves.get((state, what)) for state in states]
        body += _row([what.name, *("" if state is None else state.name for state in after)])
    group += body
    return nodes.table("", group, classes=["state-machine"])


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row(
        "",
        *(
            nodes.entry("", nodes.paragraph("", "", *([nodes.literal(text=cell)] if cell else [])))
            for cell in cells
        ),
    )


def _svg(states: Sequence[Enum], moves: Moves) -> str:
    """Draw the states on an ellipse, and one arrow for all inputs between the same two."""
    at = {state: _place(number, len(states)) for number, state in enumerate(states)}
    edges: dict[tuple[Enum, Enum], list[str]] = {}
    for (before, what), after in moves.items():
        edges.setdefault((before, after), []).append(what.name)
    arrows = [_arrow(at, before, after, labels) for (before, after), labels in edges.items()]
    parts = [
        *(_path(path) for path, _, _ in arrows),
        *(_label(centre, labels) for _, centre, labels in arrows),
        *(_box(at[state], state.name) for state in states),
    ]
    return (
        f'<figure class="state-machine"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'aria-label="The moves of the table above, drawn as arrows" '
        'style="width:100%;font:11px monospace;color:inherit" fill="currentColor">'
        '<defs><marker id="state-machine-tip" viewBox="0 0 8 8" refX="8" refY="4" '
        'markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
        f"{''.join(parts)}</svg></figure>"
    )


def _place(number: int, total: int) -> Point:
    angle = 2 * math.pi * number / total - math.pi / 2
    return _WIDTH / 2 + 320 * math.cos(angle), _HEIGHT / 2 + 270 * math.sin(angle)


def _arrow(
    at: Mapping[Enum, Point], before: Enum, after: Enum, labels: Sequence[str]
) -> tuple[str, Point, Sequence[str]]:
    """Say how an arrow runs, and where its labels stand."""
    if before is after:
        return *_loop(at[before], len(labels)), labels
    start, bend, end = _curve(at[before], at[after])
    path = f"M{start[0]:.0f} {start[1]:.0f} Q{bend[0]:.0f} {bend[1]:.0f} {end[0]:.0f} {end[1]:.0f}"
    # Nearer to where it comes from: an arrow back has its label at the other end.
    return path, _on_curve(start, bend, end, 0.4), labels


def _curve(start: Point, end: Point) -> tuple[Point, Point, Point]:
    """Bend to the right, so that there and back are two arrows; begin and end at the boxes."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    bend = (
        (start[0] + end[0]) / 2 - dy / length * 45,
        (start[1] + end[1]) / 2 + dx / length * 45,
    )
    return _border(start, bend), bend, _border(end, bend)


def _border(box: Point, toward: Point) -> Point:
    """Find where the line from a box's centre leaves the box."""
    dx, dy = toward[0] - box[0], toward[1] - box[1]
    scale = min(
        (_BOX[0] / 2 + 4) / abs(dx) if dx else math.inf,
        (_BOX[1] / 2 + 4) / abs(dy) if dy else math.inf,
    )
    return box[0] + dx * scale, box[1] + dy * scale


def _on_curve(start: Point, bend: Point, end: Point, t: float) -> Point:
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
    return (
        a * start[0] + b * bend[0] + c * end[0],
        a * start[1] + b * bend[1] + c * end[1],
    )


def _loop(box: Point, labels: int) -> tuple[str, Point]:
    """Run an arrow from a box to itself, on its outer side."""
    x, y = box
    side = -1 if y <= _HEIGHT / 2 else 1
    edge, far = y + side * (_BOX[1] / 2 + 2), y + side * (_BOX[1] / 2 + 44)
    path = (
        f"M{x - 22:.0f} {edge:.0f} C{x - 34:.0f} {far:.0f} "
        f"{x + 34:.0f} {far:.0f} {x + 22:.0f} {edge:.0f}"
    )
    return path, (x, far + side * (labels - 1) * _LINE / 2)


def _path(path: str) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="currentColor" opacity="0.6" '
        'marker-end="url(#state-machine-tip)"/>'
    )


def _box(centre: Point, name: str) -> str:
    (x, y), (width, height) = centre, _BOX
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width}" '
        f'height="{height}" rx="8" fill="none" stroke="currentColor" stroke-width="2"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-weight="bold">'
        f"{html.escape(name)}</text>"
    )


def _label(centre: Point, labels: Sequence[str]) -> str:
    top = centre[1] - (len(labels) - 1) * _LINE / 2 + 4
    return "".join(
        f'<text x="{centre[0]:.0f}" y="{top + number * _LINE:.0f}" text-anchor="middle" '
        'stroke="var(--color-background-primary, white)" stroke-width="5" '
        f'paint-order="stroke">{html.escape(label)}</text>'
        for number, label in enumerate(labels)
    )


def setup(app: Sphinx) -> ExtensionMetadata:
    """Tell Sphinx of the directive."""
    app.add_directive("state-machine", StateMachine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
