"""Trials of a step on the engine's arrays: written down once in a graph, and evaluated at each place.

A trial has no derivative, and takes hundreds of operations on a few numbers each, of which numpy makes many more in a
second than torch does.  Of the step that is taken, f and what follows from it are the engine's own where derivatives
are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.engine import Tensor, arrays, new_graph
from qvr_core.arrays.evaluate import evaluation
from qvr_core.arrays.graph import Unsupported, recording_into
from qvr_core.arrays.listing import in_graph
from qvr_core.runtime.programs.chains.adaptive import Control, Explicit, Here, Method, Parts, Trial, explicit_stages
from qvr_core.runtime.programs.chains.implicit import NODES, Implicit, implicit_stages, undoing
from qvr_core.runtime.programs.chains.partial_derivatives import elements

Rate = Callable[[Tensor, Tensor, Sequence[Tensor]], Tensor]
"""The derivative (B, n) at times (B, 1), of states (B, n) and arguments."""


def method_of(rate: Rate, arguments: Sequence[Tensor], initial: Tensor, control: Control, *, stiff: bool) -> Method:
    """The method of solution of B equations that begin with (B, n)."""
    try:
        return Written(rate, arguments, initial, control, stiff=stiff)
    except Unsupported:
        if stiff:
            raise
        return Explicit(lambda time, state: [rate(time, state[0], arguments)])


@dataclass(frozen=True, slots=True)
class Inverse:
    """Of states (B, n) as they are: the matrices (B, n, n)."""

    matrix: Any

    def undone(self, right: Parts) -> Parts:
        return [(self.matrix @ right[0].unsqueeze(-1)).squeeze(-1)]


class Written:
    """The method whose trials are numpy's, with tolerances of its own."""

    def __init__(
        self, rate: Rate, arguments: Sequence[Tensor], initial: Tensor, control: Control, *, stiff: bool
    ) -> None:
        self._rate, self._arguments, self._initial, self._control, self._stiff = (
            rate,
            arguments,
            initial,
            control,
            stiff,
        )
        rows, size = initial.shape
        self._graph = graph = new_graph()
        place: Any = graph.position(rows * (2 * size + 4))
        with recording_into(graph):
            given: Any = [in_graph(one.detach(), graph) for one in arguments]

            def slope(time: Any, state: Any) -> Any:
                return [rate(time, state[0], given)]

            def jacobian(time: Any, state: Any, reach: Any) -> Any:
                # nodes of their own: a reshape of one of them would be one of the whole position
                read: Any = [g.pointwise("stop", each) for each in elements(state[0])]
                found = elements(rate(time, _any(g.cat(read, 1)), given))
                matrix, _ = g.inverse(undoing(found, read, reach))
                return [g.cat(found, 1)], Inverse(matrix)

            def part(begin: int, width: int) -> Any:
                return g.reshape(g.cut(place, 0, rows * begin, rows * (begin + width)), (rows, width))

            z, k, (done, step, start, length) = (
                part(0, size),
                part(size, size),
                (part(2 * size + at, 1) for at in range(4)),
            )
            here = Here([z], [k], done, step, done, done)
            method = Implicit(slope, jacobian) if stiff else Explicit(slope)
            trial: Any = method.tried(here, start, length, control)
            found: list[Any] = [trial.part, trial.factor, trial.taken, trial.whole, trial.new[0], trial.slopes[-1][0]]
            if isinstance(method, Implicit):
                for before, linear in method.settled:
                    found += [before[0], g.reshape(_any(linear).matrix, (rows, size * size))]
            whole = g.cat([g.expand(g.pointwise("real", each), (rows, each.shape[1])) for each in found], 1)
        self._numbers = evaluation(whole)
        self._settled: list[tuple[Parts, Inverse]] = []

    def slope(self, time: Tensor, state: Parts) -> Parts:
        """f."""
        return [self._rate(time, state[0], self._arguments)]

    def tried(self, here: Here, start: Tensor, length: Tensor, control: Control) -> Trial:
        """A step, no further than the end of the interval."""
        assert control is self._control
        rows, size = self._initial.shape
        given = (here.z[0], here.k[0], here.done, here.step, start, length)
        flat = arrays.cat([each.detach().expand(rows, each.shape[1]).reshape(-1) for each in given])
        made = arrays.as_tensor(self._numbers(in_graph(flat, self._graph).data)).to(self._initial)
        part, factor, taken, whole = (made[:, at : at + 1] for at in range(4))
        new, slope = made[:, 4 : 4 + size], made[:, 4 + size : 4 + 2 * size]
        if self._stiff:
            own = made[:, 4 + 2 * size :].reshape(rows, len(NODES), size * (1 + size))
            matrices = own[:, :, size:].reshape(rows, len(NODES), size, size)
            self._settled = [([own[:, at, :size]], Inverse(matrices[:, at])) for at in range(len(NODES))]
        return Trial(part, [here.k, [slope]], [new], taken > 0.5, whole > 0.5, factor)

    def stages(self, here: Here, start: Tensor, length: Tensor, part: Tensor) -> tuple[list[Parts], Parts]:
        """The slopes of all stages of the step tried last, and the new state, with derivatives."""
        if self._stiff:
            # of a step that is not made the matrices may be no numbers, and nothing times these were none
            one = arrays.eye(self._initial.shape[1]).to(self._initial)
            made = (part > 0.0).unsqueeze(-1)
            settled = [(near, Inverse(arrays.where(made, inverse.matrix, one))) for near, inverse in self._settled]
            return implicit_stages(self.slope, settled, here, start, length, part)
        return explicit_stages(self.slope, here, start, length, part)


def _any(value: Any) -> Any:
    """An array of a graph where the same text is for tensors."""
    return value
