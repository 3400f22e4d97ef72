"""Deductions: charts in four semirings, learnable weights, cycles, binders, composition."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, SVI, AutoPriorGuide, trace
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem

BINARY = """
deduction d : FinSet 2 -> FinSet 1 [semiring={semiring}, start=S]
    atoms S, a, b
    rule join : span(I, J, S), span(J, K, S) |- span(I, K, S) #[learnable, init=-0.5]
    lexicon
        "a" : S = a #[learnable]
        "b" : S = b
"""

CYCLE = """
deduction d : FinSet 1 -> FinSet 1 [start=B{options}]
    atoms A, B, w
    rule there : span(I, J, A) |- span(I, J, B) #[weight=-1.0]
    rule back : span(I, J, B) |- span(I, J, A) #[weight=-0.7]
    lexicon
        "w" : A = w
"""


def deduction(text: str) -> Any:
    return loads(text).deductions["d"]


def test_counting_counts_parses() -> None:
    d = deduction(BINARY.format(semiring="Counting"))
    # the Catalan numbers
    assert [d.parse(["a"] * n).goal_weight().item() for n in range(1, 7)] == [1, 1, 2, 5, 14, 42]


def test_log_prob_sums_and_viterbi_takes_the_best() -> None:
    total = deduction(BINARY.format(semiring="LogProb")).parse("a b a b").goal_weight().item()
    best = deduction(BINARY.format(semiring="Viterbi")).parse("a b a b").goal_weight().item()
    assert best == pytest.approx(3 * -0.5)
    assert total == pytest.approx(3 * -0.5 + math.log(5))


def test_boolean_says_whether() -> None:
    d = deduction(BINARY.format(semiring="Boolean"))
    assert float(d.parse("a b").goal_weight()) == 1.0
    assert float(d.parse("a b").weight("span(1, 1, S)")) == 0.0


def test_gradients_are_expected_counts() -> None:
    d = deduction(BINARY.format(semiring="LogProb"))
    d.parse("a b a").goal_weight().backward()
    gradients = {name: p.grad.tolist() for name, p in d.named_parameters()}
    assert gradients["rule_join"] == pytest.approx([2.0])
    assert gradients["lexicon"] == pytest.approx([2.0])


def test_a_cycle_runs_to_its_fixed_point() -> None:
    chart = deduction(CYCLE.format(options="")).parse(["w"])
    assert chart.stopped == "fixed point"
    series = math.exp(-1.0) / (1.0 - math.exp(-1.7))
    assert float(chart.goal_weight()) == pytest.approx(math.log(series), abs=1e-4)
    cut = deduction(CYCLE.format(options=", max_iterations=3")).parse(["w"])
    assert cut.stopped == "iterations"


def test_depth_stops_categories_from_growing() -> None:
    text = """
deduction d : FinSet 1 -> FinSet 1 [start=S, depth=2]
    atoms S, w
    rule wrap : span(I, J, X) |- span(I, J, Box(X))
    lexicon
        "w" : S = w
"""
    chart = deduction(text).parse(["w"])
    assert chart.stopped == "depth"
    assert float(chart.weight("span(0, 1, Box(Box(S)))")) == 0.0
    assert float(chart.weight("span(0, 1, Box(Box(Box(S))))")) < -1e20


def test_weights_belong_to_the_instantiation_of_a_rule() -> None:
    text = """
deduction d : FinSet 3 -> FinSet 1 [start=S]
    atoms S, N, V, w
    rule apply : span(I, J, Over(X, Y)), span(J, K, Y) |- span(I, K, X) #[learnable]
    lexicon
        "f" : Over(S, N) = w
        "g" : Over(S, V) = w
        "n" : N = w
        "v" : V = w
"""
    d = deduction(text)
    assert d.rule_apply.shape == (2,)
    d.parse("g v").goal_weight().backward()
    used = d.instances[0][("S", "V")]
    assert d.rule_apply.grad[used] == 1.0 and d.rule_apply.grad.sum() == 1.0


def test_forms_are_equal_up_to_renaming() -> None:
    text = """
deduction d : FinSet 2 -> FinSet 1 [start=S, semiring=Counting]
    atoms S, sleeps
    binders Lam
    rule same : span(I, J, X, F), span(J, K, X, F) |- span(I, K, X, F)
    lexicon
        "one" : S = Lam(x, sleep(x))
        "two" : S = Lam(y, sleep(y))
"""
    chart = deduction(text).parse("one two")
    assert float(chart.goal_weight()) == 1.0
    assert float(chart.weight("span(0, 2, S, Lam(z, sleep(z)))")) == 1.0


def test_derivations_are_trees() -> None:
    chart = deduction(BINARY.format(semiring="LogProb")).parse("a b a")
    trees = chart.derivations("span(0, 3, S)")
    assert len(trees) == 2
    assert {tree[0] for tree in trees} == {"join"}
    leaf = trees[0][2][0] if not trees[0][2][0][2] else trees[0][2][1]
    assert leaf[0] == "a"


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(InputProblem, match="no word `c`"):
        deduction(BINARY.format(semiring="LogProb")).parse("a c")


def test_a_lexicon_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "words.lex"
    file.write_text('"c" : S = a #[learnable]\n"d" : S = b\n', encoding="utf-8")
    text = BINARY.format(semiring="Counting") + f'    lexicon from "{file}"\n'
    d = deduction(text)
    assert float(d.parse("c d a").goal_weight()) == 2.0
    assert d.lexicon.shape == (2,)


def test_a_program_learns_the_weights() -> None:
    text = (
        BINARY.format(semiring="LogProb")
        + """
