"""Decoders of terms, against an evaluation node by node in plain torch, and against all terms there are."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
import torch

from qvr_core import dsl
from qvr_core.runtime.families.links import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.term_tables import tables
from qvr_core.semantics.terms.written import term_text

HEAD = """\
object Name : {p, q, r}
object Code : Real 5
data type Formula = atom(Name) | truth | not(Formula) | and(Formula, Formula) | near(Real 2, FinSet 4, Formula)
morphism which : Code -> {not, and, near, truth, atom} [role=kernel, hidden_dim=6] ~ Categorical
morphism letter : Code -> Name [role=kernel, param_source=linear] ~ Categorical
morphism size : Code -> Real 2 [role=kernel, param_source=linear] ~ Normal
morphism place : Code * Code -> FinSet 4 [role=kernel, param_source=linear] ~ Categorical
morphism negate : Code -> Code [role=linear]
morphism left : Code -> Code [role=linear]
morphism right : Code -> Code [role=linear]
"""
FILE = f"""\
{HEAD}
decoder unmeaning : Code -> Formula [depth=6]
    and(h) = (tanh(left(h)), 0.5 * h + right(h))
    Formula(s) = which(s)
    atom(h) = letter(2.0 * h)
    not(h) = tanh(negate(h))
    near(u) = (size(tanh(u)), place(u, negate(u)), u)
program grammar(z) : Code -> Formula
    observe t <- unmeaning(z)
    return t
program latent(x) : Code -> Formula
    sample t <- unmeaning(tanh(x))
    return t
export grammar
"""
ORDER = ("not", "and", "near", "truth", "atom")
SMALL = """\
object Name : {{p, q}}
object Code : Real 3
data type Tree = leaf(Name) | stop | up(Tree) | node(Tree, Name, Tree)
morphism which : Code -> FinSet 4 [role=kernel] ~ Categorical
morphism letter : Code -> Name [role=kernel] ~ Categorical
morphism left : Code -> Code [role=linear]
decoder grow : Code -> Tree [depth={depth}]
    Tree(h) = which(h)
    leaf(h) = letter(h)
    up(h) = left(h)
    node(h) = (left(h), letter(h), 0.3 * h)
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


def by_node(term: list[Any], h: torch.Tensor, weights: dict[str, torch.Tensor], left: int) -> torch.Tensor:
    """The log density of one term made from state `h` with that many levels left, from its definition."""

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]

    hidden = torch.tanh(linear("which.hidden", torch.tanh(linear("which.input", h))))
    logits = linear("which.output", hidden)
    ends = [name in ("truth", "atom") for name in ORDER]
    if left == 1:
        logits = torch.where(torch.tensor(ends), logits, -torch.inf)
    found = logits.log_softmax(-1)[ORDER.index(term[0])]
    match term:
        case ["atom", name]:
            return found + linear("letter.output", 2.0 * h).log_softmax(-1)["pqr".index(name)]
        case ["not", a]:
            return found + by_node(a, torch.tanh(linear("negate", h)), weights, left - 1)
        case ["and", a, b]:
            found = found + by_node(a, torch.tanh(linear("left", h)), weights, left - 1)
            return found + by_node(b, 0.5 * h + linear("right", h), weights, left - 1)
        case ["near", size, i, a]:
            loc, raw = linear("size.output", torch.tanh(h)).chunk(2)
            scale = torch.nn.functional.softplus(raw + SOFTPLUS_SHIFT) + FLOOR
            found = (
                found + torch.distributions.Normal(loc, scale).log_prob(torch.tensor(size, dtype=torch.float64)).sum()
            )
            found = found + linear("place.output", torch.cat([h, linear("negate", h)])).log_softmax(-1)[i]
            return found + by_node(a, h, weights, left - 1)
        case _:
            return found


@pytest.fixture(scope="module")
def terms() -> list[list[Any]]:
    numbers = random.Random(5)
    return [a_term(numbers, depth) for depth in (0, 1, 2, 3, 5, 5, 0, 4, 5)]


def loaded(text: str = FILE) -> Any:
    torch.manual_seed(0)
    return dsl.loads(text)


