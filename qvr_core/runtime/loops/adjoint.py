"""The backward of a loop, generated from its tape.

Within a step every pointwise operation is linear in the gradient, with a coefficient that the forward pass has left for
all times.  So chains of them are multiplied out beforehand, over all times at once, and a step only adds up, for each
gradient that is kept, coefficient · gradient over the few gradients that reach it, and multiplies by weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qvr_core.runtime.loops.tape import (
    BinaryOp,
    ChunkOp,
    LinearOp,
    MulAddOp,
    Op,
    Operand,
    Tape,
    UnaryOp,
    ins_of,
    outs_of,
)

Factor = tuple[str, int]
"""What stands in a coefficient: the 'value' of a slot, the 'slope' of the unary operation that fills it, or where a
minimum or maximum took its 'left' or its 'right' side."""
MOST_TERMS, MOST_FACTORS = 4, 5
"""A longer coefficient is cut: the gradient in the middle is kept."""


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product: a number times values of slots and slopes at them."""

    scale: float = 1.0
    factors: tuple[Factor, ...] = ()


Coefficient = tuple[Monomial, ...]
"""A sum of products."""
ONE: Coefficient = (Monomial(),)
Terms = dict[int, Coefficient]
"""A gradient as a sum over kept gradients of coefficient · gradient."""


@dataclass(frozen=True, slots=True)
class Gather:
    """The gradient of `slot` gets its pointwise terms."""

    slot: int
    terms: tuple[tuple[int, Coefficient], ...]


@dataclass(frozen=True, slots=True)
class Through:
    """The gradient of `slot`, input `position` of a linear operation, gets that of its output through the weights."""

    op: LinearOp
    position: int
    slot: int


@dataclass(frozen=True, slots=True)
class Adjoint:
    """What each step does, last step first; `given` holds what reaches the given slots, for all times at once.

    `apart` are the states, what is returned and what is cut in chunks; `linear` what linear operations fill.
    """

    steps: tuple[Gather | Through, ...]
    given: Mapping[int, tuple[tuple[int, Coefficient], ...]]
    returns: frozenset[int]
    apart: frozenset[int]
    linear: frozenset[int]

    def factors(self, given: Sequence[int]) -> set[Factor]:
        """All that stands in its coefficients, with those of the gradients of these given slots."""
        gathered = [step.terms for step in self.steps if isinstance(step, Gather)]
        return {
            factor
            for terms in (*gathered, *(self.given[slot] for slot in given))
            for _, coefficient in terms
            for monomial in coefficient
            for factor in monomial.factors
        }

    def places(self) -> dict[int, int]:
        """Gradients that one pointwise term alone reads, with what it makes of them: both may lie in one place."""
        gathers = [step for step in self.steps if isinstance(step, Gather)]
        read = Counter([anchor for step in gathers for anchor, _ in step.terms])
        read.update(anchor for terms in self.given.values() for anchor, _ in terms)
        return {
            anchor: slot
            for slot, anchor, _ in self._alone()
            if anchor not in self.apart | self.linear and read[anchor] == 1
        }

    def copies(self) -> dict[int, int]:
        """What is returned, with a slot that has the same gradient."""
        return {anchor: slot for slot, anchor, c in self._alone() if c == ONE and anchor in self.returns}

    def _alone(self) -> Iterator[tuple[int, int, Coefficient]]:
        """Gradients of one term, with the gradient and the coefficient that it comes from."""
        written = Counter([step.slot for step in self.steps])
        for step in self.steps:
            if not isinstance(step, Gather) or len(step.terms) != 1:
                continue
            if written[step.slot] == 1 and step.slot not in self.apart:
                anchor, coefficient = step.terms[0]
                yield step.slot, anchor, coefficient

    def sources(self, slot: int) -> tuple[int, ...]:
        """The kept gradients that reach `slot`."""
        return tuple(
            anchor for step in self.steps if isinstance(step, Gather) and step.slot == slot for anchor, _ in step.terms
        )


