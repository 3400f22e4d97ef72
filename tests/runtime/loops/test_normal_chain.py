"""Chains of Normal kernels run as one function, with the values, densities and gradients of plain operations."""

from __future__ import annotations

import copy
import io

import pytest
import torch

from qvr_core.runtime.build.build import Builder
from qvr_core.runtime.loops.chain import ChainShape, StageShape, plain_chain, run_chain
from tests.runtime import nodes as n
from tests.runtime.arrows.test_arrows import seq2seq_block


def arguments(lanes, rows, specs, dtype=torch.float64):
    shape = ChainShape(lanes, tuple(StageShape(q, w, h, s, 0.3) for q, w, h, s in specs))

    def new(*sizes):
        return (torch.randn(*sizes, dtype=dtype) * sizes[-1] ** -0.5).requires_grad_()

    noises = [new(shape.groups(stage), rows, stage.size) for stage in shape.stages]
    weights = []
    for stage in shape.stages:
        h, w, s = stage.hidden, stage.inside, stage.size
        for _ in range(shape.groups(stage)):
            weights += [new(h, w), new(h), new(h, h), new(h), new(2 * s, h), new(2 * s)]
    return shape, new(lanes, rows, shape.stages[0].inside), noises, weights


SPECS = {
    "one kernel": (1, [(1, 3, 5, 4)]),
    "a chain": (1, [(1, 3, 5, 4), (1, 4, 6, 2), (1, 2, 5, 3)]),
    "a fan at the end": (1, [(1, 3, 5, 4), (2, 4, 6, 2)]),
    "lanes with fans": (2, [(3, 4, 5, 2), (1, 6, 5, 4), (2, 4, 6, 3)]),
}


@pytest.mark.parametrize("rows", [1, 4, 300])
@pytest.mark.parametrize("spec", sorted(SPECS))
def test_hand_derived_backward_equals_autograd(spec, rows):
    shape, x, noises, weights = arguments(SPECS[spec][0], rows, SPECS[spec][1])
    values = [path(shape, x, noises, weights) for path in (run_chain, plain_chain)]
    assert torch.allclose(*values)
    direction = torch.randn_like(values[0])
    gradients = [torch.autograd.grad((v * direction).sum(), [x, *noises, *weights]) for v in values]
    assert all(torch.allclose(a, b) for a, b in zip(*gradients, strict=True))


def test_single_precision_and_second_derivatives():
    shape, x, noises, weights = arguments(2, 40, SPECS["lanes with fans"][1], torch.float32)
    values = [path(shape, x, noises, weights) for path in (run_chain, plain_chain)]
    assert torch.allclose(*values, atol=1e-5)
    shape, x, noises, weights = arguments(1, 2, [(2, 2, 2, 1), (1, 2, 2, 1)])
    count = len(noises)
    assert torch.autograd.gradgradcheck(
        lambda x, *rest: run_chain(shape, x, rest[:count], rest[count:]), (x, *noises, *weights)
    )


def test_a_weight_modified_before_its_gradient_is_an_error():
    shape, x, noises, weights = arguments(1, 4, SPECS["a chain"][1])
    value = run_chain(shape, x, noises, weights)
    with torch.no_grad():
        weights[0].add_(1.0)
    with pytest.raises(RuntimeError, match="modified in place"):
        value.sum().backward()


def test_encoder_and_decoder_run_as_lanes_and_equal_separate_kernels():
    latent = n.real(6)
    kernels = [n.kernel(name, latent, latent, scale=0.3) for name in ("a", "b", "c", "d")]
    tables = [n.embed(name, n.finite(5), latent) for name in ("left", "right")]
    last = n.kernel("last", n.real(12), n.real(2))
    branches = [n.compose(n.ref(tables[i]), *map(n.ref, kernels[2 * i : 2 * i + 2])) for i in range(2)]
    module = n.build(n.compose(n.tensor(*branches), n.ref(last)), *kernels, *tables, last)
    assert len(module.stages[0].lanes) == 2
    x = (torch.randint(0, 5, (7,)), torch.randint(0, 5, (7,)))
    drawn = module.draw(x)
    quiet = module.draw(x, drawn.noise, want_log_prob=False)

    leaves = module.leaves

    def kernel(name, value):
        loc, scale = leaves[name].params(value)
        return loc + scale * drawn.noise[name]

    ends = [kernel(b, kernel(a, leaves[t](x[i]))) for i, (t, a, b) in enumerate([("left", *"ab"), ("right", *"cd")])]
    expected = kernel("last", torch.cat(ends, -1))
    assert torch.allclose(drawn.value, expected, atol=1e-5) and torch.allclose(quiet.value, expected, atol=1e-5)
    log_prob, log_u = module.densities(x, drawn.value, drawn.noise)
    assert torch.allclose(log_prob, drawn.log_prob, rtol=1e-4)
    standard = torch.distributions.Normal(0.0, 1.0)
    by_hand = sum(standard.log_prob(drawn.noise[name]).sum(-1) for name in "abcd")
    assert torch.allclose(log_u, by_hand, rtol=1e-5) and torch.allclose(drawn.log_innovations, by_hand, rtol=1e-5)


