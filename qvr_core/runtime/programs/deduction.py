"""Deductions at run time: weighted deductive systems that parse sentences into charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as nnf
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.tensors.chart import Plan, item_weights, plan_of
from qvr_core.runtime.tensors.terms import read
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import is_listing
from qvr_core.runtime.values.module_recipes import Remade
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.deductions.closure import CATEGORY, ITEM, Hypergraph, close
from qvr_core.semantics.deductions.rule_instances import ANY, MAX_ITEMS, Instances, instances_of, system_of
from qvr_core.semantics.deductions.terms import Term, from_model, show
from qvr_core.semantics.types.model.deductions import Deduction, EntryModel, RuleModel
from qvr_core.semantics.types.spaces import Finite

_NEVER = -1e30

Derivation = tuple[str, str, tuple["Derivation", ...]]
"""(rule or word, item, the derivations of the premises)."""


MOST_KEPT = 1_000_000
"""Uses of rules in the charts that a deduction keeps."""


@dataclass(frozen=True)
class Worked:
    """What follows from the axioms of a sentence."""

    graph: Hypergraph
    plan: Plan
    uses: Tensor
    """Where the weight of each use stands among those of the rules, (m,)."""


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
        self.worked: dict[tuple[Term, ...], Worked] = {}
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
        if sentences is not None:
            return Charts([self._chart(words) for words in sentences])
        return self._chart(self._words(sentence))

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

    def _chart(self, words: list[str]) -> Chart:
        axioms: list[tuple[Term, Tensor | float]] = []
        learned = iter(range(len(self.entries)))
        numbers = {i: next(learned) for i, entry in enumerate(self.entries) if entry.learnable}
        for position, word in enumerate(words):
            found = [i for i, entry in enumerate(self.entries) if entry.word == word]
            if not found:
                raise InputProblem(f"deduction `{self.deduction.name}`: the lexicon has no word `{word}`")
            for i in found:
                form = self.forms[i]
                full = (ITEM, position, position + 1, self.categories[i], ANY if form is None else form)
                weight = self.lexicon[numbers[i]] if i in numbers else _number(self.entries[i], "weight", 0.0)
                axioms.append((full[: self.system.arity + 1], weight))
        return self.deduce(axioms, len(words), words)

    def deduce(self, axioms: Sequence[tuple[Term, Tensor | float]], length: int, words: Sequence[str] = ()) -> Chart:
        """The chart of weighted axioms over positions 0 … length."""
        worked = self._worked(tuple(item for item, _ in axioms))
        graph = worked.graph
        given: dict[int, list[Tensor]] = {}
        for item, weight in axioms:
            given.setdefault(graph.numbers[item], []).append(arrays.as_tensor(weight, dtype=precision()))
        never = arrays.tensor(_NEVER, dtype=precision())
        start = [arrays.logsumexp(arrays.stack(given[n]), 0) if n in given else never for n in range(len(graph.items))]
        deduction = self.deduction
        weights, rest = item_weights(
            worked.plan,
            arrays.stack(start) if start else arrays.zeros(0, dtype=precision()),
            self._rule_weights()[worked.uses],
            deduction.semiring,
            deduction.tolerance,
            deduction.max_iterations,
        )
        stopped = graph.stopped if rest or graph.stopped != "fixed point" else "iterations"
        return Chart(self, graph, weights, length, tuple(words), frozenset(given), stopped)

    def _worked(self, axioms: tuple[Term, ...]) -> Worked:
        """What follows from axioms is the same whatever their weights are, so that of the last sentences is kept."""
        found = self.worked.pop(axioms, None)
        if found is None:
            graph = close(axioms, self.system.rules, self.system.deepest, MAX_ITEMS)
            uses = arrays.tensor([self._place(edge.rule, edge.instance) for edge in graph.edges], dtype=arrays.int64)
            found = Worked(graph, plan_of(graph), uses)
        self.worked[axioms] = found
        while len(self.worked) > 1 and sum(len(each.graph.edges) for each in self.worked.values()) > MOST_KEPT:
            self.worked.pop(next(iter(self.worked)))
        return found

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
            axioms = [(item, chart.weights[number]) for number, item in chart.goals()]
            chart = part.deduce(axioms, chart.length, chart.words)
        return chart


class Chart:
    """All items of a sentence with their weights.

    `stopped` says what ended the deduction: 'fixed point', 'depth' or 'iterations'.
    """

    def __init__(
        self,
        module: DeductionModule,
        graph: Hypergraph,
        weights: Tensor,
        length: int,
        words: tuple[str, ...],
        axioms: frozenset[int],
        stopped: str,
    ) -> None:
        self.module, self.graph, self.weights = module, graph, weights
        self.length, self.words, self.axioms = length, words, axioms
        self.stopped = stopped

    def goals(self) -> list[tuple[int, Term]]:
        """Spans of the start category (any, where there is none), however long they are."""
        start = self.module.deduction.start
        spans = ((n, item) for n, item in enumerate(self.graph.items) if isinstance(item, tuple) and item[0] == ITEM)
        return [(n, item) for n, item in spans if start is None or _category(item) == start]

    def goal_weight(self) -> Tensor:
        """The weight of the start category over the whole sentence, logical forms joined; log 0 is −1e30."""
        whole = [n for n, item in self.goals() if isinstance(item, tuple) and item[1:3] == (0, self.length)]
        return self._joined(whole)

    def weight(self, item: str | Term) -> Tensor:
        """The weight of an item, as in `span(0, 2, S)`; a form left out joins all forms."""
        wanted = read(item, self.module.deduction.binders) if isinstance(item, str) else item
        number = self.graph.numbers.get(wanted)
        if number is not None:
            return self.weights[number]
        size = len(wanted) if isinstance(wanted, tuple) else 0
        return self._joined(
            [n for n, have in enumerate(self.graph.items) if isinstance(have, tuple) and have[:size] == wanted]
            if size
            else []
        )

    def _joined(self, numbers: list[int]) -> Tensor:
        semiring = self.module.deduction.semiring
        if not numbers:
            return arrays.tensor(0.0 if semiring in ("Counting", "Boolean") else _NEVER)
        found = self.weights[arrays.tensor(numbers)]
        match semiring:
            case "LogProb":
                return arrays.logsumexp(found, 0)
            case "Counting":
                return found.sum()
            case _:
                return found.max()

    def derivations(self, item: str | Term, limit: int = 1000) -> list[Derivation]:
        """At most `limit` derivations of an item as trees; those through a cycle are left out."""
        wanted = read(item, self.module.deduction.binders) if isinstance(item, str) else item
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
        if number in self.axioms:
            yield (self._word(item), show(item), ())
        for edge in self.graph.edges:
            if edge.conclusion != number or any(p == number or p in above for p in edge.premises):
                continue
            for parts in self._all(edge.premises, above | {number}):
                yield (self.module.system.rules[edge.rule].name, show(item), parts)

    def _word(self, item: Term) -> str:
        if self.words and isinstance(item, tuple) and item[0] == ITEM and isinstance(item[1], int):
            return self.words[item[1]]
        return "axiom"

    def _all(self, premises: tuple[int, ...], above: frozenset[int]) -> Iterator[tuple[Derivation, ...]]:
        if not premises:
            yield ()
            return
        for first in self._trees(premises[0], above):
            for rest in self._all(premises[1:], above):
                yield (first, *rest)


class Charts:
    """Charts of several sentences; weights come as a vector."""

    def __init__(self, charts: Sequence[Chart]) -> None:
        self.charts = list(charts)

    def goal_weight(self) -> Tensor:
        """One weight per sentence."""
        return arrays.stack([chart.goal_weight() for chart in self.charts])

    def weight(self, item: str | Term) -> Tensor:
        """The item's weight in each sentence."""
        return arrays.stack([chart.weight(item) for chart in self.charts])


