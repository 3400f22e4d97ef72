"""The arguments of a family at a site: evaluated, gathered by group, aligned by their batch axes.

An argument is (rows?, *batch, *parameter).  Batch axes broadcast from the right, as in torch; rows meet rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.families import RuntimeFamily
from qvr_core.runtime.families.parametrisations import logarithm
from qvr_core.runtime.families.soundness import asked, unsound
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.missing.stand_ins import StandIns
from qvr_core.runtime.values.cells import Cell, as_one, lead
from qvr_core.runtime.values.errors import NonFinite
from qvr_core.runtime.values.indices import IndexCheck
from qvr_core.runtime.values.layout import Where
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.arithmetic.broadcasting import axes, is_data
from qvr_core.semantics.language.builtins import ALIASES
from qvr_core.semantics.language.family import Parameter
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.model.expressions import Arrange, Builtin, Constant, Data, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site


def joint_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all broadcast to.  (`torch.broadcast_shapes` takes twenty microseconds.)"""
    joint: list[int] = []
    for shape in shapes:
        joint[:0] = [1] * (len(shape) - len(joint))
        for place, size in enumerate(reversed(shape), 1):
            if joint[-place] == 1:
                joint[-place] = size
            elif size not in (1, joint[-place]):
                raise ValueError(f"shapes {[tuple(s) for s in shapes]} do not broadcast")
    return tuple(joint)


class Argument:
    """One argument: its parameter's rank and how it is computed."""

    def __init__(self, parameter: Parameter, name: str, expr: Expr, parts: Parts) -> None:
        self.name = name
        self.rank = parameter.rank
        self.expr = expr
        own = axes(expr.type) or []
        self.leading = own[0][1] if own else None  # the set of its first axis, be it a plate's or a vector's own
        self.number = bool(own) and all(name is not None and indexed(name) for _, name in own)
        """Whether it is one number at each place of the step's indices."""
        self.evaluate = compile_expr(expr, parts)

    def cell(self, frame: Frame, event: tuple[int, ...] | None) -> Cell:
        """The value; a number where a vector is wanted stands for a vector of that number."""
        cell = as_one(self.evaluate(frame))
        if not cell.value.is_floating_point():
            # whole numbers: of their logarithm torch would make single precision
            cell = Cell(cell.value.to(precision()), cell.rows)
        if self.rank == 1 and event and (cell.rank == 0 or self.number):
            return Cell(cell.value.unsqueeze(-1).expand(*cell.value.shape, event[-1]), cell.rows)
        return cell

    def by_group(self, cell: Cell, groups: Cell, plate: str | None) -> bool:
        """True where the leading batch axis counts groups, so that rows must look their group up."""
        if cell.rank <= self.rank:
            return False
        length = cell.value.shape[1 if cell.rows else 0]
        if length != groups.value.shape[-1]:
            return True
        return self.leading is not None and self.leading != plate


@dataclass(slots=True)
class Aligned:
    """Arguments on one frame.  `batch` is their joint batch shape, `rows` whether any differs from row to row."""

    family: RuntimeFamily
    cells: dict[str, tuple[Cell, int]]
    rows: bool
    batch: tuple[int, ...]

    @property
    def first(self) -> Tensor:
        """The first argument: its device and dtype are those of all."""
        if not self.cells:
            return arrays.zeros((), dtype=precision())
        return next(iter(self.cells.values()))[0].value

    def canonical(self, rank: int) -> tuple[Tensor, ...]:
        """The parameters in the runtime's form, with `rank` batch axes after the row axis where they have rows."""
        return self.family.canonical(
            {
                name: lead(cell.value, rank + own) if cell.rows else cell.value
                for name, (cell, own) in self.cells.items()
            },
        )


