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
        if not isinstance(pattern, tuple):
            return self.table.get((pattern,), ())
        for slot in (1, 2):
            if slot >= len(pattern):
                break
            value = pattern[slot]
            value = bindings.get(value.name) if isinstance(value, Var) else value
            if value is not None and not isinstance(value, tuple):
                return self.table.get((pattern[0], len(pattern), slot, value), ())
        return self.table.get((pattern[0], len(pattern)), ())


class _Impatient(Exception):
    pass


def close(
    axioms: Sequence[Term], rules: Sequence[Rule], deepest: int, max_items: int, patience: int | None = None
) -> Hypergraph:
    """Everything that follows, by an agenda: a new item meets all items that came before it.

    After `patience` tried matches the graph stays as it is then.
    """
    graph = Hypergraph()
    index = _Index()
    agenda: deque[int] = deque()
    seen: set[Edge] = set()
    tried = 0

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

    def join(rule: int, fixed: int, at: int, chosen: tuple[int, ...], bindings: Bindings, newest: int) -> None:
        nonlocal tried
        premises = rules[rule].premises
        if at == len(premises):
            conclude(rule, chosen, bindings)
            return
        candidates = (newest,) if at == fixed else tuple(index.candidates(premises[at], bindings))
        tried += len(candidates)
        if patience is not None and tried > patience:
            raise _Impatient
        for number in candidates:
            # an earlier premise that is the newest item itself has had its turn
            if at < fixed and number == newest:
                continue
            found = match(premises[at], graph.items[number], bindings)
            if found is not None:
                join(rule, fixed, at + 1, (*chosen, number), found, newest)

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
                for fixed in range(len(rule.premises)):
                    join(position, fixed, 0, (), {}, newest)
    except _Impatient:
        graph.stopped = "patience"
    return graph


def _category_depth(item: Term) -> int:
    if isinstance(item, tuple) and item[0] == ITEM and len(item) > CATEGORY:
        return depth(item[CATEGORY])
    return depth(item) - 1 if isinstance(item, tuple) else 0
