"""Deductions at run time: weighted deductive systems that parse sentences into charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as nnf
from qvr_core.lexicon_files import LexiconProblem, entries_of
from qvr_core.runtime.programs.charts import Chart, Charts
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.tensors.chart import Plan, gathered, item_weights, plan_of
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import is_listing
from qvr_core.runtime.values.module_recipes import Remade
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.deductions.closure import ITEM, Hypergraph, close, side_by_side
from qvr_core.semantics.deductions.rule_instances import ANY, MAX_ITEMS, Instances, instances_of, system_of
from qvr_core.semantics.deductions.terms import Term, from_model
from qvr_core.semantics.types.model.deductions import Deduction, EntryModel, RuleModel
from qvr_core.semantics.types.sentences import PADDING
from qvr_core.semantics.types.spaces import Finite

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
    """What follows from the axioms of sentences, side by side in one graph."""

    parts: tuple[Hypergraph, ...]
    graph: Hypergraph
    plan: Plan
    uses: Tensor
    """Where the weight of each use stands among those of the rules, (m,)."""
    axioms: Tensor
    """The item of each axiom, (k,)."""


class DeductionModule(Remade):
    """A deduction with its learnable log-weights: `rule_<name>`, one per instantiation of the rule's category
    variables, and `lexicon`, one per learnable entry."""

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
        self.worked: dict[tuple[tuple[Term, ...], ...], Worked] = {}
        self._entries_of: dict[str, list[int]] = {}
        for at, entry in enumerate(self.entries):
            self._entries_of.setdefault(entry.word, []).append(at)
        self._add_weights()

    def _add_weights(self) -> None:
        deduction = self.deduction
        learnable = [entry for entry in self.entries if entry.learnable]
        if learnable:
            starts = [_number(entry, "init", _number(entry, "weight", 0.0)) for entry in learnable]
            self.lexicon = nn.Parameter(arrays.tensor(starts))
        if not any(rule.learnable for rule in deduction.rules):
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

    def parse(self, sentence: Any) -> Chart | Charts:
        """The chart of a sentence: words in a list or a string, or their numbers in the order of the lexicon; several
        sentences give several charts.

        Raises `InputProblem` for a word that the lexicon does not have.
        """
        sentences = self._sentences(sentence)
        if sentences is None:
            return self._charts([tuple(self._words(sentence))])[0][0]
        distinct = {words: at for at, words in enumerate(dict.fromkeys(map(tuple, sentences)))}
        if not distinct:
            raise InputProblem(f"deduction `{self.deduction.name}`: there is no sentence to parse")
        charts, weights = self._charts(list(distinct))
        return Charts(charts, weights, [distinct[tuple(words)] for words in sentences])

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
            names, indices = self._vocabulary(), [int(index) for index in sentence]
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

    def _charts(self, sentences: Sequence[tuple[str, ...]]) -> tuple[list[Chart], Tensor]:
        """The charts of sentences, and the weights of all items of theirs in turn."""
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
        return self.deduce(axioms, self._entry_weights()[arrays.tensor(chosen, dtype=arrays.int64)])

    def deduce(self, axioms: Sequence[Axioms], weights: Tensor) -> tuple[list[Chart], Tensor]:
        """The charts of axioms and the weights of all their items; `weights` (k,) are those of all axioms in turn."""
        deduction = self.deduction
        worked = self._worked(tuple(one.items for one in axioms))
        found, rest = item_weights(
            worked.plan,
            gathered(len(worked.graph.items), worked.axioms, weights, deduction.semiring),
            self._rule_weights()[worked.uses],
            deduction.semiring,
            deduction.tolerance,
            deduction.max_iterations,
        )
        charts: list[Chart] = []
        before = 0
        for one, graph in zip(axioms, worked.parts, strict=True):
            stopped = graph.stopped if rest or graph.stopped != "fixed point" else "iterations"
            own = found[before : before + len(graph.items)]
            given = frozenset(graph.numbers[item] for item in one.items)
            charts.append(Chart(deduction, graph, own, one.length, one.words, given, stopped))
            before += len(graph.items)
        return charts, found

    def _worked(self, axioms: tuple[tuple[Term, ...], ...]) -> Worked:
        """What follows from axioms is the same whatever their weights are, so that of the last sentences is kept."""
        found = self.worked.pop(axioms, None)
        if found is None:
            parts = tuple(close(items, self.system.rules, self.system.deepest, MAX_ITEMS) for items in axioms)
            graph, first = side_by_side(parts)
            uses = arrays.tensor([self._place(edge.rule, edge.instance) for edge in graph.edges], dtype=arrays.int64)
            places = [
                before + part.numbers[item]
                for items, part, before in zip(axioms, parts, first, strict=True)
                for item in items
            ]
            found = Worked(parts, graph, plan_of(graph), uses, arrays.tensor(places, dtype=arrays.int64))
        self.worked[axioms] = found
        while len(self.worked) > 1 and sum(len(each.graph.edges) for each in self.worked.values()) > MOST_KEPT:
            self.worked.pop(next(iter(self.worked)))
        return found

    def _entry_weights(self) -> Tensor:
        """Log weights of all entries of the lexicon."""
        fixed = arrays.tensor([_number(entry, "weight", 0.0) for entry in self.entries], dtype=precision())
        learned = [at for at, entry in enumerate(self.entries) if entry.learnable]
        if not learned or not self.entries:
            return fixed
        return fixed.index_copy(0, arrays.tensor(learned, dtype=arrays.int64), self.lexicon.to(precision()))

    def _rule_weights(self) -> Tensor:
        """Log weights of all rules in turn: that of an instance nobody has met, then its learnable ones."""
        found: list[Tensor] = []
        for rule in self.deduction.rules:
            alone = 0.0
            if self.deduction.semiring != "Counting":
                alone = _number(rule, "init" if rule.learnable else "weight", 0.0)
            found.append(arrays.tensor([alone], dtype=precision()))
            if self._learns(rule):
                weight: Tensor = getattr(self, f"rule_{rule.name}")
                found.append(-nnf.softplus(weight) if _flag(rule, "bounded") else weight)
        return arrays.cat(found) if found else arrays.zeros(1, dtype=precision())

    def _learns(self, rule: RuleModel) -> bool:
        return self.deduction.semiring != "Counting" and hasattr(self, f"rule_{rule.name}")

    def _place(self, rule: int, instance: tuple[Term, ...]) -> int:
        """Where in `_rule_weights` the weight of a use stands."""
        sizes = [
            1 + (len(table) if self._learns(model) else 0)
            for model, table in zip(self.deduction.rules, self.instances, strict=True)
        ]
        number = self.instances[rule].get(instance) if self._learns(self.deduction.rules[rule]) else None
        return sum(sizes[:rule]) + (0 if number is None else 1 + number)


class ComposedDeduction(nn.Module):
    """Deductions in turn: what the first concludes of its start category are the axioms of the second."""

    def __init__(self, parts: Sequence[DeductionModule]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def parse(self, sentence: Any) -> Chart:
        """The last deduction's chart."""
        first, *rest = self.parts
        assert isinstance(first, DeductionModule)
        chart = first.parse(sentence)
        if isinstance(chart, Charts):
            raise InputProblem("composed deductions parse one sentence at a time")
        for part in rest:
            assert isinstance(part, DeductionModule)
            goals = chart.goals()
            numbers = arrays.tensor([number for number, _ in goals], dtype=arrays.int64)
            axioms = Axioms(tuple(item for _, item in goals), chart.length, chart.words)
            chart = part.deduce([axioms], chart.weights[numbers])[0][0]
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
