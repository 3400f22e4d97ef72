"""Charts of grammars: their weights and expected counts against all trees, and what they cost."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.dsl import load, loads
from qvr_core.inference import trace
from qvr_core.runtime.tensors.chart import Plan, item_weights, plan_of
from qvr_core.runtime.tensors.parsed_sentences import Derivation
from qvr_core.runtime.tensors.terms import read
from qvr_core.runtime.values.precision import computing_in
from qvr_core.semantics.deductions.closure import close, levels
from qvr_core.semantics.deductions.terms import match, show

CONTEXT_FREE = """
deduction d : FinSet 4 -> FinSet 1 [start=S]
    atoms S, NP, VP, N, PP, Det, V, P, w
    rule s : span(I, K, NP), span(K, J, VP) |- span(I, J, S) #[learnable, init=-0.1]
    rule np : span(I, K, Det), span(K, J, N) |- span(I, J, NP) #[learnable, init=-0.4]
    rule npp : span(I, K, NP), span(K, J, PP) |- span(I, J, NP) #[learnable, init=-1.1]
    rule vp : span(I, K, V), span(K, J, NP) |- span(I, J, VP) #[learnable, init=-0.7]
    rule vpp : span(I, K, VP), span(K, J, PP) |- span(I, J, VP) #[learnable, init=-0.9]
    rule pp : span(I, K, P), span(K, J, NP) |- span(I, J, PP) #[learnable, init=-0.2]
    lexicon
        "the" : Det = w
        "dog" : N = w #[learnable, init=-0.3]
        "saw" : V = w
        "saw" : N = w #[learnable, init=-2.0]
        "with" : P = w
"""
CATEGORIAL = """
deduction d : FinSet 5 -> FinSet 1 [start=S]
    atoms S, NP, N, w
    rule forward : span(I, K, Over(X, Y)), span(K, J, Y) |- span(I, J, X) #[learnable, init=-0.3]
    rule backward : span(I, K, Y), span(K, J, Under(X, Y)) |- span(I, J, X) #[learnable, init=-0.6]
    rule along : span(I, K, Over(X, Y)), span(K, J, Over(Y, Z)) |- span(I, J, Over(X, Z)) #[learnable, init=-1.5]
    lexicon
        "the" : Over(NP, N) = w
        "old" : Over(N, N) = w #[learnable, init=-0.4]
        "dog" : N = w
        "sleeps" : Under(S, NP) = w
        "sees" : Over(Under(S, NP), NP) = w
"""
# words of two halves that are copied in the same order, which no context-free grammar has
COPIES = """
deduction d : FinSet 2 -> FinSet 1 [start=S]
    atoms S, A, B
    rule one : span(I, J, X), span(K, L, X) |- two(I, J, K, L) #[learnable, init=-0.5]
    rule more : two(I, J, K, L), two(J, M, L, N) |- two(I, M, K, N) #[learnable, init=-0.2]
    rule done : two(I, J, J, K) |- span(I, K, S) #[weight=-0.1]
    lexicon
        "a" : A = A #[learnable, init=-0.7]
        "b" : B = B
"""
CASES = {
    "context-free": (CONTEXT_FREE, "the dog saw the dog with the saw with the dog"),
    "categorial": (CATEGORIAL, "the old old dog sees the old dog"),
    "copies": (COPIES, "a b a a b a"),
}


def log_weight(d: Any, tree: Derivation) -> tuple[float, Counter[tuple[str, int]]]:
    """The log weight of a tree and how often it takes each learnable weight; by the items that it shows."""
    name, item, parts = tree
    total, used = 0.0, Counter[tuple[str, int]]()
    for part in parts:
        below, taken = log_weight(d, part)
        total, used = total + below, used + taken
    rules = {rule.name: number for number, rule in enumerate(d.deduction.rules)}
    if name in rules:
        table, weights = d.instances[rules[name]], getattr(d, f"rule_{name}", None)
        if weights is None:
            return total - 0.1, used
        own = [
            number
            for instance, number in table.items()
            if len(table) == 1 or instance == _instance(d.system.rules[rules[name]], parts)
        ]
        (number,) = own
        used[name, number] += 1
        return total + float(weights[number]), used
    learned = [entry for entry in d.entries if entry.learnable]
    for entry, category in zip(d.entries, d.categories, strict=True):
        if entry.word == name and f", {_shown(category)})" in item:
            if entry.learnable:
                used["lexicon", learned.index(entry)] += 1
                return total + float(d.lexicon[learned.index(entry)]), used
            return total, used
    raise AssertionError(tree)


def _shown(category: object) -> str:
    return show(category)  # pyright: ignore[reportArgumentType]


def _instance(rule: Any, parts: Any) -> tuple[object, ...]:
    found: Any = {}
    for premise, part in zip(rule.premises, parts, strict=True):
        found = match(premise, read(part[1], ()), found)
    return tuple(found[name] for name in rule.own)


@pytest.mark.parametrize("name", CASES)
def test_weights_and_expected_counts_are_those_of_all_trees(name: str) -> None:
    """Inside by enumeration; the gradient of the goal's log weight is what inside–outside computes."""
    text, sentence = CASES[name]
    d: Any = loads(text).deductions["d"].double()
    with computing_in(torch.float64):
        chart = d.parse(sentence)
    goal = f"span(0, {len(sentence.split())}, S)"
    trees = [log_weight(d, tree) for tree in chart.derivations(goal)]
    assert len(trees) > 2 or name == "copies"
    total = chart.goal_weight()
    by_hand = math.log(sum(math.exp(weight) for weight, _ in trees))
    assert float(total.detach()) == pytest.approx(by_hand, abs=1e-9)
    total.backward()
    for parameter, weights in d.named_parameters():
        for number, found in enumerate(weights.grad.tolist()):
            key = (parameter.removeprefix("rule_"), number)
            expected = sum(math.exp(weight - by_hand) * used[key] for weight, used in trees)
            assert found == pytest.approx(expected, abs=1e-9), (parameter, number)


