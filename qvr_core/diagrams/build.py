"""From the typed model to the graph of one let, program or morphism."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.diagrams import program_steps
from qvr_core.diagrams.arrows import expand
from qvr_core.diagrams.budget import MOST_BESIDE, Budget
from qvr_core.diagrams.chosen import arrow_named, main_name
from qvr_core.diagrams.collapse import collapsed
from qvr_core.diagrams.drawing import Bundle, Drawing, End, spread
from qvr_core.diagrams.fold import folded
from qvr_core.diagrams.graph import Diagram, Node, Sheet, mark_shared, put
from qvr_core.diagrams.labels import arrow_type, caption
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Named, factor_count
from qvr_core.syntax.placing import units_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

LIMIT = 150
"""Above this many nodes, frames are collapsed."""


def build(
    source: Snapshot | Model,
    name: str | None = None,
    *,
    collapse: bool = True,
    opened: Collection[str] = (),
    fold: bool = False,
) -> Diagram:
    """The diagram of a let, program or morphism; without a name, of the file's first export.

    With `collapse`, frames stand as one node while there are more than 150 nodes, but for those in `opened`.  Without
    it, those do that would make it more than `budget.MOST_NODES`.  With `fold`, long chains stand as their two ends.
    Raises `NoDiagram` with a message for the user.
    """
    model = source if isinstance(source, Model) else source.model
    name = main_name(model) if name is None else name
    graph = Diagram()
    drawing = Drawing(model, graph, Budget(model), opened, program_steps.run, program_steps.computed)
    drawing.written = {} if isinstance(source, Model) else steps_written(source)
    if name in model.programs:
        sheet = draw_program(drawing, model.programs[name])
    else:
        sheet = draw_arrow(drawing, name, arrow_named(model, name))
    drawing.mark_places()
    mark_shared(graph)
    graph.sheet = replace(sheet, boxes=tuple(drawing.boxes.values()), collapsed=tuple(drawing.shut))
    small = collapsed(graph, LIMIT, opened) if collapse else graph
    return folded(small, opened) if fold else small


def steps_written(snapshot: Snapshot) -> dict[int, object]:
    """The tree of each step with indices, by its unit: diagrams show those as they are written."""
    units = (placed for statement in snapshot.statements for placed in units_of(statement))
    return {placed.uid: placed.unit.node for placed in units if getattr(placed.unit.node, "binders", ())}


def draw_arrow(drawing: Drawing, name: str, arrow: Arrow) -> Sheet:
    kind = "let" if name in drawing.model.lets else "morphism"
    origin = drawing.model.lets[name].origin if kind == "let" else arrow.origin
    ends = expand(drawing, arrow, inputs(drawing, arrow.domain, origin))
    node = drawing.add(Node(id=arrow.codomain.written, kind="output", label=arrow.codomain.written, origin=origin))
    drawing.wire(ends, node)
    return Sheet(name, kind, arrow_type(arrow))


def inputs(drawing: Drawing, domain: Named, origin: Origin) -> Bundle:
    """One node per factor of the domain."""
    ends: list[End] = []
    for space in spread(domain) if factor_count(domain.space) <= MOST_BESIDE else [domain]:
        node = drawing.add(
            Node(id=space.written, kind="input", label=space.written, detail=caption(space), origin=origin)
        )
        ends.append(End(node, space))
    return tuple(ends)


def draw_program(drawing: Drawing, program: Program) -> Sheet:
    sheet = Sheet(program.name, "program", arrow_type(program))
    drawing.following = (program.name,)
    ends = program_steps.run(drawing, program, program_inputs(drawing, program))
    unfinished: list[End] = []
    for end in ends:
        node = drawing.node(end.node)
        if node.kind in ("site", "let") and end.site in (None, node.label):
            put(drawing.graph, replace(node, returned=True))
        else:
            unfinished.append(end)
    if unfinished:
        label = ", ".join(dict.fromkeys(end.site or end.space.written for end in unfinished))
        node = drawing.add(Node(id=f"return_{program.name}", kind="output", label=label, origin=program.origin))
        drawing.wire(tuple(unfinished), node)
    return sheet


def program_inputs(drawing: Drawing, program: Program) -> Bundle:
    """Named inputs by their names, unnamed ones by their spaces; none where the body never reads them."""
    if not program.uses_input:
        return ()
    if not program.inputs or any(given.name is None for given in program.inputs):
        return inputs(drawing, program.domain, program.origin)
    ends: list[End] = []
    for given in program.inputs:
        name = given.name or given.space.written
        node = drawing.add(Node(id=name, kind="input", label=name, detail=caption(given.space), origin=program.origin))
        ends.append(End(node, given.space))
    return tuple(ends)
