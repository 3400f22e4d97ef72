"""Typed arithmetic: from the tree of an expression to the model's `Expr`, shapes inferred through unknown widths."""

from __future__ import annotations

from qvr_core.semantics.arithmetic.broadcasting import DATA, SCALAR, Clash, axes, broadcast, from_axes, with_axes
from qvr_core.semantics.arithmetic.comprehensions import check_comprehension
from qvr_core.semantics.arithmetic.elements.per_element import listed, runs_along
from qvr_core.semantics.arithmetic.elements.site_names import site_name
from qvr_core.semantics.arithmetic.elementwise import elementwise, words
from qvr_core.semantics.arithmetic.factors import check_factor
from qvr_core.semantics.arithmetic.function_calls import check_call, check_method
from qvr_core.semantics.arithmetic.gathers import check_gather
from qvr_core.semantics.arithmetic.indexing import bare_state
from qvr_core.semantics.arithmetic.indices import index_value
from qvr_core.semantics.arithmetic.labels import label_at, may_be_label
from qvr_core.semantics.arrows.combinators import arrow_of
from qvr_core.semantics.language.builtins import BUILTINS, COMPARISONS, OPERATORS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import (
    ArrowEntry,
    DamagedEntry,
    DeductionEntry,
    DistributionEntry,
    FamilyEntry,
    FunctionEntry,
    ObjectEntry,
    respelt,
)
from qvr_core.semantics.types.codes import BARE_REPLICATED
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.semantics.types.model.expressions import (
    Bound,
    Builtin,
    Constant,
    Data,
    DeductionRef,
    Expr,
    FieldOf,
    Function,
    ListOf,
    Matrix,
    ValueType,
)
from qvr_core.semantics.types.program_codes import NOT_A_VALUE, UNKNOWN_VALUE_FIELD
from qvr_core.semantics.types.sentences import lexicon_of
from qvr_core.semantics.types.spaces import Dim, Finite, Product, Real, Seq, Space, Unknown
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithCall,
    Binary,
    Comprehension,
    FactorExpr,
    Field,
    Gather,
    Lambda,
    ListArith,
    Literal,
    MethodCall,
    ParenArith,
    TupleArith,
    Unary,
    Variable,
)
from qvr_core.syntax.tree.names import Name, Span


def check_arith(expr: Arith, ctx: StepContext) -> Expr:
    """The typed expression; reports what is wrong with it."""
    ctx.scope.operations += 1
    match expr:
        case Literal():
            kind = DATA if isinstance(expr.value, str) else SCALAR
            return Constant(type=kind, origin=ctx.scope.origin(expr.span), value=expr.value)
        case Variable():
            return _variable(expr.name, ctx)
        case Binary():
            return _binary(expr, ctx)
        case Unary():
            operand = check_arith(expr.operand, ctx)
            if isinstance(operand, Constant) and not isinstance(operand.value, str):
                return Constant(type=SCALAR, origin=ctx.scope.origin(expr.span), value=-operand.value)
            kind = broadcast([operand.type])
            shape = operand.type if isinstance(kind, Clash) else kind
            return Builtin(type=shape, origin=ctx.scope.origin(expr.span), function="neg", args=(operand,))
        case ArithCall():
            return check_call(expr, ctx, check_arith)
        case Gather():
            return check_gather(expr, ctx, check_arith)
        case Field():
            return _field(expr, ctx)
        case MethodCall():
            return check_method(expr, ctx, check_arith)
        case ListArith():
            return _list(expr, ctx)
        case Lambda():
            return _lambda(expr, ctx)
        case FactorExpr():
            return check_factor(expr, ctx, check_arith)
        case Comprehension():
            return check_comprehension(expr, ctx, check_arith)
        case TupleArith():
            return _tuple(expr, ctx)
        case ParenArith():
            return check_arith(expr.inner, ctx)


def _tuple(expr: TupleArith, ctx: StepContext) -> Expr:
    """Several values where one is wanted."""
    origin, span = ctx.scope.origin(expr.span), expr.span
    if ctx.text[: span.start].rstrip().endswith(") ="):
        message = "a tuple is no value: give each name a `let` of its own"
        ctx.scope.report(NOT_A_VALUE, message, span)
    else:
        ends = (Span(span.start, span.start + 1), Span(span.end - 1, span.end))
        edits = tuple(Edit(ctx.scope.origin(end), text) for end, text in zip(ends, "[]", strict=True))
        fix = Fix("Write a list, `[…]`", edits)
        message = "a tuple is no value: write a list, `[…]`, or give each of its values a `let` of its own"
        ctx.scope.report(NOT_A_VALUE, message, span, fixes=(fix,))
    return Data(type=ValueType(Unknown()), origin=origin, name="")


# ---------------------------------------------------------------- names


