"""From the typed steps of a deterministic cell program to its tape.

Understands linear arrows, dropout, sigmoid, tanh, relu, softplus, +, −, ·, minimum, maximum and chunk on real vectors,
and calls of programs of these, repeated, composed or with a residual; `tape_of` gives None for anything else, and the
cell then runs as a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.arrows.dropout import DropoutArrow
from qvr_core.runtime.arrows.layers import LinearArrow
from qvr_core.runtime.loops.primitives import BINARY, UNARY
from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, Operand, Tape, UnaryOp, shortened
from qvr_core.runtime.programs.declared.shared_values import places
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.model.arrows import Arrow, Compose, Identity, Instance, Ref, Repeat, Residual
from qvr_core.semantics.types.model.expressions import Apply, Bound, Builtin, Constant, Expr, FieldOf
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel

LONGEST = 400
"""Operations of the longest tape: a cell that repeats something more often runs as a program."""

Slots = tuple[int, ...]
"""A value: one slot, or one per factor."""


class _Unsupported(Exception):
    """The program does something that a tape does not know."""


def tape_of(
    program: Program, items: int, model: Model, arrow: Callable[[Arrow], ArrowModule], *, training: bool = False
) -> Tape | None:
    """The tape of a cell whose first `items` inputs are the item, or None; in training, dropout leaves numbers out."""
    try:
        return _Compiler(model, arrow, training).cell(program, items)
    except _Unsupported:
        return None


class _Compiler:
    def __init__(self, model: Model, arrow: Callable[[Arrow], ArrowModule], training: bool) -> None:
        self.tape = Tape()
        self.model, self.arrow, self.training = model, arrow, training
        self.masks: dict[int, int] = {}

    def cell(self, program: Program, items: int) -> Tape:
        tape = self.tape
        given: list[int] = []
        for factor in program.inputs:
            if not layout.real_only(factor.space.space):
                raise _Unsupported
            given.append(tape.slot(layout.width(factor.space.space)))
        tape.items, tape.states = given[:items], given[items:]
        tape.returns = list(self._program(program, tuple(given)))
        hoisted = tape.hoisted()
        chunks = {slot for op in tape.ops if isinstance(op, ChunkOp) for slot in op.outs}
        uses = tape.uses()
        if any(uses[op.slot] > 1 for op in tape.ops if isinstance(op, ChunkOp)):
            raise _Unsupported
        # what is passed through, or made for all times at once, has no buffer of its own
        shared = hoisted | chunks | set(tape.states)
        if len(set(tape.returns)) < len(tape.returns) or shared.intersection(tape.returns):
            raise _Unsupported
        if [tape.widths[slot] for slot in tape.returns] != [tape.widths[slot] for slot in tape.states]:
            raise _Unsupported
        return shortened(tape)

    def _program(self, program: Program, given: Slots) -> Slots:
        """The slots that a program returns on these inputs."""
        if len(given) != len(program.inputs):
            raise _Unsupported
        bound: dict[str, Slots] = {}
        for factor, slot in zip(program.inputs, given, strict=True):
            if factor.name is None or layout.width(factor.space.space) != self.tape.widths[slot]:
                raise _Unsupported
            bound[factor.name] = (slot,)
        for step in program.steps:
            if not isinstance(step, LetModel):
                raise _Unsupported
            if self.training and max(places(step.value).values(), default=0) > 1:
                # a program computes once, with one mask, what a tape would twice
                raise _Unsupported
            value = self._value(step.value, bound)
            if len(step.names) == 1:
                bound[step.names[0]] = value
            elif len(step.names) == len(value):
                bound.update((name, (slot,)) for name, slot in zip(step.names, value, strict=True))
            else:
                raise _Unsupported
        if any(name not in bound for _, name in program.returns):
            raise _Unsupported
        return tuple(slot for _, name in program.returns for slot in bound[name])

    def _value(self, expr: Expr, bound: Mapping[str, Slots]) -> Slots:
        match expr:
            case Bound(name=name) if name in bound:
                return bound[name]
            case FieldOf(base=base, index=index):
                return (self._value(base, bound)[index],)
            case Apply(arrow=arrow, args=args):
                return self._call(arrow, tuple(slot for arg in args for slot in self._value(arg, bound)))
            case Builtin(function="chunk", args=(whole, Constant(value=int(count))), keywords=()):
                return self._chunk(self._slot(whole, bound), count)
            case Builtin():
                return (self._pointwise(expr, bound),)
            case _:
                raise _Unsupported

    def _slot(self, expr: Expr, bound: Mapping[str, Slots]) -> int:
        value = self._value(expr, bound)
        if len(value) != 1:
            raise _Unsupported
        return value[0]

    def _operand(self, expr: Expr, bound: Mapping[str, Slots]) -> Operand:
        if isinstance(expr, Constant) and isinstance(expr.value, int | float):
            return float(expr.value)
        return self._slot(expr, bound)

    def _chunk(self, slot: int, count: int) -> Slots:
        width = self.tape.widths[slot]
        if count < 1 or width % count:
            raise _Unsupported
        outs = tuple(self.tape.slot(width // count) for _ in range(count))
        self._add(ChunkOp(outs, slot, width // count))
        return outs

    def _pointwise(self, expr: Builtin, bound: Mapping[str, Slots]) -> int:
        if expr.keywords:
            raise _Unsupported
        operands = [self._operand(arg, bound) for arg in expr.args]
        match canonical(expr.function), operands:
            case "neg", [operand]:
                return self._binary("mul", operand, -1.0)
            case function, [int(slot)] if function in UNARY:
                out = self.tape.slot(self.tape.widths[slot])
                self._add(UnaryOp(out, function, slot))
                return out
            case function, [left, right] if function in BINARY:
                return self._binary(function, left, right)
            case _:
                raise _Unsupported

    def _binary(self, function: str, left: Operand, right: Operand) -> int:
        widths = {self.tape.widths[x] for x in (left, right) if isinstance(x, int)}
        choice = function in ("minimum", "maximum")
        if len(widths) != 1 or (choice and not (isinstance(left, int) and isinstance(right, int))):
            raise _Unsupported
        out = self.tape.slot(widths.pop())
        self._add(BinaryOp(out, function, left, right))
        return out

    def _call(self, arrow: Arrow, given: Slots) -> Slots:
        """An arrow applied to slots."""
        match arrow:
            case Ref(name=name) if name in self.model.programs:
                return self._program(self.model.programs[name], given)
            case Ref(name=name) if name in self.model.lets:
                return self._call(self.model.lets[name].arrow, given)
            case Instance(program=Program() as program):
                self.arrow(arrow)  # makes its weights, in the order of first use
                return self._program(program, given)
            case Repeat(body=body, count=int(count)):
                for _ in range(count):
                    given = self._call(body, given)
                return given
            case Compose(stages=stages):
                for stage in stages:
                    given = self._call(stage, given)
                return given
            case Residual(body=body):
                made = self._call(body, given)
                return tuple(self._binary("add", x, y) for x, y in zip(given, made, strict=True))
            case Identity():
                return given
            case _:
                leaf = self.arrow(arrow)
                if isinstance(leaf, DropoutArrow) and len(given) == 1:
                    return (self._dropout(leaf, given[0]),)
                return (self._linear_map(leaf, given),)

    def _dropout(self, leaf: DropoutArrow, slot: int) -> int:
        if not self.training or not leaf.drop_rate:
            return slot
        tape, mask = self.tape, self.masks.get(id(leaf))
        if mask is None or not leaf.once:
            mask = self.masks[id(leaf)] = tape.slot(tape.widths[slot])
            tape.items.append(mask)
            tape.dropped.append(leaf)
        return self._binary("mul", slot, mask)

    def _linear_map(self, leaf: ArrowModule, slots: Slots) -> int:
        if not isinstance(leaf, LinearArrow):
            raise _Unsupported
        table: Mapping[str, Tensor | None] = vars(leaf)["_parameters"]
        if leaf.rank is None:
            return self._linear(slots, partial(_weights, table, "weight", "bias"))
        inner = self._linear(slots, partial(_weights, table, "in_factor", None))
        return self._linear((inner,), partial(_weights, table, "out_factor", "bias"))

    def _linear(self, slots: Slots, parameters: Callable[[], tuple[Tensor, Tensor | None]]) -> int:
        self._check_length()
        weight, bias = parameters()
        self.tape.parameters.append(parameters)
        return self.tape.linear(slots, weight.shape[0], bias is not None)

    def _add(self, op: UnaryOp | BinaryOp | ChunkOp) -> None:
        self._check_length()
        self.tape.ops.append(op)

    def _check_length(self) -> None:
        if len(self.tape.ops) >= LONGEST:
            raise _Unsupported


def _weights(table: Mapping[str, Tensor | None], weight: str, bias: str | None) -> tuple[Tensor, Tensor | None]:
    """The current weight and bias of a linear map, from its module's table of parameters."""
    found = table[weight]
    assert found is not None
    return found, None if bias is None else table.get(bias)
