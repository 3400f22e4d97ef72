"""Scans of deterministic cell programs as compiled loops: against independent cells in torch, values and gradients."""

from __future__ import annotations

from random import Random

import pytest
import torch

from qvr_core.dsl import loads
from qvr_core.runtime.arrows.compiled_scan import CompiledScan
from qvr_core.runtime.arrows.scan import ScanArrow

HEAD = """
object Embedded : Real 5
object Hidden : Real 4
object Memory : Real 4
"""
LSTM = (
    HEAD
    + """
morphism gates : Embedded * Hidden -> Real 16 [role=linear{rank}]
program cell(x, h, c) : Embedded * Hidden * Memory -> Hidden * Memory
    let (i, j, f, o) = chunk(gates(x, h), 4)
    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(j)
    let h2 = sigmoid(o) * tanh(c2)
    return (h: h2, c: c2)
let states = scan(cell, {options})
export states
"""
)
GRU_LIKE = (
    HEAD
    + """
morphism q : Hidden -> Embedded [role=linear]
morphism update : Embedded * Hidden -> Hidden [role=linear, bias=false]
morphism propose : Embedded -> Hidden [role=linear]
program cell(x, h) : Embedded * Hidden -> Hidden
    let x2 = 2.0 * sigmoid(q(h)) * x
    let z = sigmoid(update(x2, h))
    let cut = minimum(z, sigmoid(propose(x)))
    let low = maximum(cut, relu(h))
    let h2 = (1.0 - z) * h + low * tanh(propose(x2)) - 0.5 * cut
    return h2
let states = scan(cell, emit=all)
export states
"""
)


def scan_of(model):
    found = [arrow for arrow in model.modules() if isinstance(arrow, CompiledScan)]
    arrow = model.sites[next(iter(model.sites))].module if hasattr(model, "sites") else model
    return found[0] if found else arrow


def lstm_by_hand(p, x, backward=False):
    if "gates.weight" in p:
        weight = p["gates.weight"]
    else:
        weight = p["gates.out_factor"] @ p["gates.in_factor"]
    h = c = x.new_zeros(x.shape[0], 4)
    states = []
    order = range(x.shape[1])
    for t in reversed(order) if backward else order:
        i, j, f, o = (torch.cat([x[:, t], h], -1) @ weight.T + p["gates.bias"]).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * j.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(torch.cat([h, c], -1))
    return torch.stack(states[::-1] if backward else states, 1)


def agree(module, x, by_hand, **options):
    assert isinstance(module, CompiledScan)
    parameters = dict(module.named_parameters())
    ours, expected = module(x), by_hand(parameters, x, **options)
    assert torch.allclose(ours, expected, atol=1e-6)
    direction = torch.randn_like(ours)
    leaves = [x, *parameters.values()]
    gradients = [torch.autograd.grad((value * direction).sum(), leaves) for value in (ours, expected)]
    for gradient, reference in zip(*gradients, strict=True):
        assert (gradient - reference).abs().max() <= 1e-5 * reference.abs().max().clamp(min=1e-6)


@pytest.mark.parametrize("rank", ["", ", rank=3"])
@pytest.mark.parametrize("backward", [False, True])
def test_lstm_over_64_steps(rank, backward):
    options = "emit=all" + (", direction=backward" if backward else "")
    module = scan_of(loads(LSTM.format(rank=rank, options=options)).morphism).double()
    x = torch.randn(3, 64, 5, dtype=torch.float64, requires_grad=True)
    agree(module, x, lstm_by_hand, backward=backward)


def test_lstm_equals_torch():
    module = scan_of(loads(LSTM.format(rank="", options="emit=all")).morphism)
    reference = torch.nn.LSTM(5, 4, batch_first=True)
    order = [0, 2, 1, 3]  # torch: input, forget, cell, output

    def rows(tensor):
        blocks = tensor.chunk(4)
        return torch.cat([blocks[k] for k in order])

    weight, bias = (dict(module.named_parameters())[f"gates.{name}"].data for name in ("weight", "bias"))
    reference.load_state_dict(
        {
            "weight_ih_l0": rows(weight[:, :5]),
            "weight_hh_l0": rows(weight[:, 5:]),
            "bias_ih_l0": rows(bias),
            "bias_hh_l0": torch.zeros(16),
        }
    )
    x = torch.randn(3, 64, 5)
    assert torch.allclose(module(x)[..., :4], reference(x)[0], atol=1e-6)


def test_final_state_only():
    text = LSTM.format(rank="", options="emit=all")
    module = scan_of(loads(text).morphism)
    final = scan_of(loads(text.replace("scan(cell, emit=all)", "scan(cell)")).morphism)
    final.load_state_dict(module.state_dict())
    x = torch.randn(3, 7, 5, requires_grad=True)
    values = final(x), module(x)[:, -1]
    assert torch.allclose(*values)
    each = [list(arrow.parameters()) for arrow in (final, module)]
    gradients = [torch.autograd.grad(v.square().sum(), [x, *p]) for v, p in zip(values, each, strict=True)]
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True))


def test_other_operations():
    module = scan_of(loads(GRU_LIKE).morphism).double()

    def by_hand(p, x):
        h = x.new_zeros(x.shape[0], 4)
        states = []
        for t in range(x.shape[1]):
            x2 = 2.0 * torch.sigmoid(h @ p["q.weight"].T + p["q.bias"]) * x[:, t]
            z = torch.sigmoid(torch.cat([x2, h], -1) @ p["update.weight"].T)

            def propose(value):
                return value @ p["propose.weight"].T + p["propose.bias"]

            cut = torch.minimum(z, torch.sigmoid(propose(x[:, t])))
            low = torch.maximum(cut, torch.relu(h))
            h = (1.0 - z) * h + low * torch.tanh(propose(x2)) - 0.5 * cut
            states.append(h)
        return torch.stack(states, 1)

    agree(module, torch.randn(3, 20, 5, dtype=torch.float64, requires_grad=True), by_hand)


