"""A program as nodes and wires: sites, lets and data around the arrows that its steps draw from."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from qvr_core.diagrams import plates
from qvr_core.diagrams.arrows import expand
from qvr_core.diagrams.drawing import Bundle, Drawing, End, split, spread
from qvr_core.diagrams.graph import Box, Node, Wire, connect, put
from qvr_core.diagrams.labels import caption, draw_text, expression, short
from qvr_core.diagrams.plates import Plates
from qvr_core.semantics.types.chain_starts import written_in
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Bound,
    Constant,
    Data,
    Expr,
    FactorTable,
    Function,
    IndexValue,
    Matrix,
    Solve,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Named, Unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import operands, sites
from qvr_core.semantics.types.walk import values as operations
from qvr_core.syntax.tree.steps import LetStep, MarginalizeStep, ObserveStep, PredictStep, SampleStep
from qvr_core.syntax.tree_to_text import to_text

DRAWS = (SampleStep, ObserveStep, PredictStep, MarginalizeStep)


@dataclass(slots=True)
class Scope:
    """Names bound so far, and the frames of the plates, which collect the sites of one plate."""

    drawing: Drawing
    input: Bundle
    bound: dict[str, Bundle] = field(default_factory=dict[str, Bundle])
    plates: Plates = field(init=False)
    ahead: frozenset[str] = frozenset()
    """Names that are observed: steps above may read them, and then their nodes stand already."""
    standing: dict[str, str] = field(default_factory=dict[str, str])
    given: dict[str, DataName] = field(default_factory=dict[str, DataName])
    """What is known of the data that are read."""

    def __post_init__(self) -> None:
        self.plates = Plates(self.drawing)


def run(drawing: Drawing, program: Program, bundle: Bundle) -> Bundle:
    """Draw the body of `program` on `bundle`; the loose ends of what it returns."""
    ahead = frozenset(site.name for site in sites(program.steps, ObserveModel))
    scope = Scope(drawing, bundle, ahead=ahead, given={one.name: one for one in program.data})
    named = [given for given in program.inputs if given.name is not None]
    if named and len(named) == len(program.inputs):
        shares = split(bundle, [given.space for given in named])
        scope.bound |= {given.name or "": share for given, share in zip(named, shares, strict=True)}
    before = set(drawing.graph.nodes)
    steps(scope, program.steps)
    if program.lengths is not None:
        pad(scope, program.lengths, set(drawing.graph.nodes) - before)
    return tuple(end for _, name in program.returns for end in scope.bound.get(name, ()))


def computed(drawing: Drawing, value: Expr, bound: Mapping[str, Bundle]) -> Bundle:
    """Arithmetic over names that are bound: an arrow is itself, anything else a node."""
    scope = Scope(drawing, (), dict(bound))
    ends = values(scope, value)
    if isinstance(value, Bound | Apply):
        return ends
    text = expression(value)
    made = Node(id="value", kind="let", label=short(text), detail=text, origin=value.origin)
    node = drawing.add(made)
    drawing.wire(ends, node)
    return (End(node, Named(value.type.space or Unknown(), ""), None),)


def pad(scope: Scope, lengths: Expr, drawn: set[str]) -> None:
    """The valid lengths go to every attention that the body has drawn."""
    looking = [name for name in sorted(drawn) if scope.drawing.node(name).note.startswith("attention")]
    for end in values(scope, lengths):
        for name in looking:
            connect(scope.drawing.graph, end.node, name, Wire(label=expression(lengths), kind="index"))


def steps(scope: Scope, body: Sequence[StepModel]) -> None:
    for index, step in enumerate(body):
        if scope.drawing.budget.left <= 0 and len(body) - index > 1:
            return left_out(scope, body[index:])
        match step:
            case SampleModel(site=site):
                sample(scope, site)
            case ObserveModel(site=site):
                with plate(scope, site):
                    ends = observed(scope, site)
                if site.of_let:
                    scope.drawing.wire(scope.bound.get(site.name, ()), ends[0].node)
                else:
                    scope.bound[site.name] = ends
            case PredictModel(site=site):
                sample(scope, site, "predicted")
            case MarginalizeModel():
                marginalize(scope, step)
            case LetModel():
                let(scope, step)
            case ParamModel():
                parameters(scope, step)
            case ScoreModel(name=name, value=value, origin=origin):
                text = expression(value)
                node = scope.drawing.add(
                    Node(id=name, kind="score", label=name, note=short(text), detail=text, origin=origin)
                )
                scope.drawing.wire(values(scope, value), node)
                scope.bound[name] = (End(node, unknown(), name),)


def parameters(scope: Scope, step: ParamModel) -> None:
    """What a guide learns without a network: a node without anything that goes into it."""
    kind = data_text(step.type)
    for name in step.names:
        detail = f"learned, {kind}"
        node = scope.drawing.add(
            Node(id=name, kind="let", label=name, note="learned", detail=detail, origin=step.origin)
        )
        scope.bound[name] = (End(node, step.named, name),)


def left_out(scope: Scope, body: Sequence[StepModel]) -> None:
    """One node for the steps that are too many to draw."""
    label = f"{len(body):,} more steps"
    node = scope.drawing.add(Node(id="more", kind="box", label=label, detail=label))
    for step in body:
        match step:
            case LetModel(names=names) | ParamModel(names=names):
                bound = names
            case ScoreModel(name=name):
                bound = (name,)
            case (
                SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site)
                | MarginalizeModel(site=site)
            ):  # fmt: skip
                bound = (site.name, *(name for name, _ in site.bound))
        scope.bound |= {name: (End(node, unknown(), name),) for name in bound}


def sample(scope: Scope, site: Site, role: str = "latent") -> None:
    """A draw from a named arrow names the wire that leaves the arrow; a draw from a family is a node."""
    drawing = scope.drawing
    if not isinstance(site.draw, ArrowDraw):
        with plate(scope, site):
            node = family_site(scope, site, role)
            bind(scope, site, (End(node, site.bound[0][1]),) if site.bound else ())
        return
    ends = drawn(scope, site.draw)
    for end in ends:
        node = drawing.node(end.node)
        if node.kind == "input":
            continue
        drawing.mention(node.id, site.origin)
        if node.site is None:
            drawing.graph.nodes[node.id] = replace(drawing.node(node.id), site=site.name)
    bind(scope, site, ends)


def bind(scope: Scope, site: Site, ends: Bundle) -> None:
    if len(site.bound) == 1:
        ((name, space),) = site.bound
        whole = (replace(ends[0], space=space),) if len(ends) == 1 else ends
        scope.bound[name] = tuple(replace(end, site=name) for end in whole)
        return
    for (name, space), share in zip(site.bound, split(ends, [space for _, space in site.bound]), strict=True):
        scope.bound[name] = tuple(End(end.node, space, name) for end in share)


def drawn(scope: Scope, draw: ArrowDraw) -> Bundle:
    given = scope.input if draw.args is None else values(scope, *draw.args)
    with scope.drawing.used_at(draw.origin):
        return expand(scope.drawing, draw.arrow, given, draw.origin)


def observed(scope: Scope, site: Site) -> Bundle:
    if not isinstance(site.draw, ArrowDraw):
        imputed = site.missing is not None and site.missing.how == "impute"
        return (End(family_site(scope, site, "imputed" if imputed else "observed"), site_space(site)),)
    ends = drawn(scope, site.draw)
    node = site_node(scope, site, "observed", detail="")
    scope.drawing.wire(ends, node)
    return (End(node, site_space(site)),)


def family_site(scope: Scope, site: Site, role: str) -> str:
    node = site_node(scope, site, role, detail=written_draw(scope.drawing, site))
    chain = site.chain
    given = [value for _, value in site.draw.args] if isinstance(site.draw, FamilyDraw) else []
    given += written_in(chain.start) if chain is not None else ()
    if given:
        scope.drawing.wire(tuple(end for end in values(scope, *given) if end.node != node), node)
    if chain is not None and (lag := chain.indices[chain.at].lag):
        looks_back(scope, node, lag)
    return node


def looks_back(scope: Scope, node: str, lag: int) -> None:
    """The wire from a node to itself: each element reads earlier ones."""
    connect(scope.drawing.graph, node, node, Wire(label=f"{lag} back", kind="state"))


def written_draw(drawing: Drawing, site: Site) -> str:
    """The draw of a step as its line writes it where the step has indices, else as the model has it."""
    step = drawing.written.get(site.origin.unit)
    return to_text(step.draw) if isinstance(step, DRAWS) and step.binders else draw_text(site.draw)


def site_node(scope: Scope, site: Site, role: str, detail: str) -> str:
    made = Node(
        id=site.name,
        kind="site",
        label=site.name,
        note=short(detail),
        detail=f"{role} {caption(site_space(site))}" + (f" ~ {detail}" if detail else ""),
        origin=site.origin,
        role=role,
    )
    node = scope.standing.pop(site.name, None)
    if node is None:
        node = scope.drawing.add(made)
    else:
        put(scope.drawing.graph, replace(made, id=node, box=scope.drawing.box))
    for index in (site.via, site.mask, site.weight, site.at, *(value for _, value in site.limits)):
        if index is not None:
            for end in values(scope, index):
                connect(scope.drawing.graph, end.node, node, Wire(label=expression(index), kind="index"))
    return node


def site_space(site: Site) -> Named:
    if len(site.bound) == 1:
        return site.bound[0][1]
    return site.element or site.plate or unknown()


def unknown() -> Named:
    return Named(Unknown(), "")


@contextmanager
def plate(scope: Scope, site: Site) -> Generator[None]:
    """The frame of the plate that `site` is drawn over: one for all that run over its sets."""
    over = plates.of_site(site)
    if not over:
        yield
        return
    with scope.drawing.within(scope.plates.frame(over, site.origin)):
        yield


def marginalize(scope: Scope, step: MarginalizeModel) -> None:
    """A frame around the summed-out name and everything that depends on it."""
    over = f", per {caption(step.over)}" if step.over else f", per row of {caption(step.rows)}" if step.rows else ""
    label = f"Σ over {step.site.name}{over}"
    box = Box(id=f"sum_{step.site.name}", kind="marginalize", label=label, origin=step.site.origin)
    with scope.drawing.inside(box):
        if isinstance(step.site.draw, ArrowDraw):
            ends = drawn(scope, step.site.draw)
            node = site_node(scope, step.site, "marginalized", detail="")
            scope.drawing.wire(ends, node)
        else:
            with plate(scope, step.site):
                node = family_site(scope, step.site, "marginalized")
        scope.bound[step.site.name] = (End(node, site_space(step.site), step.site.name),)
        steps(scope, step.body)
        places_read(scope, step)


def places_read(scope: Scope, step: MarginalizeModel) -> None:
    """Wires from what says which of the summed-out values each observed element reads."""
    for inner, places in zip(step.body, step.reads or (), strict=False):
        if not isinstance(inner, ObserveModel | MarginalizeModel):
            continue
        for place in places:
            for end in values(scope, place):
                target = scope.bound[inner.site.name][0].node
                connect(scope.drawing.graph, end.node, target, Wire(label=expression(place), kind="index"))


def let(scope: Scope, step: LetModel) -> None:
    """`let y = f(x)` is the arrow itself, `let y = x` another name; other arithmetic is a node."""
    drawing = scope.drawing
    if step.indexed is not None:
        return indexed_let(scope, step, step.indexed)
    match step.value:
        case Bound() | Apply() if len(step.names) == 1:
            ends = values(scope, step.value)
            for end in ends:
                drawing.mention(end.node, step.origin)
            scope.bound[step.names[0]] = tuple(replace(end, site=step.names[0]) for end in ends)
        case Apply(arrow=arrow):
            ends = values(scope, step.value)
            for end in ends:
                drawing.mention(end.node, step.origin)
            shares = split(ends, spread(arrow.codomain))
            if len(shares) != len(step.names):
                # a damaged arrow: nobody knows which part is whose
                shares = [ends for _ in step.names]
            for name, share in zip(step.names, shares, strict=True):
                scope.bound[name] = tuple(replace(end, site=name) for end in share)
        case _:
            label = ", ".join(step.names)
            text = expression(step.value)
            with drawing.within(scope.plates.known(step.value.type.indexed) or drawing.box):
                node = drawing.add(
                    Node(
                        id=step.names[0],
                        kind="let",
                        label=label,
                        note=short(text),
                        detail=f"{label} = {text}",
                        origin=step.origin,
                    )
                )
            drawing.wire(values(scope, step.value), node)
            space = step.value.type.space
            for name in step.names:
                kept = Named(space, structure(space)) if space is not None and len(step.names) == 1 else unknown()
                scope.bound[name] = (End(node, kept, name),)


def indexed_let(scope: Scope, step: LetModel, held: IndexedValue) -> None:
    """A node in the frames of its indices; one that reads itself has a wire to itself."""
    written = scope.drawing.written.get(step.origin.unit)
    text = to_text(written.value) if isinstance(written, LetStep) else ", ".join(map(expression, held.values))
    label = ", ".join(step.names)
    made = Node(
        id=step.names[0], kind="let", label=label, note=short(text), detail=f"{label} = {text}", origin=step.origin
    )
    with scope.drawing.within(scope.plates.frame(plates.of_indices(held), step.origin)):
        node = scope.drawing.add(made)
    scope.drawing.wire(values(scope, *operations(step)), node)
    if held.recursive:
        looks_back(scope, node, max(one.lag for one in held.indices))
    for name, value in zip(step.names, held.values, strict=True):
        space = value.type.space
        scope.bound[name] = (End(node, unknown() if space is None else Named(space, structure(space)), name),)


def values(scope: Scope, *exprs: Expr) -> Bundle:
    """The loose ends that arithmetic reads, each once, in the order of reading."""
    ends: dict[End, None] = {}
    for expr in exprs:
        for end in read(scope, expr, frozenset()):
            ends[end] = None
    return tuple(ends)


def read(scope: Scope, expr: Expr, hidden: frozenset[str]) -> Iterator[End]:
    """`hidden` are the variables of lambdas and factors around `expr`."""
    drawing = scope.drawing
    match expr:
        case Bound(name=name):
            if name not in hidden:
                yield from scope.bound.get(name, ())
        case Data(name=name) if name in drawing.model.objects:
            return  # the number of elements of a set
        case Data(name=name, origin=origin):
            yield data(scope, name, origin, expr.type.indexed)
        case IndexValue(name=name) if "#" in name:
            # all the values of what is summed out, along an axis of its own
            yield from scope.bound.get(name.partition("#")[2], ())
        case Apply(arrow=arrow, args=args):
            given = tuple(end for arg in args for end in argument(scope, arg, hidden))
            yield from expand(drawing, arrow, given, expr.origin)
        case Matrix(arrow=arrow):
            yield from expand(drawing, arrow, ())
        case Window(base=base, shift=shift) if shift > 0:
            # no cycle where each of two steps reads the other, one of them its earlier elements
            for end in read(scope, base, hidden):
                yield replace(end, back=shift)
        case FactorTable(indices=indices):
            inner = hidden | {name for name, _ in indices}
            for part in operands(expr):
                yield from read(scope, part, inner)
        case Solve(names=names):
            for part in operands(expr):
                yield from read(scope, part, hidden | set(names))
        case Function(parameter=parameter, body=body):
            yield from read(scope, body, hidden | {parameter})
        case _:
            for part in operands(expr):
                yield from read(scope, part, hidden)


def argument(scope: Scope, expr: Expr, hidden: frozenset[str]) -> Iterator[End]:
    """What an arrow is called with: arithmetic is one value, so it is a node, whatever it reads."""
    if isinstance(expr, Bound | Data | Apply | Matrix) or expr.type.space is None:
        yield from read(scope, expr, hidden)
        return
    drawing, text, space = scope.drawing, expression(expr), expr.type.space
    node = drawing.add(Node(id="value", kind="let", label=short(text), detail=text, origin=expr.origin))
    drawing.wire(tuple(dict.fromkeys(end for end in read(scope, expr, hidden))), node)
    # a whole number may stand for an element of a finite set
    whole = isinstance(expr, Constant) and isinstance(expr.value, int)
    yield End(node, unknown() if whole else Named(space, structure(space)))


def data(scope: Scope, name: str, origin: Origin, indexed: tuple[str | None, ...]) -> End:
    """One node for each data name, in the plates that it runs over."""
    drawing = scope.drawing
    if name in scope.ahead:
        if name not in scope.standing:
            scope.standing[name] = drawing.add(Node(id=name, kind="site", label=name, role="observed", origin=origin))
        return End(scope.standing[name], unknown(), name)
    key = ("data", name)
    if key not in drawing.made:
        known = scope.given.get(name)
        over = [plates.of_set(one) for one in known.over] if known is not None else []
        held = scope.plates.known((one.name for one in over) if over else indexed)
        if held is None and over:
            held = scope.plates.frame(over, origin)
        with drawing.within(held):
            drawing.made[key] = drawing.add(Node(id=name, kind="data", label=name, detail="data", origin=origin))
    drawing.mention(drawing.made[key], origin)
    return End(drawing.made[key], unknown())
