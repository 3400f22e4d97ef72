"""Encoders of terms, against an evaluation node by node in plain torch."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import pytest
import torch

from qvr_core import dsl
from qvr_core.runtime.programs.declared.encoders import EncoderArrow
from qvr_core.runtime.values.errors import InputProblem

FILE = """\
object Name : {p, q, r}
object Code : Real 5
object Label : {no, yes}
data type Formula = atom(Name) | truth | not(Formula) | and(Formula, Formula) | near(Real 2, FinSet 4, Formula)
morphism letter : Name -> Code [role=embed]
morphism start : One -> Code [role=embed]
morphism place : FinSet 4 -> Code [role=embed]
morphism negate : Code -> Code [role=linear]
morphism combine : Code * Code -> Code [role=linear]
morphism sized : Real 2 * Code -> Code [role=linear]
morphism judge : Code -> Label [role=kernel, param_source=linear] ~ Categorical
def half(x) = 0.5 * x
encoder meaning : Formula -> Code
    not(a) = tanh(negate(a))
    and(a, b) = tanh(combine(a, b)) + half(a)
    atom(n) = letter(n)
    truth = start(0)
    near(s, i, a) = sized(s, a) * place(i)
encoder height : Formula -> Real 1
    atom(n) = 1.0
    truth = 1.0
    not(a) = a + 1.0
    and(a, b) = maximum(a, b) + 1.0
    near(s, i, a) = a + 1.0
let judged = meaning >> negate >> judge
program classify(f) : Formula -> Label
    observe label <- judged(f)
    return label
program compare(f, x, g) : Formula * Real 5 * Formula -> Code
    let y = meaning(f) * x - meaning(g)
    return y
program measured(f) : Formula -> Real 1
    let y = 2.0 * height(f)
    return y
