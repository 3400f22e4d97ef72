"""A fit as ArviZ' InferenceData: a tree of datasets whose dimensions are called as the sets of the program.

Source: the InferenceData schema specification of ArviZ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from qvr_core.arrays.engine import Tensor
from qvr_core.inference.axes import Axes, Axis, axes_of
from qvr_core.inference.dataset import dataset
from qvr_core.inference.labelled_datasets import Dataset, Tree
from qvr_core.inference.lifting import LiftedModel
from qvr_core.inference.pointwise import Given
from qvr_core.runtime.programs.labelled.axes import data_axes, site_axes, state_axes
from qvr_core.runtime.values.errors import MissingData, NoDraws, RuntimeProblem

MOST_NUMBERS = 50_000_000
"""A group of more numbers is left out."""
MOST_HIDDEN = 5_000_000
"""Probabilities of the states of a `marginalize` that are kept: numbers of all draws."""
PRIOR_DRAWS = 500

Values = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fit knows: (chains, draws, …) by name."""

    given: Given | None
    latents: Values
    lets: Values
    predictions: Values
    statistics: Values
    likelihood: Callable[[], Values]
    """Computed where it is wanted: by observed step, NaN where an element has none."""
    seed: int = 0
    """Of what is drawn for the tree."""


@dataclass(slots=True)
class Groups:
    """The datasets of a tree by the name of the group, and what is said of those that are left out."""

    found: dict[str, Dataset] = field(default_factory=dict[str, Dataset])
    notes: list[str] = field(default_factory=list[str])

    def add(
        self, name: str, values: Values, axes: Axes, lead: tuple[str, ...] = ("chain", "draw"), *, size: int = 0
    ) -> None:
        """A group, where there is something in it and it is not too large."""
        if size > MOST_NUMBERS or sum(value.numel() for value in values.values()) > MOST_NUMBERS:
            self.notes.append(f"the group {name} is left out: it would have more than {MOST_NUMBERS:,} numbers")
        elif values:
            self.found[name] = dataset({n: value.detach().cpu() for n, value in values.items()}, axes, lead)

    def tree(self) -> Tree:
        """Those that there are."""
        return Tree(self.found)


def inference_data(fit: Fit, *, prior_draws: int = PRIOR_DRAWS) -> Groups:
    """Groups `posterior` (latents, then deterministic sites), `sample_stats`, `posterior_predictive` (observed steps
    drawn anew, `predict` steps and lets that read them, under the name of each `marginalize` the probabilities of its
    states given the data), `log_likelihood` (one number for each observed element that counts, but for predictors whose
    missing cells are filled in), `prior` and `prior_predictive` (`prior_draws` draws as one chain), `observed_data`,
    `constant_data`."""
    groups = Groups()
    given = fit.given
    program = None if given is None else given.program
    axes = dict[str, tuple[Axis, ...]]() if given is None or program is None else axes_of(program, given.known)
    groups.add("posterior", {**fit.latents, **fit.lets}, axes)
    groups.add("sample_stats", fit.statistics, {})
    if given is None or program is None:
        groups.add("posterior_predictive", fit.predictions, axes)
        return groups
    seen, observed = site_axes(program.program), given.observed_data()
    chains, draws = next(iter(fit.latents.values())).shape[:2] if fit.latents else (0, 0)
    numbers = sum(value.numel() for value in observed.values()) * chains * draws
    fits = numbers <= MOST_NUMBERS and bool(fit.latents)
    if fits:
        joined = {name: value.flatten(0, 1) for name, value in fit.latents.items()}
        again = {**_replicates(groups, given, joined, fit.seed), **_hidden(groups, given, joined)}
        split = {name: value.reshape(chains, draws, *value.shape[1:]) for name, value in again.items()}
        named = {**axes, **seen, **state_axes(program.program)}
        groups.add("posterior_predictive", {**split, **fit.predictions}, named)
    else:
        groups.add("posterior_predictive", fit.predictions, axes, size=numbers)
    likelihood, labels = scored(given.of_outcomes(fit.likelihood()), seen) if fits else ({}, {})
    groups.add("log_likelihood", likelihood, {**seen, **labels}, size=numbers)
    _prior(groups, given, {**axes, **seen}, prior_draws, fit.seed)
    constant = {name: value for name, value in given.known.items() if name not in observed}
    groups.add("observed_data", observed, seen, ())
    groups.add(
        "constant_data", {n: v for n, v in constant.items() if isinstance(v, Tensor)}, data_axes(program.program), ()
    )
    return groups


