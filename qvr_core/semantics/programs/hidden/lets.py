"""`let` steps below a hidden chain: `let m[t : Time] = mu[z[t]] * x[t]`.

Such a name is what its right side says wherever an observed step reads it, so that the states that it reads are the
step's own.  The step is typed where it stands, then its reader twice: with the name, then with what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, cast

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import plate_axes, with_axes
from qvr_core.semantics.arithmetic.indices import lags, running
from qvr_core.semantics.arithmetic.labels import may_be_label
from qvr_core.semantics.programs.chains.along import along_of, laid_out
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import ObjectEntry
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.program_codes import BOUND_TWICE, CANNOT_MARGINALIZE, INDEX_MISMATCH, PATTERN_MISMATCH
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Named, Space
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    Binder,
    Comprehension,
    FactorExpr,
    Gather,
    Lambda,
    Literal,
    ParenArith,
    TupleArith,
    Variable,
)
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.steps import LetStep, ObserveStep
from qvr_core.syntax.walk import walk


@immutable
class HiddenLet:
    """A name of the block: its indices, what it stands for, and what it is for who reads it."""

    binders: tuple[Binder, ...]
    value: Arith
    binding: Binding


Lets = Mapping[str, HiddenLet | None]
"""The names of the block; None for one with a mistake, whose readers are left out."""


def check_let(step: LetStep, lets: Lets, ctx: StepContext) -> Lets:
    """The names that a step of the block adds."""
    names = step.pattern.names
    damaged: Lets = {name.text: None for name in names}
    values: Sequence[Arith] = step.value.items if isinstance(step.value, TupleArith) else (step.value,)
    own = {name.text for name in names}
    over = {binder.name.text for binder in step.binders}
    reads = {node.name.text for value in values for node in walk(value) if isinstance(node, Variable)} - over
    if (problem := _problem(step, recursive=step.start is not None or bool(own & reads))) is not None:
        ctx.scope.report(CANNOT_MARGINALIZE, problem, step.pattern.span)
        return damaged
    if len(values) != len(names):
        count = f"{len(values)} {'value' if len(values) == 1 else 'values'}"
        message = f"there are {len(names)} names here and {count}: write `(…, …)` with one for each"
        ctx.scope.report(PATTERN_MISMATCH, message, step.value.span)
        return damaged
    if any(lets[name] is None for name in reads & lets.keys()):
        return damaged
    found: dict[str, HiddenLet] = {}
    for name, value in zip(names, values, strict=True):
        whole = expanded(value, lets, step.binders, ctx)
        binding = None if whole is None else _typed(name, whole, step, ctx)
        if whole is None or binding is None:
            return damaged
        found[name.text] = HiddenLet(step.binders, whole, binding)
    return found


def _problem(step: LetStep, *, recursive: bool) -> str | None:
    name = step.pattern.names[0].text
    if recursive:
        return f"`{name}` would depend on all states before it, and only the last one is summed over"
    if step.space is not None:
        return f"`{name}` reads the hidden state, and has an element for each of its indices: leave out the `: …`"
    if any(isinstance(node, Lambda | FactorExpr) for node in walk(step.value)):
        return f"`{name}` reads the hidden state: write its value out, without a function or a factor of its own"
    return None


def depends(step: LetStep, names: Collection[str]) -> bool:
    """Whether a step reads one of these names."""
    trees = [step.value, *(() if step.start is None else (step.start,))]
    return any(isinstance(node, Variable) and node.name.text in names for tree in trees for node in walk(tree))


def _typed(name: Name, value: Arith, step: LetStep, ctx: StepContext) -> Binding | None:
    """What a reader sees: an element for each of the indices; None where there is a mistake."""
    told = len(ctx.scope.diagnostics)
    with running(step.binders, dict(list(lags([value], step.binders, ctx).items())[:1]), ctx) as indices:
        along = along_of(indices)
        found = check_arith(value, ctx)
        if indices:
            laid_out(found, along, ctx)
    if len(ctx.scope.diagnostics) > told:
        return None
    further = [(size, axis) for size, axis in plate_axes(found.type) if axis is None or not indexed(axis)]
    space: Space = found.type.space or REAL_LINE
    kind = with_axes([*along.plates, *further], space, like=(), event=found.type.event)
    return Binding("let", kind, Named(space, "?"), ctx.scope.origin(name.span))


def with_lets(step: ObserveStep, lets: Lets, ctx: StepContext) -> ObserveStep | None:
    """An observed step with what the names of the block stand for in their place; None where one is misread."""
    args = step.draw.args or ()
    over = {binder.name.text for binder in step.binders}
    read = {node.name.text for arg in args for node in walk(arg.value) if isinstance(node, Variable)} - over
    if any(lets[name] is None for name in read & lets.keys()):
        return None
    if not read & lets.keys():
        return step
    found = [expanded(arg.value, lets, step.binders, ctx) for arg in args]
    put = tuple(replace(arg, value=value) for arg, value in zip(args, found, strict=True) if value is not None)
    return None if len(put) < len(args) else replace(step, draw=replace(step.draw, args=put))


def expanded(tree: Arith, lets: Lets, binders: Sequence[Binder], ctx: StepContext) -> Arith | None:
    """Arithmetic with what the names of the block stand for; None, and an error, where one is misread."""
    over = {binder.name.text for binder in binders}
    known = {name: own for name, own in lets.items() if own is not None and name not in over}
    used = [node.name for node in walk(tree) if isinstance(node, Variable) and node.name.text in known]
    if not used:
        return tree
    told = len(ctx.scope.diagnostics)
    before = ctx.locals
    ctx.locals = {**before, **{name.text: known[name.text].binding for name in used}}
    with running(binders, {}, ctx):
        check_arith(tree, ctx)
    ctx.locals = before
    for binder in _binders(tree):
        if binder.name.text in known:
            ctx.scope.report(BOUND_TWICE, f"`{binder.name.text}` is bound already", binder.name.span)
    gathered = [node for node in walk(tree) if isinstance(node, Gather)]
    for name in used if len(ctx.scope.diagnostics) == told else ():
        own = known[name.text]
        given = next((len(node.indices) for node in gathered if _is(node.base, name)), 0)
        if given < len(own.binders):
            count = f"{len(own.binders)} {'index' if len(own.binders) == 1 else 'indices'}"
            less = f", not {given}" if given else ""
            ctx.scope.report(INDEX_MISMATCH, f"`{name.text}` has {count}{less}", name.span)
        _check_apart(name, own, [*binders, *_binders(tree)], ctx)
    if len(ctx.scope.diagnostics) > told:
        return None
    return _expanded(
        tree, known, partial(_element, hiding={*over, *(one.name.text for one in _binders(tree))}, ctx=ctx)
    )


def _element(place: Arith, binder: Binder, hiding: Collection[str], ctx: StepContext) -> Arith:
    """A label in the place of an index as its number: what it stands in need not say of which set it is."""
    entry = ctx.scope.lookup(binder.space.name.text) if isinstance(binder.space, ObjectRef) else None
    space = entry.space.space if isinstance(entry, ObjectEntry) else None
    labels = space.labels if isinstance(space, Finite) else None
    text = place.name.text if isinstance(place, Variable) else place.value if isinstance(place, Literal) else None
    if labels is None or text not in labels or text in hiding or not may_be_label(place, ctx):
        return place
    at = labels.index(str(text))
    return Literal(at, str(at), place.span)


def _is(base: Arith, name: Name) -> bool:
    return isinstance(base, Variable) and base.name is name


def _binders(tree: Arith) -> list[Binder]:
    return [binder for node in walk(tree) if isinstance(node, Comprehension) for binder in node.binders]


def _check_apart(use: Name, own: HiddenLet, binders: Sequence[Binder], ctx: StepContext) -> None:
    """Report an index whose name is something else where a name of the block was made, and an index of its sums."""
    within = {binder.name.text for binder in _binders(own.value)}
    indices = {binder.name.text for binder in own.binders}
    free = {node.name.text for node in walk(own.value) if isinstance(node, Variable)} - within - indices
    for binder in binders:
        if binder.name.text in free | within:
            message = f"`{use.text}` reads another `{binder.name.text}`: give this index another name"
            ctx.scope.report(BOUND_TWICE, message, binder.name.span)


def _expanded(node: Any, lets: Mapping[str, HiddenLet], element: Callable[[Arith, Binder], Arith]) -> Any:
    match node:
        case Gather(base=Variable(name=name), indices=places, span=span) if name.text in lets:
            own = lets[name.text]
            indices = [_expanded(place, lets, element) for place in places]
            put = {one.name.text: element(place, one) for one, place in zip(own.binders, indices, strict=False)}
            whole = ParenArith(_placed(own.value, put, span), span)
            further = tuple(indices[len(own.binders) :])
            return Gather(whole, further, span) if further else whole
        case Variable(name=name) if name.text in lets:
            return ParenArith(_placed(lets[name.text].value, {}, name.span), name.span)
        case _:
            return _each(node, partial(_expanded, lets=lets, element=element))


def _placed(node: Any, put: Mapping[str, Arith], span: Span) -> Any:
    """A tree with other trees for its indices; all else stands where it is read."""
    match node:
        case Variable(name=name) if name.text in put:
            return put[name.text]
        case Span():
            return span
        case _:
            return _each(node, partial(_placed, put=put, span=span))


def _each(node: Any, change: Callable[[Any], Any]) -> Any:
    """A node with each of its parts changed."""
    if isinstance(node, tuple) and not isinstance(node, Span):
        return tuple(map(change, cast("tuple[Any, ...]", node)))
    if not is_dataclass(node) or isinstance(node, type):
        return node
    return replace(node, **{field.name: change(getattr(node, field.name)) for field in fields(node)})
