"""Data that a program declares: what is given under their names is checked against the declared type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.programs.site_shapes import sizes
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.first_cause import first_true
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.layout import is_listing
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.data_text import data_text, missing_advice
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.sentences import PADDING
from qvr_core.semantics.types.spaces import Constrained, Finite, Real, Seq

ROUNDING = 1e-4
"""How far probabilities of a simplex may be from adding up to 1."""


class DeclaredData:
    """A name that a `data` step declares.

    A tensor is looked at once, however often a loop passes it.
    """

    def __init__(self, item: DataName, missing: bool | None = None, *, parsed: bool = False) -> None:
        """`missing` says whether values may be missing; None where they could not be observed either.  What is
        `parsed` holds sentences: numbers of words, padded behind their ends, or text and lists of words."""
        self.name = item.name
        self.missing = missing
        self.written = data_text(item.type, item.numbers, item.lengths)
        space = item.type.space
        element = space.item if isinstance(space, Seq) else space
        self.sequence = isinstance(space, Seq)
        self.whole = isinstance(element, Finite) or item.numbers == "count"
        self.size = _number(element.size) if isinstance(element, Finite) else None
        self.low, self.high = _bounds(element)
        self.parsed = parsed and self.sequence
        if self.parsed:
            # which words there are a lexicon says, and the deduction that has it
            self.low, self.high, self.size = float(PADDING), None, None
        self.simplex = isinstance(element, Constrained) and element.kind == "Simplex"
        plates = tuple(_number(size) for size in item.type.sizes)
        length = (None,) if self.sequence else ()
        own = () if element is None or isinstance(element, Finite) else sizes(element)
        self.shape: tuple[int | None, ...] = (*plates, *length, *(() if own == (1,) else own))
        self._single = own in ((), (1,))
        several = isinstance(element, Real) and len(own) > 2
        self._flattened = len(own) if several else 0
        """The sizes of an element that is given in its shape, and is one vector in programs; of two it stays the matrix
        that families and functions take."""
        self._seen: tuple[object, ...] | None = None
        self._given: object = None
        self._cell = Cell(arrays.zeros(()), False)

    def cell(self, value: Any, program: str, rows: int, reads_rows: bool) -> Cell:
        """What was given, in the declared form: int64 for indices, counts and truth values, else the run's precision.

        In a program that reads rows there may be one more axis in front, of `rows` entries.  Raises `InputProblem`.
        """
        if self.parsed and (is_listing(value) or isinstance(value, str)):
            return self._sentences(value, program)
        if not is_tensor(value):
            raise self._problem(program, "text" if isinstance(value, str) else type(value).__name__)
        state = (value._version, precision(), rows, reads_rows)
        if value is not self._given or state != self._seen:
            self._cell = self._checked(value, program, rows, reads_rows)
            self._given, self._seen = value, state
        return self._cell

    def _sentences(self, value: Sequence[Any] | str, program: str) -> Cell:
        """Text, or lists of words, as they stand: one sentence, or one for each element of the set."""
        if len(self.shape) == 1:
            if not isinstance(value, str) and any(map(is_listing, value)):
                raise self._problem(program, f"{len(value)} sentences")
            return Cell(value, False)
        if isinstance(value, str) or self.shape[0] not in (None, len(value)):
            raise self._problem(program, "one sentence" if isinstance(value, str) else f"{len(value)} sentences")
        return Cell([one.split() if isinstance(one, str) else one for one in value], False)

    def _checked(self, value: Tensor, program: str, rows: int, reads_rows: bool) -> Cell:
        extra = value.ndim == len(self.shape) + 1
        if extra and self._single and not reads_rows and value.shape[-1] == 1 and self._fits(value.shape[:-1]):
            return self._checked(value.squeeze(-1), program, rows, reads_rows)  # one number each, as a column
        if extra and not reads_rows and value.shape[0] == 1:
            value = value[0]  # as drawn: the one row of a program that reads none
        by_rows = extra and reads_rows and value.shape[0] == rows
        if not self._fits(value.shape[int(by_rows) :]):
            raise self._problem(program, f"shape {tuple(value.shape)}")
        if not (recording() or in_transform()):
            self._check_values(value, program)
        if self._flattened:
            value = value.flatten(-self._flattened)
        whole = self.whole and not (self.missing and value.is_floating_point())
        return Cell(value.long() if whole else value.to(precision()), by_rows)

    def _fits(self, shape: Sequence[int]) -> bool:
        known = zip(self.shape, shape, strict=False)
        return len(shape) == len(self.shape) and all(size in (None, found) for size, found in known)

    def _check_values(self, value: Tensor, program: str) -> None:
        if not value.numel():
            return
        if value.is_floating_point():
            gone = arrays.isnan(value)
            if not self.missing:
                self._refuse(gone, value, program, "missing")
            if self.whole:
                self._refuse((value != value.round()) & ~gone, value, program)
        if self.low is not None:
            self._refuse(value < self.low, value, program)
        if self.high is not None:
            self._refuse(value > self.high, value, program)
        if self.simplex and bool(((total := value.sum(-1)).sub(1).abs() > ROUNDING).any()):
            wrong = total[(total - 1).abs() > ROUNDING].flatten()[0]
            raise self._problem(program, f"probabilities that add up to {wrong.item():g}")

    def _refuse(self, wrong: Tensor, value: Tensor, program: str, what: str = "") -> None:
        if wrong.any():
            place = first_true(wrong)
            found = what or f"{value[wrong].flatten()[0].item():g}"
            advice = f"; {missing_advice(self.name)}" if what and self.missing is False else ""
            raise self._problem(program, (f"{found} at {place}" if place else found) + advice)

    def _problem(self, program: str, found: str) -> InputProblem:
        message = f"`{program}`, data `{self.name}`: expected {self.wanted} (`{self.written}`), found {found}"
        return InputProblem(message, site=self.name)

    @property
    def wanted(self) -> str:
        """The numbers that are wanted, and their shape, in words."""
        words = "whole numbers" if self.whole else "probabilities" if self.simplex else "numbers"
        if self.size is not None:
            words += f" 0 … {self.size - 1}"
        elif not self.simplex and self.low is not None:
            words += f" from {self.low:g}" + (f" to {self.high:g}" if self.high is not None else "")
        elif self.high is not None and not self.simplex:
            words += f" up to {self.high:g}"
        if not self.shape:
            return f"one of the {words}" if self.size is not None else f"one {words.replace('numbers', 'number')}"
        shape = ", ".join("…" if size is None else str(size) for size in self.shape)
        return f"{words} of shape ({shape}{',' if len(self.shape) == 1 else ''})"


def _number(size: object) -> int | None:
    return int(size) if isinstance(size, int) else None


def _bounds(element: object) -> tuple[float | None, float | None]:
    match element:
        case Finite(size=size):
            return 0.0, None if (count := _number(size)) is None else count - 1.0
        case Real(low=low, high=high):
            return low, high
        case Constrained(kind="Simplex"):
            return 0.0, None
        case _:
            return None, None
