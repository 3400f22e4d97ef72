"""Finite intermediates are summed out: against enumeration by hand, and beyond the limits they are innovations."""

from __future__ import annotations

import itertools

import pytest
import torch

from qvr_core.runtime.arrows import summation
from tests.runtime import nodes as n

K = n.finite(3, "K")


def normal_log(value, loc, scale):
    return torch.distributions.Normal(loc, scale).log_prob(value).sum(-1)


def test_a_finite_intermediate_is_summed_out():
    choose = n.kernel("choose", n.real(2), K, "Categorical")
    emit = n.kernel("emit", K, n.real(2), scale=0.5)
    module = n.build(n.compose(n.ref(choose), n.ref(emit)), choose, emit)
    x, y = torch.randn(5, 2), torch.randn(5, 2)
    choice, emission = module.head[0], module.tail[0]
    prior = choice.net(x).log_softmax(-1)
    each = torch.stack([normal_log(y, *emission.params(torch.full((5,), k))) for k in range(3)], 1)
    assert torch.allclose(module.log_prob(x, y), torch.logsumexp(prior + each, 1), rtol=1e-5)
    assert [(spec.path, spec.final) for spec in module.noise_specs(x)] == [("emit", True)]
    drawn = module.draw(x)
    assert torch.allclose(drawn.log_prob, module.log_prob(x, drawn.value), rtol=1e-5)
    assert drawn.score_log_prob is not None and list(drawn.noise) == ["emit"]


def test_remaining_innovations_are_shared_by_all_values():
    choose = n.kernel("choose", n.real(2), K, "Categorical")
    middle = n.kernel("middle", K, n.real(4))
    last = n.kernel("last", n.real(4), n.real(2))
    module = n.build(n.compose(*map(n.ref, (choose, middle, last))), choose, middle, last)
    x, y, u = torch.randn(5, 2), torch.randn(5, 2), torch.randn(5, 4)
    assert {spec.path: spec.final for spec in module.noise_specs(x)} == {"middle": False, "last": True}
    parts = {arrow.path: arrow for arrow in module.leaves.values()}
    total = []
    for k in range(3):
        loc, scale = parts["middle"].params(torch.full((5,), k))
        total.append(
            parts["choose"].net(x).log_softmax(-1)[:, k] + normal_log(y, *parts["last"].params(loc + scale * u))
        )
    log_prob, log_u = module.densities(x, y, {"middle": u})
    assert torch.allclose(log_prob, torch.logsumexp(torch.stack(total), 0), rtol=1e-5)
    assert torch.allclose(log_u, normal_log(u, 0.0, 1.0), rtol=1e-5)


def test_a_chain_of_finite_kernels_is_a_matrix_product():
    first, second = (n.kernel(name, K, K, None) for name in ("first", "second"))
    module = n.build(n.compose(n.ref(first), n.ref(second), n.ref(first)), first, second)
    a, b = (leaf.net.table.weight.softmax(-1) for leaf in (module.leaves["first"], module.leaves["second"]))
    product = a @ b @ a
    x = torch.arange(3)
    for y in range(3):
        assert torch.allclose(module.log_prob(x, torch.full((3,), y)).exp(), product[:, y], rtol=1e-5)


def test_positions_of_a_sequence_are_summed_one_by_one():
    choose = n.kernel("choose", n.real(2), K, "Categorical")
    emit = n.kernel("emit", K, n.real(2))
    module = n.build(n.lift(n.compose(n.ref(choose), n.ref(emit))), choose, emit)
    x, y = torch.randn(4, 5, 2), torch.randn(4, 5, 2)
    by_position = torch.stack([module.log_prob(x[:, t], y[:, t]) for t in range(5)], 1)
    assert torch.allclose(module.log_prob(x, y), by_position.sum(1), rtol=1e-5)
    assert module.draw(x).value.shape == (4, 5, 2)


