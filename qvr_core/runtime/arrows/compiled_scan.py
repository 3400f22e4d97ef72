"""A scan whose cell is a deterministic program, as a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.arrows.scan import ScanArrow, StartState
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.semantics.types.model.arrows import Scan

if TYPE_CHECKING:
    from qvr_core.runtime.loops.loop import Loop
    from qvr_core.runtime.loops.tape import Tape


class CompiledScan(ScanArrow):
    """The same values as step by step; the items' share of every linear map is computed for all times at once.

    `training` is the loop in which dropout leaves numbers out, `loop` that in which it does not.
    """

    def __init__(
        self, node: Scan, cell: ArrowModule, start: StartState | None, start_name: str, loop: Loop, training: Loop
    ) -> None:
        super().__init__(node, cell, start, start_name)
        self.loop, self.training_loop = loop, training

    def forward(self, x: Value) -> Value:
        return self._run(x, None)

    def factor(self, x: Value, index: int) -> Value:
        return self._run(x, index)

    def _run(self, x: Value, only: int | None) -> Value:
        """The states, or only that at an index."""
        sequence = layout.parts(x)[0]
        if len(layout.parts(x)) != 1 or not sequence.is_floating_point():
            states = super().forward(x)
            return states if only is None else layout.take_factor(self.codomain.space, states, only)
        reading = sequence.transpose(0, 1)
        if self.backward_:
            reading = reading.flip(0)
        dropping = any(layer.training for layer in self.training_loop.tape.dropped)
        loop = self.training_loop if dropping else self.loop
        tape = loop.tape
        widths = [tape.widths[slot] for slot in tape.items[: len(tape.items) - len(tape.dropped)]]
        items = [reading] if len(widths) == 1 else arrays.split(reading, widths, -1)
        start = self.start_state(sequence.shape[0], sequence)
        assert is_tensor(start)
        given = [*items, *_masks(tape, reading)]
        states = _engine()(loop, given, start, self.emit_all, only=only)
        if not self.emit_all:
            return states
        return (states.flip(0) if self.backward_ else states).transpose(0, 1)


def _masks(tape: Tape, like: Tensor) -> list[Tensor]:
    """What each layer that leaves numbers out multiplies with (L, B, w): 0, or 1 over the share that it keeps.

    Drawn in the order in which a cell draws them that runs step by step, so that they are the same numbers.
    """
    length, rows = like.shape[:2]
    widths = [tape.widths[slot] for slot in tape.items[len(tape.items) - len(tape.dropped) :]]
    made: list[list[Tensor]] = [[] for _ in widths]
    steps = 1 if all(layer.once for layer in tape.dropped) else length
    for step in range(steps):
        for layer, width, masks in zip(tape.dropped, widths, made, strict=True):
            if not layer.once or not step:
                kept = arrays.ones(rows, width, dtype=like.dtype, device=like.device)
                masks.append(F.dropout(kept, layer.drop_rate) if layer.training else kept)
    return [masks[0].expand(length, -1, -1) if len(masks) == 1 else arrays.stack(masks) for masks in made]


def _engine() -> Callable[..., Tensor]:
    """The loop, for a compiler as it is: unrolled over a sequence it would take one minutes, and gain nothing."""
    from qvr_core.runtime.loops.engine import run_program

    if arrays.compiler.is_compiling():
        return arrays.compiler.disable(run_program)  # pyright: ignore[reportReturnType]
    return run_program
