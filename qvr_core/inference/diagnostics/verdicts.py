"""Whether draws are to be trusted, as sentences about plain arrays.

`MCMCResult.warnings` and `qvr check-fit` say the same of the same draws, since both read this.

Betancourt (2016) for E-BFMI; Vehtari et al. (2021) for R-hat and effective sample sizes; Vehtari et al. (2024) for
Pareto k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qvr_core.inference.diagnostics.by_site import joined
from qvr_core.inference.diagnostics.convergence import Mixing, e_bfmi, mixing
from qvr_core.inference.diagnostics.labels import exchanged
from qvr_core.inference.diagnostics.pareto import tail_size
from qvr_core.inference.diagnostics.thresholds import (
    COARSE,
    EFFECTIVE_PER_CHAIN,
    FEWEST_DRAWS,
    LOW_ENERGY,
    MOST_STILL,
    PARETO_K,
    R_HAT,
    fewest_for_pareto,
    good_k,
    r_hat_limit,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check: `value` is its figure, `worst` the number that is worst off, `others` how many more are bad."""

    name: str
    passed: bool
    text: str
    value: float | None = None
    worst: str | None = None
    others: int = 0
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Mixed:
    """What is to be said of how chains mix.  `draws` a chain would be enough, where they are too few; `apart` are the
    numbers of which chains disagree; `exchanged` is a site whose elements change places, which no more draws mend.

    Where chains disagree, effective sizes and Monte Carlo errors are those of no posterior: nothing is said of them.
    """

    verdicts: tuple[Verdict, ...]
    draws: int | None = None
    apart: tuple[str, ...] = ()
    exchanged: str | None = None


def mixing_of(names: Sequence[str], draws: Sequence[Array], known: Callable[[], Mixing] | None = None) -> Mixed:
    """R-hat, effective sample sizes and Monte Carlo errors, of the number that is worst off.

    `draws`, each (chains, draws, numbers), belong in a row to the `names`: those of a site stand in one.  What does not
    move is passed over.  `known` has their mixing where others ask for it, too.
    """
    chains, length = draws[0].shape[:2]
    if length < FEWEST_DRAWS:
        return Mixed((Verdict("mixing", False, f"{length} draws a chain are too few to tell"),))
    found = known() if known else joined([mixing(part) for part in draws])
    limit = _limits(found.inefficiency, chains, length)
    r_hat = np.nan_to_num(found.r_hat, nan=1.0, posinf=math.inf)
    sizes = {"bulk": np.nan_to_num(found.bulk, nan=math.inf), "tail": np.nan_to_num(found.tail, nan=math.inf)}
    moving = np.concatenate([part.max((0, 1)) > part.min((0, 1)) for part in draws])
    sizes = {kind: np.where(moving, size, math.inf) for kind, size in sizes.items()}
    spread = math.sqrt(chains * length / (chains * length - 1))
    with np.errstate(all="ignore"):
        ratio = np.where(moving, np.nan_to_num(spread / np.sqrt(found.mean), nan=0.0), 0.0)
    wanted = EFFECTIVE_PER_CHAIN * chains
    apart = tuple(names[at] for at in np.flatnonzero(r_hat > limit).tolist()) if chains > 1 else ()
    needs = [length * wanted / max(float(size.min()), 1.0) for size in sizes.values() if size.min() < wanted]
    needs += [length * (min(float(ratio.max()), 1.0) / COARSE) ** 2] if ratio.max() > COARSE else []
    told = [*_still(draws), _r_hat(names, r_hat, limit, chains)]
    told += [_effective(names, kind, size, wanted, chains * length) for kind, size in sizes.items()]
    worst = int(ratio.argmax())
    text = f"largest {ratio[worst]:.1%} of the sd, of {names[worst]}"
    told.append(Verdict("MCSE", bool(ratio[worst] <= COARSE), text, float(ratio[worst]), names[worst], limit=COARSE))
    enough = max((math.ceil(need / 100) * 100 for need in needs), default=None)

    def mixes(some: Array) -> bool:
        again = mixing(some)
        within = np.nan_to_num(again.r_hat, nan=1.0) <= _limits(again.inefficiency, chains, length)
        # a tenth of what is wanted: order alone is asked about here
        return bool(within.all() and (np.nan_to_num(again.bulk, nan=math.inf) >= wanted / 10).all())

    swapped = exchanged(names, draws, apart, mixes)
    if apart:
        told = [one for one in told if one.passed or not (one.name.endswith("ESS") or one.name == "MCSE")]
    return Mixed(tuple(told), enough, apart, swapped)


def r_hat_is_large(shape: Sequence[int], r_hat: Array, inefficiency: Array, numbers: int) -> NDArray[np.bool_]:
    """Of some of so many numbers, drawn by `shape` (chains, draws): whether their R-hat is more than chains that have
    mixed would show."""
    return np.nan_to_num(r_hat, nan=1.0) > _limits(inefficiency, shape[0], shape[1], numbers)


