"""Typed data as tensors: the elements of open sets, and the numbers of every name, read off tables and arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.needs import Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.sets_used import sets_used
from qvr_core.data.typed.filling import Filled
from qvr_core.data.typed.labels import Elements
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.order import check_ascending
from qvr_core.data.typed.sequence_ends import fill_sequences
from qvr_core.data.typed.sets import Sets
from qvr_core.data.typed.sources import Sources
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.shifts import shifted_sets


def known_sets(
    needs: Sequence[Need], sources: Sources, before: Mapping[str, KnownSet] | None = None
) -> dict[str, KnownSet]:
    """The open sets that the needs speak of, as the data tell them, or as they were `before` where these say nothing.
    Raises `DataProblem`."""
    held = {name: Elements(name, one.size, one.labels, sources.first) for name, one in (before or {}).items()}
    found = Sets(Layout(needs, sources), held).opened()
    return {name: KnownSet(elements.size, elements.labels) for name, elements in found.items()}


def whole_sets(
    found: Mapping[str, KnownSet], opened: Iterable[str], program: Program, model: Model
) -> dict[str, KnownSet]:
    """All open sets, of which the data tell those `found`.  Raises `DataProblem` where one that the program speaks of
    is not among them, or one that it shifts along is not in order."""
    used = sets_used(program, model)
    # what only other programs of the file speak of may have any size
    whole = {**found, **{name: KnownSet(1) for name in opened if name not in found and name not in used}}
    missing = [name for name in opened if name not in whole]
    if missing:
        raise DataProblem(
            f"nothing that `{program.name}` reads says what the elements of `{missing[0]}` are",
            path="the data",
            remedy=f"Declare what runs over it (`data x : {missing[0]}`), or give it a size",
        )
    check_ascending(whole, shifted_sets(program))
    return whole


def typed_tensors(
    needs: Sequence[Need], sources: Sources, opened: Sequence[Need] = (), *, dtype: arrays.dtype | None = None
) -> dict[str, Tensor]:
    """The numbers of all needs with a declared type, in the run's precision or `dtype`.  Raises `DataProblem`.

    `opened` are the needs as they were before the sizes of open sets were known; `needs` by default.
    """
    layout = Layout(opened or needs, sources)
    sets = Sets(layout)
    return {need.name: tensor_of(fill_sequences(need, layout, sets), dtype) for need in layout.needs}


def tensor_of(filled: Filled, real: arrays.dtype | None = None) -> Tensor:
    """int64 for elements, truth values and counts, `real` (the run's precision) for others, and where values are
    missing: they are NaN."""
    whole = filled.need.kind in ("finite", "count", "sentences") and not filled.missing
    dtype = arrays.int64 if whole else real or arrays.get_default_dtype()
    flat = [math.nan if number is None else number for number in filled.flat] if filled.missing else filled.flat
    return arrays.tensor(flat, dtype=dtype).reshape(filled.shape)


def undeclared(needs: Sequence[Need]) -> list[Need]:
    """The needs whose shape the data tell."""
    return [need for need in needs if need.axes is None]


def has_types(needs: Sequence[Need]) -> bool:
    """Whether any need has a declared or inferred type, so that the data are laid along its axes."""
    return any(need.axes is not None for need in needs)
