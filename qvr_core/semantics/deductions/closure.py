"""Closure: everything that follows from axioms by rules, as a hypergraph."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from qvr_core.semantics.deductions.terms import Bindings, Term, Var, depth, fill, match
from qvr_core.syntax.immutable import immutable

ITEM = "span"
"""The constructor of the items that words give: span(i, i + 1, Category)."""
CATEGORY = 3
"""Where an item's category stands in its tuple (after the constructor and two positions)."""


@immutable
class Rule:
    """Patterns of a rule; `own` are the variables that tell its instantiations apart (those of categories)."""

    name: str
    premises: tuple[Term, ...]
    conclusion: Term
    own: tuple[str, ...]


@immutable
class Edge:
    """One use of a rule: premises and conclusion by item number; `instance` is what its category variables stand
    for."""

    rule: int
    premises: tuple[int, ...]
    conclusion: int
    instance: tuple[Term, ...]


@dataclass(slots=True)
class Hypergraph:
    """All items that follow, and all uses of rules.

    `stopped` says what ended the closure: 'fixed point', 'depth', 'iterations' or 'patience'.
    """

    items: list[Term] = field(default_factory=list[Term])
    numbers: dict[Term, int] = field(default_factory=dict[Term, int])
    edges: list[Edge] = field(default_factory=list[Edge])
    stopped: str = "fixed point"

    tried: int = 0
    """Matches of a premise with an item that the closure took."""

    def number(self, item: Term) -> int:
        """The item's number, new where it is new."""
        found = self.numbers.get(item)
        if found is None:
            found = self.numbers[item] = len(self.items)
            self.items.append(item)
        return found


class _Index:
    """Items by constructor, and by constructor and the value in one of the first two slots."""

    def __init__(self) -> None:
        self.table: dict[tuple[object, ...], list[int]] = {}

    def add(self, item: Term, number: int) -> None:
        for key in self._keys(item):
            self.table.setdefault(key, []).append(number)

    @staticmethod
    def _keys(item: Term) -> list[tuple[object, ...]]:
        if not isinstance(item, tuple):
            return [(item,)]
        keys: list[tuple[object, ...]] = [(item[0], len(item))]
        keys.extend((item[0], len(item), slot, item[slot]) for slot in (1, 2) if slot < len(item))
        return keys

    def candidates(self, pattern: Term, bindings: Bindings) -> Sequence[int]:
        """The fewest items that a bound slot leaves."""
        if not isinstance(pattern, tuple):
            return self.table.get((pattern,), ())
        kind = (pattern[0], len(pattern))
        found: Sequence[int] | None = None
        for slot in (1, 2):
            if slot >= len(pattern):
                break
            value = pattern[slot]
            value = bindings.get(value.name) if isinstance(value, Var) else value
            if value is not None and not isinstance(value, tuple):
                here = self.table.get((*kind, slot, value), ())
                found = here if found is None or len(here) < len(found) else found
        return self.table.get(kind, ()) if found is None else found


class _Impatient(Exception):
    pass


