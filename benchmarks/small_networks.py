"""Steps of small networks: SVI's, Adam included, against a loop over torch's own modules, and that loop compiled.

One process, one thread, all sides by turns, medians of CPU time; ratios are ours over the loop's (lower is better).
Beside them the loop with the checks that a fit makes: what of the ratio is no work of ours.
`--compile` adds torch.compile of the loop's loss, which takes a C++ compiler.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional as F

from benchmarks.inference_steps import by_turns
from qvr_core.dsl import load, loads
from qvr_core.inference import ELBO, SVI, AutoDeltaGuide
from qvr_core.inference.guides.program import ProgramGuide

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
Step = Callable[[], Any]
Case = tuple[str, Step, nn.Module, Callable[[], Tensor], Sequence[Tensor], float]
"""Its name, our step, their module with its loss, the data, and the goal."""


def svi_step(program: Any, x: Tensor, data: dict[str, Tensor], *, own_guide: bool = False) -> Step:
    """A step of SVI on a program of a loaded file."""
    model = program.morphism
    guide = ProgramGuide(model, program.guide) if own_guide else AutoDeltaGuide(model)
    weights = [*model.parameters(), *guide.parameters()]
    svi = SVI(model, guide, torch.optim.Adam(weights, 1e-3), ELBO())
    return lambda: svi.step(x, data)


def eager_step(module: nn.Module, loss: Callable[[], Tensor]) -> Step:
    """The same by hand, with the loss read and looked at as SVI does."""
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    return step


def checked_step(module: nn.Module, loss: Callable[[], Tensor], data: Sequence[Tensor]) -> Step:
    """The same, with what a fit must look at beside it: the data's range, the loss, every gradient, and the state of
    the random numbers, by which a step that fails is told apart."""
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)
    weights = list(module.parameters())

    def step() -> float:
        torch.get_rng_state()
        for each in data:
            if not all(map(math.isfinite, map(float, each.aminmax()))):
                raise ValueError("not a number")
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        norm = torch.nn.utils.get_total_norm([weight.grad for weight in weights if weight.grad is not None])
        if not math.isfinite(value.item() + norm.item()):
            raise ValueError("not finite")
        optimizer.step()
        return value.item()

    return step


def _scale(raw: Tensor, scale: float = 1.0) -> Tensor:
    return scale * (F.softplus(raw + 0.541325) + 0.001)


class Head(nn.Module):
    """Two hidden tanh layers and the mean and spread of a Normal."""

    def __init__(self, inside: int, hidden: int, out: int, scale: float = 1.0) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inside, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2 * out)
        )
        self.scale = scale

    def forward(self, x: Tensor) -> Normal:
        mean, raw = self.net(x).chunk(2, -1)
        return Normal(mean, _scale(raw, self.scale), validate_args=False)


class Autoencoder(nn.Module):
    """`encoder_guide` by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = Head(4, 32, 2), Head(2, 64, 4, 0.3)

    def forward(self, x: Tensor) -> Tensor:
        q = self.encode(x)
        z = q.rsample()
        prior = Normal(torch.zeros(()), torch.ones(()), validate_args=False)
        bound = self.decode(z).log_prob(x).sum(-1) + prior.log_prob(z).sum(-1) - q.log_prob(z).sum(-1)
        return -bound.mean()


class Layers(nn.Module):
    """Two layers of `torch.nn.LSTM`, an embedding and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cells = nn.Embedding(256, 128), nn.LSTM(128, 128, 2, batch_first=True)
        self.head = nn.Linear(128, 256)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.cells(self.embed(x))[0]).transpose(1, 2), y, reduction="sum") / len(x)


class Masked(nn.Module):
    """A loop of `torch.nn.LSTMCell` whose state is masked the same way at each position, an embedding and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(256, 64), nn.LSTMCell(64, 64), nn.Linear(64, 256)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        h = c = torch.zeros(len(x), 64)
        mask, states = F.dropout(torch.ones_like(h), 0.25), list[Tensor]()
        for item in self.embed(x).unbind(1):
            h, c = self.cell(item, (h * mask, c))
            states.append(h)
        return F.cross_entropy(self.head(torch.stack(states, 1)).transpose(1, 2), y, reduction="sum") / len(x)


