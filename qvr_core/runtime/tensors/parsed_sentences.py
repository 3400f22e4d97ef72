"""Charts: all items of sentences with their weights, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.tensors.chart import Groups, grouped, joined, on_the_processor
from qvr_core.runtime.tensors.terms import read
from qvr_core.semantics.deductions.closure import CATEGORY, ITEM, Hypergraph
from qvr_core.semantics.deductions.terms import Term, show
from qvr_core.semantics.types.model.deductions import Deduction

Derivation = tuple[str, str, tuple["Derivation", ...]]
"""(rule or word, item, the derivations of the premises)."""


@dataclass(frozen=True)
class Parsed:
    """What follows from a sentence, whatever the weights are: its positions are 0 … length, its words '' where it has
    none, and `axioms` the numbers of the items that it begins with."""

    deduction: Deduction
    graph: Hypergraph
    length: int
    words: tuple[str, ...]
    axioms: frozenset[int]

    def goals(self) -> list[tuple[int, Term]]:
        """Spans of the start category (any, where there is none), however long they are."""
        start = self.deduction.start
        spans = ((n, item) for n, item in enumerate(self.graph.items) if isinstance(item, tuple) and item[0] == ITEM)
        return [(n, item) for n, item in spans if start is None or _category(item) == start]

    @cached_property
    def whole(self) -> list[int]:
        """The goals that span the sentence, by their numbers."""
        return [n for n, item in self.goals() if isinstance(item, tuple) and item[1:3] == (0, self.length)]

    def matching(self, item: str | Term) -> list[int]:
        """The items that `item` means, by their numbers: itself, else all that begin as it does."""
        wanted = read(item, self.deduction.binders) if isinstance(item, str) else item
        number = self.graph.numbers.get(wanted)
        if number is not None:
            return [number]
        size = len(wanted) if isinstance(wanted, tuple) else 0
        return [
            n for n, have in enumerate(self.graph.items) if size and isinstance(have, tuple) and have[:size] == wanted
        ]


class Chart:
    """All items of a sentence with their weights.

    `stopped` says what ended the deduction: 'fixed point', 'depth' or 'iterations'.
    """

    def __init__(self, parsed: Parsed, weights: Tensor, stopped: str) -> None:
        self.parsed, self.weights, self.stopped = parsed, weights, stopped

    @property
    def graph(self) -> Hypergraph:
        """All items and uses of rules."""
        return self.parsed.graph

    def goal_weight(self) -> Tensor:
        """The weight of the start category over the whole sentence, logical forms joined; log 0 is −1e30."""
        return self._joined(self.parsed.whole)

    def weight(self, item: str | Term) -> Tensor:
        """The weight of an item, as in `span(0, 2, S)`; a form left out joins all forms."""
        return self._joined(self.parsed.matching(item))

    @on_the_processor
    def _joined(self, numbers: list[int]) -> Tensor:
        return joined(self.weights, grouped([numbers]), self.parsed.deduction.semiring)[0]

    def derivations(self, item: str | Term, limit: int = 1000) -> list[Derivation]:
        """At most `limit` derivations of an item as trees; those through a cycle are left out."""
        wanted = read(item, self.parsed.deduction.binders) if isinstance(item, str) else item
        size = len(wanted) if isinstance(wanted, tuple) else 1
        numbers = [
            n
            for n, have in enumerate(self.graph.items)
            if have == wanted or (isinstance(have, tuple) and have[:size] == wanted)
        ]
        found: list[Derivation] = []
        for number in numbers:
            for tree in self._trees(number, frozenset()):
                found.append(tree)
                if len(found) >= limit:
                    return found
        return found

    def _trees(self, number: int, above: frozenset[int]) -> Iterator[Derivation]:
        item = self.graph.items[number]
        if number in self.parsed.axioms:
            yield (self._word(item), show(item), ())
        for edge in self.graph.edges:
            if edge.conclusion != number or any(p == number or p in above for p in edge.premises):
                continue
            for parts in self._all(edge.premises, above | {number}):
                yield (self.parsed.deduction.rules[edge.rule].name, show(item), parts)

    def _word(self, item: Term) -> str:
        if self.parsed.words and isinstance(item, tuple) and item[0] == ITEM and isinstance(item[1], int):
            return self.parsed.words[item[1]]
        return "axiom"

    def _all(self, premises: tuple[int, ...], above: frozenset[int]) -> Iterator[tuple[Derivation, ...]]:
        if not premises:
            yield ()
            return
        for first in self._trees(premises[0], above):
            for rest in self._all(premises[1:], above):
                yield (first, *rest)


class Charts:
    """Charts of several sentences; weights come as a vector, one for each sentence.

    `parsed` are the sentences that differ, `weights` the weights of all their items in turn, `places` (n,) which of
    them each sentence is, and `goals` their goals.
    """

    def __init__(
        self, parsed: Sequence[Parsed], weights: Tensor, places: Tensor, goals: Groups, stopped: Sequence[str]
    ) -> None:
        self.parsed, self.weights, self.places, self.goals, self.stopped = parsed, weights, places, goals, stopped

    @cached_property
    def charts(self) -> list[Chart]:
        """The charts of the sentences that differ."""
        found: list[Chart] = []
        before = 0
        for one, stopped in zip(self.parsed, self.stopped, strict=True):
            after = before + len(one.graph.items)
            found.append(Chart(one, self.weights[before:after], stopped))
            before = after
        return found

    def goal_weight(self) -> Tensor:
        """One weight per sentence."""
        return self._joined(self.goals)

    @on_the_processor
    def weight(self, item: str | Term) -> Tensor:
        """The item's weight in each sentence."""
        return self._joined(in_turn(self.parsed, [one.matching(item) for one in self.parsed]))

    @on_the_processor
    def _joined(self, groups: Groups) -> Tensor:
        return joined(self.weights, groups, self.parsed[0].deduction.semiring)[self.places]


def in_turn(parsed: Sequence[Parsed], numbers: Sequence[Sequence[int]]) -> Groups:
    """The items of each sentence, numbered where all items of all sentences stand in turn."""
    before, groups = 0, list[list[int]]()
    for one, own in zip(parsed, numbers, strict=True):
        groups.append([before + number for number in own])
        before += len(one.graph.items)
    return grouped(groups)


def _category(item: Term) -> Term:
    return item[CATEGORY] if isinstance(item, tuple) and len(item) > CATEGORY else item
