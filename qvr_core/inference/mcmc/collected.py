"""The draws of chains that move together, slice by slice: watched, kept on disk, and put together at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from qvr_core.arrays.engine import Tensor
from qvr_core.inference.mcmc.draws import ChainsState, Columns, Draws, Keeper, Slice
from qvr_core.inference.mcmc.engines import reported
from qvr_core.inference.mcmc.interruptible import Enough
from qvr_core.inference.mcmc.mass import Array
from qvr_core.inference.mcmc.potential import Potential
from qvr_core.inference.mcmc.result import MCMCResult

STUCK = 0.01
"""A chain that has moved less than this part of the prior's standard deviation is reported."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One transition of all chains, for those who watch; watching changes no draw.  Arrays (chains,) of numpy."""

    draw: int
    total: int
    warmup: bool
    acceptance: Array
    diverging: Array
    step_size: Array
    depth: Array
    steps: Array
    position: Array
    """Where the chains are, (chains, width)."""


Watch = Callable[[Progress], None]


class Running(Protocol):
    """Chains on an engine."""

    total: int
    done: int
    first: Array
    """Where they have started, (chains, width)."""

    @property
    def step_size(self) -> Array:
        """That of each chain."""
        ...

    def whole(self) -> ChainsState:
        """The chains after the last whole transition."""
        ...


class Collected:
    """What chains have drawn so far."""

    def __init__(
        self,
        running: Running,
        warmup: int,
        report: Callable[[Tensor], dict[str, Tensor]] | None,
        watch: Callable[[int, Slice], None] | None,
        keeper: Keeper | None,
        begun: tuple[ChainsState, Columns] | None,
    ) -> None:
        """`report` is that of `Draws`; `watch` sees each slice with the number of its first transition; chains that
        `keeper` has kept have `begun`, with the draws from then."""
        self.running, self.warmup = running, warmup
        self.watch, self.keeper = watch, keeper
        self.draws, self.draw = Draws(report), running.done
        self._last = running.whole().arrays["q"]
        if begun is not None and begun[1]:
            self.draws.extend(begun[1])

    def take(self, part: Slice) -> None:
        """The next transitions.  Raises `Enough` where who watches says so."""
        running = self.running
        self._last = part.columns["q"][:, -1]
        self.draws.extend(part.behind(max(self.warmup - self.draw, 0)))
        self.draw += len(part)
        if self.watch is not None:
            self.watch(self.draw - len(part), part)
        if self.keeper is not None and self.draw < running.total and self.keeper.due(self.draw):
            self.keeper.keep(running.whole(), self.draws)

    def close(self) -> None:
        """Keep the chains where they stand."""
        if self.keeper is not None and self.running.done == self.draw:
            self.keeper.keep(self.running.whole(), self.draws)

    def result(self, potential: Potential) -> MCMCResult:
        """What the chains give.  Raises `Enough` where there is no draw."""
        if not self.draws.count:
            raise Enough
        remarks = _stuck(self.running.first, self._last)
        return self.draws.result(lambda q: reported(potential, q), self.running.step_size, remarks, potential.advice)


def each_transition(watch: Watch, total: int, warmup: int) -> Callable[[int, Slice], None]:
    """Who watches every transition, one by one."""

    def watched(first: int, part: Slice) -> None:
        for at in range(len(part)):
            watch(progress(first + at, total, warmup, part, at))

    return watched


def progress(number: int, total: int, warmup: int, part: Slice, at: int) -> Progress:
    """The transition of this number, which stands at `at` in a slice."""
    names = ("acceptance", "diverging", "depth", "steps")
    reported = {name: part.columns[name][:, at] for name in names}
    step_size, position = part.step_size[:, at], part.columns["q"][:, at]
    return Progress(number, total, number < warmup, step_size=step_size, position=position, **reported)


def _stuck(first: Array, last: Array) -> list[str]:
    moved = np.sqrt(np.square((last - first).astype(np.float64)).mean(-1))
    return [
        f"chain {index} has moved only {float(distance):.2%} of the prior's standard deviation since its start: run a "
        "longer warm-up, allow deeper trees (max_tree_depth), or a larger step_size"
        for index, distance in enumerate(moved)
        if float(distance) < STUCK
    ]
