"""Adaptive solution of differential equations: the method of Dormand and Prince, of orders 5 and 4.

Each of B equations has a time, a step and an error of its own, so what it gives does not depend on those beside it.  A
step is a part of the interval between two times of the data, and its error is that of the state alone.  Derivatives are
those of the discrete solution along these steps: the parts are constants to them, the length of the first interval,
whose start may be a latent, is not.  On torch they are autograd's; in a graph the derivatives of the state with respect
to all that is unknown are carried along (`sensitivities`).

Dormand and Prince (1980); first step and control of the error as in Hairer, Nørsett and Wanner, Solving Ordinary
Differential Equations I, section II.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays

Parts = list[Tensor]
"""A state (B, n), whole or in parts (B, m) that lie side by side."""
Slope = Callable[[Tensor, Parts], Parts]
"""f(t, z) at times (B, 1)."""

NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES: tuple[tuple[float, ...], ...] = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""The last stage is the new state."""
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""Weights of the difference between the solutions of orders 5 and 4."""
SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 10.0
"""Of the factor by which a step changes."""
LEAST = 1e-15
"""A step that is a smaller part of what lies behind it does not move: the state is about to be infinite."""


@dataclass(frozen=True, slots=True)
class Control:
    """Tolerances of the error of a step, and how many are made between two times."""

    rtol: float
    atol: float
    most: int


@dataclass(frozen=True, slots=True)
class Here:
    """Where equations are: state and slope, the part of the interval that is done, the next step, and how many were
    tried in the interval; `lost` where the solution has ended.  All but `z` and `k` are (B, 1)."""

    z: Parts
    k: Parts
    done: Tensor
    step: Tensor
    tried: Tensor
    lost: Tensor


@dataclass(frozen=True, slots=True)
class Trial:
    """A step: its part of the interval, its slopes by stage and the factor of the next one."""

    part: Tensor
    slopes: list[Parts]
    new: Parts
    taken: Tensor
    whole: Tensor
    factor: Tensor


def combined(weights: Sequence[float], slopes: Sequence[Parts], at: int) -> Tensor:
    """Σ weight · slope of one part."""
    terms = [w * slope[at] for w, slope in zip(weights, slopes, strict=True) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def stages(slope: Slope, here: Here, start: Tensor, length: Tensor, part: Tensor) -> tuple[list[Parts], Parts]:
    """The slopes of all stages of a step, and the new state."""
    width, time = part * length, start + here.done * length
    slopes, new = [here.k], here.z
    for node, weights in zip(NODES[1:], STAGES[1:], strict=True):
        new = [z + width * combined(weights, slopes, at) for at, z in enumerate(here.z)]
        slopes.append(slope(time + node * width, new))
    return slopes, new


def tried(slope: Slope, here: Here, start: Tensor, length: Tensor, control: Control) -> Trial:
    """A step from here, no further than the end of the interval."""
    whole = here.step >= (1.0 - here.done) * length
    part = arrays.where(whole, 1.0 - here.done, here.step / length).detach()
    slopes, new = stages(slope, here, start, length, part)
    off = [part * length * combined(ERROR, slopes, at) for at in range(len(new))]
    error = _norm(off, [_scale(control, old, one) for old, one in zip(here.z, new, strict=True)])
    factor = (SAFETY * arrays.maximum(error, _like(error, 1e-10)) ** -0.2).clamp(SMALLEST, LARGEST)
    # no number, of a stage that has left where f is defined
    factor = arrays.where(error < 1e30, factor, _like(error, SMALLEST))
    return Trial(part, slopes, new, error <= 1.0, whole, factor)


def moved(here: Here, trial: Trial, length: Tensor, control: Control) -> tuple[Here, Tensor]:
    """Where equations are behind a trial, and which have come to the end of the interval."""
    ended = here.lost > 0.0
    taken = trial.taken & ~ended
    arrived = taken & trial.whole
    count = here.tried + 1.0
    stuck = ~(trial.part > LEAST * here.done) & ~trial.whole
    lost = ended | (length < 0.0) | stuck | ((count >= control.most) & ~arrived)
    none = _like(count, math.nan)
    width = trial.part * length
    return Here(
        [arrays.where(lost, none, arrays.where(taken, new, z)) for new, z in zip(trial.new, here.z, strict=True)],
        [arrays.where(taken, new, k) for new, k in zip(trial.slopes[-1], here.k, strict=True)],
        arrays.where(taken, here.done + trial.part, here.done).detach(),
        arrays.where(arrived, arrays.maximum(here.step, width * trial.factor), width * trial.factor).detach(),
        count,
        arrays.where(lost, _like(count, 1.0), _like(count, 0.0)),
    ), arrived | lost


def begun(slope: Slope, z: Parts, start: Tensor, control: Control) -> Here:
    """The start of equations, with a first step."""
    k = slope(start, z)
    scale = [_scale(control, one, one) for one in z]
    size, steep = _norm(z, scale), _norm(k, scale)
    small = (size < 1e-5) | (steep < 1e-5)
    first = arrays.where(small, _like(size, 1e-6), 0.01 * size / steep).detach()
    further = slope(start + first, [one + first * slope_ for one, slope_ in zip(z, k, strict=True)])
    bent = _norm([new - old for new, old in zip(further, k, strict=True)], scale) / first
    most = arrays.maximum(steep, bent)
    second = arrays.where(most <= 1e-15, arrays.maximum(_like(most, 1e-6), first * 1e-3), (0.01 / most) ** 0.2)
    zero = _like(start, 0.0)
    return Here(z, k, zero, arrays.minimum(100.0 * first, second).detach(), zero, zero)


def solved(slope: Slope, initial: Tensor, start: Tensor, at: Tensor, control: Control) -> Tensor:
    """The state (B, T, n) at times (B, T) of equations that begin with (B, n) at (B, 1)."""
    begins = arrays.cat([start, at[:, :-1]], 1)
    with_slope = arrays.is_grad_enabled()
    here = begun(slope, [initial], start, control)
    found: list[Tensor] = []
    for turn in range(at.shape[1]):
        first, length = begins[:, turn : turn + 1], (at - begins)[:, turn : turn + 1]
        here = replace(here, done=_like(start, 0.0), tried=_like(start, 0.0))
        arrived: Any = here.lost > 0.0
        while True:
            with arrays.no_grad():
                trial = tried(slope, here, first, length, control)
            if with_slope:
                # what is not taken has no part in the derivative: where it is no number, nothing times it were none
                part = arrays.where(trial.taken, trial.part, _like(start, 0.0))
                slopes, new = stages(slope, here, first, length, part)
                trial = replace(trial, slopes=slopes, new=new)
            then, there = moved(here, trial, length, control)
            here = _selected(arrived, here, then)
            arrived = arrived | there
            if bool(arrived.all()):
                break
        found.append(here.z[0])
    return arrays.stack(found, 1)


def _selected(there: Tensor, old: Here, new: Here) -> Here:
    """The old place of equations that are at the end of the interval."""

    def choose(one: Tensor, other: Tensor) -> Tensor:
        return arrays.where(there, one, other)

    return Here(
        list(map(choose, old.z, new.z)), list(map(choose, old.k, new.k)),
        choose(old.done, new.done), choose(old.step, new.step), choose(old.tried, new.tried),
        choose(old.lost, new.lost),
    )  # fmt: skip


def _scale(control: Control, one: Tensor, other: Tensor) -> Tensor:
    return control.atol + control.rtol * arrays.maximum(one.abs(), other.abs())


def _norm(values: Parts, scale: Parts) -> Tensor:
    """The root of the mean square, (B, 1)."""
    ratios = [value / size for value, size in zip(values, scale, strict=True)]
    total = sum((one * one).sum(-1, keepdim=True) for one in ratios[1:]) + (ratios[0] * ratios[0]).sum(-1, keepdim=True)
    return (total / sum(one.shape[-1] for one in ratios)).sqrt().detach()


def _like(x: Tensor, value: float) -> Tensor:
    return arrays.full_like(x, value)
