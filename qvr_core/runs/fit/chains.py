"""Chains dealt out over processes, ended early without losing a draw, and put together again.

A chain's draws must not depend on where it runs.  Chains of one execution are rows of one batch; they are dealt out as
they come only where a row's density is the same, bit for bit, in batches of other sizes.  Otherwise each runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor, distributed

from qvr_core.inference.mcmc import MCMC, Enough, MCMCResult, Progress, joined
from qvr_core.inference.mcmc.potential import Potential, ProgramPotential
from qvr_core.runs.fit.distributed import Team
from qvr_core.runtime.values.errors import NonFinite


class Interruptible:
    """A potential that raises `Enough` once `ended` says so, in the midst of a trajectory too."""

    def __init__(self, inner: Potential, ended: Callable[[], bool]) -> None:
        self.inner = inner
        self.ended = ended
        self.width, self.dtype, self.vectorised = inner.width, inner.dtype, inner.vectorised
        self.advice = inner.advice

    def value_and_grad(self, q: Tensor) -> tuple[Tensor, Tensor]:
        if self.ended():
            raise Enough
        return self.inner.value_and_grad(q)

    def initial(self, generator: Generator) -> Tensor:
        return self.inner.initial(generator)

    def find_initial_position(self, q: Tensor) -> Tensor:
        return self.inner.find_initial_position(q)

    def report(self, q: Tensor) -> dict[str, Tensor]:
        return self.inner.report(q)

    def blame(self, q: Tensor) -> NonFinite | None:
        return self.inner.blame(q)


def rows_are_independent(potential: Potential, seeds: Sequence[int]) -> bool:
    """Whether chains have the same density and gradient alone, in pairs and all together, to the last bit."""
    if not isinstance(potential, ProgramPotential):
        return False
    q = torch.stack([potential.initial(Generator().manual_seed(seed)) for seed in seeds])
    whole = potential.plain_value_and_grad(q)
    for size in (1, 2):
        parts = [potential.plain_value_and_grad(part) for part in q.split(size)]
        for values, pieces in zip(whole, zip(*parts, strict=True), strict=True):
            if not torch.equal(values, torch.cat(pieces)):
                return False
    return True


def sample(
    chains: MCMC,
    potential: Potential,
    team: Team,
    *,
    ended: Callable[[], bool],
    watch: Callable[[int, int, Progress], None],
) -> MCMCResult | None:
    """The chains of all processes, on each of them; None where there is no draw at all.

    `watch(group, groups, progress)` sees the transitions of this process.
    """
    choice = chains.choice or chains.choose(potential)
    seeds = chains.seeds()
    numbers = list(range(len(seeds)))[len(seeds) * team.rank // team.size : len(seeds) * (team.rank + 1) // team.size]
    # compiled chains share nothing, wherever they run
    alone = choice.engine != "compiled" and len(seeds) > 1 and not rows_are_independent(potential, seeds)
    groups = [[number] for number in numbers] if alone else [numbers]
    interruptible = Interruptible(potential, ended)
    found: list[MCMCResult] = []
    for place, group in enumerate(groups):
        try:
            found.append(
                chains.chains_of(
                    interruptible,
                    [seeds[number] for number in group],
                    lambda now, place=place: watch(place, len(groups), now),
                    ended,
                )
            )
        except Enough:
            break
    return together(gathered(found, team))


def gathered(found: list[MCMCResult], team: Team) -> list[MCMCResult]:
    """The results of all processes in their order, on each of them."""
    if team.size == 1:
        return found
    collected: list[Any] = [None] * team.size
    distributed.all_gather_object(collected, found)
    return [result for part in collected for result in part]


def together(found: Sequence[MCMCResult]) -> MCMCResult | None:
    """All chains with as many draws each.  Where some were ended early, as many draws as can be kept: short chains are
    cut from the rest, or the rest to them."""
    if not found:
        return None
    kept = max((draws_of(result) for result in found), key=lambda draws: draws * _chains(found, draws))
    long = [shortened(result, kept) for result in found if draws_of(result) >= kept]
    return joined(long)


def draws_of(result: MCMCResult) -> int:
    return result.acceptance.shape[1]


def _chains(found: Sequence[MCMCResult], draws: int) -> int:
    """Chains with at least so many draws."""
    return sum(len(result.acceptance) for result in found if draws_of(result) >= draws)


def shortened(result: MCMCResult, draws: int) -> MCMCResult:
    """The first draws of every chain."""
    if draws_of(result) == draws:
        return result
    diverging, acceptance = result.diverging[:, :draws], result.acceptance[:, :draws]
    return replace(
        result,
        samples={name: values[:, :draws] for name, values in result.samples.items()},
        acceptance_rates=acceptance.mean(1),
        divergence_counts=diverging.sum(1),
        tree_depths=result.tree_depths[:, :draws],
        leapfrog_steps=result.leapfrog_steps[:, :draws],
        diverging=diverging,
        log_density=result.log_density[:, :draws],
        acceptance=acceptance,
        energy=None if result.energy is None else result.energy[:, :draws],
    )
