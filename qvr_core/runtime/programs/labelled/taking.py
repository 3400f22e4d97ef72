"""What callers give a program, as the plain values that it computes with: labelled arrays go where tensors do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.runtime.programs.labelled.aligning import Alignment, plain
from qvr_core.runtime.programs.labelled.arrays import Labels, columns, is_table, labelled, library
from qvr_core.runtime.programs.labelled.axes import Axis, data_axes, let_axes, site_axes
from qvr_core.runtime.values.arrow import Value
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem
from qvr_core.runtime.values.indices import recording
from qvr_core.runtime.values.layout import Where, blocks, prepare
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Finite, Named, Space
from qvr_core.semantics.types.walk import all_steps


class Taking(nn.Module):
    """The door of a program module for values from outside."""

    name: str
    program: Program
    readable: frozenset[str]
    domain: Named
    placed: Callable[[Any], Any]
    _checked: tuple[int, int] | None = None

    def taken(self, given: Any) -> dict[str, Any]:
        """Values by name as tensors and numbers, along the sets of the program.

        `given` is a mapping from names to arrays of torch, numpy, polars, pandas or xarray, numbers and lists; or one
        frame, or an xarray.Dataset such as `idata.posterior`, of which the names that the program has are taken.
        Raises `InputProblem` where labels are not those of the program.
        """
        if given is None:
            return {}
        if not is_table(given) and not any(library(value) for value in given.values()):
            return dict(given)
        alignment = Alignment(self.name, frozenset(self._sets))
        if not is_table(given):
            return {name: self._one(name, value, alignment) for name, value in given.items()}
        found = columns(given)
        values = {name: value for name, value in found.items() if name in self.readable}
        if not values and found:
            raise InputProblem(f"`{self.name}` has {_listed(self.readable)}, and the table has {_listed(found)}")
        rows = None if hasattr(given, "data_vars") else self._label_columns(found)
        return {name: self._one(name, value, alignment, rows) for name, value in values.items()}

    def _label_columns(self, found: Mapping[str, Any]) -> dict[str, Labels]:
        """The labels of the rows by set, from columns that are called as a set with labels."""
        names = {plain(name): name for name, labels in self._sets.items() if labels is not None}
        own = {names[plain(column)]: column for column in found if plain(column) in names}
        return {
            name: tuple(map(str, np.asarray(found[column]).tolist()))
            for name, column in own.items()
            if column not in self.readable
        }

    def _one(self, name: str, value: Any, alignment: Alignment, rows: Mapping[str, Labels] | None = None) -> Any:
        """`rows` are the labels of the rows of the frame that a value is a column of, by set."""
        if library(value) is None:
            return value
        given = labelled(value, name)
        axes = self.set_axes.get(name, ())
        if rows and len(axes) > 1:
            raise InputProblem(
                f"`{self.name}`, `{name}`: a long table is read where the program is loaded, `load(path, data=frame)`",
                site=name,
            )
        if rows is not None and axes and (axes[0].name in rows or axes[0].labels is None):
            # rows of one frame keep their order among themselves, whatever its index is
            given = replace(given, labels=(rows.get(str(axes[0].name)),), index=False)
        values = alignment.aligned(name, given, axes, self.program.uses_input)
        values = alignment.positions(name, values, self._members.get(name))
        return self._plain(name, np.array(values))

    def _plain(self, name: str, values: Any) -> Any:
        """A tensor in the precision of the parameters; without any, numbers of no declared type wait for the run's."""
        if values.dtype.kind in "iub":
            return arrays.as_tensor(values if values.dtype.kind == "b" else values.astype(np.int64))
        like = next((p for p in self.parameters() if p.is_floating_point()), None)
        if like is None and name not in self._declared and name in self.readable:
            return values.astype(np.float64)
        return arrays.as_tensor(values).to(arrays.float64 if like is None else like.dtype)

    def taken_input(self, x: Any) -> Any:
        """An input of another library as tensors: rows first, the columns of a frame by the names of the inputs."""
        if library(x) is None:
            return x
        names = [entry.name for entry in self.program.inputs]
        if is_table(x) and len(names) > 1 and all(name is not None for name in names):
            found = columns(x)
            lacking = next((name for name in names if name not in found), None)
            if lacking is not None:
                raise InputProblem(f"`{self.name}`: the input `{lacking}` is none of the columns: {_listed(found)}")
            return tuple(_tensor(found[str(name)], str(name)) for name in names)
        return _tensor(x, "the input")

    def input(self, x: object) -> Value | None:
        """The input in normal form, checked; None where the program does not use it."""
        try:
            return self._input(x)
        except RuntimeProblem as problem:
            self.placed(problem)
            raise

    def _input(self, x: object) -> Value | None:
        if not self.program.uses_input:
            return None
        x, where = self.taken_input(x), Where(self.name, "the input")
        if x is None:
            raise InputProblem(f"`{self.name}` uses its input: give rows of {self.domain.written}, not None")
        if is_tensor(x) and not recording():
            # the same tensor is checked once, however often a loop passes it
            key = (id(x), x._version)
            if key == self._checked and self._last is x:
                return self._prepared
            self._prepared = prepare(self.domain.space, x, where)
            self._checked, self._last = key, x
            return self._prepared
        return prepare(self.domain.space, x, where)

    _last: Tensor | None = None
    _prepared: Value | None = None

    def unread_rows(self, x: object) -> int | None:
        """Rows of an input that no step reads: a real one still says how many there are, an index says nothing."""
        if self.program.uses_input or not is_tensor(x) or x.dim() < 2:
            return None
        return x.shape[0] if all(not block.finite for block in blocks(self.domain.space)) else None

    @cached_property
    def _declared(self) -> frozenset[str]:
        return frozenset(item.name for item in self.program.data if item.declared)

    @cached_property
    def set_axes(self) -> dict[str, tuple[Axis, ...]]:
        """The sets that data, lets and sites run over, as far as the program says."""
        return data_axes(self.program) | let_axes(self.program) | site_axes(self.program)

    @cached_property
    def _sets(self) -> dict[str, Labels]:
        """Every set that something runs over, with its labels."""
        every = (axis for axes in self.set_axes.values() for axis in axes if axis.name is not None)
        return {str(axis.name): None if axis.labels is None else tuple(map(str, axis.labels)) for axis in every}

    @cached_property
    def _members(self) -> dict[str, Labels]:
        """The labels of the sets that data and observed values are elements of."""
        found = {item.name: _labels(item.type.space) for item in self.program.data}
        for step in all_steps(self.program.steps):
            site = getattr(step, "site", None)
            if site is not None and isinstance(site.draw, FamilyDraw) and site.element is not None:
                found[site.name] = _labels(site.element.space)
        return found


def _labels(space: Space | None) -> Labels:
    return space.labels if isinstance(space, Finite) else None


def _tensor(value: Any, name: str) -> Tensor:
    found = arrays.as_tensor(np.array(labelled(value, name).values))
    return found.to(precision()) if found.is_floating_point() else found.long()


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
