"""The log joint density of a case, one element at a time; hidden values are summed out by enumeration.

The density is a product of terms: one an element of each step.  A term notes which hidden cells it reads; terms that
share some form a component, which is summed over everything that its cells may be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, repeat

from tests.generator.elementary import Chance, Power, logsumexp
from tests.generator.expressions import Call, Def, Expr
from tests.generator.limits import limited
from tests.generator.sets import Place, Table, places
from tests.generator.steps import Case, Draw, Let, Marginalize, Score, Site
from tests.generator.vectors import Vec, vector_size

Cell = tuple[str, Place]
MOST = 20_000
"""Assignments of one component; more is a generator's fault."""
LIMITS = ("right_censored", "left_censored", "interval", "truncate_lower", "truncate_upper")


class NotThere(Exception):
    """An element does not count: masked, given by a lag, beyond the end of its chain, or it reads a missing cell of a
    step that drops them."""


@dataclass
class Term:
    """One factor of the density, and the hidden cells that it reads."""

    site: str
    place: Place
    density: Callable[[], float]
    reads: tuple[Cell, ...] = ()
    known: dict[Place, float] = field(default_factory=dict[Place, float])


@dataclass(frozen=True)
class Scored:
    """What a case says: the log density with the sum of its terms' sizes, and the terms of observed elements that read
    nothing hidden."""

    total: float
    size: float
    pointwise: dict[str, dict[Place, float]]
    silent: dict[str, set[Place]]
    """The observed elements that do not count, and those that are filled."""


@dataclass
class Body:
    """The scope of a function's body."""

    outer: Interpreter
    arguments: dict[str, float]
    index: dict[str, int] = field(default_factory=dict[str, int])

    def argument(self, name: str) -> float:
        return self.arguments[name]

    def function(self, name: str) -> Def:
        return self.outer.function(name)

    def calling(self, arguments: dict[str, float]) -> Body:
        return Body(self.outer, arguments)

    def cell(self, name: str, place: Place) -> float:
        raise KeyError(name)


