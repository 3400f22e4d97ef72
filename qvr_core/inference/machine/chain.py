"""One chain of NUTS or HMC as arrays, moved on in slices by compiled code."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.codegen.calls import Compiled
from qvr_core.codegen.kernels import nuts_and_hmc

if TYPE_CHECKING:
    from qvr_core.inference.machine.compiled import MachineDensity

Array = NDArray[Any]
ADVANCE = Compiled(nuts_and_hmc.advance)  # pyright: ignore[reportUnknownArgumentType]


@dataclass(frozen=True, slots=True)
class Settings:
    """What all slices of a chain have in common: the warm-up with its windows, and the kernel's settings."""

    warmup: int
    window_start: int
    ends: tuple[int, ...]
    early: int
    """Draws with trees of at most `early_depth` doublings."""
    early_depth: int
    most: int
    """Doublings of a tree; 0 for HMC."""
    target: float
    step_size: float
    dense: bool
    adapt_step: bool
    adapt_mass: bool
    steps: int = 0
    """Leapfrog steps of a draw by HMC, or, where that is not 0, what they shall fill."""
    length: float = 0.0


class Chain:
    """A chain at a position with its log density and gradient; `generator` is its own."""

    def __init__(
        self,
        density: MachineDensity | _Nowhere,
        settings: Settings,
        q: Array,
        log_density: float,
        gradient: Array,
        generator: np.random.Generator,
    ) -> None:
        self.density, self.settings, self.generator = density, settings, generator
        width = len(q)
        self.q, self.g = q.astype(np.float64), gradient.astype(np.float64)
        self.numbers = np.zeros(nuts_and_hmc.NUMBERS)
        self.numbers[nuts_and_hmc.LOG_DENSITY], self.numbers[nuts_and_hmc.STEP] = log_density, settings.step_size
        self.inverse = np.eye(width) if settings.dense else np.ones((1, width))
        self.root = np.eye(width) if settings.dense else np.ones((1, 1))
        self.mean, self.squares = np.zeros(width), np.zeros_like(self.inverse)
        self.draw = 0
        self._trees = np.zeros((nuts_and_hmc.CHECKPOINTS + 2 * (settings.most + 1), width))
        self._room = np.zeros(max(density.room, 1))

    def advance(self, count: int) -> tuple[Array, Array]:
        """`count` transitions: positions (count, D) and what `transition` reports of each, (count, 7)."""
        density, settings = self.density, self.settings
        positions = np.empty((count, len(self.q)))
        reports = np.empty((count, nuts_and_hmc.REPORTED))
        ADVANCE(
            density.address,
            self._room,
            density.reals,
            density.wholes,
            self.q,
            self.g,
            self.numbers,
            self.inverse,
            self.root,
            self.mean,
            self.squares,
            self._trees,
            handle(self.generator),
            settings.dense,
            self.draw,
            count,
            settings.warmup,
            settings.window_start,
            np.array(settings.ends, dtype=np.int64),
            settings.early,
            settings.early_depth,
            settings.most,
            settings.steps,
            settings.length,
            settings.target,
            settings.adapt_step,
            settings.adapt_mass,
            positions,
            reports,
        )
        self.draw += count
        return positions, reports

    @property
    def step_size(self) -> float:
        """The leapfrog step of the next transition."""
        return float(self.numbers[nuts_and_hmc.STEP])

    def state(self) -> dict[str, Any]:
        """All that the chain is, to go on from later: arrays, and the generator's state."""
        arrays = {name: getattr(self, name).copy() for name in _KEPT}
        return {**arrays, "draw": self.draw, "generator": self.generator.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `state` says."""
        for name in _KEPT:
            setattr(self, name, np.array(state[name], dtype=np.float64))
        self.draw = int(state["draw"])
        self.generator.bit_generator.state = state["generator"]


_KEPT = ("q", "g", "numbers", "inverse", "root", "mean", "squares")


def handle(generator: np.random.Generator) -> Array:
    """Where a generator's bits come from: the address of numpy's function, and of its state."""
    interface = generator.bit_generator.ctypes
    return np.array([ctypes.cast(interface.next_uint64, ctypes.c_void_p).value, interface.state_address])


def compile_sampler() -> None:
    """Have the sampler's code at hand: it is compiled once a machine, then read from disk."""
    settings = Settings(0, 0, (), 0, 0, 1, 0.8, 0.1, dense=False, adapt_step=False, adapt_mass=False)
    zero = np.zeros(1)
    Chain(_Nowhere(), settings, zero, 0.0, zero, np.random.default_rng(0)).advance(0)


@dataclass(frozen=True, slots=True)
class _Nowhere:
    """A density that is never called."""

    address: int = 0
    room: int = 0
    reals: Array = field(default_factory=lambda: np.zeros(1))
    wholes: Array = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
