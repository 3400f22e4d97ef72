"""`observe log(y)[i : Row] <- Normal(…)`: an observed name of which a function has the family.

The step is checked as that of the name, whose family is that of the function with the operations around it
(`semantics.language.outcomes`); the numbers of the operations are arguments of it, read at the indices of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from qvr_core.semantics.arithmetic.mixture_draws import family_of, is_mixture
from qvr_core.semantics.language.family import support_words
from qvr_core.semantics.language.outcomes import FUNCTIONS, NEGATE, name_of, reach
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Severity, within
from qvr_core.semantics.types.program_codes import COMPUTED_OUTCOME, UNNORMALISED
from qvr_core.syntax.observed_names import bare_names
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, Binary, Gather, ParenArith, Unary, Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import ObserveStep
from qvr_core.syntax.walk import walk

T = TypeVar("T")

_SIGNS = {"+": "plus", "-": "minus", "*": "times", "/": "over"}
_KNOWN = f"{', '.join(FUNCTIONS)}, and + − * / with what is known"


class _NotComputed(Exception):
    """What is written is no invertible function of the name; said with its place."""

    def __init__(self, message: str, place: Span) -> None:
        super().__init__(message)
        self.message, self.place = message, place


def as_computed(step: ObserveStep, ctx: StepContext) -> ObserveStep | None:
    """The step of the name alone, whose family is that of the function; None (reported) where there is none.

    Its last arguments, `by 1` and so on, are the numbers of the function.
    """
    assert step.outcome is not None
    plain = replace(step, outcome=None)
    try:
        _check_one_reading(step.outcome, step, ctx)
        operations, numbers = _operations(step.outcome, step, ctx)
        _check_draw(step, ctx)
    except _NotComputed as problem:
        ctx.scope.report(COMPUTED_OUTCOME, problem.message, problem.place)
        return None
    if not operations:
        return plain
    _warn_narrow(step.outcome, operations, step, ctx)
    given = tuple(ArithArg(Name(f"by {at + 1}", tree.span), tree, tree.span) for at, tree in enumerate(numbers))
    name = replace(step.draw.name, text=name_of(operations, step.draw.name.text))
    return replace(plain, draw=replace(step.draw, name=name, args=(*(step.draw.args or ()), *given)))


def checked_computed(step: ObserveStep, check: Callable[[ObserveStep, StepContext], T], ctx: StepContext) -> T:
    """What `check` makes of such a step: of the name itself with the family, then as it is."""
    assert step.outcome is not None
    told = len(ctx.scope.diagnostics)
    plain = replace(step, outcome=None)
    found = check(plain, ctx)
    if any(one.code.severity is Severity.ERROR for one in ctx.scope.diagnostics[told:]):
        return found
    if step.name.text in ctx.bindings and ctx.bindings[step.name.text].kind != "data":
        return found  # reported: bound above
    if family_of(step.draw, ctx) is None and ctx.scope.lookup(step.draw.name.text) is None:
        return found  # reported: the family is misspelt
    whole = as_computed(step, ctx)
    if whole is None:
        return found
    told = len(ctx.scope.diagnostics)
    made = check(whole, ctx)
    # what is to be said of the other arguments has been
    later = ctx.scope.diagnostics[told:]
    del ctx.scope.diagnostics[told:]
    given = (whole.draw.args or ())[len(step.draw.args or ()) :]
    places = [ctx.scope.origin(one.span) for one in given]
    ctx.scope.diagnostics.extend(one for one in later if any(within(one.place, place) for place in places))
    return made


def _operations(outcome: Arith, step: ObserveStep, ctx: StepContext) -> tuple[list[str], list[Arith]]:
    """The operations from the name outwards, and the numbers of those that take one."""
    names: list[str] = []
    numbers: list[Arith] = []
    tree = outcome
    while not (isinstance(tree, Variable) and tree.name.span == step.name.span):
        match tree:
            case ParenArith(inner=inner):
                tree = inner
            case Unary(operator="-", operand=inner):
                names.append(NEGATE)
                tree = inner
            case ArithCall(func=func, args=(ArithArg(key=None, value=inner),)) if func.text in FUNCTIONS:
                bound = ctx.bindings.get(func.text)
                if ctx.scope.lookup(func.text) is not None or (bound is not None and bound.kind == "function"):
                    raise _NotComputed(f"`{func.text}` is one of this file's own here: {_KNOWN}", func.span)
                names.append(func.text)
                tree = inner
            case Binary(operator=operator, operator_span=sign, left=left, right=right) if operator in _SIGNS:
                first = _reads(left, step.name)
                if first and _names(right, step.name):
                    raise _NotComputed(f"`{step.name.text}` stands on both sides: write it once", sign)
                if not first and operator == "/":
                    raise _NotComputed(
                        f"`{step.name.text}` stands below: what is observed is computed by {_KNOWN}", sign
                    )
                other = right if first else left
                numbers.append(other)
                if not first and operator == "-":
                    names += ["plus", NEGATE]
                else:
                    names.append(_SIGNS[operator])
                tree = left if first else right
            case _:
                raise _NotComputed(_refusal(tree, step), tree.span)
    return names[::-1], numbers[::-1]


def _check_one_reading(outcome: Arith, step: ObserveStep, ctx: StepContext) -> None:
    """Raises where the text may be about several names."""
    if not step.rivals:
        return
    names = [name for name in bare_names(outcome) if name == step.name or name.text in step.rivals]
    either = ", ".join(f"`{name.text}`" for name in names[:-1]) + f" or `{names[-1].text}`"
    if not step.binders:
        again = f"let {names[-1].text}_ = {names[-1].text}"
        message = f"this observes {either}: give what is not observed a name of its own above, `{again}`"
        raise _NotComputed(message, names[1].span)
    index = f"[{', '.join(binder.name.text for binder in step.binders)}]"
    readings = [f"`{_indexed(outcome, names, name, index, ctx.text)}` observes `{name.text}`" for name in names]
    declared = f"a number for all is declared, `data {names[-1].text} : Real 1`"
    message = f"this observes {either}: {', '.join(readings)}; {declared}"
    raise _NotComputed(message, names[1].span)


def _indexed(outcome: Arith, names: Sequence[Name], observed: Name, index: str, text: str) -> str:
    """The text of an outcome with the index at each of its names but the observed one."""
    others = {name.text for name in names if name != observed}
    taken = [part.base for part in walk(outcome) if isinstance(part, Gather)]
    ends = [
        part.name.span.end
        for part in walk(outcome)
        if isinstance(part, Variable) and part.name.text in others and not any(part is base for base in taken)
    ]
    pieces = [text[one:two] for one, two in pairwise([outcome.span.start, *sorted(ends), outcome.span.end])]
    return index.join(pieces)


def _refusal(tree: Arith, step: ObserveStep) -> str:
    if step.name.text == "_":
        return "nothing is observed here: what stands behind `observe` has one name without an index"
    what = f"`{tree.func.text}`" if isinstance(tree, ArithCall) else "this"
    return f"{what} cannot be undone here: what is observed is computed by {_KNOWN}"


def _reads(tree: Arith, name: Name) -> bool:
    return any(isinstance(part, Variable) and part.name.span == name.span for part in walk(tree))


def _names(tree: Arith, name: Name) -> bool:
    """Whether a part reads the name as a whole; elements of it are data."""
    indexed = [part.base for part in walk(tree) if isinstance(part, Gather)]
    return any(
        isinstance(part, Variable) and part.name.text == name.text and not any(part is base for base in indexed)
        for part in walk(tree)
    )


def _check_draw(step: ObserveStep, ctx: StepContext) -> None:
    """Raises where a function of a name cannot have the family."""
    family = family_of(step.draw, ctx)
    place = step.draw.name.span
    if family is None:
        raise _NotComputed("a computed outcome has a family; an arrow draws what is observed itself", place)
    if is_mixture(step.draw.name, ctx):
        raise _NotComputed("a computed outcome has one family, no mixture: observe what the components draw", place)
    if family.event or family.support.kind != "real":
        message = f"a computed outcome is a real number, and {family.name} draws {support_words(family)}"
        raise _NotComputed(message, place)
    keys = [] if step.options is None else [option.key.text for option in step.options.items]
    if "missing" in keys and family.bounded_by is not None:
        raise _NotComputed(f"`missing` does not go together with a function whose values {family.name} bounds", place)


def _warn_narrow(outcome: Arith, operations: list[str], step: ObserveStep, ctx: StepContext) -> None:
    family = family_of(step.draw, ctx)
    assert family is not None
    if not reach(operations, family.support.low, family.support.high).narrow:
        return
    written = ctx.text[outcome.span.start : outcome.span.end]
    message = (
        f"{family.name} draws {support_words(family)}, and `{written}` has not all of these values: the density is "
        f"not normalised"
    )
    ctx.scope.report(UNNORMALISED, message, outcome.span)