def _replicates(groups: Groups, given: Given, latents: Values, seed: int) -> Values:
    """The observed steps drawn anew, where each says how it is drawn; else that is noted."""
    try:
        return given.replicates(latents, seed)
    except NoDraws as problem:
        groups.notes.append(f"the data are not drawn anew, so that no check compares them with draws: {problem}")
        return {}


def _hidden(groups: Groups, given: Given, latents: Values) -> Values:
    """The probabilities of what each `marginalize` sums out, {name: (draws, …, K)}; what is too large is noted."""
    summed = [name for name, block in given.program.marginals.items() if block.discrete]
    if not summed:
        return {}
    numbers, count = given.numbers_hidden(latents), len(next(iter(latents.values())))
    kept = [name for name in summed if name in numbers and numbers[name] * count <= MOST_HIDDEN]
    for name in summed:
        if name not in kept:
            why = f"more than {MOST_HIDDEN:,} numbers" if name in numbers else "it has too many places"
            why = "the program reads its input" if given.program.program.uses_input else why
            groups.notes.append(f"the probabilities of the states of `{name}` are left out of the stored draws: {why}")
    return dict(given.hidden_states(latents, kept)) if kept else {}


def prior_data(given: Given, count: int, seed: int) -> Groups:
    """The groups `prior` and `prior_predictive` alone, and the data.  Raises `RuntimeProblem` where a latent has no
    prior to draw from."""
    groups, program = Groups(), given.program
    axes = {**axes_of(program, given.known), **site_axes(program.program)}
    latents, drawn = given.prior(count, seed)
    for name, values in (("prior", latents), ("prior_predictive", drawn)):
        groups.add(name, {n: value.unsqueeze(0) for n, value in values.items()}, axes)
    return groups


def lacks_prior(given: Given) -> str | None:
    """Why nothing can be drawn from the prior, where a step says so itself."""
    for name, info in given.program.site_infos().items():
        if info.kind == "sample" and info.undrawn and name not in given.known:
            why = "is improper" if info.improper else "has a family that does not say how to draw"
            return f"there are no draws from the prior: that of `{name}` {why}"
    return None


def _prior(groups: Groups, given: Given, axes: Axes, count: int, seed: int) -> None:
    """Draws from the prior, where everything has one: parameters that are fitted, or lifted, are no part of it."""
    program = given.program
    observed = sum(value.numel() for value in given.observed_data().values())
    if count < 1 or isinstance(given.model, LiftedModel) or any(True for _ in program.parameters()):
        return
    if observed * count > MOST_NUMBERS:
        groups.notes.append("the prior predictive of so many observations is left out")
        return
    if (lacking := lacks_prior(given)) is not None:
        groups.notes.append(lacking)
        return
    try:
        latents, drawn = given.prior(count, seed)
    except RuntimeProblem as problem:
        read = problem.site if isinstance(problem, MissingData) else None
        why = f"`{read}` is read above the step that draws it" if read in given.observed_data() else problem
        groups.notes.append(f"there are no draws from the prior: {why}")
        return
    for name, values in (("prior", latents), ("prior_predictive", drawn)):
        groups.add(name, {n: value.unsqueeze(0) for n, value in values.items()}, axes)


def scored(likelihood: Values, axes: Axes) -> tuple[dict[str, Tensor], dict[str, tuple[Axis, ...]]]:
    """The log likelihood without the elements that have none, and the axes of what is left: the one axis with its other
    elements, or the elements of several axes in a row, each called by all its labels."""
    found: dict[str, Tensor] = {}
    labels: dict[str, tuple[Axis, ...]] = {}
    for name, value in likelihood.items():
        absent = value.isnan().all(0).all(0)
        if value.ndim < 3 or not bool(absent.any()):
            found[name] = value
            continue
        shape, known = tuple(absent.shape), (*axes.get(name, ()), *[Axis()] * absent.ndim)
        own = [known[at].labels for at in range(len(shape))]
        each = [
            called if called is not None and len(called) == n else range(n)
            for called, n in zip(own, shape, strict=True)
        ]
        kept = (~absent).flatten()
        cells = [", ".join(map(str, cell)) for cell, keep in zip(product(*each), map(bool, kept), strict=True) if keep]
        found[name] = value.flatten(2)[:, :, kept]
        if len(shape) == 1 and own[0] is None:
            labels[name] = (Axis(known[0].name or f"{name}_scored", tuple(np.flatnonzero(kept).tolist())),)
        else:
            labels[name] = (Axis(known[0].name if len(shape) == 1 else f"{name}_scored", tuple(cells)),)
    return found, labels
