"""Loss and backward against hand-written eager loops: language models, particles, cells as programs, BERT's block.

One process, one thread, the two sides by turns, medians of CPU time; the ratio is theirs over ours (higher is better),
for particles, the LSTM and BERT ours over the other (lower is better).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks import bert, limits, small_networks
from benchmarks.eager import (
    BidirectionalRnn,
    LanguageModel,
    MogrifierCell,
    RewiredCell,
    Seq2Seq,
    Unrolled,
    VanillaRnn,
)
from qvr_core.dsl import load
from qvr_core.runtime.values.arrow import repeat_rows
from qvr_core.runtime.values.layout import Where, prepare

BLOCK = [(8, 16, 4), (2, 16, 16), (2, 16, 16), (2, 16, 32), (2, 32, 16), (2, 16, 16)]
SEQ2SEQ = [*BLOCK, *BLOCK, (1, 32, 32), (1, 32, 16)]
"""Its kernels by stage: encoder and decoder side by side, then what joins them, and the head."""
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
Loss = Callable[[], Tensor]


def side_by_side(left: tuple[nn.Module, Loss], right: tuple[nn.Module, Loss], repeats: int) -> tuple[float, float]:
    """Median CPU milliseconds of loss and backward of both, by turns."""
    times: tuple[list[float], list[float]] = ([], [])
    # as optimisers hold them: walking through a tree of modules is no part of a step
    weights = tuple(list(module.parameters()) for module, _ in (left, right))
    for round_ in range(repeats + 3):
        for spent, parameters, (_, loss) in zip(times, weights, (left, right), strict=True):
            start = time.process_time()
            for parameter in parameters:
                parameter.grad = None
            loss().backward()
            if round_ >= 3:
                spent.append(time.process_time() - start)
    return statistics.median(times[0]) * 1e3, statistics.median(times[1]) * 1e3


def program_loss(model: nn.Module, observed: str, x: Tensor, y: Tensor, particles: int = 1) -> Loss:
    """−log p(y | x, h) with h drawn from the model, as SVI with the prior guide has it."""
    latent, head = model.step("h").module, model.step(observed).module  # type: ignore[operator]
    value = prepare(latent.domain.space, x, Where())
    value = repeat_rows(value, particles) if particles > 1 else value
    target = y.repeat(particles)

    def loss() -> Tensor:
        return -head.log_prob(latent.draw(value, want_log_prob=False).value, target).mean()

    return loss


def against_eager(quick: bool) -> bool:
    """The rows of the table that compare with an eager loop."""
    rows = [
        ("vanilla_rnn_lm", "next_token", VanillaRnn(), [(4, 8, 1.5), (64, 64, 1.9), (32, 256, 2.5)]),
        ("bidirectional_rnn_lm", "masked_token", BidirectionalRnn(), [(4, 8, 1.8), (64, 64, 1.8), (32, 256, 3.0)]),
        ("seq2seq", "next_token", Seq2Seq(), [(4, 8, 1.7), (64, 32, 0.95)]),
    ]
    met = True
    for name, observed, eager, sizes in rows:
        model = load(EXAMPLES / f"{name}.qvr").morphism
        for batch, length, goal in sizes:
            if name == "seq2seq":
                x, y = torch.randint(0, 32, (batch * length, 2)), torch.randint(0, 32, (batch * length,))
            else:
                x, y = torch.randint(0, 256, (batch, length)), torch.randint(0, 256, (batch,))
            repeats = max(4, min(100, 20_000 // (batch * length)) // (4 if quick else 1))
            pair = side_by_side(
                (model, program_loss(model, observed, x, y)), (eager, lambda e=eager, x=x, y=y: e.loss(x, y)), repeats
            )
            met &= report(f"{name} {batch}×{length}", *pair, pair[1] / pair[0], goal, at_least=True)
            if name == "seq2seq":
                work = limits.chain(batch * length, SEQ2SEQ, 64, list(model.parameters()))
                print(f"    ours: {limits.said(work, limits.least([work], repeats)[0])}", flush=True)
    return met


def particles(quick: bool) -> bool:
    """Eight particles against one."""
    met = True
    model = load(EXAMPLES / "bidirectional_rnn_lm.qvr").morphism
    for batch, length, goal in ((4, 8, 2.0), (16, 64, 3.0)):
        x, y = torch.randint(0, 256, (batch, length)), torch.randint(0, 256, (batch,))
        losses = [program_loss(model, "masked_token", x, y, count) for count in (8, 1)]
        pair = side_by_side((model, losses[0]), (model, losses[1]), 10 if quick else 40)
        met &= report(f"8 particles against 1, {batch}×{length}", *pair, pair[0] / pair[1], goal, at_least=False)
        # eight times the rows are eight times the products
        works = [limits.scans(count * batch, length, 2, 64, 64) for count in (8, 1)]
        for count, work, spent in zip((8, 1), works, limits.least(works, 5 if quick else 20), strict=True):
            print(f"    {count}: {limits.said(work, spent)}", flush=True)
    return met


def cells(quick: bool) -> bool:
    """Cells written as programs: the LSTM against torch's own, the others against a loop of their cells."""
    x, y = torch.randint(0, 256, (32, 64)), torch.randint(0, 256, (32, 64))

    def pair(example: str, states: nn.Module) -> tuple[float, float]:
        model, other = load(EXAMPLES / f"{example}.qvr").morphism, LanguageModel(states)
        ours = (model, lambda: -model.log_joint(x, {"next_token": y}).mean() / 64)
        return side_by_side(ours, (other, lambda: other.loss(x, y)), 6 if quick else 40)

    own, torchs = pair("lstm_lm", nn.LSTM(64, 64, batch_first=True))
    met = report("LSTM program against torch.nn.LSTM, 32×64", own, torchs, own / torchs, 1.2, at_least=False)
    for example, cell, goal in (("rlstm_lm", RewiredCell(), 1.3), ("mogrifier_rlstm_lm", MogrifierCell(), 1.2)):
        own, loop = pair(example, Unrolled(cell))
        met &= report(f"{example} 32×64, a loss at each position", own, loop, loop / own, goal, at_least=True)
    return met


def blocks(quick: bool) -> bool:
    """A block of the BERT example against torch's encoder layer, whole and padded."""
    met = True
    for name, ours, theirs, x, valid in bert.cases():
        pair = side_by_side(
            (ours, lambda o=ours, x=x, v=valid: bert.our_loss(o, x, v)),
            (theirs, lambda t=theirs, x=x, v=valid: bert.their_loss(t, x, v)),
            6 if quick else 30,
        )
        met &= report(name, *pair, pair[0] / pair[1], 1.1, at_least=False)
    return met


def report(name: str, ours: float, theirs: float, ratio: float, goal: float, *, at_least: bool) -> bool:
    """Print a row; True where the goal is met."""
    met = ratio >= goal if at_least else ratio <= goal
    sign = "≥" if at_least else "≤"
    print(f"{name:44} {ours:8.2f} ms {theirs:8.2f} ms   {ratio:5.2f} (goal {sign} {goal:g}) {'' if met else 'missed'}")
    return met


def main(argv: list[str]) -> int:
    """Print the table; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure less often")
    quick = parser.parse_args(argv).quick
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'':44} {'ours':>11} {'other':>11}")
    met = [against_eager(quick), particles(quick), cells(quick), blocks(quick)]
    print("\nsteps of SVI, Adam included, against a loop over torch's modules")
    met.append(small_networks.rows(quick=quick, compiled=False))
    torch.set_num_threads(threads)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
