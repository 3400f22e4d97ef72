"""Chains dealt out over processes, ended early without losing a draw, and put together again.

A chain's draws must not depend on where it runs.  Chains of one execution are rows of one batch; they are dealt out as
they come only where a row's density is the same, bit for bit, in batches of other sizes.  Otherwise each runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from qvr_core.arrays.engine import arrays
from qvr_core.inference.mcmc import MCMC, Enough, MCMCResult, Progress, joined
from qvr_core.inference.mcmc.draws import Slice
from qvr_core.inference.mcmc.interruptible import Interruptible
from qvr_core.inference.mcmc.potential import Potential, ProgramPotential
from qvr_core.runs.fit.chain_checkpoints import ChainCheckpoints
from qvr_core.runs.fit.distributed import Team

if TYPE_CHECKING:
    from qvr_core.cluster.dispatch import Dealer


def rows_are_independent(potential: Potential, seeds: Sequence[int]) -> bool:
    """Whether chains have the same density and gradient alone, in pairs and all together, to the last bit."""
    if not isinstance(potential, ProgramPotential):
        return False
    q = arrays.stack([potential.initial(np.random.default_rng(seed)) for seed in seeds])
    whole = potential.value_and_grad(q)
    for size in (1, 2):
        parts = [potential.value_and_grad(part) for part in arrays.split(q, size)]
        for values, pieces in zip(whole, zip(*parts, strict=True), strict=True):
            if not arrays.equal(values, arrays.cat(pieces)):
                return False
    return True


@dataclass(frozen=True, slots=True)
class Far:
    """How far a run is: transitions of `total`, of each chain on the average."""

    done: int
    total: int
    place: int | None = None
    """Which group of chains is at work, where they come one after the other."""

    @classmethod
    def in_turn(cls, place: int, groups: Sequence[Sequence[int]], now: Progress, begun: Callable[[int], int]) -> Far:
        """Where groups of chains come one after the other; `begun` transitions each had before the run went on."""
        done = [now.total if at < place else now.draw + 1 if at == place else begun(group[0])
                for at, group in enumerate(groups)]  # fmt: skip
        sizes = [len(group) for group in groups]
        mean = sum(size * each for size, each in zip(sizes, done, strict=True)) // sum(sizes)
        return cls(mean, now.total, place if len(groups) > 1 else None)


def _own_number(number: int) -> int:
    """What no two chains share."""
    return number


def sample(
    chains: MCMC,
    potential: Potential,
    team: Team,
    *,
    ended: Callable[[], bool],
    watch: Callable[[Sequence[int], Progress, Far], None],
    checkpoints: ChainCheckpoints,
) -> MCMCResult | None:
    """The chains of all processes, on each of them; None where there is no draw at all.

    `watch(chains, progress, far)` sees the transitions of this process.  Chains that `checkpoints` knows go on.
    """
    choice = chains.choice or chains.choose(potential)
    seeds = chains.seeds()
    numbers = own(team, len(seeds))
    # compiled chains share nothing, wherever they run
    alone = choice.engine != "compiled" and len(seeds) > 1 and not rows_are_independent(potential, seeds)
    # neighbours that stand at the same draw move together
    together_by = _own_number if alone else checkpoints.draw_of
    groups = [list(group) for _, group in groupby(numbers, together_by)]
    interruptible = Interruptible(potential, ended)
    found: list[MCMCResult] = []
    for place, group in enumerate(groups):
        try:
            found.append(
                chains.chains_of(
                    interruptible,
                    [seeds[number] for number in group],
                    lambda now, place=place, group=group: watch(
                        group, now, Far.in_turn(place, groups, now, checkpoints.draw_of)
                    ),
                    ended,
                    checkpoints.keeper(place, group),
                )
            )
        except Enough:
            continue
    return together(gathered(found, team))


def on_cluster(
    chains: MCMC,
    potential: Potential,
    dealer: Dealer,
    *,
    ended: Callable[[], bool],
    watch: Callable[[int, Slice, int, Far], None],
    checkpoints: ChainCheckpoints,
    tell: Callable[[str], None],
) -> MCMCResult | None:
    """The same, each chain by itself wherever a cluster has room for it.

    `watch(chain, slice, first, far)` sees whole slices, with the number of the first transition: there may be more
    chains than a process can follow step by step.
    """
    at = [checkpoints.draw_of(number) for number in range(chains.num_chains)]

    def moved(number: int, first: int, part: Slice) -> None:
        at[number] = first + len(part)
        watch(number, part, first, Far(sum(at) // len(at), checkpoints.total))

    found = chains.on_cluster(
        dealer, potential, chains.seeds(), moved, ended, lambda number: checkpoints.keeper(number, [number]), tell
    )
    return together(found)


def own(team: Team, chains: int) -> range:
    """The chains of this process."""
    return range(chains * team.rank // team.size, chains * (team.rank + 1) // team.size)


def gathered(found: list[MCMCResult], team: Team) -> list[MCMCResult]:
    """The results of all processes in their order, on each of them."""
    if team.size == 1:
        return found
    collected: list[Any] = [None] * team.size
    arrays.distributed.all_gather_object(collected, found)
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
