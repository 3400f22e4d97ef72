"""Encoders whose cases draw, against an evaluation node by node in plain torch and closed forms over trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch.distributions import Gamma, Normal

from qvr_core import dsl
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runtime.programs.handlers import condition, replay
from qvr_core.runtime.values.errors import InputProblem, MissingInnovations

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
