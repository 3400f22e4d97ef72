"""A recorded graph is replayed by torch's own functions, and gives what it gave."""

from __future__ import annotations

from functools import partial

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from qvr_core.inference.density.recorded import traced


def density(q):
    """Three pieces of the position, one of them beside itself."""
    a, b, c = q[:, :1], q[:, 1:3], q[:, 3:]
    return -(a.square() + (b * a).sum(-1, True).exp() + torch.tanh(c[:, :1] - b[:, 1:]).pow(3)).sum(-1)


def value_and_grad(q, function=density):
    here = q.detach().requires_grad_()
    with torch.enable_grad():
        value = function(here)
        (gradient,) = torch.autograd.grad(value.sum(), here)
    return value.detach(), gradient


def calls(replay):
    graph = replay.__closure__[0].cell_contents
    return [node.target for node in graph.graph.nodes if node.op == "call_function"]


def test_replay_equals_autograd_bit_for_bit():
    replay = traced(value_and_grad, torch.randn(2, 5))
    assert replay is not None
    for _ in range(5):
        q = torch.randn(2, 5)
        for found, wanted in zip(replay(q), value_and_grad(q), strict=True):
            assert torch.equal(found, wanted)


def test_calls_are_exchanged_and_pieces_laid_together():
    q = torch.randn(2, 5)
    recorded = [
        node for node in make_fx(partial(value_and_grad, function=density))(q).graph.nodes if node.op == "call_function"
    ]
    assert any("slice_backward" in str(node.target) for node in recorded)
    kept = calls(traced(value_and_grad, q))
    assert torch.mul in kept and torch.square in kept
    assert not [target for target in kept if str(target) in ("aten.mul.Tensor", "aten.add.Tensor")]


def test_pieces_that_overlap_or_leave_a_gap_are_added_up():
    for function in (lambda q: (q[:, :3] * q[:, 2:]).sum(-1), lambda q: (q[:, :2].exp() * q[:, 3:]).sum(-1)):
        q = torch.randn(2, 5)
        replay = traced(lambda at, function=function: value_and_grad(at, function), q)
        for found, wanted in zip(replay(q + 1.0), value_and_grad(q + 1.0, function), strict=True):
            assert torch.equal(found, wanted)


def test_what_works_in_place_is_recorded_without_and_simplified():
    """Numbers put into a matrix of zeros, as a Cholesky factor is made."""

    def factor(q):
        matrix = q.new_zeros(q.shape[0], 2, 2)
        matrix[:, 1, 0] = q[:, 0].tanh()
        matrix[:, [0, 1], [0, 1]] = q[:, 1:3].exp()
        return -(matrix + matrix.new_zeros(2, 2)).square().sum((-1, -2))

    plain = partial(value_and_grad, function=factor)
    replay = traced(plain, torch.randn(2, 5))
    assert replay is not None
    names = {getattr(call, "__name__", str(call)) for call in calls(replay)}
    assert not any(name.split(".")[0].endswith("_") for name in names)
    # what a simplified graph of plain operations is called by
    assert torch.tanh in calls(replay)
    q = torch.randn(2, 5)
    for found, wanted in zip(replay(q), plain(q), strict=True):
        assert torch.equal(found, wanted)
