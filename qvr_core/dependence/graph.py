"""From the typed model of a program to its dependence graph."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from qvr_core.semantics.language.truncated import family_words
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.chain_starts import written_in
from qvr_core.semantics.types.counted import counted, in_file
from qvr_core.semantics.types.model.arrows import Arrow, ArrowBase, Ref
from qvr_core.semantics.types.model.expressions import (
    Bound,
    Data,
    Expr,
    FactorTable,
    Function,
    Index,
    IndexValue,
    Solve,
    ValueType,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
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
from qvr_core.semantics.types.spaces import Finite, Space, factors_of
from qvr_core.semantics.types.walk import arrows_of, children, operands, values, walk

if TYPE_CHECKING:
    import networkx as nx

    Graph = nx.DiGraph[str]

LATENT, OBSERVED, PREDICTED, SUMMED = "latent", "observed", "predicted", "summed"
LET, PART, SCORE, DATA, INPUT, PARAM = "let", "part", "score", "data", "input", "param"
RANDOM = frozenset({LATENT, OBSERVED, PREDICTED, SUMMED})
DETERMINISTIC = frozenset({LET, PART})
ALL, FIRST, LATER = "all", "first", "later"
GIVEN = frozenset({DATA, INPUT, SCORE})
"""What is known whatever is asked: what comes from outside, and scores, which are observed."""


def dependence_graph(program: Program, model: Model) -> Graph:
    """The dependence graph of a program of `model`.

    A node is a name, with all of its elements.  Its `kind` is 'latent', 'observed', 'predicted', 'summed' (by
    `marginalize`), 'let', 'part' (a name of several that one draw binds), 'score', 'data', 'input' or 'param' (of a
    guide); `plates` are the sets that it runs over, `family` is that of a draw, and `returned` says whether the program
    returns it.  An edge a → b says that b reads a: its `lags` are how many elements earlier (0: the same element, or
    all of them), and its `elements` which of b's do, the 'first' of a chain, its 'later' ones, or 'all'; `gathered`
    says that an expression chooses what is read.  Earlier elements of a name itself are an edge from it to itself.
    Random variables that the file declares, such as weights with a prior, are nodes where the program uses them.
    """
    import networkx as nx

    graph: Graph = nx.DiGraph(name=program.name)
    inputs = program.inputs if program.uses_input else ()
    for given in inputs:
        add(graph, given.name or "input", INPUT, _sets([given.space.space]))
    for data in (one for one in program.data if not one.inside):
        add(graph, data.name, DATA, tuple(space.nominal or "" for space in data.over) or _plates_of(data.type))
    _Reader(graph, model, tuple(given.name or "input" for given in inputs)).take(program.steps)
    for _, name in program.returns:
        if graph.has_node(name):
            graph.nodes[name]["returned"] = True
    return graph


class NoAnswer(Exception):
    """A question about a name that the program has not, or that says nothing there."""


def add(graph: Graph, name: str, kind: str, plates: Iterable[str] = (), family: str = "") -> None:
    graph.add_node(name, kind=kind, plates=tuple(filter(None, plates)), family=family, returned=False)


def is_site(graph: Graph, name: str) -> bool:
    """Whether a name is drawn."""
    return graph.has_node(name) and graph.nodes[name]["kind"] in RANDOM


def of_kind(graph: nx.DiGraph[Any], kinds: Iterable[str]) -> set[Any]:
    """The nodes of these kinds."""
    wanted = frozenset(kinds)
    return {node for node in graph if graph.nodes[node]["kind"] in wanted}


class _Reader:
    """Takes the steps of one program into its graph."""

    def __init__(self, graph: Graph, model: Model, inputs: tuple[str, ...]) -> None:
        self.graph, self.model, self.inputs = graph, model, inputs

    def take(self, steps: Iterable[StepModel]) -> None:
        steps = tuple(steps)
        # What is observed may be read above: every name stands before it is read.
        for step in steps:
            self._bind(step)
        for step in steps:
            self._connect(step)

    def _bind(self, step: StepModel) -> None:
        graph = self.graph
        match step:
            case SampleModel(site=site):
                self._site(site, LATENT)
            case ObserveModel(site=site):
                self._site(site, OBSERVED)
            case PredictModel(site=site):
                self._site(site, PREDICTED)
            case MarginalizeModel(site=site, body=body):
                self._site(site, SUMMED)
                for inner in body:
                    self._bind(inner)
            case LetModel(names=names, value=value, indexed=indexed):
                over = _plates_of(value.type) if indexed is None else _sets(each.space for each in indexed.indices)
                for name in names:
                    add(graph, name, LET, over)
            case ParamModel(names=names, type=kind):
                for name in names:
                    add(graph, name, PARAM, _plates_of(kind))
            case ScoreModel(name=name, indices=indices):
                add(graph, name, SCORE, _sets(each.space for each in indices))

    def _site(self, site: Site, kind: str) -> None:
        draw = site.draw
        family = family_words(draw.family) if isinstance(draw, FamilyDraw) else ""
        add(self.graph, site.name, kind, plates(site), family)
        for name, _ in site.bound:
            if name != site.name:
                add(self.graph, name, PART, plates(site))
                self._edge(site.name, name, 0)
        for name, word in self._inside(site):
            add(self.graph, name, word, plates(site))

    def _inside(self, site: Site) -> list[tuple[str, str]]:
        """What programs in a site's arrow score and observe, which ties together what the arrow reads and gives."""
        inside = counted(site.draw.arrow, in_file(self.model)) if isinstance(site.draw, ArrowDraw) else ()
        return [(f"{site.name}.{one.name}", OBSERVED if one.word == "observe" else SCORE) for one in inside]

    def _connect(self, step: StepModel) -> None:
        match step:
            case LetModel(names=names, indexed=IndexedValue(values=each, starts=starts)):
                for k, name in enumerate(names):
                    first = starts[k] if k < len(starts) else ()
                    self._read(name, first, FIRST)
                    self._read(name, (each[k],), LATER if first else ALL)
                self._declared(step, names)
            case LetModel(names=names):
                for name in names:
                    self._read(name, values(step))
                self._declared(step, names)
            case ScoreModel(name=name):
                self._read(name, values(step))
                self._declared(step, (name,))
            case MarginalizeModel(site=site, body=body):
                self._draw(site)
                for inner in body:
                    self._connect(inner)
                for inner, places in zip(body, step.reads or (), strict=False):
                    if isinstance(inner, ObserveModel | MarginalizeModel):
                        self._read(inner.site.name, places)
                        self._edge(site.name, inner.site.name, 0)
            case SampleModel(site=site) | ObserveModel(site=site) | PredictModel(site=site):
                self._draw(site)
            case ParamModel():
                pass

    def _draw(self, site: Site) -> None:
        step = SampleModel(site=site)
        for name, _ in self._inside(site):
            self._read(name, values(step))
            self._declared(step, (name,))
            self._edge(site.name, name, 0)
            for source in self.inputs if isinstance(site.draw, ArrowDraw) and site.draw.args is None else ():
                self._edge(source, name, 0)
        first = written_in(site.chain.start) if site.chain is not None else ()
        drawn = site.draw.args if isinstance(site.draw, FamilyDraw) and first else ()
        later = tuple(value for _, value in drawn)
        self._read(site.name, first, FIRST)
        self._read(site.name, later, LATER)
        self._read(site.name, (value for value in values(step) if not _among(value, (*first, *later))))
        self._declared(step, (site.name,))
        if isinstance(site.draw, ArrowDraw) and site.draw.args is None:
            for name in self.inputs:
                self._edge(name, site.name, 0)

    def _read(self, name: str, exprs: Iterable[Expr], elements: str = ALL) -> None:
        for expr in exprs:
            for source, lag, gathered in _places_read(expr, frozenset()):
                self._edge(source, name, lag, elements, gathered)

    def _declared(self, step: LetModel | ScoreModel | SampleModel, names: Iterable[str]) -> None:
        """The random variables of the file that stand in a step's arrows."""
        for found in _variables(step, self.model, self.graph, set()):
            if found not in self.graph:
                add(self.graph, found, LATENT)
            for each in names:
                self._edge(found, each, 0)

    def _edge(self, source: str, target: str, lag: int, elements: str = ALL, gathered: bool = False) -> None:
        graph = self.graph
        if source == target and gathered:
            lag = max(lag, 1)  # no element reads itself or a later one
        if source not in graph or (source == target and lag == 0):
            return  # the number of elements of a set, a parameter of a template
        known: dict[str, Any] = graph.edges[source, target] if graph.has_edge(source, target) else {}
        graph.add_edge(
            source,
            target,
            lags=tuple(sorted({*known.get("lags", ()), lag})),
            elements=elements if known.get("elements", elements) == elements else ALL,
            gathered=gathered or known.get("gathered", False),
        )