def in_double(module: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    module.to(torch.float64)
    return module, dict(module.named_parameters())


def test_densities_and_gradients_are_those_of_each_node(terms: list[list[Any]]) -> None:
    model, weights = in_double(loaded().grammar)
    states = torch.randn(len(terms), 5, dtype=torch.float64, requires_grad=True)
    found = model.log_joint(states, {"t": terms})
    wanted = torch.stack([by_node(term, h, weights, 6) for term, h in zip(terms, states, strict=True)])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    mixing = torch.linspace(-1.0, 2.0, len(terms), dtype=torch.float64)
    moved = [states, *weights.values()]
    ours, plain = (torch.autograd.grad((mixing * one).sum(), moved) for one in (found, wanted))
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
        assert bool(one.abs().sum() > 0)


def test_a_row_does_not_see_the_others(terms: list[list[Any]]) -> None:
    model, _ = in_double(loaded().grammar)
    states = torch.randn(len(terms), 5, dtype=torch.float64)
    whole = model.log_joint(states, {"t": terms})
    for row, term in enumerate(terms):
        alone = model.log_joint(states[row : row + 1], {"t": [term]})
        torch.testing.assert_close(alone[0], whole[row], rtol=0, atol=1e-13)
    assert model.rsample(torch.zeros(0, 5)).shape[0] == 0


def all_terms(depth: int) -> list[list[Any]]:
    """All terms of `Tree` of at most that many levels."""
    found: list[list[Any]] = [["leaf", "p"], ["leaf", "q"], ["stop"]]
    if depth == 1:
        return found
    below = all_terms(depth - 1)
    found += [["up", one] for one in below]
    return found + [["node", a, name, b] for a, name, b in itertools.product(below, "pq", below)]


@pytest.mark.parametrize(("depth", "count"), [(1, 3), (2, 24), (3, 1179)])
def test_all_terms_have_probability_one_together(depth: int, count: int) -> None:
    grow, _ = in_double(loaded(SMALL.format(depth=depth)).part("grow"))
    terms = all_terms(depth)
    assert len(terms) == count
    for state in torch.randn(2, 3, dtype=torch.float64):
        found = grow.log_prob(state.expand(count, 3), terms).detach()
        assert abs(float(found.exp().sum()) - 1.0) < 1e-12


def test_draws_come_as_often_as_the_density_says() -> None:
    grow, _ = in_double(loaded(SMALL.format(depth=2)).part("grow"))
    state, count = torch.randn(1, 3, dtype=torch.float64), 40_000
    space = grow.codomain.space
    drawn = grow.rsample(state.expand(count, 3))
    seen = Counter(term_text(table, space) for table in drawn.tolist())
    terms = all_terms(2)
    chances = grow.log_prob(state.expand(len(terms), 3), terms).detach().exp()
    texts = [term_text(table, space) for table in tables(terms, space).tolist()]
    assert not seen.keys() - set(texts)
    chi = sum((seen[text] - count * float(p)) ** 2 / (count * float(p)) for text, p in zip(texts, chances, strict=True))
    assert chi < 51.2  # the 99.95 % point with 23 degrees of freedom


def test_draws_are_terms_as_data_write_them() -> None:
    """A drawn table is that of the term read back from its text, numbers and their bits included."""
    model = loaded().grammar
    drawn, again = (model.rsample(torch.zeros(300, 5), generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(drawn, again)
    space = model.codomain.space
    texts = [term_text(table, space) for table in drawn.tolist()]
    assert len(set(texts)) > 100 and any("near" in text for text in texts)
    assert torch.equal(tables(texts, space), drawn)


def test_what_is_not_made_has_no_density() -> None:
    model = loaded().grammar
    deep = "(not " * 6 + "truth" + ")" * 6
    with pytest.raises(InputProblem, match="deeper than 6 levels, the most that its decoder makes"):
        model.log_joint(torch.zeros(1, 5), {"t": [deep]})
    with pytest.raises(InputProblem, match=r"row 1: `Formula` has no constructor `nott`"):
        model.log_joint(torch.zeros(1, 5), {"t": ["(nott truth)"]})


def test_terms_are_latents_too() -> None:
    latent = loaded().latent
    terms = ["truth", "(and (atom p) truth)"]
    states = torch.randn(2, 5)
    given = latent.log_joint(states, {"t": terms})
    torch.testing.assert_close(given, loaded().grammar.log_joint(torch.tanh(states), {"t": terms}))


def test_each_node_stands_below_one_other() -> None:
    """A node that two others share, or that none names, would be made from no state or from two."""
    model = loaded().grammar
    table = tables(["(and truth truth)"], model.codomain.space)
    assert model.log_joint(torch.zeros(1, 5), {"t": table}).isfinite().all()
    table[0, 0, 3] = table[0, 0, 2]
    with pytest.raises(InputProblem, match="numbers that are no such tables"):
        model.log_joint(torch.zeros(1, 5), {"t": table})


def test_a_type_of_one_constructor_has_no_choice() -> None:
    text = SMALL[: SMALL.index("data type")] + (
        "data type Pair = pair(Name, Name)\n"
        "morphism letter : Code -> Name [role=kernel] ~ Categorical\n"
        "decoder two : Code -> Pair [depth=1]\n"
        "    pair(h) = (letter(h), letter(-h))\n"
    )
    two, _ = in_double(loaded(text.format(depth=1)).part("two"))
    terms = [["pair", a, b] for a in "pq" for b in "pq"]
    assert abs(float(two.log_prob(torch.ones(4, 3, dtype=torch.float64), terms).detach().exp().sum()) - 1.0) < 1e-12