def test_second_derivatives_and_vmap():
    module = scan_of(loads(LSTM.format(rank="", options="emit=all")).morphism).double()
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(module, x)
    many = torch.randn(4, 2, 3, 5, dtype=torch.float64)
    assert torch.allclose(torch.func.vmap(module)(many), torch.stack([module(each) for each in many]))


def test_a_cell_that_a_tape_does_not_know_runs_as_a_program():
    text = HEAD + (
        "program cell(x, h) : Embedded * Hidden -> Hidden\n    let h2 = h + mean(x)\n    return h2\n"
        "let states = scan(cell, emit=all)\nexport states\n"
    )
    module = scan_of(loads(text).morphism)
    assert not isinstance(module, CompiledScan)
    x = torch.randn(3, 7, 5)
    assert torch.allclose(module(x)[..., 0], x.mean(-1).cumsum(1), atol=1e-6)


def random_cell(seed: int) -> str:
    """A cell of random operations over two states, with calls, chunks and values that are used several times."""
    random = Random(seed)
    known = ["h", "c", "x"]
    lines: list[str] = []
    unary, binary = ["sigmoid({})", "tanh({})", "relu({})", "softplus({})", "1 - {}", "0.5 * {}", "-{}"], [
        "{} + {}", "{} - {}", "{} * {}", "2 * {} * {}", "minimum({}, {})", "maximum({}, {})", "mix({}, {})",
    ]  # fmt: skip

    def bind(text: str) -> None:
        lines.append(f"    let v{len(lines)} = {text}")
        known.append(f"v{len(lines) - 1}")

    for _ in range(random.randrange(4, 14)):
        form = random.choice(unary + binary)
        bind(form.format(*(random.choice(known) for _ in range(form.count("{}")))))
        if random.random() < 0.3:
            lines.append(f"    let (a{len(lines)}, b{len(lines)}) = chunk(wide({random.choice(known)}), 2)")
            known += [f"a{len(lines) - 1}", f"b{len(lines) - 1}"]
        if random.random() < 0.2:
            lines.append(f"    let (a{len(lines)}, b{len(lines)}) = twice({random.choice(known)}, h)")
            known += [f"a{len(lines) - 1}", f"b{len(lines) - 1}"]
    lines.append(f"    let h2 = 0.5 * h + tanh({random.choice(known)}) * {random.choice(known)}")
    lines.append(f"    let c2 = sigmoid({random.choice(known)}) * tanh(c + {random.choice(known)})")
    return (
        "object Hidden : Real 4\nmorphism mix : Hidden * Hidden -> Hidden [role=linear]\n"
        "morphism wide : Hidden -> Real 8 [role=linear]\n"
        "program pair(a, b) : Hidden * Hidden -> Hidden * Hidden\n"
        "    let a2 = sigmoid(b) * a\n    let b2 = tanh(mix(a2, b))\n    return (a2, b2)\n"
        "let twice = repeat(pair, 2)\n"
        "program cell(x, h, c) : Hidden * Hidden * Hidden -> Hidden * Hidden\n"
        + "\n".join(lines)
        + "\n    return (h2, c2)\nlet states = scan(cell, emit=all, init=learned)\nexport states\n"
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_cells(seed):
    torch.manual_seed(seed)
    module = scan_of(loads(random_cell(seed)).morphism).double()
    assert isinstance(module, CompiledScan)
    x = torch.randn(50, 13, 4, dtype=torch.float64, requires_grad=True)
    leaves = [x, *module.parameters()]
    direction = torch.randn(50, 13, 8, dtype=torch.float64)
    ours, expected = module(x), ScanArrow.forward(module, x)
    assert torch.allclose(ours, expected, atol=1e-9, rtol=1e-9)
    found = [
        torch.autograd.grad((value * direction).sum(), leaves, materialize_grads=True) for value in (ours, expected)
    ]
    for own, reference in zip(*found, strict=True):
        assert (own - reference).abs().max() <= 1e-8 * reference.abs().max().clamp(min=1.0)


def test_a_compiled_model_keeps_the_loop_whole(monkeypatch):
    module = scan_of(loads(LSTM.format(rank="", options="emit=all")).morphism)
    x = torch.randn(3, 64, 5, requires_grad=True)
    (expected,) = torch.autograd.grad(module(x).square().sum(), [x])
    monkeypatch.setattr("qvr_core.runtime.loops.engine.plain_loop", None)
    compiled = torch.compile(lambda value: module(value).square().sum(), backend="eager")
    (found,) = torch.autograd.grad(compiled(x), [x])
    assert torch.equal(found, expected)


def test_a_recorded_graph_holds_the_loop_as_one_operation_each_way():
    module = scan_of(loads(LSTM.format(rank="", options="emit=all")).morphism)
    weight = dict(module.named_parameters())["gates.weight"]

    def gradients(x):
        return torch.autograd.grad(module(x).square().sum() + module(x).sum(), [x, weight])

    from torch.fx.experimental.proxy_tensor import make_fx  # loads sympy, a second and a half

    graph = make_fx(gradients)(torch.randn(3, 64, 5, requires_grad=True))
    names = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert sum("loop_forward" in name for name in names) == sum("loop_backward" in name for name in names) == 2
    assert len(names) < 100
    for _ in range(12):
        x = torch.randn(3, 64, 5, requires_grad=True)
        for found, expected in zip(graph(x), gradients(x), strict=True):
            assert torch.allclose(found, expected, atol=1e-5, rtol=1e-5)
