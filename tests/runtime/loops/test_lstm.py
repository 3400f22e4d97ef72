"""Cells that are a long short-term memory run by torch's own: the form read off the cell, and the loop's numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core.dsl import load, loads
from qvr_core.inference import ELBO, SVI, AutoDeltaGuide
from qvr_core.runtime.arrows.compiled_scan import CompiledScan
from qvr_core.runtime.arrows.scan import ScanArrow
from qvr_core.runtime.loops import engine, lstm

HEAD = """
object Item : Real 5
object Hidden : Real 4
object Memory : Real 4
object Both : Real 9
morphism gates : Item * Hidden -> Real 16 [role=linear]
morphism bare : Item * Hidden -> Real 16 [role=linear, bias=false]
morphism turned : Hidden * Item -> Real 16 [role=linear]
morphism low : Item * Hidden -> Real 16 [role=linear, rank=2]
morphism from_memory : Item * Memory -> Real 16 [role=linear]
morphism half : Item -> Item [role=dropout]
"""
HIDDEN_FIRST = ("x, h, c", "Item * Hidden * Memory -> Hidden * Memory", "(h: h2, c: c2)")
MEMORY_FIRST = ("x, c, h", "Item * Memory * Hidden -> Memory * Hidden", "(c: c2, h: h2)")
CELL = """
    let (i, j, f, o) = chunk(gates(x, h), 4)
    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(j)
    let h2 = sigmoid(o) * tanh(c2)
"""


def scan(body: str, order: tuple[str, str, str] = HIDDEN_FIRST, options: str = ", emit=all", take: str = "h") -> Any:
    """The scan of a cell, or one factor of it."""
    inputs, types, returned = order
    text = f"{HEAD}program cell({inputs}) : {types}{body}    return {returned}\nlet states = scan(cell{options})\n"
    return site(loads(f"{text}let taken = states{'.' + take if take else ''}\nexport taken\n").morphism)


def site(model: Any) -> Any:
    """The arrow of a model that is one."""
    return next(iter(model.sites.values())).module


def compiled(arrow: Any) -> CompiledScan:
    found = arrow if isinstance(arrow, CompiledScan) else arrow.base[0]
    assert isinstance(found, CompiledScan)
    return found


def step_by_step(arrow: Any, x: Tensor) -> Tensor:
    """What the cell as a program gives, with no loop compiled."""
    whole = ScanArrow.forward(compiled(arrow), x)
    assert isinstance(whole, Tensor)
    return whole if isinstance(arrow, CompiledScan) else arrow._take(whole)


def close(found: Tensor, expected: Tensor) -> bool:
    return float((found - expected).detach().abs().max()) <= 1e-6 * max(1e-3, float(expected.detach().abs().max()))


def agrees(arrow: Any, monkeypatch: pytest.MonkeyPatch, *, ran: bool = True) -> None:
    """Values and gradients are those of the cell as a program, and torch's own ran or did not."""
    calls: list[object] = []
    own = torch.lstm
    monkeypatch.setattr(torch, "lstm", lambda *given: (calls.append(1), own(*given))[1])
    torch.manual_seed(1)
    for parameter in arrow.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = torch.randn(3, 17, 5, requires_grad=True)
    leaves = [x, *arrow.parameters()]
    ours, expected = arrow(x), step_by_step(arrow, x)
    assert bool(calls) == ran
    assert close(ours, expected)
    direction = torch.randn_like(expected)
    each = [torch.autograd.grad((value * direction).sum(), leaves) for value in (ours, expected)]
    assert all(close(own, reference) for own, reference in zip(*each, strict=True))
    with torch.no_grad():
        assert close(arrow(x), expected)


