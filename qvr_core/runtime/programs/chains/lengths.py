"""How many elements each chain of a step has: `[lengths=n]`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.first_cause import first_true
from qvr_core.runtime.values.indices import recording
from qvr_core.runtime.values.layout import Where
from qvr_core.semantics.programs.chains.ragged_reads import lengths_text
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.spaces import Space


@dataclass(frozen=True, slots=True, eq=False)
class Existing:
    """Which elements there are: `there` (*sizes) bool.

    `source` (N,) is where each of all N elements takes its number from: itself, or the last of its chain where it does
    not exist, so that what is computed of it lies where the family's values lie.
    """

    there: Tensor
    source: Tensor
    some: bool
    """False where nothing exists at all."""
    parted: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict[int, "tuple[Tensor, Tensor]"])

    def parts(self, first: int) -> tuple[Tensor, Tensor]:
        """The numbers of the elements from place `first` on that exist, and those of all others; found once."""
        found = self.parted.get(first)
        if found is None:
            later = arrays.arange(self.there.shape[-1], device=self.there.device) >= first
            own = (self.there & later).reshape(-1)
            found = self.parted[first] = own.nonzero().squeeze(-1), (~own).nonzero().squeeze(-1)
        return found

    def held(self, value: Tensor, lead: int) -> Tensor:
        """A value (…, *sizes, …) behind `lead` axes with a stand-in, without gradient, where nothing exists."""
        shape = value.shape
        if not self.some:
            return arrays.full_like(value, 0.5 if value.is_floating_point() else 0)
        flat = value.reshape(*shape[:lead], -1, *shape[lead + self.there.ndim :])
        stand_in = flat.index_select(lead, self.source).reshape(shape).detach()
        return arrays.where(self.beside(value, lead), value, stand_in)

    def blank(self, value: Tensor, lead: int) -> Tensor:
        """The same with NaN there; whole numbers become floating ones."""
        real = value if value.is_floating_point() else value.to(arrays.get_default_dtype())
        return arrays.where(self.beside(value, lead), real, arrays.full((), math.nan, dtype=real.dtype))

    def beside(self, value: Tensor, lead: int) -> Tensor:
        """`there`, with the axes of a value."""
        return self.there.reshape(*self.there.shape, *(1,) * (value.ndim - lead - self.there.ndim))


class Lengths:
    """The lengths of one step's chains; data are looked at once, however often a loop passes them."""

    def __init__(self, expr: Expr, over: Sequence[Space], where: Where, parts: Parts) -> None:
        self.written = lengths_text(expr)
        self.value = compile_expr(expr, parts)
        self.where = where
        self.sizes = tuple(map(indexed.size_of, over))
        self.labels = [getattr(space, "labels", None) for space in over]
        self._given: object = None
        self._version = 0
        self._found: Existing | None = None

    def __call__(self, frame: Frame) -> Existing:
        """Raises `InputProblem` where a chain has more elements than there are, or less than none."""
        value = self.value(frame).value
        if self._found is None or value is not self._given or value._version != self._version:
            self._found = self._looked_at(value)
            self._given, self._version = value, value._version
        return self._found

    def _looked_at(self, value: Tensor) -> Existing:
        leading, most = self.sizes[:-1], self.sizes[-1]
        if tuple(value.shape) not in (leading, ()) or (leading and not value.shape):
            raise self.where.misfit(f"lengths `{self.written}` of shape {leading}", f"shape {tuple(value.shape)}")
        if not recording():
            self._check(value, most)
        counts = value.long().reshape(-1)
        places = arrays.arange(most, device=value.device)
        there = places < counts.unsqueeze(-1)
        own = arrays.arange(there.numel(), device=value.device).reshape(there.shape)
        last = own[:, :1] + (counts.unsqueeze(-1) - 1).clamp(min=0)
        some = bool(there.any())
        other = own[there][:1] if some else own[:1, 0]
        source = arrays.where(there, own, arrays.where(counts.unsqueeze(-1) > 0, last, other))
        return Existing(there.reshape(self.sizes), source.reshape(-1), some)

    def _check(self, value: Tensor, most: int) -> None:
        wrong = (value < 0) | (value > most)
        if not bool(wrong.any()):
            return
        place = first_true(wrong)
        raise self.where.misfit(f"lengths from 0 to {most}", f"{int(value[tuple(place)])} in {self.cell(place)}")

    def cell(self, place: Sequence[int], name: str = "") -> str:
        """`n[rat1]`, or `y[rat1, 3]` of another `name`: a place by the labels of its sets."""
        words = [str(at) if own is None else own[at] for at, own in zip(place, self.labels, strict=False)]
        return f"`{name or self.written}[{', '.join(words)}]`" if words else f"`{name or self.written}`"