@dataclass(slots=True)
class _Builder:
    tape: Tape
    given: Sequence[int]
    steps: list[Gather | Through] = field(default_factory=list[Gather | Through])
    terms: dict[int, Terms] = field(default_factory=dict[int, Terms])
    kept: set[int] = field(default_factory=set[int])

    def send(self, slot: int, terms: Terms, local: Coefficient) -> None:
        """Add local · terms to what reaches `slot`."""
        mine = self.terms.setdefault(slot, {})
        for anchor, coefficient in terms.items():
            mine[anchor] = _summed(mine.get(anchor, ()), _product(coefficient, local))

    def gather(self, slot: int) -> None:
        """Keep the gradient of `slot`."""
        self.steps.append(Gather(slot, _reaching(self.terms.pop(slot, {}))))
        self.kept.add(slot)

    def undo(self, op: Op) -> None:
        """Append the steps that carry the gradient of what `op` gives to what it reads."""
        match op:
            case LinearOp():
                self.gather(op.out)
                for position, slot in enumerate(op.slots):
                    if slot not in self.given:
                        self.steps.append(Through(op, position, slot))
                        self.kept.add(slot)
            case ChunkOp():
                for slot in op.outs:
                    self.gather(slot)
                self.kept.add(op.slot)
            case _:
                terms = self._reaching(op)
                for slot, local in _edges(op):
                    self.send(slot, terms, local)

    def _reaching(self, op: UnaryOp | BinaryOp | MulAddOp) -> Terms:
        """The gradient of what `op` fills: as it is where one thing reaches it or one thing needs it, else kept."""
        terms = self.terms.get(op.out, {})
        needs = len({slot for slot in ins_of(op) if slot not in self.given})
        long = any(len(c) > MOST_TERMS or any(len(each.factors) > MOST_FACTORS for each in c) for c in terms.values())
        if op.out in self.kept or long or (len(terms) > 1 and needs > 1):
            self.gather(op.out)
            return {op.out: ONE}
        self.terms.pop(op.out, None)
        return terms


def adjoint_of(tape: Tape, ops: Sequence[Op], given: Sequence[int]) -> Adjoint:
    """The backward of the operations of a loop."""
    builder = _Builder(tape, given)
    builder.kept.update(tape.returns)
    for op in reversed(ops):
        if isinstance(op, ChunkOp) or outs_of(op)[0] in builder.kept or outs_of(op)[0] in builder.terms:
            builder.undo(op)
    for slot in tape.states:
        builder.gather(slot)
    reached = {slot: _reaching(builder.terms.get(slot, {})) for slot in given}
    apart = [*tape.states, *tape.returns, *(op.slot for op in ops if isinstance(op, ChunkOp))]
    linear = [op.out for op in ops if isinstance(op, LinearOp)]
    return Adjoint(tuple(builder.steps), reached, frozenset(tape.returns), frozenset(apart), frozenset(linear))


def _reaching(terms: Terms) -> tuple[tuple[int, Coefficient], ...]:
    return tuple((anchor, coefficient) for anchor, coefficient in terms.items() if coefficient)


def _edges(op: UnaryOp | BinaryOp | MulAddOp) -> Iterator[tuple[int, Coefficient]]:
    """The slots that an operation reads, with the derivative by each."""
    match op:
        case UnaryOp():
            yield op.slot, (Monomial(1.0, (("slope", op.out),)),)
        case MulAddOp():
            yield op.base, ONE
            yield op.left, _times(op.scale, op.right)
            yield op.right, _times(op.scale, op.left)
        case BinaryOp(function="mul"):
            yield from ((slot, _times(op.scale, other)) for slot, other in _sides(op))
        case BinaryOp(function="add" | "sub"):
            yield from ((slot, ONE) for slot in (op.left,) if isinstance(slot, int))
            sign = -1.0 if op.function == "sub" else 1.0
            yield from ((slot, (Monomial(sign),)) for slot in (op.right,) if isinstance(slot, int))
        case BinaryOp():
            for side, slot in (("left", op.left), ("right", op.right)):
                assert isinstance(slot, int)
                yield slot, (Monomial(1.0, ((side, op.out),)),)


def _sides(op: BinaryOp) -> Iterator[tuple[int, Operand]]:
    for slot, other in ((op.left, op.right), (op.right, op.left)):
        if isinstance(slot, int):
            yield slot, other


def _times(scale: float, operand: Operand) -> Coefficient:
    if isinstance(operand, int):
        return (Monomial(scale, (("value", operand),)),)
    return (Monomial(scale * operand),)


def _product(left: Coefficient, right: Coefficient) -> Coefficient:
    return tuple(Monomial(a.scale * b.scale, tuple(sorted((*a.factors, *b.factors)))) for a in left for b in right)


def _summed(left: Coefficient, right: Coefficient) -> Coefficient:
    scales: dict[tuple[Factor, ...], float] = {}
    for each in (*left, *right):
        scales[each.factors] = scales.get(each.factors, 0.0) + each.scale
    return tuple(Monomial(scale, factors) for factors, scale in scales.items() if scale)
