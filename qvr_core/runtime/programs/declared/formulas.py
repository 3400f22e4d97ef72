"""The formulas of a declared family, compiled: expressions of one element, evaluated for all at once.

A formula of numbers alone is computed on the tensors as they are.  Where vectors are in it, the batch becomes the row
axis of a frame (`runtime.values.cells`), so every operation of arithmetic means what it means in a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.operations.table import having
from qvr_core.runtime.families import RuntimeFamily
from qvr_core.runtime.families.random_draws import Shape
from qvr_core.runtime.programs.arguments import Aligned, joint_shape
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.execution import Request
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.site_shapes import sizes
from qvr_core.runtime.values.cells import Cell, as_one
from qvr_core.runtime.values.precision import computing_in, precision
from qvr_core.semantics.language.builtins import BUILTINS, COMPARISONS, OPERATORS, canonical
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Constant, Expr
from qvr_core.semantics.types.model.families import DeclaredFamily, FamilyDraw, InnerDraw
from qvr_core.semantics.types.spaces import Finite, Real, Space
from qvr_core.semantics.types.walk import operands, walk

Values = Mapping[str, tuple[Tensor, int]]
"""The values of names, each with how many of its last axes are one element's."""

_BREAKS = COMPARISONS | having("jumps")
"""Functions whose values jump: the gradient of a draw is not that of its mean any more."""


class Formulas:
    """All formulas of one family."""

    def __init__(self, declared: DeclaredFamily, parts: Parts, family: Callable[[FamilyDraw], RuntimeFamily]) -> None:
        self.declared = declared
        self.lets = [(name, value, compile_expr(value, parts)) for name, value in declared.lets]
        written = [one.value for one in (declared.density, declared.cdf, declared.log_survival) if one is not None]
        written += [] if declared.draw is None else [declared.draw]
        if declared.standard is not None:
            written += [one for one in (declared.standard.shift, declared.standard.factor) if one is not None]
        self.compiled = {id(value): compile_expr(value, parts) for value in written}
        self.inner = [_Inner.of(one, parts, family) for one in declared.drawn]
        self.plain = {id(value): self._is_plain(value) for value in written}
        self.needed = {id(value): self._needed(value) for value in written}

    @property
    def smooth(self) -> bool:
        """Whether the gradient of a draw is that of what is drawn."""
        if self.declared.draw is None:
            return False
        formulas = [self.declared.draw, *(value for _, value, _ in self.lets)]
        formulas += [value for inner in self.declared.drawn for _, value in inner.draw.args]
        jumps = any(isinstance(one, Builtin) and canonical(one.function) in _BREAKS for one in _parts(formulas))
        drawn = all(inner.family.reparameterised and not inner.family.facts.discrete for inner in self.inner)
        return drawn and not jumps

    def _needed(self, value: Expr) -> frozenset[str]:
        """The lets that an expression is computed from."""
        names = {one.name for one in _parts([value]) if isinstance(one, Bound)}
        for name, expr, _ in reversed(self.lets):
            if name in names:
                names |= {one.name for one in _parts([expr]) if isinstance(one, Bound)}
        return frozenset(names)

    def _is_plain(self, value: Expr) -> bool:
        """Whether a formula is arithmetic of numbers alone."""
        spaces = [self.declared.space.space, *(one.space for one in self.declared.parameters)]
        if any(_is_vector(space) for space in spaces):
            return False
        needed = self._needed(value)
        formulas = [value, *(expr for name, expr, _ in self.lets if name in needed)]
        return all(_pointwise(part) for part in _parts(formulas))

    def value(self, formula: Expr, values: Values) -> Tensor:
        """A formula of one number for each element of the joint batch of its values."""
        dtype = _dtype(values)
        with computing_in(dtype):
            if self.plain[id(formula)]:
                frame = self._frame({name: Cell(value, False) for name, (value, _) in values.items()}, 1)
                self._bind_lets(formula, frame)
                return as_one(self.compiled[id(formula)](frame)).value
            batch = joint_shape([_front(value, own) for value, own in values.values()])
            frame = self._by_rows(values, batch)
            self._bind_lets(formula, frame)
            return _shaped(as_one(self.compiled[id(formula)](frame)), batch, 0)

    def drawn(self, values: Values, batch: Shape, generator: Generator | None) -> Tensor:
        """A draw for each element of a batch: (*batch, *event)."""
        formula = self.declared.draw
        assert formula is not None
        with computing_in(_dtype(values)):
            frame = self._by_rows(values, batch)
            for name, _, evaluate in self.lets:
                frame.bound[name] = evaluate(frame)
            for inner in self.inner:
                frame.bound[inner.name] = inner.cell(frame, generator)
            found = as_one(self.compiled[id(formula)](frame))
            return _shaped(found, batch, found.rank)

    def _bind_lets(self, formula: Expr, frame: Frame) -> None:
        for name, _, evaluate in self.lets:
            if name in self.needed[id(formula)]:
                frame.bound[name] = evaluate(frame)

    def _by_rows(self, values: Values, batch: Shape) -> Frame:
        return self._frame({name: _rows(value, own, batch) for name, (value, own) in values.items()}, math.prod(batch))

    def _frame(self, bound: dict[str, Cell], rows: int) -> Frame:
        frame = Frame(self.declared.name, Request(), rows, None, False, {}, bound=bound)
        device = next((cell.value.device for cell in bound.values()), None)
        frame.device = None if device is None or device.type == "cpu" else device
        return frame


