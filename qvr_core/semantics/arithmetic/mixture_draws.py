"""Draws from `Mixture(w, A(…), B(…))`: the components as they are written, and the family that they are together."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family, support_words
from qvr_core.semantics.language.gates import GATED
from qvr_core.semantics.language.mixtures import CALL, MIXTURE, mixture_of, other_support, unfit
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.families import family_named, is_damaged
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS, UNKNOWN_FAMILY
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, ParenArith, Variable
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import Draw


@immutable
class Written:
    """A mixture as it is written: the argument that the weights are, and a call for each component."""

    weights: ArithArg
    components: tuple[ArithCall, ...]


def family_of(draw: Draw, ctx: StepContext) -> Family | None:
    """The family that a draw is from; None where it is an arrow, or (reported) a mixture that is none."""
    if draw.expression is not None:
        return None
    if not is_mixture(draw.name, ctx):
        return family_named(draw.name.text, ctx.scope)
    found = written(draw, ctx.scope)
    if found is None:
        _malformed(draw, ctx)
        return None
    families = _components(found.components, ctx)
    return None if families is None else mixture_of(families)


def is_mixture(name: Name, ctx: StepContext) -> bool:
    """Whether the word means a mixture: unless the file uses it for something else."""
    return name.text == MIXTURE and ctx.scope.lookup(MIXTURE) is None


def written(draw: Draw, scope: Scope) -> Written | None:
    """The parts of a mixture; None where they are not all there."""
    args = draw.args or ()
    weights = next((arg for arg in args if arg.key is not None), args[0] if args else None)
    calls = [_call(arg.value) for arg in args if arg is not weights]
    if weights is None or _call(weights.value, scope) is not None or len(calls) < 2 or None in calls:
        return None
    return Written(weights, tuple(call for call in calls if call is not None))


def _call(tree: Arith, families: Scope | None = None) -> ArithCall | None:
    """The call that an expression is; with `families` only that of a family."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    if not isinstance(tree, ArithCall) or (families is not None and family_named(tree.func.text, families) is None):
        return None
    return tree


def _malformed(draw: Draw, ctx: StepContext) -> None:
    """Report the first argument that is not what it must be."""
    args = draw.args or ()
    calls = [arg for arg in args if _call(arg.value) is not None]
    if args and args[0].key is None and _call(args[0].value, ctx.scope) is not None:
        message = f"the weights of a mixture come first: `{CALL}`"
        ctx.scope.report(FAMILY_ARGUMENTS, message, args[0].span)
        return
    wrong = next((arg for arg in args[1:] if _call(arg.value) is None), None)
    if wrong is not None and isinstance(wrong.value, Variable) and family_named(wrong.value.name.text, ctx.scope):
        message = f"`{wrong.value.name.text}` is written with its arguments here"
        ctx.scope.report(FAMILY_ARGUMENTS, message, wrong.value.span)
    elif wrong is not None:
        message = "a component of a mixture is a family with its arguments, such as `Normal(0.0, 1.0)`"
        ctx.scope.report(FAMILY_ARGUMENTS, message, wrong.value.span)
    else:
        message = f"a mixture has two components or more: `{CALL}`"
        ctx.scope.report(FAMILY_ARGUMENTS, message, calls[-1].span if calls else draw.name.span)


def _components(calls: Sequence[ArithCall], ctx: StepContext) -> list[Family] | None:
    found: list[Family] = []
    for call in calls:
        name = call.func
        family = family_named(name.text, ctx.scope)
        if family is None:
            if not is_damaged(name.text, ctx.scope) and name.text not in GATED:
                report_no_family(name, ctx)  # what is wrong with a gate has been said
            return None
        why = unfit(family)
        if why is None and found and other_support(found[0], family):
            why = f"draws {support_words(family)}, and `{found[0].name}` {support_words(found[0])}"
        if why is not None:
            ctx.scope.report(FAMILY_ARGUMENTS, f"`{name.text}` {why}", name.span)
            return None
        found.append(family)
    return found


def report_no_family(name: Name, ctx: StepContext) -> None:
    """Report a name in the place of a family's."""
    near = closest(name.text, FAMILIES)
    message = f"there is no family `{name.text}`" + (f"; did you mean `{near}`?" if near else "")
    if name.text == MIXTURE:
        message, near = "a mixture is no component of another: write its components beside the others", None
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(ctx.scope.origin(name.span), near),), True),)
    ctx.scope.report(UNKNOWN_FAMILY, message, name.span, fixes=fixes)
