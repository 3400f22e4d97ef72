"""A scan whose cell is a deterministic program, as a compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.arrows.scan import ScanArrow, StartState
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.semantics.types.model.arrows import Scan

if TYPE_CHECKING:
    from qvr_core.runtime.loops.loop import Loop


class CompiledScan(ScanArrow):
    """The same values as step by step; the items' share of every linear map is computed for all times at once."""

    def __init__(self, node: Scan, cell: ArrowModule, start: StartState | None, start_name: str, loop: Loop) -> None:
        super().__init__(node, cell, start, start_name)
        self.loop = loop

    def forward(self, x: Value) -> Value:
        from qvr_core.runtime.loops.engine import run_program

        sequence = layout.parts(x)[0]
        if len(layout.parts(x)) != 1 or not sequence.is_floating_point():
            return super().forward(x)
        reading = sequence.transpose(0, 1)
        if self.backward_:
            reading = reading.flip(0)
        tape = self.loop.tape
        items = reading.split([tape.widths[slot] for slot in tape.items], -1)
        start = self.start_state(sequence.shape[0], sequence)
        assert is_tensor(start)
        run = _uncompiled() if arrays.compiler.is_compiling() else run_program
        states = run(self.loop, items, start, self.emit_all)
        if not self.emit_all:
            return states
        return (states.flip(0) if self.backward_ else states).transpose(0, 1)


def _uncompiled() -> Callable[[Loop, Sequence[Tensor], Tensor, bool], Tensor]:
    """The loop as it is: unrolled over a sequence it would take the compiler minutes, and gain nothing."""
    from qvr_core.runtime.loops.engine import run_program

    return arrays.compiler.disable(run_program)  # pyright: ignore[reportReturnType]
