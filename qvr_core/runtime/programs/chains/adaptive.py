"""Adaptive solution of differential equations, and the method of Dormand and Prince, of orders 5 and 4.

Each of B equations has a time, a step and an error of its own, so what it gives does not depend on those beside it.  A
step is a part of the interval between two times of the data, and its error is that of the state alone.  Derivatives are
those of the discrete solution along these steps: the parts are constants to them, the length of the first interval,
whose start may be a latent, is not.  On torch they are autograd's; in a graph the derivatives of the state with respect
to all that is unknown are carried along (`sensitivities`).  The method for stiff equations is `implicit`.

Dormand and Prince (1980); first step and control of the error as in Hairer, Nørsett and Wanner, Solving Ordinary
Differential Equations I, section II.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

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


class TooManySteps(RuntimeError):
    """A solution would take more steps than somebody is patient for."""


_patience: ContextVar[float] = ContextVar("steps", default=math.inf)


@contextmanager
def patient_for(steps: int) -> Generator[None]:
    """A solution that takes more steps raises `TooManySteps`; those of a graph are not counted."""
    before = _patience.set(steps)
    try:
        yield
    finally:
        _patience.reset(before)


def combined(weights: Sequence[float], slopes: Sequence[Parts], at: int) -> Tensor:
    """Σ weight · slope of one part."""
    terms = [w * slope[at] for w, slope in zip(weights, slopes, strict=True) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


class Method(Protocol):
    """How a step is made from the place where equations are, in an interval of `length` behind `start`, (B, 1)."""

    @property
    def slope(self) -> Slope:
        """f."""
        ...

    def tried(self, here: Here, start: Tensor, length: Tensor, control: Control) -> Trial:
        """A step, no further than the end of the interval."""
        ...

    def stages(self, here: Here, start: Tensor, length: Tensor, part: Tensor) -> tuple[list[Parts], Parts]:
        """The slopes of all stages of the step tried last, and the new state, with derivatives; `part` of the interval
        is that of the trial, or 0 where it was not taken."""
        ...


@dataclass(frozen=True, slots=True)
class Explicit:
    """Dormand and Prince's method."""

    slope: Slope

    def stages(self, here: Here, start: Tensor, length: Tensor, part: Tensor) -> tuple[list[Parts], Parts]:
        return explicit_stages(self.slope, here, start, length, part)

    def tried(self, here: Here, start: Tensor, length: Tensor, control: Control) -> Trial:
        whole, part = no_further(here, length)
        slopes, new = self.stages(here, start, length, part)
        error = error_of(ERROR, slopes, part * length, here.z, new, control)
        return Trial(part, slopes, new, error <= 1.0, whole, next_factor(error, 5))


def explicit_stages(slope: Slope, here: Here, start: Tensor, length: Tensor, part: Tensor) -> tuple[list[Parts], Parts]:
    """The slopes of all stages of a step that is a part of the interval, and the new state."""
    width, time = part * length, start + here.done * length
    slopes, new = [here.k], here.z
    for node, weights in zip(NODES[1:], STAGES[1:], strict=True):
        new = [z + width * combined(weights, slopes, at) for at, z in enumerate(here.z)]
        slopes.append(slope(time + node * width, new))
    return slopes, new


def no_further(here: Here, length: Tensor) -> tuple[Tensor, Tensor]:
    """Whether the next step comes to the end of the interval, and which part of that it is."""
    whole = here.step >= (1.0 - here.done) * length
    return whole, arrays.where(whole, 1.0 - here.done, here.step / length).detach()


def error_of(
    weights: Sequence[float], slopes: Sequence[Parts], width: Tensor, old: Parts, new: Parts, control: Control
) -> Tensor:
    """The error of a step in units of the tolerances, (B, 1)."""
    off = [width * combined(weights, slopes, at) for at in range(len(new))]
    return norm(off, [scale_of(control, one, other) for one, other in zip(old, new, strict=True)])


def next_factor(error: Tensor, order: int) -> Tensor:
    """By what the next step is longer, of a method whose errors are of this order in the step."""
    factor = (SAFETY * arrays.maximum(error, like(error, 1e-10)) ** (-1.0 / order)).clamp(SMALLEST, LARGEST)
    # no number, of a stage that has left where f is defined
    return arrays.where(error < 1e30, factor, like(error, SMALLEST))


