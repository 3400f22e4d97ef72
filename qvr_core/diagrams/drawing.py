"""The sheet while it is being drawn: nodes with unique ids, wires, and the box that new nodes fall into."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from qvr_core.diagrams.budget import MOST_NODES, Budget
from qvr_core.diagrams.graph import Box, Diagram, Node, Wire, connect, drawn_box, put
from qvr_core.diagrams.labels import caption, columns
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Named, Product, Seq, factors_of, item_of, product
from qvr_core.semantics.types.subspace import fit
from qvr_core.semantics.types.type_text import size_text, space_text


@dataclass(frozen=True, slots=True)
class End:
    """The loose end of a wire: the node that makes the value, and the value's space.  `site` is the name it got.

    `back` is how many elements earlier those are that are read of it.
    """

    node: str
    space: Named
    site: str | None = None
    back: int = 0


VALUES = frozenset({"site", "let", "data", "score", "output"})
"""Kinds of nodes that are values of a program."""

Bundle = tuple[End, ...]
"""A value: one loose end per factor that comes from a node of its own."""


@dataclass(slots=True)
class Drawing:
    model: Model
    graph: Diagram
    budget: Budget
    opened: Collection[str]
    """Frames to draw whatever they come to."""
    expand_program: Callable[[Drawing, Program, Bundle], Bundle]
    expand_value: Callable[[Drawing, Expr, Mapping[str, Bundle]], Bundle]
    boxes: dict[str, Box] = field(default_factory=dict[str, Box])
    box: str | None = None
    uses: tuple[Origin, ...] = ()
    """Where the arrow that is being drawn is used: outermost first."""
    made: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])
    places: dict[str, dict[Origin, None]] = field(default_factory=dict[str, "dict[Origin, None]"])
    taken: set[str] = field(default_factory=set[str])
    shut: list[str] = field(default_factory=list[str])
    """Frames that stand as one node since they would take too many."""
    following: tuple[str, ...] = ()
    """Lets and programs that are being expanded, so that a damaged cyclic model ends."""

    written: Mapping[int, object] = field(default_factory=dict[int, object])
    """The trees of the steps with indices by their units, where the text is at hand."""

    def node(self, wanted: str) -> Node:
        return self.graph.nodes[wanted]

    def fresh(self, wanted: str) -> str:
        name, copy = wanted, 1
        while name in self.taken:
            copy += 1
            name = f"{wanted}_{copy}"
        self.taken.add(name)
        return name

    def add(self, node: Node) -> str:
        """Add `node` under a fresh id, in the current box; its id."""
        self.budget.left -= 1
        return put(self.graph, replace(node, id=self.fresh(node.id), box=self.box)).id

    def mention(self, node: str, *origins: Origin | None) -> None:
        """Remember more places that `node` stands for."""
        self.places.setdefault(node, {}).update(dict.fromkeys(origin for origin in origins if origin is not None))

    def mark_places(self) -> None:
        """Give every node the places that were remembered for it."""
        for name, places in self.places.items():
            node = self.node(name)
            put(self.graph, replace(node, also=tuple(place for place in places if place != node.origin)))

    def wire(self, bundle: Bundle, target: str, *, wants: Named | None = None, place: Origin | None = None) -> None:
        """Wire every end of `bundle` to `target`; where together they do not fit what it `wants`, they are marked."""
        mismatch = None if wants is None else misfit(bundle, wants)
        for number, end in enumerate(bundle):
            made, taker = self.node(end.node), self.node(target)
            # between values a type says nothing: what a wire of a pipeline carries is what it is drawn for
            text = "" if made.kind in VALUES and taker.kind in VALUES else caption(end.space)
            named = end.site is not None and end.site != made.label
            label = f"{end.site} : {text}".rstrip(" :") if named else text
            if mismatch and number == 0:
                label = f"{label}  ✗ {mismatch}"
            if end.back:
                label = f"{label}  {end.back} back".strip()
            wire = Wire(
                label=label,
                space=end.space.written,
                width=columns(end.space.space),
                kind="state" if end.back else "value",
                origin=place,
                mismatch=mismatch,
            )
            if wire not in self.graph.between(end.node, target):
                connect(self.graph, end.node, target, wire)

    def framed(self, box: Box, arrow: Arrow | Program, bundle: Bundle, draw: Callable[[], Bundle]) -> Bundle:
        """What `draw` draws of `arrow`, in a frame; where that would be too much, a node that says how much it is."""
        name, count = self.fresh(box.id), self.budget.count(arrow)
        if name in self.opened:
            self.budget.left = max(self.budget.left, MOST_NODES)
        elif count > self.budget.left:
            detail = f"{count:,} nodes, click to open"
            self.budget.left -= 1
            put(self.graph, Node(id=name, kind="box", label=box.label, detail=detail, origin=box.origin, box=self.box))
            self.shut.append(name)
            self.wire(bundle, name)
            return (End(name, arrow.codomain),)
        with self._entered(name, box):
            return draw()

    @contextmanager
    def inside(self, box: Box) -> Generator[str]:
        """Draw into a new box."""
        name = self.fresh(box.id)
        with self._entered(name, box):
            yield name

    @contextmanager
    def _entered(self, name: str, box: Box) -> Generator[None]:
        self.boxes[name] = replace(box, id=name, parent=self.box)
        with self.within(name):
            yield

    @contextmanager
    def within(self, box: str | None) -> Generator[None]:
        """Draw into a box that exists."""
        outer, self.box = self.box, box
        try:
            yield
        finally:
            self.box = outer

    @contextmanager
    def used_at(self, origin: Origin) -> Generator[None]:
        outer = self.uses
        self.uses = (*outer, origin)
        try:
            yield
        finally:
            self.uses = outer

    def key(self, *parts: object) -> tuple[object, ...]:
        """Equal keys in one frame are one node."""
        return (drawn_box(self.box, self.boxes), *parts)


def split(bundle: Bundle, parts: Sequence[Named]) -> list[Bundle]:
    """Share a bundle out among `parts` of a product: by factors, else by width; otherwise each part gets it whole."""
    counts = [len(factors_of(item_of(part.space))) for part in parts]
    if sum(counts) == len(bundle):
        return taken(bundle, counts)
    single = tuple(End(end.node, factor, end.site) for end in bundle for factor in spread(end.space))
    if sum(counts) == len(single):
        return taken(single, counts)
    if len(parts) == len(bundle):
        return [(end,) for end in bundle]
    wanted, found = [columns(part.space) for part in parts], [columns(end.space.space) for end in bundle]
    shares = by_width(wanted, found)
    return taken(bundle, shares) if shares else [bundle for _ in parts]


def spread(named: Named) -> list[Named]:
    """The factors of a product by their names."""
    match named.space:
        case Product(factors=factors, names=names):
            return [
                Named(factor, name or f"{named.written}.{index}")
                for index, (factor, name) in enumerate(zip(factors, names, strict=True))
            ]
        case Seq(item=Product(factors=factors, names=names)):
            return [
                Named(Seq(factor), f"Seq {name or index}")
                for index, (factor, name) in enumerate(zip(factors, names, strict=True))
            ]
        case _:
            return [named]


def taken(bundle: Bundle, counts: Sequence[int]) -> list[Bundle]:
    shares: list[Bundle] = []
    start = 0
    for count in counts:
        shares.append(bundle[start : start + count])
        start += count
    return shares


def by_width(wanted: Sequence[int | None], found: Sequence[int | None]) -> list[int] | None:
    """How many ends each part takes where their widths add up exactly; None where they do not."""
    shares: list[int] = []
    at = 0
    for want in wanted:
        total, start = 0, at
        while want is not None and total < want and at < len(found):
            total += found[at] or 0
            at += 1
        if total != want:
            return None
        shares.append(at - start)
    return shares if at == len(found) else None


def misfit(bundle: Bundle, wants: Named) -> str | None:
    """What does not fit between a bundle and the space that takes it; None where it fits or is unknown.

    Lifting to sequences is the checker's business: only single positions are compared.
    """
    if not bundle:
        return None
    given = product((end.space.written, item_of(end.space.space)) for end in bundle)
    verdict = fit(given, item_of(wants.space))
    if verdict.problem is None and verdict.widths != "wrong":
        return None
    return verdict.problem or f"{size_text(given)} does not fit {space_text(wants)}"
