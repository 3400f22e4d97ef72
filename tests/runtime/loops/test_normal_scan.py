"""Compiled scans of Normal kernels give the values and gradients of plain operations under the same noise."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from qvr_core.runtime.arrows import normal_scan
from qvr_core.runtime.families.links import positive
from qvr_core.runtime.loops import forward_pass
from qvr_core.runtime.loops.cells import NormalKernel, normal_cell
from qvr_core.runtime.loops.engine import run_loop
from qvr_core.runtime.loops.run import LoopRun
from tests.runtime import nodes as n
from tests.runtime.arrows.test_arrows import bidirectional

SCALE = 0.3


def arguments(length, rows, hidden, size, groups=0, dtype=torch.float64):
    """Items, noise, start and the weights of each group; with width 3 of an item."""
    group = (groups,) if groups else ()
    shapes = [(*group, length, rows, 3), (*group, length, rows, size), (*group, rows, size)]
    for _ in range(max(1, groups)):
        shapes += [(hidden, 3 + size), (hidden,), (hidden, hidden), (hidden,), (2 * size, hidden), (2 * size,)]
    return [(torch.randn(*shape, dtype=dtype) * hidden**-0.5).requires_grad_() for shape in shapes]


def compiled(given, groups=0, emit_all=False, index=None):
    items, noise, start, *weights = given
    width, size, hidden = items.shape[-1], noise.shape[-1], len(weights[1])
    loop = normal_cell(NormalKernel(width + size, hidden, size, SCALE), width)
    run = LoopRun(loop, groups, noise.shape[-3], emit_all, (index, None))
    return run_loop(run, start, [items, noise, *weights])


def by_hand(given, groups=0, emit_all=False):
    """The states ([G,] [L,] B, S), group by group."""
    if groups:
        lead = [each.unbind(0) for each in given[:3]]
        each = [[*(part[g] for part in lead), *given[3 + 6 * g : 9 + 6 * g]] for g in range(groups)]
        return torch.stack([by_hand(own, 0, emit_all) for own in each])
    items, noise, state, w1, c1, w2, c2, w3, c3 = given
    states = []
    for item, fresh in zip(items, noise, strict=True):
        first = torch.tanh(F.linear(torch.cat([item, state], -1), w1, c1))
        mean, raw = F.linear(torch.tanh(F.linear(first, w2, c2)), w3, c3).chunk(2, -1)
        state = mean + SCALE * positive(raw) * fresh
        states.append(state)
    return torch.stack(states) if emit_all else state


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("emit_all", [False, True])
@pytest.mark.parametrize("rows", [5, 70])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_generated_backward_equals_autograd(groups, emit_all, rows, dtype):
    given = arguments(40, rows, 16, 6, groups, dtype)

    def run(path):
        value = path(given, groups, emit_all)
        weights = torch.linspace(-1, 1, value.numel(), dtype=dtype).view_as(value)
        return value, torch.autograd.grad((value * weights).sum(), given)

    (ours, gradients), (plain, expected) = run(compiled), run(by_hand)
    assert torch.allclose(ours, plain, rtol=1e-5, atol=1e-6)
    for gradient, reference in zip(gradients, expected, strict=True):
        assert (gradient - reference).abs().max() <= 1e-5 * reference.abs().max()


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("emit_all", [False, True])
def test_block_by_block(groups, emit_all, monkeypatch):
    """Eleven steps in blocks of few: weights' gradients add up, the noise's too."""
    monkeypatch.setattr(forward_pass, "BLOCK_NUMBERS", 2**11 * max(1, groups))
    given = arguments(11, 5, 7, 4, groups)
    values = [path(given, groups, emit_all) for path in (compiled, by_hand)]
    assert torch.allclose(*values)
    gradients = [torch.autograd.grad(value.square().sum(), given) for value in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_what_needs_no_gradient_gets_none():
    given = arguments(6, 3, 4, 2)
    for needed in ([0], [1], [2], [4], [0, 3, 8]):
        for at, tensor in enumerate(given):
            tensor.requires_grad_(at in needed)
        gradients = [
            torch.autograd.grad(path(given).square().sum(), [given[at] for at in needed])
            for path in (compiled, by_hand)
        ]
        assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("groups", [0, 2])
def test_second_derivatives(groups):
    given = arguments(2, 2, 3, 2, groups)
    assert torch.autograd.gradgradcheck(lambda *each: compiled(each, groups, True), given)


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("size", [9, 40])
@pytest.mark.parametrize("numbers", [2**11, 2**20])
def test_rows_of_a_table(groups, size, numbers, monkeypatch):
    """A table of 9 rows is projected itself, one of 40 is not; in several blocks and in one."""
    monkeypatch.setattr(forward_pass, "BLOCK_NUMBERS", numbers)
    _, *given = arguments(6, 3, 4, 2, groups)
    table = torch.randn(size, 3, dtype=torch.float64, requires_grad=True)
    index = torch.randint(0, size, (groups, 6, 3) if groups else (6, 3))
    values = [compiled([table, *given], groups, index=index), by_hand([table[index], *given], groups)]
    assert torch.allclose(*values)
    gradients = [torch.autograd.grad(value.sum(), [table, *given]) for value in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_without_a_start_it_is_zero():
    items, noise, start, *weights = arguments(6, 3, 4, 2)
    values = [compiled([items, noise, None, *weights]), compiled([items, noise, start * 0, *weights])]
    assert torch.allclose(*values)
    gradients = [torch.autograd.grad(value.sum(), [items, noise, *weights]) for value in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_a_weight_modified_before_its_gradient_is_an_error():
    given = arguments(6, 3, 4, 2)
    value = compiled(given)
    with torch.no_grad():
        given[3].add_(1.0)
    with pytest.raises(RuntimeError, match="modified in place"):
        value.sum().backward()


def test_pooled_buffers_survive_interleaved_calls():
    first, second = arguments(6, 3, 4, 2), arguments(6, 3, 4, 2)
    one, two = compiled(first), compiled(second)
    for value, given in ((one, first), (two, second)):
        expected = torch.autograd.grad(by_hand(given).sum(), given)
        for _ in range(2):
            gradients = torch.autograd.grad(value.sum(), given, retain_graph=True)
            assert all(torch.allclose(a, b) for a, b in zip(gradients, expected, strict=True))


def test_vmap_over_parameters():
    cell = n.kernel("cell", n.product(n.real(2), n.real(3)), n.real(3))
    module = n.build(n.scan(n.ref(cell), n.real(2), n.real(3)), cell)
    x, noise = torch.randn(4, 5, 2), {"cell": torch.randn(4, 4, 3), "cell@last": torch.randn(4, 3)}
    parameters = {name: p.detach() for name, p in module.named_parameters()}

    class Draw(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x, noise):
            return self.inner.draw(x, noise, want_log_prob=False).value

    def value(scale):
        changed = {f"inner.{name}": p * scale for name, p in parameters.items()}
        return torch.func.functional_call(Draw(), changed, (x, noise))

    scales = torch.tensor([0.5, 1.0, 2.0])
    batched = torch.func.vmap(value)(scales)
    for index, scale in enumerate(scales):
        assert torch.allclose(batched[index], value(scale), atol=2e-3)


@pytest.mark.parametrize("shape", [(4, 5), (64, 8)])
def test_batched_directions_equal_separate_ones(shape):
    """(64, 8) reads through the projected table, (4, 5) does not."""
    module = bidirectional()
    fan = module.stages[0]
    assert isinstance(fan, normal_scan.ScansSideBySide)
    x = torch.randint(0, 256, shape)
    drawn = fan.draw(x)
    separate = [scan.draw(x, drawn.noise) for scan in fan.scans]
    assert torch.allclose(drawn.value, torch.cat([each.value for each in separate], -1), atol=1e-5)
    assert torch.allclose(drawn.log_prob, sum(each.log_prob for each in separate), rtol=1e-5)
    assert torch.allclose(drawn.log_innovations, sum(each.log_innovations for each in separate), rtol=1e-5)
    weights = torch.linspace(-1, 1, drawn.value.numel()).view_as(drawn.value)
    parameters = list(fan.parameters())
    inside = fan.draw_inside(x, drawn.noise)
    assert torch.allclose(inside.value, drawn.value, atol=1e-5)
    assert torch.allclose(inside.log_noise, drawn.log_noise, rtol=1e-5)
    quiet = fan.draw(x, drawn.noise, want_log_prob=False)
    assert torch.allclose(quiet.value, drawn.value, atol=1e-5)
    together = torch.autograd.grad((quiet.value * weights).sum(), parameters)
    each = torch.cat([scan.draw(x, drawn.noise, want_log_prob=False).value for scan in fan.scans], -1)
    alone = torch.autograd.grad((each * weights).sum(), parameters)
    for a, b in zip(together, alone, strict=True):
        assert (a - b).abs().max() <= 1e-5 * b.abs().max()
    assert torch.allclose(fan.log_prob(x, drawn.value, drawn.noise), drawn.log_prob, rtol=1e-4)


def test_a_compiled_scan_equals_the_step_by_step_one():
    from qvr_core.runtime.arrows.scan import ScanArrow

    for flags in ({}, {"backward": True}, {"emit_all": True}, {"emit_all": True, "backward": True}):
        cell = n.kernel("cell", n.product(n.finite(5), n.real(2), n.real(3)), n.real(3), scale=0.4)
        item = n.product(n.finite(5), n.real(2))
        node = n.scan(n.ref(cell), item, n.real(3), **flags)
        module = n.build(node, cell)
        assert isinstance(module, normal_scan.NormalScan)
        plain = ScanArrow(node, module.cell[0], None, "")
        x = (torch.randint(0, 5, (4, 6)), torch.randn(4, 6, 2))
        drawn = module.draw(x)
        again = plain.draw(x, drawn.noise)
        assert torch.allclose(drawn.value, again.value, atol=1e-5)
        assert torch.allclose(drawn.log_prob, again.log_prob, rtol=1e-4)
        assert torch.allclose(drawn.log_noise, again.log_noise, rtol=1e-4)
        assert set(drawn.noise) == set(again.noise)
        y = torch.randn_like(drawn.value)
        for ours, theirs in zip(module.densities(x, y, drawn.noise), plain.densities(x, y, drawn.noise), strict=True):
            assert (ours is None and theirs is None) or torch.allclose(ours, theirs, rtol=1e-4)