MLP = """
object Input : Real 16
object Output : Real 1
morphism out : Input -> Output [role=kernel, hidden_dim=64] ~ Normal
program mlp(x) : Input -> Output
    observe y : Output <- out(x)
    return y
export mlp
"""
LSTM = """
from "std/recurrent.qvr" import lstm
object Token : FinSet 256
object Hidden : Real 128
morphism tok_embed : Token -> Hidden [role=embed]
morphism lm_head : Hidden -> Token [role=kernel, param_source=linear] ~ Categorical
let low = tok_embed >> scan(lstm(Hidden, Hidden), emit=all)
let high = low.h >> scan(lstm(Hidden, Hidden), emit=all)
let backbone = high.h
program layers(tokens) : Token -> Token
    let h = backbone(tokens)
    observe next_token : Token <- lm_head(h)
    return next_token
export layers
"""
DROPPED = """
object Token : FinSet 256
object Hidden : Real 64
morphism tok_embed : Token -> Hidden [role=embed]
morphism gates : Hidden * Hidden -> Hidden * Hidden * Hidden * Hidden [role=linear]
morphism held : Hidden -> Hidden [role=dropout, p=0.25, once=true]
morphism lm_head : Hidden -> Token [role=kernel, param_source=linear] ~ Categorical
program cell(x, h, c) : Hidden * Hidden * Hidden -> Hidden * Hidden
    let (i, j, f, o) = chunk(gates(x, held(h)), 4)
    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(j)
    let h2 = sigmoid(o) * tanh(c2)
    return (h: h2, c: c2)
let states = tok_embed >> scan(cell, emit=all)
let backbone = states.h
program masked(tokens) : Token -> Token
    let h = backbone(tokens)
    observe next_token : Token <- lm_head(h)
    return next_token
export masked
"""


def cases() -> list[Case]:
    """All rows."""
    x, y = torch.randn(64, 16), torch.randn(64, 1)
    mlp = Head(16, 64, 1)
    ring, coded = torch.randn(64, 4), load(EXAMPLES / "encoder_guide.qvr")
    auto = Autoencoder()
    tokens, following = torch.randint(0, 256, (32, 64)), torch.randint(0, 256, (32, 64))
    layers, masked = Layers(), Masked()
    pictures, shapes = torch.rand(64, 256), torch.randint(0, 4, (64,))
    convolutions = nn.Sequential(
        nn.Unflatten(1, (1, 16, 16)),
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(8),
        nn.Flatten(), nn.Linear(16, 4),
    )  # fmt: skip
    return [
        ("MLP, 64 rows, 16 → 64 → 64 → 1", svi_step(loads(MLP), x, {"y": y}),
         mlp, lambda: -mlp(x).log_prob(y).sum(-1).mean(), (x, y), 1.3),
        ("encoder_guide, 64 rows", svi_step(coded, ring, {"picture": ring}, own_guide=True),
         auto, lambda: auto(ring), (ring,), 1.3),
        ("LSTM of 2 layers, 32×64×128", svi_step(loads(LSTM), tokens, {"next_token": following}),
         layers, lambda: layers(tokens, following), (tokens, following), 1.2),
        ("LSTM, one mask a sequence, 32×64×64", svi_step(loads(DROPPED), tokens, {"next_token": following}),
         masked, lambda: masked(tokens, following), (tokens, following), 1.0),
        ("convolutional_classifier, 64 rows",
         svi_step(load(EXAMPLES / "convolutional_classifier.qvr"), pictures, {"shape": shapes}),
         convolutions, lambda: F.cross_entropy(convolutions(pictures), shapes), (pictures, shapes), 1.2),
    ]  # fmt: skip


def main(argv: list[str]) -> int:
    """Print the table; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure less often")
    parser.add_argument("--compile", action="store_true", help="torch.compile beside them")
    asked = parser.parse_args(argv)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    met = rows(quick=asked.quick, compiled=asked.compile)
    torch.set_num_threads(threads)
    return 0 if met else 1


def rows(*, quick: bool, compiled: bool) -> bool:
    """Print the rows, with torch.compile's beside them; False where a goal is missed."""
    print(f"{'':36} {'ours':>9} {'loop':>9} {'ratio':>7} {'loop that checks':>17} {'compiled loop':>15}")
    met = True
    for name, ours, module, loss, data, goal in cases():
        sides = [ours, eager_step(module, loss), checked_step(module, loss, data)]
        if compiled:
            sides.append(eager_step(module, torch.compile(loss)))
        own, loop, checked, *others = by_turns(sides, 20 if quick else 100)
        ratio = own / loop
        met &= ratio <= goal
        beside = f"{others[0]:12.2f} ms" if others else ""
        missed = "" if ratio <= goal else "missed"
        figures = f"{own:6.2f} ms {loop:6.2f} ms {ratio:7.2f} {checked:14.2f} ms"
        print(f"{name:36} {figures} {beside} (goal ≤ {goal:g}) {missed}", flush=True)
    return met


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