def _variable(name: Name, ctx: StepContext) -> Expr:
    origin = ctx.scope.origin(name.span)
    if name.text in ctx.aliases:
        ctx.scope.operations += ctx.weights.get(name.text, 0)
        return ctx.aliases[name.text]
    if name.text in ctx.hidden:
        return bare_state(name, ctx.hidden[name.text], ctx)
    if name.text in ctx.indices:
        return index_value(ctx.indices[name.text], ctx, name.span)
    binding = ctx.find(name.text)
    if binding is not None and binding.constant is not None:
        return Constant(type=SCALAR, origin=origin, value=binding.constant)
    if binding is not None and binding.kind == "data":
        return Data(type=binding.type, origin=origin, name=name.text)
    if binding is not None:
        return Bound(type=binding.type, origin=origin, name=name.text)
    entry = ctx.scope.lookup(name.text)
    match entry:
        case None:
            return _data(name, ctx)
        case ArrowEntry() if entry.sort is Sort.TENSOR:
            return _matrix(name, entry, ctx)
        case ArrowEntry():
            message = f"`{name.text}` is an arrow, not a value; call it: `{name.text}(…)`"
            ctx.scope.report(NOT_A_VALUE, message, name.span)
        case FamilyEntry():
            message = f"`{name.text}` is replicated; name one copy: `{entry.copies[0]}`"
            ctx.scope.report(BARE_REPLICATED, message, name.span)
        case ObjectEntry():
            return _size(name, entry, ctx)
        case FunctionEntry():
            ctx.scope.report(NOT_A_VALUE, f"`{name.text}` is a function; call it: `{name.text}(…)`", name.span)
        case DistributionEntry():
            message = f"`{name.text}` is a family; draw from it: `sample … <- {name.text}(…)`"
            ctx.scope.report(NOT_A_VALUE, message, name.span)
        case DeductionEntry(deduction=deduction):
            return DeductionRef(type=DATA, origin=origin, name=name.text, lexicon=lexicon_of(deduction))
        case DamagedEntry():
            pass
        case _:
            ctx.scope.report(NOT_A_VALUE, f"`{name.text}` is no value in arithmetic", name.span)
    return Data(type=ValueType(Unknown()), origin=origin, name=name.text)


def _data(name: Name, ctx: StepContext) -> Expr:
    origin = ctx.scope.origin(name.span)
    builtin = BUILTINS.get(name.text)
    if name.text in FAMILIES or (builtin is not None and builtin.reserved):
        ctx.scope.report(NOT_A_VALUE, f"`{name.text}` is a function; call it: `{name.text}(…)`", name.span)
        return Data(type=ValueType(Unknown()), origin=origin, name=name.text)
    ctx.unbound(name, argument=False)
    known = ctx.data.setdefault(name.text, (DATA, origin))
    return Data(type=known[0], origin=origin, name=name.text)


def _matrix(name: Name, entry: ArrowEntry, ctx: StepContext) -> Expr:
    sides = [*_finite_factors(entry.domain.space), *_finite_factors(entry.codomain.space)]
    plates: list[tuple[Dim | None, str | None]] = [(side.size, side.nominal) for side in sides]
    kind = with_axes(plates, Real((1,)), like=())
    return Matrix(type=kind, origin=ctx.scope.origin(name.span), arrow=arrow_of(name, ctx.scope))


def _finite_factors(space: Space) -> list[Finite]:
    factors = space.factors if isinstance(space, Product) else (space,)
    return [factor for factor in factors if isinstance(factor, Finite)]


def _size(name: Name, entry: ObjectEntry, ctx: StepContext) -> Expr:
    """A finite set in arithmetic is its number of elements."""
    origin = ctx.scope.origin(name.span)
    space = entry.space.space
    if isinstance(space, Finite) and isinstance(space.size, int):
        return Constant(type=SCALAR, origin=origin, value=int(space.size))
    if not isinstance(space, Finite | Unknown):
        ctx.scope.report(NOT_A_VALUE, f"`{name.text}` is a space, not a value", name.span)
    return Data(type=ValueType(Unknown()), origin=origin, name=name.text)


# ---------------------------------------------------------------- operators


def _binary(expr: Binary, ctx: StepContext) -> Expr:
    function = OPERATORS[expr.operator]
    left, right = _labelled(expr, ctx) if function in COMPARISONS else _both(expr, ctx)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Constant) and isinstance(side.value, str) and _is_number(other, function):
            ctx.scope.report(NOT_A_VALUE, f"`{side.value}` is text in quotes, not a number", side.origin)
            return Constant(type=ValueType(Unknown()), origin=ctx.scope.origin(expr.span), value=0)
    for tree, other in ((expr.left, right), (expr.right, left)):
        if function in ("eq", "ne") and isinstance(other.type.space, Finite) and (name := _set(tree, ctx)) is not None:
            message = f"`{name}` is a set: compare with an element of it, {_some_element(name, other.type.space)}"
            ctx.scope.report(NOT_A_VALUE, message, tree.span)
            return Constant(type=ValueType(Unknown()), origin=ctx.scope.origin(expr.span), value=0)
    where = ctx.scope.origin(expr.operator_span)
    texts = [words(expr.left, "the left side"), words(expr.right, "the right side")]
    (left, right), kind = elementwise([left, right], texts, where, ctx)
    return Builtin(type=kind, origin=ctx.scope.origin(expr.span), function=function, args=(left, right))


