"""Roles `conv` and `pool` against torch's own modules, to 1e-6."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qvr_core import dsl
from qvr_core.runtime.values import padding


def _arrow(domain: str, codomain: str, options: str) -> Any:
    return dsl.loads(f"morphism f : {domain} -> {codomain} [{options}]\nexport f\n").morphism


CONVOLUTIONS = [
    ("Real 3 9 11", "Real 5 7 9", "role=conv", nn.Conv2d(3, 5, 3)),
    ("Real 3 9 11", "Real 5 5 6", "role=conv, stride=2, padding=1", nn.Conv2d(3, 5, 3, 2, 1)),
    ("Real 1 8 8", "Real 2 8 8", "role=conv, kernel=1, bias=false", nn.Conv2d(1, 2, 1, bias=False)),
    ("Real 2 20", "Real 4 8", "role=conv, kernel=5, stride=2", nn.Conv1d(2, 4, 5, 2)),
]
POOLS = [
    ("Real 3 9 11", "Real 3 4 5", "role=pool", nn.MaxPool2d(2)),
    ("Real 3 9 11", "Real 3 5 6", "role=pool, kernel=3, stride=2, padding=1", nn.MaxPool2d(3, 2, 1)),
    ("Real 3 9 11", "Real 3 5 6", "role=pool, kernel=3, stride=2, padding=1, reduce=mean", nn.AvgPool2d(3, 2, 1)),
    ("Real 3 12", "Real 3 4", "role=pool, kernel=3", nn.MaxPool1d(3)),
    ("Real 3 12", "Real 3 6", "role=pool, reduce=mean", nn.AvgPool1d(2)),
]


def _shape(space: str) -> list[int]:
    return [int(word) for word in space.split()[1:]]


def _same(ours: Any, theirs: nn.Module, x: Tensor, domain: str, codomain: str) -> None:
    """Values and slopes are the same, whatever the leading axes are."""
    given = x.clone().requires_grad_()
    expected = theirs(given.unflatten(-1, _shape(domain)).flatten(0, -len(_shape(domain)) - 1))
    made = ours(x.requires_grad_())
    assert made.shape == (*x.shape[:-1], torch.Size(_shape(codomain)).numel())
    torch.testing.assert_close(made.flatten(), expected.flatten(), rtol=1e-6, atol=1e-6)
    weights = torch.randn_like(made)
    (made * weights).sum().backward()
    (expected.flatten() * weights.flatten()).sum().backward()
    torch.testing.assert_close(x.grad, given.grad, rtol=1e-6, atol=1e-6)
    for (name, parameter), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, other.grad, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize("lead", [(4,), (2, 3)], ids=["rows", "sequence"])
@pytest.mark.parametrize("domain, codomain, options, theirs", CONVOLUTIONS, ids=str)
def test_a_convolution_is_that_of_torch(
    domain: str, codomain: str, options: str, theirs: nn.Module, lead: tuple[int, ...]
) -> None:
    theirs.zero_grad()
    ours = _arrow(domain, codomain, options)
    ours.get_submodule("f").load_state_dict(theirs.state_dict())
    _same(ours, theirs, torch.randn(*lead, torch.Size(_shape(domain)).numel()), domain, codomain)


@pytest.mark.parametrize("lead", [(4,), (2, 3)], ids=["rows", "sequence"])
@pytest.mark.parametrize("domain, codomain, options, theirs", POOLS, ids=str)
def test_a_pool_is_that_of_torch(
    domain: str, codomain: str, options: str, theirs: nn.Module, lead: tuple[int, ...]
) -> None:
    x = torch.randn(*lead, torch.Size(_shape(domain)).numel())
    _same(_arrow(domain, codomain, options), theirs, x, domain, codomain)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_over_a_sequence_it_keeps_the_length(kernel: int) -> None:
    ours = _arrow("Real 6", "Real 4", f"role=conv, kernel={kernel}")
    theirs = nn.Conv1d(6, 4, kernel)
    ours.get_submodule("f").load_state_dict(theirs.state_dict())
    x = torch.randn(3, 7, 6)
    before = (kernel - 1) // 2
    padded = nn.functional.pad(x.transpose(1, 2), (before, kernel - 1 - before))
    torch.testing.assert_close(ours(x), theirs(padded).transpose(1, 2), rtol=1e-6, atol=1e-6)


def test_what_a_row_does_not_have_is_not_seen() -> None:
    ours = _arrow("Real 6", "Real 4", "role=conv")
    x = torch.randn(2, 7, 6)
    with padding.padded(torch.tensor([7, 4])):
        made = ours(x)
    torch.testing.assert_close(made[0], ours(x[:1])[0])
    torch.testing.assert_close(made[1, :4], ours(x[1:, :4])[0])


def test_weights_start_as_those_of_torch() -> None:
    torch.manual_seed(0)
    ours = _arrow("Real 8 9 9", "Real 64 7 7", "role=conv")
    bound = (8 * 3 * 3) ** -0.5
    for parameter in ours.parameters():
        assert 0.9 * bound < float(parameter.detach().abs().max()) <= bound
    # uniform: its variance is a third of the bound's square; 4,608 draws
    assert float(ours.get_submodule("f").weight.detach().var()) == pytest.approx(bound**2 / 3, rel=0.06)
