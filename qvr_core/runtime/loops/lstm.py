"""Loops that are a long short-term memory, run by torch's own: on a processor that is one call of oneDNN each way.

Which loop is one is read off its operations, in whatever order and under whatever names they are written:

    a = W (x, h) + b in four chunks,  c' = σ(a_f) c + σ(a_i) tanh(a_j),  h' = σ(a_o) tanh(c')

oneDNN keeps the weights packed and a step's gates in registers, which no sequence of calls of torch can; it gives h at
every position, and c at the last alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from qvr_core.runtime.loops.loop import Loop
from qvr_core.runtime.loops.plain_torch import plain_loop
from qvr_core.runtime.loops.run import LoopRun, versions
from qvr_core.runtime.loops.tape import BinaryOp, ChunkOp, LinearOp, MulAddOp, UnaryOp
from qvr_core.runtime.values.indices import recording

Product = tuple[int, ...]
"""Slots that are multiplied, in any order."""
MOST_PRODUCTS = 8
"""A sum of more products is no memory's."""


class LstmForm(NamedTuple):
    """A loop that is one: the slots of its items and the columns of the weight that read them, the columns that read h,
    which chunks are the input, forget, candidate and output gates (torch's order), and which state is h."""

    items: tuple[tuple[int, tuple[int, int]], ...]
    hidden: tuple[int, int]
    gates: tuple[int, int, int, int]
    h: int


_forms: WeakKeyDictionary[Loop, LstmForm | None] = WeakKeyDictionary()


def lstm_of(loop: Loop) -> LstmForm | None:
    """The form of a loop that is a long short-term memory; None for any other."""
    if loop not in _forms:
        _forms[loop] = _recognised(loop)
    return _forms[loop]


def _recognised(loop: Loop) -> LstmForm | None:
    tape = loop.tape
    chunks = [op for op in loop.ops if isinstance(op, ChunkOp)]
    if len(tape.states) != 2 or len(loop.linear) != 1 or len(chunks) != 1:
        return None
    (linear,), (chunk,) = loop.linear, chunks
    if chunk.slot != linear.out or len(chunk.outs) != 4 or linear.shifts or chunk.width != tape.widths[tape.states[0]]:
        return None
    for h in (0, 1):
        gates = _gates(loop, chunk, h)
        if sorted(gates) == [0, 1, 2, 3]:
            return _form(loop, linear, gates, h)
    return None


def _form(loop: Loop, linear: LinearOp, gates: Sequence[int], h: int) -> LstmForm | None:
    state = loop.tape.states[h]
    pairs = list(zip(linear.slots, linear.columns, strict=True))
    items = tuple(pair for pair in pairs if pair[0] in loop.given)
    hidden = [columns for slot, columns in pairs if slot == state]
    if len(hidden) != 1 or len(items) != len(pairs) - 1 or not items:
        return None
    return LstmForm(items, hidden[0], (gates[0], gates[1], gates[2], gates[3]), h)


def _gates(loop: Loop, chunk: ChunkOp, h: int) -> list[int]:
    """The chunks of the four gates, where state `h` of a loop is the hidden one and the other the memory."""
    before, after = loop.tape.states[1 - h], loop.tape.returns[1 - h]
    written, read = _products(loop, after), _products(loop, loop.tape.returns[h])
    kept = [product for product in written if before in product]
    added = [product for product in written if before not in product]
    if (len(kept), len(added), len(read)) != (1, 1, 1) or {len(each) for each in (*written, *read)} != {2}:
        return []
    if not any(_fills(loop, slot, "tanh", after) for slot in read[0]):
        return []
    found: list[int] = []
    for (product,), function in ((added, "sigmoid"), (kept, "sigmoid"), (added, "tanh"), (read, "sigmoid")):
        found += [at for at, out in enumerate(chunk.outs) if any(_fills(loop, s, function, out) for s in product)]
    return found


def _fills(loop: Loop, slot: int, function: str, argument: int) -> bool:
    """Whether a slot is this function of that slot."""
    op = loop.made_by.get(slot)
    return isinstance(op, UnaryOp) and (op.function, op.slot, op.plus) == (function, argument, 0.0)


def _products(loop: Loop, slot: int) -> list[Product]:
    """What fills a slot as a sum of products."""
    match loop.made_by.get(slot):
        case BinaryOp(function="add", left=int(left), right=int(right)):
            found = [*_products(loop, left), *_products(loop, right)]
        case BinaryOp(function="mul", left=int(left), right=int(right), scale=1.0):
            found = _multiplied(_products(loop, left), _products(loop, right))
        case MulAddOp(base=base, left=left, right=right, scale=1.0):
            found = [*_products(loop, base), *_multiplied(_products(loop, left), _products(loop, right))]
        case _:
            found = []
    return found if 0 < len(found) <= MOST_PRODUCTS else [(slot,)]


def _multiplied(left: list[Product], right: list[Product]) -> list[Product]:
    return [(*a, *b) for a in left for b in right]


# ---------------------------------------------------------------- running it


def runs(run: LoopRun, form: LstmForm, only: int | None, start: Tensor, tensors: Sequence[Tensor]) -> bool:
    """Whether torch's own gives the numbers: on a processor, in single precision, of h alone or of the last states."""
    if recording() or not torch.backends.mkldnn.is_available() or not torch.backends.mkldnn.enabled:
        return False
    if run.emit_all and only != form.h:
        return False
    plain = all(each.dtype == torch.float32 and each.device.type == "cpu" for each in (start, *tensors))
    return plain and tensors[0].numel() > 0 and not torch.is_autocast_enabled("cpu")


