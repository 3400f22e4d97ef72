"""`[noncentred]` on chains: the sampler moves the standardised innovations, density, value and name stay."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.runtime.programs.chains.noncentred import NoncentredChain
from qvr_core.runtime.programs.handlers import by_rows, condition, unconstrained
from qvr_core.runtime.programs.program import ProgramModule

TIME = 7
PROGRAM = """
object Time : FinSet 7
object Group : FinSet 3
program p : Time -> Real 1
    sample a <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
    sample b[g : Group] <- Normal(0.0, 1.0)
    {line}
    observe y <- Normal(sum(h[{places}] for {binders}), 1.0)
    return h
"""
SOLVED = {
    "level": "sample h[t : Time] <- Normal(a + 0.7 * (h[t - 1] - a), s) from Normal(a, 2 * s) {option}",
    "walk": "sample h[t : Time] <- Normal(h[t - 1], s) from Normal(0.0, 1.0) {option}",
    "two back": "sample h[t : Time] <- Normal(0.5 * h[t - 1] - 0.2 * h[t - 2], s) from Normal(a, s) {option}",
    "groups": "sample h[g : Group, t : Time] <- Normal(b[g] * h[g, t - 1], s) from Normal(b[g], 1.0) {option}",
    "groups behind": (
        "sample h[t : Time, g : Group] <- StudentT(5.0, h[t - 1, g] + a * t, s) from Cauchy(0.0, s) {option}"
    ),
    "groups in front": (
        "sample h[t : Time, g : Group] <- Normal(b[g] + t * 0.1 + 0.5 * h[t - 1, g], s) from Normal(b[g], s) {option}"
    ),
    "two of a set": "sample h[u : Time, t : Time] <- Laplace(h[u, t - 1] + u, s) from Gumbel(a, s) {option}",
    "a value": "sample h[t : Time] <- Cauchy(h[t - 1] / 2, exp(a) * s) {option} from a",
    "two values": "sample h[g : Group, t : Time] <- Gumbel(h[g, t - 2], s) {option} from (a, b[g])",
}
IN_ORDER = {
    "a function": "sample h[t : Time] <- Normal(tanh(h[t - 1]) + a, s) from Normal(a, s) {option}",
    "its scale": "sample h[t : Time] <- Normal(a, s * exp(0.3 * h[t - 1])) from Normal(a, s) {option}",
    "groups of a function": (
        "sample h[g : Group, t : Time] <- Normal(b[g] * tanh(h[g, t - 1]), s) from Normal(a, s) {option}"
    ),
    "a function of groups": (
        "sample h[t : Time, g : Group] <- Gumbel(b[g] + t * sin(h[t - 1, g]), s) from Normal(a, s) {option}"
    ),
    "another place": "sample h[g : Group, t : Time] <- Normal(h[0, t - 1] + h[g, t - 1], s) from Normal(a, s) {option}",
    "entries of a vector": (
        "sample h[t : Time, k : Group] <- Normal(sum(0.3 * b[j] * h[t - 1, j] for j : Group), s) "
        "from Normal(b[k], s) {option}"
    ),
    "positive": "sample h[t : Time] <- LogNormal(log(h[t - 1]), s) from HalfNormal(s) {option}",
    "scales": "sample h[g : Group, t : Time] <- HalfStudentT(4.0, 0.5 + 0.5 * h[g, t - 1]) from HalfCauchy(s) {option}",
    "vectors": (
        "sample h[t : Time] <- MultivariateNormal(a * h[t - 1] + b, scale_tril=s * eye(Group)) "
        "from MultivariateNormal(b, scale_tril=eye(Group)) {option}"
    ),
    "vectors of groups": (
        "sample h[g : Group, t : Time] <- MultivariateNormal(tanh(h[g, t - 1]) + b[g], scale_tril=exp(s) * eye(2)) "
        "{option} from [a, 1.0]"
    ),
    "rates": "sample h[t : Time] <- Exponential(s + h[t - 1]) {option} from 0.5",
}
TAPED = ("a function", "its scale", "positive", "groups of a function", "a function of groups", "entries of a vector")
CHAINS = {**SOLVED, **IN_ORDER}
DATA = {"y": torch.tensor(0.7, dtype=torch.float64)}


def program(line: str, option: str = "[noncentred]") -> ProgramModule:
    binders = line[line.index("[") + 1 : line.index("]")]
    places = ", ".join(binder.split()[0] for binder in binders.split(", ")) + (", 0" if "Multi" in line else "")
    return loads(PROGRAM.format(line=line.format(option=option), binders=binders, places=places)).morphism


def numbers(model: ProgramModule, rows: int = 4) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    infos = model.site_infos()
    shapes = {name: infos[name].event for name in ("a", "s", "b", "h")}
    return {
        name: 0.8 * torch.randn(rows, *(shape or ()), generator=generator, dtype=torch.float64)
        for name, shape in shapes.items()
    }


def standard(z: Tensor) -> Tensor:
    """log N(z; 0, 1), summed over the last axis."""
    return -0.5 * (z.square() + math.log(2.0 * math.pi)).sum(-1)


def moved(model: ProgramModule, free: Mapping[str, Tensor]):
    return model.run(None, condition(DATA), unconstrained(free), by_rows(len(free["a"])))


@pytest.mark.parametrize("line", CHAINS.values(), ids=CHAINS)
def test_the_density_is_that_of_the_centred_program(line: str) -> None:
    model, centred = program(line), program(line, "")
    free = numbers(model)
    run = moved(model, free)
    values = {name: run.sites[name].value for name in ("a", "s", "b", "h")}
    torch.testing.assert_close(run.log_joint(), centred.log_joint(None, {**values, **DATA}), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(model.log_joint(None, {**values, **DATA}), run.log_joint(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("line", CHAINS.values(), ids=CHAINS)
def test_the_jacobian_is_that_of_the_map(line: str) -> None:
    model = program(line)
    free = numbers(model, 1)

    def value(z: Tensor) -> Tensor:
        found = moved(model, {**free, "h": z.reshape(free["h"].shape)}).sites["h"].value
        assert isinstance(found, Tensor)
        return found.flatten()

    z = free["h"].flatten()
    jacobian = torch.autograd.functional.jacobian(value, z)
    assert isinstance(jacobian, Tensor)
    record = moved(model, free).sites["h"]
    assert record.log_jacobian is not None
    # first elements that `from` gives depend on nothing: their numbers rest as standard normals
    fixed = jacobian.abs().sum(1) <= 0.0
    logs = jacobian[~fixed][:, ~fixed].slogdet().logabsdet + standard(z[fixed])
    assert float(record.log_jacobian) == pytest.approx(float(logs), rel=1e-10)


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_made_together_is_what_is_made_in_order(name: str) -> None:
    model = program(CHAINS[name])
    free = {key: value.requires_grad_() for key, value in numbers(model).items()}
    (chain,) = (step for step in model.steps if isinstance(step, NoncentredChain))
    assert (chain.linear is not None) == (name in SOLVED)
    assert (chain.taped is not None) == (name in TAPED)
    found: list[Tensor] = []
    for _ in range(2):
        run = moved(model, free)
        jacobian = run.sites["h"].log_jacobian
        assert jacobian is not None
        total = (run.log_joint() + jacobian).sum()
        gradients = torch.autograd.grad(total, list(free.values()), allow_unused=True)
        found.append(torch.cat([total.reshape(1), *(one.flatten() for one in gradients if isinstance(one, Tensor))]))
        chain.linear = chain.taped = None
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


def test_a_sampler_sees_standard_normals() -> None:
    """An AR(1) in its innovations: the density is known, however small the scale is."""
    text = (
        "object Time : FinSet 7\nprogram p : Time -> Real 1\n    sample v <- Normal(0.0, 3.0)\n"
        "    sample h[t : Time] <- Normal(2.0 + 0.9 * (h[t - 1] - 2.0), exp(v)) from Normal(1.0, exp(v)) [noncentred]\n"
        "    return h\n"
    )
    potential = ProgramPotential(loads(text).morphism, None, {})
    z = torch.linspace(-1.0, 1.5, TIME, dtype=torch.float64)
    for v in (-40.0, 0.0, 3.0):
        q = torch.cat([torch.tensor([v], dtype=torch.float64), z]).unsqueeze(0)
        value, gradient = potential.value_and_grad(q)
        at = torch.tensor([v], dtype=torch.float64)
        exact = standard(at / 3.0) - math.log(3.0) + standard(z)
        assert float(value) == pytest.approx(float(exact), rel=1e-12)
        torch.testing.assert_close(gradient[0], torch.cat([-at / 9, -z]), rtol=1e-12, atol=1e-12)


def test_the_values_are_those_of_a_recursion() -> None:
    model = program(SOLVED["two back"])
    free = numbers(model)
    h, a = moved(model, free).sites["h"].value, free["a"]
    assert isinstance(h, Tensor)
    z, s = free["h"], free["s"].exp()
    made = [a + s * z[:, 0], a + s * z[:, 1]]
    for t in range(2, TIME):
        made.append(0.5 * made[-1] - 0.2 * made[-2] + s * z[:, t])
    torch.testing.assert_close(h, torch.stack(made, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("option", ["", "[noncentred]"])
def test_first_elements_that_are_given_stay(option: str) -> None:
    line = "sample h[t : Time] <- Normal(h[t - 1], s) {option} from 0.5"
    model = program(line, option)
    result = MCMC(NUTSKernel(), num_warmup=30, num_samples=20, num_chains=1, seed=0).run(model, None, DATA)
    h = result.samples["h"]
    assert bool((h[..., 0] == 0.5).all())
    assert float(h[..., 1:].std()) > 0.0


def test_a_group_that_is_drawn_keeps_the_innovations() -> None:
    """y is drawn together with h, which reads it; h moves by given innovations."""
    text = (
        "object Time : FinSet 7\nprogram p : Time -> Real 1\n"
        "    sample h[t : Time] <- Normal(0.5 * h[t - 1] + 0.3 * y[t - 1], 2.0) from Normal(1.0, 2.0) [noncentred]\n"
        "    observe y[t : Time] <- Normal(h[t], 1.0)\n    return h\n"
    )
    model = loads(text).morphism
    z = torch.randn(3, TIME, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    run = model.run(None, unconstrained({"h": z}), by_rows(3))
    h, y = run.sites["h"].value, run.sites["y"].value
    assert isinstance(h, Tensor)
    assert isinstance(y, Tensor)
    torch.testing.assert_close(h[:, 0], 1.0 + 2.0 * z[:, 0])
    torch.testing.assert_close(h[:, 1:], 0.5 * h[:, :-1] + 0.3 * y[:, :-1] + 2.0 * z[:, 1:])
    record = run.sites["h"]
    assert record.log_prob is not None
    assert record.log_jacobian is not None
    torch.testing.assert_close(record.log_jacobian, torch.full((3,), TIME * math.log(2.0), dtype=torch.float64))
    torch.testing.assert_close(record.log_prob + record.log_jacobian, standard(z))
