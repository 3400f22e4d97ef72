"""Whether the draws of a fit are to be trusted, one check at a time, each with what to do and where in the program.

Betancourt (2016) for E-BFMI; Vehtari et al. (2021) for R-hat and effective sample sizes; Yao et al. (2018) for the
Pareto k of a guide.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.analysis import Snapshot
from qvr_core.inference.mcmc.centred_sites import advice, hard_site
from qvr_core.inference.mcmc.warnings import DIAGNOSED, SHORTEST, statistic
from qvr_core.runs.figures.loo import Loo, called, good_k, loo_of
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.prepare.runnable import chosen
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Check, Finished, Job, TextRange
from qvr_core.runs.record.ranges import utf16
from qvr_core.runs.record.store import RunDirectory
from qvr_core.semantics.file.site_origins import site_origins
from qvr_core.semantics.types.model import Program, SampleModel
from qvr_core.semantics.types.walk import sites
from qvr_core.syntax.source import split_lines

LOW_ENERGY = 0.3
LARGE_R_HAT = 1.01
PER_CHAIN = 100
"""Effective draws that each chain should give."""
COARSE = 0.1
"""Monte Carlo standard errors above this part of the posterior's sd are told."""
HIGHEST_ACCEPT = 0.99
MOST_STILL = 0.5
"""The part of a chain's transitions that may leave it where it is."""
MOST_SCORED = 2_000
"""Observed elements whose Pareto k is looked at by the way, at the end of a run."""


@dataclass(frozen=True)
class Source:
    """The program that was fitted, and its text."""

    program: Program | None
    snapshot: Snapshot
    text: str

    def placed(self, check: Check) -> Check:
        """A check with the place of its step."""
        origin = site_origins(self.program).get(check.site or "") if self.program is not None else None
        if origin is None or check.passed:
            return check
        place = TextRange.model_validate(utf16(self.snapshot.range(origin), split_lines(self.text)[0]))
        return check.model_copy(update={"range": place, "foreign": self.snapshot.foreign(origin)})

    @property
    def hard(self) -> tuple[str | None, str | None]:
        """The site that makes chains hard, and how to write it."""
        found = hard_site(self.program) if self.program is not None else None
        return (None, None) if found is None or self.program is None else (found[0].name, advice(self.program))


def source_of(prepared: Prepared) -> Source:
    """The program of a run that is at work."""
    return Source(prepared.program, prepared.snapshot, prepared.job.text)


def checks_of(run: RunDirectory, job: Job) -> tuple[Check, ...]:
    """The checks of a run that is over.  Raises `DamagedFile`, and OSError where it left nothing to check."""
    import xarray

    ending = run.ending()
    told = tuple(one for one in ending.checks if one.name == "loss") if isinstance(ending, Finished) else ()
    if told and not run.posterior.exists():
        return told

    run.check_posterior()
    snapshot = analysed(job)
    program: Program | None = None
    with contextlib.suppress(Refused):
        program = chosen(job, snapshot.model)
    with xarray.open_datatree(run.posterior, engine="h5netcdf") as tree:
        return (*fit_checks(tree, job.config, Source(program, snapshot, job.text)), *told)


def fit_checks(tree: Any, config: RunConfig, source: Source, *, hurry: bool = False) -> tuple[Check, ...]:
    """All checks that a stored fit (an open xarray.DataTree) allows; in a `hurry` those of many elements are left."""
    if config.algorithm == "nuts":
        found = [*_trajectories(tree, config, source), *_mixing(tree, config)]
    else:
        found = list(_guide(tree, config))
    scored = sum(int(np.prod(v.shape[2:])) for v in tree["log_likelihood"].data_vars.values()) if _has(tree) else 0
    if scored and not (hurry and scored > MOST_SCORED):
        found += _pareto(tree, source)
    return tuple(map(source.placed, found))


def _has(tree: Any) -> bool:
    return "log_likelihood" in tree.children


def _trajectories(tree: Any, config: RunConfig, source: Source) -> Iterator[Check]:
    """Divergences, tree depth, E-BFMI."""
    stats = tree["sample_stats"]
    site, how = source.hard
    diverging = stats["diverging"].to_numpy()
    count, every = int(diverging.sum()), diverging.size
    remedy = f"raise target_accept (it is {config.target_accept:g})" + (f", or {how}" if how else "")
    text = f"{count:,} of {every:,} transitions diverged" if count else f"none in {every:,} transitions"
    higher = {"target_accept": min(HIGHEST_ACCEPT, round((1 + config.target_accept) / 2, 3))}
    yield _check("divergences", not count, text, count / every, remedy, site, higher)
    depth = stats["tree_depth"].to_numpy()
    most = config.max_tree_depth
    full = int((depth >= most).sum())
    text = (
        f"{full:,} of {every:,} trees were cut off at {most}"
        if full
        else f"the deepest tree has {depth.max()} of {most}"
    )
    remedy = f"raise max_tree_depth (it is {most}); better, bring all latents to one scale: standardise predictors" + (
        f", {how}" if how else ""
    )
    yield _check("tree depth", not full, text, full / every, remedy, site, {"max_tree_depth": most + 2})
    if "energy" not in stats.data_vars or depth.shape[1] < SHORTEST:
        return
    energy = stats["energy"].to_numpy()
    each = np.square(np.diff(energy, axis=1)).mean(1) / energy.var(1)
    least = float(each.min())
    remedy = "the tails are heavier than the chains can follow: take more warm-up" + (f", or {how}" if how else "")
    text = f"least {least:.2f}, of chain {int(each.argmin())}"
    yield _check("E-BFMI", least >= LOW_ENERGY, text, least, remedy, site, {"warmup": 2 * config.warmup})


