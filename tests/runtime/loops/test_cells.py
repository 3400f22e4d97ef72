"""The recurrent cells of the examples against cells written in torch from their equations, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.runtime.arrows.compiled_scan import CompiledScan
from qvr_core.runtime.arrows.scan import ScanArrow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
STEPS = 64
Weights = dict[str, Tensor]
Step = Callable[[Weights, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def linear(p: Weights, name: str, *parts: Tensor) -> Tensor:
    """A full matrix, or two factors of low rank, and a bias."""
    joined = torch.cat(parts, -1)
    if f"{name}.weight" in p:
        return joined @ p[f"{name}.weight"].T + p[f"{name}.bias"]
    return (joined @ p[f"{name}.in_factor"].T) @ p[f"{name}.out_factor"].T + p[f"{name}.bias"]


def lstm(p: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, j, f, o = linear(p, "gates", x, h).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(j)
    return torch.sigmoid(o) * torch.tanh(c), c


def rewired(p: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, j = linear(p, "write", x, h).chunk(2, -1)
    i, j = torch.sigmoid(i), torch.tanh(j)
    f = torch.sigmoid(linear(p, "forget", i * j, h))
    c = f * c + torch.min(i, 1 - f) * j
    return torch.sigmoid(linear(p, "output", c)) * torch.tanh(c), c


def mogrified(p: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    for round_ in range(1, 5):
        if round_ % 2:
            x = 2 * torch.sigmoid(linear(p, "q", h)) * x
        else:
            h = 2 * torch.sigmoid(linear(p, "r", x)) * h
    return rewired(p, x, h, c)


CELLS: dict[str, Step] = {
    "lstm_lm": lstm,
    "rlstm_lm": rewired,
    "mogrifier_rlstm_lm": mogrified,
    "mogrifier_low_rank_lm": mogrified,
}


def states_of(example: str) -> torch.nn.Module:
    """The example's states, with its embedding, in double precision."""
    text = (EXAMPLES / f"{example}.qvr").read_text(encoding="utf-8")
    return loads(text.replace(f"export {example}", "export states")).morphism.double()


def weights_of(module: torch.nn.Module) -> Weights:
    """The weights, without the names of the templates that make them."""
    return {
        name.removeprefix(f"{name.split('.')[0]}.") if name.count(".") == 2 else name: value
        for name, value in module.named_parameters()
    }


def scan_in(module: torch.nn.Module) -> CompiledScan:
    """The scan of an exported arrow; a cell that no tape knows would be another kind."""
    (site,) = module.sites.values()
    return next(stage for stage in site.module.stages if isinstance(stage, CompiledScan))


def by_hand(step: Step, p: Weights, tokens: Tensor) -> Tensor:
    items = p["tok_embed.weight"][tokens]
    h = c = items.new_zeros(len(tokens), 64)
    states: list[Tensor] = []
    for t in range(tokens.shape[1]):
        h, c = step(p, items[:, t], h, c)
        states.append(torch.cat([h, c], -1))
    return torch.stack(states, 1)


def gradients(states: Tensor, direction: Tensor, p: Weights) -> list[Tensor]:
    return list(torch.autograd.grad((states * direction).sum(), list(p.values())))


@pytest.mark.parametrize(("rows", "steps"), [(3, STEPS), (100, 11)])
@pytest.mark.parametrize("example", CELLS)
def test_a_cell_equals_its_equations(example: str, rows: int, steps: int) -> None:
    torch.manual_seed(1)
    module = states_of(example)
    assert scan_in(module)
    p = weights_of(module)
    with torch.no_grad():
        for weight in p.values():
            weight.add_(0.2 * torch.randn_like(weight))
    tokens = torch.randint(0, 256, (rows, steps))
    ours, expected = module(tokens), by_hand(CELLS[example], p, tokens)
    assert (ours - expected).abs().max() <= 1e-6
    direction = torch.randn_like(ours)
    pairs = zip(p, gradients(ours, direction, p), gradients(expected, direction, p), strict=True)
    for name, own, reference in pairs:
        assert (own - reference).abs().max() <= 1e-5 * reference.abs().max(), name


@pytest.mark.parametrize("example", CELLS)
def test_a_cell_run_from_its_tape_equals_the_cell_run_as_a_program(example: str) -> None:
    torch.manual_seed(2)
    scan = scan_in(states_of(example))
    items = torch.randn(5, 300, 64, dtype=torch.float64)
    with torch.no_grad():
        assert torch.allclose(scan(items), ScanArrow.forward(scan, items), atol=1e-12)


def test_the_lstm_equals_torch() -> None:
    torch.manual_seed(3)
    module = states_of("lstm_lm")
    p = weights_of(module)
    reference = torch.nn.LSTM(64, 64, batch_first=True).double()

    def rows(tensor: Tensor) -> Tensor:
        """Ours are input, candidate, forget, output; torch's input, forget, candidate, output."""
        i, j, f, o = tensor.detach().chunk(4)
        return torch.cat([i, f, j, o])

    weight, bias = rows(p["gates.weight"]), rows(p["gates.bias"])
    reference.load_state_dict(
        {
            "weight_ih_l0": weight[:, :64],
            "weight_hh_l0": weight[:, 64:],
            "bias_ih_l0": bias,
            "bias_hh_l0": torch.zeros_like(bias),
        }
    )
    tokens = torch.randint(0, 256, (3, STEPS))
    ours, expected = module(tokens)[..., :64], reference(p["tok_embed.weight"].detach()[tokens])[0]
    assert (ours - expected).abs().max() <= 1e-6
    direction = torch.randn_like(ours)
    (own,) = torch.autograd.grad((ours * direction).sum(), [p["gates.weight"]])
    own = rows(own)
    first, second = torch.autograd.grad((expected * direction).sum(), [reference.weight_ih_l0, reference.weight_hh_l0])
    assert (own - torch.cat([first, second], 1)).abs().max() <= 1e-5 * own.abs().max()


def test_a_map_of_low_rank_starts_with_the_spread_of_a_full_one() -> None:
    """As in the seed: the product of the factors has variance 1 / fan in, and the bias is zero."""
    torch.manual_seed(4)
    text = "object A : Real 400\nobject B : Real 300\nmorphism f : A -> B [role=linear, rank={rank}]\nexport f\n"
    for rank in (4, 64):
        p = dict(loads(text.format(rank=rank)).morphism.named_parameters())
        product = p["f.out_factor"] @ p["f.in_factor"]
        assert abs(product.var().item() * 400 - 1.0) < 0.25
        assert not p["f.bias"].any()


def test_a_map_of_low_rank_that_starts_at_zero_can_learn() -> None:
    text = "object A : Real 6\nobject B : Real 5\nmorphism f : A -> B [role=linear, rank=2, init=zeros]\nexport f\n"
    module = loads(text).morphism
    x = torch.randn(7, 6)
    assert not module(x).any()
    (module(x) - 1.0).square().sum().backward()
    p = dict(module.named_parameters())
    assert p["f.out_factor"].grad.any()
