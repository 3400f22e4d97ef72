"""Tensor arrows: composition in every algebra against loops, and the operations on matrices."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest
import torch

from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.tensors.algebras import ALGEBRAS
from qvr_core.runtime.tensors.tensors import LatentTensor
from qvr_core.runtime.values.errors import InputProblem, MissingData, RuntimeProblem
from qvr_core.semantics.types.model.arrows import (
    Compose,
    Curry,
    Dagger,
    DropFactors,
    Fan,
    Freeze,
    Identity,
    PartialTrace,
    Repeat,
    Stack,
    Tensor,
)
from tests.runtime import nodes as n

A, B, C, X = n.finite(3, "A"), n.finite(4, "B"), n.finite(2, "C"), n.finite(5, "X")

BY_HAND = {
    "product_fuzzy": (lambda a, b: a * b, lambda t: 1 - math.prod(1 - x for x in t)),
    "boolean": (lambda a, b: a * b, max),
    "lukasiewicz": (lambda a, b: max(a + b - 1, 0.0), lambda t: min(sum(t), 1.0)),
    "godel": (min, max),
    "tropical": (lambda a, b: a + b, min),
    "max_plus": (lambda a, b: a + b, max),
    "log_prob": (lambda a, b: a + b, lambda t: math.log(sum(math.exp(x) for x in t))),
    "real": (lambda a, b: a * b, sum),
    "probability": (lambda a, b: a * b, sum),
    "counting": (lambda a, b: a * b, sum),
    "markov": (lambda a, b: a * b, sum),
}


def compose(*stages):
    return n.matrices(Compose, stages[0].domain, stages[-1].codomain, stages=stages, operators=())


def build(node, *arrows, data=None, **files):
    return Builder(n.file(*arrows, **files), data).arrow(node)


def test_every_algebra_is_covered():
    assert set(BY_HAND) == set(ALGEBRAS)


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_composition(name):
    f, g = n.latent("f", A, B, name), n.latent("g", B, C, name)
    module = build(compose(n.ref(f), n.ref(g)), f, g)
    left, right = (module.leaves[key].matrix().tolist() for key in "fg")
    times, join = BY_HAND[name]
    expected = [[join([times(left[i][k], right[k][j]) for k in range(4)]) for j in range(2)] for i in range(3)]
    assert torch.allclose(module.matrix(), torch.tensor(expected), atol=1e-5)
    module.matrix().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_identity_is_neutral(name):
    f = n.latent("f", A, A, name)
    identity = n.matrices(Identity, A, A)
    module = build(compose(n.ref(f), identity), f)
    assert torch.allclose(module.matrix(), module.leaves["f"].matrix(), atol=1e-6)


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_latents_live_in_the_value_set(name):
    f = n.latent("f", A, B, name, scale=4.0)
    matrix = build(n.ref(f), f).matrix()
    algebra = ALGEBRAS[name]
    assert matrix.min() >= algebra.low and matrix.max() <= algebra.high
    if name in ("markov", "probability"):
        assert torch.allclose(matrix.sum(-1), torch.ones(3))
    if name == "boolean":
        assert set(matrix.unique().tolist()) <= {0.0, 1.0}


def test_a_large_product_is_cut_by_rows(monkeypatch):
    f, g = n.latent("f", A, B, "godel"), n.latent("g", B, C, "godel")
    module = build(compose(n.ref(f), n.ref(g)), f, g)
    whole = module.matrix()
    monkeypatch.setattr("qvr_core.runtime.tensors.algebras.MOST_NUMBERS", 8)
    assert torch.equal(module.matrix(), whole)


def test_dagger_trace_marginalize_freeze():
    f = n.latent("f", n.product(A, X), n.product(B, X), "real")
    ref = n.ref(f)
    module = build(ref, f)
    tensor = module.matrix()
    assert tensor.shape == (3, 5, 4, 5)

    def matrix(node):
        other = build(node, f)
        next(other.parameters()).data.copy_(module.weight.data)
        return other.matrix()

    dagger = n.matrices(Dagger, ref.codomain, ref.domain, base=ref)
    assert torch.equal(matrix(dagger), tensor.permute(2, 3, 0, 1))
    trace = n.matrices(PartialTrace, A, B, base=ref, over=X)
    assert torch.allclose(matrix(trace), torch.einsum("axbx->ab", tensor))
    drop = n.matrices(DropFactors, ref.domain, X, base=ref, indices=(0,))
    assert torch.allclose(matrix(drop), tensor.sum(2))
    frozen = matrix(n.matrices(Freeze, ref.domain, ref.codomain, base=ref))
    assert torch.equal(frozen, tensor) and not frozen.requires_grad


def test_currying_is_a_view_of_the_same_weights():
    f = n.latent("f", n.product(A, C, X), B, "real")
    base = build(n.ref(f), f)
    weights = base.matrix().detach().numpy()
    right = n.matrices(Curry, n.product(A, C), n.product(X, B), base=n.ref(f), left=False)
    left = n.matrices(Curry, n.product(C, X), n.product(A, B), base=n.ref(f), left=True)
    twice = n.matrices(Curry, X, n.product(C, A, B), base=left, left=True)
    for node, axes in ((right, (0, 1, 2, 3)), (left, (1, 2, 0, 3)), (twice, (2, 1, 0, 3))):
        module = build(node, f)
        (weight,) = module.parameters()
        weight.data.copy_(base.weight.data)
        expected = weights.transpose(axes)
        assert np.array_equal(module.matrix().detach().numpy(), expected)
        assert np.array_equal(module.flat().detach().numpy(), expected.reshape(module.shape))
        assert module.matrix().data_ptr() == weight.data_ptr()
    # a row of the curried arrow, and its place in a composition
    module = build(compose(right, n.matrices(Dagger, n.product(X, B), n.product(A, C), base=right)), f)
    (weight,) = module.parameters()
    rows = weight.detach().numpy().reshape(6, 20)
    assert np.allclose(module.flat().detach().numpy(), rows @ rows.T, atol=1e-6)


def test_tensor_product_and_fan():
    f, g, h = n.latent("f", A, B, "real"), n.latent("g", C, X, "real"), n.latent("h", A, X, "real")
    both = n.matrices(Tensor, n.product(A, C), n.product(B, X), factors=(n.ref(f), n.ref(g)))
    module = build(both, f, g)
    left, right = (module.leaves[key].matrix() for key in "fg")
    assert torch.allclose(module.matrix(), torch.einsum("ab,cx->acbx", left, right))
    fan = n.matrices(Fan, A, n.product(B, X), branches=(n.ref(f), n.ref(h)), replicated=None)
    module = build(fan, f, h)
    left, right = (module.leaves[key].matrix() for key in "fh")
    assert torch.allclose(module.matrix(), torch.einsum("ab,ax->abx", left, right))


def test_repeat_is_a_power_and_stack_has_fresh_copies():
    f = n.latent("f", A, A, "real")
    power = build(n.matrices(Repeat, A, A, body=n.ref(f), count=3), f)
    matrix = power.leaves["f"].matrix()
    assert torch.allclose(power.matrix(), matrix @ matrix @ matrix, atol=1e-6)
    stack = build(n.matrices(Stack, A, A, body=n.ref(f), count=3), f)
    copies = [leaf.matrix() for leaf in stack.leaves.values()]
    assert len(copies) == 3 and torch.allclose(stack.matrix(), reduce(torch.matmul, copies), atol=1e-6)


def test_a_finite_kernel_stands_for_its_matrix():
    f, k = n.latent("f", A, B, "real"), n.kernel("k", B, C, None)
    module = build(compose(n.ref(f), n.ref(k)), f, k)
    probabilities = module.leaves["k"].net.table.weight.softmax(-1)
    assert torch.allclose(module.matrix(), module.leaves["f"].matrix() @ probabilities)


def test_observed_data_is_checked():
    f = n.observed("f", A, B, "godel", source="scores")
    given = torch.rand(3, 4)
    assert torch.equal(build(n.ref(f), f, data={"scores": given}).matrix(), given)
    with pytest.raises(MissingData, match="`scores`"):
        build(n.ref(f), f)
    with pytest.raises(InputProblem, match=r"shape \(4, 4\), expected 3 × 4"):
        build(n.ref(f), f, data={"scores": torch.rand(4, 4)})
    with pytest.raises(InputProblem, match="holds 2, but weights in `godel` lie between 0 and 1"):
        build(n.ref(f), f, data={"scores": given + 2 - given})


def test_prior_of_a_latent():
    f = n.latent("f", A, B, "real", prior=("Normal", (("loc", 1.0), ("scale", 2.0))))
    leaf = build(n.ref(f), f)
    assert isinstance(leaf, LatentTensor)
    expected = torch.distributions.Normal(1.0, 2.0).log_prob(leaf.matrix()).sum()
    assert torch.allclose(leaf.log_prior(), expected)


def test_a_row_of_the_matrix():
    f = n.latent("f", A, B, "markov")
    module = build(n.ref(f), f)
    assert torch.equal(module(torch.tensor([2, 0])), module.matrix()[[2, 0]])


def test_a_composition_of_ones_own():
    from qvr_core.semantics.types.model.deductions import Composition
    from qvr_core.semantics.types.model.expressions import Bound, Builtin, Constant, ValueType

    def e(kind, **fields):
        return kind(type=ValueType(None), origin=n.ORIGIN, **fields)

    operations = {
        "tensor_op": (("a", "b"), e(Builtin, function="mul", args=(e(Bound, name="a"), e(Bound, name="b")))),
        "join": (("t",), e(Builtin, function="max", args=(e(Bound, name="t"),))),
        "unit": ((), e(Constant, value=1.0)),
        "zero": ((), e(Constant, value=0.0)),
    }
    viterbi = Composition(name="viterbi", kind="algebra", operations=operations, origin=n.ORIGIN)
    f, g = n.latent("f", A, B, "viterbi"), n.latent("g", B, C, "viterbi")
    file = n.file(f, g)
    object.__setattr__(file, "compositions", {"viterbi": viterbi})
    module = Builder(file).arrow(compose(n.ref(f), n.ref(g)))
    left, right = (module.leaves[key].matrix() for key in "fg")
    assert torch.allclose(module.matrix(), (left[:, :, None] * right[None]).amax(1))


def test_an_observed_arrow_that_nothing_gives_has_no_matrix() -> None:
    three = n.finite(3)
    with pytest.raises(RuntimeProblem, match=r'the matrix of `w` is: write `~ from_data\("w"\)`'):
        n.build(n.observed("w", three, three, "real"))
