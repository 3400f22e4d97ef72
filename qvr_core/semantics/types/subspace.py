"""Which space fits where: finite sets by name, reals by width, supports by inclusion.

See docs/reference.md#finite-sets-and-real-spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Literal

from qvr_core.semantics.types.spaces import (
    Constrained,
    Dim,
    Finite,
    Linear,
    Product,
    Real,
    Seq,
    Space,
    Terms,
    Unknown,
    add,
    is_hole,
    linear,
    product_of,
    width,
)
from qvr_core.syntax.immutable import immutable


@immutable
class Fit:
    """`problem` says in words why the kinds do not fit ('' where the spaces speak for themselves), None where they do.

    `pairs` are the widths that must agree; `widths` judges them: '' nothing to compare, 'equal', 'open' or 'wrong'.
    """

    problem: str | None
    pairs: tuple[tuple[Linear, Linear], ...] = ()
    widths: Literal["", "equal", "open", "wrong"] = ""


FITS = Fit(None)


@immutable
class _Run:
    """Neighbouring real factors that count as one real space, or one other factor."""

    factors: tuple[Space, ...]
    sequence: bool

    @property
    def head(self) -> Space:
        return self.factors[0]


def fit(given: Space, wanted: Space) -> Fit:
    """Whether `given` fits where `wanted` is wanted."""
    if given is wanted:
        return FITS
    left, right = _runs(given, coerce=False), _runs(wanted, coerce=False)
    if _any_unknown(left) or _any_unknown(right):
        return FITS
    result = _compare(left, right)
    if result.problem is not None and not isinstance(wanted, Constrained):
        # what has a support fits where plain reals of its width are wanted
        coerced = _compare(_runs(given, coerce=True), right)
        if coerced.problem is None:
            return coerced
    return result


def _runs(space: Space, *, coerce: bool) -> list[_Run]:
    runs: list[_Run] = []
    for factor, sequence in _atoms(space, False):
        if coerce and isinstance(factor, Constrained):
            factor = Real((width(factor),))
        if isinstance(factor, Real) and runs and runs[-1].sequence == sequence and isinstance(runs[-1].head, Real):
            runs[-1] = _Run((*runs[-1].factors, factor), sequence)
        else:
            runs.append(_Run((factor,), sequence))
    return runs


def _atoms(space: Space, sequence: bool) -> list[tuple[Space, bool]]:
    # a sequence of a product is the product of the sequences
    if isinstance(space, Product):
        return [atom for factor in space.factors for atom in _atoms(factor, sequence)]
    if isinstance(space, Seq):
        return _atoms(space.item, True)
    return [(space, sequence)]


def _any_unknown(runs: list[_Run]) -> bool:
    return any(isinstance(run.head, Unknown) for run in runs)


def _compare(left: list[_Run], right: list[_Run]) -> Fit:
    if len(left) != len(right):
        return Fit(_count_problem(left, right))
    pairs: list[tuple[Linear, Linear]] = []
    verdict: Literal["", "equal", "open", "wrong"] = ""
    for given, wanted in zip(left, right, strict=True):
        if (problem := _run_problem(given, wanted)) is not None:
            return Fit(problem)
        for have, want in _sizes(given, wanted):
            have_form, want_form = linear(have), linear(want)
            if have_form == want_form:
                continue
            pairs.append((have_form, want_form))
            if isinstance(have, Linear) or isinstance(want, Linear):
                verdict = verdict if verdict == "wrong" else "open"
            elif int(have) != int(want):
                verdict = "wrong"
            else:
                verdict = verdict or "equal"
    return Fit(None, tuple(pairs), verdict)


def _count_problem(left: list[_Run], right: list[_Run]) -> str:
    if not (len(left) == 1 and len(right) == 1) and all(isinstance(run.head, Finite) for run in (*left, *right)):
        return f"{_factors(len(left))}, not {_factors(len(right))}"
    return ""


def _factors(count: int) -> str:
    return "one factor" if count == 1 else f"{count} factors"


def _run_problem(given: _Run, wanted: _Run) -> str | None:
    left, right = given.head, wanted.head
    if given.sequence != wanted.sequence:
        return "a sequence is not one element" if given.sequence else "one element is not a sequence"
    if isinstance(left, Finite) and isinstance(right, Finite):
        if left.nominal is None or right.nominal is None or left.nominal == right.nominal:
            return None
        return f"`{left.nominal}` and `{right.nominal}` are different sets"
    if isinstance(left, Constrained) and isinstance(right, Constrained):
        if left.kind != right.kind:
            return f"a {left.kind} is not a {right.kind}"
        return None if _inside(left, right) else f"entries may lie outside {interval(right)}"
    if isinstance(left, Real) and isinstance(right, Real):
        alone = len(given.factors) == len(wanted.factors) == 1
        return _bounds_problem(given.factors, wanted.factors) or (_axes_problem(left, right) if alone else None)
    if isinstance(left, Terms) and isinstance(right, Terms) and left.fits(right):
        return None
    if isinstance(left, Real) and isinstance(right, Constrained):
        return f"not every real vector is in a {right.kind}"
    return ""


def _axes_problem(given: Real, wanted: Real) -> str | None:
    """Why numbers in one shape are not those in another of the same width: an element keeps its place only where axes
    that stand side by side are joined (`Real 8 14 14` as `Real 8 196` or `Real 1568`) or one is taken apart."""
    left, right = _counts(given), _counts(wanted)
    if left is None or right is None or prod(left) != prod(right):
        return None
    if _ends(left) <= _ends(right) or _ends(right) <= _ends(left):
        return None
    return (
        "an element would stand at another place of other axes; one axis between them (`object Vector : "
        f"Real {prod(left)}`, `identity(Vector)`) takes the numbers in their order"
    )


def _counts(space: Real) -> list[int] | None:
    """The sizes of the axes with more than one element; None where one is not known."""
    known = [int(size) for size in space.shape if not isinstance(size, Linear)]
    return [size for size in known if size != 1] if len(known) == len(space.shape) else None


def _ends(sizes: Sequence[int]) -> set[int]:
    """How many elements the first axes have together, for each number of axes."""
    return set(accumulate(sizes, mul))


def _bounds_problem(given: tuple[Space, ...], wanted: tuple[Space, ...]) -> str | None:
    if len(given) == len(wanted):
        pairs = list(zip(given, wanted, strict=True))
    elif len(given) == 1:
        pairs = [(given[0], factor) for factor in wanted]
    elif len(wanted) == 1:
        pairs = [(factor, wanted[0]) for factor in given]
    else:
        return None
    for left, right in pairs:
        if isinstance(left, Real) and isinstance(right, Real) and not _inside(left, right):
            return f"values may lie outside {interval(right)}"
    return None


def _inside(given: Real | Constrained, wanted: Real | Constrained) -> bool:
    low = wanted.low is None or (given.low is not None and given.low >= wanted.low)
    high = wanted.high is None or (given.high is not None and given.high <= wanted.high)
    return low and high


def interval(space: Real | Constrained) -> str:
    """'[0, 1]', '[0, ∞)': the bounds of a space."""
    left = "(-∞" if space.low is None else f"[{space.low:g}"
    right = "∞)" if space.high is None else f"{space.high:g}]"
    return f"{left}, {right}"


def _sizes(given: _Run, wanted: _Run) -> list[tuple[Dim, Dim]]:
    """The sizes that must agree: the widths, or those of each axis where two shapes can only agree axis by axis."""
    if (
        isinstance(given.head, Real)
        and isinstance(wanted.head, Real)
        and len(given.factors) == len(wanted.factors) == 1
    ):
        left, right = given.head.shape, wanted.head.shape
        if len(left) == len(right) > 1 and _axis_by_axis(left, right):
            return list(zip(left, right, strict=True))
    have, want = _size(given), _size(wanted)
    return [] if have is None or want is None else [(have, want)]


def _axis_by_axis(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> bool:
    if max(sum(map(is_hole, left)), sum(map(is_hole, right))) > 1:
        return True
    known = [(a, b) for a, b in zip(left, right, strict=True) if not (is_hole(a) or is_hole(b))]
    alike = all(a == b for a, b in known)
    return alike or (len(known) == len(left) and product_of(left) != product_of(right))


def _size(run: _Run) -> int | Linear | None:
    head = run.head
    if isinstance(head, Finite):
        return head.size
    if isinstance(head, Constrained):
        return head.size
    if isinstance(head, Real):
        return add(product_of(factor.shape) for factor in run.factors if isinstance(factor, Real))
    return None