_BUILT: WeakKeyDictionary[ArrowBuilder, dict[str, DeductionModule]] = WeakKeyDictionary()


def deduction_of(builder: ArrowBuilder, name: str) -> DeductionModule:
    """The module of a declared deduction; the same, weights included, for all programs of a file."""
    made = _BUILT.setdefault(builder, {})
    if name not in made:
        made[name] = DeductionModule(builder.model.deductions[name])
    return made[name]


def _category(item: Term) -> Term:
    return item[CATEGORY] if isinstance(item, tuple) and len(item) > CATEGORY else item


def _number(node: RuleModel | EntryModel, key: str, default: float) -> float:
    value = dict(node.attributes).get(key, default)
    return float(value) if isinstance(value, int | float) else default


def _flag(node: RuleModel | EntryModel, key: str) -> bool:
    return bool(dict(node.attributes).get(key, False))


def _from_files(deduction: Deduction) -> list[EntryModel]:
    """Entries of `lexicon from "file"`, one a line, written as in the text: `"word" : Category = form`."""
    from qvr_core.analysis import analyse

    found: list[EntryModel] = []
    for name in deduction.lexicon_files:
        path = Path(name)
        if not path.is_file():
            raise InputProblem(f"deduction `{deduction.name}`: there is no lexicon file `{name}`")
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        head = ["deduction lexicon_file : FinSet 1 -> FinSet 1", f"    atoms {', '.join(deduction.atoms)}"]
        if deduction.binders:
            head.append(f"    binders {', '.join(deduction.binders)}")
        text = "\n".join([*head, "    lexicon", *(f"        {line}" for line in lines)]) + "\n"
        snapshot = analyse(text)
        wrong = [item for item in snapshot.diagnostics() if item.severity.name == "ERROR"]
        if wrong:
            line = wrong[0].range.start.line - len(head)
            raise InputProblem(f"{name}:{line}: {wrong[0].message}")
        found.extend(snapshot.model.deductions["lexicon_file"].lexicon)
    return found
