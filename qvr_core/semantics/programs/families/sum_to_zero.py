"""`sample u[g : Group, s : S] <- Normal(0.0, tau[g]) [sum_to_zero]`: a vector over S for each group that sums to 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.arithmetic.mixture_draws import family_of
from qvr_core.semantics.arrows.options import removal
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.sum_to_zero import OF, SUM_TO_ZERO
from qvr_core.semantics.programs.typed_sites import TypedSite
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.expressions import Arrange, Constant, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.program_codes import STEP_OPTION
from qvr_core.semantics.types.spaces import Finite, Unknown
from qvr_core.syntax.tree.arithmetic import ArithArg, Binder, Variable
from qvr_core.syntax.tree.options import Option
from qvr_core.syntax.tree.steps import SampleStep
from qvr_core.syntax.walk import walk

KEY = "sum_to_zero"
_BESIDE = (KEY, "noncentred", "auxiliary")


def summing_to_zero(step: SampleStep) -> Option | None:
    """The option, where a step has it."""
    given = step.options.items if step.options is not None else ()
    return next((option for option in given if option.key.text == KEY), None)


def sum_to_zero_site(
    step: SampleStep, option: Option, check: Callable[[SampleStep, StepContext], TypedSite], ctx: StepContext
) -> TypedSite:
    """The site of a step with the option: checked as it stands without it, then as one of vectors over the last set."""
    assert step.options is not None
    told = len(ctx.scope.diagnostics)
    others = tuple(one for one in step.options.items if one.key.text != KEY)
    again = next((one for one in step.options.items if one.key.text == KEY and one is not option), None)
    plain = replace(step, options=replace(step.options, items=others))
    found = check(plain, ctx)
    if any(one.code.severity is Severity.ERROR for one in ctx.scope.diagnostics[told:]):
        return found
    if option.value is not None:
        message = f"`{KEY}` stands alone, without a value"
        ctx.scope.report(STEP_OPTION, message, option.value.span)
        return found
    if again is not None:
        ctx.scope.report(STEP_OPTION, f"`{KEY}` is given twice", again.key.span)
        return found
    if family_of(step.draw, ctx) is None and ctx.scope.lookup(step.draw.name.text) is None:
        return found  # reported: the family is misspelt
    if isinstance(found.type.space, Unknown) or any(isinstance(one.space, Unknown) for one in found.site.indices):
        return found
    problem = _problem(step, found, ctx)
    if problem is not None:
        message, place = problem
        fixes = (removal(step.options, option, ctx.scope),) if place is None else ()
        ctx.scope.report(STEP_OPTION, message, option.key.span if place is None else place.span, fixes=fixes)
        return found
    args = _arguments(step)
    last = step.binders[-1]
    name = replace(step.draw.name, text=SUM_TO_ZERO)
    drawn = replace(step.draw, name=name, args=(args["scale"],))
    vectors = replace(plain, binders=step.binders[:-1], space=last.space, draw=drawn)
    told = len(ctx.scope.diagnostics)
    made = check(vectors, ctx)
    # what is to be said of the arguments has been
    del ctx.scope.diagnostics[told:]
    return made


def _problem(step: SampleStep, found: TypedSite, ctx: StepContext) -> tuple[str, ArithArg | Binder | None] | None:
    """Why the numbers of a step cannot be made to sum to 0, and the argument to blame, or None for the option."""
    draw = found.site.draw
    if step.binders and step.space is not None:
        return f"`{KEY}` is of single numbers with indices: leave out the `: …`", None
    if not isinstance(draw, FamilyDraw) or draw.family != OF or draw.declared:
        what = f"`{step.draw.name.text}`"
        return f"`{KEY}` is of a {OF}, and {what} is none: `{OF}(0.0, scale)`", None
    if not step.binders:
        name = step.pattern.names[0].text
        return f"`{KEY}` is over the last index of a step, and this has none: `{name}[s : S]`", None
    if found.site.chain is not None or step.start is not None:
        return f"`{KEY}` does not go together with a chain: each element would depend on all", None
    beside = [one.key.text for one in (step.options.items if step.options else ()) if one.key.text not in _BESIDE]
    if beside:
        return f"`{KEY}` does not go together with `{beside[0]}`", None
    last = found.site.indices[-1].space
    if not isinstance(last, Finite):
        return f"`{KEY}` is over one set, and the last index runs over a product", None
    if last.nominal is None:
        return f"`{KEY}` is over a set with a name: declare it, `object S : …`", step.binders[-1]
    if isinstance(last.size, int) and last.size == 1:
        return f"`{KEY}` leaves nothing to draw: {last.nominal} has one element", None
    trees, values = _arguments(step), dict(draw.args)
    if not _is_zero(values["loc"]):
        return f"with `{KEY}` the location is 0: add what is not to the predictor", trees.get("loc")
    own = step.binders[-1].name.text
    read = any(isinstance(node, Variable) and node.name.text == own for node in walk(trees["scale"].value))
    names = [name for _, name in axes(values["scale"].type) or [] if name is not None]
    if read or any(set_of(name) == last.nominal for name in names[-1:]):
        return f"with `{KEY}` the scale is one for all elements of `{own}`", trees["scale"]
    return None


def _arguments(step: SampleStep) -> Mapping[str, ArithArg]:
    """The arguments by their parameters."""
    names = [one.name for one in FAMILIES[OF].parameters]
    aliases = {alias: one.name for one in FAMILIES[OF].parameters for alias in one.aliases}
    found: dict[str, ArithArg] = {}
    for at, arg in enumerate(step.draw.args or ()):
        key = names[at] if arg.key is None else arg.key.text
        key = aliases.get(key, key)
        # as a keyword: it is the only one of the family that it goes to
        found[key] = replace(arg, key=None) if key == "scale" else arg
    return found


def _is_zero(value: Expr) -> bool:
    while isinstance(value, Arrange):
        value = value.base
    return isinstance(value, Constant) and value.value == 0
