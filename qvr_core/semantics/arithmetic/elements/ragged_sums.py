"""Sums over ragged values run over what is there: `sum(x[p, i] for i : Item)` is one `if i < n[p]`.

(docs/reference.md#ragged-data-chains-of-unequal-length)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qvr_core.semantics.scope.environment import MISTAKEN, Running, StepContext
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithCall,
    Binary,
    Comprehension,
    Gather,
    Literal,
    ParenArith,
    Variable,
)
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.walk import walk


def there(expr: Comprehension, indices: Sequence[Running], ctx: StepContext) -> tuple[Arith, ...]:
    """The conditions of a reduction: its own, and that the ragged values which its body reads along one of its indices
    have not ended."""
    own = {one.name for one in indices}
    found = () if expr.condition is None else (expr.condition,)
    said = {_shape(part) for part in _parts(expr.condition)}
    for read in walk(expr.body):
        condition = _condition(read, own, expr.body.span, ctx) if isinstance(read, Gather) else None
        if condition is not None and _shape(condition) not in said:
            said.add(_shape(condition))
            found = (*found, condition)
    return found


def _condition(read: Gather, own: set[str], span: Span, ctx: StepContext) -> Arith | None:
    """`i < n[p]` of a place `x[p, i]` along an index of the reduction."""
    base, last = read.base, read.indices[-1]
    if not isinstance(base, Variable) or not isinstance(last, Variable) or last.name.text not in own:
        return None
    binding = ctx.find(base.name.text)
    if binding is None or binding.lengths in ("", MISTAKEN) or len(read.indices) != len(binding.type.indexed):
        return None
    more: Arith
    if binding.lengths.isdigit():
        more = Literal(int(binding.lengths), binding.lengths, span)
    else:
        more = Variable(Name(binding.lengths, span))
        more = Gather(more, read.indices[:-1], span) if len(read.indices) > 1 else more
    return Binary("<", span, last, more, span)


def _parts(condition: Arith | None) -> Iterator[Arith]:
    """`a` and `b` of `logical_and(a, b)`."""
    while isinstance(condition, ParenArith):
        condition = condition.inner
    if isinstance(condition, ArithCall) and condition.func.text == "logical_and":
        for arg in condition.args:
            yield from _parts(arg.value)
    elif condition is not None:
        yield condition


def _shape(tree: Arith) -> object:
    """What a condition says, wherever it stands."""
    match tree:
        case ParenArith(inner=inner):
            return _shape(inner)
        case Variable(name=name):
            return name.text
        case Literal(value=value):
            return value
        case Gather(base=base, indices=indices):
            return ("gather", _shape(base), *map(_shape, indices))
        case Binary(operator=">", left=left, right=right):
            return ("<", _shape(right), _shape(left))
        case Binary(operator=operator, left=left, right=right):
            return (operator, _shape(left), _shape(right))
        case _:
            return id(tree)
