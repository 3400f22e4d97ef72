"""The fused and batched paths give the values and gradients of plain operations under the same noise."""

from __future__ import annotations

import pytest
import torch

from qvr_core.runtime.arrows import fused_scan
from qvr_core.runtime.loops import cell_buffers, fused
from tests.runtime import nodes as n
from tests.runtime.arrows.test_arrows import bidirectional


def arguments(length, rows, hidden, size, groups=0, dtype=torch.float64):
    """Items, noise, start and the weights of each group; with width 3 of an item."""
    group = (groups,) if groups else ()
    shapes = [(*group, length, rows, 3), (*group, length, rows, size), (*group, rows, size)]
    for _ in range(max(1, groups)):
        shapes += [(hidden, 3 + size), (hidden,), (hidden, hidden), (hidden,), (2 * size, hidden), (2 * size,)]
    return [(torch.randn(*shape, dtype=dtype) * hidden**-0.5).requires_grad_() for shape in shapes]


def call(path, given, groups=0, emit_all=False):
    items, *rest = given
    return path(fused.CellRun(0.3, emit_all, groups), items, None, *rest)


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("emit_all", [False, True])
@pytest.mark.parametrize("rows", [5, 70])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hand_derived_backward_equals_autograd(groups, emit_all, rows, dtype):
    given = arguments(40, rows, 16, 6, groups, dtype)

    def run(path):
        value = call(path, given, groups, emit_all)
        weights = torch.linspace(-1, 1, value.numel(), dtype=dtype).view_as(value)
        return value, torch.autograd.grad((value * weights).sum(), given)

    (ours, gradients), (plain, expected) = run(fused.run_cell), run(fused.plain_cell)
    assert torch.allclose(ours, plain, rtol=1e-5, atol=1e-6)
    for gradient, reference in zip(gradients, expected, strict=True):
        assert (gradient - reference).abs().max() <= 1e-5 * reference.abs().max()


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("emit_all", [False, True])
def test_block_by_block(groups, emit_all, monkeypatch):
    """Eleven steps in blocks of three: weights' gradients add up, the noise's too."""
    monkeypatch.setattr(cell_buffers, "BLOCK_NUMBERS", 3 * 5 * max(1, groups) * 4 * (7 + 4))
    given = arguments(11, 5, 7, 4, groups)
    values = [call(path, given, groups, emit_all) for path in (fused.run_cell, fused.plain_cell)]
    assert torch.allclose(*values)
    gradients = [torch.autograd.grad(value.square().sum(), given) for value in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("groups", [0, 2])
def test_second_derivatives(groups):
    given = arguments(2, 2, 3, 2, groups)
    assert torch.autograd.gradgradcheck(lambda *each: call(fused.run_cell, each, groups, True), given)


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("size", [9, 40])
def test_rows_of_a_table(groups, size):
    """A table of 9 rows is projected itself, one of 40 is not."""
    _, *given = arguments(6, 3, 4, 2, groups)
    table = torch.randn(size, 3, dtype=torch.float64, requires_grad=True)
    index = torch.randint(0, size, (groups, 6, 3) if groups else (6, 3))
    run = fused.CellRun(0.3, False, groups)
    values = [fused.run_cell(run, table, index, *given), fused.plain_cell(run, table[index], None, *given)]
    assert torch.allclose(*values)
    gradients = [torch.autograd.grad(value.sum(), [table, *given]) for value in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_without_a_start_it_is_zero():
    items, noise, start, *weights = arguments(6, 3, 4, 2)
    run = fused.CellRun(0.3, False, 0)
    values = [
        fused.run_cell(run, items, None, noise, None, *weights),
        fused.run_cell(run, items, None, noise, start * 0, *weights),
    ]
    assert torch.allclose(*values)
    gradients = [torch.autograd.grad(value.sum(), [items, noise, *weights]) for value in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_lent_buffers_survive_interleaved_calls():
    first, second = arguments(6, 3, 4, 2), arguments(6, 3, 4, 2)
    one, two = call(fused.run_cell, first), call(fused.run_cell, second)
    for value, given in ((one, first), (two, second)):
        expected = torch.autograd.grad(call(fused.plain_cell, given).sum(), given)
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
    assert isinstance(fan, fused_scan.ScansSideBySide)
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


def test_fused_scan_equals_the_step_by_step_one():
    from qvr_core.runtime.arrows.scan import ScanArrow

    for flags in ({}, {"backward": True}, {"emit_all": True}, {"emit_all": True, "backward": True}):
        cell = n.kernel("cell", n.product(n.finite(5), n.real(2), n.real(3)), n.real(3), scale=0.4)
        item = n.product(n.finite(5), n.real(2))
        node = n.scan(n.ref(cell), item, n.real(3), **flags)
        module = n.build(node, cell)
        assert isinstance(module, fused_scan.FusedScan)
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
