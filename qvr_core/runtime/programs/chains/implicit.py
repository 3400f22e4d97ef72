"""Stiff differential equations: a diagonally implicit Runge-Kutta method of orders 4 and 3, in adaptive steps.

The first stage is explicit, and is the last one of the step before; of the others each solves
k = f(t, base + γ h k) by Newton's method from the stage before, with a Jacobian of its own in each of a fixed number of
iterations.  A step whose iterations have not settled is made anew, a quarter as long.

The derivative of a stage with respect to what it depends on is that of the implicit function: the linear map of the
last iteration on the derivative of f.

ARK4(3)6L[2]SA-ESDIRK, L-stable and stiffly accurate: Kennedy and Carpenter, Additive Runge-Kutta schemes for
convection-diffusion-reaction equations, Applied Numerical Mathematics 44 (2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from qvr_core.arrays import operations as g
from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.graph import Array
from qvr_core.runtime.programs.chains.adaptive import (
    Control,
    Here,
    Parts,
    Slope,
    Trial,
    combined,
    error_of,
    like,
    next_factor,
    no_further,
    norm,
    scale_of,
)
from qvr_core.runtime.programs.chains.partial_derivatives import slopes_of

GAMMA = 1 / 4
NODES = (1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0)
STAGES: tuple[tuple[float, ...], ...] = (
    (1 / 4,),
    (8611 / 62500, -1743 / 31250),
    (5012029 / 34652500, -654441 / 2922500, 174375 / 388108),
    (15267082809 / 155376265600, -71443401 / 120774400, 730878875 / 902184768, 2285395 / 8070912),
    (82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211),
)
"""Of the implicit stages, without γ for their own slope.  The last one is the new state."""
ERROR = (
    82889 / 524892 - 4586570599 / 29645900160,
    0.0,
    15625 / 83664 - 178811875 / 945068544,
    69875 / 102672 - 814220225 / 1159782912,
    -2260 / 8211 + 3700637 / 11593932,
    1 / 4 - 61727 / 225920,
)
"""Weights of the difference between the solutions of orders 4 and 3."""
ITERATIONS = 3
"""Of Newton's method.  It converges quadratically: behind a last move of `SETTLED` tolerances there is nothing left."""
SETTLED, SHORTER = 0.03, 0.25


class Linear(Protocol):
    """I − γ h ∂f/∂z of a stage, undone on (B, n) or on rows of derivatives."""

    def undone(self, right: Parts) -> Parts: ...


class Jacobian(Protocol):
    """f, and the linear map of its last call."""

    def __call__(self, time: Tensor, state: Parts, reach: Tensor) -> tuple[Parts, Linear]:
        """f at times (B, 1), and what undoes I − reach ∂f/∂z."""
        ...


@dataclass(slots=True)
class Implicit:
    """Trials of the method; `settled` are of each stage of the last one the slope before its last iteration and its
    map."""

    slope: Slope
    jacobian: Jacobian
    settled: list[tuple[Parts, Linear]] = field(default_factory=list["tuple[Parts, Linear]"])

    def tried(self, here: Here, start: Tensor, length: Tensor, control: Control) -> Trial:
        """A step, no further than the end of the interval."""
        whole, part = no_further(here, length)
        width, time = part * length, start + here.done * length
        slopes, new, off = [here.k], here.z, like(width, 0.0)
        del self.settled[:]
        for node, weights in zip(NODES, STAGES, strict=True):
            base = [z + width * combined(weights, slopes, at) for at, z in enumerate(here.z)]
            when, reach = time + node * width, GAMMA * width
            found = [one.detach() for one in slopes[-1]]
            for _ in range(ITERATIONS - 1):
                found, _ = self._iterated(found, when, base, reach)
            before = [one.detach() for one in found]
            found, linear = self._iterated(before, when, base, reach)
            self.settled.append((before, linear))
            slopes.append(found)
            new = _state(base, reach, found)
            # by how many tolerances the last iterations moved at most
            moved = [reach * (one - old) for one, old in zip(found, before, strict=True)]
            allowed = [scale_of(control, old, one) for old, one in zip(here.z, new, strict=True)]
            off = arrays.maximum(off, norm(moved, allowed))
        error = error_of(ERROR, slopes, width, here.z, new, control)
        settled = off <= SETTLED
        factor = arrays.where(settled, next_factor(error, 4), like(error, SHORTER))
        return Trial(part, slopes, new, settled & (error <= 1.0), whole, factor)

    def _iterated(self, found: Parts, when: Tensor, base: Parts, reach: Tensor) -> tuple[Parts, Linear]:
        """Newton's method once on k − f(t, base + γ h k)."""
        return _moved(found, *self.jacobian(when, _state(base, reach, found), reach))


def _moved(found: Parts, slope: Parts, linear: Linear) -> tuple[Parts, Linear]:
    by = linear.undone([one - other for one, other in zip(found, slope, strict=True)])
    return [one - move for one, move in zip(found, by, strict=True)], linear


def implicit_stages(
    slope: Slope, settled: Sequence[tuple[Parts, Linear]], here: Here, start: Tensor, length: Tensor, part: Tensor
) -> tuple[list[Parts], Parts]:
    """The slopes of all stages, and the new state, with the derivatives of the last iteration of a trial (where no step
    is made, from the stage before)."""
    width, time = part * length, start + here.done * length
    slopes, new = [here.k], here.z
    for node, weights, (near, linear) in zip(NODES, STAGES, settled, strict=True):
        base = [z + width * combined(weights, slopes, at) for at, z in enumerate(here.z)]
        when, reach = time + node * width, GAMMA * width
        before = [arrays.where(part > 0.0, one, other.detach()) for one, other in zip(near, slopes[-1], strict=True)]
        found, _ = _moved(before, slope(when, _state(base, reach, before)), linear)
        slopes.append(found)
        new = _state(base, reach, found)
    return slopes, new


def _state(base: Parts, reach: Tensor, slopes: Parts) -> Parts:
    return [one + reach * slope for one, slope in zip(base, slopes, strict=True)]


def undoing(found: Sequence[Array], read: Sequence[Array], reach: Array) -> Array:
    """I − reach ∂f/∂z, (B, n, n), of elements (B, 1)."""
    graph, size, rows = reach.graph, len(found), found[0].shape[0]
    entries: list[Array] = []
    for row, one in enumerate(found):
        slopes = slopes_of(one, [each.number for each in read])
        for column, each in enumerate(read):
            own = graph.constant(float(row == column))
            slope = slopes.get(each.number)
            entry = own if slope is None else g.pointwise("sub", own, g.pointwise("mul", reach, slope))
            entries.append(g.expand(entry, (rows, 1)))
    return g.reshape(g.cat(entries, 1), (rows, size, size))