def energy_of(energy: Array) -> Verdict | None:
    """E-BFMI of the energies (chains, draws); None of too few draws."""
    if energy.shape[1] < FEWEST_DRAWS:
        return None
    with np.errstate(all="ignore"):
        each = np.nan_to_num(e_bfmi(energy), nan=math.inf)
    least = float(each.min())
    text = f"least {least:.2f}, of chain {int(each.argmin())}"
    return Verdict("E-BFMI", least >= LOW_ENERGY, text, least, limit=LOW_ENERGY)


def pareto_of(names: Sequence[str], k: Array, draws: int) -> Verdict:
    """Pareto k of leaving each observation out, from so many draws."""
    good, largest = good_k(draws), int(np.nan_to_num(k, nan=-math.inf).argmax())
    if len(k) == 1:
        text = f"{names[0]} is one joint observation: leaving it out leaves no data, so it does not apply"
        return Verdict("Pareto k", True, text)
    bad = np.argsort(-k, kind="stable")
    bad = bad[k[bad] > good]
    if not len(bad):
        text = f"all {len(k):,} observations are at most {good:.2f}, the largest {k[largest]:.2f}"
        return Verdict("Pareto k", True, text, float(k[largest]), limit=good)
    shown = ", ".join(f"{names[at]} ({k[at]:.2f})" for at in bad[:3]) + (", …" if len(bad) > 3 else "")
    what = f"what {draws:,} draws allow, {good:.2f}" if few_for_pareto(k, draws) else f"{good:.2f}"
    text = f"{len(bad):,} of {len(k):,} observations are above {what}: {shown}"
    return Verdict("Pareto k", False, text, float(k[largest]), names[largest], len(bad) - 1, good)


def few_for_pareto(k: Array, draws: int) -> bool:
    """Whether large values are those of too few draws: more would make them good, or tell that they are not.

    The standard error of a k is some (1 + k) / √T where T draws are the tail.
    """
    largest = float(np.nan_to_num(k, nan=-math.inf).max())
    if draws >= fewest_for_pareto() or not math.isfinite(largest):
        return largest <= PARETO_K
    return largest - 2 * (1 + largest) / math.sqrt(max(tail_size(draws), 1)) <= PARETO_K


def _limits(inefficiency: Array, chains: int, length: int, numbers: int | None = None) -> Array:
    """The R-hat that each number may have."""
    count = len(inefficiency) if numbers is None else numbers
    halves, half = 2 * chains, length // 2
    each = np.nan_to_num(inefficiency, nan=1.0, posinf=1.0)
    return np.array([r_hat_limit(halves, half, one, count) for one in each.tolist()])


def _r_hat(names: Sequence[str], r_hat: Array, limit: Array, chains: int) -> Verdict:
    if chains < 2:
        return Verdict("R-hat", False, "one chain cannot disagree with another")
    bad = int((r_hat > limit).sum())
    # the worst is the one that is furthest above what its own Monte Carlo error explains
    worst = int((np.where(r_hat > limit, r_hat, 0.0) if bad else r_hat).argmax())
    text = f"largest {r_hat[worst]:.3f}, of {names[worst]}"
    if bad:
        text += f"; {bad:,} above {limit[worst]:.3g}"
    elif r_hat[worst] > R_HAT:
        text += f"; chains that have mixed may show {limit[worst]:.3f}"
    return Verdict("R-hat", not bad, text, float(r_hat[worst]), names[worst], max(bad - 1, 0), float(limit[worst]))


def _effective(names: Sequence[str], kind: str, size: Array, wanted: int, every: int) -> Verdict:
    worst, few = int(size.argmin()), int((size < wanted).sum())
    if math.isinf(size[worst]):
        return Verdict(f"{kind} ESS", True, "all are constant")
    text = f"least {size[worst]:,.0f} of {every:,}, of {names[worst]}" + (f"; {few:,} below {wanted}" if few else "")
    if every < wanted:
        text += ", which so few draws cannot reach"
    others = max(few - 1, 0)
    return Verdict(f"{kind} ESS", not few, text, float(size[worst]), names[worst], others, float(wanted))


def _still(draws: Sequence[Array]) -> list[Verdict]:
    """Of the chains that stay where they are."""
    still = np.logical_and.reduce([(part[:, 1:] == part[:, :-1]).all(2) for part in draws])
    stuck = np.flatnonzero(still.mean(1) > MOST_STILL)
    if not len(stuck) or not any(part.shape[2] for part in draws):
        return []
    worst = int(still.sum(1).argmax())
    count = f"{int(still[worst].sum()):,} of {still.shape[1]:,} transitions"
    text = f"chain {', '.join(map(str, stuck))} stands still: {count} moved nothing"
    return [Verdict("chains", False, text, float(still.mean(1).max()), limit=MOST_STILL)]
