"""An argument of a family: can it be what the family wants?

Only what is certain is an error: a value all of whose interval lies outside.  Draws that may fall outside are a
warning; data, and values of which nothing is known, are never blamed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from qvr_core.operations.intervals import INFINITE, Interval
from qvr_core.semantics.arithmetic.ranges import range_of
from qvr_core.semantics.language.family import Family, bounds_of, must_lie
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.families import family_named
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS
from qvr_core.semantics.types.diagnostics import Edit, Fix, Related
from qvr_core.semantics.types.model.expressions import Bound, Constant, Expr, Window
from qvr_core.semantics.types.program_codes import ARGUMENT_SUPPORT
from qvr_core.semantics.types.spaces import Constrained, Real
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ListArith, ParenArith, Variable
from qvr_core.syntax.tree.names import Span


@immutable
class _Wanted:
    """What a parameter must be, a family to draw it from, and the function from all numbers to it."""

    must: str
    better: str
    link: str
    high: float | None = None
    zero: bool = False
    low: float = 0.0


_WANTED: Mapping[str, _Wanted] = {
    "positive": _Wanted("must be above 0", "HalfNormal", "exp"),
    "positive vector": _Wanted("must be above 0", "HalfNormal", "exp"),
    "unit": _Wanted("must be between 0 and 1", "Beta", "sigmoid", high=1.0, zero=True),
    "simplex": _Wanted("must be a probability vector", "Dirichlet", "softmax", zero=True),
    "natural": _Wanted("must be a whole number", "", "", zero=True),
}


def check_support(family: Family, name: str, constraint: str, value: Expr, tree: Arith, ctx: StepContext) -> None:
    """Tell of an argument with values which the parameter `name` cannot have."""
    if constraint in ("ordered", "lower triangular", "positive definite"):
        _check_drawn(family, name, constraint, value, tree, ctx)
    wanted = _wanted(constraint)
    if wanted is None or isinstance(value, Constant) or isinstance(tree, ListArith):
        return
    lies = range_of(value, ctx)
    if not lies.known:
        return
    while isinstance(tree, ParenArith):
        tree = tree.inner
    text = f"`{_words(tree, ctx)}`"
    parameter = f"`{name}` of `{family.name}` {wanted.must}"
    if (never := _never(lies, wanted)) is not None:
        ctx.scope.report(FAMILY_ARGUMENTS, f"{text} {never}, but {parameter}", tree.span)
    elif (perhaps := _perhaps(lies, constraint, wanted)) is not None:
        _warn(f"{text} {perhaps}, but {parameter}", lies, wanted, value, tree, ctx)


def _check_drawn(family: Family, name: str, constraint: str, value: Expr, tree: Arith, ctx: StepContext) -> None:
    """Tell of a latent, as it was drawn, that nothing puts in order, or that is no factor."""
    value = value.base if isinstance(value, Window) else value
    binding = ctx.find(value.name) if isinstance(value, Bound) else None
    drawn_by = None if binding is None or binding.family is None else family_named(binding.family, ctx.scope)
    if binding is None or binding.kind != "sample" or drawn_by is None:
        return
    space, text = binding.type.space, f"`{_words(tree, ctx)}`"
    kind = space.kind if isinstance(space, Constrained) else ""
    there = (Related(f"{text} is drawn from `{binding.family}` here", binding.origin),)
    if constraint == "ordered" and kind != "Ordered" and not drawn_by.event:
        shape = (*binding.type.sizes, *(space.shape if isinstance(space, Real) and space.shape != (1,) else ()))
        size = int(shape[-1]) if shape and isinstance(shape[-1], int) else "…"
        message = f"nothing orders {text}, but `{name}` of `{family.name}` must ascend: draw it `: Ordered {size}`"
        ctx.scope.report(FAMILY_ARGUMENTS, message, tree.span, there)
    elif constraint == "lower triangular" and kind in ("Covariance", "Correlation"):
        better = "covariance_matrix" if any(one.alternatives for one in family.parameters) else ""
        advice = f"give it as `{better}=`" if better else "draw a `CholeskyFactor`"
        what = f"a {kind.lower()}{' matrix' if kind == 'Correlation' else ''}"
        message = f"{text} is {what}, but `{name}` of `{family.name}` is a Cholesky factor: {advice}"
        keyed = ctx.text[: tree.span.start].rstrip().endswith("=")
        edit = Edit(ctx.scope.origin(tree.span), f"{better}={_source(tree, ctx)}")
        fixes = (Fix(f"Give it as `{better}=`", (edit,), True),) if better and not keyed else ()
        ctx.scope.report(FAMILY_ARGUMENTS, message, tree.span, there, fixes)
    elif constraint == "positive definite" and kind == "CholeskyFactor":
        _tell_factor(family, name, tree, ctx, there)


def _tell_factor(family: Family, name: str, tree: Arith, ctx: StepContext, there: tuple[Related, ...]) -> None:
    """Tell of a Cholesky factor in the place of its matrix: half of it would be read, as another matrix."""
    text, matrix = f"`{_words(tree, ctx)}`", name.removesuffix("_matrix")
    message = f"{text} is a Cholesky factor, but `{name}` of `{family.name}` is the {matrix} itself"
    key = re.search(r"\w+\s*=\s*$", ctx.text[: tree.span.start])
    if name != "covariance_matrix" or key is None:
        ctx.scope.report(FAMILY_ARGUMENTS, message, tree.span, there)
        return
    edit = Edit(ctx.scope.origin(Span(key.start(), tree.span.end)), f"scale_tril={_source(tree, ctx)}")
    fix = Fix("Give it as `scale_tril=`", (edit,), True)
    ctx.scope.report(FAMILY_ARGUMENTS, f"{message}: give it as `scale_tril=`", tree.span, there, (fix,))


def _wanted(constraint: str) -> _Wanted | None:
    ends = bounds_of(constraint)
    if ends is None:
        return _WANTED.get(constraint)
    low, high = (end if end is not None else far for end, far in zip(ends, (-INFINITE, INFINITE), strict=True))
    return _Wanted(must_lie(*ends), "", "", high, True, low)


def _never(lies: Interval, wanted: _Wanted) -> str | None:
    """Why no value will do, in words."""
    if lies.high < wanted.low:
        return f"is always below {wanted.low:g}" if wanted.low else "is always negative"
    if lies.high == 0 and not wanted.zero:
        return "is never above 0"
    return f"is always above {wanted.high:g}" if wanted.high is not None and lies.low > wanted.high else None


def _perhaps(lies: Interval, constraint: str, wanted: _Wanted) -> str | None:
    """What some values are that will not do, in words."""
    if not lies.exact:
        return None
    if constraint == "natural":
        return None if lies.whole else "is drawn from real numbers" if lies.sources else None
    if lies.low < wanted.low:
        return f"may be below {wanted.low:g}" if wanted.low else "may be negative"
    return f"may be above {wanted.high:g}" if wanted.high is not None and lies.high > wanted.high else None


def _warn(message: str, lies: Interval, wanted: _Wanted, value: Expr, tree: Arith, ctx: StepContext) -> None:
    drawn = {
        name: binding for name in sorted(lies.sources) if (binding := ctx.find(name)) is not None and binding.family
    }
    site = value.name if isinstance(value, Bound) and value.name in drawn and isinstance(tree, Variable) else None
    advice = [f"draw `{site}` from `{wanted.better}`"] if site is not None and wanted.better else []
    fixes: tuple[Fix, ...] = ()
    if wanted.link and lies.free:
        call = f"{wanted.link}({_source(tree, ctx)})"
        short = " ".join(call.split())
        whole = len(short) <= _LONGEST
        advice.append(f"write `{short}` here" if whole else f"write `{wanted.link}(…)` around it")
        title = f"Change to `{short}`" if whole else f"Put `{wanted.link}(…)` around it"
        fixes = (Fix(title, (Edit(ctx.scope.origin(tree.span), call),)),)
    message += f": {', or '.join(advice)}" if advice else ""
    ctx.scope.report(ARGUMENT_SUPPORT, message, tree.span, _blamed(drawn), fixes)


def _blamed(drawn: Mapping[str, Binding]) -> tuple[Related, ...]:
    """The draws that the value comes from, those that may be negative alone where there are such."""
    negative = {name: binding for name, binding in drawn.items() if binding.range.low < 0} or drawn
    return tuple(
        Related(f"`{name}` is drawn from `{binding.family}` here", binding.origin)
        for name, binding in negative.items()
        if binding.family is not None
    )


_LONGEST = 40
"""An argument of more characters is not repeated in a message."""


def _source(tree: Arith, ctx: StepContext) -> str:
    return ctx.text[tree.span.start : tree.span.end]


def _words(tree: Arith, ctx: StepContext) -> str:
    text = " ".join(_source(tree, ctx).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def check_bounds(family: Family, ends: tuple[tuple[Expr, Arith], tuple[Expr, Arith]], ctx: StepContext) -> None:
    """Tell of bounds of a support of which the lower one is never below the upper one."""
    low, high = (range_of(value, ctx) for value, _ in ends)
    if low.low < high.high:
        return
    names = [f"`{name}`" for name in family.bounded_by or ()]
    texts = [f"`{_words(tree, ctx)}`" for _, tree in ends]
    message = f"{family.name}: {names[0]} must be below {names[1]}, but {texts[0]} is never below {texts[1]}"
    spans = sorted((tree.span for _, tree in ends), key=lambda span: span.start)
    ctx.scope.report(FAMILY_ARGUMENTS, message, Span(spans[0].start, spans[1].end))
