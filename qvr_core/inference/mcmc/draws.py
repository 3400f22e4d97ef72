"""Draws while they come, what chains are between two of them, and who keeps both on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.inference.mcmc.hamiltonian import Transition
from qvr_core.inference.mcmc.mass import Array
from qvr_core.inference.mcmc.result import MCMCResult

Columns = dict[str, Array]
"""By name (chains, draws, …): positions `q`, their `log_density`, and what the transitions to them were like."""
_OF_TRANSITION = ("acceptance", "diverging", "steps", "depth", "energy")


@dataclass(frozen=True, slots=True)
class Slice:
    """Some transitions of all chains, one behind the other, with the step sizes after each (chains, transitions)."""

    columns: Columns
    step_size: Array

    @classmethod
    def of(cls, transition: Transition, step_size: Array) -> Slice:
        """A single one."""
        columns = {name: getattr(transition, name)[:, None] for name in _OF_TRANSITION}
        state = {"q": transition.state.q[:, None], "log_density": transition.state.log_density[:, None]}
        return cls({**state, **columns}, step_size[:, None])

    def __len__(self) -> int:
        return self.step_size.shape[1]

    def behind(self, warmup: int) -> Columns:
        """Without its first transitions."""
        return {name: column[:, warmup:] for name, column in self.columns.items()}


@dataclass(frozen=True, slots=True)
class ChainsState:
    """All that chains are after `draw` transitions: what each has, (chains, …), what they have in common, and the
    state of each one's generator."""

    draw: int
    arrays: Mapping[str, Array]
    common: Mapping[str, int]
    generators: Sequence[Mapping[str, Any]]

    def of(self, rows: Sequence[int]) -> ChainsState:
        """Some of the chains."""
        own = {name: array[list(rows)] for name, array in self.arrays.items()}
        return ChainsState(self.draw, own, self.common, [self.generators[row] for row in rows])


class Keeper(Protocol):
    """Who keeps chains on disk, and knows where they stood when the run was broken off."""

    every: int | None
    """Transitions after which there is always a checkpoint."""

    def begun(self) -> tuple[ChainsState, Columns] | None:
        """The chains and their draws so far, where there are any."""
        ...

    def due(self, draw: int) -> bool:
        """Whether to keep the chains after so many transitions."""
        ...

    def keep(self, state: ChainsState, draws: Draws) -> None:
        """Keep them."""
        ...


class Draws:
    """Positions and statistics after the warm-up, as they come."""

    def __init__(self, report: Callable[[Tensor], dict[str, Tensor]] | None) -> None:
        self._report = report
        """The latents by name at positions (C, D), for each draw as it comes; None: they are made at the end."""
        self._parts: list[Columns] = []
        self._samples: dict[str, list[Tensor]] = {}
        self.count = 0

    def extend(self, columns: Columns) -> None:
        """The next draws of all chains."""
        if not (made := columns["q"].shape[1]):
            return
        self._parts.append(columns)
        self.count += made
        for draw in range(made if self._report is not None else 0):
            self._note(np.ascontiguousarray(columns["q"][:, draw]))

    def _note(self, q: Array) -> None:
        assert self._report is not None
        for name, value in self._report(arrays.from_numpy(q)).items():
            self._samples.setdefault(name, []).append(value)

    def columns(self) -> Columns:
        """All draws so far.  There is at least one."""
        if len(self._parts) > 1:
            joined = {name: np.concatenate([part[name] for part in self._parts], 1) for name in self._parts[0]}
            self._parts = [joined]
        return self._parts[0]

    def result(
        self, reported: Callable[[Array], dict[str, Tensor]], step_size: Array, remarks: list[str], advice: str | None
    ) -> MCMCResult:
        """What the chains give; `reported` names the latents at all positions (N, D) of one chain."""
        columns = self.columns()
        made = {name: arrays.from_numpy(column) for name, column in columns.items()}
        if self._report is not None:
            samples = {name: arrays.stack(values, 1) for name, values in self._samples.items()}
        else:
            # chain by chain: no chain's values depend on which others run beside it
            each = [reported(np.ascontiguousarray(of_chain)) for of_chain in columns["q"]]
            samples = {name: arrays.stack([values[name] for values in each]) for name in each[0]}
        return MCMCResult(
            samples,
            made["acceptance"].mean(1),
            made["diverging"].sum(1),
            arrays.tensor(step_size),
            made["depth"],
            made["steps"].long(),
            made["diverging"],
            made["log_density"],
            made["acceptance"],
            remarks,
            "raise target_accept" + (f", or {advice}" if advice else ""),
            energy=made["energy"],
        )
