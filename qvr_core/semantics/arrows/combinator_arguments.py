"""A combinator's call: its arguments sorted into the arrow, the number and the words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.scope import UNKNOWN, Scope
from qvr_core.semantics.types.codes import CALL_ARGUMENTS
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Arrow, Damaged, Sort
from qvr_core.semantics.types.spaces import Named
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arrows import ArrowArg, ArrowExpr, ArrowRef
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Number, String


class Checker(Protocol):
    """`combinators.check_arrow_expr`, handed to those that it calls."""

    def __call__(self, expr: ArrowExpr, scope: Scope, given: Named | None = None) -> Arrow: ...


@immutable
class Call:
    """A call to type.  `given` is the space that reaches it where known; `check` types an argument."""

    name: Name
    args: tuple[ArrowArg, ...]
    span: Span
    given: Named | None
    scope: Scope
    check: Checker


def bad_call(call: Call, message: str, span: Span | None = None) -> Damaged:
    """Report a call that means nothing."""
    call.scope.report(CALL_ARGUMENTS, message, call.span if span is None else span)
    return nothing(call)


def nothing(call: Call) -> Damaged:
    return Damaged(
        domain=UNKNOWN,
        codomain=UNKNOWN,
        sort=Sort.DETERMINISTIC,
        origin=call.scope.origin(call.span),
        density=DETERMINISTIC,
    )


@immutable
class Sorted:
    """The arguments of a call: the one arrow, the one whole number, and words by keyword."""

    arrow: ArrowExpr | None
    count: Number | None
    words: Mapping[str, tuple[str, Span]]


def sort_arguments(call: Call, counts: tuple[str, ...] = (), words: tuple[str, ...] = ()) -> Sorted | None:
    """Arguments by what they are; None (reported) where one is not wanted."""
    arrow: ArrowExpr | None = None
    count: Number | None = None
    found: dict[str, tuple[str, Span]] = {}
    name = call.name.text
    for arg in call.args:
        key, value = arg.key, arg.value
        if key is not None and key.text in words and isinstance(value, ArrowRef):
            found[key.text] = (value.name.text, value.span)
        elif isinstance(value, Number) and counts and count is None and (key is None or key.text in counts):
            count = value
        elif key is not None:
            near = closest(key.text, (*words, *counts))
            message = f"`{name}` has no argument `{key.text}`" + (f"; did you mean `{near}`?" if near else "")
            if key.text in words or key.text in counts:
                message = f"`{key.text}` of `{name}` cannot be this"
            fixes = (
                () if near is None else (Fix(f"Change to `{near}`", (Edit(call.scope.origin(key.span), near),), True),)
            )
            call.scope.report(
                CALL_ARGUMENTS, message, key.span if near or key.text not in words else arg.span, fixes=fixes
            )
            return None
        elif arrow is None and not isinstance(value, Number | String):
            arrow = value
        else:
            bad_call(call, f"`{name}` does not take this argument", arg.span)
            return None
    return Sorted(arrow, count, found)


def word_of(sorted_args: Sorted, key: str, allowed: tuple[str, ...], call: Call) -> str | None:
    """The word given for `key`, checked against the words that are allowed."""
    if key not in sorted_args.words:
        return None
    text, span = sorted_args.words[key]
    if text in allowed:
        return text
    near = closest(text, allowed)
    message = f"`{key}` cannot be `{text}`; "
    message += f"did you mean `{near}`?" if near else f"it is {' or '.join(f'`{word}`' for word in allowed)}"
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(call.scope.origin(span), near),), True),)
    call.scope.report(CALL_ARGUMENTS, message, span, fixes=fixes)
    return None


# ---------------------------------------------------------------- applied repeatedly