def _mixing(tree: Any, config: RunConfig) -> Iterator[Check]:
    """R-hat, effective sample sizes, Monte Carlo errors, of the number that is worst off."""
    names, draws = _numbers(tree["posterior"])
    if draws.shape[1] < SHORTEST:
        yield _check(
            "mixing", False, f"{draws.shape[1]} draws a chain are too few to tell", None, "take more draws", None
        )
        return
    chains, length = draws.shape[:2]
    yield from _still(draws, config)
    wanted = PER_CHAIN * chains
    sizes = {kind: np.nan_to_num(statistic("ess", kind, draws), nan=math.inf) for kind in ("bulk", "tail")}
    with np.errstate(all="ignore"):
        ratio = np.nan_to_num(statistic("mcse", "mean", draws) / draws.std((0, 1)), nan=0.0)
        r_hat = np.nan_to_num(statistic("rhat", "rank", draws), nan=1.0, posinf=math.inf)
    needs = [length * wanted / max(float(size.min()), 1.0) for size in sizes.values() if size.min() < wanted]
    needs += [length * (min(float(ratio.max()), 1.0) / COARSE) ** 2] if ratio.max() > COARSE else []
    samples = max((math.ceil(need / 100) * 100 for need in needs), default=config.samples)
    more, change = f"take more draws (samples = {samples})", {"samples": samples}
    if chains > 1 and r_hat.max() > LARGE_R_HAT:
        # one run is to mend all of it
        change = {"warmup": 2 * config.warmup, "samples": max(2 * config.samples, samples)}
        more = "take more warm-up and more draws (warmup = {warmup}, samples = {samples})".format(**change)
    if chains > 1:
        worst, bad = int(r_hat.argmax()), int((r_hat > LARGE_R_HAT).sum())
        text = f"largest {r_hat[worst]:.3f}, of {names[worst]}" + (f"; {bad:,} above {LARGE_R_HAT}" if bad else "")
        advice = f"{more}; if it stays, {_of_modes(names[worst], r_hat, names)}"
        yield _check("R-hat", not bad, text, float(r_hat[worst]), advice, names[worst], change)
    else:
        text = "one chain cannot disagree with another"
        yield _check("R-hat", False, text, None, "take chains = 4", None, {"chains": 4})
    for kind, size in sizes.items():
        worst, few = int(size.argmin()), int((size < wanted).sum())
        least = (
            "all are constant"
            if math.isinf(size[worst])
            else f"least {size[worst]:,.0f} of {chains * length:,}, of {names[worst]}"
        )
        text = least + (f"; {few:,} below {wanted}" if few else "")
        yield _check(f"{kind} ESS", not few, text, float(size[worst]), more, names[worst], change)
    worst = int(ratio.argmax())
    text = f"largest {ratio[worst]:.1%} of the sd, of {names[worst]}"
    yield _check("MCSE", bool(ratio[worst] <= COARSE), text, float(ratio[worst]), more, names[worst], change)


def _of_modes(worst: str, r_hat: NDArray[np.float64], names: list[str]) -> str:
    """What may be behind chains that disagree: several numbers of one site may have swapped their parts."""
    site = worst.partition("[")[0]
    alike = sum(name.partition("[")[0] == site and r_hat[at] > LARGE_R_HAT for at, name in enumerate(names))
    if "[" in worst and alike > 1:
        return "the posterior may have several modes: look for labels that can be swapped"
    return f"chains see different parts of the posterior: look at the prior of `{site}`, and at what it trades off with"


def _still(draws: NDArray[np.float64], config: RunConfig) -> Iterator[Check]:
    """Chains that stay where they are: draws (chains, draws, numbers)."""
    still = (draws[:, 1:] == draws[:, :-1]).all(2)
    share, worst = still.mean(1), int(still.sum(1).argmax())
    stuck = [str(chain) for chain in np.flatnonzero(share > MOST_STILL)]
    if not stuck or not draws.shape[2]:
        return
    count = f"{int(still[worst].sum()):,} of {still.shape[1]:,} transitions"
    text = f"chain {', '.join(stuck)} stands still: {count} moved nothing"
    remedy = (
        f"take more warm-up (warmup = {2 * config.warmup}) or another seed; if it stays, the density has a cliff or an "
        "infinite peak: look at priors that reach 0, and at scales that the data allow to be 0"
    )
    yield _check("chains", False, text, float(share.max()), remedy, None, {"warmup": 2 * config.warmup})


