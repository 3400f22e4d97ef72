"""Draws over the nodes of trees in fits: moments, chains, guides and predictions, against closed forms."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch.distributions import Normal

from qvr_core import dsl
from qvr_core.inference import ELBO, MCMC, AutoMultivariateNormalGuide, AutoNormalGuide, AutoPriorGuide, NUTSKernel
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.guides.program import ProgramGuide
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.handlers import replay
from qvr_core.runtime.values.errors import NoDensity

LINEAR = """\
object Code : Real 2
data type Tree = leaf(Real 2) | up(Tree) | node(Tree, Tree) | twin(Tree)
morphism grow : Code -> Code [role=kernel, param_source=linear] ~ Normal
morphism join : Code * Code -> Code [role=kernel, param_source=linear] ~ Normal
morphism back : Code -> Code [role=linear]
def twice(x) = x + x
encoder walk : Tree -> Code
    leaf(x) = x
    up(a) = grow(a)
    node(a, b) = join(a, b)
    twin(a) = back(twice(grow(a))) + grow(a)
encoder dense : Tree -> Code
    leaf(x) = grow(x)
    up(a) = grow(a)
    node(a, b) = join(a, b)
    twin(a) = grow(grow(a))
program p(t) : Tree -> Code
    sample m <- walk(t)
    observe y : Code <- Normal(m, 0.5)
    return m
program guided(t) : Tree -> Code
    sample m <- dense(t)
    observe y : Code <- Normal(m, 0.5)
    return m
program guess(t) : Tree -> Code [guide=guided]
    sample m : Code <- Normal(y, 0.7)
program drawn(t) : Tree -> Code
    sample m <- walk(t)
    return m
program seen(t) : Tree -> Code
    observe m <- walk(t)
    return m