@pytest.mark.parametrize("backward", [False, True])
def test_a_finite_state_scan_is_the_forward_algorithm(backward):
    cell = n.kernel("cell", n.product(n.finite(4), K), K, None)
    module = n.build(n.scan(n.ref(cell), n.finite(4), K, backward=backward), cell)
    table = module.cell[0].net.table.weight.softmax(-1).view(4, 3, 3)
    x = torch.randint(0, 4, (6, 5))
    for row in range(6):
        belief = torch.eye(3)[0]
        for item in reversed(x[row]) if backward else x[row]:
            belief = belief @ table[item]
        for y in range(3):
            log_prob = module.log_prob(x[row : row + 1], torch.tensor([y]))
            assert torch.allclose(log_prob.exp(), belief[y], rtol=1e-4)
    assert [(s.path, s.base, s.final) for s in module.noise_specs(x)] == [("cell@last", "discrete", True)]
    drawn = module.draw(x)
    assert torch.allclose(drawn.log_prob, module.log_prob(x, drawn.value), rtol=1e-5)


@pytest.mark.parametrize("backward", [False, True])
def test_a_hidden_markov_model_by_enumeration(backward):
    cell = n.kernel("cell", n.product(n.finite(2), K), K, None)
    emit = n.kernel("emit", K, n.finite(4), None)
    scan = n.scan(n.ref(cell), n.finite(2), K, emit_all=True, backward=backward)
    module = n.build(n.compose(scan, n.lift(n.ref(emit))), cell, emit)
    move = module.chain[0].cell[0].net.table.weight.log_softmax(-1).view(2, 3, 3)
    out = module.emission[0].net.table.weight.log_softmax(-1)
    x, y = torch.randint(0, 2, (1, 4)), torch.randint(0, 4, (1, 4))
    order = [3, 2, 1, 0] if backward else [0, 1, 2, 3]
    terms = []
    for path in itertools.product(range(3), repeat=4):
        state, term = 0, torch.tensor(0.0)
        for position, following in zip(order, path, strict=True):
            term = term + move[x[0, position], state, following] + out[following, y[0, position]]
            state = following
        terms.append(term)
    assert torch.allclose(module.log_prob(x, y), torch.logsumexp(torch.stack(terms), 0), rtol=1e-5)
    drawn = module.draw(x.repeat(7, 1))
    assert drawn.value.shape == (7, 4) and drawn.log_prob.shape == (7,)


def test_beyond_the_limit_the_value_is_an_innovation(monkeypatch):
    choose = n.kernel("choose", n.real(2), K, "Categorical")
    emit = n.kernel("emit", K, n.real(2))
    module = n.build(n.compose(n.ref(choose), n.ref(emit)), choose, emit)
    monkeypatch.setattr(summation, "MOST_NUMBERS", 20)
    x = torch.randn(5, 2)
    assert [(s.path, s.base, s.final) for s in module.noise_specs(x)] == [
        ("choose", "discrete", False),
        ("emit", "normal", True),
    ]
    drawn = module.draw(x)
    log_prob, log_u = module.densities(x, drawn.value, drawn.noise)
    assert torch.allclose(log_u, module.head[0].log_prob(x, drawn.noise["choose"]), rtol=1e-5)
    assert torch.allclose(log_prob, drawn.log_prob, rtol=1e-5)


def test_an_inner_finite_draw_before_a_later_kernel_is_summed_in_that_branch_only_where_it_is_last():
    choose = n.kernel("choose", n.real(2), K, "Categorical")
    emit = n.kernel("emit", K, n.real(2))
    other = n.kernel("other", n.real(2), n.real(2))
    last = n.kernel("last", n.real(4), n.real(1))
    branch = n.compose(n.ref(choose), n.ref(emit))
    fan = n.fan(branch, n.ref(other))
    ending = n.build(fan, choose, emit, other)
    x = torch.randn(5, 2)
    assert {s.path for s in ending.noise_specs(x)} == {"emit", "other"}
    inside = n.build(n.compose(fan, n.ref(last)), choose, emit, other, last)
    assert {s.path: s.base for s in inside.noise_specs(x) if not s.final}["choose"] == "discrete"
    drawn = inside.draw(x)
    log_prob, log_u = inside.densities(x, drawn.value, drawn.noise)
    assert torch.allclose(log_prob, drawn.log_prob) and torch.allclose(log_u, drawn.log_innovations)
