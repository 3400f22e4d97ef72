"""What data say of the times of differential equations: they ascend, from the start on."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.expression_text import text
from qvr_core.runtime.values.first_cause import first_true
from qvr_core.runtime.values.indices import recording
from qvr_core.semantics.types.model.expressions import Bound, Data, Expr, Solve
from qvr_core.semantics.types.walk import operands, walk


class Times:
    """The times of a call of `solve`; data are looked at once, however often a loop passes them."""

    def __init__(self, expr: Solve) -> None:
        self.at, self.start = _read(expr.at), _read(expr.start)
        self.written = next(iter(self.at), text(expr.at))
        self._seen: list[Tensor] = []

    def check(self, at: Tensor, start: Tensor, frame: Frame) -> None:
        """Of times (…, T) and starts (…, 1), axes of length 1 where they are alike.  Raises `InputProblem`."""
        if recording() or not self.at <= frame.declared.keys() or any(at is one for one in self._seen):
            return
        later = at[..., 1:] < at[..., :-1]
        if bool(later.any()):
            *lead, place = first_true(later)
            here, before = (at[(*lead, time)].item() for time in (place + 1, place))
            own, other = self._cell(at, [*lead, place + 1]), self._cell(at, [*lead, place])
            raise _wrong(frame, f"{own} is {here:g}, and {other} before it {before:g}")
        if self.start <= frame.declared.keys():
            early = at[..., :1] < start
            if bool(early.any()):
                place = first_true(early)
                first = at[..., :1].expand(early.shape)[tuple(place)].item()
                begun = start.expand(early.shape)[tuple(place)].item()
                raise _wrong(frame, f"{self._cell(at, place)} is {first:g}, before the start {begun:g}")
            # what has a latent start is looked at again: its density says where it lies behind the first time
            self._seen = [at]

    def _cell(self, at: Tensor, place: Sequence[int]) -> str:
        """`when[2]`: an element, without the axes along which all are alike."""
        own = [number for number, size in zip(place, at.shape, strict=False) if size != 1]
        return f"`{self.written}[{', '.join(map(str, own or [0]))}]`"


def _wrong(frame: Frame, found: str) -> InputProblem:
    return InputProblem(f"program `{frame.program}`: the times of `solve` ascend from its start on: {found}")


def _read(expr: Expr) -> frozenset[str]:
    """The names of values that an expression reads."""
    return frozenset(one.name for one in walk(expr, operands) if isinstance(one, Bound | Data))