def _among(value: Expr, others: Iterable[Expr]) -> bool:
    return any(value is other for other in others)


def plates(site: Site) -> tuple[str, ...]:
    """The sets that a site runs over."""
    if site.indices:
        return _sets(index.space for index in site.indices)
    return () if site.plate is None else (site.plate.written,)


def _sets(spaces: Iterable[Space]) -> tuple[str, ...]:
    factors = (factor for space in spaces for factor in factors_of(space))
    return tuple(factor.nominal or "" for factor in factors if isinstance(factor, Finite))


def _plates_of(kind: ValueType) -> tuple[str, ...]:
    return tuple(set_of(name) for name in kind.indexed if name is not None)


def reads(step: StepModel, model: Model, names: Container[str]) -> set[str]:
    """What a step reads of `names`: where its edges in the graph come from, without a graph."""
    read = {name for expr in values(step) for name, _, _ in _places_read(expr, frozenset())}
    return {name for name in (*read, *_variables(step, model, names, set())) if name in names}


def _variables(node: StepModel | Arrow | Program, model: Model, known: Container[str], seen: set[str]) -> Iterator[str]:
    """Names of arrows that are `known` or have a prior: sites of weights, and latent tensors."""
    below = arrows_of(node) if not isinstance(node, ArrowBase) else (node,)
    for arrow in below:
        for part in walk(arrow, children):
            name = part.name if isinstance(part, Ref) else None
            if name is None or name in seen:
                continue
            seen.add(name)
            declared = model.arrows.get(name)
            if name in known or getattr(declared, "prior", None) is not None:
                yield name
            elif declared is None and name in model.lets:
                yield from _variables(model.lets[name].arrow, model, known, seen)
            elif declared is None and name in model.programs:
                yield from _variables(model.programs[name], model, known, seen)


