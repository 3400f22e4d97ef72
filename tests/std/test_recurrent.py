"""`std/recurrent.qvr` against torch's own layers with the same weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qvr_core.dsl import loads
from qvr_core.runtime.arrows.compiled_scan import CompiledScan

SPACES = 'import "std/recurrent.qvr" as recurrent\nobject Item : Real 6\nobject Hidden : Real 4\n'
ITEMS, HIDDEN = 6, 4


def scanned(cell: str, more: str = "") -> Any:
    """Every state of a cell of the library over a sequence."""
    return loads(f"{SPACES}{more}let states = scan({cell}, emit=all)\nexport states\n").morphism


def blocks(weight: Tensor, order: tuple[int, ...]) -> Tensor:
    """The blocks of rows of torch's gates, in our order."""
    parts = weight.chunk(len(order))
    return torch.cat([parts[at] for at in order])


def joined(layer: Any, order: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Our one matrix over item and state, and our one bias."""
    weight = torch.cat([layer.weight_ih_l0, layer.weight_hh_l0], 1)
    return blocks(weight, order), blocks(layer.bias_ih_l0 + layer.bias_hh_l0, order)


def fill(model: Any, values: dict[str, Tensor]) -> None:
    held = dict(model.named_parameters())
    assert held.keys() == values.keys()
    with torch.no_grad():
        for name, value in values.items():
            held[name].copy_(value)


def elman() -> tuple[Any, Any]:
    layer, model = nn.RNN(ITEMS, HIDDEN, batch_first=True), scanned("recurrent.elman(Item, Hidden)")
    weight, bias = joined(layer, (0,))
    fill(model, {"recurrent.elman.mix.weight": weight, "recurrent.elman.mix.bias": bias})
    return layer, model


def lstm() -> tuple[Any, Any]:
    layer, model = nn.LSTM(ITEMS, HIDDEN, batch_first=True), scanned("recurrent.lstm(Item, Hidden)")
    weight, bias = joined(layer, (0, 2, 1, 3))
    fill(model, {"recurrent.lstm.gates.weight": weight, "recurrent.lstm.gates.bias": bias})
    return layer, model


def gru() -> tuple[Any, Any]:
    layer, model = nn.GRU(ITEMS, HIDDEN, batch_first=True), scanned("recurrent.gru(Item, Hidden)")
    weight, bias = joined(layer, (0, 1, 2))
    both, last = 2 * HIDDEN, slice(2 * HIDDEN, None)
    values = {
        "gates.weight": weight[:both],
        "gates.bias": bias[:both],
        "fresh.weight": layer.weight_ih_l0[last],
        "fresh.bias": layer.bias_ih_l0[last],
        "recall.weight": layer.weight_hh_l0[last],
        "recall.bias": layer.bias_hh_l0[last],
    }
    fill(model, {f"recurrent.gru.{name}": value for name, value in values.items()})
    return layer, model


@pytest.mark.parametrize("made", [elman, lstm, gru])
def test_a_cell_is_torchs_layer(made: Callable[[], tuple[Any, Any]]) -> None:
    torch.manual_seed(1)
    layer, model = made()
    x = torch.randn(3, 9, ITEMS)
    found = model.rsample(x)[..., :HIDDEN]
    torch.testing.assert_close(found, layer(x)[0], rtol=1e-5, atol=1e-5)


def test_the_rewired_cell_is_its_equations() -> None:
    torch.manual_seed(2)
    model = scanned("recurrent.rlstm(Item, Hidden)")
    w = {name.removeprefix("recurrent.rlstm."): value for name, value in model.named_parameters()}
    x, h, c = torch.randn(2, 5, ITEMS), torch.zeros(2, HIDDEN), torch.zeros(2, HIDDEN)
    states = []
    for t in range(5):
        gate, candidate = nn.functional.linear(torch.cat([x[:, t], h], 1), w["write.weight"], w["write.bias"]).chunk(
            2, 1
        )
        i, j = gate.sigmoid(), candidate.tanh()
        f = nn.functional.linear(torch.cat([i * j, h], 1), w["forget.weight"], w["forget.bias"]).sigmoid()
        c = f * c + torch.minimum(i, 1 - f) * j
        h = nn.functional.linear(c, w["output.weight"], w["output.bias"]).sigmoid() * c.tanh()
        states.append(torch.cat([h, c], 1))
    torch.testing.assert_close(model.rsample(x), torch.stack(states, 1), rtol=1e-5, atol=1e-5)


def test_a_mogrifier_gates_item_and_state_by_turns() -> None:
    torch.manual_seed(3)
    text = "let gated = repeat(recurrent.mogrifier(Item, Hidden), 2)\nexport gated\n"
    model = loads(SPACES + text).morphism
    w = {name.removeprefix("recurrent.mogrifier."): value for name, value in model.named_parameters()}
    x, h = torch.randn(5, ITEMS), torch.randn(5, HIDDEN)
    found = model.rsample((x, h))
    for _ in range(2):
        x = 2 * nn.functional.linear(h, w["q.weight"], w["q.bias"]).sigmoid() * x
        h = 2 * nn.functional.linear(x, w["r.weight"], w["r.bias"]).sigmoid() * h
    torch.testing.assert_close(found, torch.cat([x, h], 1), rtol=1e-5, atol=1e-5)


def test_each_call_has_weights_of_its_own_and_a_name_has_them_once() -> None:
    text = "let cell = recurrent.gru(Item, Hidden)\n"
    text += "let both = fan(scan(cell), scan(cell), scan(recurrent.gru(Item, Hidden)))\n"
    names = {name.split(".gates")[0] for name, _ in loads(SPACES + text).morphism.named_parameters() if "gates" in name}
    assert names == {"recurrent.gru", "recurrent.gru_2"}


def test_a_stack_copies_what_a_call_makes() -> None:
    text = "let block = recurrent.elman(Hidden, Hidden)\nprogram twice(x) : Hidden -> Hidden\n    let y = block(x, x)\n"
    text += "    return y\nlet deep = stack(twice, 3)\nexport deep\n"
    names = [name for name, _ in loads(SPACES + text).morphism.named_parameters() if name.endswith("weight")]
    ends = [f".{layer}.recurrent.elman.mix.weight" for layer in range(3)]
    assert len(names) == 3
    assert all(name.endswith(end) for name, end in zip(names, ends, strict=True))


def test_an_arrow_that_is_given_stands_in_place_of_the_own_one() -> None:
    more = "morphism shared : Item * Hidden -> Hidden [role=linear, bias=false]\n"
    names = [name for name, _ in scanned("recurrent.elman(mix=shared)", more).named_parameters()]
    assert names == ["shared.weight"]


def test_a_cell_of_the_library_runs_as_the_same_loop_as_a_written_one() -> None:
    """Compiled, so in the time and with the digits of a cell in the file."""
    text = """
program cell(x, h) : Item * Hidden -> Hidden
    let h2 = tanh(mix(x, h))
    return h2
"""
    more = "morphism mix : Item * Hidden -> Hidden [role=linear]\n" + text
    torch.manual_seed(4)
    written = scanned("cell", more)
    torch.manual_seed(4)
    library = scanned("recurrent.elman(Item, Hidden)")
    for model in (written, library):
        assert isinstance(model.steps[0].arrow, CompiledScan)
    x = torch.randn(3, 20, ITEMS)
    torch.testing.assert_close(library.rsample(x), written.rsample(x), rtol=0, atol=0)