def run_lstm(run: LoopRun, form: LstmForm, start: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """All h (L, B, H), or the last states (B, 2 H) in the order of the loop's."""
    if torch.is_grad_enabled():
        return _TorchLstm.apply(run, form, start, *tensors)  # pyright: ignore[reportReturnType, reportUnknownVariableType]
    return _states(run, form, _arguments(run, form, start, tensors))


def _arguments(run: LoopRun, form: LstmForm, start: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """What torch's takes: the items (L, B, w), h and c (1, B, H), the weights of items and of h, and the bias."""
    given = dict(zip(run.loop.given, tensors, strict=False))
    first, second = start.unsqueeze(0).chunk(2, -1)
    weight, *bias = ([each.chunk(4)[at] for at in form.gates] for each in run.parameters(tensors))
    by_item = [torch.cat([rows[:, a:b] for rows in weight]) for _, (a, b) in form.items]
    by_state = torch.cat([rows[:, slice(*form.hidden)] for rows in weight])
    items = _side_by_side([given[slot] for slot, _ in form.items])
    before = (second, first) if form.h else (first, second)
    return [items, *before, _side_by_side(by_item), by_state, *(torch.cat(rows) for rows in bias)]


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts), -1)


def _states(run: LoopRun, form: LstmForm, arguments: Sequence[Tensor]) -> Tensor:
    items, h, c, by_item, by_state, *bias = arguments
    weights = [by_item, by_state, *bias, *map(torch.zeros_like, bias)]
    every, *last = torch.lstm(items, (h, c), weights, bool(bias), 1, 0.0, torch.is_grad_enabled(), False, False)
    if run.emit_all:
        return every
    return torch.cat(last[::-1] if form.h else last, -1)[0]


def _gradients(run: LoopRun, form: LstmForm, found: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The inverse of `_arguments`: gradients of the start state and of the tensors of a run."""
    items, h, c, by_item, by_state, *bias = found
    widths = [b - a for _, (a, b) in form.items]
    by_slot = dict(
        zip((slot for slot, _ in form.items), () if items is None else torch.split(items, widths, -1), strict=False)
    )
    states = (c, h) if form.h else (h, c)
    start = None if h is None or c is None else _side_by_side([each[0] for each in states if each is not None])
    weight = None
    if by_item is not None and by_state is not None:
        parts = sorted([*zip((columns for _, columns in form.items), torch.split(by_item, widths, -1), strict=True),
                        (form.hidden, by_state)], key=lambda pair: pair[0])  # fmt: skip
        weight = _rows_back(torch.cat([part for _, part in parts], -1), form)
    given = [by_slot.get(slot) for slot in run.loop.given]
    return [start, *given, weight, *(None if each is None else _rows_back(each, form) for each in bias)]


def _rows_back(weight: Tensor, form: LstmForm) -> Tensor:
    chunks = weight.chunk(4)
    return torch.cat([chunks[form.gates.index(at)] for at in range(4)])


class _TorchLstm(torch.autograd.Function):
    """torch's has no second derivatives: those are the plain operations'."""

    @staticmethod
    def forward(ctx: Any, run: LoopRun, form: LstmForm, start: Tensor, *tensors: Tensor) -> Tensor:
        ctx.run, ctx.form, ctx.tensors = run, form, (start, *tensors)
        ctx.versions = versions(ctx.tensors)
        need_start, *need = ctx.needs_input_grad[2:]
        needs = dict(zip(run.loop.given, need, strict=False))
        need_items = any(needs[slot] for slot, _ in form.items)
        need_weights = any(need[len(run.loop.given) :])
        arguments = [each.detach() for each in _arguments(run, form, start, tensors)]
        wanted = [need_items, need_start, need_start, *[need_weights] * (len(arguments) - 3)]
        ctx.leaves = [each.requires_grad_(need) for each, need in zip(arguments, wanted, strict=True)]
        with torch.enable_grad():
            ctx.states = _states(run, form, ctx.leaves)
        return ctx.states.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The gradients of `forward`'s inputs, in their order; `None` where none is wanted.

        RuntimeError where an input was changed in place in between.
        """
        if versions(ctx.tensors) != ctx.versions:
            raise RuntimeError("a weight or input of a loop was modified in place before its gradient was computed")
        if torch.is_grad_enabled():
            return (None, None, *_through(_plain(ctx), ctx.tensors, ctx.needs_input_grad[2:], grad))
        needs = [leaf.requires_grad for leaf in ctx.leaves]
        return (None, None, *_gradients(ctx.run, ctx.form, _through(ctx.states, ctx.leaves, needs, grad)))


def _through(result: Tensor, leaves: Sequence[Tensor], needs: Sequence[bool], grad: Tensor) -> list[Tensor | None]:
    """The gradient of each leaf that needs one, itself a graph where gradients are recorded."""
    wanted = [leaf for leaf, need in zip(leaves, needs, strict=True) if need]
    further = torch.is_grad_enabled()
    found = iter(torch.autograd.grad(result, wanted, grad, True, create_graph=further, allow_unused=True))
    return [next(found) if need else None for need in needs]


def _plain(ctx: Any) -> Tensor:
    start, *tensors = ctx.tensors
    states: Tensor = plain_loop(ctx.run, start, tensors)
    which: int = ctx.form.h
    return torch.chunk(states, 2, -1)[which] if ctx.run.emit_all else states
