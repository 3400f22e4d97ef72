"""Program steps at run time: a step runs on a frame, binds names and leaves records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from qvr_core.arrays.engine import TORCH, Tensor, is_tensor
from qvr_core.arrays.graph import current
from qvr_core.runtime.families.soundness import asked
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.chains.linear_recursion import linear_recursion
from qvr_core.runtime.programs.chains.recurrences import each_element, one_by_one
from qvr_core.runtime.programs.declared.parameters import ParamStep
from qvr_core.runtime.programs.execution import SiteKind, SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.forward_algorithm import HiddenChain
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.marginalize import Marginalize
from qvr_core.runtime.programs.site_classes import site_class
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import NonFinite, RuntimeProblem
from qvr_core.runtime.values.layout import regroup
from qvr_core.semantics.types.model.arrows import Density
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Product

if TYPE_CHECKING:
    from qvr_core.runtime.programs.chains.taped_recursion import TapedRecursion


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
        if is_tensor(pieces) and isinstance(self.space, Product):
            pieces = regroup(pieces, self.space.factors)
        if len(pieces) != len(self.names):
            raise RuntimeProblem(
                f"program `{frame.program}`: `let ({', '.join(self.names)})` binds {len(self.names)} names, "
                f"but there are {len(pieces)} values"
            )
        frame.bound.update({name: Cell(piece, cell.rows) for name, piece in zip(self.names, pieces, strict=True)})


class IndexedLet:
    """`let v[t : Time] = e from s`, several names by a pattern; a recursion runs element by element."""

    def __init__(self, step: LetModel, model: IndexedValue, parts: Parts) -> None:
        self.names = step.names
        self.exprs = model.values
        self.values = [compile_expr(value, parts) for value in model.values]
        self.starts = [[compile_expr(value, parts) for value in start] for start in model.starts]
        self.sizes = indexed.sizes_of(", ".join(step.names), model.indices, model.longest)
        self.lags = [model.lag(place) for place in range(len(step.names))]
        self.at = next((at for at, index in enumerate(model.indices) if index.lag), None)
        self.index = None if self.at is None else model.indices[self.at]
        self.recursive = model.recursive
        self.linear = linear_recursion(step.names, model, parts)
        self.taped = _taped(step.names, model, parts) if self.linear is None else None

    def run(self, frame: Frame) -> None:
        computed = asked()
        if computed is not None:
            computed.lets.update(zip(self.names, self.exprs, strict=True))
        if self.recursive:
            self._run_along(frame)
            return
        starts = self.starts or [[]] * len(self.names)
        for name, value, start, lag in zip(self.names, self.values, starts, self.lags, strict=True):
            frame.bound[name] = self._joined(value(frame), [first(frame) for first in start], lag)

    def _joined(self, cell: Cell, first: list[Cell], lag: int) -> Cell:
        sizes = list(self.sizes)
        if self.at is None or self.index is None:
            return Cell(indexed.full(cell.value, sizes, cell.rows), cell.rows)
        sizes[self.at] -= lag
        body = Cell(indexed.full(cell.value, sizes, cell.rows), cell.rows)
        return indexed.preceded(self._first(first, lag), body, self.at)

    def first_elements(self, frame: Frame) -> list[list[Cell]]:
        """What `from` gives of each name, each element with the axis of the index of length 1."""
        return [
            self._first([one(frame) for one in start], lag) for start, lag in zip(self.starts, self.lags, strict=False)
        ]

    def _first(self, first: list[Cell], lag: int) -> list[Cell]:
        """The first elements, each with the axis of the index of length 1."""
        assert self.at is not None
        sizes = [size for at, size in enumerate(self.sizes) if at != self.at]
        full = [Cell(indexed.full(cell.value, sizes, cell.rows), cell.rows) for cell in first]
        each = full * lag if len(full) == 1 else full
        return [Cell(cell.value.unsqueeze(self.at + int(cell.rows)), cell.rows) for cell in each]

    def _run_along(self, frame: Frame) -> None:
        assert self.at is not None and self.index is not None
        name, longest, size = self.index.name, max(self.lags), self.sizes[self.at]
        grown = [indexed.Growing.of(first, self.at, name) for first in self.first_elements(frame)]
        self._grow(frame, grown, range(self.index.lag, longest))
        # a recorded loop is a loop
        together = None if current() is not None else self.linear or self.taped
        solved = None
        if together is not None:
            firsts = [[Cell(element, made.rows) for element in made.elements] for made in grown]
            frame.windows[name] = (longest, size - longest)
            solved = together.solve(frame, firsts, self.sizes)
            del frame.windows[name]
        if solved is not None:
            frame.bound.update(zip(self.names, solved, strict=True))
            return
        self._grow(frame, grown, range(longest, size))
        for own, made in zip(self.names, grown, strict=True):
            frame.bound[own] = Cell(made.whole(), made.rows)

    def _grow(self, frame: Frame, grown: list[indexed.Growing], elements: range) -> None:
        """Some more elements of each name, of those that have begun."""
        assert self.index is not None
        sizes = [1 if at == self.at else size for at, size in enumerate(self.sizes)]
        begun = dict(zip(self.names, grown, strict=True))
        all_begun = elements.start >= max(self.lags)

        def turn(element: Any) -> Sequence[Tensor]:
            for name, value, lag in zip(self.names, self.values, self.lags, strict=True):
                if all_begun or element >= lag:
                    cell, made = value(frame), frame.bound[name].value
                    assert isinstance(made, indexed.Growing)
                    made.add(Cell(indexed.full(cell.value, sizes, cell.rows), cell.rows))
                    frame.bound[name] = Cell(made, made.rows)
            return ()

        along = each_element if all_begun else one_by_one
        along(frame, self.index.name, begun, elements, turn)


def _taped(names: tuple[str, ...], model: IndexedValue, parts: Parts) -> TapedRecursion | None:
    """The recursion as a loop of torch's, where that is the engine."""
    if not TORCH:
        return None
    from qvr_core.runtime.programs.chains.taped_recursion import taped_recursion

    return taped_recursion(names, model, parts)