def close(
    axioms: Sequence[Term], rules: Sequence[Rule], deepest: int, max_items: int, patience: int | None = None
) -> Hypergraph:
    """Everything that follows, by an agenda: a new item meets those that came before it and fit where it ends.

    After `patience` tried matches the graph stays as it is then.
    """
    graph = Hypergraph()
    index = _Index()
    agenda: deque[int] = deque()
    seen: set[Edge] = set()

    def conclude(rule: int, premises: tuple[int, ...], bindings: Bindings) -> None:
        item = fill(rules[rule].conclusion, bindings)
        if _category_depth(item) > deepest:
            graph.stopped = "depth"
            return
        fresh = item not in graph.numbers
        if fresh and len(graph.items) >= max_items:
            graph.stopped = "iterations"
            return
        number = graph.number(item)
        edge = Edge(rule, premises, number, tuple(bindings[name] for name in rules[rule].own))
        if edge not in seen:
            seen.add(edge)
            graph.edges.append(edge)
        if fresh:
            agenda.append(number)

    def join(rule: int, fixed: int, others: tuple[int, ...], chosen: dict[int, int], bindings: Bindings) -> None:
        """Every use of a rule whose premise `fixed` is the newest item; `others` are still to be found."""
        if not others:
            conclude(rule, tuple(chosen[at] for at in range(len(chosen))), bindings)
            return
        at, *rest = others
        premise, newest = rules[rule].premises[at], chosen[fixed]
        candidates = tuple(index.candidates(premise, bindings))
        graph.tried += len(candidates)
        if patience is not None and graph.tried > patience:
            raise _Impatient
        for number in candidates:
            # an earlier premise that is the newest item itself has had its turn
            if at < fixed and number == newest:
                continue
            found = match(premise, graph.items[number], bindings)
            if found is not None:
                join(rule, fixed, tuple(rest), {**chosen, at: number}, found)

    for axiom in axioms:
        if axiom not in graph.numbers:
            agenda.append(graph.number(axiom))
    for position, rule in enumerate(rules):
        if not rule.premises:
            conclude(position, (), {})
    try:
        while agenda:
            newest = agenda.popleft()
            index.add(graph.items[newest], newest)
            for position, rule in enumerate(rules):
                for fixed, premise in enumerate(rule.premises):
                    # the newest first: what it binds tells where to look for the others
                    found = match(premise, graph.items[newest], {})
                    if found is not None:
                        others = tuple(at for at in range(len(rule.premises)) if at != fixed)
                        join(position, fixed, others, {fixed: newest}, found)
    except _Impatient:
        graph.stopped = "patience"
    return graph


def side_by_side(graphs: Sequence[Hypergraph]) -> tuple[Hypergraph, list[int]]:
    """Several graphs as one, whose items stand one after another, and the number of the first of each."""
    whole, first = Hypergraph(), list[int]()
    for graph in graphs:
        before = len(whole.items)
        first.append(before)
        whole.items += graph.items
        whole.edges += (
            graph.edges
            if not before
            else (
                Edge(edge.rule, tuple(before + one for one in edge.premises), before + edge.conclusion, edge.instance)
                for edge in graph.edges
            )
        )
    return whole, first


def levels(graph: Hypergraph) -> list[list[int]] | None:
    """Edges by level, so that the premises of each stand on levels below it, and all into one item on one level; None
    where an item follows from itself."""
    into, lacking = [0] * len(graph.items), [len(set(edge.premises)) for edge in graph.edges]
    uses: list[list[int]] = [[] for _ in graph.items]
    for number, edge in enumerate(graph.edges):
        into[edge.conclusion] += 1
        for premise in set(edge.premises):
            uses[premise].append(number)
    level = [0] * len(graph.items)
    known = deque(item for item, edges in enumerate(into) if not edges)
    ready = deque(number for number, premises in enumerate(lacking) if not premises)
    found: list[list[int]] = []
    edges_into: dict[int, list[int]] = {}
    while known or ready:
        while ready:
            number = ready.popleft()
            edge = graph.edges[number]
            above = 1 + max((level[premise] for premise in edge.premises), default=0)
            level[edge.conclusion] = max(level[edge.conclusion], above)
            edges_into.setdefault(edge.conclusion, []).append(number)
            into[edge.conclusion] -= 1
            if not into[edge.conclusion]:
                while len(found) < level[edge.conclusion]:
                    found.append([])
                found[level[edge.conclusion] - 1] += edges_into.pop(edge.conclusion)
                known.append(edge.conclusion)
        if known:
            for number in uses[known.popleft()]:
                lacking[number] -= 1
                if not lacking[number]:
                    ready.append(number)
    return None if any(into) else found


def _category_depth(item: Term) -> int:
    if isinstance(item, tuple) and item[0] == ITEM and len(item) > CATEGORY:
        return depth(item[CATEGORY])
    return depth(item) - 1 if isinstance(item, tuple) else 0
