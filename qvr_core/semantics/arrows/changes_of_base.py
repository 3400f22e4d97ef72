"""`f.change_base(t)`: a tensor arrow in another composition (docs/reference.md#changes-of-base)."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.language.compositions import DEFAULT
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.language.transformations import TRANSFORMATIONS, leads_to
from qvr_core.semantics.scope.inherited import algebra_of
from qvr_core.semantics.scope.scope import UNKNOWN, DamagedEntry, Scope, TransformationEntry
from qvr_core.semantics.types.arrow_text import arrow_text, plain
from qvr_core.semantics.types.codes import CALL_ARGUMENTS, SORT_MISMATCH
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Arrow, ChangeBase, Damaged, Sort
from qvr_core.semantics.types.program_codes import TRANSFORMATION_RULE
from qvr_core.semantics.types.spaces import is_finite
from qvr_core.syntax.tree.arrows import ArrowRef, PostfixExpr
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.options import Number, String


def check_change_base(expr: PostfixExpr, base: Arrow, scope: Scope) -> Arrow:
    """Every weight of `base` mapped by the transformation that the call names."""
    name = _named(expr, scope)
    if not is_matrix(expr, base, scope) or name is None:
        return damaged(expr, scope)
    if isinstance(base, Damaged):
        return damaged(expr, scope, Sort.TENSOR)
    source = algebra_of(base, scope) or scope.algebra or DEFAULT
    target = _target(name, source, arrow_text(expr.base), scope)
    if target is None:
        return damaged(expr, scope, Sort.TENSOR)
    return ChangeBase(
        domain=base.domain,
        codomain=base.codomain,
        sort=Sort.TENSOR,
        origin=scope.origin(expr.span),
        density=DETERMINISTIC,
        base=base,
        transformation=name.text,
        source=source,
        target=target,
    )


def _named(expr: PostfixExpr, scope: Scope) -> Name | None:
    """The name of the transformation; None (reported) where the call names none."""
    args = expr.args or ()
    place = expr.attribute.span
    if len(args) == 1:
        (arg,) = args
        place = arg.span
        value = None if isinstance(arg.value, Number | String) else plain(arg.value)
        if isinstance(value, ArrowRef) and arg.key is None:
            return value.name
    scope.report(CALL_ARGUMENTS, "`.change_base` takes the name of one transformation: f.change_base(t)", place)
    return None


def _target(name: Name, source: str, base: str, scope: Scope) -> str | None:
    """The composition that a transformation leads to from `source`; None (reported) where it does not start there."""
    entry = scope.lookup(name.text)
    if isinstance(entry, DamagedEntry):
        return None
    if isinstance(entry, TransformationEntry):
        own = entry.transformation
        if own.source == source:
            return own.target
        _elsewhere(name, (own.source,), source, base, scope)
        return None
    builtin = TRANSFORMATIONS.get(name.text) if entry is None else None
    if builtin is None:
        _unknown(name, entry is None, source, scope)
        return None
    target = leads_to(builtin, source, scope.algebra)
    if target is None:
        _elsewhere(name, tuple(dict.fromkeys(start for start, _ in builtin.pairs)), source, base, scope)
    return target


def _elsewhere(name: Name, starts: Sequence[str], source: str, base: str, scope: Scope) -> None:
    listed = " or ".join(f"`{start}`" for start in starts)
    message = f"`{name.text}` maps weights of {listed}, but those of `{base}` are of `{source}`"
    scope.report(TRANSFORMATION_RULE, message, name.span)


def _unknown(name: Name, undeclared: bool, source: str, scope: Scope) -> None:
    if not undeclared:
        scope.report(TRANSFORMATION_RULE, f"`{name.text}` is no transformation", name.span)
        return
    fitting = [each.name for each in TRANSFORMATIONS.values() if each.targets(source)]
    near = closest(name.text, TRANSFORMATIONS)
    message = f"there is no transformation `{name.text}`"
    if near:
        message += f"; did you mean `{near}`?"
    elif fitting:
        message += (
            f"; of `{source}` there {'is' if len(fitting) == 1 else 'are'} {', '.join(f'`{one}`' for one in fitting)}"
        )
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(name.span), near),), True),)
    scope.report(TRANSFORMATION_RULE, message, name.span, fixes=fixes)


def is_matrix(expr: PostfixExpr, base: Arrow, scope: Scope) -> bool:
    """Whether an arrow is one of weights; where it certainly is not, that is reported."""
    if isinstance(base, Damaged) or base.sort is Sort.TENSOR:
        return True
    finite = is_finite(base.domain.space) and is_finite(base.codomain.space)
    if base.sort is Sort.DETERMINISTIC and finite:
        return True
    what = "a deterministic arrow" if base.sort is Sort.DETERMINISTIC else "a sampled arrow"
    message = f"`.{expr.attribute.text}` wants a tensor arrow, but `{arrow_text(expr.base)}` is {what}"
    scope.report(SORT_MISMATCH, message, expr.attribute.span)
    return False


def damaged(expr: PostfixExpr, scope: Scope, sort: Sort = Sort.DETERMINISTIC) -> Damaged:
    """What stands for an arrow that could not be typed."""
    return Damaged(domain=UNKNOWN, codomain=UNKNOWN, sort=sort, origin=scope.origin(expr.span), density=DETERMINISTIC)