@pytest.mark.parametrize("semiring", ["LogProb", "Viterbi", "Counting"])
@pytest.mark.parametrize("name", CASES)
def test_level_by_level_is_what_iteration_comes_to(name: str, semiring: str) -> None:
    text, sentence = CASES[name]
    d: Any = loads(text.replace("[start=S]", f"[start=S, semiring={semiring}]")).deductions["d"]
    d.parse(sentence)
    (worked,) = d.worked.values()
    plan = plan_of(worked.graph)
    assert plan.groups is not None
    start = torch.full((len(worked.graph.items),), -1e30)
    start[: len(sentence.split())] = -0.2
    uses = 0.1 * torch.randn(len(worked.graph.edges), generator=torch.Generator().manual_seed(1))
    uses = torch.zeros_like(uses) if semiring == "Counting" else uses
    once, _ = item_weights(plan, start, uses, semiring, 1e-6, 1)
    iterated, rest = item_weights(Plan(plan.premises, plan.targets, None), start, uses, semiring, 1e-6, 100)
    assert rest
    torch.testing.assert_close(once, iterated)


def test_the_agenda_looks_at_what_fits_where_an_item_ends() -> None:
    """Its work for 10, 20 and 40 words grows as the uses of rules that it finds, which are n³."""
    d: Any = loads(CONTEXT_FREE).deductions["d"]
    share: list[float] = []
    for pairs in (1, 4, 11):
        words = ["the", "dog", "saw", "the", "dog", *("with", "the", "dog") * pairs]
        lexicon = list(zip(d.entries, d.categories, strict=True))
        axioms = [
            ("span", at, at + 1, category)
            for at, word in enumerate(words)
            for entry, category in lexicon
            if entry.word == word
        ]
        graph = close(axioms, d.system.rules, 12, 100_000)
        assert graph.stopped == "fixed point"
        found = levels(graph)
        assert found is not None and sum(map(len, found)) == len(graph.edges)
        share.append(graph.tried / (len(graph.edges) + len(graph.items) * len(words)))
    assert max(share) < 1.5 * min(share), share


def test_a_long_sentence_needs_no_more_iterations_than_one() -> None:
    """The default of a hundred iterations is none of a chart without circles."""
    text = """
deduction d : FinSet 1 -> FinSet 1 [start=S]
    atoms S, A
    rule begin : span(I, J, A) |- span(I, J, S) #[weight=-0.01]
    rule longer : span(I, J, S), span(J, K, A) |- span(I, K, S) #[weight=-0.02]
    lexicon
        "a" : A = A
"""
    chart: Any = loads(text).deductions["d"].parse(["a"] * 150)
    assert chart.stopped == "fixed point"
    assert float(chart.goal_weight()) == pytest.approx(-0.01 - 149 * 0.02, abs=1e-4)


def test_charts_of_the_last_sentences_are_kept_and_their_weights_follow_the_parameters() -> None:
    d: Any = loads(CONTEXT_FREE).deductions["d"]
    first, graph = d.parse("the dog saw the dog"), d.parse("the dog saw the dog").graph
    assert first.graph is graph
    before = float(first.goal_weight().detach())
    with torch.no_grad():
        d.rule_s.add_(1.0)
    assert float(d.parse("the dog saw the dog").goal_weight().detach()) == pytest.approx(before + 1.0, abs=1e-5)


def test_the_scope_of_quantifiers_comes_to_the_shares_of_the_readings() -> None:
    """The maximum likelihood of told readings is their shares: log odds in closed form."""
    program = load(Path(__file__).resolve().parents[2] / "examples" / "quantifier_scope.qvr")
    model: Any = program.morphism
    optimiser = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = -trace(model).log_joint.sum()
        value.backward()
        return value

    for _ in range(3):
        optimiser.step(loss)
    d: Any = program.deductions["english"]
    number = [rule.name for rule in d.deduction.rules].index("swap")
    for pair, share in ((("All", "Some"), 0.3), (("Some", "All"), 0.6), (("None", "Some"), 0.05)):
        found = float(d.rule_swap.detach()[d.instances[number][pair]])
        assert found == pytest.approx(math.log(share / (1.0 - share)), abs=2e-3)


def test_an_item_may_be_written_as_a_string_in_a_program() -> None:
    """As users of Python write it: the same weight."""
    text = (
        CONTEXT_FREE
        + """
program p : FinSet 1 -> FinSet 1
    let chart = parse(d, "the dog saw the dog")
    score z = chart.weight({item})
    return z
"""
    )
    found = [
        float(trace(loads(text.format(item=item)).morphism).log_joint.detach())
        for item in ("span(3, 5, NP)", '"span(3, 5, NP)"')
    ]
    assert found[0] == found[1] == pytest.approx(-0.4 - 0.3)
