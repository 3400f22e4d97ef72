"""Changes of base against numpy, their gradients against finite differences, and homomorphisms against `>>`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.runtime.tensors.algebras import ALGEBRAS
from qvr_core.runtime.tensors.transformations import MAPS
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.language.compositions import COMPOSITIONS
from qvr_core.semantics.language.transformations import TRANSFORMATIONS

HEAD = """object A : FinSet 3
object B : FinSet 4
composition {source}
morphism f : A -> B [role=latent, scale=2.0]
"""
ON_NUMPY = {
    "log": np.log,
    "exp": np.exp,
    "support": lambda w: (w > 0).astype(w.dtype),
    "best": lambda w: w,
    "negate": lambda w: -w,
}
CASES = [(name, *pair) for name, each in TRANSFORMATIONS.items() for pair in each.pairs]


def weights(source: str, *shape: int, seed: int = 0) -> torch.Tensor:
    """Random weights of a composition, its zero among them where that is a number."""
    found = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if source in ("probability", "markov"):
        found = found.softmax(-1)
    elif source in ("real", "counting"):
        found = found.abs()
    if COMPOSITIONS[source].zero == 0.0:
        found[0, 0] = 0.0
    return found


@pytest.mark.parametrize(("name", "source", "target"), CASES)
def test_a_builtin_change_of_base_is_numpys(name: str, source: str, target: str) -> None:
    text = HEAD.format(source=source).replace("[role=latent, scale=2.0]", '[role=observed] ~ from_data("w")')
    text += f"composition {target}\nlet g = f.change_base({name})\nexport g\n"
    given = weights(source, 3, 4) if name != "log" else weights(source, 3, 4) + 0.01 * (source != "markov") + 1e-3
    module = loads(text, data={"w": given.clamp(max=1.0) if source in ("probability", "markov") else given}).morphism
    (leaf,) = module.leaves.values()
    before = leaf.matrix().detach().numpy()
    assert np.allclose(module.matrix().detach().numpy(), ON_NUMPY[name](before), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "source", "target"), [case for case in CASES if TRANSFORMATIONS[case[0]].keeps == "homomorphism"]
)
def test_a_builtin_homomorphism_commutes_with_composition(name: str, source: str, target: str) -> None:
    one, two, mapped = ALGEBRAS[source], ALGEBRAS[target], MAPS[name]
    for seed in range(5):
        f, g = weights(source, 3, 4, seed=seed), weights(source, 4, 2, seed=seed + 100)
        before = two.matmul(mapped(f), mapped(g))
        behind = mapped(one.matmul(f, g))
        assert torch.allclose(before, behind, atol=1e-12)
    assert float(mapped(torch.tensor([one.unit]))) == two.unit
    assert float(mapped(torch.tensor([one.zero]))) == two.zero


def test_best_is_no_homomorphism() -> None:
    f, g = weights("log_prob", 3, 4), weights("log_prob", 4, 2, seed=1)
    assert not torch.allclose(ALGEBRAS["max_plus"].matmul(f, g), ALGEBRAS["log_prob"].matmul(f, g))


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_the_checker_and_the_runtime_map_alike(name: str) -> None:
    for source, _ in TRANSFORMATIONS[name].pairs:
        given = weights(source, 3, 4)
        expected = [[TRANSFORMATIONS[name].map(value) for value in row] for row in given.tolist()]
        assert torch.allclose(MAPS[name](given), torch.tensor(expected, dtype=given.dtype))


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_the_checker_and_the_runtime_compose_alike(name: str) -> None:
    facts, algebra = COMPOSITIONS[name], ALGEBRAS[name]
    given = [0.0, 1.0] if facts.whole else weights(name, 2, 3).clamp(facts.low, facts.high).flatten().tolist()
    for a in given:
        for b in given:
            pair = torch.tensor([a, b], dtype=torch.float64)
            assert float(algebra.times(pair[0], pair[1])) == pytest.approx(facts.times(a, b), abs=1e-12)
            assert float(algebra.join(pair)) == pytest.approx(facts.join((a, b)), abs=1e-12)


DECLARED = """transformation bent : real => real as map
    map(x) = x * sigmoid(2 * x) + 0.3
let g = f.change_base(bent) >> h
export g
"""


def test_a_declared_map_is_numpys_and_so_is_its_gradient() -> None:
    text = HEAD.format(source="real") + "morphism h : B -> A [role=latent]\n" + DECLARED
    module = loads(text).morphism.double()
    f, h = (module.leaves[name].weight for name in "fh")
    mixed = np.random.default_rng(3).normal(size=(3, 3))

    def value(of_f: np.ndarray) -> float:
        bent = of_f / (1 + np.exp(-2 * of_f)) + 0.3
        return float((mixed * (bent @ h.detach().numpy())).sum())

    at = f.detach().numpy().copy()
    total = (torch.tensor(mixed) * module.matrix()).sum()
    assert float(total.detach()) == pytest.approx(value(at), rel=1e-9)
    total.backward()
    step = 1e-6
    for place in np.ndindex(*at.shape):
        up, down = at.copy(), at.copy()
        up[place] += step
        down[place] -= step
        assert float(f.grad[place]) == pytest.approx((value(up) - value(down)) / (2 * step), abs=1e-7)


def test_the_gradient_of_log_is_finite_at_no_weight() -> None:
    given = torch.tensor([0.0, 0.5], requires_grad=True)
    MAPS["log"](given).clamp(min=-10.0).sum().backward()
    assert given.grad is not None and given.grad.tolist() == [0.0, 2.0]


def test_a_negative_weight_has_no_logarithm() -> None:
    module = loads(HEAD.format(source="real") + "let g = f.change_base(log)\nexport g\n").morphism
    with pytest.raises(InputProblem, match=r"the weight -[0-9.]+ has no logarithm"):
        module.matrix()


def test_no_gradient_goes_through_a_comparison() -> None:
    text = HEAD.format(source="real") + (
        "transformation there : real => boolean\n    map(x) = x > 0\nlet g = f.change_base(there)\nexport g\n"
    )
    module = loads(text).morphism
    matrix = module.matrix()
    assert not matrix.requires_grad
    assert torch.equal(matrix, (module.leaves["f"].matrix() > 0).float())


def test_below_a_change_of_base_the_first_algebra_holds() -> None:
    text = HEAD.format(source="log_prob") + (
        "morphism h : B -> A [role=latent]\ncomposition max_plus\nmorphism k : A -> A [role=latent]\n"
        "let g = (f >> h).change_base(best) >> k >> k.dagger\nexport g\n"
    )
    module = loads(text).morphism.double()
    f, h, k = (module.leaves[name].matrix().detach().numpy() for name in "fhk")
    first = np.log(np.exp(f) @ np.exp(h))
    second = (first[:, :, None] + k[None]).max(1)
    assert np.allclose(module.matrix().detach().numpy(), (second[:, :, None] + k.T[None]).max(1))


def test_a_formula_that_does_not_read_the_weight_gives_all_the_same() -> None:
    text = HEAD.format(source="real") + (
        "transformation flat : real => real\n    map(x) = 0.25\nlet g = f.change_base(flat)\nexport g\n"
    )
    assert torch.equal(loads(text).morphism.matrix(), torch.full((3, 4), 0.25))
