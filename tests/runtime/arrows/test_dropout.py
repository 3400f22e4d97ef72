"""Role `dropout`: what it leaves out, for how long, and that it does so while SVI trains and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.inference import ELBO, MCMC, SVI, AutoDeltaGuide, NUTSKernel
from qvr_core.runtime.arrows.compiled_scan import CompiledScan
from qvr_core.runtime.arrows.scan import ScanArrow
from qvr_core.runtime.arrows.training import in_training, training_layers
from qvr_core.runtime.values.errors import NoDensity

SOURCE = """
object Width : Real 40
morphism each : Width -> Width [role=dropout, p=0.25]
morphism held : Width -> Width [role=dropout, p=0.25, once=true]
morphism noisy : Width -> Width [role=kernel, param_source=linear] ~ Normal

program keep(x, h) : Width * Width -> Width
    let s = x + 0.0 * h
    return s

program carry(x, h) : Width * Width -> Width
    let kept = held(h)
    let s = kept + 1.0
    return s

let items = each
let positions = held >> scan(keep, emit=all)
let states = scan(carry, emit=all)
"""


def _arrow(name: str) -> Any:
    return dsl.loads(f"{SOURCE}export {name}\n").morphism


def _trained(name: str, x: Tensor, seed: int = 0) -> Tensor:
    arrow = _arrow(name)
    torch.manual_seed(seed)
    with in_training(training_layers((arrow,))):
        return arrow(x)


def test_it_is_the_identity_outside_of_training() -> None:
    x = torch.randn(5, 40)
    assert torch.equal(_arrow("items")(x), x)
    assert not torch.equal(_trained("items", x), x)


def test_each_number_is_left_out_by_itself_or_divided_by_the_share_of_the_others() -> None:
    x = torch.rand(500, 40) + 1.0
    got = _trained("items", x) / x
    gone = got == 0.0
    torch.testing.assert_close(got[~gone], torch.full_like(got[~gone], 1 / 0.75))
    # 20,000 draws: four standard errors
    assert abs(float(gone.double().mean()) - 0.25) < 4 * (0.25 * 0.75 / gone.numel()) ** 0.5
    assert not torch.equal(gone[0], gone[1])


@pytest.mark.parametrize("name", ["positions", "states"])
def test_once_is_one_mask_a_sequence(name: str) -> None:
    x = torch.rand(7, 9, 40) + 1.0
    gone = _trained(name, x) == (0.0 if name == "positions" else 1.0)
    gone = gone if name == "positions" else gone[:, 1:]  # the first state is zero already
    assert bool((gone == gone[:, :1]).all())
    assert not torch.equal(gone[0, 0], gone[1, 0])
    assert 0.1 < float(gone[:, 0].double().mean()) < 0.4


CELL = """
object Item : Real 5
object Hidden : Real 4
morphism gates : Item * Hidden -> Real 16 [role=linear]
morphism mix : Item * Hidden -> Hidden [role=linear]
morphism held_item : Item -> Item [role=dropout, p=0.4, once=true]
morphism held : Hidden -> Hidden [role=dropout, p=0.25, once=true]
morphism each : Hidden -> Hidden [role=dropout, p=0.25]
morphism never : Hidden -> Hidden [role=dropout, p=0.0]

program lstm(x, h, c) : Item * Hidden * Hidden -> Hidden * Hidden
    let (i, j, f, o) = chunk(gates(LSTM), 4)
    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(j)
    let h2 = sigmoid(o) * tanh(c2)
    return (h2, c2)

program many(x, h) : Item * Hidden -> Hidden
    let first = held(h) + 0.5 * each(h)
    let second = tanh(mix(held_item(x), held(never(first))))
    let h2 = 0.5 * h + each(second)
    return h2

program same(x, h) : Item * Hidden -> Hidden
    let s = tanh(mix(x, h))
    let h2 = each(s) + each(s)
    return h2

let states = scan(CELL, emit=all)
export states
"""
GATES = {
    "on the state": "x, held(h)",
    "on the item": "held_item(x), h",
    "on both, one at each step": "held_item(x), each(h)",
}


@pytest.mark.parametrize(
    "cell, gates", [*(("lstm", gates) for gates in GATES.values()), ("many", "x, h"), ("same", "x, h")]
)
@pytest.mark.parametrize("backward", [False, True])
def test_a_compiled_scan_leaves_out_what_its_cell_would(cell: str, gates: str, backward: bool) -> None:
    """The same draws, values and gradients as step by step, in training and out of it."""
    text = CELL.replace("LSTM", gates).replace("CELL", cell)
    text = text.replace("emit=all", "emit=all, direction=backward") if backward else text
    scan: Any = next(iter(dsl.loads(text).morphism.sites.values())).module.double()
    assert isinstance(scan, CompiledScan)
    x = torch.randn(3, 11, 5, dtype=torch.float64, requires_grad=True)
    weights = [each for name, each in scan.named_parameters() if name.startswith("gates" if cell == "lstm" else "mix")]
    found: list[list[Tensor]] = []
    after: list[Tensor] = []
    for layers in ([], training_layers((scan,))):
        with in_training(layers):
            for forward in (CompiledScan.forward, ScanArrow.forward):
                torch.manual_seed(3)
                value: Any = forward(scan, x)
                found.append([value, *torch.autograd.grad(value.square().sum(), [x, *weights])])
                after.append(torch.rand(1))
    for ours, expected in (found[:2], found[2:]):
        for own, reference in zip(ours, expected, strict=True):
            torch.testing.assert_close(own, reference, rtol=1e-9, atol=1e-12)
    assert after[0] == after[1] and after[2] == after[3]
    assert not torch.allclose(found[0][0], found[2][0])


MODEL = """
object Input : Real 40
object Output : Real 1
morphism out : Input -> Output [role=kernel, param_source=linear] ~ Normal
morphism drop : Input -> Input [LAYER]

program net(x) : Input -> Output
    let h = drop(x)
    observe y : Output <- out(h)
    return y

let whole = drop >> last

program seq(x) : Input -> Output
    let h = whole(x)
    observe y : Output <- out(h)
    return y

program slope(x) : Input -> Output
    sample b <- Normal(0.0, 1.0)
    let h = drop(x)
    let m = mean(h)
    observe y : Output <- Normal(b * m, 1.0)
    return y
"""


@pytest.mark.parametrize(
    "layer, name", [("role=dropout", "net"), ("role=attention, dropout=0.5", "seq")], ids=["dropout", "attention"]
)
def test_a_step_of_svi_leaves_out_and_nothing_else_does(layer: str, name: str) -> None:
    torch.manual_seed(1)
    model = dsl.loads(MODEL.replace("LAYER", layer)).programs[name]
    x = torch.randn(16, 40) if name == "net" else torch.randn(16, 5, 40)
    data = {"y": torch.randn(16, 1)}
    svi = SVI(model, AutoDeltaGuide(model), torch.optim.SGD(model.parameters(), lr=0.0), ELBO())
    outside = [svi.evaluate(x, data) for _ in range(3)]
    trained = [svi.step(x, data) for _ in range(3)]
    assert len(set(outside)) == 1
    assert len(set(trained)) == 3
    assert svi.evaluate(x, data) == outside[0]


def test_nuts_says_that_it_has_no_one_density() -> None:
    model = dsl.loads(MODEL.replace("LAYER", "role=dropout")).programs["slope"]
    with pytest.raises(NoDensity, match=r"`drop` leaves numbers out at random.*fit it with SVI"):
        MCMC(NUTSKernel(), 5, 5, 1, seed=0).run(model, torch.randn(16, 40), {"y": torch.randn(16, 1)})
