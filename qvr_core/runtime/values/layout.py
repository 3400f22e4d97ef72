"""How values of a space lie in tensors, and how they are cut, joined and checked.

The normal form of a value: neighbouring real factors of a product are one tensor, each finite factor is an int64
tensor of its own; one part alone is that tensor, several are a tuple.  So `Real 64 * Real 64` and `Real 128` have
the same values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from typing_extensions import TypeIs

from qvr_core.arrays.engine import Tensor, arrays, broadcasting, is_tensor
from qvr_core.runtime.values.arrow import Value
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.indices import recording
from qvr_core.runtime.values.precision import precision
from qvr_core.runtime.values.term_tables import smallest_term, tables, unsound
from qvr_core.semantics.language.family_heads import event_width
from qvr_core.semantics.terms.written import TermProblem, table_width
from qvr_core.semantics.types.spaces import Constrained, Finite, Product, Real, Seq, Space, Terms


@dataclass(frozen=True, slots=True)
class Where:
    """The place that an error speaks of: a program or let, and an input, site or argument of it."""

    program: str | None = None
    part: str | None = None
    site: str | None = None

    def misfit(self, expected: str, found: str) -> InputProblem:
        """What was expected here, and what came."""
        place = ", ".join(word for word in (self.program and f"`{self.program}`", self.part) if word)
        return InputProblem(f"{place}{': ' if place else ''}expected {expected}, found {found}", site=self.site)


@dataclass(frozen=True, slots=True)
class Block:
    """One tensor of a value: `size` is the number of elements of a finite block, the width of a real one, and the
    columns of one of terms, (…, nodes, columns), which counts as finite."""

    finite: bool
    size: int
    sequence: bool
    terms: Terms | None = None


@lru_cache(maxsize=4096)
def factors(space: Space) -> tuple[Space, ...]:
    """The flat factors, a sequence of a product being a product of sequences."""
    match space:
        case Product():
            return tuple(inner for factor in space.factors for inner in factors(factor))
        case Seq(item=item):
            return tuple(Seq(inner) for inner in factors(item))
        case _:
            return (space,)


@lru_cache(maxsize=4096)
def blocks(space: Space) -> tuple[Block, ...]:
    """The tensors of a value in normal form."""
    merged: list[Block] = []
    for factor in factors(space):
        block = _block(factor)
        last = merged[-1] if merged else None
        if last and not last.finite and not block.finite and last.sequence == block.sequence:
            merged[-1] = Block(False, last.size + block.size, block.sequence)
        else:
            merged.append(block)
    return tuple(merged)


def _block(factor: Space) -> Block:
    sequence = isinstance(factor, Seq)
    item = factor.item if isinstance(factor, Seq) else factor
    while isinstance(item, Seq):
        item = item.item
    if isinstance(item, Terms):
        return Block(True, table_width(item), sequence, item)
    if isinstance(item, Finite):
        if not isinstance(item.size, int):
            raise TypeError(f"size is not known yet: {item}")
        return Block(True, item.size, sequence)
    return Block(False, event_width(item), sequence)


def width(space: Space) -> int:
    """|A|: the summed width of the real blocks; a finite block counts as one column."""
    return sum(1 if block.finite else block.size for block in blocks(space))


def real_only(space: Space) -> bool:
    """Whether a space has no finite block: its values are one tensor of floats (…, width)."""
    return not any(block.finite for block in blocks(space))


def parts(value: Value) -> tuple[Tensor, ...]:
    """The tensors of a value in normal form."""
    return value if isinstance(value, tuple) else (value,)


def from_parts(tensors: Sequence[Tensor]) -> Value:
    """The value in normal form of its tensors, at least one: the inverse of `parts`."""
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def join(values: Sequence[Value]) -> Value:
    """The product of values in normal form, itself in normal form."""
    flat = [part for value in values for part in parts(value)]
    merged: list[list[Tensor]] = []
    for part in flat:
        if merged and _joins(merged[-1][-1], part):
            merged[-1].append(part)
        else:
            merged.append([part])
    return from_parts([run[0] if len(run) == 1 else arrays.cat(_same_rows(run), dim=-1) for run in merged])


def _joins(left: Tensor, right: Tensor) -> bool:
    return left.is_floating_point() and right.is_floating_point() and left.dim() == right.dim()


def _same_rows(run: list[Tensor]) -> list[Tensor]:
    if len({part.shape[:-1] for part in run}) == 1:
        # nearly always: 3 us for two parts, where torch's broadcasting takes 50
        return run
    lead = broadcasting.broadcast_shapes(*(part.shape[:-1] for part in run))
    return [part if part.shape[:-1] == lead else part.expand(*lead, part.shape[-1]) for part in run]


def regroup(value: Value, targets: Sequence[Space]) -> list[Value]:
    """Cut a value of the product of `targets` into one value per target, each in normal form."""
    if len(targets) == 1:
        return [value]
    sources = parts(value)
    position, offset = 0, 0
    cut: list[Value] = []
    for target in targets:
        taken: list[Tensor] = []
        for block in blocks(target):
            source = sources[position]
            if block.finite:
                taken.append(source)
                position += 1
                continue
            taken.append(source[..., offset : offset + block.size])
            offset += block.size
            if offset >= source.shape[-1]:
                position, offset = position + 1, 0
        cut.append(from_parts(taken))
    return cut


def take_factor(space: Space, value: Value, index: int) -> Value:
    """The value of the factor at `index` of a product."""
    top = space.factors if isinstance(space, Product) else factors(space)
    return regroup(value, top)[index]


def lead_shape(value: Value, space: Space) -> tuple[int, ...]:
    """The axes before a value's own: (B,), (B, L) …, from the first part."""
    first, block = parts(value)[0], blocks(space)[0]
    return tuple(first.shape[: first.ndim - (2 if block.terms is not None else 0 if block.finite else 1)])


