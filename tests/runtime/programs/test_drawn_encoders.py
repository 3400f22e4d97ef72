"""Encoders whose cases draw, against an evaluation node by node in plain torch and closed forms over trees."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch.distributions import Gamma, Normal

from qvr_core import dsl
from qvr_core.inference import ELBO, MCMC, AutoMultivariateNormalGuide, AutoNormalGuide, AutoPriorGuide, NUTSKernel
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.guides.program import ProgramGuide
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.handlers import condition, replay
from qvr_core.runtime.values.errors import InputProblem, MissingInnovations, NoDensity

TYPES = """\
object Name : {p, q, r}
object Code : Real 3
object Label : {no, yes}
data type Formula = atom(Name) | truth | not(Formula) | and(Formula, Formula) | near(Real 2, Formula)
morphism letter : Name -> Code [role=kernel] ~ Normal
morphism start : One -> Code [role=embed]
morphism noisy : Code -> Code [role=kernel, param_source=linear] ~ Normal
morphism combine : Code * Code -> Code [role=kernel, param_source=linear, scale=0.5] ~ Normal
morphism sized : Real 2 * Code -> Code [role=kernel, param_source=linear] ~ Normal
morphism judge : Code -> Label [role=kernel, param_source=linear] ~ Categorical
"""
FILE = (
    TYPES
    + """\
encoder meaning : Formula -> Code
    atom(n) = letter(n)
    truth = noisy(start(0))
    not(a) = noisy(a)
    and(a, b) = combine(tanh(noisy(a)), b)
    near(s, a) = sized(s, a)
program classify(f) : Formula -> Label
    sample m <- meaning(f)
    observe label <- judge(m)
    return label
program roots(f) : Formula -> Code
    observe m <- meaning(f)
    return m
export classify
"""
)
TERMS: list[Any] = [
    ["atom", "q"],
    "truth",
    ["and", ["not", ["atom", "p"]], ["and", "truth", ["near", [0.5, -2.0], ["atom", "r"]]]],
    ["near", [1.0, 3.0], ["and", ["and", ["atom", "p"], "truth"], ["not", ["not", ["atom", "q"]]]]],
    ["not", ["near", [0.0, 1.0], "truth"]],
]  # fmt: skip


def in_double(module: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    module.to(torch.float64)
    return module, dict(module.named_parameters())


def scale_of(raw: torch.Tensor, scale: float) -> torch.Tensor:
    return scale * (torch.nn.functional.softplus(raw + 0.541325) + 0.001)


class ByNode:
    """Codes of one term from their definition: a node's draws from its own noise, handed out level by level, from left
    to right, to the nodes of each constructor, the root apart."""

    OWN: Mapping[str, str] = {
        "atom": "letter", "truth": "noisy", "not": "noisy#2", "and": "combine", "near": "sized"
    }  # fmt: skip
    INSIDE = "noisy#3"

    def __init__(
        self, term: Any, row: int, weights: Mapping[str, torch.Tensor], noise: Mapping[str, torch.Tensor]
    ) -> None:
        self.weights = weights
        self.own: dict[int, torch.Tensor] = {}
        self.inside: dict[int, torch.Tensor] = {}
        self.held: list[Any] = []
        self.root = self.numbered(term)
        count = dict.fromkeys(["inside", *self.OWN], 0)
        level = [self.root]
        while level:
            for one in level:
                if one is not self.root:
                    self.own[id(one)] = noise[self.OWN[one[0]]][row, count[one[0]]]
                    count[one[0]] += 1
                if one[0] == "and":
                    self.inside[id(one)] = noise[self.INSIDE][row, count["inside"]]
                    count["inside"] += 1
            level = [inner for one in level for inner in one[1:] if isinstance(inner, tuple)]

    def numbered(self, term: Any) -> tuple[Any, ...]:
        """A copy in which no two nodes are one object; each is a tuple, what is no node is none."""
        name, *given = [term] if isinstance(term, str) else term
        terms = {"not": (0,), "and": (0, 1), "near": (1,)}.get(name, ())
        found = (name, *(self.numbered(one) if at in terms else [one] for at, one in enumerate(given)))
        self.held.append(found)
        return found

    def params(self, kernel: str, x: torch.Tensor) -> Normal:
        mean, raw = (self.weights[f"{kernel}.output.weight"] @ x + self.weights[f"{kernel}.output.bias"]).chunk(2)
        return Normal(mean, scale_of(raw, 0.5 if kernel == "combine" else 1.0))

    def drawn_from(self, node: tuple[Any, ...]) -> Normal:
        """The distribution of a node's own draw, given those below it."""
        match node:
            case ("atom", [name]):
                mean, raw = self.weights["letter.table.weight"]["pqr".index(name)].chunk(2)
                return Normal(mean, scale_of(raw, 1.0))
            case ("not", a):
                return self.params("noisy", self.code(a))
            case ("and", a, b):
                inner = self.params("noisy", self.code(a))
                drawn = inner.loc + inner.scale * self.inside[id(node)]
                return self.params("combine", torch.cat([torch.tanh(drawn), self.code(b)]))
            case ("near", [size], a):
                return self.params("sized", torch.cat([torch.tensor(size, dtype=torch.float64), self.code(a)]))
            case _:
                return self.params("noisy", self.weights["start.weight"][0])

    def code(self, node: tuple[Any, ...]) -> torch.Tensor:
        found = self.drawn_from(node)
        return found.loc + found.scale * self.own[id(node)]