WRITTEN = {
    "as in the library": (CELL, HIDDEN_FIRST, (0, 2, 1, 3)),
    "gates in torch's order": (CELL.replace("(i, j, f, o)", "(i, f, j, o)"), HIDDEN_FIRST, (0, 1, 2, 3)),
    "gates from the back": (CELL.replace("(i, j, f, o)", "(o, f, j, i)"), HIDDEN_FIRST, (3, 1, 2, 0)),
    "sides of sums and products turned": (
        CELL.replace("sigmoid(f) * c + sigmoid(i) * tanh(j)", "tanh(j) * sigmoid(i) + c * sigmoid(f)").replace(
            "sigmoid(o) * tanh(c2)", "tanh(c2) * sigmoid(o)"
        ),
        HIDDEN_FIRST,
        (0, 2, 1, 3),
    ),
    "in many steps": (
        CELL.replace(
            "    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(j)\n",
            "    let kept = sigmoid(f)\n    let a = kept * c\n    let b = sigmoid(i) * tanh(j)\n    let c2 = a + b\n",
        ),
        HIDDEN_FIRST,
        (0, 2, 1, 3),
    ),
    "memory before the hidden state": (CELL, MEMORY_FIRST, (0, 2, 1, 3)),
    "without a bias": (CELL.replace("gates(", "bare("), HIDDEN_FIRST, (0, 2, 1, 3)),
    "hidden state before the item": (CELL.replace("gates(x, h)", "turned(h, x)"), HIDDEN_FIRST, (0, 2, 1, 3)),
    "of what the item alone leads to": (CELL.replace("gates(x, h)", "gates(tanh(x), h)"), HIDDEN_FIRST, (0, 2, 1, 3)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_known_however_it_is_written(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, order, gates = WRITTEN[name]
    arrow = scan(body, order)
    form = lstm.lstm_of(compiled(arrow).loop)
    assert form is not None and form.gates == gates
    agrees(arrow, monkeypatch)


OTHERS = {
    "another function": CELL.replace("sigmoid(f)", "tanh(f)"),
    "tied gates": CELL.replace("sigmoid(i) * tanh(j)", "(1 - sigmoid(f)) * tanh(j)"),
    "a minimum": CELL.replace("sigmoid(i) * tanh(j)", "minimum(sigmoid(i), 1 - sigmoid(f)) * tanh(j)"),
    "a number more": CELL.replace("tanh(c2)", "tanh(c2 + 0.5)"),
    "a factor": CELL.replace("sigmoid(f) * c", "0.5 * sigmoid(f) * c"),
    "the memory before": CELL.replace("tanh(c2)", "tanh(c)"),
    "memory as it is": CELL.replace("tanh(c2)", "c2"),
    "a difference": CELL.replace("* c + sigmoid(i)", "* c - sigmoid(i)"),
    "one gate twice": CELL.replace("sigmoid(o)", "sigmoid(i)"),
    "gates of the memory": CELL.replace("gates(x, h)", "from_memory(x, c)"),
    "low rank": CELL.replace("gates(x, h)", "low(x, h)"),
    "something added": CELL.replace("tanh(j)", "tanh(j) + sigmoid(o)"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_is_taken_for_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = scan(OTHERS[name])
    assert lstm.lstm_of(compiled(arrow).loop) is None
    agrees(arrow, monkeypatch, ran=False)


@pytest.mark.parametrize(
    "options, take, ran",
    [
        (", emit=all", "h", True),
        (", emit=all, direction=backward", "h", True),
        (", emit=all, init=learned", "h", True),
        ("", "", True),
        (", init=learned, direction=backward", "", True),
        ("", "c", True),
        (", emit=all", "c", False),  # torch's gives no memory but the last
        (", emit=all", "", False),
    ],
)
@pytest.mark.parametrize("order", [HIDDEN_FIRST, MEMORY_FIRST], ids=["hidden first", "memory first"])
def test_states_that_it_gives(
    options: str, take: str, ran: bool, order: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agrees(scan(CELL, order, options, take), monkeypatch, ran=ran)


def test_two_layers_of_the_library_equal_torchs() -> None:
    loaded = loads(
        'from "std/recurrent.qvr" import lstm\n' + HEAD + "let below = scan(lstm(Item, Hidden), emit=all)\n"
        "let above = below.h >> scan(lstm(Hidden, Hidden), emit=all)\nlet taken = above.h\nexport taken\n"
    )
    model = site(loaded.morphism)
    torchs = torch.nn.LSTM(5, 4, 2, batch_first=True)
    ours, theirs = dict(model.named_parameters()), dict(torchs.named_parameters())
    for layer, (name, inside) in enumerate((("lstm", 5), ("lstm_2", 4))):
        weight, bias = (torch.cat([ours[f"{name}.gates.{kind}"].detach().chunk(4)[at] for at in (0, 2, 1, 3)])
                        for kind in ("weight", "bias"))  # fmt: skip
        made = {"weight_ih": weight[:, :inside], "weight_hh": weight[:, inside:], "bias_ih": bias, "bias_hh": 0 * bias}
        for kind, value in made.items():
            theirs[f"{kind}_l{layer}"].data.copy_(value)
    x = torch.randn(3, 30, 5)
    assert close(model(x), torchs(x)[0])


def test_double_precision_stays_with_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "lstm", None)
    arrow = scan(CELL).double()
    x = torch.randn(3, 17, 5, dtype=torch.float64)
    assert torch.allclose(arrow(x), step_by_step(arrow, x), rtol=1e-9, atol=1e-12)


def test_second_derivatives_are_those_of_plain_operations() -> None:
    arrow = scan(CELL)
    x = torch.randn(2, 6, 5, requires_grad=True)
    found: list[Tensor] = []
    for value in (arrow(x), step_by_step(arrow, x)):
        (first,) = torch.autograd.grad(value.square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), x)[0])
    assert close(*found)


def test_gradients_may_be_taken_twice_and_of_a_part() -> None:
    arrow = scan(CELL)
    x = torch.randn(2, 6, 5, requires_grad=True)
    value = arrow(x).square().sum()
    first, second = (torch.autograd.grad(value, x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    (weight,) = (each for name, each in arrow.named_parameters() if name.endswith("weight"))
    (alone,) = torch.autograd.grad(arrow(x.detach()).square().sum(), weight)
    assert close(alone, torch.autograd.grad(value, weight)[0])


def test_a_weight_changed_in_between_is_an_error() -> None:
    arrow = scan(CELL)
    value = arrow(torch.randn(2, 6, 5)).sum()
    with torch.no_grad():
        next(iter(arrow.parameters())).add_(1.0)
    with pytest.raises(RuntimeError, match="modified in place"):
        value.backward()


def test_a_step_of_svi_is_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randint(0, 256, (4, 12)), torch.randint(0, 256, (4, 12))
    losses: list[list[float]] = []
    for form in (lstm.lstm_of, lambda loop: None):
        monkeypatch.setattr(engine, "lstm_of", form)
        torch.manual_seed(0)
        model = load("examples/lstm_lm.qvr").morphism
        svi = SVI(model, AutoDeltaGuide(model), torch.optim.SGD(model.parameters(), 0.01), ELBO())
        losses.append([svi.step(x, {"next_token": y}) for _ in range(5)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert losses[0][4] < losses[0][0]