def _set(tree: Arith, ctx: StepContext) -> str | None:
    """The name of the set that an expression is, where no step binds the name."""
    if not isinstance(tree, Variable) or ctx.find(tree.name.text) is not None:
        return None
    return tree.name.text if isinstance(ctx.scope.lookup(tree.name.text), ObjectEntry) else None


def _some_element(name: str, space: Finite) -> str:
    label = f"a label such as `{space.labels[0]}`, or " if space.labels else ""
    return f"{label}an index `{name[:1].lower()} : {name}`"


def _is_number(other: Expr, function: str) -> bool:
    """Whether what stands beside a text can have no labels."""
    return function not in COMPARISONS or isinstance(other.type.space, Real)


def _both(expr: Binary, ctx: StepContext) -> tuple[Expr, Expr]:
    return check_arith(expr.left, ctx), check_arith(expr.right, ctx)


def _labelled(expr: Binary, ctx: StepContext) -> tuple[Expr, Expr]:
    """Both sides of a comparison, of which one may name an element of the other's set (`colour == red`)."""
    if may_be_label(expr.right, ctx):
        left = check_arith(expr.left, ctx)
        return left, label_at(expr.right, left.type.space, ctx) or check_arith(expr.right, ctx)
    if may_be_label(expr.left, ctx):
        right = check_arith(expr.right, ctx)
        return label_at(expr.left, right.type.space, ctx) or check_arith(expr.left, ctx), right
    return _both(expr, ctx)


# ---------------------------------------------------------------- fields, lists, functions


def _field(expr: Field, ctx: StepContext) -> Expr:
    latent = site_name(expr, ctx)
    if latent is not None and (binding := ctx.find(latent)) is not None:
        return Bound(type=binding.type, origin=ctx.scope.origin(expr.span), name=latent)
    base = check_arith(expr.base, ctx)
    origin = ctx.scope.origin(expr.span)
    space = base.type.space
    inner = space.item if isinstance(space, Seq) else space
    if inner is None or isinstance(inner, Unknown):
        return FieldOf(type=ValueType(None, rows=base.type.rows), origin=origin, base=base, field="", index=0)
    names = inner.names if isinstance(inner, Product) else ()
    if expr.field.text in names and isinstance(inner, Product):
        index = names.index(expr.field.text)
        factor = inner.factors[index]
        kind = ValueType(
            Seq(factor) if isinstance(space, Seq) else factor, base.type.indexed, base.type.rows, base.type.sizes
        )
        return FieldOf(type=kind, origin=origin, base=base, field=expr.field.text, index=index)
    known = [name for name in names if name is not None]
    near = closest(expr.field.text, known)
    message = f"{words(expr.base, 'the value')} has no factor `{expr.field.text}`"
    message += f"; did you mean `{near}`?" if near else (f"; it has {', '.join(known)}" if known else "")
    ctx.scope.report(UNKNOWN_VALUE_FIELD, message, expr.field.span, fixes=respelt(expr.field, near, ctx.scope))
    return FieldOf(type=ValueType(Unknown()), origin=origin, base=base, field=expr.field.text, index=0)


def _list(expr: ListArith, ctx: StepContext) -> Expr:
    items = tuple(check_arith(item, ctx) for item in expr.items)
    origin = ctx.scope.origin(expr.span)
    if not items:
        return ListOf(type=DATA, origin=origin, items=items)
    if runs_along(items):
        return listed(items, origin, ctx)
    kind = broadcast([item.type for item in items])
    shape = None if isinstance(kind, Clash) else axes(kind)
    if isinstance(kind, Clash) or shape is None:
        return ListOf(type=ValueType(None, rows=any(i.type.rows for i in items)), origin=origin, items=items)
    front: list[tuple[Dim | None, str | None]] = [(len(items), None)]
    whole = from_axes([*front, *shape], 1 if shape else 0, like=[kind])
    return ListOf(type=whole, origin=origin, items=items)


def _lambda(expr: Lambda, ctx: StepContext) -> Expr:
    origin = ctx.scope.origin(expr.span)
    parameter = Bound(type=DATA, origin=ctx.scope.origin(expr.parameter.span), name=expr.parameter.text)
    hidden = ctx.aliases.get(expr.parameter.text)
    ctx.aliases[expr.parameter.text] = parameter
    body = check_arith(expr.body, ctx)
    del ctx.aliases[expr.parameter.text]
    if hidden is not None:
        ctx.aliases[expr.parameter.text] = hidden
    return Function(type=DATA, origin=origin, parameter=expr.parameter.text, body=body)