def _places_read(expr: Expr, hidden: frozenset[str]) -> Iterator[tuple[str, int, bool]]:
    """The names that an expression reads, how many elements earlier, and whether it chooses the elements; `hidden` are
    its own variables."""
    match expr:
        case Bound(name=name) | Data(name=name):
            if name not in hidden:
                yield name, 0, False
        case IndexValue(name=name):
            # all the values of what is summed out, along an axis of its own
            if "#" in name:
                yield name.partition("#")[2], 0, False
        case Window():
            back, inner = 0, expr
            while isinstance(inner, Window):
                back, inner = back + inner.shift, inner.base
            for name, lag, gathered in _places_read(inner, hidden):
                yield name, lag + back, gathered
        case Index(base=base, indices=indices):
            yield from ((name, lag, True) for name, lag, _ in _places_read(base, hidden))
            for index in indices:
                yield from _places_read(index, hidden)
        case FactorTable(indices=indices):
            for part in operands(expr):
                yield from _places_read(part, hidden | {name for name, _ in indices})
        case Solve(names=names):
            for part in operands(expr):
                yield from _places_read(part, hidden | set(names))
        case Function(parameter=parameter, body=body):
            yield from _places_read(body, hidden | {parameter})
        case _:
            for part in operands(expr):
                yield from _places_read(part, hidden)
