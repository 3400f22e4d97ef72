"""Encoders and decoders drawn: a frame of their cases."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from qvr_core.diagrams.drawing import Bundle, Drawing, End
from qvr_core.diagrams.graph import Box, Node, Wire, connect
from qvr_core.diagrams.labels import arrow_type
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.terms import Decoder, Encoder
from qvr_core.semantics.types.spaces import Named, Terms
from qvr_core.semantics.types.type_text import structure


def term_arrow(drawing: Drawing, arrow: Encoder | Decoder, bundle: Bundle, place: Origin | None) -> Bundle:
    """A frame with the cases beside each other: each is the constructor with what stands below it, and its arrows."""
    box = Box(id=arrow.name, kind="scan", label=f"{arrow.name}: a case a constructor", origin=arrow.origin)
    if isinstance(arrow, Decoder):
        return drawing.framed(box, arrow, bundle, partial(decoder_cases, drawing, arrow, bundle, place))
    return drawing.framed(box, arrow, bundle, partial(encoder_cases, drawing, arrow, bundle, place))


def _whole(drawing: Drawing, arrow: Encoder | Decoder) -> str:
    drawn = arrow.sort.value
    node = Node(
        id=arrow.name, kind="operator", label=arrow.name, detail=arrow_type(arrow), origin=arrow.origin, sort=drawn
    )
    return drawing.add(node)


def encoder_cases(drawing: Drawing, arrow: Encoder, bundle: Bundle, place: Origin | None) -> Bundle:
    """The cases, between the term that one of them reads and the numbers that it gives."""
    out = _whole(drawing, arrow)
    places = dict(arrow.domain.space.constructors) if isinstance(arrow.domain.space, Terms) else {}
    for case in arrow.cases:
        label = f"{case.constructor}({', '.join(case.parameters)})" if case.parameters else case.constructor
        node = drawing.add(Node(id=case.constructor, kind="operator", label=label, origin=case.origin))
        drawing.wire(bundle, node, place=place)
        spaces = [arrow.codomain if one is None else Named(one, structure(one)) for one in places[case.constructor]]
        bound = {name: (End(node, space, name),) for name, space in zip(case.parameters, spaces, strict=True)}
        ends = drawing.expand_value(drawing, case.body, bound)
        drawing.wire(tuple(replace(end, space=arrow.codomain) for end in ends) if len(ends) == 1 else ends, out)
        if not case.parameters:
            for end in ends:
                connect(drawing.graph, node, end.node, Wire(label="", kind="index"))
    return (End(out, arrow.codomain),)


def decoder_cases(drawing: Drawing, arrow: Decoder, bundle: Bundle, place: Origin | None) -> Bundle:
    """What chooses a constructor, then the cases, between the state and the term that it becomes."""
    out = _whole(drawing, arrow)
    choice: Bundle = ()
    if arrow.choice is not None:
        state = arrow.choice.state
        label = f"{arrow.type}({state})"
        node = drawing.add(Node(id=arrow.type, kind="operator", label=label, origin=arrow.choice.origin))
        drawing.wire(bundle, node, place=place)
        choice = drawing.expand_value(drawing, arrow.choice.places[0], {state: (End(node, arrow.domain, state),)})
    written = {case.constructor: case for case in arrow.cases}
    for name, places in arrow.codomain.space.constructors if isinstance(arrow.codomain.space, Terms) else ():
        case = written.get(name)
        label, origin = (name, arrow.origin) if case is None else (f"{name}({case.state})", case.origin)
        node = drawing.add(Node(id=name, kind="operator", label=label, origin=origin))
        for end in choice:
            connect(drawing.graph, end.node, node, Wire(label="", kind="index"))
        if case is None:
            connect(drawing.graph, node, out, Wire(label="", kind="index"))
            continue
        drawing.wire(bundle, node, place=place)
        for value, space in zip(case.places, places, strict=True):
            ends = drawing.expand_value(drawing, value, {case.state: (End(node, arrow.domain, case.state),)})
            below = space is None and len(ends) == 1
            drawing.wire(tuple(replace(end, space=arrow.domain) for end in ends) if below else ends, out)
    return (End(out, arrow.codomain),)