export classify
"""


def a_term(numbers: random.Random, depth: int) -> list[Any]:
    name = numbers.choice(("atom", "truth") if depth == 0 else ("atom", "truth", "not", "and", "near", "and"))
    match name:
        case "atom":
            return [name, numbers.choice("pqr")]
        case "not":
            return [name, a_term(numbers, depth - 1)]
        case "and":
            return [name, a_term(numbers, depth - 1), a_term(numbers, depth - 1)]
        case "near":
            return [name, [numbers.random(), -2.5], numbers.randrange(4), a_term(numbers, depth - 1)]
        case _:
            return [name]


def by_node(term: list[Any], weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """`meaning` of one term, from its definition."""

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]

    match term:
        case ["atom", name]:
            return weights["letter.weight"]["pqr".index(name)]
        case ["not", a]:
            return torch.tanh(linear("negate", by_node(a, weights)))
        case ["and", a, b]:
            left, right = by_node(a, weights), by_node(b, weights)
            return torch.tanh(linear("combine", torch.cat([left, right]))) + 0.5 * left
        case ["near", size, i, a]:
            inner = torch.cat([torch.tensor(size, dtype=torch.float64), by_node(a, weights)])
            return linear("sized", inner) * weights["place.weight"][i]
        case _:
            return weights["start.weight"][0]


@pytest.fixture(scope="module")
def terms() -> list[list[Any]]:
    numbers = random.Random(5)
    return [a_term(numbers, depth) for depth in (0, 1, 2, 3, 5, 7, 0, 4, 9)]


def loaded() -> Any:
    torch.manual_seed(0)
    return dsl.loads(FILE)


def in_double(module: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    module.to(torch.float64)
    return module, dict(module.named_parameters())


def test_values_and_gradients_are_those_of_each_node(terms: list[list[Any]]) -> None:
    model, weights = in_double(loaded().part("meaning"))
    found, wanted = model.rsample(terms), torch.stack([by_node(term, weights) for term in terms])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    mixing = torch.linspace(-1.0, 2.0, wanted.numel(), dtype=torch.float64).reshape(wanted.shape)
    names = [*weights]
    ours, plain = (
        torch.autograd.grad((mixing * value * value).sum(), [weights[name] for name in names])
        for value in (found, wanted)
    )
    for name, one, other in zip(names, ours, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11, msg=name)


def test_a_row_does_not_see_the_others(terms: list[list[Any]]) -> None:
    model, _ = in_double(loaded().part("meaning"))
    whole = model.rsample(terms)
    for row, term in enumerate(terms):
        torch.testing.assert_close(model.rsample([term])[0], whole[row], rtol=0, atol=1e-14)
    assert model.rsample([]).shape == (0, 5)


def test_encoders_in_programs_and_arrows(terms: list[list[Any]]) -> None:
    program = loaded()
    compare, weights = in_double(program.compare)
    x, other = torch.randn(len(terms), 5, dtype=torch.float64), terms[::-1]
    wanted = torch.stack([
        by_node(f, weights) * one - by_node(g, weights) for f, one, g in zip(terms, x, other, strict=True)
    ])  # fmt: skip
    torch.testing.assert_close(compare.rsample((terms, x, other)), wanted, rtol=0, atol=1e-12)

    # what the let judges is the kernel at what plain torch computes
    classify, weights = in_double(program.classify)
    codes = torch.stack([by_node(term, weights) for term in terms])
    codes = codes @ weights["negate.weight"].T + weights["negate.bias"]
    labels = torch.tensor([row % 2 for row in range(len(terms))])
    logits = codes @ weights["judge.output.weight"].T + weights["judge.output.bias"]
    wanted = logits.log_softmax(-1)[torch.arange(len(terms)), labels]
    torch.testing.assert_close(classify.log_joint(terms, {"label": labels}), wanted, rtol=0, atol=1e-12)
    again = classify.log_joint([*terms, *terms], {"label": labels.repeat(2)})
    torch.testing.assert_close(again, wanted.repeat(2), rtol=0, atol=1e-12)


def test_numbers_without_weights() -> None:
    found = loaded().measured.rsample(["truth", "(and (atom p) (not (not truth)))", "(near (1 2) 0 truth)"])
    assert found.flatten().tolist() == [2.0, 8.0, 4.0]


def test_deep_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node is evaluated once, and as many cases run as there are levels, however deep the terms are."""
    seen: list[int] = []
    own = EncoderArrow._case

    def counted(self: EncoderArrow, group: Any, *others: Any) -> torch.Tensor:
        seen.append(len(group.nodes))
        return own(self, group, *others)

    measured = loaded().measured
    monkeypatch.setattr(EncoderArrow, "_case", counted)
    deep = 999
    term = "(not " * deep + "truth" + ")" * deep
    found = measured.rsample([term, term, "truth"])
    assert found.flatten().tolist() == [2000.0, 2000.0, 2.0]
    assert sum(seen) == 2 * (deep + 1) + 1
    assert len(seen) == deep + 2  # `truth` ends two terms at the last level and is one of its own at the first


def test_what_comes_from_outside_is_checked() -> None:
    classify = loaded().classify
    with pytest.raises(InputProblem, match=r"row 2: `Formula` has no constructor `nott`\. Did you mean `not`"):
        classify.rsample(["truth", "(nott truth)"])
    with pytest.raises(InputProblem, match="a list of terms of `Formula`, one a row, found one term"):
        classify.rsample("truth")
    table = classify.input(["(not truth)"])
    assert torch.equal(classify.input(table), table)
    for place, wrong in ((0, 9), (1, 1), (2, 0), (2, 7)):
        broken = table.clone()
        broken[0, 0, place] = wrong
        with pytest.raises(InputProblem, match="numbers that are no such tables"):
            classify.rsample(broken)
    with pytest.raises(InputProblem, match=r"found float32 \(2, 3\)"):
        classify.rsample(torch.zeros(2, 3))


def test_copies_are_made_anew(terms: list[list[Any]]) -> None:
    model = loaded().compare
    given = (terms, torch.ones(len(terms), 5), terms[::-1])
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(made.rsample(given), model.rsample(given))
