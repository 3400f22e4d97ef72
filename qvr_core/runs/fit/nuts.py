"""The engine for Markov chains: draws from the posterior, with progress of all chains as they go."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qvr_core import inference
from qvr_core.arrays.engine import TORCH, arrays
from qvr_core.arrays.engine_choice import TorchWanted
from qvr_core.cluster.address import address_of
from qvr_core.data.sentence_pairs import SentencePairs
from qvr_core.inference.axes import axes_of
from qvr_core.inference.inference_data import lacks_prior
from qvr_core.inference.lifting import LiftedModel
from qvr_core.inference.mcmc import MCMCResult
from qvr_core.inference.mcmc import Progress as Transition
from qvr_core.inference.mcmc.collected import progress
from qvr_core.inference.mcmc.draws import Slice
from qvr_core.inference.mcmc.engines import Choice
from qvr_core.inference.mcmc.potential import Potential, potential_of
from qvr_core.inference.pointwise import Given
from qvr_core.runs.evaluation.fit_checks import fit_checks, source_of
from qvr_core.runs.evaluation.posterior_table import HURRIED, chain_table, left_out, mixing_by_site, table
from qvr_core.runs.evaluation.summaries import keep_summary
from qvr_core.runs.fit import chain_checkpoints, chains
from qvr_core.runs.fit.chain_checkpoints import ChainCheckpoints, Saved
from qvr_core.runs.fit.chains import Far
from qvr_core.runs.fit.distributed import Team
from qvr_core.runs.fit.shown_draws import ShownDraws
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.time_left import eta
from qvr_core.runs.fit.waiting_messages import figures_told_if_long, told_if_long
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.netcdf import write_netcdf
from qvr_core.runs.record.protocol import Cancelled, Check, Event, Finished, Message, PosteriorRow, Progress, Started
from qvr_core.runs.record.store import RunDirectory

Emit = Callable[[Event], None]


class Watched:
    """What the chains of this process have done so far, told as it happens; and whether they shall end."""

    def __init__(self, prepared: Prepared, shown: ShownDraws, stop: Stop, emit: Emit) -> None:
        # Loading them takes a second, which a cancelled run may not have: it is over before there are draws to lose.
        self._writers = threading.Thread(target=_load_writers, daemon=True)
        self._writers.start()
        self._config = prepared.job.config
        self._stop = stop
        self._emit = emit
        self._began = time.perf_counter()
        self._before = 0.0
        self._acceptance = 0.0
        self._diverged = 0
        self.shown = shown
        self.done = 0

    def go_on(self, saved: Saved) -> None:
        """Count what was done before the run was broken off."""
        self._before = saved.seconds
        once = {id(kept): kept.columns for kept in saved.chains.values() if kept.columns}
        self._diverged = sum(int(one["diverging"].sum()) for one in once.values())

    def seconds_so_far(self) -> float:
        """Time in the run, what was before it was broken off included."""
        return self._before + time.perf_counter() - self._began

    @property
    def seconds(self) -> float:
        return self.seconds_so_far()

    @property
    def late(self) -> bool:
        limit = self._config.time_limit
        return limit is not None and self.seconds > limit

    def ended(self) -> bool:
        """Whether the run was asked to end, or its time is over."""
        return self._stop.cancelled.is_set() or self.late

    def transition(self, own: Sequence[int], now: Transition, far: Far) -> None:
        """One transition of the chains of these numbers."""
        if not now.warmup:
            self._writers.join()
            self._diverged += int(now.diverging.sum())
        self._moved(now, far, float(now.acceptance.mean()), min(far.done, 10))
        if not now.warmup:
            self.shown.take(own, now)

    def slice(self, number: int, part: Slice, first: int, far: Far) -> None:
        """Transitions of one chain that have come together, from the `first` on."""
        warmup, last = self._config.warmup, first + len(part) - 1
        total = self._config.warmup + self._config.samples
        kept = part.behind(max(warmup - first, 0))
        if last >= warmup:
            self._writers.join()
            self._diverged += int(kept["diverging"].sum())
        recent = part.columns["acceptance"][:, -10:]
        self._moved(progress(last, total, warmup, part, len(part) - 1), far, float(recent.mean()), 2)
        for draw in self.shown.shown_between(max(first, warmup), last + 1):
            self.shown.take([number], progress(draw, total, warmup, part, draw - first))

    def _moved(self, now: Transition, far: Far, acceptance: float, weight: int) -> None:
        """Tell how far the run is; the acceptance of late moves in its mean by 1 / `weight`."""
        self.done = far.done
        self._acceptance += (acceptance - self._acceptance) / max(weight, 1)
        seconds, done = self.seconds, max(far.done, 1)
        self._emit(
            Progress(
                step=far.done,
                steps=far.total,
                seconds=seconds,
                step_time=seconds / done,
                eta=eta(seconds, done, far.total),
                phase="warmup" if now.warmup else "sampling",
                chain=far.place,
                acceptance=self._acceptance,
                divergences=self._diverged,
                tree_depth=int(now.depth.max()),
                step_size=float(now.step_size.mean()),
            )
        )


def _load_writers() -> None:
    importlib.import_module("h5py")


@dataclass(frozen=True, slots=True)
class Asked:
    """The chains of a run before they start."""

    chains: inference.MCMC
    potential: Potential
    given: Given


def fit_nuts(prepared: Prepared, stop: Stop, team: Team, emit: Emit, begun: Started) -> None:
    """Run the chains and emit every event, `begun` first."""
    config, directory = prepared.job.config, RunDirectory.of(prepared.job)
    saved = Saved()
    try:
        if prepared.job.resume:
            saved = chain_checkpoints.read(directory)
        asked = asked_of(prepared, saved)
        choice = chosen_engine(asked, emit)
        own = {id(kept): kept for number, kept in saved.chains.items() if number in chains.own(team, config.chains)}
        at = sum(kept.state.draw for kept in own.values())
        why = "as the chains began" if saved.engine else choice.why
        begun = begun.model_copy(update={"engine": choice.engine, "engine_why": why, "resumed_from": at or None})
    except TorchWanted:
        raise
    except BaseException:
        # whatever ends the run here, it has begun
        emit(begun)
        raise
    emit(begun)
    for note in filter(None, (choice.note, lacks_prior(asked.given))):
        emit(Message(level="info", text=note))
    if config.chains < team.size:
        raise Refused(
            "processes",
            f"there is nothing for {team.size} processes to share: the run has {config.chains} chains",
            fixes=(f"Use at most {config.chains} processes", f"Set chains = {team.size}"),
        )
    address = address_of(config.cluster)
    if address is not None and team.size > 1:
        raise Refused("processes", "chains run on a cluster or in the processes of torchrun: not on both")
    axes = axes_of(prepared.model, asked.given.observations)
    shown = ShownDraws(asked.potential, prepared.model.in_draws, axes, config.warmup, config.samples, emit)
    watched = Watched(prepared, shown, stop, emit)
    if prepared.job.resume:
        go_on(saved, asked, choice, emit)
        watched.go_on(saved)
    kept = ChainCheckpoints(directory, config, choice.engine, saved, stop, watched.seconds_so_far, emit)
    own, ended = (asked.chains, asked.potential), watched.ended
    if address is None:
        found = chains.sample(*own, team, ended=ended, watch=watched.transition, checkpoints=kept)
    else:
        from qvr_core.runs.fit.clusters import on_cluster

        tell = _warning(emit)
        again = (
            f"Go on here: qvr run nuts --resume {prepared.job.run_id} --cluster none",
            "Go on there, or on another one: --cluster tcp://HOST:PORT in its place",
        )
        with on_cluster(address, config.chains, again, tell) as dealer:
            found = chains.on_cluster(*own, dealer, ended=ended, watch=watched.slice, checkpoints=kept, tell=tell)
    if not stop.cancelled.is_set():
        shown.flush()
    result = found and replace(found, given=asked.given)
    cancelled, late = stop.cancelled.is_set(), watched.late
    if result is None:
        if not cancelled:
            emit(Message(level="warning", text="the time limit was reached in the warm-up: there are no draws"))
        emit(Cancelled(step=watched.done, seconds=watched.seconds, checkpoint=kept.path))
        return
    posterior, checks = _stored(prepared, result, emit, hurry=cancelled) if team.leads else ((), ())
    warnings = () if not team.leads else tuple(result.warnings_of(HURRIED) if cancelled else result.warnings)
    for warning in warnings:
        emit(Message(level="warning", text=warning))
    whole, made = len(result.acceptance), chains.draws_of(result)
    partial = f"{whole} of {config.chains} chains, {made} of {config.samples} draws each"
    if (whole, made) == (config.chains, config.samples):
        cancelled = late = False
    elif cancelled or late:
        emit(Message(level="warning", text=f"the posterior is a part of what was asked for: {partial}"))
    if cancelled:
        emit(Cancelled(step=watched.done, seconds=watched.seconds, posterior=posterior, checkpoint=kept.path))
        return
    emit(
        Finished(
            step=watched.done,
            seconds=watched.seconds,
            posterior=posterior,
            divergences=int(result.divergence_counts.sum()),
            acceptance=float(result.acceptance_rates.mean()),
            checks=checks,
            warnings=warnings,
            reason=f"the time limit of {config.time_limit:g} s: {partial}" if late else None,
        )
    )


def _warning(emit: Emit) -> Callable[[str], None]:
    return lambda text: emit(Message(level="warning", text=text))


def chosen_engine(asked: Asked, emit: Emit) -> Choice:
    """What evaluates the density, compiled where that is to be; what takes long is told.  Raises `TorchWanted` where a
    process without torch has no machine code for it."""
    with told_if_long(emit):
        choice = asked.chains.choose(asked.potential)
    if not TORCH and choice.engine != "compiled":
        raise TorchWanted(choice.why)
    return choice


def go_on(saved: Saved, asked: Asked, choice: Choice, emit: Emit) -> None:
    """Say how chains go on.  Raises `Refused` where they cannot."""
    for problem in saved.damaged:
        emit(Message(level="warning", text=f"passed over a checkpoint: {problem}"))
    if not saved.chains:
        text = "there is no whole checkpoint: the chains start again, with the same seeds"
        emit(Message(level="warning" if saved.damaged else "info", text=text))
        return
    if saved.engine != choice.engine:
        why = f": {choice.why}" if choice.why else ""
        raise Refused(
            "other-engine",
            f"the chains of this run began on the engine `{saved.engine}`, which is not to be had now{why}",
            fixes=("Go on where they began", "Start a new run"),
        )
    if any(kept.state.arrays["q"].shape[1] != asked.potential.width for kept in saved.chains.values()):
        raise Refused("other-program", "the chains of this run have another number of latents than its program now")
    now = chain_checkpoints.versions(choice.engine)
    differ = [f"{name} {then} (now {now.get(name)})" for name, then in saved.versions.items() if then != now.get(name)]
    if differ:
        text = f"the chains began with {', '.join(differ)}: the draws from here on may round in another way"
        emit(Message(level="warning", text=text))
    places = sorted(kept.state.draw for kept in saved.chains.values())
    span = f"{places[0]:,}" if places[0] == places[-1] else f"{places[0]:,} to {places[-1]:,}"
    emit(Message(level="info", text=f"the chains go on from draw {span}, warm-up included"))


def asked_of(prepared: Prepared, saved: Saved | None = None) -> Asked:
    """The chains that a run asks for, on the engine that they began on, and what they explore."""
    config, model = prepared.job.config, prepared.model
    x, observations = prepared.move(prepared.train.batch(rows_of(prepared)))
    lift = any(True for _ in model.parameters()) if config.lift is None else config.lift
    lifted: LiftedModel | None = None
    if lift:
        lifted, x, observations = inference.bayesian_lift_parameters(
            model, x, observations, prior_scale=config.prior_scale
        )
        potential = potential_of(lifted, x, observations)
    else:
        potential = potential_of(model, x, observations)
    # where chains start is nothing that those which go on ask for
    going = saved is not None and len(saved.chains) == config.chains
    asked = chains_asked(config)
    asked.engine = "plain" if saved is not None and saved.engine == "plain" else config.engine
    asked.init = "random" if going else config.init
    return Asked(asked, potential, Given(lifted or model, x, observations))


def chains_asked(config: RunConfig) -> inference.MCMC:
    """The chains of a run's settings."""
    kernel = inference.NUTSKernel(
        step_size=config.step_size if config.step_size is not None else 0.1,
        max_tree_depth=config.max_tree_depth,
        target_accept=config.target_accept,
    )
    return inference.MCMC(
        kernel, config.warmup, config.samples, config.chains, seed=config.seed, engine=config.engine, init=config.init
    )


