"""What follows a dot: tensor operations, `freeze`, named factors (docs/reference.md#combinators)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qvr_core.semantics.arrows.changes_of_base import check_change_base, damaged, is_matrix
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.bounds import joined
from qvr_core.semantics.scope.scope import UNKNOWN, Scope, show
from qvr_core.semantics.types.arrow_text import arrow_text, plain
from qvr_core.semantics.types.codes import CALL_ARGUMENTS, NOT_ENDOMORPHISM, UNKNOWN_FIELD
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Curry,
    Dagger,
    Density,
    DropFactors,
    Freeze,
    PartialTrace,
    Sort,
    TakeFactor,
)
from qvr_core.semantics.types.spaces import (
    Finite,
    Named,
    Product,
    Seq,
    Space,
    factors_of,
    is_unknown,
    item_of,
    product,
)
from qvr_core.semantics.types.subspace import fit
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.arrows import ArrowRef, PostfixExpr
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.options import Number, String

METHODS = ("dagger", "freeze", "trace", "marginalize", "change_base", "curry_left", "curry_right")


def check_postfix(expr: PostfixExpr, base: Arrow, scope: Scope) -> Arrow:
    """`base.dagger`, `base.curry_left`, `base.trace(X)`, `base.marginalize(X, …)`, `base.freeze`, `base.h`."""
    match expr.attribute.text:
        case "dagger":
            return _dagger(expr, base, scope)
        case "change_base":
            return check_change_base(expr, base, scope)
        case "curry_left" | "curry_right":
            return _curry(expr, base, scope)
        case "freeze":
            _no_arguments(expr, scope)
            return Freeze(
                domain=base.domain,
                codomain=base.codomain,
                sort=base.sort,
                origin=scope.origin(expr.span),
                density=base.density,
                base=base,
            )
        case "trace":
            return _trace(expr, base, scope)
        case "marginalize":
            return _drop(expr, base, scope)
        case _:
            return _field(expr, base, scope)


def _no_arguments(expr: PostfixExpr, scope: Scope) -> None:
    if expr.args:
        scope.report(CALL_ARGUMENTS, f"`.{expr.attribute.text}` takes no arguments", expr.args[0].span)


def _dagger(expr: PostfixExpr, base: Arrow, scope: Scope) -> Arrow:
    _no_arguments(expr, scope)
    if not is_matrix(expr, base, scope):
        return damaged(expr, scope)
    return Dagger(
        domain=base.codomain,
        codomain=base.domain,
        sort=Sort.TENSOR,
        origin=scope.origin(expr.span),
        density=DETERMINISTIC,
        base=base,
    )


def _curry(expr: PostfixExpr, base: Arrow, scope: Scope) -> Arrow:
    """A * B -o C to B -o A * C (`curry_left`) or to A -o B * C (`curry_right`)."""
    _no_arguments(expr, scope)
    if expr.args or not is_matrix(expr, base, scope):
        return damaged(expr, scope)
    space, word = base.domain.space, expr.attribute.text
    if is_unknown(space) or is_unknown(base.codomain.space):
        return damaged(expr, scope, Sort.TENSOR)
    count, left = len(factors_of(space)), word == "curry_left"
    if count < 2:
        which = "first" if left else "last"
        message = (
            f"`.{word}` moves the {which} factor of the domain to the codomain and leaves the others, "
            f"but `{arrow_text(expr.base)}` reads {show(base.domain)}, which has one factor"
        )
        scope.report(CALL_ARGUMENTS, message, expr.attribute.span)
        return damaged(expr, scope, Sort.TENSOR)
    moved = _product_of(space, (0,) if left else (count - 1,))
    return Curry(
        domain=_product_of(space, range(1, count) if left else range(count - 1)),
        codomain=joined([moved, base.codomain], expr.span, scope),
        sort=Sort.TENSOR,
        origin=scope.origin(expr.span),
        density=DETERMINISTIC,
        base=base,
        left=left,
    )


def _objects(expr: PostfixExpr, scope: Scope) -> list[tuple[ObjectRef, Named]] | None:
    found: list[tuple[ObjectRef, Named]] = []
    for arg in expr.args or ():
        value = None if isinstance(arg.value, Number | String) else plain(arg.value)
        if not isinstance(value, ArrowRef) or arg.key is not None:
            scope.report(CALL_ARGUMENTS, f"`.{expr.attribute.text}` takes objects", arg.span)
            return None
        ref = ObjectRef(value.name)
        found.append((ref, check_object_expr(ref, scope)))
    return found


def _trace(expr: PostfixExpr, base: Arrow, scope: Scope) -> Arrow:
    objects = _objects(expr, scope)
    if objects is None or not is_matrix(expr, base, scope):
        return damaged(expr, scope)
    if len(objects) != 1:
        scope.report(CALL_ARGUMENTS, "`.trace` takes one object: f.trace(X)", expr.attribute.span)
        return damaged(expr, scope, Sort.TENSOR)
    over = objects[0][1]
    domain, codomain = _without_last(base.domain.space, over), _without_last(base.codomain.space, over)
    if domain is None or codomain is None:
        side = base.domain if domain is None else base.codomain
        message = f"`.trace({over.written})` wants `{over.written}` as the last factor of both sides, not {show(side)}"
        if base.domain.space == base.codomain.space == over.space:
            message = f"`.trace({over.written})` would leave nothing: it wants A * {over.written} -o B * {over.written}"
        scope.report(NOT_ENDOMORPHISM, message, expr.attribute.span)
        return damaged(expr, scope, Sort.TENSOR)
    return PartialTrace(
        domain=domain,
        codomain=codomain,
        sort=Sort.TENSOR,
        origin=scope.origin(expr.span),
        density=DETERMINISTIC,
        base=base,
        over=over,
    )


def _without_last(space: Space, over: Named) -> Named | None:
    if is_unknown(space) or is_unknown(over.space):
        return UNKNOWN
    factors = factors_of(space)
    dropped = len(factors_of(over.space))
    if len(factors) <= dropped or not isinstance(space, Product):
        return None
    tail = product(zip(space.names[-dropped:], factors[-dropped:], strict=True))
    result = fit(tail, over.space)
    if result.problem is not None or result.widths == "wrong":
        return None
    return _product_of(space, range(len(factors) - dropped))


def _product_of(space: Space, indices: Sequence[int]) -> Named:
    names = space.names if isinstance(space, Product) else (None,)
    factors = factors_of(space)
    words = [names[index] or structure(factors[index]) for index in indices]
    return Named(product((names[index], factors[index]) for index in indices), " * ".join(words))


def _drop(expr: PostfixExpr, base: Arrow, scope: Scope) -> Arrow:
    objects = _objects(expr, scope)
    if objects is None or not is_matrix(expr, base, scope):
        return damaged(expr, scope)
    if not objects:
        scope.report(CALL_ARGUMENTS, "`.marginalize` takes the objects to drop: f.marginalize(X)", expr.attribute.span)
        return damaged(expr, scope, Sort.TENSOR)
    space = base.codomain.space
    if is_unknown(space):
        return damaged(expr, scope, Sort.TENSOR)
    dropped: list[int] = []
    for ref, named in objects:
        index = _factor_index(space, ref.name.text, named.space, dropped)
        if index is None:
            _no_factor(expr, ref.name, base.codomain, (), scope)
            return damaged(expr, scope, Sort.TENSOR)
        dropped.append(index)
    kept = [index for index in range(len(factors_of(space))) if index not in dropped]
    if not kept:
        scope.report(CALL_ARGUMENTS, "`.marginalize` must leave a factor", expr.attribute.span)
        return damaged(expr, scope, Sort.TENSOR)
    return DropFactors(
        domain=base.domain,
        codomain=_product_of(space, kept),
        sort=Sort.TENSOR,
        origin=scope.origin(expr.span),
        density=DETERMINISTIC,
        base=base,
        indices=tuple(dropped),
    )


def _factor_index(space: Space, name: str, wanted: Space, taken: Sequence[int]) -> int | None:
    names = space.names if isinstance(space, Product) else (None,)
    for index, factor in enumerate(factors_of(space)):
        if index in taken:
            continue
        same = isinstance(factor, Finite) and isinstance(wanted, Finite) and factor == wanted
        if names[index] == name or same:
            return index
    return None


def _no_factor(expr: PostfixExpr, field: Name, codomain: Named, more: Collection[str], scope: Scope) -> None:
    """A factor that there is not, with those that there are, by the names with which they are taken."""
    space = item_of(codomain.space)
    names = space.names if isinstance(space, Product) else ()
    known = [name for name in names if name]
    words = codomain.written.removeprefix("Seq ").strip("()").split(" * ")
    # a factor that has another name than its space
    spelt = dict(zip(words, names, strict=False)) if len(words) == len(names) else {}
    near = spelt.get(field.text) or closest(field.text, (*known, *more))
    message = f"`{arrow_text(expr.base)}` gives {show(codomain)}, which has no factor `{field.text}`"
    listed = ", ".join(f"`{name}`" for name in known)
    message += f"; did you mean `{near}`?" if near else f"; it has {listed}" if known else ""
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(field.span), near),), True),)
    scope.report(UNKNOWN_FIELD, message, field.span, fixes=fixes)


def _field(expr: PostfixExpr, base: Arrow, scope: Scope) -> Arrow:
    field = expr.attribute
    _no_arguments(expr, scope)
    codomain = base.codomain
    space = item_of(codomain.space)
    if is_unknown(space):
        return damaged(expr, scope, base.sort)
    names = space.names if isinstance(space, Product) else ()
    if field.text not in names:
        _no_factor(expr, field, codomain, METHODS, scope)
        return damaged(expr, scope, base.sort)
    index = names.index(field.text)
    factor = factors_of(space)[index]
    result = Named(factor, field.text)
    if isinstance(codomain.space, Seq) or _is_sequence(codomain.space, index):
        result = Named(Seq(factor), f"Seq {field.text}")
    deterministic = base.density.kind == "deterministic"
    return TakeFactor(
        domain=base.domain,
        codomain=result,
        sort=base.sort,
        origin=scope.origin(expr.span),
        density=base.density if deterministic else Density("none", base.density.draws, 1, base.density.draws),
        base=base,
        field=field.text,
        index=index,
    )


def _is_sequence(space: Space, index: int) -> bool:
    return isinstance(space, Product) and isinstance(space.factors[index], Seq)