def dummy(space: Space, lead: tuple[int, ...], like: Tensor | None = None) -> Value:
    """A value of the right shape that takes no memory, to ask an arrow for the shapes of its noise."""
    device = like.device if like is not None else None
    made: list[Tensor] = []
    for block in blocks(space):
        if block.terms is not None:
            made.append(smallest_term(block.terms).to(device).expand(*lead, 1, block.size))
        elif block.finite:
            made.append(arrays.zeros((), dtype=arrays.int64, device=device).expand(lead))
        else:
            made.append(arrays.zeros((), device=device).expand(*lead, block.size))
    return from_parts(made)


# ---------------------------------------------------------------- values from outside


def is_listing(value: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Whether a value from outside is several, one after the other."""
    return isinstance(value, list | tuple)


def prepare(space: Space, value: object, where: Where) -> Value:
    """Bring a value from outside into normal form, checking rank, dtype, width and range.

    Accepts a tensor, a tuple, list or dict of tensors by factor, or one tensor with a column per finite factor and |A|
    columns per real one.  Raises `InputProblem` with what was expected and what came.
    """
    flat = factors(space)
    if isinstance(space, Terms):
        return terms_of(value, space, where)
    if isinstance(value, Mapping):
        value = _by_name(space, value, where)  # pyright: ignore[reportUnknownArgumentType]
    if is_listing(value):
        if len(value) != len(flat):
            top = space.factors if isinstance(space, Product) else (space,)
            if len(value) == len(top):
                return join([prepare(factor, item, where) for factor, item in zip(top, value, strict=True)])
            tensors = [item for item in value if is_tensor(item)]
            if len(value) == len(tensors) == len(blocks(space)):
                return from_parts(tensors)
            raise where.misfit(f"{len(flat)} tensors, one per factor", f"{len(value)}")
        return join([_prepare_factor(factor, item, where) for factor, item in zip(flat, value, strict=True)])
    tensor = _as_tensor(value, where)
    if len(flat) == 1:
        return _prepare_factor(flat[0], tensor, where)
    if any(isinstance(factor, Terms) for factor in flat):
        raise where.misfit(f"a value for each of {describe(space)}", _dtype_and_shape(tensor))
    widths = [1 if block.finite else block.size for block in map(_block, flat)]
    if tensor.dim() == 0 or tensor.shape[-1] != sum(widths):
        raise where.misfit(f"{sum(widths)} columns ({describe(space)})", _dtype_and_shape(tensor))
    if all(not _block(factor).finite for factor in flat):
        return _prepare_real(sum(widths), tensor, any(isinstance(f, Seq) for f in flat), where, space)
    columns = arrays.split(tensor, widths, dim=-1)
    return join([_column(factor, column, where) for factor, column in zip(flat, columns, strict=True)])


def _by_name(space: Space, value: Mapping[str, object], where: Where) -> list[object]:
    names = space.names if isinstance(space, Product) else (None,)
    missing = [name for name in names if name not in value]
    if missing or len(value) != len(names):
        wanted = ", ".join(f"`{name}`" for name in names)
        raise where.misfit(f"tensors named {wanted}", ", ".join(f"`{name}`" for name in value))
    return [value[name] for name in names if name is not None]


def _as_tensor(value: object, where: Where) -> Tensor:
    if is_tensor(value):
        return value
    try:
        return arrays.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise where.misfit("a tensor", type(value).__name__) from problem


def _column(factor: Space, column: Tensor, where: Where) -> Tensor:
    """A column of one tensor for all factors: whole numbers stand in a float tensor where a real factor is beside."""
    if not _block(factor).finite:
        return _prepare_factor(factor, column, where)
    column = column.squeeze(-1)
    if column.is_floating_point() and bool((column == column.round()).all()):
        column = column.long()
    return _prepare_factor(factor, column, where)


def _prepare_factor(factor: Space, value: object, where: Where) -> Tensor:
    if isinstance(factor, Terms):
        return terms_of(value, factor, where)
    tensor = _as_tensor(value, where)
    block = _block(factor)
    if not block.finite:
        return _prepare_real(block.size, tensor, block.sequence, where, factor, _shape(factor))
    rank = 2 if block.sequence else 1
    if tensor.dim() != rank or tensor.is_floating_point():
        axes = "(B, L)" if block.sequence else "(B,)"
        found = _dtype_and_shape(tensor)
        if where.part == "the input" and rank == 1 and tensor.dim() == 2 and not tensor.is_floating_point():
            # where no arrow of the body asks for a sequence, only the type can
            name = factor.nominal if isinstance(factor, Finite) and factor.nominal else f"({describe(factor)})"
            found += f"; of a sequence a row the program's type says so: `Seq {name}`"
        raise where.misfit(f"int64 {axes} ({describe(factor)})", found)
    if tensor.numel() and not recording():
        low, high = (int(bound) for bound in arrays.aminmax(tensor))
        if low < 0 or high >= block.size:
            bad = low if low < 0 else high
            raise where.misfit(f"indices 0 … {block.size - 1} ({describe(factor)})", f"index {bad}")
    return tensor if tensor.dtype == arrays.int64 else tensor.long()


def _prepare_real(
    size: int, tensor: Tensor, sequence: bool, where: Where, space: Space, shape: tuple[int, ...] = ()
) -> Tensor:
    if not tensor.is_floating_point():
        tensor = tensor.to(precision())
    rank = 3 if sequence else 2
    if len(shape) > 1 and tuple(tensor.shape[-len(shape) :]) == shape and tensor.dim() == rank - 1 + len(shape):
        tensor = tensor.flatten(-len(shape))
    if size == 1 and tensor.dim() == rank - 1:
        tensor = tensor.unsqueeze(-1)
    if tensor.dim() != rank or tensor.shape[-1] != size:
        axes = f"(B, L, {size})" if sequence else f"(B, {size})"
        raise where.misfit(f"float {axes} ({describe(space)})", _dtype_and_shape(tensor))
    return tensor


def terms_of(value: object, space: Terms, where: Where) -> Tensor:
    """Terms as int64 (B, nodes, columns): such a tensor, or as many terms as they are written in data."""
    if is_tensor(value):
        wrong = None if recording() else unsound(value, space)
        if wrong is not None:
            raise where.misfit(f"int64 (B, nodes, {table_width(space)}), {describe(space)}", wrong)
        return value
    if isinstance(value, str | Mapping):
        raise where.misfit(f"a list of {describe(space)}, one a row", "one term")
    try:
        return tables(list(value), space)  # pyright: ignore
    except TypeError:
        raise where.misfit(f"a list of {describe(space)}", type(value).__name__) from None
    except TermProblem as problem:
        raise where.misfit(describe(space), f"{problem.message}. {problem.remedy}") from None


def _shape(space: Space) -> tuple[int, ...]:
    item = space.item if isinstance(space, Seq) else space
    if isinstance(item, Real):
        return tuple(size for size in item.shape if isinstance(size, int))
    if isinstance(item, Constrained) and isinstance(item.size, int):
        return (item.size,) if item.vector else (item.size, item.size)
    return ()


def _dtype_and_shape(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def describe(space: Space) -> str:
    """A space in the words of the language, for messages."""
    match space:
        case Finite():
            return f"FinSet {space.size}" if space.nominal is None else f"{space.nominal}, FinSet {space.size}"
        case Real():
            return "Real " + " ".join(str(size) for size in space.shape)
        case Constrained():
            return f"{space.kind} {space.size}"
        case Product():
            return " * ".join(describe(factor) for factor in space.factors)
        case Seq():
            return f"Seq ({describe(space.item)})"
        case Terms(name=name):
            return f"terms of `{name}`" + ("" if space.depth is None else f" of at most {space.depth} levels")
        case _:
            return "unknown"


def total_elements(space: Space) -> int:
    """Number of elements of an all-finite space."""
    return math.prod(block.size for block in blocks(space))


def flat_index(value: Value, space: Space) -> Tensor:
    """An all-finite value as one index, the last factor fastest."""
    index: Tensor | None = None
    for part, block in zip(parts(value), blocks(space), strict=True):
        index = part if index is None else index * block.size + part
    assert index is not None
    return index


def from_flat_index(index: Tensor, space: Space) -> Value:
    """Inverse of `flat_index`."""
    made: list[Tensor] = []
    for block in reversed(blocks(space)):
        made.append(index % block.size)
        index = index // block.size
    return from_parts(made[::-1])