def _stored(
    prepared: Prepared, result: MCMCResult, emit: Emit, *, hurry: bool
) -> tuple[tuple[PosteriorRow, ...], tuple[Check, ...]]:
    """Write the draws; the table of them, and whether they are to be trusted."""
    sites = prepared.model.in_draws
    directory = RunDirectory.of(prepared.job)
    # who waits for an end does not wait for the likelihood of every draw
    with figures_told_if_long(emit):
        groups = (replace(result, given=None) if hurry else result).groups()
    for note in groups.notes:
        if result.given is None or note != lacks_prior(result.given):  # that was said before the chains began
            emit(Message(level="info", text=note))
    tree = groups.tree()
    try:
        write_netcdf(directory.posterior, tree)
        directory.seal_posterior()
    except OSError as error:
        emit(Message(level="warning", text=f"the draws could not be stored: {error}"))
    # what is kept stands behind the latents that it depends on
    whole = result if hurry else replace(result, samples={**result.samples, **result.deterministic})
    mixed = mixing_by_site(whole)
    for problem in keep_summary(directory, tree, mixed) if "posterior" in tree.children else ():
        emit(problem)
    if omitted := left_out(result, sites):
        names = ", ".join(omitted[:6]) + (f" and {len(omitted) - 6} more" if len(omitted) > 6 else "")
        emit(Message(level="info", text=f"not in the table, but among the stored draws: {names}"))
    observations = dict[str, Any]() if result.given is None else result.given.observations
    axes = axes_of(prepared.model, observations)
    if hurry:
        return tuple(chain_table(result, sites, axes, hurry=True, mixed=mixed)), ()
    predictions = {name: value.flatten(0, 1) for name, value in result.predictions.items()}
    rows = (*chain_table(whole, {*sites, *result.deterministic}, axes, mixed=mixed), *table(predictions, axes))
    return rows, fit_checks(tree, prepared.job.config, source_of(prepared), hurry=True, mixed=mixed)


def rows_of(prepared: Prepared) -> arrays.Tensor:
    """The rows that chains see: all of a table, `rows` windows or pairs spread over a text."""
    count = prepared.train.rows
    if prepared.text or isinstance(prepared.train, SentencePairs):
        count = min(count, prepared.job.config.rows)
    return (arrays.arange(count) * (prepared.train.rows / count)).long()
