"""The engine for stochastic variational inference: a generator of events that owns one fit."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from qvr_core import inference
from qvr_core.arrays.engine import TORCH, arrays, nn
from qvr_core.arrays.random_state import seed_device
from qvr_core.data.binding import Whole
from qvr_core.data.records import Records
from qvr_core.data.sentence_pairs import SentencePairs
from qvr_core.inference.compiled_steps import Choice, CompiledSteps
from qvr_core.inference.guides.base import CoordinateGuide, Guide
from qvr_core.inference.nonfinite import first_non_finite
from qvr_core.inference.objectives import ELBO, RenyiBound
from qvr_core.runs.evaluation import checkpoint as checkpoints
from qvr_core.runs.evaluation.accuracy import accuracies
from qvr_core.runs.evaluation.checkpoint import Checkpoint
from qvr_core.runs.evaluation.curvature import approximated
from qvr_core.runs.evaluation.held_out import held_out_figure
from qvr_core.runs.evaluation.loss_endings import Complaint, ended_badly
from qvr_core.runs.fit.convergence import PARTICLES, not_converged
from qvr_core.runs.fit.distributed import Team, cannot_share
from qvr_core.runs.fit.fitted_weights import fitted_weights
from qvr_core.runs.fit.guide_posterior import guide_posterior
from qvr_core.runs.fit.minibatches import StepNoise, row_order
from qvr_core.runs.fit.objectives import objective_of
from qvr_core.runs.fit.optimizers import FUSED, OPTIMIZERS, learning_rate
from qvr_core.runs.fit.prefetch import Ahead
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.time_left import eta
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.guides import own_guide
from qvr_core.runs.prepare.parts_of_rows import Parts, parts_of
from qvr_core.runs.prepare.prepare import Batch, Prepared
from qvr_core.runs.record.config import OF_ALL_DATA
from qvr_core.runs.record.guide_names import GUIDES
from qvr_core.runs.record.protocol import (
    Accuracies,
    Cancelled,
    Check,
    CheckpointWritten,
    Event,
    Finished,
    HeldOut,
    Losses,
    Message,
    PosteriorRow,
    Progress,
)
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runtime.arrows.training import in_training, training_layers
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import NonFinite

RECENT = 50
"""Steps whose mean loss stands for where a fit is: never more than a tenth of those that it has made."""
FEWEST = 50
"""Steps below which nobody expects a fit to have converged."""
_FROM_AFAR = "; from far away the ELBO finds its way sooner (objective = elbo)"


def recent(losses: Sequence[float]) -> float | None:
    """The mean of the last losses; None where none of them is finite."""
    last = [loss for loss in losses[-min(max(len(losses) // 10, 1), RECENT) :] if math.isfinite(loss)]
    return fmean(last) if last else None


class SviFit:
    """One fit: model, guide, optimiser, and where it stands."""

    def __init__(self, prepared: Prepared, stop: Stop, team: Team | None = None) -> None:
        self.prepared = prepared
        self.team = team or Team()
        self.config = prepared.job.config.for_program(statistical=prepared.needs.statistical)
        assert self.config.learning_rate is not None and self.config.schedule is not None
        self.learning_rate, self.schedule = self.config.learning_rate, self.config.schedule
        self.directory = RunDirectory.of(prepared.job)
        self.stop = stop
        parts = parts_of(prepared, self.team.size)
        self.train, self.model = (prepared.train, prepared.model) if parts is None else (parts, parts.model)
        self.guide = self._guide()
        self.parameters: list[nn.Parameter] = [
            p for p in dict.fromkeys((*self.model.parameters(), *self.guide.parameters())) if p.requires_grad
        ]
        if not self.parameters:
            raise Refused("nothing-to-fit", f"`{prepared.program.name}` has no parameters and no latents to fit")
        kind = OPTIMIZERS[self.config.optimizer]
        options: dict[str, Any] = {"fused": True} if self.config.optimizer in FUSED else {}
        self.optimizer = kind(self.parameters, lr=self.learning_rate, **options)  # pyright: ignore[reportCallIssue]
        self.objective = objective_of(self.config, prepared, self.model, self.train)
        self.order = row_order(self.train, self.config)
        if self.order.batch < self.team.size:
            raise cannot_share(prepared, self.order.batch, self.team.size)
        if TORCH:
            # what differentiates the objective itself
            from qvr_core.runs.fit.distributed_loss import Bound, SharedBound

            self.bound = Bound(self.model, self.guide, self.objective)
            self.shared = SharedBound(self.bound) if self.team.size > 1 else None
        making = isinstance(prepared.train, SentencePairs)
        self.ahead = Ahead(self._batch_and_weight, self.config.steps) if making else None
        self.fast = Choice("plain")
        """What makes the steps; decided once a run goes on from where it was."""
        self.noise = StepNoise(self.config.seed)
        """That of compiled steps."""
        self.began_on: str | None = None
        """The engine of the steps before those of this process; `unknown` where an earlier release made them."""
        self.step = 0
        self.skipped = 0
        self.seconds = 0.0
        self.losses: list[float] = []
        self.reported_held_out = 0
        self.times = deque[float](maxlen=500)
        self.cancelled = False
        self.late = False

    def _late(self) -> bool:
        return self.config.time_limit is not None and self.seconds >= self.config.time_limit

    def _guide(self) -> Guide:
        name = own_guide(self.prepared) or self.config.guide
        if name in self.prepared.guides:
            return self._written_guide(self.prepared.guides[name])
        if name == "auto":
            # A program that reads its input draws every latent anew in each row (docs/reference.md#rows-and-plates).
            local = not self.prepared.needs.statistical and any(True for _ in self.model.parameters())
            name = "prior" if local else "normal"
        observed = {need.name for need in self.prepared.needs.observed}
        kind = GUIDES[name]
        if name in OF_ALL_DATA and isinstance(self.train, Records | Parts) and self.prepared.needs.statistical:
            raise Refused("batch", f"guide = {name} needs all rows in each step: leave batch_size out")
        # missing cells are latents of their own, as many as the data say
        given = bool(self.model.imputed) or (name in OF_ALL_DATA and self.prepared.needs.statistical)
        if not given or not issubclass(kind, CoordinateGuide):
            return kind(self.model, observed_names=observed).to(self.prepared.device)
        observations = self._all_data()
        return kind(self.model, observed_names=observed, observations=observations).to(self.prepared.device)

    def _all_data(self) -> Mapping[str, Any]:
        """The observations of a program that reads no input: a batch of it has all."""
        return self.prepared.move(self.prepared.train.batch(arrays.zeros(1, dtype=arrays.int64)))[1]

    def _written_guide(self, program: ProgramModule) -> Guide:
        """The guide of a program `[guide=…]`."""
        if isinstance(self.train, Parts) and program.program.data:
            read = program.program.data[0].name
            message = f"batch_size takes a part of the rows in each step, and the guide `{program.name}` reads `{read}`"
            raise Refused("batch", f"{message} of all", site=read, fixes=("Leave batch_size out",))
        shapes = self._all_data() if self.model.imputed else None
        return inference.ProgramGuide(self.model, program, observations=shapes).to(self.prepared.device)

    # ------------------------------------------------------------ one step

    def batch(self, step: int) -> tuple[Batch, float]:
        """This process' part of a step's batch, and its weight in the mean over all processes."""
        return self._batch_and_weight(step) if self.ahead is None else self.ahead(step)

    def _batch_and_weight(self, step: int) -> tuple[Batch, float]:
        rows = self.order.rows_of(step)
        own = self.team.share(rows)
        weight = len(own) * self.team.size / len(rows)
        return self.prepared.move(self.train.batch(own, self.order.generator(step))), weight

    def differentiate(self, step: int) -> float:
        """Leave the gradient of −ELBO per row of a step's batch in the parameters; that loss, over all processes.

        Its noise is a function of the seed, the step and the process.  A loss that is not finite has no gradient.
        """
        (x, observations), weight = self.batch(step)
        self._seed_noise(step)
        self.cancelled, self.late = self.stop.cancelled.is_set(), self._late()
        bfloat16 = arrays.autocast(
            self.prepared.device.type, arrays.bfloat16, enabled=self.config.precision == "bfloat16"
        )
        if self.shared is not None:
            with bfloat16:
                loss = self.shared(x, observations, weight, (float(self.cancelled), float(self.late)))
            loss.backward()
            # Whether any process was asked to end goes with the gradients, so all of them end at the same step.
            value, cancelled, late = self.shared.means()
            self.cancelled, self.late = cancelled > 0, late > 0
            return value
        with bfloat16:
            loss = self.bound(x, observations)
        value = loss.item()
        if math.isfinite(value):
            loss.backward()
        return value

    def advance(self) -> tuple[float, float]:
        """One optimiser step; loss and gradient norm.  A step whose gradient is not finite changes nothing."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.schedule, self.learning_rate, self.step, self.config.steps)
        if (steps := self._compiled(self.step)) is not None:
            self.cancelled, self.late = self.stop.cancelled.is_set(), self._late()
            made = steps.advance(self.noise.of(self.step, len(steps.noise)))
            self.step += 1
            return made
        self.optimizer.zero_grad(set_to_none=self.shared is None)
        value = self.differentiate(self.step)
        norm = math.nan
        if math.isfinite(value):
            norm = self._clipped()
        if math.isfinite(norm):
            self.optimizer.step()
        self.step += 1
        return value, norm

    def _clipped(self) -> float:
        """The norm of the gradient, which is clipped only where that is asked for."""
        if self.config.clip_gradient is not None:
            return nn.utils.clip_grad_norm_(self.parameters, self.config.clip_gradient).item()
        return nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None]).item()

    def _compiled(self, step: int) -> CompiledSteps | None:
        """The compiled steps, where there are some, on the rows of a step."""
        steps = self.fast.steps
        if steps is not None and not isinstance(self.train, Whole):
            _, observations = self.batch(step)[0]
            steps = steps.with_data(observations)
            self.fast = replace(self.fast, steps=steps)
        return steps

    # ------------------------------------------------------------ checkpoints

    def save(self) -> CheckpointWritten:
        """Write a checkpoint.  Raises OSError on a full disk."""
        tensors = {
            **checkpoints.module_tensors("model", self.model),
            **checkpoints.module_tensors("guide", self.guide),
            **checkpoints.optimizer_tensors(self.optimizer),
            "losses": arrays.tensor(self.losses, dtype=arrays.float64),
        }
        groups: list[Any] = [
            {key: value for key, value in group.items() if key != "params"} for group in self.optimizer.param_groups
        ]
        state = {
            "groups": groups,
            "seconds": self.seconds,
            "skipped": self.skipped,
            "reported_held_out": self.reported_held_out,
            "baseline": self.objective.baseline,
            "engine": self.fast.engine,
        }
        path = checkpoints.save(self.directory.checkpoints, Checkpoint(self.step, tensors, state))
        return CheckpointWritten(step=self.step, path=str(path))

    def restore(self) -> Iterator[Event]:
        """Go back to the newest whole checkpoint; from the start where there is none."""
        found, damaged = checkpoints.newest(self.directory.checkpoints)
        for problem in damaged:
            yield Message(level="warning", text=f"passed over a checkpoint: {problem}")
        if found is None:
            if damaged:
                yield Message(level="warning", text="no whole checkpoint is left: the run starts again from step 0")
            return
        checkpoints.restore_module("model", self.model, found.tensors)
        checkpoints.restore_module("guide", self.guide, found.tensors)
        checkpoints.restore_optimizer(self.optimizer, found.tensors, found.state["groups"])
        self.step = found.step
        self.losses = found.tensors["losses"].tolist()
        self.seconds = found.state["seconds"]
        self.skipped = found.state["skipped"]
        self.reported_held_out = found.state["reported_held_out"]
        self.objective.baseline = found.state["baseline"]
        self.began_on = found.state.get("engine", "unknown")
        yield Message(level="info", text=f"resumed from step {self.step}")

    # ------------------------------------------------------------ the run

    def run(self) -> Iterator[Event]:
        """Every event from here to the last."""
        if self.step == 0 and isinstance(self.guide, inference.AutoPathfinderGuide):
            ended = self.stop.cancelled.is_set
            self.guide.climb(self.model, self._all_data(), seed=self.config.seed, ended=ended)
        saved_at = self.seconds
        reason: str | None = None
        last_save = self.step
        while self.step < self.config.steps:
            if self.cancelled:
                written = list(self._try_save())
                yield from written
                path = next((event.path for event in written if isinstance(event, CheckpointWritten)), None)
                yield Cancelled(step=self.step, seconds=self.seconds, checkpoint=path)
                return
            if self.late:
                reason = f"the time limit of {self.config.time_limit:g} s"
                break
            began = time.perf_counter()
            value, norm = self.advance()
            self.losses.append(value)
            if not math.isfinite(norm):
                yield from self._not_finite()
            self.times.append(time.perf_counter() - began)
            self.seconds += self.times[-1]
            yield self._progress(value, norm)
            due = self.config.checkpoint_steps is not None and self.step % self.config.checkpoint_steps == 0
            if due or self.stop.checkpoint.is_set() or self.seconds - saved_at >= self.config.checkpoint_seconds:
                self.stop.checkpoint.clear()
                saved_at, last_save = self.seconds, self.step
                yield from self._try_save()
            yield from self._held_out_on_the_way()
        if last_save != self.step or not self.losses:
            yield from self._try_save()
        figure = None
        if self.prepared.held_out is not None and self.team.leads:
            figure = self._held_out()
            yield figure
        posterior, told, checks, remark = self._posterior()
        yield from told
        complaint = self._came_down()
        if complaint is not None:
            checks = (*checks, complaint.check())
        warnings = tuple(str(text) for text in (complaint, remark) if text is not None)
        for text in warnings:
            yield Message(level="warning", text=text)
        yield Finished(
            step=self.step,
            seconds=self.seconds,
            losses=self._summary(),
            posterior=posterior,
            held_out=figure if isinstance(figure, HeldOut) else None,
            accuracies=figure if isinstance(figure, Accuracies) else None,
            checks=checks,
            warnings=warnings,
            reason=reason,
        )

    def _came_down(self) -> Complaint | None:
        """What to say where the loss has risen, or the guide has not come to rest."""
        bad = ended_badly(self.losses, self.config)
        if bad is not None or not self.prepared.needs.statistical or not self.team.leads or self.config.steps < FEWEST:
            return bad
        by_elbo = not isinstance(self.objective, RenyiBound)
        left = not_converged(self.guide, self._gradients_after(), by_elbo=by_elbo)
        if left is None:
            return None
        falling = "" if self.schedule != "constant" else ' that falls (schedule = "cosine")'
        return Complaint(
            f"the fit has not come to rest: {left}",
            f"take more steps (steps = {5 * self.config.steps}), or another learning_rate "
            f"(it is {self.learning_rate:g}){falling}{'' if by_elbo else _FROM_AFAR}",
            {"steps": 5 * self.config.steps},
        )

    def _gradients_after(self) -> Callable[[int], None]:
        """Leaves the gradient of −ELBO at a step that the fit does not make any more in the guide's parameters, one of
        several steps with many draws each."""
        if self.fast.steps is not None:
            noise = StepNoise(self.config.seed, after=self.step)

            def compiled(number: int) -> None:
                steps = self._compiled(self.step + number)
                assert steps is not None
                many = steps.by_elbo(PARTICLES)
                many.differentiate(noise.of(number, len(many.noise)))

            return compiled
        many = ELBO(PARTICLES, self.objective.reduction, handlers=self.objective.handlers)

        def differentiate(number: int) -> None:
            rows = self.team.share(self.order.rows_of(self.step + number))
            batch = self.prepared.move(self.train.batch(rows, self.order.generator(self.step + number)))
            self.guide.zero_grad()
            self.model.zero_grad()
            many(self.model, self.guide, *batch).backward()

        return differentiate

    def _posterior(self) -> tuple[tuple[PosteriorRow, ...], list[Message], tuple[Check, ...], str | None]:
        """What the guide says of the latents that all rows share, and the weights of deductions; what to tell of them,
        the checks, and a remark."""
        parts = self.train if isinstance(self.train, Parts) and self.train.blocks is not None else None
        guide, remark = approximated(self.prepared, self.guide, parts)
        weights, said = fitted_weights(self.model)
        if not self.prepared.needs.statistical:
            return weights, said, (), remark
        rows, told, checks = guide_posterior(self.prepared, guide, store=self.team.leads, parts=parts)
        return (*rows, *weights), [*told, *said], checks, remark

    def _progress(self, value: float, norm: float) -> Progress:
        return Progress(
            step=self.step,
            steps=self.config.steps,
            seconds=self.seconds,
            step_time=fmean(self.times),
            eta=eta(self.seconds, self.step, self.config.steps),
            loss=value,
            smoothed_loss=recent(self.losses),
            gradient_norm=norm,
            skipped=self.skipped or None,
        )

    def _try_save(self) -> Iterator[Event]:
        if not self.team.leads:
            return
        try:
            yield self.save()
        except OSError as error:
            yield Message(level="warning", text=f"no checkpoint at step {self.step}: {error}; the one before stands")

    def _seed_noise(self, step: int) -> None:
        seed = self.order.seed_of(step) + self.team.rank
        # torch.manual_seed formats the stack for a GPU that may come later: 0.1 ms of every step.
        arrays.default_generator.manual_seed(seed)
        seed_device(self.prepared.device, seed)

    def _not_finite(self) -> Iterator[Event]:
        """Stop with the first site that is to blame, or count the step and say so."""
        self.skipped += 1
        problem = self.fast.steps.blame() if self.fast.steps is not None else self._blamed(self.step - 1)
        if self.config.nan == "stop":
            advice = 'lower learning_rate, set clip_gradient = 10.0, or leave such steps out with nan = "skip"'
            if not any(map(math.isfinite, self.losses)):
                advice = "it is so before anything has moved, so look at the expression, the priors and the data"
            raise Refused(
                "not-finite", f"step {self.step}: {problem}; {advice}", site=problem.site, origin=problem.origin
            )
        yield Message(level="warning", text=f"step {self.step} is left out: {problem}")

    def _blamed(self, step: int) -> NonFinite:
        (x, observations), _ = self.batch(step)
        self._seed_noise(step)
        with in_training(training_layers((self.model, self.guide)), again=True):
            return first_non_finite(self.model, self.guide, x, observations)

    def _held_out_on_the_way(self) -> Iterator[Event]:
        due = [seconds for seconds in sorted(self.config.held_out_after) if self.seconds >= seconds]
        if len(due) > self.reported_held_out and self.team.leads and self.prepared.held_out is not None:
            self.reported_held_out = len(due)
            yield self._held_out()

    def _held_out(self) -> HeldOut | Accuracies:
        prepared = self.prepared
        assert prepared.held_out is not None
        if isinstance(prepared.held_out, SentencePairs):
            sites, rows = accuracies(prepared, rows=self.config.held_out_rows, seed=self.config.seed)
            return Accuracies(step=self.step, seconds=self.seconds, rows=rows, sites=sites)
        assert prepared.baselines is not None
        bits, bound, rows = held_out_figure(
            prepared, rows=self.config.held_out_rows, draws=self.config.held_out_draws, seed=self.config.seed
        )
        return HeldOut(
            step=self.step,
            seconds=self.seconds,
            rows=rows,
            draws=self.config.held_out_draws,
            bits_per_byte=bits,
            bound=bound,
            unigram=prepared.baselines.unigram,
            bigram=prepared.baselines.bigram,
        )

    def _summary(self) -> Losses | None:
        finite = [loss for loss in self.losses if math.isfinite(loss)]
        if not finite:
            return None
        return Losses(first=finite[0], last=finite[-1], best=min(finite), mean_of_last=recent(finite))