class Interpreter:
    """Scores a case at one row of latents; where the observed values are `drawn`, none is censored."""

    def __init__(self, case: Case, latents: dict[str, Table], drawn: bool = False) -> None:
        self.case = case
        self.limits = LIMITS[3:] if drawn else LIMITS
        self.index: dict[str, int] = {}
        self.tables = {**case.data, **latents}
        self.defs = {each.name: each for each in case.defs}
        self.steps = case.all_steps()
        self.lets = {
            name: (step, k) for step in self.steps if isinstance(step, Let) for k, name in enumerate(step.names)
        }
        self.dropped = {s.name for s in self.steps if isinstance(s, Site) and "missing=drop" in s.words}
        self.hidden: dict[str, int] = {s.name: s.states for s in self.steps if isinstance(s, Marginalize)}
        self.gaps = {s.name: s for s in self.steps if isinstance(s, Site) and self._summed(s)}
        self.memo: dict[Cell, float] = {}
        self.assigned: dict[Cell, int] = {}
        self.reads: set[Cell] = set()

    @staticmethod
    def _summed(site: Site) -> bool:
        return "missing=impute" in site.words and site.draw.row.discrete

    # ------------------------------------------------------------ scope

    def function(self, name: str) -> Def:
        return self.defs[name]

    def argument(self, name: str) -> float:
        raise KeyError(name)

    def calling(self, arguments: dict[str, float]) -> Body:
        return Body(self, arguments)

    def cell(self, name: str, place: Place) -> float:
        if name in self.hidden:
            return self._assigned(name, place)
        if name in self.lets:
            return self._computed(name, place)
        value = self.tables[name].cells[place]
        if math.isnan(value):
            if name in self.dropped:
                raise NotThere
            if name in self.gaps:
                return self._assigned(name, place)
        return value

    def _assigned(self, name: str, place: Place) -> float:
        self.reads.add((name, place))
        return self.assigned.get((name, place), 0)

    def _computed(self, name: str, place: Place) -> float:
        """An element of a let, kept where nothing hidden is in it."""
        step, k = self.lets[name]
        if step.time is not None and len(set(step.lags)) > 1:
            # before its first elements those stand again
            at = step.binders.index(step.time)
            place = (*place[:at], place[at] + step.lags[k] * (place[at] < 0), *place[at + 1 :])
        known = self.memo.get((name, place))
        if known is not None:
            return known
        outer_index, outer_reads = self.index, self.reads
        self.index = {b.name: at for b, at in zip(step.binders, place, strict=True)}
        self.reads = set()
        try:
            if step.time is not None and self.index[step.time.name] < step.lags[k]:
                entry, at = step.start[k], self.index.pop(step.time.name)
                value = (entry[0] if len(entry) == 1 else entry[at]).value(self)
            else:
                value = step.bodies[k].value(self)
            if not self.reads:
                self.memo[name, place] = value
        finally:
            self.index = outer_index
            outer_reads |= self.reads
            self.reads = outer_reads
        return value

    # ------------------------------------------------------------ terms

    def terms(self) -> list[Term]:
        """All factors, in the order of the steps."""
        found: list[Term] = []
        for step in self.steps:
            if isinstance(step, Site):
                found += [Term(step.name, at, self._of_site(step, at)) for at in places(step.axes)]
            elif isinstance(step, Marginalize):
                axes = [b.over for b in step.binders]
                found += [Term(step.name, at, self._of_state(step, at)) for at in places(axes)]
            elif isinstance(step, Score):
                axes = [b.over for b in step.binders]
                found += [Term(step.name, at, self._of_score(step, at)) for at in places(axes)]
        return found

    def _of_score(self, step: Score, place: Place) -> Callable[[], float]:
        def density() -> float:
            self.index = {b.name: at for b, at in zip(step.binders, place, strict=True)}
            return step.value.value(self)

        return density

    def _of_state(self, step: Marginalize, place: Place) -> Callable[[], float]:
        def density() -> float:
            self.index = {b.name: at for b, at in zip(step.binders, place, strict=True)}
            draw = step.draw
            self._reached(step)
            if step.time is not None and self.index[step.time.name] == 0:
                draw = step.start[0]
                del self.index[step.time.name]
            return self._density(draw, self.cell(step.name, place))

        return density

    def _of_site(self, step: Site, place: Place) -> Callable[[], float]:
        def density() -> float:
            self.index = {b.name: at for b, at in zip(step.binders, place, strict=True)}
            draw = step.draw
            self._reached(step)
            weight = 1.0
            for key, option in step.options:
                if key == "mask" and not option.value(self):
                    raise NotThere
                if key == "weight":
                    weight = option.value(self)
            limits = {key: each.value(self) for key, each in step.options if key in self.limits}
            if step.time is not None and self.index[step.time.name] < step.lag:
                if not step.start:
                    raise NotThere
                at = self.index.pop(step.time.name)
                draw = step.start[0] if len(step.start) == 1 else step.start[at]
            return weight * self._of_value(step, draw, place, limits)

        return density

    def _reached(self, step: Site | Marginalize) -> None:
        """Raises `NotThere` beyond the end of a chain."""
        if step.lengths is not None and self.index[step.binders[-1].name] >= step.lengths.value(self):
            raise NotThere

    def _of_value(self, step: Site, draw: Draw, place: Place, limits: dict[str, float]) -> float:
        if not step.event:
            x = self.cell(step.name, place)
            return limited(draw.row, self._parameters(draw), x, limits) if limits else self._density(draw, x)
        vector = [self.cell(step.name, (*place, k)) for k in range(step.event)]
        if draw.row.support in ("simplex", "vector", "counts"):
            return draw.row.log_density(vector, *self._parameters(draw))
        each = math.fsum(self._density(draw, x) for x in vector)
        return each + (math.lgamma(step.event + 1.0) if step.shown.startswith("Ordered") else 0.0)

    def _parameters(self, draw: Draw) -> list[float]:
        # a declared family may have more arguments than the table says
        kinds = chain((kind for _, kind in draw.row.parameters), repeat(""))
        return [
            self._argument(each, kind, declared=bool(draw.called))
            for each, kind in zip(draw.arguments, kinds, strict=False)
        ]

    def _argument(self, each: Expr, kind: str, *, declared: bool) -> float:
        if kind == "unit":
            # a family of the file computes with the number that it is given
            if isinstance(each, Call) and each.function == "sigmoid" and not declared:
                return Chance(each.arguments[0].value(self))
            found = each.value(self)
            # a probability of which rounding left 0 or 1 says nothing
            return found if 0.0 < found < 1.0 else math.nan
        if kind == "positive" and isinstance(each, Call) and each.function == "exp" and not declared:
            return Power(each.arguments[0].value(self))
        return each.values(self) if isinstance(each, Vec) else each.value(self)  # pyright: ignore[reportReturnType]

    def _density(self, draw: Draw, x: float) -> float:
        return draw.row.log_density(x, *self._parameters(draw))

    # ------------------------------------------------------------ sums

    def meets_infinity(self) -> bool:
        """Whether an element of a let is infinite, as an empty logsumexp is, or no number, as an empty mean: 0 · ∞ is
        in the derivative of what reads it."""
        try:
            self.scored()
        except (OverflowError, ValueError, ZeroDivisionError):
            return True  # the least of nothing
        return not all(map(math.isfinite, self.memo.values()))

    def scored(self) -> Scored:
        """The log joint density."""
        total: list[float] = []
        pointwise: dict[str, dict[Place, float]] = {}
        observed = {s.name for s in self.steps if isinstance(s, Site) and s.kind == "observe"}
        silent: dict[str, set[Place]] = {}
        hidden: list[Term] = []
        for term in self.terms():
            self.reads = set()
            try:
                value = term.density()
            except NotThere:
                silent.setdefault(term.site, set()).add(term.place)
                continue
            if self.reads:
                term.reads = tuple(sorted(self.reads))
                hidden.append(term)
                continue
            total.append(value)
            # a missing cell that is filled has none
            if self._filled(term.site, term.place):
                silent.setdefault(term.site, set()).add(term.place)
            elif term.site in observed:
                pointwise.setdefault(term.site, {})[term.place] = value
        total += [self._summed_out(terms) for terms in components(hidden)]
        return Scored(_sum(total), sum(map(abs, total)), pointwise, silent)

    def _filled(self, name: str, place: Place) -> bool:
        """Whether data lack a cell."""
        known = self.case.data.get(name)
        return known is not None and math.isnan(known.cells.get(place, 0.0))

    def _summed_out(self, terms: list[Term]) -> float:
        cells = sorted({cell for term in terms for cell in term.reads})
        domains = [range(self._states(name)) for name, _ in cells]
        if math.prod(map(len, domains)) > MOST:
            raise OverflowError(f"{math.prod(map(len, domains))} assignments of {cells[0][0]}")
        joint: list[float] = []
        for states in itertools.product(*domains):
            self.assigned = dict(zip(cells, states, strict=True))
            joint.append(_sum([self._at(term) for term in terms]))
        self.assigned = {}
        return logsumexp(joint)

    def _at(self, term: Term) -> float:
        here = tuple(self.assigned[cell] for cell in term.reads)
        if here not in term.known:
            term.known[here] = term.density()
        return term.known[here]

    def _states(self, name: str) -> int:
        if name in self.hidden:
            return self.hidden[name]
        step = self.gaps[name]
        if step.draw.row.support == "bool":
            return 2
        first = step.draw.arguments[0]
        return vector_size(first) if isinstance(first, Vec) else int(first.value(self)) + 1


def components(terms: list[Term]) -> list[list[Term]]:
    """Terms that are tied by the hidden cells they read."""
    parent: dict[Cell, Cell] = {}

    def root(cell: Cell) -> Cell:
        while parent.setdefault(cell, cell) != cell:
            cell = parent[cell]
        return cell

    for term in terms:
        for cell in term.reads:
            parent[root(cell)] = root(term.reads[0])
    found: dict[Cell, list[Term]] = {}
    for term in terms:
        found.setdefault(root(term.reads[0]), []).append(term)
    return list(found.values())


def _sum(terms: list[float]) -> float:
    """A sum in which −∞ and NaN are kept."""
    if any(math.isinf(term) or math.isnan(term) for term in terms):
        return sum(terms)
    return math.fsum(terms)
