"""The combinators that are written as calls, but for `fan`: scan, stack, repeat, residual, identity, …"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qvr_core.semantics.arrows.combinator_arguments import Call, bad_call, nothing, sort_arguments
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.scans import check_scan
from qvr_core.semantics.arrows.uncounted import refuse_states
from qvr_core.semantics.arrows.weight_priors import weights_of
from qvr_core.semantics.scope.scope import UNKNOWN, show
from qvr_core.semantics.scope.sequences import as_sequence
from qvr_core.semantics.types.arrow_text import arrow_text, plain
from qvr_core.semantics.types.codes import CALL_ARGUMENTS, NOT_ENDOMORPHISM, SINGLE_LAYER, SORT_MISMATCH
from qvr_core.semantics.types.density import DETERMINISTIC, repeated
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Arrow, Identity, Last, MeanOverTime, Repeat, Residual, Sort, Stack
from qvr_core.semantics.types.program_codes import WEIGHT_PRIOR
from qvr_core.semantics.types.spaces import Named, Seq, is_real, is_unknown, item_of
from qvr_core.syntax.tree.arrows import ArrowExpr, ArrowRef
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.options import Number, String


def _endomorphism(call: Call, expr: ArrowExpr, body: Arrow) -> bool:
    return call.scope.require_fit(
        body.codomain,
        body.domain,
        expr.span,
        NOT_ENDOMORPHISM,
        f"`{call.name.text}` wants an arrow from a space to itself: `{arrow_text(plain(expr))}` gives",
        "it reads",
        local=body.codomain.written != body.domain.written,
    )


def _count(call: Call, count: Number) -> int | None:
    if isinstance(count.value, int) and count.value >= 1:
        return count.value
    call.scope.report(CALL_ARGUMENTS, f"`{call.name.text}` wants a whole number from 1", count.span)
    return None


def _stack(call: Call) -> Arrow:
    found = sort_arguments(call, counts=("n", "count", "depth", "layers"))
    if found is None:
        return nothing(call)
    if found.arrow is None or found.count is None:
        return bad_call(call, "`stack` takes an arrow and the number of layers: stack(f, n)")
    body = call.check(found.arrow, call.scope)
    fits = _endomorphism(call, found.arrow, body)
    if held := weights_of(body, call.scope):
        message = f"`stack` makes fresh copies, but the weights of `{held[0].name}` have a prior, each drawn once: "
        message += "`repeat` applies the same weights, `replicate=` declares several"
        call.scope.report(WEIGHT_PRIOR, message, found.arrow.span)
    count = _count(call, found.count)
    if count == 1:
        call.scope.report(
            SINGLE_LAYER,
            f"a stack of one layer is `{arrow_text(found.arrow)}` itself",
            found.count.span,
            fixes=(Fix("Remove the stack", (Edit(call.scope.origin(call.span), arrow_text(found.arrow)),)),),
        )
    refuse_states(body, call.scope)
    return Stack(
        domain=body.domain,
        codomain=body.codomain if fits else UNKNOWN,
        sort=body.sort,
        origin=call.scope.origin(call.span),
        density=repeated(body.density, body.codomain.space, count or 1),
        body=body,
        count=count or 1,
    )


def _repeat(call: Call) -> Arrow:
    found = sort_arguments(call, counts=("n", "count", "n_steps", "times"))
    if found is None:
        return nothing(call)
    if found.arrow is None:
        return bad_call(call, "`repeat` takes an arrow, and perhaps a count: repeat(f, n)")
    body = call.check(found.arrow, call.scope)
    fits = _endomorphism(call, found.arrow, body)
    count = _count(call, found.count) if found.count is not None else None
    refuse_states(body, call.scope)
    return Repeat(
        domain=body.domain,
        codomain=body.codomain if fits else UNKNOWN,
        sort=body.sort,
        origin=call.scope.origin(call.span),
        density=repeated(body.density, body.codomain.space, count or 1),
        body=body,
        count=count,
    )


def _residual(call: Call) -> Arrow:
    found = sort_arguments(call)
    if found is None:
        return nothing(call)
    if found.arrow is None:
        return bad_call(call, "`residual` takes an arrow: residual(f)")
    body = call.check(found.arrow, call.scope)
    text = arrow_text(plain(found.arrow))
    fits = True
    if body.sort is not Sort.DETERMINISTIC:
        message = f"`residual` wants a deterministic arrow, but `{text}` is {_SORTS[body.sort]}"
        call.scope.report(SORT_MISMATCH, message, found.arrow.span)
    elif not is_unknown(body.domain.space) and not is_real(item_of(body.domain.space)):
        message = f"`residual` adds what `{text}` reads to what it gives, but {show(body.domain)} has no numbers to add"
        call.scope.report(NOT_ENDOMORPHISM, message, found.arrow.span)
    else:
        fits = _endomorphism(call, found.arrow, body)
    return Residual(
        domain=body.domain,
        codomain=body.codomain if fits else UNKNOWN,
        sort=body.sort,
        origin=call.scope.origin(call.span),
        density=body.density,
        body=body,
    )


_SORTS = {Sort.SAMPLED: "sampled", Sort.TENSOR: "a tensor arrow", Sort.DETERMINISTIC: "deterministic"}


# ---------------------------------------------------------------- arrows that every space has


def _identity(call: Call) -> Arrow:
    space = call.given if call.given is not None else UNKNOWN
    if call.args:
        argument = plain(call.args[0].value) if not isinstance(call.args[0].value, Number | String) else None
        if len(call.args) != 1 or not isinstance(argument, ArrowRef):
            return bad_call(call, "`identity` takes an object: identity(A)")
        space = check_object_expr(ObjectRef(argument.name), call.scope)
    return Identity(
        domain=space,
        codomain=space,
        sort=Sort.DETERMINISTIC,
        origin=call.scope.origin(call.span),
        density=DETERMINISTIC,
    )


def _over_time(node: type[Last] | type[MeanOverTime], call: Call) -> Arrow:
    if call.args:
        found = sort_arguments(call)
        if found is None or found.arrow is None:
            return bad_call(call, f"`{call.name.text}` takes no arguments") if found else nothing(call)
        name = plain(found.arrow)
        if not isinstance(name, ArrowRef):
            return bad_call(call, f"`{call.name.text}` takes an object, or nothing")
        item = check_object_expr(ObjectRef(name.name), call.scope)
    elif call.given is not None:
        item = Named(item_of(call.given.space), call.given.written.removeprefix("Seq "))
    else:
        item = UNKNOWN
    sequence = as_sequence(item)
    if is_unknown(item.space):
        sequence = Named(Seq(item.space), "Seq ?")
    return node(
        domain=sequence,
        codomain=item,
        sort=Sort.DETERMINISTIC,
        origin=call.scope.origin(call.span),
        density=DETERMINISTIC,
    )


def _last(call: Call) -> Arrow:
    return _over_time(Last, call)


def _mean_over_time(call: Call) -> Arrow:
    return _over_time(MeanOverTime, call)


CALLS: Mapping[str, Callable[[Call], Arrow]] = {
    "scan": check_scan,
    "stack": _stack,
    "repeat": _repeat,
    "residual": _residual,
    "identity": _identity,
    "last": _last,
    "mean_over_time": _mean_over_time,
}
"""Combinators by name; `fan` and `from_data` are typed in `combinators.py`."""

DETERMINISTIC_PARTS = frozenset({"residual"})
"""Those that refuse an arrow that is sampled."""
