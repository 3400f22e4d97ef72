"""Censoring and truncation of an observed step: what families and which options go together."""

from __future__ import annotations

from qvr_core.semantics.language.family import Family, interval
from qvr_core.semantics.programs.step_options import Limit, StepOptions
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import Constant, ValueType
from qvr_core.semantics.types.program_codes import AXES_MISMATCH, STEP_OPTION

_CENSORED = ("right_censored", "left_censored")


def check_limits(family: Family, options: StepOptions, ctx: StepContext) -> bool:
    """Report what a family without a cdf, or two options that contradict each other, cannot mean; once.  True where
    something was reported."""
    if not options.limits:
        return False
    key, limit = next(iter(options.limits.items()))
    if (problem := _family_problem(family)) is not None:
        ctx.scope.report(STEP_OPTION, f"`{key}` needs the probability of an interval, and {problem}", limit.key)
        return True
    for problem, at in (_contradiction(options), _empty(family, options)):
        if problem is not None and at is not None:
            ctx.scope.report(STEP_OPTION, problem, at.key)
            return True
    return False


def check_option_axes(name: str, options: StepOptions, kind: ValueType, ctx: StepContext) -> None:
    """Report an option whose values run over other sets than the step's elements, of type `kind`; once."""
    declared = ctx.bindings.get(name)
    if not kind.indexed and declared is not None and declared.kind == "data":
        kind = declared.type
    own = _sets(kind)
    if not own or None in own or options.via is not None or options.at is not None:
        return
    found = {"mask": options.mask, "weight": options.weight, **{k: one.value for k, one in options.limits.items()}}
    for key, value in found.items():
        sets = () if value is None else _sets(value.type)
        if value is None or None in sets or sets == own[len(own) - len(sets) :]:
            continue
        there, here = " * ".join(map(str, sets)), " * ".join(map(str, own))
        message = f"`{key}` says something of each element of `{name}`, which runs over {here}, but this over {there}"
        ctx.scope.report(AXES_MISMATCH, message, value.origin)
        return


def _sets(kind: ValueType) -> tuple[str | None, ...]:
    return tuple(None if axis is None else set_of(axis) or None for axis in kind.indexed)


def check_no_limits(name: str, options: StepOptions, ctx: StepContext) -> None:
    """Report censoring or truncation of what an arrow draws."""
    if options.limits:
        key, limit = next(iter(options.limits.items()))
        message = (
            f"`{key}` needs a family with its arguments behind `<-`, such as `Weibull(a, b)`; `{name}` is an arrow"
        )
        ctx.scope.report(STEP_OPTION, message, limit.key)


def _family_problem(family: Family) -> str | None:
    if family.event:
        return f"`{family.name}` draws {'vectors' if family.event == 1 else 'matrices'}"
    if family.support.categories and not family.cdf:
        return f"the values of `{family.name}` have no order"
    return None if family.cdf else f"`{family.name}` has no cdf that can be computed"


_Problem = tuple[str | None, Limit | None]


def _contradiction(options: StepOptions) -> _Problem:
    other = next((key for key in _CENSORED if key in options.limits), None)
    if "interval" not in options.limits or other is None:
        return None, None
    open_side = "`interval` at ∞" if other == "right_censored" else "a value at the lower end of the support"
    message = f"`interval` already says where each element lies: in place of `{other}` give {open_side}"
    return message, options.limits[other]


def _empty(family: Family, options: StepOptions) -> _Problem:
    """Bounds between which nothing is, where they are numbers."""
    low, high = (_number(options.limits.get(key)) for key in ("truncate_lower", "truncate_upper"))
    upper = options.limits.get("truncate_upper")
    if low is not None and high is not None and (low > high or (low == high and not family.discrete)):
        return f"`truncate_upper` must be above `truncate_lower`, but {high:g} is not above {low:g}", upper
    support = family.support
    for key, value, end in (("truncate_lower", low, support.high), ("truncate_upper", high, support.low)):
        if value is None or end is None:
            continue
        beyond = value >= end if key == "truncate_lower" else value <= end
        if beyond and not (family.discrete and value == end):
            where = interval(support.low, support.high)
            return f"no value of `{family.name}` ({where}) is left beyond {value:g}", options.limits[key]
    return None, None


def _number(limit: Limit | None) -> float | None:
    value = limit.value if limit is not None else None
    return float(value.value) if isinstance(value, Constant) and not isinstance(value.value, str) else None