def moved(here: Here, trial: Trial, length: Tensor, control: Control) -> tuple[Here, Tensor]:
    """Where equations are behind a trial, and which have come to the end of the interval."""
    ended = here.lost > 0.0
    taken = trial.taken & ~ended
    arrived = taken & trial.whole
    count = here.tried + 1.0
    stuck = ~(trial.part > LEAST * here.done) & ~trial.whole
    lost = ended | (length < 0.0) | stuck | ((count >= control.most) & ~arrived)
    none = like(count, math.nan)
    width = trial.part * length
    return Here(
        [arrays.where(lost, none, arrays.where(taken, new, z)) for new, z in zip(trial.new, here.z, strict=True)],
        [arrays.where(taken, new, k) for new, k in zip(trial.slopes[-1], here.k, strict=True)],
        arrays.where(taken, here.done + trial.part, here.done).detach(),
        arrays.where(arrived, arrays.maximum(here.step, width * trial.factor), width * trial.factor).detach(),
        count,
        arrays.where(lost, like(count, 1.0), like(count, 0.0)),
    ), arrived | lost


def begun(slope: Slope, z: Parts, start: Tensor, control: Control) -> Here:
    """The start of equations, with a first step."""
    k = slope(start, z)
    scale = [scale_of(control, one, one) for one in z]
    size, steep = norm(z, scale), norm(k, scale)
    small = (size < 1e-5) | (steep < 1e-5)
    first = arrays.where(small, like(size, 1e-6), 0.01 * size / steep).detach()
    further = slope(start + first, [one + first * slope_ for one, slope_ in zip(z, k, strict=True)])
    bent = norm([new - old for new, old in zip(further, k, strict=True)], scale) / first
    most = arrays.maximum(steep, bent)
    second = arrays.where(most <= 1e-15, arrays.maximum(like(most, 1e-6), first * 1e-3), (0.01 / most) ** 0.2)
    zero = like(start, 0.0)
    return Here(z, k, zero, arrays.minimum(100.0 * first, second).detach(), zero, zero)


def solved(method: Method, initial: Tensor, start: Tensor, at: Tensor, control: Control) -> Tensor:
    """The state (B, T, n) at times (B, T) of equations that begin with (B, n) at (B, 1)."""
    begins = arrays.cat([start, at[:, :-1]], 1)
    with_slope, left = arrays.is_grad_enabled(), _patience.get()
    here = begun(method.slope, [initial], start, control)
    found: list[Tensor] = []
    for turn in range(at.shape[1]):
        first, length = begins[:, turn : turn + 1], (at - begins)[:, turn : turn + 1]
        here = replace(here, done=like(start, 0.0), tried=like(start, 0.0))
        arrived: Any = here.lost > 0.0
        while True:
            with arrays.no_grad():
                trial = method.tried(here, first, length, control)
            if with_slope:
                # what is not taken has no part in the derivative: where it is no number, nothing times it were none
                part = arrays.where(trial.taken, trial.part, like(start, 0.0))
                slopes, new = method.stages(here, first, length, part)
                trial = replace(trial, slopes=slopes, new=new)
            then, there = moved(here, trial, length, control)
            here = _selected(arrived, here, then)
            arrived = arrived | there
            if bool(arrived.all()):
                break
            left -= 1
            if left < 0:
                raise TooManySteps
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


def scale_of(control: Control, one: Tensor, other: Tensor) -> Tensor:
    """The error that is allowed between two states."""
    return control.atol + control.rtol * arrays.maximum(one.abs(), other.abs())


def norm(values: Parts, scale: Parts) -> Tensor:
    """The root of the mean square, (B, 1)."""
    ratios = [value / size for value, size in zip(values, scale, strict=True)]
    total = sum((one * one).sum(-1, keepdim=True) for one in ratios[1:]) + (ratios[0] * ratios[0]).sum(-1, keepdim=True)
    return (total / sum(one.shape[-1] for one in ratios)).sqrt().detach()


def like(x: Tensor, value: float) -> Tensor:
    """A number in the shape of an array."""
    return arrays.full_like(x, value)
