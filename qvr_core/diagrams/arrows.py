"""Arrow expressions as nodes and wires: one rule per node of the typed model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from qvr_core.diagrams.budget import MOST_BESIDE
from qvr_core.diagrams.drawing import Bundle, Drawing, End, misfit, split, spread
from qvr_core.diagrams.graph import Box, Node, Wire, connect
from qvr_core.diagrams.labels import arrow_name, arrow_type, caption, columns
from qvr_core.diagrams.term_cases import term_arrow
from qvr_core.semantics.scope.bounds import product_text
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Attention,
    BatchNorm,
    ChangeBase,
    Compose,
    Conv,
    Curry,
    Dagger,
    Damaged,
    DropFactors,
    Fan,
    Freeze,
    FromData,
    Identity,
    Instance,
    Kernel,
    Last,
    Lift,
    LinearMap,
    MeanOverTime,
    PartialTrace,
    Pool,
    Ref,
    Repeat,
    Residual,
    Scan,
    Sort,
    Stack,
    TakeFactor,
    Tensor,
)
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.terms import Decoder, Encoder
from qvr_core.semantics.types.spaces import Named, Seq, factors_of, is_unknown, product

MANY_COPIES = 6
"""`fan(f)` over more copies than this is one node `f × n`."""


def expand(drawing: Drawing, arrow: Arrow, bundle: Bundle, place: Origin | None = None) -> Bundle:
    """Draw `arrow` on the loose ends `bundle`; the loose ends of its result.  `place` is where the two meet."""
    match arrow:
        case Ref():
            return follow(drawing, arrow, bundle, place)
        case Instance(name=name, program=Program() as program):
            with drawing.used_at(arrow.origin):
                box = Box(id=name, kind="program", label=name)
                return drawing.framed(box, program, bundle, lambda: drawing.expand_program(drawing, program, bundle))
        case Lift(arrow=inner):
            ends = expand(drawing, inner, bundle, place)
            return (replace(ends[0], space=arrow.codomain),) if len(ends) == 1 else ends
        case Compose(stages=stages) if crowded(drawing, arrow, stages):
            return in_frames(drawing, arrow, bundle, place)
        case Compose(stages=stages, operators=operators):
            for stage, at in zip(stages, (place, *operators), strict=False):
                bundle = expand(drawing, stage, bundle, at)
            return bundle
        case Tensor(factors=factors) if crowded(drawing, arrow, factors):
            shares = split(bundle, [factor.domain for factor in factors])
            return beside_in_frames(drawing, arrow, factors, shares, place)
        case Tensor(factors=factors):
            shares = split(bundle, [factor.domain for factor in factors])
            return joined(expand(drawing, factor, share, place) for factor, share in zip(factors, shares, strict=True))
        case Fan(branches=branches, replicated=replicated):
            if replicated is not None and len(branches) > MANY_COPIES:
                return copies(drawing, arrow, replicated, bundle, place)
            if crowded(drawing, arrow, branches):
                return beside_in_frames(drawing, arrow, branches, [bundle] * len(branches), place)
            return joined(expand(drawing, branch, bundle, place) for branch in branches)
        case Scan():
            return scan(drawing, arrow, bundle, place)
        case Stack(body=body, count=count):
            box = Box(id="stack", kind="stack", label=f"stack × {count}, fresh copies", origin=arrow.origin)
            with drawing.inside(box):
                return expand(drawing, body, bundle, place)
        case Repeat(body=body, count=count):
            times = "n_steps" if count is None else count
            box = Box(id="repeat", kind="repeat", label=f"repeat × {times}, same weights", origin=arrow.origin)
            with drawing.inside(box):
                return expand(drawing, body, bundle, place)
        case Residual(body=body):
            inner = expand(drawing, body, bundle, place)
            return operator(drawing, arrow, "+", "residual", (*bundle, *inner))
        case Identity():
            return bundle
        case Last() | MeanOverTime():
            name = "last" if isinstance(arrow, Last) else "mean_over_time"
            return operator(drawing, arrow, name, name, bundle)
        case TakeFactor(base=base, index=index, field=field):
            whole = expand(drawing, base, bundle, place)
            if len(whole) > index and len(whole) > 1:
                return (whole[index],)
            return operator(drawing, arrow, f".{field}", f"take_{field}", whole)
        case Freeze(base=base) | Dagger(base=base):
            return suffixed(drawing, arrow, base, type(arrow).__name__.lower(), bundle, place)
        case ChangeBase(base=base, transformation=name):
            return suffixed(drawing, arrow, base, f"change_base({name})", bundle, place)
        case Curry(base=base, left=left):
            return suffixed(drawing, arrow, base, "curry_left" if left else "curry_right", bundle, place)
        case PartialTrace(base=base, over=over):
            return suffixed(drawing, arrow, base, f"trace({over.written})", bundle, place)
        case DropFactors(base=base):
            return suffixed(drawing, arrow, base, "marginalize", bundle, place)
        case Encoder() | Decoder():
            return term_arrow(drawing, arrow, bundle, place)
        case FromData(source=source):
            return operator(drawing, arrow, f'from_data("{source}")', "from_data", bundle, kind="data")
        case Damaged():
            return operator(drawing, arrow, "?", "damaged", bundle, kind="damaged")
        case _:
            return leaf(drawing, arrow, arrow.origin, bundle, place)


def joined(bundles: Iterable[Bundle]) -> Bundle:
    return tuple(end for bundle in bundles for end in bundle)


def crowded(drawing: Drawing, arrow: Arrow, several: Sequence[Arrow]) -> bool:
    """Whether there are too many stages or branches to draw them all."""
    return len(several) > MOST_BESIDE and not drawing.budget.covers(arrow)


def sections(several: Sequence[Arrow]) -> Iterator[slice]:
    step = math.ceil(len(several) / MOST_BESIDE)
    return (slice(start, start + step) for start in range(0, len(several), step))


def in_frames(drawing: Drawing, arrow: Compose, bundle: Bundle, place: Origin | None) -> Bundle:
    """A long composite as frames of neighbouring stages."""
    for part in sections(arrow.stages):
        stages, operators = arrow.stages[part], arrow.operators[part.start : part.stop - 1]
        ends = {"domain": stages[0].domain, "codomain": stages[-1].codomain}
        section = replace(arrow, stages=stages, operators=operators, **ends)
        box = section_box("stages", part, stages)
        bundle = drawing.framed(box, section, bundle, partial(expand, drawing, section, bundle, place))
    return bundle


def beside_in_frames(
    drawing: Drawing,
    arrow: Tensor | Fan,
    several: Sequence[Arrow],
    shares: Sequence[Bundle],
    place: Origin | None,
) -> Bundle:
    """Many branches as frames of neighbouring ones."""
    made: list[End] = []
    for part in sections(several):
        branches, given = several[part], shares[part]
        codomains = [branch.codomain for branch in branches]
        space = product((None, codomain.space) for codomain in codomains)
        section = Fan(
            domain=arrow.domain,
            codomain=Named(space, product_text(codomains, space)),
            sort=arrow.sort,
            origin=arrow.origin,
            density=arrow.density,
            branches=tuple(branches),
            replicated=None,
        )
        made += drawing.framed(
            section_box("branches", part, branches),
            section,
            tuple(dict.fromkeys(joined(given))),
            partial(each, drawing, branches, given, place),
        )
    return tuple(made)


def each(drawing: Drawing, branches: Sequence[Arrow], shares: Sequence[Bundle], place: Origin | None) -> Bundle:
    return joined(expand(drawing, branch, share, place) for branch, share in zip(branches, shares, strict=True))


def section_box(what: str, part: slice, several: Sequence[Arrow]) -> Box:
    label = f"{what} {part.start + 1} to {part.start + len(several)}"
    return Box(id=what, kind="let", label=label, origin=several[0].origin)


def follow(drawing: Drawing, ref: Ref, bundle: Bundle, place: Origin | None) -> Bundle:
    """A name: a declared arrow is a node, a let and a program are drawn in its place."""
    name, model = ref.name, drawing.model
    if name in drawing.following:
        return operator(drawing, ref, name, name, bundle, kind="damaged")
    if name in model.arrows:
        return leaf(drawing, model.arrows[name], ref.origin, bundle, place)
    outer, drawing.following = drawing.following, (*drawing.following, name)
    try:
        with drawing.used_at(ref.origin):
            if name in model.lets:
                let = model.lets[name]
                box = Box(id=name, kind="let", label=name, origin=let.origin)
                return drawing.framed(box, let.arrow, bundle, lambda: expand(drawing, let.arrow, bundle, place))
            if name in model.term_arrows:
                return term_arrow(drawing, model.term_arrows[name], bundle, place)
            if name in model.programs:
                program = model.programs[name]
                box = Box(id=name, kind="program", label=name, origin=program.origin)
                return drawing.framed(box, program, bundle, lambda: drawing.expand_program(drawing, program, bundle))
    finally:
        drawing.following = outer
    return operator(drawing, ref, name, name, bundle, kind="damaged")


def leaf(
    drawing: Drawing, arrow: Arrow, use: Origin, bundle: Bundle, place: Origin | None, *, suffix: str = ""
) -> Bundle:
    """A declared arrow.  The same deterministic arrow on the same inputs is the same value, so it is the same node;
    a sampled one draws anew."""
    declared = arrow_name(arrow)
    key = drawing.key(declared, suffix, bundle)
    known = drawing.made.get(key) if arrow.sort is not Sort.SAMPLED else None
    node = known or drawing.add(
        Node(
            id=declared,
            kind="arrow",
            label=declared + suffix,
            note=arrow_note(arrow),
            detail=arrow_detail(arrow),
            origin=arrow.origin,
            declared=declared,
            sort=arrow.sort.value,
        )
    )
    drawing.made[key] = node
    drawing.mention(node, use, *drawing.uses)
    drawing.wire(bundle, node, wants=arrow.domain, place=place)
    return (End(node, arrow.codomain),)


def arrow_detail(arrow: Arrow) -> str:
    """`Embedded 64 -> Hidden 128 ~ Normal`."""
    match arrow:
        case Kernel(family=str() as family):
            return f"{arrow_type(arrow)} ~ {family}"
        case Attention(heads=heads, causal=causal):
            return f"{arrow_type(arrow)}, {heads} heads{', causal' if causal else ''}"
        case Conv(kernel=kernel) | Pool(kernel=kernel):
            return f"{arrow_type(arrow)}, window of {kernel}"
        case _:
            return arrow_type(arrow)


def arrow_note(arrow: Arrow) -> str:
    """What the arrow is, in a word or two."""
    match arrow:
        case Kernel(family=str() as family):
            return f"~ {family}"
        case Kernel():
            return "rows"
        case LinearMap():
            return "linear"
        case BatchNorm():
            return "batch norm"
        case Pool(reduce=reduce):
            return f"{reduce} pool"
        case _:
            return type(arrow).__name__.lower()


def operator(
    drawing: Drawing, arrow: Arrow, label: str, name: str, bundle: Bundle, *, kind: str = "operator"
) -> Bundle:
    """A node for something that has no weights of its own."""
    key = drawing.key(label, bundle)
    node = drawing.made.get(key) or drawing.add(
        Node(id=name, kind=kind, label=label, detail=arrow_type(arrow), origin=arrow.origin, sort=arrow.sort.value)
    )
    drawing.made[key] = node
    drawing.mention(node, *drawing.uses)
    drawing.wire(bundle, node)
    return (End(node, arrow.codomain),)


def suffixed(drawing: Drawing, arrow: Arrow, base: Arrow, suffix: str, bundle: Bundle, place: Origin | None) -> Bundle:
    """`f.dagger` of a declared arrow is one node; of a composite, a node after it."""
    if isinstance(base, Ref) and base.name in drawing.model.arrows:
        held = drawing.model.arrows[base.name]
        turned = replace(held, domain=arrow.domain, codomain=arrow.codomain)
        return leaf(drawing, turned, arrow.origin, bundle, place, suffix=f".{suffix}")
    return operator(drawing, arrow, f".{suffix}", "suffix", expand(drawing, base, bundle, place))


def copies(drawing: Drawing, fan: Fan, replicated: str, bundle: Bundle, place: Origin | None) -> Bundle:
    count = len(fan.branches)
    node = drawing.add(
        Node(
            id=replicated,
            kind="arrow",
            label=f"{replicated} × {count}",
            detail=arrow_type(fan),
            origin=fan.origin,
            declared=replicated,
            sort=fan.sort.value,
        )
    )
    drawing.mention(node, *drawing.uses)
    drawing.wire(bundle, node, wants=fan.domain, place=place)
    return (End(node, fan.codomain),)


def scan(drawing: Drawing, arrow: Scan, bundle: Bundle, place: Origin | None) -> Bundle:
    """A frame around the cell, whose result returns to it at the next step."""
    direction = "← from the end" if arrow.backward else "→"
    emits = ", every state" if arrow.emit_all else ""
    starts = ", learned start" if arrow.learned_init else ""
    label = f"scan {direction}{emits}{starts}"
    simple = is_declared(arrow.cell, drawing.model)
    with drawing.inside(Box(id="scan", kind="scan", label=label, origin=arrow.origin)), drawing.used_at(arrow.origin):
        if simple:
            (end,) = cell_node(drawing, arrow, bundle, place)
            if is_unknown(arrow.state.space):
                # the state does not match: what the cell makes is shown against what it reads
                held = drawing.model.arrows[arrow_name(arrow.cell)]
                wrong = misfit((end,), last_factors(held.domain, len(factors_of(held.codomain.space))))
                feedback(drawing, end.node, end.node, held.codomain, wrong)
                return (end,)
            feedback(drawing, end.node, end.node, arrow.state)
        else:
            state = drawing.add(Node(id="state", kind="state", label="state", detail=caption(arrow.state)))
            ends = expand(drawing, arrow.cell, (*bundle, End(state, arrow.state)), place)
            parts = spread(arrow.state)
            for end, part in zip(ends, parts if len(parts) == len(ends) else [arrow.state] * len(ends), strict=True):
                feedback(drawing, end.node, state, part)
            if arrow.emit_all:
                ends = tuple(replace(end, space=sequence_of(end.space)) for end in ends)
            return ends if len(ends) > 1 else (replace(ends[0], space=arrow.codomain),) if ends else ()
    return (replace(end, space=arrow.codomain),)


def sequence_of(named: Named) -> Named:
    return Named(Seq(named.space), f"Seq {named.written}")


def is_declared(arrow: Arrow, model: Model) -> bool:
    match arrow:
        case Ref(name=name):
            return name in model.arrows
        case Lift(arrow=inner):
            return is_declared(inner, model)
        case _:
            return False


def cell_node(drawing: Drawing, arrow: Scan, bundle: Bundle, place: Origin | None) -> Bundle:
    """A cell that is one declared arrow: its state comes by a wire of its own, so only the item is compared."""
    cell = arrow.cell.arrow if isinstance(arrow.cell, Lift) else arrow.cell
    assert isinstance(cell, Ref)
    held = drawing.model.arrows[cell.name]
    ends = leaf(drawing, replace(held, domain=arrow.item), cell.origin, bundle, place)
    node = drawing.node(ends[0].node)
    drawing.graph.nodes[node.id] = replace(node, detail=arrow_detail(held))
    return ends


def feedback(drawing: Drawing, source: str, target: str, state: Named, mismatch: str | None = None) -> None:
    label = caption(state) + (f"  ✗ {mismatch}" if mismatch else "")
    wire = Wire(label=label, space=state.written, width=columns(state.space), kind="state", mismatch=mismatch)
    connect(drawing.graph, source, target, wire)


def last_factors(named: Named, count: int) -> Named:
    """The last `count` factors of a product: what a cell reads as its state."""
    parts = spread(named)[-count:]
    return Named(product((part.written, part.space) for part in parts), " * ".join(part.written for part in parts))