def chain_of_two():
    """f >> g, and its value on noise as autograd has it, kernel by kernel."""
    first, second = (n.kernel(name, n.real(3), n.real(3)) for name in ("f", "g"))
    return n.build(n.compose(n.ref(first), n.ref(second)), first, second)


def step_by_step(module, x, noise):
    for name in ("f", "g"):
        loc, scale = module.leaves[name].params(x)
        x = loc + scale * noise[name]
    return x


def reloaded(module):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other = chain_of_two()
    other.draw(torch.ones(2, 3))
    other.load_state_dict(torch.load(file))
    return other


def trained(module):
    optimiser = torch.optim.Adam(module.parameters(), lr=0.1)
    module.draw(torch.ones(2, 3)).value.sum().backward()
    optimiser.step()
    return module


def with_new_storages(module):
    state = {name: torch.randn_like(value) for name, value in module.state_dict().items()}
    module.load_state_dict(state, assign=True)
    return module


def with_one_new_weight(module):
    weight = next(module.parameters())
    weight.data = weight.data + 1.0
    return module


WHAT_BEFALLS_A_MODULE = {
    "training": trained,
    "a copy": copy.deepcopy,
    "a file": reloaded,
    "other storages": with_new_storages,
    "one other storage": with_one_new_weight,
    "shared memory": lambda module: module.share_memory(),
    "double precision": lambda module: module.double(),
}


@pytest.mark.parametrize("change", WHAT_BEFALLS_A_MODULE.values(), ids=WHAT_BEFALLS_A_MODULE.keys())
def test_weights_that_lie_together_stay_the_weights_of_their_kernels(change):
    module = chain_of_two()
    module.draw(torch.randn(4, 3))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    changed = change(module)
    for _ in range(2):
        x = torch.randn(4, 3, dtype=next(changed.parameters()).dtype)
        drawn = changed.draw(x)
        expected = step_by_step(changed, x, drawn.noise)
        assert torch.allclose(drawn.value, expected, atol=1e-5)
        weights = list(changed.parameters())
        own, plain = (torch.autograd.grad(value.square().sum(), weights) for value in (drawn.value, expected))
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(own, plain, strict=True))
    if changed is not module:
        assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_kernel_of_two_chains_serves_both():
    first, second, third = (n.kernel(name, n.real(3), n.real(3)) for name in ("f", "g", "h"))
    builder = Builder(n.file(first, second, third))
    left, right = (builder.arrow(n.compose(n.ref(kernel), n.ref(second))) for kernel in (first, third))
    x = torch.randn(4, 3)
    for module in (left, right, left):
        drawn = module.draw(x)
        (one, loc), (two, _) = drawn.noise.items()
        value = x
        for name, noise in ((one, loc), (two, drawn.noise[two])):
            mean, scale = module.leaves[name].params(value)
            value = mean + scale * noise
        assert torch.allclose(drawn.value, value, atol=1e-5)
        with torch.no_grad():
            left.leaves["g"].get_parameter("output.bias").add_(1.0)


def test_weights_of_a_functional_call_are_read_and_those_of_the_module_stay():
    module = chain_of_two()
    x = torch.randn(4, 3)
    module.draw(x)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    given = {name: torch.randn_like(weight, requires_grad=True) for name, weight in module.named_parameters()}
    noise = {name: torch.randn(4, 3) for name in ("f", "g")}
    by_hand = chain_of_two()
    by_hand.load_state_dict(given)

    class Drawing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            return self.inner.draw(x, noise).value

    value = torch.func.functional_call(Drawing(), {f"inner.{name}": weight for name, weight in given.items()}, (x,))
    assert torch.allclose(value, step_by_step(by_hand, x, noise), atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_part_of_the_noise_may_be_given():
    module = seq2seq_block()
    x = (torch.randint(0, 32, (5,)), torch.randint(0, 32, (5,)))
    drawn = module.draw(x)
    part = {path: u for path, u in drawn.noise.items() if "head" in path}
    again = module.draw(x, part, want_log_prob=False)
    assert all(torch.equal(again.noise[path], u) for path, u in part.items())
    assert set(again.noise) == set(drawn.noise) == {spec.path for spec in module.noise_specs(x)}


def test_positions_of_a_sequence_go_through_a_chain_too():
    first, second = (n.kernel(name, n.real(3), n.real(3)) for name in ("f", "g"))
    module = n.build(n.lift(n.compose(n.ref(first), n.ref(second))), first, second)
    x = torch.randn(4, 5, 3)
    drawn = module.draw(x)
    assert drawn.value.shape == (4, 5, 3) and drawn.noise["f"].shape == (4, 5, 3)
    assert torch.allclose(module.log_prob(x, drawn.value, drawn.noise), drawn.log_prob, rtol=1e-4)
