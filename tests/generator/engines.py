"""What runs a case: a text, data and latents in; log densities out, with the values that these are of.

`Torch` scores the case's own latents.  `Nuts` is the density that a chain explores: at unconstrained positions, less
the measured Jacobian; its gradient is compared with finite differences.  `Prior` draws everything and scores it.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from qvr_core.dsl import CheckFailed, loads
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.runtime.programs.handlers import by_rows, condition, pointwise, seed, substitute, unconstrained
from qvr_core.runtime.values.errors import CountOverflow, InputProblem
from tests.generator.interpreter import Interpreter
from tests.generator.sets import Table, far, places
from tests.generator.steps import Case, Data, Site

Array = NDArray[np.float64]


class Refused(Exception):
    """The checker has errors of a case."""


class NotForThis(Exception):
    """A case that an engine has nothing to say of."""


class Wrong(Exception):
    """What an engine says contradicts itself: a gradient, a shape."""


@dataclass(frozen=True)
class Answer:
    """What an engine says of a case: a log density a row, the values that it is of, and the log densities of observed
    elements (rows first)."""

    total: list[float]
    rows: list[dict[str, Table]]
    pointwise: dict[str, Array] = field(default_factory=dict[str, Array])
    drawn: bool = False
    """Whether observed values were drawn, so that none is censored."""


class Engine(Protocol):
    """Something that scores programs."""

    name: str

    def score(self, case: Case) -> Answer:
        """Raises `Refused` where the case does not check, `NotForThis` where there is nothing to compare."""
        ...


def whole(case: Case) -> frozenset[str]:
    """The data that are whole numbers."""
    found: set[str] = set()
    sets = {each.name for each in case.sets}
    for step in case.all_steps():
        if isinstance(step, Data) and (step.of in sets or step.of in ("Nat", "Bool")):
            found.add(step.name)
        if isinstance(step, Site) and step.draw.row.discrete:
            found.add(step.name)
    return frozenset(found)


def tensor(table: Table, is_whole: bool) -> torch.Tensor:
    """A table as a tensor, whole numbers as such."""
    value = torch.from_numpy(table.array())
    return value.long() if is_whole and not bool(value.isnan().any()) else value


def loaded(case: Case) -> Any:
    """The program of a case."""
    try:
        return loads(case.text, data=data_of(case)).morphism if case.open else _loaded(case.text)
    except CheckFailed as problem:
        raise Refused(str(problem)) from problem


@lru_cache(maxsize=2)
def _loaded(text: str) -> Any:
    """What several engines ask for."""
    return loads(text).morphism


def data_of(case: Case, but: frozenset[str] = frozenset()) -> dict[str, torch.Tensor]:
    """The data of a case as tensors."""
    counts = whole(case)
    return {name: tensor(table, name in counts) for name, table in case.data.items() if name not in but}


def table_of(value: torch.Tensor) -> Table:
    return Table.of(value.detach().double().numpy())


def filled(case: Case, name: str, cells: torch.Tensor) -> Table:
    """The data of an observed step whose missing cells have values, in order; what does not exist has none."""
    table, numbers = case.data[name], iter(cells.detach().double().tolist())
    step = next(s for s in case.all_steps() if isinstance(s, Site) and s.name == name)
    lacks = {at for at, x in table.cells.items() if math.isnan(x) and step.reaches(at, case.data)}
    return Table(table.shape, {at: next(numbers) if at in lacks else x for at, x in table.cells.items()})


class Torch:
    """The runtime, at the latents of the case; missing cells that are latents move by unconstrained numbers."""

    name = "torch"

    def score(self, case: Case) -> Answer:
        model = loaded(case)
        data, count = data_of(case), len(case.rows)
        latents = {n: torch.stack([tensor(row[n], False) for row in case.rows]) for n in case.rows[0]}
        shapes = model.missing_shapes(data)
        numbers = torch.Generator().manual_seed(case.seed)
        free = {n: torch.randn(count, *shape, generator=numbers, dtype=torch.float64) for n, shape in shapes.items()}
        given = (condition(data), substitute(latents), unconstrained(free))
        run = model.run(None, *given, by_rows(count), pointwise)
        each = {
            name: site.pointwise.detach().double().expand(count, *site.pointwise.shape[1:]).numpy()
            for name, site in run.sites.items()
            if site.kind == "observe" and site.pointwise is not None
        }
        rows = [
            {**row, **{n: filled(case, n, run.sites[n].imputed[k]) for n in shapes}} for k, row in enumerate(case.rows)
        ]
        return Answer([float(x) for x in run.log_joint().expand(count)], rows, each)


STEP = 1e-3
STENCIL = ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0))
"""Offsets and weights of the difference of fourth order, over 12 steps."""


class Nuts:
    """The density on unconstrained coordinates, less the logarithm of the measured volume."""

    name = "nuts"

    def score(self, case: Case) -> Answer:
        model = loaded(case)
        if any(isinstance(s, Site) and s.kind == "sample" and s.draw.row.discrete for s in case.all_steps()):
            raise NotForThis
        data = data_of(case)
        potential = ProgramPotential(model, None, data)
        potential.record = False
        width = potential.width
        numbers = torch.Generator().manual_seed(case.seed)
        q = torch.rand(1, width, generator=numbers, dtype=torch.float64) * 2.0 - 1.0
        around = torch.cat([q, *(q + k * STEP * torch.eye(width, dtype=torch.float64) for k, _ in STENCIL)])
        with torch.no_grad():
            run, total = potential.run(around)
        total = total.double().expand(len(around))
        value, gradient = potential.value_and_grad(q)
        moved = {b.coordinate.site: self._numbers(run, b.coordinate.site) for b in potential.blocks}
        resting = self._resting(case, potential, moved, around)
        row: dict[str, Table] = {}
        for name in moved:
            site = run.sites[name]
            row[name] = filled(case, name, site.imputed[0]) if site.kind == "observe" else table_of(site.value[0])
        defined = bool(torch.isfinite(gradient).all()) or not Interpreter(case, row).meets_infinity()
        if math.isfinite(float(value)) and not far(row) and defined:
            self._gradient(potential, q, total, gradient)
        return Answer([float(value) - self._volume(potential, moved, width) - resting], [row])

    @staticmethod
    def _resting(
        case: Case, potential: ProgramPotential, moved: dict[str, torch.Tensor], around: torch.Tensor
    ) -> float:
        """The density of the numbers of elements that do not exist, standard Normals which move nothing but themselves:
        these stand for the elements in `moved`."""
        total = 0.0
        steps = [s for s in case.all_steps() if isinstance(s, Site) and s.kind == "sample"]
        ending = {s.name: s for s in steps if s.lengths is not None}
        for block in potential.blocks:
            name = block.coordinate.site
            if name not in ending:
                continue
            free = around[:, block.start : block.stop].reshape(moved[name].shape)
            beyond = [at for at in places(ending[name].axes) if not ending[name].reaches(at, case.data)]
            moved[name] = moved[name].detach().double().clone()
            for at in beyond:
                moved[name][:, *at] = free[:, *at]
                total -= 0.5 * (float(free[0, *at]) ** 2 + math.log(2.0 * math.pi))
        return total

    @staticmethod
    def _numbers(run: Any, name: str) -> torch.Tensor:
        site = run.sites[name]
        return site.imputed if site.kind == "observe" else site.value

    def _gradient(
        self, potential: ProgramPotential, q: torch.Tensor, total: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        """Raises `Wrong` where autograd and differences do not agree, on two scales."""
        if not bool(torch.isfinite(gradient).all()):
            raise Wrong(f"the gradient is {gradient.tolist()} where the density is {float(total[0])}")
        slope = self._slope(total, STEP)
        off = (slope - gradient[0]).abs() > 1e-6 * (1.0 + gradient[0].abs() + 1e-3 * total[0].abs())
        if not bool(off.any()) or not bool(torch.isfinite(slope).all()):
            return
        # a kink nearby is no kink nearer; where the density has few digits, slopes do not agree among themselves
        wider, slope = (self._slope(self._around(potential, q, step), step) for step in (STEP / 8, STEP / 64))
        off = (slope - gradient[0]).abs() > 1e-5 * (1.0 + gradient[0].abs() + 1e-2 * total[0].abs())
        off &= (slope - wider).abs() < 0.1 * (slope - gradient[0]).abs()
        if bool(off.any()):
            raise Wrong(f"the gradient {gradient[0][off].tolist()} is by differences {slope[off].tolist()}")

    @staticmethod
    def _around(potential: ProgramPotential, q: torch.Tensor, step: float) -> torch.Tensor:
        """The density at a position and beside it."""
        width = potential.width
        positions = torch.cat([q, *(q + k * step * torch.eye(width, dtype=torch.float64) for k, _ in STENCIL)])
        with torch.no_grad():
            return potential.run(positions)[1].double().expand(len(positions))

    @staticmethod
    def _slope(total: torch.Tensor, step: float) -> torch.Tensor:
        parts = total[1:].reshape(len(STENCIL), -1)
        weights = torch.tensor([w for _, w in STENCIL], dtype=torch.float64)
        return (weights.unsqueeze(-1) * parts).sum(0) / (12.0 * step)

    def _volume(self, potential: ProgramPotential, moved: dict[str, torch.Tensor], width: int) -> float:
        """log |∂values / ∂coordinates| by differences, a vector on the simplex by all its entries but the last."""
        columns: list[torch.Tensor] = []
        for block in potential.blocks:
            value = moved[block.coordinate.site].detach().double()
            if block.coordinate.support.kind == "simplex":
                value = value[..., :-1]
            columns.append(value.reshape(len(value), -1))
        flat = torch.cat(columns, -1)
        if flat.shape[-1] != width:
            raise Wrong(f"{flat.shape[-1]} numbers are moved by {width}")
        parts = flat[1:].reshape(len(STENCIL), width, width)
        weights = torch.tensor([w for _, w in STENCIL], dtype=torch.float64).reshape(-1, 1, 1)
        return float(torch.linalg.slogdet((weights * parts).sum(0) / (12.0 * STEP)).logabsdet)


class Prior:
    """Everything drawn, and scored where it was drawn."""

    name = "prior"
    count = 2

    def score(self, case: Case) -> Answer:
        if case.open:
            raise NotForThis  # their data are there, with the observed
        model = loaded(case)
        steps = [s for s in case.all_steps() if isinstance(s, Site)]
        if any(s.draw.row.name == "Flat" or (s.kind == "observe" and s.lag) for s in steps):
            raise NotForThis  # improper, or its first elements are given
        observed = frozenset(s.name for s in steps if s.kind == "observe")
        data = data_of(case, observed)
        numbers = torch.Generator().manual_seed(zlib.crc32(str(case.seed).encode()))
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            run = model.run(None, condition(data), by_rows(self.count), seed(numbers))
        except CountOverflow as problem:
            raise NotForThis from problem  # a prior so wide that its counts have no number
        except InputProblem as problem:
            if "with something of" not in str(problem):
                raise
            raise NotForThis from problem  # or that nothing is left of it between bounds
        finally:
            torch.set_default_dtype(before)
        rows: list[dict[str, Table]] = [{} for _ in range(self.count)]
        for step in steps:
            value = run.sites[step.name].value
            shape = (*(a.size for a in step.axes), *((step.event,) if step.event else ()))
            if step.style != "silent" and tuple(value.shape) != (self.count, *shape):
                raise Wrong(f"`{step.name}` is drawn of shape {tuple(value.shape)}, for {(self.count, *shape)}")
            if "missing=drop" in step.words and bool(value.isnan().any()):
                raise NotForThis  # drawn around the mean of nothing, it would stand for a missing cell
            for k in range(self.count):
                rows[k][step.name] = table_of(value[k])
        return Answer([float(x) for x in run.log_joint().expand(self.count)], rows, drawn=True)