@dataclass(frozen=True, slots=True)
class _Inner:
    """A draw inside of a formula; `event` is the shape of one, where its type says it."""

    name: str
    family: RuntimeFamily
    arguments: tuple[tuple[str, int, Evaluate], ...]
    event: Shape | None

    @staticmethod
    def of(inner: InnerDraw, parts: Parts, family: Callable[[FamilyDraw], RuntimeFamily]) -> _Inner:
        made = family(inner.draw)
        ranks = {name: one.rank for one in made.facts.parameters for name in (one.name, *dict(one.alternatives))}
        arguments = tuple((name, ranks[name], compile_expr(value, parts)) for name, value in inner.draw.args)
        space = inner.type.space
        event = sizes(space) if made.facts.event and space is not None else None
        return _Inner(inner.name, made, arguments, event or None)

    def cell(self, frame: Frame, generator: Generator | None) -> Cell:
        """A value for each row; over the axes of its arguments, which are drawn independently."""
        cells = {name: (as_one(evaluate(frame)), rank) for name, rank, evaluate in self.arguments}
        batch = joint_shape([cell.value.shape[int(cell.rows) : cell.value.ndim - own] for cell, own in cells.values()])
        aligned = Aligned(self.family, cells, any(cell.rows for cell, _ in cells.values()), batch)
        parameters = self.family.canonical({}) if not cells else aligned.canonical(len(batch))
        event = self.family.noise_event(parameters, self.event) or ()
        noise = self.family.fresh_noise((frame.rows, *batch, *event), generator, parameters)
        value = self.family.value_of(noise, parameters)
        return Cell(value.long() if self.family.facts.discrete else value, True)


def _parts(formulas: Sequence[Expr]) -> list[Expr]:
    return [part for formula in formulas for part in walk(formula, operands)]


def _is_vector(space: Space) -> bool:
    return not isinstance(space, Finite | Real) or (isinstance(space, Real) and space.shape != (1,))


def _pointwise(part: Expr) -> bool:
    if not isinstance(part, Builtin):
        return isinstance(part, Bound | Constant)
    name = canonical(part.function)
    rule = BUILTINS[name].rule if name in BUILTINS else ""
    return not part.keywords and (name in (*OPERATORS.values(), "neg") or rule in ("pointwise", "compare"))


def _dtype(values: Values) -> arrays.dtype:
    return next((value.dtype for value, _ in values.values() if value.is_floating_point()), precision())


def _front(value: Tensor, own: int) -> Shape:
    return tuple(value.shape[: value.ndim - own])


def _rows(value: Tensor, own: int, batch: Shape) -> Cell:
    """A value with the batch as its rows; one that is the same for all stays so."""
    front, element = _front(value, own), tuple(value.shape[value.ndim - own :])
    if all(size == 1 for size in front):
        return Cell(value.reshape(element), False)
    return Cell(value.expand(*batch, *element).reshape(-1, *element), True)


def _shaped(cell: Cell, batch: Shape, rank: int) -> Tensor:
    """What was computed by rows over the batch again."""
    value: Tensor = cell.value
    element = tuple(value.shape[value.ndim - rank :])
    return value.reshape((*batch, *element)) if cell.rows else value.expand((*batch, *element))