def _guide(tree: Any, config: RunConfig) -> Iterator[Check]:
    """How well the guide covers the posterior, by its importance weights."""
    if "sample_stats" not in tree.children or "log_weight" not in tree["sample_stats"].data_vars:
        return
    weights = tree["sample_stats"]["log_weight"].to_numpy().astype(np.float64).ravel()
    k = _shape(weights)
    limit = good_k(len(weights))
    other = "" if config.guide == "multivariate_normal" else ", or guide = multivariate_normal"
    remedy = f"the posterior is wider than the guide, or of another shape: take more steps{other}, or sample by NUTS"
    text = f"Pareto k of its importance weights is {k:.2f} (below {limit:.2f} is good)"
    settings = {"steps": 3 * config.steps} if not other else {"guide": "multivariate_normal"}
    yield _check("guide", k <= limit, text, k, remedy, None, settings)


def _shape(weights: NDArray[np.float64]) -> float:
    """Pareto k of log weights: −∞ where all are the same, ∞ where one is not finite, or too few differ for a tail."""
    from arviz_stats.base.array import array_stats

    if not np.isfinite(weights).all():
        return math.inf
    try:
        # it takes log likelihoods, which are divided by
        smoothed: Any = array_stats.psislw(-weights)
    except ValueError:
        return -math.inf if np.ptp(weights) == 0 else math.inf
    return float(np.asarray(smoothed[1]))


def _pareto(tree: Any, source: Source) -> list[Check]:
    """Whether leave-one-out cross-validation can be trusted."""
    found = loo_of(tree)
    if found is None or not len(found.k):
        return []
    bad, largest = found.bad, int(found.k.argmax())
    if not len(bad):
        text = f"all {len(found.k):,} observations are at most {found.good:.2f}, the largest {found.k[largest]:.2f}"
        return [_check("Pareto k", True, text, float(found.k[largest]), None, None)]
    shown = ", ".join(f"{found.names[at]} ({found.k[at]:.2f})" for at in bad[:3]) + (", …" if len(bad) > 3 else "")
    text = f"{len(bad):,} of {len(found.k):,} observations are above {found.good:.2f}: {shown}"
    why = _of_rows(tree, found, source)
    remedy = (
        f"each moves the posterior so much that its leave-one-out figure is rough: {why}; compare programs by their "
        "differences with care"
    )
    return [_check("Pareto k", False, text, float(found.k[largest]), remedy, found.names[largest])]


def _of_rows(tree: Any, found: Loo, source: Source) -> str:
    """Why a row moves the posterior: it has a latent of its own, such as a value that is filled in, or it lies far."""
    filled = {
        str(label)
        for value in tree["posterior"].data_vars.values()
        for dim in value.dims
        if str(dim).endswith("_missing")
        for label in np.asarray(value.coords[dim]).tolist()
    }
    bad = [found.names[at].partition("[")[2].rstrip("]") for at in found.bad]
    if filled and all(label in filled for label in bad):
        return "the values that are filled in there are told by little else, so without the row they are the prior's"
    own = _of_its_own(tree, found.names[int(found.bad[0])].partition("[")[0], source)
    if own is not None:
        return (
            f"each observation has an element of `{own}` of its own, which without it is the prior's, so a family with "
            "heavier tails would not help: sum it out where a family does (StudentT, NegativeBinomial, BetaBinomial), "
            "or fit again without these rows"
        )
    return "look at these rows, and try a family with heavier tails (StudentT, NegativeBinomial)"


def _of_its_own(tree: Any, observed: str, source: Source) -> str | None:
    """A latent that has an element for each of an observed step."""
    scored = tree["log_likelihood"].data_vars
    if observed not in scored or source.program is None:
        return None
    axes = set(scored[observed].dims[2:])
    latents = {site.name for site in sites(source.program.steps, SampleModel)}
    posterior = tree["posterior"].data_vars
    return next((str(n) for n, v in posterior.items() if n in latents and axes and axes <= set(v.dims[2:])), None)


def _check(
    name: str,
    passed: bool,
    text: str,
    value: float | None,
    remedy: str | None,
    worst: str | None,
    settings: dict[str, Any] | None = None,
) -> Check:
    site = None if worst is None else worst.partition("[")[0]
    number = value if value is not None and math.isfinite(value) else None
    return Check(
        name=name, passed=bool(passed), text=text, value=number,
        site=None if passed else site, advice=None if passed else remedy, settings={} if passed else settings or {},
    )  # fmt: skip


def _numbers(posterior: Any) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the numbers of a posterior, and their draws (chains, draws, numbers); of many evenly spread ones."""
    total = sum(value.size for value in posterior.data_vars.values())
    stride = math.ceil(total / DIAGNOSED)
    names: list[str] = []
    draws: list[NDArray[np.float64]] = []
    for name, value in posterior.data_vars.items():
        flat = value.to_numpy().astype(np.float64)
        draws.append(flat.reshape(*flat.shape[:2], -1)[:, :, ::stride])
        names += called(str(name), value)[::stride]
    together = np.concatenate(draws, 2)
    there = np.flatnonzero(~np.isnan(together).all((0, 1)))  # an element that does not exist has no draws
    return [names[at] for at in there.tolist()], together[:, :, there]
