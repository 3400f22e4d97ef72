"""Program steps at run time: a step runs on a frame, binds names and leaves records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from qvr_core.runtime.families.soundness import asked
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.execution import SiteKind, SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.marginalize import Marginalize
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import NonFinite, RuntimeProblem
from qvr_core.runtime.values.layout import regroup
from qvr_core.semantics.types.model import (
    ArrowDraw,
    Density,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Product


class Step(Protocol):
    """One step of a program."""

    def run(self, frame: Frame) -> None:
        """Run on a frame: bind names, leave records."""
        ...


class LetStep:
    """`let v = e`, `let (a, b) = e`."""

    def __init__(self, step: LetModel, parts: Parts) -> None:
        self.names = step.names
        self.space = step.value.type.space
        self.expr = step.value
        self.value = compile_expr(step.value, parts)

    def run(self, frame: Frame) -> None:
        cell = self.value(frame)
        computed = asked()
        if computed is not None:
            computed.lets.update(dict.fromkeys(self.names, self.expr))
        if len(self.names) == 1:
            frame.bound[self.names[0]] = cell
            return
        pieces = cell.value
        if isinstance(pieces, Tensor) and isinstance(self.space, Product):
            pieces = regroup(pieces, self.space.factors)
        if len(pieces) != len(self.names):
            raise RuntimeProblem(
                f"program `{frame.program}`: `let ({', '.join(self.names)})` binds {len(self.names)} names, "
                f"but there are {len(pieces)} values"
            )
        frame.bound.update({name: Cell(piece, cell.rows) for name, piece in zip(self.names, pieces, strict=True)})


class ScoreStep:
    """`score s = e`."""

    def __init__(self, step: ScoreModel, parts: Parts) -> None:
        self.name = step.name
        self.expr = step.value
        self.value = compile_expr(step.value, parts)

    def run(self, frame: Frame) -> None:
        cell = self.value(frame)
        computed = asked()
        cause = None if computed is None else computed.cause(self.expr)
        if cause is not None:
            message = f"`{frame.program}`, score `{self.name}`: {cause.words}"
            raise NonFinite(message, site=cause.step or self.name, origin=cause.origin)
        frame.bound[self.name] = cell
        frame.sites[self.name] = SiteRecord(
            self.name, "score", True, cell.value, score_per_row(cell, frame.rows), None, {}, Density("deterministic")
        )


def score_per_row(cell: Cell, rows: int) -> Tensor:
    """A score, summed over everything but the rows, (B,)."""
    if not cell.rows:
        return cell.value.sum().expand(rows)
    return cell.value if cell.value.ndim == 1 else cell.value.flatten(1).sum(-1)


def make_site(site: Site, kind: SiteKind, program: str, parts: Parts) -> ArrowSite | FamilySite:
    """The run-time site of a sample or observe step."""
    made = ArrowSite if isinstance(site.draw, ArrowDraw) else FamilySite
    return made(site, kind, program, parts)


def make_step(step: StepModel, program: str, parts: Parts) -> Step:
    """The run-time step of a typed one."""
    match step:
        case SampleModel(site=site):
            return make_site(site, "sample", program, parts)
        case ObserveModel(site=site):
            return make_site(site, "observe", program, parts)
        case LetModel():
            return LetStep(step, parts)
        case ScoreModel():
            return ScoreStep(step, parts)
        case MarginalizeModel():
            body = make_steps(step.body, program, parts)
            return Marginalize(step, make_site(step.site, "sample", program, parts), body)


def make_steps(steps: Sequence[StepModel], program: str, parts: Parts) -> list[Step]:
    """All run-time steps of a block."""
    return [make_step(step, program, parts) for step in steps]