export p
"""
TREES = [
    "(node (up (leaf (1 2))) (node (leaf (0.5 -1)) (up (up (leaf (-1 0))))))",
    "(twin (node (leaf (1 1)) (twin (leaf (0 2)))))",
    "(leaf (3 4))",
]
NESTED: list[Any] = [
    ("node", ("up", (1.0, 2.0)), ("node", (0.5, -1.0), ("up", ("up", (-1.0, 0.0))))),
    ("twin", ("node", (1.0, 1.0), ("twin", (0.0, 2.0)))),
    (3.0, 4.0),
]


def linear() -> Any:
    torch.manual_seed(5)
    program = dsl.loads(LINEAR)
    with torch.no_grad():
        for name, weight in program.p.named_parameters():
            weight.copy_(0.5 * torch.randn_like(weight))
            if name in ("grow.output.weight", "join.output.weight"):
                weight[2:] = 0.0  # a deviation that is the same everywhere
    return program


def propagated(tree: Any, weights: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and covariance of a node's code, by propagation from the leaves."""

    def drawn(kernel: str, mean: torch.Tensor, cov: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight, bias = weights[f"{kernel}.output.weight"][:2], weights[f"{kernel}.output.bias"]
        own = scale_of(bias[2:], 1.0).square().diag()
        return weight @ mean + bias[:2], weight @ cov @ weight.T + own

    match tree:
        case ("up", a):
            return drawn("grow", *propagated(a, weights))
        case ("node", a, b):
            (left, one), (right, other) = propagated(a, weights), propagated(b, weights)
            return drawn("join", torch.cat([left, right]), torch.block_diag(one, other))
        case ("twin", a):
            # 2 B g + g' with g and g' two draws from one a
            mean, cov = propagated(a, weights)
            (g, total), own = drawn("grow", mean, cov), drawn("grow", mean, 0 * cov)[1]
            b, shared = 2.0 * weights["back.weight"], total - own
            spread = (b + torch.eye(2)) @ shared @ (b + torch.eye(2)).T + b @ own @ b.T + own
            return b @ g + weights["back.bias"] + g, spread
        case _:
            return torch.tensor(tree), torch.zeros(2, 2)


def test_moments_are_those_that_propagate_over_the_tree() -> None:
    program = linear()
    weights = dict(program.p.named_parameters())
    count = 40_000
    with torch.no_grad():
        draws = program.drawn.rsample(TREES, (count,))
    assert draws.shape == (count, 3, 2)
    for row, tree in enumerate(NESTED):
        mean, cov = propagated(tree, weights)
        error = (cov.diagonal() / count).sqrt()
        assert ((draws[:, row].mean(0) - mean).abs() <= 4.5 * error + 1e-6).all()
        # the deviation of a sample covariance of Normals
        own = cov.diagonal()
        error = ((own[:, None] * own + cov.square()) / count).sqrt()
        assert ((torch.cov(draws[:, row].T) - cov).abs() <= 4.5 * error + 1e-6).all()
        assert cov.max() > 0.5 or row == 2


def test_rows_whose_root_is_computed_have_no_density() -> None:
    program = linear()
    y = torch.zeros(3, 2)
    noise = program.seen.innovations(TREES)
    with pytest.raises(NoDensity, match="a term begins with `leaf` here, whose case in `walk` does not end in a draw"):
        program.seen.log_joint(TREES, {"m": y}, noise)
    # what is computed may be told as it is, and adds nothing
    codes = program.drawn.run(program.drawn.input(TREES), replay({"m": {**noise["m"]}})).sites["m"].value
    own = program.seen.log_joint(TREES, {"m": codes}, noise)
    assert own[0] != 0
    assert own[1:].tolist() == [0.0, 0.0]
    first = {"m": {path: u[:1] for path, u in noise["m"].items()}}
    assert torch.isfinite(program.seen.log_joint(TREES[:1], {"m": y[:1]}, first)).all()


def scale_of(raw: torch.Tensor, scale: float) -> torch.Tensor:
    return scale * (torch.nn.functional.softplus(raw + 0.541325) + 0.001)


CHAINS = """\
object Code : Real 2
data type Tree = leaf(Real 2) | up(Tree) | node(Tree, Tree)
program grow(a) : Code -> Code
    sample s : Code <- Normal(0.8 * a, 0.6)
    return s
program join(a, b) : Code * Code -> Code
    sample s : Code <- Normal(0.5 * a - 0.3 * b, 0.4)
    return s
encoder walk : Tree -> Code
    leaf(x) = x
    up(a) = grow(a)
    node(a, b) = join(a, b)
program p(t) : Tree -> Code
    sample m <- walk(t)
    observe y : Code <- Normal(m, 0.5)
    return m
export p
"""


def test_chains_move_every_draw_of_every_node() -> None:
    program = dsl.loads(CHAINS).p
    y = torch.tensor([[1.0, -0.5], [2.0, 4.0]])
    trees = ["(node (up (leaf (1 2))) (node (leaf (0.5 -1)) (up (up (leaf (-1 0))))))", "(leaf (3 4))"]
    result = MCMC(NUTSKernel(), num_warmup=300, num_samples=1000, num_chains=2, seed=1).run(program, trees, {"y": y})
    assert result.engine == "compiled"
    assert result.divergence_counts.sum() == 0
    found = result.samples["m"].flatten(0, 1).double()
    # by propagation from the leaves
    up = torch.tensor([-1.0, 0.0]) * 0.64, 0.64 * 0.36 + 0.36
    right = torch.tensor([0.25, -0.5]) - 0.3 * up[0], 0.09 * up[1] + 0.16
    mean = 0.5 * 0.8 * torch.tensor([1.0, 2.0]) - 0.3 * right[0]
    variance = 0.25 * 0.36 + 0.09 * right[1] + 0.16
    gain = variance / (variance + 0.25)
    spread = math.sqrt(variance * (1.0 - gain))
    assert ((found[:, 0].mean(0) - (mean + gain * (y[0] - mean))).abs() < 0.12 * spread).all()
    assert ((found[:, 0].std(0) / spread - 1.0).abs() < 0.1).all()
    # what is computed does not move
    torch.testing.assert_close(found[:, 1], torch.tensor([3.0, 4.0]).to(found).expand(len(found), 2), rtol=0, atol=1e-6)


def test_pointwise_terms_of_a_code_need_no_noise() -> None:
    program = linear().p
    y = torch.tensor([[0.3, -0.2], [1.0, 0.4], [2.0, 4.0]])
    m = torch.randn(6, 3, 2)
    found = Given(program, TREES, {"y": y}).log_likelihood({"m": m})["y"]
    torch.testing.assert_close(found, Normal(m, 0.5).log_prob(y).reshape(found.shape))


def test_the_density_of_chains_is_that_of_all_noise_and_of_the_data() -> None:
    program = linear().p.double()
    y = torch.tensor([[0.3, -0.2], [1.0, 0.4], [2.0, 4.0]], dtype=torch.float64)
    potential = potential_of(program, TREES, {"y": y})
    q = torch.randn(2, potential.width, dtype=torch.float64)
    value, gradient = potential.value_and_grad(q)
    m = potential.report(q)["m"]
    plain = Normal(0.0, 1.0).log_prob(q).sum(1) + Normal(m, 0.5).log_prob(y).sum((1, 2))
    torch.testing.assert_close(value, plain, rtol=0, atol=1e-9)
    near, _ = potential.value_and_grad(q + 1e-6 * gradient)
    torch.testing.assert_close((near - value) / 1e-6, gradient.square().sum(1), rtol=1e-3, atol=0)


def expected_fit(y: torch.Tensor, moments: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """−E log N(y; m, ½²) a row, for m with these means and covariances."""
    total = torch.zeros(())
    for row, (mean, cov) in enumerate(moments):
        square = (y[row] - mean).square().sum() + cov.diagonal().sum()
        total = total + 0.5 * square / 0.25 + 2 * (math.log(0.5) + 0.5 * math.log(2 * math.pi))
    return total / len(moments)


def test_the_bound_counts_what_the_guide_says_of_roots_that_are_there() -> None:
    program = linear()
    weights = {name: weight.detach() for name, weight in program.p.named_parameters()}
    trees, nested = [*TREES, "(up (leaf (0 1)))"], [*NESTED, ("up", (0.0, 1.0))]
    y = torch.tensor([[0.3, -0.2], [1.0, 0.4], [2.0, 4.0], [0.0, 0.5]])
    moments = [propagated(tree, weights) for tree in nested]
    bound = ELBO(num_particles=4000)
    torch.manual_seed(7)
    guide = AutoNormalGuide(program.p, ["y"])

    def of(one: Guide) -> float:
        with torch.no_grad():
            return float(bound(program.p, one, trees, {"y": y}))

    for one in (AutoPriorGuide(program.p, ["y"]), guide, AutoMultivariateNormalGuide(program.p, ["y"], x=trees)):
        assert of(one) == pytest.approx(float(expected_fit(y, moments)), rel=0.03)
    # the roots that are joins move, and only these pay for it
    with torch.no_grad():
        guide.raw_loc["m/join@last"].fill_(0.8 * math.sqrt(2.0))
    own = scale_of(weights["join.output.bias"][2:], 1.0)
    moments[0] = (moments[0][0] + 0.8 * own, moments[0][1])
    divergence = 2 * 0.5 * 0.8**2
    assert of(guide) == pytest.approx(float(expected_fit(y, moments)) + divergence / len(trees), rel=0.02)


def test_what_is_drawn_of_a_level_is_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program = linear().drawn
    seen: list[int] = []
    kernel = program.step("m").module.leaves["grow"]
    own: Callable[..., Any] = type(kernel).draw

    def counted(self: Any, x: torch.Tensor, *others: Any, **named: Any) -> Any:
        seen.append(len(x) if self is kernel else 0)
        return own(self, x, *others, **named)

    monkeypatch.setattr(type(kernel), "draw", counted)
    deep = "(up " * 400 + "(leaf (1 2))" + ")" * 400
    program.rsample([deep, deep, "(up (leaf (0 0)))"])
    assert len(seen) == 400
    assert sum(seen) == 801


def test_copies_are_made_anew_and_draw_the_same() -> None:
    program = linear().drawn
    for made in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        drawn: list[torch.Tensor] = []
        for one in (program, made):
            torch.manual_seed(11)
            drawn.append(one.rsample(TREES))
        assert torch.equal(*drawn)


def test_a_guide_of_ones_own_draws_the_code_and_the_model_all_below_the_root() -> None:
    program = linear()
    weights = {name: weight.detach() for name, weight in program.p.named_parameters()}
    y = torch.tensor([[0.3, -0.2], [1.0, 0.4]])
    trees = ["(node (leaf (1 2)) (up (leaf (-1 0))))", "(up (leaf (1 1)))"]
    below: list[Any] = [("node", ("up", (1.0, 2.0)), ("up", ("up", (-1.0, 0.0)))), ("up", ("up", (1.0, 1.0)))]
    guide = ProgramGuide(program.guided, program.guides["guess"], {"y"})
    torch.manual_seed(3)
    with torch.no_grad():
        found = float(ELBO(num_particles=8000)(program.guided, guide, trees, {"y": y}))
    total = torch.zeros(())
    for row, tree in enumerate(below):
        # −E of log p(m | u) + log p(y | m) − log q(m), for m about y and the mean of p(m | u) with what is below it
        own = scale_of(weights["join.output.bias" if row == 0 else "grow.output.bias"][2:], 1.0).square()
        mean, cov = propagated(tree, weights)
        square = (y[row] - mean).square() + 0.49 + cov.diagonal() - own
        total = total + 0.5 * (square / own + own.log() + math.log(2 * math.pi)).sum()
        total = total + (0.5 * 0.49 / 0.25 + math.log(0.5) + 0.5 * math.log(2 * math.pi)) * 2
        total = total - (0.5 + math.log(0.7) + 0.5 * math.log(2 * math.pi)) * 2
    assert found == pytest.approx(float(total) / 2, rel=0.02)