def wanted(
    terms: list[Any], m: torch.Tensor, labels: torch.Tensor, weights: Any, noise: Mapping[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """log p(m | f, u) and log p(label | m) of each term."""
    roots = [ByNode(term, row, weights, noise) for row, term in enumerate(terms)]
    own = torch.stack([one.drawn_from(one.root).log_prob(m[row]).sum() for row, one in enumerate(roots)])
    logits = m @ weights["judge.output.weight"].T + weights["judge.output.bias"]
    return own, logits.log_softmax(-1)[torch.arange(len(terms)), labels]


LABELS = torch.tensor([0, 1, 1, 0, 1])


def detached(noise: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {path: u.double().requires_grad_() for path, u in noise.items()}


def test_joint_density_and_gradients_are_those_of_each_node() -> None:
    torch.manual_seed(1)
    program, weights = in_double(dsl.loads(FILE).classify)
    noise = detached(program.innovations(TERMS)["m"])
    m = torch.randn(len(TERMS), 3, dtype=torch.float64, requires_grad=True)
    found = program.log_joint(TERMS, {"m": m, "label": LABELS}, {"m": noise})
    plain = sum(wanted(TERMS, m, LABELS, weights, noise))
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-10)
    mixing = torch.linspace(-1.0, 2.0, len(TERMS), dtype=torch.float64)
    moved = {**weights, **noise, "m": m}
    ours, theirs = (
        torch.autograd.grad((mixing * value).sum(), [*moved.values()], allow_unused=True) for value in (found, plain)
    )
    for name, one, other in zip(moved, ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9, msg=name)


def test_what_is_observed_at_the_roots_has_the_same_density() -> None:
    torch.manual_seed(2)
    program, weights = in_double(dsl.loads(FILE).roots)
    m = torch.randn(len(TERMS), 3, dtype=torch.float64)
    with pytest.raises(MissingInnovations, match=r"`letter` \(5, 2, 3\)"):
        program.log_joint(TERMS, {"m": m})
    noise = detached(program.innovations(TERMS)["m"])
    found = program.log_joint(TERMS, {"m": m}, {"m": noise})
    torch.testing.assert_close(found, wanted(TERMS, m, LABELS, {**weights, **JUDGE}, noise)[0], rtol=0, atol=1e-10)
    # a row is what it is beside smaller ones: the noise of the others' nodes is cut away, or spare
    for row, term in enumerate(TERMS):
        own = {path: u[row : row + 1] for path, u in noise.items()}
        alone = program.log_joint([term], {"m": m[row : row + 1]}, {"m": own})
        torch.testing.assert_close(alone[0], found[row], rtol=0, atol=1e-12)
    short = {path: u[:, :1] for path, u in noise.items()}
    with pytest.raises(InputProblem, match=r"the noise `letter` is \(5, 1, 3\), and these terms want \(5, 2, 3\)"):
        program.log_joint(TERMS, {"m": m}, {"m": short})


JUDGE = {"judge.output.weight": torch.zeros(2, 3).double(), "judge.output.bias": torch.zeros(2).double()}


def test_a_draw_is_its_noise_again_and_its_trace_its_density() -> None:
    torch.manual_seed(3)
    program, weights = in_double(dsl.loads(FILE).classify)
    arrow = program.step("m").module
    table = program.input(TERMS)
    drawn = arrow.draw(table)
    again = arrow.draw(table, drawn.noise)
    assert torch.equal(again.value, drawn.value)
    roots = [ByNode(term, row, weights, drawn.noise) for row, term in enumerate(TERMS)]
    own = torch.stack([one.drawn_from(one.root).log_prob(drawn.value[row]).sum() for row, one in enumerate(roots)])
    torch.testing.assert_close(drawn.log_prob, own, rtol=0, atol=1e-10)
    # all noise is standard: that of no node, too
    every = sum(Normal(0.0, 1.0).log_prob(u).flatten(1).sum(1) for u in drawn.noise.values())
    torch.testing.assert_close(drawn.log_noise, every, rtol=0, atol=1e-10)
    below = sum(
        Normal(0.0, 1.0).log_prob(u).flatten(1).sum(1) for path, u in drawn.noise.items() if not path.endswith("@last")
    )
    torch.testing.assert_close(drawn.log_innovations, below, rtol=0, atol=1e-10)
    assert arrow.draw(table[:0]).value.shape == (0, 3)


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


OTHER = """\
object Name : {p, q}
data type Tree = leaf(Name) | node(Tree, Tree) | up(Tree)
morphism rate : Name -> Real 1 [role=kernel] ~ Gamma
morphism grow : Real 1 -> Real 1 [role=kernel, param_source=linear] ~ Gamma
morphism join : Real 1 * Real 1 -> Real 1 [role=kernel, param_source=linear] ~ Gumbel
encoder size : Tree -> Real 1
    leaf(n) = rate(n)
    node(a, b) = join(a, grow(b))
    up(a) = grow(a) + rate(0)
program p(t) : Tree -> Real 1
    sample m <- size(t)
    observe y : Real 1 <- Normal(m, 0.5)
    return m
export p
"""


def test_draws_without_standard_noise_are_moved_as_they_are() -> None:
    """The noise of a Gamma is its value: chains see its own density, that of entries of no node at 0.5."""
    torch.manual_seed(4)
    program = dsl.loads(OTHER).p.double()
    trees = ["(node (leaf p) (up (leaf q)))", "(leaf q)", "(up (node (leaf p) (leaf p)))"]
    y = torch.ones(3, 1, dtype=torch.float64)
    potential = potential_of(program, trees, {"y": y})
    q = torch.randn(1, potential.width, dtype=torch.float64)
    value, gradient = potential.value_and_grad(q)
    near, _ = potential.value_and_grad(q + 1e-6 * gradient)
    torch.testing.assert_close((near - value) / 1e-6, gradient.square().sum(1), rtol=1e-3, atol=0)

    leaves = program.step("m").module.leaves
    held = {block.coordinate.path: block for block in potential.blocks}
    assert {"rate", "rate@last", "join", "join@last", "grow", "grow#2", "rate#2"} == set(held)
    plain = torch.zeros((), dtype=torch.float64)
    noise: dict[str, torch.Tensor] = {}
    for path, block in held.items():
        z = q.reshape(3, -1)[:, block.start : block.stop].reshape(3, *block.shape)
        noise[path], log_jacobian = block.coordinate.noise(z)
        plain = plain + (Normal(0.0, 1.0).log_prob(z).sum() if log_jacobian is None else log_jacobian.sum())

    def params(name: str, x: Any) -> tuple[torch.Tensor, ...]:
        return tuple(each.detach()[0] for each in leaves[name].params(x))

    def gamma(name: str, x: Any, u: torch.Tensor) -> torch.Tensor:
        """What is drawn, which is its noise; its density is added."""
        nonlocal plain
        plain = plain + Gamma(*params(name, x)).log_prob(u).sum()
        return u

    def gumbel(left: torch.Tensor, right: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        loc, scale = params("join", torch.cat([left, right]).unsqueeze(0))
        return loc - scale * torch.log(-torch.log(u))

    at, half = torch.tensor, torch.full((1, 1), 0.5, dtype=torch.float64)
    # (node (leaf p) (up (leaf q)))
    p, q_ = gamma("rate", at([0]), noise["rate"][0, 0]), gamma("rate", at([1]), noise["rate"][0, 1])
    up = gamma("grow", q_.unsqueeze(0), noise["grow#2"][0, 0]) + gamma("rate", at([0]), noise["rate#2"][0, 0])
    first = gumbel(p, gamma("grow", up.unsqueeze(0), noise["grow"][0, 0]), noise["join@last"][0])
    # (leaf q)
    second = gamma("rate", at([1]), noise["rate@last"][1])
    # (up (node (leaf p) (leaf p)))
    p, other = (gamma("rate", at([0]), noise["rate"][2, entry]) for entry in (0, 1))
    node = gumbel(p, gamma("grow", other.unsqueeze(0), noise["grow"][2, 0]), noise["join"][2, 0])
    third = gamma("grow", node.unsqueeze(0), noise["grow#2"][2, 0]) + gamma("rate", at([0]), noise["rate#2"][2, 0])
    # entries of no node
    for path, row, entry in (("rate", 1, 0), ("rate", 1, 1), ("rate#2", 1, 0)):
        gamma("rate", at([0]), noise[path][row, entry])
    for row in (0, 2):
        gamma("rate", at([0]), noise["rate@last"][row])
    for path in ("grow", "grow#2"):
        gamma("grow", half, noise[path][1, 0])
    m = torch.stack([first, second, third])
    torch.testing.assert_close(potential.report(q)["m"][0], m, rtol=0, atol=1e-10)
    plain = plain + Normal(m, 0.5).log_prob(y).sum()
    torch.testing.assert_close(value[0], plain, rtol=0, atol=1e-9)


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


FINITE = """\
object Code : Real 2
object Kind : {a, b, c}
data type Tree = leaf(Real 2) | node(Tree, Tree)
morphism choose : Code -> Kind [role=kernel, param_source=linear] ~ Categorical
morphism of_kind : Kind -> Code [role=embed]
morphism grow : Code -> Code [role=kernel, param_source=linear] ~ Normal
encoder walk : Tree -> Code
    leaf(x) = grow(x)
    node(a, b) = grow(of_kind(choose(a)) + b)
program p(t) : Tree -> Code
    observe m <- walk(t)
    return m
export p
"""


def test_a_finite_draw_within_a_case_is_given_and_counts() -> None:
    torch.manual_seed(6)
    program, weights = in_double(dsl.loads(FINITE).p)
    trees = ["(node (leaf (1 2)) (node (leaf (0 1)) (leaf (2 2))))", "(leaf (1 1))"]
    assert program.site_infos()["m"].density.kind == "score"
    noise = program.innovations(trees)
    given = noise["m"]
    m = torch.randn(2, 2, dtype=torch.float64)

    def grow(x: torch.Tensor) -> Normal:
        mean, raw = (weights["grow.output.weight"] @ x + weights["grow.output.bias"]).chunk(2)
        return Normal(mean, scale_of(raw, 1.0))

    def kind(x: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        return (weights["choose.output.weight"] @ x + weights["choose.output.bias"]).log_softmax(-1)[which]

    def leaf(x: list[float], entry: int) -> torch.Tensor:
        found = grow(torch.tensor(x, dtype=torch.float64))
        return found.loc + found.scale * given["grow"][0, entry]

    # level by level, and in each from left to right
    first, second, third = leaf([1.0, 2.0], 0), leaf([0.0, 1.0], 1), leaf([2.0, 2.0], 2)
    outer, inner = given["choose"][0, 0], given["choose"][0, 1]
    below = grow(weights["of_kind.weight"][inner] + third)
    node = below.loc + below.scale * given["grow#2"][0, 0]
    root = grow(weights["of_kind.weight"][outer] + node)
    plain = torch.stack([root.log_prob(m[0]).sum(), grow(torch.ones(2, dtype=torch.float64)).log_prob(m[1]).sum()])
    torch.testing.assert_close(program.log_joint(trees, {"m": m}, noise), plain, rtol=0, atol=1e-10)
    standard = sum(Normal(0.0, 1.0).log_prob(given[path][0]).sum() for path in ("grow", "grow#2"))
    found = program.execute(trees, condition({"m": m}), replay(noise)).log_innovations()
    chosen = kind(first, outer) + kind(second, inner)
    torch.testing.assert_close(found[0], standard + chosen, rtol=0, atol=1e-10)
