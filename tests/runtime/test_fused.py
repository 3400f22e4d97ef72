"""The fused and batched paths give the values and gradients of plain operations under the same noise."""

from __future__ import annotations

import pytest
import torch

from qvr_core.runtime import fused, fused_scan
from tests.runtime import nodes as n
from tests.runtime.test_arrows import bidirectional


def arguments(length, rows, hidden, size, groups=None, dtype=torch.float64):
    group = (groups,) if groups else ()
    shapes = [
        (length, *group, rows, hidden), (*group, rows, size), (*group, hidden, size), (*group, hidden, hidden),
        (*group, hidden), (*group, 2 * size, hidden), (*group, 2 * size), (length, *group, rows, size),
    ]  # fmt: skip
    return [(torch.randn(*shape, dtype=dtype) * hidden**-0.5).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("emit_all", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hand_derived_backward_equals_autograd(groups, emit_all, dtype):
    given = arguments(40, 5, 16, 6, groups, dtype)

    def run(path):
        value = path(given[0], None, *given[1:], 0.3, emit_all)
        weights = torch.linspace(-1, 1, value.numel(), dtype=dtype).view_as(value)
        return value, torch.autograd.grad((value * weights).sum(), given)

    (ours, gradients), (plain, expected) = run(fused.run_cell), run(fused.plain_cell)
    assert torch.allclose(ours, plain, rtol=1e-5, atol=1e-6)
    for gradient, reference in zip(gradients, expected, strict=True):
        assert (gradient - reference).abs().max() <= 1e-5 * reference.abs().max()


@pytest.mark.parametrize("groups", [None, 2])
def test_second_derivatives(groups):
    given = arguments(2, 2, 3, 2, groups)
    assert torch.autograd.gradgradcheck(lambda p, *rest: fused.run_cell(p, None, *rest, 0.3, True), given)


def test_rows_of_a_table():
    given = arguments(6, 3, 4, 2)
    table = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    index = torch.randint(0, 9, (6, 3))
    values = [fused.run_cell(table, index, *given[1:], 0.3, False)]
    values.append(fused.plain_cell(table[index], None, *given[1:], 0.3, False))
    assert torch.allclose(*values)
    gradients = [torch.autograd.grad(value.sum(), [table, *given[1:]]) for value in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_lent_buffers_survive_interleaved_calls():
    first, second = arguments(6, 3, 4, 2), arguments(6, 3, 4, 2)
    one = fused.run_cell(first[0], None, *first[1:], 0.3, False)
    two = fused.run_cell(second[0], None, *second[1:], 0.3, False)
    for value, given in ((one, first), (two, second)):
        expected = torch.autograd.grad(fused.plain_cell(given[0], None, *given[1:], 0.3, False).sum(), given)
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
    quiet = fan.draw(x, drawn.noise, want_log_prob=False)
    assert torch.allclose(quiet.value, drawn.value, atol=1e-5)
    together = torch.autograd.grad((quiet.value * weights).sum(), parameters)
    each = torch.cat([scan.draw(x, drawn.noise, want_log_prob=False).value for scan in fan.scans], -1)
    alone = torch.autograd.grad((each * weights).sum(), parameters)
    for a, b in zip(together, alone, strict=True):
        assert (a - b).abs().max() <= 1e-5 * b.abs().max()
    assert torch.allclose(fan.log_prob(x, drawn.value, drawn.noise), drawn.log_prob, rtol=1e-4)


def test_fused_scan_equals_the_step_by_step_one():
    from qvr_core.runtime.scan import ScanArrow

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