class Arguments:
    """All arguments of one site."""

    def __init__(self, draw: FamilyDraw, family: RuntimeFamily, site: Site, where: Where, parts: Parts) -> None:
        self.family = family
        self.where = where
        over = site.element or site.plate
        self.plate = None if over is None else getattr(over.space, "nominal", None)
        named = [(_parameter(self.family, name), name, expr) for name, expr in draw.args]
        self.items = [
            Argument(p, *_as_computed(family, p, name, expr), parts) for p, name, expr in named if not p.sizes
        ]
        self.constraints = {p.name: p.constraint for p in self.family.facts.parameters}
        self.by_data = any(is_data(expr.type) for _, expr in draw.args)
        """True where only data tell the shape of an argument."""
        self.literal = all(isinstance(expr, Constant) for _, expr in draw.args)
        option = site.via if site.via is not None else site.at
        self.check_groups = IndexCheck(option.name if isinstance(option, Data) else None)
        self.stand_ins: StandIns | None = None
        self._made: tuple[Tensor, ...] | None = None
        self._made_as: tuple[arrays.device, arrays.dtype] | None = None

    def align(self, frame: Frame, event: tuple[int, ...] | None, groups: Cell | None) -> Aligned:
        """Evaluate on a frame; with `groups`, what is indexed by group is looked up per row."""
        with nullcontext() if self.stand_ins is None else self.stand_ins.read(frame):
            return self._aligned(frame, event, groups)

    def _aligned(self, frame: Frame, event: tuple[int, ...] | None, groups: Cell | None) -> Aligned:
        cells: dict[str, tuple[Cell, int]] = {}
        for item in self.items:
            cell = item.cell(frame, event)
            if groups is not None and item.by_group(cell, groups, self.plate):
                size = cell.value.shape[1 if cell.rows else 0]
                self.check_groups(frame.program, groups.value, size)
                try:
                    cell = take_groups(cell, groups)
                except IndexError as error:
                    raise self.where.misfit(f"groups 0 … {size - 1}", str(error)) from error
            cells[item.name] = (cell, item.rank)
        kinds = {cell.value.dtype for cell, _ in cells.values()}
        if len(kinds) > 1:
            # data in double precision beside numbers of the program: a product of matrices takes one format
            kind = reduce(arrays.promote_types, kinds)
            cells = {name: (Cell(cell.value.to(kind), cell.rows), rank) for name, (cell, rank) in cells.items()}
        shapes = [cell.value.shape[int(cell.rows) : cell.value.ndim - own] for cell, own in cells.values()]
        try:
            batch = joint_shape(shapes)
        except ValueError as error:
            sizes = ", ".join(f"{name} {tuple(shape)}" for name, shape in zip(cells, shapes, strict=True))
            raise self.where.misfit("arguments that fit together", sizes) from error
        return Aligned(self.family, cells, any(cell.rows for cell, _ in cells.values()), batch)

    def only(self, names: Collection[str]) -> Arguments:
        """Some of them alone."""
        made = copy(self)
        made.items = [item for item in self.items if item.name in names]
        made.literal = False
        return made

    def check(self, aligned: Aligned) -> None:
        """Raises `NonFinite` for an argument that is not finite, or outside what its family takes."""
        for item, (name, (cell, _)) in zip(self.items, aligned.cells.items(), strict=True):
            if (wrong := unsound(cell.value, self.constraints.get(name, "real"))) is not None:
                place = f"`{self.where.program}`, {self.where.part}"
                computed = asked()
                cause = None if computed is None else computed.cause(item.expr)
                if cause is not None:
                    what = f"{place}: its `{name}` is not finite, since {cause.words}"
                    raise NonFinite(what, site=cause.step or self.where.site, origin=cause.origin)
                raise NonFinite(f"{place}: its `{name}` {wrong}", site=self.where.site)

    def canonical(self, aligned: Aligned, rank: int) -> tuple[Tensor, ...]:
        """The parameters in the runtime's form; literal ones are made once."""
        if not self.literal:
            return aligned.canonical(rank)
        like = aligned.first.device, precision()
        if self._made is None or self._made_as != like:
            self._made, self._made_as = aligned.canonical(rank), like
        return self._made


def _parameter(family: RuntimeFamily, name: str) -> Parameter:
    """The parameter that an argument of this name gives, be it by another parametrisation."""
    return next(p for p in family.facts.parameters if name == p.name or name in dict(p.alternatives))


def _as_computed(family: RuntimeFamily, parameter: Parameter, name: str, expr: Expr) -> tuple[str, Expr]:
    """An argument as it is computed: a probability that is written `sigmoid(x)` is given by its logit x, from which
    nothing is lost where rounding makes it 1, and a rate that is written `exp(x)` by its logarithm."""
    logits = next((other for other, _ in parameter.alternatives if "logits" in other.split("_")), None)
    if name == parameter.name and parameter.constraint == "unit" and logits is not None:
        x = _within("sigmoid", expr)
        return (name, expr) if x is None else (logits, x)
    x = _within("exp", expr) if logarithm(name) in family.conversions else None
    return (name, expr) if x is None else (logarithm(name), x)


def _within(function: str, expr: Expr) -> Expr | None:
    """The x of `function(x)`, its axes where those of the expression are; None of anything else."""
    if isinstance(expr, Arrange):
        x = _within(function, expr.base)
        return None if x is None else replace(expr, base=x)
    if isinstance(expr, Builtin) and ALIASES.get(expr.function, expr.function) == function:
        return expr.args[0]
    return None


def take_groups(cell: Cell, groups: Cell) -> Cell:
    """Each row's group's entry: (G, …) becomes (N, …)."""
    index = groups.value
    if not cell.rows:
        return Cell(cell.value[index], groups.rows)
    if not groups.rows:
        return Cell(cell.value[:, index], True)
    row = arrays.arange(index.shape[0], device=index.device).unsqueeze(-1)
    return Cell(cell.value[row, index], True)
