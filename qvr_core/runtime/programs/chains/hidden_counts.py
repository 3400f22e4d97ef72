"""How many values a hidden count is summed over: those from 0 to the largest of its bounds."""

from __future__ import annotations

from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.programs.arguments import Aligned
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.layout import Where
from qvr_core.semantics.types.density import MOST_SUMMED


def values_of(family: RuntimeFamily, aligned: Aligned, rank: int, where: Where) -> int:
    """The number of values; raises `InputProblem` for bounds that leave none, or too many."""
    parameters, facts = aligned.canonical(rank), family.facts
    given = {one.name: value for one, value in zip(facts.parameters, parameters, strict=False)}
    assert family.categories is not None and facts.counts_to is not None
    high = given[facts.counts_to]
    if bool((high != high.round()).any()):
        raise where.misfit(f"whole numbers as `{facts.counts_to}`", f"{high[high != high.round()].reshape(-1)[0]:g}")
    if bool((high < 0).any()):
        raise where.misfit(f"numbers from 0 on as `{facts.counts_to}`", f"{high.min():g}")
    if facts.bounded_by is not None:
        low = given[facts.bounded_by[0]]
        gap = high - low
        if bool((gap < 0).any()):
            raise where.misfit(
                f"`{facts.counts_to}` at or above `{facts.bounded_by[0]}`", f"a place where it is {-gap.min():g} below"
            )
    try:
        count = family.categories(*parameters)
    except NoDensity as problem:
        raise where.misfit("bounds from 0 on", str(problem)) from None
    if count > MOST_SUMMED:
        raise where.misfit(
            f"at most {MOST_SUMMED:,} values to sum over", f"{count:,}, as `{facts.counts_to}` is up to {count - 1:,}"
        )
    return count
