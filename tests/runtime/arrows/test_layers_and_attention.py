"""Deterministic arrows against torch's own layers."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from qvr_core.runtime.values import padding
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.types.model.arrows import (
    Attention,
    Discretize,
    Freeze,
    Last,
    LinearMap,
    MeanOverTime,
    Norm,
    Position,
    Repeat,
    Residual,
    Sort,
)
from tests.runtime import nodes as n

DETERMINISTIC = Sort.DETERMINISTIC


def linear(name, inside, out, **fields):
    settings = {"bias": True, "rank": None, "init": "default", **fields}
    return LinearMap(name=name, **settings, **n.base(n.real(inside), n.real(out), DETERMINISTIC))


def attention(**fields):
    settings = {"heads": 2, "causal": False, "dropout": 0.0, **fields}
    return Attention(name="a", **settings, **n.base(n.seq(n.real(6)), n.seq(n.real(6)), DETERMINISTIC))


def test_linear():
    node = linear("f", 5, 3)
    module = n.build(n.ref(node), node)
    x = torch.randn(4, 5)
    assert torch.allclose(module(x), x @ module.weight.T + module.bias)
    assert module(torch.randn(4, 7, 5)).shape == (4, 7, 3)


def test_low_rank_linear_has_fewer_parameters_and_the_rank():
    node = linear("f", 20, 10, rank=3)
    module = n.build(n.ref(node), node)
    assert sum(p.numel() for p in module.parameters()) == 3 * 30 + 10
    jacobian = torch.func.jacrev(module)(torch.randn(20))
    assert torch.linalg.matrix_rank(jacobian, tol=1e-4) == 3


def test_initialisations():
    zeros = n.build(linear("f", 5, 3, init="zeros"))
    assert all(p.abs().max() == 0 for p in zeros.parameters())
    xavier = n.build(linear("f", 50, 30, init="xavier"))
    assert xavier.weight.abs().max().item() == pytest.approx((6 / 80) ** 0.5, rel=0.02)
    assert n.build(linear("f", 5, 3, bias=False)).bias is None


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_attention_equals_torch(causal, padded):
    node = attention(causal=causal)
    module = n.build(n.ref(node), node)
    torch.nn.init.normal_(module.in_proj.bias)
    reference = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    reference.load_state_dict(
        {
            "in_proj_weight": module.in_proj.weight,
            "in_proj_bias": module.in_proj.bias,
            "out_proj.weight": module.out_proj.weight,
            "out_proj.bias": module.out_proj.bias,
        }
    )
    x = torch.randn(3, 5, 6)
    lengths = torch.tensor([5, 3, 1])
    valid = torch.arange(5) < lengths[:, None] if padded else None
    forbidden = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    expected, _ = reference(
        x, x, x, key_padding_mask=None if valid is None else ~valid, attn_mask=forbidden, need_weights=False
    )
    with padding.padded(lengths) if padded else nullcontext():
        ours = module(x)
    assert torch.allclose(ours, expected, atol=1e-5)


def test_causal_attention_does_not_look_ahead():
    node = attention(causal=True)
    module = n.build(n.ref(node), node)
    x = torch.randn(2, 5, 6)
    changed = x.clone()
    changed[:, 3:] += 1.0
    assert torch.allclose(module(x)[:, :3], module(changed)[:, :3], atol=1e-6)


def test_norm_position_residual_last_mean():
    norm = Norm(name="n", **n.base(n.real(6), n.real(6), DETERMINISTIC))
    x = torch.randn(3, 5, 6)
    assert torch.allclose(n.build(norm)(x), torch.nn.functional.layer_norm(x, (6,)))
    position = Position(name="p", max_length=5, **n.base(n.seq(n.real(6)), n.seq(n.real(6)), DETERMINISTIC))
    module = n.build(position)
    assert torch.allclose(module(x), x + module.weight)
    with pytest.raises(InputProblem, match=r"`p` has learned positions for 5 elements.*the sequence has 6"):
        module(torch.randn(3, 6, 6))
    residual = Residual(body=norm, **n.base(n.real(6), n.real(6), DETERMINISTIC))
    assert torch.allclose(n.build(residual)(x), x + torch.nn.functional.layer_norm(x, (6,)))
    last = Last(**n.base(n.seq(n.real(6)), n.real(6), DETERMINISTIC))
    assert torch.equal(n.build(last)(x), x[:, -1])
    mean = MeanOverTime(**n.base(n.seq(n.real(6)), n.real(6), DETERMINISTIC))
    assert torch.equal(n.build(mean)(x), x.mean(1))


def test_mixed_domain_looks_finite_factors_up():
    node = n.kernel("f", n.product(n.finite(4), n.real(3), n.finite(2)), n.real(2))
    module = n.build(n.ref(node), node)
    names = {name: tuple(p.shape) for name, p in module.named_parameters()}
    assert names["lookup_0.weight"] == (4, 16) and names["lookup_1.weight"] == (2, 16)
    assert names["input.weight"] == (64, 35)
    drawn = module.draw((torch.tensor([0, 3]), torch.randn(2, 3), torch.tensor([1, 0])))
    assert drawn.value.shape == (2, 2)


def test_a_kernel_with_literal_arguments_ignores_its_input():
    node = n.kernel("f", n.real(3), n.real(2), fixed=(("loc", 1.0), ("scale", 2.0)))
    module = n.build(n.ref(node), node)
    assert not list(module.parameters())
    y = torch.randn(4, 2)
    expected = torch.distributions.Normal(1.0, 2.0).log_prob(y).sum(-1)
    assert torch.allclose(module.log_prob(torch.randn(4, 3), y), expected)
    assert module.draw(torch.randn(4, 3)).value.shape == (4, 2)


def test_freeze_stops_gradients_to_parameters_but_not_to_the_input():
    node = n.kernel("f", n.real(3), n.real(2))
    frozen = Freeze(base=n.ref(node), **n.base(n.real(3), n.real(2)))
    module = n.build(frozen, node)
    x = torch.randn(4, 3, requires_grad=True)
    drawn = module.draw(x)
    (drawn.value.sum() + drawn.log_prob.sum()).backward()
    assert all(p.grad is None for p in module.parameters()) and x.grad.abs().sum() > 0
    assert next(name for name, _ in module.named_parameters()).startswith("f.")


def test_discretize():
    from qvr_core.semantics.types.spaces import Named, Real

    space = Named(Real((1,), 0.0, 2.0), "Real 1")
    node = Discretize(name="d", bins=4, **n.base(space, n.finite(4)))
    module = n.build(node)
    x = torch.tensor([[0.1], [0.6], [1.99], [7.0]])
    assert module.draw(x).value.tolist() == [0, 1, 3, 3]
    assert module.log_prob(x, torch.tensor([0, 1, 2, 3])).tolist() == [0.0, 0.0, -float("inf"), 0.0]


def test_repeat_counts_at_run_time():
    from qvr_core.runtime.arrows.repetition import n_steps

    node = linear("f", 3, 3)
    repeat = Repeat(body=n.ref(node), count=None, **n.base(n.real(3), n.real(3), DETERMINISTIC))
    module = n.build(repeat, node)
    x = torch.randn(2, 3)
    once = module(x)
    with n_steps(2):
        assert torch.allclose(module(x), module.body[0](once))
