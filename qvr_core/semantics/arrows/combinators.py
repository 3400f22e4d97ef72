"""Arrow expressions: one function for each form of them (docs/reference.md#combinators)."""

from __future__ import annotations

from qvr_core.semantics.arrows.arrow_names import arrow_of, damaged
from qvr_core.semantics.arrows.combinator_arguments import Call
from qvr_core.semantics.arrows.combinator_calls import CALLS, DETERMINISTIC_PARTS
from qvr_core.semantics.arrows.compose import check_compose
from qvr_core.semantics.arrows.fans import check_fan, check_tensor
from qvr_core.semantics.arrows.postfix import check_postfix
from qvr_core.semantics.arrows.templates import instantiate
from qvr_core.semantics.arrows.uncounted import refuse_terms
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.prelude import PRELUDE
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.scope import UNKNOWN, ArrowEntry, DamagedEntry, Scope, TemplateEntry
from qvr_core.semantics.types.arrow_text import plain
from qvr_core.semantics.types.codes import CALL_ARGUMENTS, UNKNOWN_COMBINATOR
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Arrow, FromData, Sort
from qvr_core.semantics.types.spaces import Named
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowExpr, ArrowRef, ComposeExpr, PostfixExpr, TensorExpr
from qvr_core.syntax.tree.options import String


def check_arrow_expr(expr: ArrowExpr, scope: Scope, given: Named | None = None) -> Arrow:
    """The typed arrow that an expression denotes; reports what is wrong with it.

    `given` is the space that reaches it, where that is known: `last` and `mean_over_time` take their type from it.
    """
    expr = plain(expr)
    match expr:
        case ArrowRef(name=name):
            if name.text in _BARE_CALLS:
                return CALLS[name.text](Call(name, (), expr.span, given, scope, _part))
            return arrow_of(name, scope)
        case ComposeExpr():
            return check_compose(expr, scope, given, _part)
        case TensorExpr():
            return check_tensor(expr, scope, _part)
        case ArrowCall():
            return _call(expr, scope, given)
        case PostfixExpr():
            return check_postfix(expr, _part(expr.base, scope, given), scope)
        case _:
            return damaged(scope.origin(expr.span))


def _part(expr: ArrowExpr, scope: Scope, given: Named | None = None) -> Arrow:
    """An arrow that is a part of another one."""
    arrow = check_arrow_expr(expr, scope, given)
    inner = plain(expr)
    if isinstance(inner, ArrowRef | ArrowCall):
        refuse_terms(arrow, inner.name if isinstance(inner, ArrowRef) else inner.func, scope)
    return arrow


_TEMPLATES = tuple(name for name, one in PRELUDE.items() if one.facts is None)
_BARE_CALLS = ("last", "mean_over_time", "identity")


def _call(expr: ArrowCall, scope: Scope, given: Named | None) -> Arrow:
    name = expr.func
    # what is sampled is refused there, and so whatever scores
    check = check_arrow_expr if name.text in DETERMINISTIC_PARTS else _part
    call = Call(name, expr.args, expr.span, given, scope, check)
    if name.text == "fan":
        return check_fan(call)
    if name.text == "from_data":
        return _from_data(call)
    if name.text in CALLS:
        return CALLS[name.text](call)
    entry = scope.lookup(name.text)
    if isinstance(entry, TemplateEntry):
        return instantiate(entry, expr, scope) or damaged(scope.origin(expr.span))
    if isinstance(entry, DamagedEntry):
        return damaged(scope.origin(expr.span))
    if isinstance(entry, ArrowEntry):
        message = f"`{name.text}` is an arrow, not a combinator: compose it with `>>`, or apply it in a program"
        scope.report(CALL_ARGUMENTS, message, name.span)
        return damaged(scope.origin(expr.span))
    if entry is not None or name.text in FAMILIES:
        return arrow_of(name, scope)
    near = closest(name.text, (*CALLS, "fan", "from_data", *_TEMPLATES))
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(name.span), near),), True),)
    message = f"there is no combinator `{name.text}`" + (f"; did you mean `{near}`?" if near else "")
    scope.report(UNKNOWN_COMBINATOR, message, name.span, fixes=fixes)
    return damaged(scope.origin(expr.span))


def _from_data(call: Call) -> Arrow:
    args = call.args
    source = args[0].value if len(args) == 1 else None
    if not isinstance(source, String):
        call.scope.report(CALL_ARGUMENTS, '`from_data` takes the name of the data: from_data("name")', call.span)
        return damaged(call.scope.origin(call.span))
    return FromData(
        domain=UNKNOWN,
        codomain=UNKNOWN,
        sort=Sort.TENSOR,
        origin=call.scope.origin(call.span),
        density=DETERMINISTIC,
        source=source.value,
    )


__all__ = ["arrow_of", "check_arrow_expr", "damaged"]
