"""Deductions at run time: weighted deductive systems that parse sentences into charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as nnf
from qvr_core.arrays.typed_engine import listed
from qvr_core.lexicon_files import LexiconProblem, entries_of
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.tensors.chart import Groups, Plan, gathered, item_weights, on_the_processor, plan_of
from qvr_core.runtime.tensors.parsed_sentences import Chart, Charts, Parsed, in_turn
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import is_listing
from qvr_core.runtime.values.module_recipes import Remade
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.deductions.closure import ITEM, Hypergraph, close, side_by_side
from qvr_core.semantics.deductions.rule_instances import (
    ANY,
    MAX_ITEMS,
    Instances,
    conclusion_of_word,
    conclusions_of,
    instances_of,
    system_of,
)
from qvr_core.semantics.deductions.terms import Term, from_model, show
from qvr_core.semantics.types.model.deductions import Deduction, EntryModel, RuleModel
from qvr_core.semantics.types.sentences import PADDING
from qvr_core.semantics.types.spaces import Finite

_UNMET = "unmet"
MOST_KEPT = 1_000_000
"""Uses of rules in the charts that a deduction keeps."""


@dataclass(frozen=True)
class Axioms:
    """What a sentence begins with: items, positions 0 … length, and its words where it has some."""

    items: tuple[Term, ...]
    length: int
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Worked:
    """What follows from the axioms of sentences, side by side in one graph; it is the same whatever the weights are."""

    parsed: tuple[Parsed, ...]
    graph: Hypergraph
    plan: Plan
    uses: Tensor
    """Where the weight of each use stands among those of the rules, (m,)."""
    axioms: Tensor
    """The item of each axiom, (k,)."""
    entries: Tensor
    """The entry of the lexicon that each axiom is, (k,), where they are words."""
    goals: Groups
    """The items over all of each sentence, numbered in turn."""


class DeductionModule(Remade):
    """A deduction with its learnable log-weights: `rule_<name>`, one per instantiation of the rule's category
    variables, and `lexicon`, one per learnable entry.

    Charts are worked out by the processor, wherever the weights lie.
    """

    def __init__(self, deduction: Deduction) -> None:
        super().__init__()
        self.deduction = deduction
        self.leaves: Mapping[str, nn.Module] = {deduction.name: self}
        self.entries = [*deduction.lexicon, *_from_files(deduction)]
        self.system = system_of(deduction, self.entries)
        self.categories = [from_model(entry.category, deduction.binders) for entry in self.entries]
        self.forms = [
            None if entry.form is None else from_model(entry.form, deduction.binders) for entry in self.entries
        ]
        self.instances: Instances = tuple({} for _ in deduction.rules)
        self.worked: dict[tuple[object, ...], Worked] = {}
        self._entries_of: dict[str, list[int]] = {}
        for at, entry in enumerate(self.entries):
            self._entries_of.setdefault(entry.word, []).append(at)
        self._add_weights()
        self.choices = self._choices() if deduction.normalised else None

    def _add_weights(self) -> None:
        deduction = self.deduction
        learnable = [entry for entry in self.entries if entry.learnable]
        if learnable:
            starts = [_number(entry, "init", _number(entry, "weight", 0.0)) for entry in learnable]
            self.lexicon = nn.Parameter(arrays.tensor(starts))
        if not any(rule.learnable for rule in deduction.rules) and not deduction.normalised:
            return
        self.instances = instances_of(self.system)
        for rule, table in zip(deduction.rules, self.instances, strict=True):
            if rule.learnable and table:
                start = _number(rule, "init", _number(rule, "weight", 0.0))
                if _flag(rule, "bounded"):
                    # the inverse of −softplus, a little below zero where no other start is given
                    start = float(arrays.tensor(-min(start, -0.1)).expm1().log())
                self.register_parameter(f"rule_{rule.name}", nn.Parameter(arrays.full((len(table),), start)))

    # ------------------------------------------------------------ parsing

    @on_the_processor
    def parse(self, sentence: Any) -> Chart | Charts:
        """The chart of a sentence: words in a list or a string, or their numbers in the order of the lexicon; several
        sentences give several charts.

        Raises `InputProblem` for a word that the lexicon does not have.
        """
        sentences = self._sentences(sentence)
        several = [tuple(self._words(sentence))] if sentences is None else list(map(tuple, sentences))
        distinct = {words: at for at, words in enumerate(dict.fromkeys(several))}
        if not distinct:
            raise InputProblem(f"deduction `{self.deduction.name}`: there is no sentence to parse")
        worked = self._kept(tuple(distinct), lambda: self._axioms(distinct))
        rules, entries = self._weights()
        weights, stopped = self._weighed(worked, entries[worked.entries], rules)
        if sentences is None:
            return Chart(worked.parsed[0], weights, stopped[0])
        places = arrays.tensor([distinct[words] for words in several], dtype=arrays.int64)
        return Charts(worked.parsed, weights, places, worked.goals, stopped)

    forward = parse

    def _sentences(self, sentence: Any) -> list[list[str]] | None:
        if is_tensor(sentence) and sentence.ndim == 2:
            return [self._words(row) for row in sentence]
        if is_listing(sentence) and any(
            is_listing(part) or (isinstance(part, str) and " " in part.strip()) for part in sentence
        ):
            return [self._words(part) for part in sentence]
        return None

    def _words(self, sentence: Any) -> list[str]:
        if isinstance(sentence, str):
            return sentence.split()
        if is_tensor(sentence):
            names, indices = self._vocabulary(), [int(index) for index in listed(sentence)]
            while indices and indices[-1] == PADDING:
                indices.pop()
            for index in indices:
                if not 0 <= index < len(names):
                    raise InputProblem(
                        f"deduction `{self.deduction.name}`: there are words 0 to {len(names) - 1}, but no word {index}"
                    )
            return [names[index] for index in indices]
        return [str(word) for word in sentence]

    def _vocabulary(self) -> list[str]:
        space = self.deduction.domain.space
        if isinstance(space, Finite) and space.labels is not None:
            return list(space.labels)
        return list(dict.fromkeys(entry.word for entry in self.entries))

    @on_the_processor
    def rule_weights(self) -> dict[tuple[str, ...], float]:
        """Log weights of rules: (name, what its category variables stand for, in the alphabet's order of their names),
        or (name,) where all instances weigh the same.  Those of a `normalised` deduction are log probabilities."""
        weights: list[float] = listed(self._weights()[0])
        found: dict[tuple[str, ...], float] = {}
        for rule, (model, table) in enumerate(zip(self.deduction.rules, self.instances, strict=True)):
            if self._count(model, table) == 1:
                found[model.name,] = weights[self._place(rule, ())]
            else:
                found |= {(model.name, *map(show, one)): weights[self._place(rule, one)] for one in table}
        return found

    @on_the_processor
    def entry_weights(self) -> dict[tuple[str, str], float]:
        """Log weights of the lexicon's entries, by word and category; several of one word and category are summed."""
        found: dict[tuple[str, str], float] = {}
        for entry, category, weight in zip(self.entries, self.categories, listed(self._weights()[1]), strict=True):
            key = (entry.word, show(category))
            found[key] = weight if key not in found else math.log(math.exp(found[key]) + math.exp(weight))
        return found

    @on_the_processor
    def deduce(self, axioms: Axioms, weights: Tensor) -> Chart:
        """The chart of axioms with these log weights (k,)."""
        worked = self._kept(axioms.items, lambda: ([axioms], ()))
        found, stopped = self._weighed(worked, weights, self._weights()[0])
        return Chart(worked.parsed[0], found, stopped[0])

    def _axioms(self, sentences: Iterable[tuple[str, ...]]) -> tuple[list[Axioms], list[int]]:
        """What sentences begin with, and the entries of the lexicon that say so."""
        axioms: list[Axioms] = []
        chosen: list[int] = []
        for words in sentences:
            items: list[Term] = []
            for position, word in enumerate(words):
                found = self._entries_of.get(word)
                if found is None:
                    raise InputProblem(f"deduction `{self.deduction.name}`: the lexicon has no word `{word}`")
                for entry in found:
                    form = self.forms[entry]
                    full = (ITEM, position, position + 1, self.categories[entry], ANY if form is None else form)
                    items.append(full[: self.system.arity + 1])
                    chosen.append(entry)
            axioms.append(Axioms(tuple(items), len(words), words))
        return axioms, chosen

    def _weighed(self, worked: Worked, axioms: Tensor, rules: Tensor) -> tuple[Tensor, list[str]]:
        """The weights of all items, given those of the axioms and of the rules, and what ended each deduction."""
        deduction = self.deduction
        found, rest = item_weights(
            worked.plan,
            gathered(len(worked.graph.items), worked.axioms, axioms, deduction.semiring),
            rules[worked.uses],
            deduction.semiring,
            deduction.tolerance,
            deduction.max_iterations,
        )
        ends = (one.graph.stopped for one in worked.parsed)
        return found, [end if rest or end != "fixed point" else "iterations" for end in ends]

    def _kept(self, key: tuple[object, ...], begin: Callable[[], tuple[Sequence[Axioms], Sequence[int]]]) -> Worked:
        """What follows from axioms; that of the last sentences is kept."""
        found = self.worked.pop(key, None) or self._worked(*begin())
        self.worked[key] = found
        while len(self.worked) > 1 and sum(len(each.graph.edges) for each in self.worked.values()) > MOST_KEPT:
            self.worked.pop(next(iter(self.worked)))
        return found

    def _worked(self, axioms: Sequence[Axioms], entries: Sequence[int]) -> Worked:
        parts = [close(one.items, self.system.rules, self.system.deepest, MAX_ITEMS) for one in axioms]
        graph, first = side_by_side(parts)
        begun = [[part.numbers[item] for item in one.items] for one, part in zip(axioms, parts, strict=True)]
        parsed = tuple(
            Parsed(self.deduction, part, one.length, one.words, frozenset(numbers))
            for one, part, numbers in zip(axioms, parts, begun, strict=True)
        )
        places = [before + number for numbers, before in zip(begun, first, strict=True) for number in numbers]
        return Worked(
            parsed,
            graph,
            plan_of(graph),
            arrays.tensor([self._place(edge.rule, edge.instance) for edge in graph.edges], dtype=arrays.int64),
            arrays.tensor(places, dtype=arrays.int64),
            arrays.tensor(list(entries), dtype=arrays.int64),
            in_turn(parsed, [one.whole for one in parsed]),
        )

    def _weights(self) -> tuple[Tensor, Tensor]:
        """Log weights of all rules in turn, each that of an instance nobody has met, then those of its instances where
        they differ; and those of all entries."""
        rules, entries = self._free_rules(), self._free_entries()
        if self.choices is None:
            return rules, entries
        whole = arrays.cat([rules, entries])
        totals = gathered(len(whole), self.choices, whole, "LogProb")
        whole = whole - totals[self.choices]
        return whole[: len(rules)], whole[len(rules) :]

    def _free_entries(self) -> Tensor:
        fixed = arrays.tensor([_number(entry, "weight", 0.0) for entry in self.entries], dtype=precision())
        learned = [at for at, entry in enumerate(self.entries) if entry.learnable]
        if not learned or not self.entries:
            return fixed
        return fixed.index_copy(0, arrays.tensor(learned, dtype=arrays.int64), self.lexicon.to("cpu", precision()))

    def _free_rules(self) -> Tensor:
        found: list[Tensor] = []
        for rule, table in zip(self.deduction.rules, self.instances, strict=True):
            alone = 0.0
            if self.deduction.semiring != "Counting":
                alone = _number(rule, "init" if rule.learnable else "weight", 0.0)
            found.append(
                arrays.full((1 if self._learns(rule) else self._count(rule, table),), alone, dtype=precision())
            )
            if self._learns(rule):
                weight: Tensor = getattr(self, f"rule_{rule.name}").to("cpu")
                found.append(-nnf.softplus(weight) if _flag(rule, "bounded") else weight.to(precision()))
        return arrays.cat(found) if found else arrays.zeros(1, dtype=precision())

    def _learns(self, rule: RuleModel) -> bool:
        return self.deduction.semiring != "Counting" and hasattr(self, f"rule_{rule.name}")

    def _count(self, rule: RuleModel, table: Mapping[tuple[Term, ...], int]) -> int:
        """How many weights a rule has among those of all: one, and one for each instance where they differ."""
        return 1 + (len(table) if self.deduction.normalised or self._learns(rule) else 0)

    def _place(self, rule: int, instance: tuple[Term, ...]) -> int:
        """Where in the weights of all rules that of a use stands."""
        sizes = [self._count(*each) for each in zip(self.deduction.rules, self.instances, strict=True)]
        number = self.instances[rule].get(instance) if sizes[rule] > 1 else None
        if number is None and self.deduction.normalised:
            name = self.deduction.rules[rule].name
            raise InputProblem(f"deduction `{self.deduction.name}`: `{name}` has more instances than can be normalised")
        return sum(sizes[:rule]) + (0 if number is None else 1 + number)

    def _choices(self) -> Tensor:
        """Of each weight which choice it belongs to: all rules and entries that conclude the same are one."""
        numbers: dict[Term, int] = {}
        found: list[int] = []
        for at, conclusions in enumerate(conclusions_of(self.system)):
            # the weight of an instance that nobody has met is no choice of any
            found.append(numbers.setdefault((_UNMET, at), len(numbers)))
            found += [numbers.setdefault(conclusion, len(numbers)) for conclusion in conclusions.values()]
        for category in self.categories:
            found.append(numbers.setdefault(conclusion_of_word(self.system, category), len(numbers)))
        return arrays.tensor(found, dtype=arrays.int64)


class ComposedDeduction(nn.Module):
    """Deductions in turn: what the first concludes of its start category are the axioms of the second."""

    def __init__(self, parts: Sequence[DeductionModule]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    @on_the_processor
    def parse(self, sentence: Any) -> Chart | Charts:
        """The last deduction's chart, or charts of several sentences."""
        first = self.parts[0]
        assert isinstance(first, DeductionModule)
        charts = first.parse(sentence)
        if isinstance(charts, Chart):
            return self._through(charts)
        found = [self._through(chart) for chart in charts.charts]
        parsed = [chart.parsed for chart in found]
        goals = in_turn(parsed, [one.whole for one in parsed])
        stopped = [chart.stopped for chart in found]
        return Charts(parsed, arrays.cat([chart.weights for chart in found]), charts.places, goals, stopped)

    def _through(self, chart: Chart) -> Chart:
        """What the other deductions make of the first one's chart."""
        for part in list(self.parts)[1:]:
            assert isinstance(part, DeductionModule)
            goals = chart.parsed.goals()
            numbers = arrays.tensor([number for number, _ in goals], dtype=arrays.int64)
            axioms = Axioms(tuple(item for _, item in goals), chart.parsed.length, chart.parsed.words)
            chart = part.deduce(axioms, chart.weights[numbers])
        return chart


_BUILT: WeakKeyDictionary[ArrowBuilder, dict[str, DeductionModule]] = WeakKeyDictionary()


def deduction_of(builder: ArrowBuilder, name: str) -> DeductionModule:
    """The module of a declared deduction; the same, weights included, for all programs of a file."""
    made = _BUILT.setdefault(builder, {})
    if name not in made:
        made[name] = DeductionModule(builder.model.deductions[name])
    return made[name]


def _number(node: RuleModel | EntryModel, key: str, default: float) -> float:
    value = dict(node.attributes).get(key, default)
    return float(value) if isinstance(value, int | float) else default


def _flag(node: RuleModel | EntryModel, key: str) -> bool:
    return bool(dict(node.attributes).get(key, False))


def _from_files(deduction: Deduction) -> list[EntryModel]:
    """The entries of `lexicon from "file"`."""
    try:
        return [entry for name in deduction.lexicon_files for entry in entries_of(name, deduction)]
    except LexiconProblem as problem:
        raise InputProblem(f"deduction `{deduction.name}`: {problem}") from problem