class Later:
    """A step that a fit does not know of: a `predict`, or a let that reads one."""

    def __init__(self, step: Step, site: ArrowSite | FamilySite | None = None) -> None:
        self.step = step
        self.site = site
        self.name = None if site is None else site.name

    def run(self, frame: Frame) -> None:
        if not frame.request.predicting:
            return
        self.step.run(frame)
        if self.site is not None:
            record = frame.sites[self.site.name]
            record.log_prob = record.log_innovations = record.log_noise = record.log_discrete = None


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
    if isinstance(site.draw, ArrowDraw):
        return ArrowSite(site, kind, program, parts)
    return site_class(site)(site, kind, program, parts)


def make_step(step: StepModel, program: str, parts: Parts) -> Step:
    """The run-time step of a typed one."""
    match step:
        case SampleModel(site=site):
            return make_site(site, "sample", program, parts)
        case ObserveModel(site=site):
            return make_site(site, "observe", program, parts)
        case PredictModel(site=site):
            made = make_site(site, "predict", program, parts)
            return Later(made, made)
        case LetModel(indexed=IndexedValue() as model):
            return IndexedLet(step, model, parts)
        case LetModel():
            return LetStep(step, parts)
        case ParamModel():
            return ParamStep(step)
        case ScoreModel():
            return ScoreStep(step, parts)
        case MarginalizeModel(reads=tuple()):
            return _hidden_chain(step, program, parts)
        case MarginalizeModel():
            body = make_steps(step.body, program, parts)
            return Marginalize(step, make_site(step.site, "sample", program, parts), body)


def _hidden_chain(step: MarginalizeModel, program: str, parts: Parts) -> HiddenChain:
    """A block with indices, and those inside it."""
    lets = make_steps([one for one in step.body if isinstance(one, LetModel)], program, parts)
    inner = [_hidden_chain(one, program, parts) for one in step.body if isinstance(one, MarginalizeModel)]
    return HiddenChain(step, lets, program, parts, inner)


def make_steps(steps: Sequence[StepModel], program: str, parts: Parts, predicted: Collection[str] = ()) -> list[Step]:
    """All run-time steps of a block; `predicted` are the names that only exist after the fit."""
    return [
        Later(made) if isinstance(step, LetModel) and any(name in predicted for name in step.names) else made
        for step, made in ((step, make_step(step, program, parts)) for step in steps)
    ]
