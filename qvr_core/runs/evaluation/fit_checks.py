"""Whether the draws of a fit are to be trusted, one check at a time, each with what to do and where in the program.

Yao et al. (2018) for the Pareto k of a guide; the others are `inference.diagnostics`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from qvr_core.analysis import Snapshot
from qvr_core.inference.diagnostics.by_site import MixingBySite, joined
from qvr_core.inference.diagnostics.labels import order_advice
from qvr_core.inference.diagnostics.pareto import effective, pareto_k
from qvr_core.inference.diagnostics.thresholds import EFFECTIVE_PER_CHAIN, good_k
from qvr_core.inference.diagnostics.verdicts import Verdict, energy_of, few_for_pareto, mixing_of, pareto_of
from qvr_core.inference.labelled_datasets import Dataset, Tree, arrays_of
from qvr_core.inference.mcmc.centred_sites import advice, hard_site
from qvr_core.inference.mcmc.warnings import DIAGNOSED
from qvr_core.runs.evaluation.loo import Loo, called, loo_of
from qvr_core.runs.evaluation.refitted import asked_by, with_refits
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.prepare.runnable import chosen
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.netcdf import read_netcdf
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Check, Finished, Job, TextRange
from qvr_core.runs.record.ranges import utf16
from qvr_core.runs.record.store import RunDirectory
from qvr_core.semantics.file.site_origins import site_origins
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel, ObserveModel, SampleModel
from qvr_core.semantics.types.spaces import Constrained, Space
from qvr_core.semantics.types.walk import sites
from qvr_core.syntax.source import split_lines

HIGHEST_ACCEPT = 0.99
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
    ending = run.ending()
    told = tuple(one for one in ending.checks if one.name == "loss") if isinstance(ending, Finished) else ()
    if told and not run.posterior.exists():
        return told

    run.check_posterior()
    snapshot = analysed(job)
    program: Program | None = None
    with contextlib.suppress(Refused):
        program = chosen(job, snapshot.model)
    tree = read_netcdf(run.posterior)
    asked = asked_by(run)
    found = fit_checks(
        tree, job.config, Source(program, snapshot, job.text), refitted=lambda loo: with_refits(loo, run, asked)
    )
    return (*found, *told)


def fit_checks(
    tree: Tree,
    config: RunConfig,
    source: Source,
    *,
    hurry: bool = False,
    refitted: Callable[[Loo], Loo] = lambda loo: loo,
    mixed: MixingBySite | None = None,
) -> tuple[Check, ...]:
    """All checks that a stored fit (a `Tree`, or xarray's) allows; in a `hurry` those of many elements are left.
    `refitted` puts the figures of refits into LOO; `mixed` is what others ask about its posterior, too."""
    if config.algorithm == "nuts":
        found = [*_trajectories(tree, config, source), *_mixing(tree, config, source, mixed)]
    else:
        found = list(_guide(tree, config))
    scored = sum(int(np.prod(v.shape[2:])) for v in tree["log_likelihood"].data_vars.values()) if _has(tree) else 0
    if scored and not (hurry and scored > MOST_SCORED):
        sound = config.algorithm == "nuts" or all(one.passed for one in found)
        found += _pareto(tree, config, source, refitted, sound)
    return tuple(map(source.placed, found))


def _has(tree: Tree) -> bool:
    return "log_likelihood" in tree.children


def _trajectories(tree: Tree, config: RunConfig, source: Source) -> Iterator[Check]:
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
    energy = energy_of(stats["energy"].to_numpy()) if "energy" in stats.data_vars else None
    if energy is not None:
        remedy = "the tails are heavier than the chains can follow: take more warm-up" + (f", or {how}" if how else "")
        yield _check(energy.name, energy.passed, energy.text, energy.value, remedy, site, {"warmup": 2 * config.warmup})


def _mixing(tree: Tree, config: RunConfig, source: Source, mixed: MixingBySite | None) -> Iterator[Check]:
    """R-hat, effective sample sizes, Monte Carlo errors, of the number that is worst off."""
    names, draws, places = _numbers(tree["posterior"])
    if not names:
        return
    known = mixed or MixingBySite(arrays_of(tree["posterior"]))
    found = mixing_of(names, draws, lambda: joined([known.of(site, some) for site, some in places.items()]))
    samples = max(found.draws or 0, config.samples)
    more, change = f"take more draws (samples = {samples})", {"samples": samples}
    if found.apart:
        # one run is to mend all of it
        change = {"warmup": 2 * config.warmup, "samples": max(2 * config.samples, samples)}
        more = "take more warm-up and more draws (warmup = {warmup}, samples = {samples})".format(**change)
    ordered = order_advice(found.exchanged, names) if _without_order(found.exchanged, tree, source) else None
    for one in found.verdicts:
        match one.name:
            case "R-hat" | "bulk ESS" | "tail ESS" | "MCSE" if ordered is not None:
                yield _check_of(one, ordered)
            case "mixing":
                yield _check_of(one, "take more draws")
            case "chains":
                yield _check_of(one, _UNSTUCK.format(2 * config.warmup), {"warmup": 2 * config.warmup})
            case "R-hat" if len(draws[0]) < 2:
                yield _check_of(one, "take chains = 4", {"chains": 4})
            case "R-hat":
                yield _check_of(one, f"{more}; if it stays, {_of_modes(one.worst or '', found.apart)}", change)
            case _:
                yield _check_of(one, more, change)


_UNSTUCK = (
    "take more warm-up (warmup = {}) or another seed; if it stays, the density has a cliff or an infinite peak: look "
    "at priors that reach 0, and at scales that the data allow to be 0"
)


def _without_order(exchanged: str | None, tree: Tree, source: Source) -> TypeGuard[str]:
    """Whether the elements of what seems to change places can be given an order: they are drawn, and have none by that
    of another draw with as many elements (the means of components whose scales seem to change places)."""
    if exchanged is None or source.program is None:
        return exchanged is not None
    lets = {name for step in source.program.steps if isinstance(step, LetModel) for name in step.names}
    posterior = tree["posterior"].data_vars
    drawn = (site for site in sites(source.program.steps, SampleModel) if site.name in posterior)
    own = (site.name for site in drawn if site.element is not None and _ordered(site.element.space))
    return exchanged not in lets and posterior[exchanged].shape[-1] not in {posterior[name].shape[-1] for name in own}


def _ordered(space: Space) -> bool:
    return isinstance(space, Constrained) and space.kind == "Ordered"


def _of_modes(worst: str, apart: Sequence[str]) -> str:
    """What may be behind chains that disagree: several numbers of one site may have swapped their parts."""
    site = worst.partition("[")[0]
    if "[" in worst and sum(name.partition("[")[0] == site for name in apart) > 1:
        return "the posterior may have several modes: look for labels that can be swapped"
    return f"chains see different parts of the posterior: look at the prior of `{site}`, and at what it trades off with"


_WIDER = {
    **dict.fromkeys(("multivariate_normal", "low_rank", "mixture", "pathfinder", "dais", "iaf"), "spline"),
    "spline": "",
}
"""The guide that may have a shape which this one cannot; of others the Normal with correlations."""


def _guide(tree: Tree, config: RunConfig) -> Iterator[Check]:
    """How well the guide covers the posterior, by its importance weights."""
    if "sample_stats" not in tree.children or "log_weight" not in tree["sample_stats"].data_vars:
        return
    weights = tree["sample_stats"]["log_weight"].to_numpy().astype(np.float64).ravel()
    k = pareto_k(weights)
    limit = good_k(len(weights))
    wider = _WIDER.get(config.guide, "multivariate_normal")
    other = f", or guide = {wider}" if wider else ""
    remedy = f"the posterior is wider than the guide, or of another shape: take more steps{other}, or sample by NUTS"
    text = f"Pareto k of its importance weights is {k:.2f} (below {limit:.2f} is good)"
    settings = {"guide": wider} if wider else {"steps": 3 * config.steps}
    # k looks at the largest weights alone: of a guide that lies almost wholly beside the posterior they may look well
    count = effective(weights)
    few = count < EFFECTIVE_PER_CHAIN <= len(weights)
    if few:
        text += f", and they count as {count:.0f} of {len(weights):,} draws (at least {EFFECTIVE_PER_CHAIN} are wanted)"
    if few and k <= limit:
        remedy = f"much of the guide lies where the posterior has nothing: take more steps{other}, or sample by NUTS"
    yield _check("guide", k <= limit and not few, text, k, remedy, None, settings)


def _pareto(tree: Tree, config: RunConfig, source: Source, refitted: Callable[[Loo], Loo], sound: bool) -> list[Check]:
    """Whether leave-one-out cross-validation can be trusted; not where the guide is not `sound`."""
    found = loo_of(tree)
    if found is None or not len(found.k):
        return []
    found = refitted(found)
    one = pareto_of(found.names, found.k, found.draws)
    if found.exact:
        one = replace(one, text=f"{one.text}; {len(found.exact):,} refitted without them")
    if one.passed:
        return [_check_of(one, None)]
    if not sound:
        return [_check_of(one, "the guide is not right, so this says nothing of the program: mend the fit first")]
    if few_for_pareto(found.k, found.draws):
        samples = math.ceil(found.enough / tree["posterior"].sizes.get("chain", 1) / 10) * 10
        settings = {"samples": samples} if config.algorithm == "nuts" else {}
        remedy = f"{found.draws:,} draws are too few to tell: take {found.enough:,} or more"
        return [_check_of(one, f"{remedy} (samples = {samples})" if settings else remedy, settings)]
    why = _of_rows(tree, found, source)
    stand = "the draws stand" if config.algorithm == "nuts" else "where the guide is right the draws stand"
    remedy = (
        f"{stand}, but each moves the posterior so much that its leave-one-out figure is rough: {why}; "
        f"compare programs by their differences with care{_exact(config, source)}"
    )
    return [_check_of(one, remedy)]


def _exact(config: RunConfig, source: Source) -> str:
    """That refits would tell, where they can leave an observation out."""
    if config.algorithm != "nuts" or source.program is None:
        return ""
    steps = (*sites(source.program.steps, ObserveModel), *sites(source.program.steps, MarginalizeModel))
    one_by_one = all(site.chain is None or not site.chain.indices[site.chain.at].lag for site in steps)
    return "; `qvr loo RUN --exact` fits again without each of them" if one_by_one else ""


def _of_rows(tree: Tree, found: Loo, source: Source) -> str:
    """Why a row moves the posterior: it has a latent of its own, such as a value that is filled in, or it lies far."""
    filled = {
        str(label)
        for value in tree["posterior"].data_vars.values()
        for dim in value.dims
        if str(dim).endswith("_missing")
        for label in np.asarray(value.coords[dim]).tolist()
    }
    bad = [found.names[at].partition("[")[2].rstrip("]") for at in map(int, found.bad)]
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


def _of_its_own(tree: Tree, observed: str, source: Source) -> str | None:
    """A latent that has an element for each of an observed step."""
    scored = tree["log_likelihood"].data_vars
    if observed not in scored or source.program is None:
        return None
    axes = set(scored[observed].dims[2:])
    latents = {site.name for site in sites(source.program.steps, SampleModel)}
    posterior = tree["posterior"].data_vars
    return next((n for n, v in posterior.items() if n in latents and axes and axes <= set(v.dims[2:])), None)


def _check_of(one: Verdict, remedy: str | None, settings: dict[str, Any] | None = None) -> Check:
    return _check(one.name, one.passed, one.text, one.value, remedy, one.worst, settings)


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


def _numbers(posterior: Dataset) -> tuple[list[str], list[NDArray[Any]], dict[str, NDArray[np.int64]]]:
    """The names of the numbers of a posterior that exist, their draws by site, each (chains, draws, numbers), and their
    places within each site; of many evenly spread ones."""
    total = sum(value.size for value in posterior.data_vars.values())
    stride = math.ceil(total / DIAGNOSED)
    names: list[str] = []
    draws: list[NDArray[Any]] = []
    places: dict[str, NDArray[np.int64]] = {}
    for name, value in posterior.data_vars.items():
        every = value.to_numpy()
        every = every.reshape(*every.shape[:2], -1)[:, :, ::stride]
        there = np.flatnonzero(~np.isnan(every).all((0, 1)))  # an element that does not exist has no draws
        draws.append(every if len(there) == every.shape[2] else every[:, :, there])
        places[name] = there * stride
        labels = called(str(name), value)
        names += [labels[at] for at in places[name].tolist()]
    return names, draws, places