program p : FinSet 1 -> FinSet 1
    let chart = parse(d, sentence)
    score z = chart.goal_weight()
    return z
"""
    )
    model = loads(text).morphism
    data = {"sentence": ["a", "b", "a"]}
    assert float(trace(model, None, data).log_joint.detach()) == pytest.approx(2 * -0.5 + math.log(2))
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    svi = SVI(model, AutoPriorGuide(model), optim, ELBO())
    losses = [svi.step(None, data) for _ in range(5)]
    assert losses[-1] < losses[0]


def test_composed_deductions_pass_their_goals_on() -> None:
    text = """
deduction letters : FinSet 2 -> FinSet 1 [start=W]
    atoms W, L, l
    rule word : span(I, J, L), span(J, K, L) |- span(I, K, W) #[weight=-0.25]
    lexicon
        "x" : L = l
deduction words : FinSet 2 -> FinSet 1 [start=S]
    atoms S, W
    rule pair : span(I, J, W), span(J, K, W) |- span(I, K, S) #[weight=-1.0]
program p : FinSet 1 -> FinSet 1
    let both = compose(letters, words)
    let chart = parse(both, "x x x x")
    score z = chart.goal_weight()
    return z
"""
    found = float(trace(loads(text).morphism).log_joint.detach())
    assert found == pytest.approx(2 * -0.25 - 1.0)


PAIRS = """\
deduction d : FinSet 2 -> FinSet 1 [start=A]
    atoms A, B
    rule pair : span(I, J, A), span(J, K, B) |- pair(I, K, A) {first}
    rule glue : pair(I, J, X), pair(J, K, X) |- pair(I, K, X) {second}
    rule up : pair(I, K, X) |- span(I, K, X)
    lexicon
        "a" : A = A
        "b" : B = B

program p : FinSet 1 -> FinSet 1
    let chart = parse(d, "{words}")
    score s = chart.goal_weight()
    return s
"""


def test_a_rule_that_concludes_another_item_has_a_weight_for_each_category() -> None:
    """Positions are forgotten in every item that takes them over from a span."""
    text = PAIRS.format(first="#[learnable]", second="#[learnable]", words="a b a b")
    module = loads(text).deductions["d"]
    assert module.instances[:2] == ({(): 0}, {("A",): 0})
    with torch.no_grad():
        module.rule_pair.fill_(-0.5)
        module.rule_glue.fill_(-0.25)
    chart = module.parse("a b a b")
    assert float(chart.weight("pair(0, 4, A)").detach()) == pytest.approx(-1.25)
    # What is no span of the start category is no goal, whatever it is about.
    assert float(chart.goal_weight().detach()) == pytest.approx(float(chart.weight("span(0, 4, A)").detach()))


def test_a_deduction_whose_weights_have_no_part_cannot_be_fitted() -> None:
    model = loads(PAIRS.format(first="", second="#[learnable]", words="b b")).programs["p"]
    guide = AutoPriorGuide(model, observed_names=set())
    svi = SVI(model, guide, torch.optim.SGD(model.parameters(), lr=0.1), ELBO())
    with pytest.raises(RuntimeProblem, match=r"nothing to fit, for none of its parameters \(`d\.rule_glue`\)"):
        svi.step(None, {})


def test_deductions_in_turn_parse_several_sentences() -> None:
    """Each sentence has the weight that it has by itself."""
    words = """
deduction words : FinSet 2 -> FinSet 1 [start=A]
    atoms A, w
    rule twice : span(I, J, A), span(J, K, A) |- span(I, K, A) #[weight=-0.3]
    lexicon
        "a" : A = w #[weight=-0.1]
        "b" : A = w
"""
    whole = """
deduction whole : FinSet 1 -> FinSet 1 [start=S]
    atoms A, S, w
    rule up : span(I, J, A) |- span(I, J, S) #[weight=-0.7]
    lexicon
        "a" : A = w
"""
    program = "program p : FinSet 1 -> FinSet 1\n    let chart = parse(compose(words, whole), told)\n"
    program += "    score z = chart.goal_weight()\n    return z\n"
    model = loads(words + whole + program).morphism
    told = ["a b", "b b b", "a b"]
    each = [float(model.log_joint(None, {"told": one}).sum()) for one in told]
    assert each[0] == pytest.approx(-0.1 - 0.3 - 0.7, abs=1e-5)
    assert float(model.log_joint(None, {"told": told}).sum()) == pytest.approx(sum(each), abs=1e-5)
