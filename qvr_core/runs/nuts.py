"""The engine for Markov chains: draws from the posterior, with progress of all chains as they go."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch

from qvr_core import inference
from qvr_core.inference.mcmc import Progress as Transition
from qvr_core.runs.posterior import chain_table, left_out, write_netcdf
from qvr_core.runs.prepare import Prepared
from qvr_core.runs.protocol import Cancelled, Event, Finished, Message, Progress
from qvr_core.runs.store import RunDirectory
from qvr_core.runs.worker import Stop

Emit = Callable[[Event], None]


class Interrupted(Exception):
    """Raised inside a transition's report to leave the chains."""


def fit_nuts(prepared: Prepared, stop: Stop, emit: Emit) -> None:
    """Run the chains and emit every event from here to the last."""
    config = prepared.job.config
    began = time.perf_counter()
    done = diverged = 0
    acceptance = 0.0

    def watch(now: Transition) -> None:
        nonlocal done, diverged, acceptance
        done = now.draw + 1
        if not now.warmup:
            diverged += int(now.diverging.sum())
        acceptance += (float(now.acceptance.mean()) - acceptance) / (10 if done > 10 else done)
        seconds = time.perf_counter() - began
        emit(
            Progress(
                step=done,
                steps=now.total,
                seconds=seconds,
                step_time=seconds / done,
                eta=seconds / done * (now.total - done),
                phase="warmup" if now.warmup else "sampling",
                acceptance=acceptance,
                divergences=diverged,
                tree_depth=int(now.depth.max()),
                step_size=float(now.step_size.mean()),
            )
        )
        late = config.time_limit is not None and seconds > config.time_limit
        if stop.cancelled.is_set() or late:
            raise Interrupted("the time limit" if late else "cancelled")

    if prepared.job.resume:
        emit(
            Message(level="info", text="chains keep their draws only at the end: they start again, with the same seeds")
        )
    x, observations = prepared.move(prepared.train.batch(rows_of(prepared)))
    model = prepared.model
    lift = any(True for _ in model.parameters()) if config.lift is None else config.lift
    kernel = inference.NUTSKernel(
        step_size=config.step_size if config.step_size is not None else 0.1,
        max_tree_depth=config.max_tree_depth,
        target_accept=config.target_accept,
    )
    chains = inference.MCMC(kernel, config.warmup, config.samples, config.chains, seed=config.seed)
    try:
        if lift:
            lifted, lx, lobs = inference.bayesian_lift_parameters(
                model, x, observations, prior_scale=config.prior_scale
            )
            result = chains.run(lifted, lx, lobs, watch=watch)
        else:
            result = chains.run(model, x, observations, watch=watch)
    except Interrupted as reason:
        if str(reason) != "cancelled":
            emit(Message(level="warning", text=f"{reason} was reached before every draw was made: none are kept"))
        emit(Cancelled(step=done, seconds=time.perf_counter() - began))
        return
    for warning in result.warnings:
        emit(Message(level="warning", text=warning))
    directory = RunDirectory.of(prepared.job)
    try:
        # A slash would be a group of the file.
        named = {name.replace("/", "."): draws for name, draws in result.samples.items()}
        write_netcdf(directory.posterior, replace(result, samples=named).to_arviz())
        directory.seal_posterior()
    except OSError as error:
        emit(Message(level="warning", text=f"the draws could not be stored: {error}"))
    if omitted := left_out(result, model.sites):
        names = ", ".join(omitted[:6]) + (f" and {len(omitted) - 6} more" if len(omitted) > 6 else "")
        emit(Message(level="info", text=f"not in the table, but among the stored draws: {names}"))
    emit(
        Finished(
            step=done,
            seconds=time.perf_counter() - began,
            posterior=tuple(chain_table(result, model.sites)),
            divergences=int(result.divergence_counts.sum()),
            acceptance=float(result.acceptance_rates.mean()),
        )
    )


def rows_of(prepared: Prepared) -> torch.Tensor:
    """The rows that chains see: all of a table, `rows` windows spread over a text."""
    count = prepared.train.rows
    if prepared.text:
        count = min(count, prepared.job.config.rows)
    return (torch.arange(count) * (prepared.train.rows / count)).long()
