"""`[missing=impute]` of a discrete family: its missing cells are summed out, each with what reads it.

That needs finitely many values, and readers whose elements depend on one cell each, the one at their own place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.family import Family, support_words
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.axes import indexed
from qvr_core.semantics.types.diagnostics import Origin, Related
from qvr_core.semantics.types.groups import indices_of
from qvr_core.semantics.types.model.expressions import (
    Arrange,
    Bound,
    Builtin,
    Contract,
    Data,
    Expr,
    Index,
    ListOf,
    ValueType,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel, ObserveModel, Site, StepModel
from qvr_core.semantics.types.program_codes import CANNOT_MARGINALIZE
from qvr_core.semantics.types.summed import axes_of, readers, reads, reads_in, sets_in, summed_sites
from qvr_core.semantics.types.walk import operands, values

_OPERATORS = frozenset(["add", "sub", "mul", "div", "pow", "neg", "lt", "le", "gt", "ge", "eq", "ne", "unsqueeze"])
_POINTWISE = frozenset(
    ["softplus", "elu", "celu", "leaky_relu", "hardtanh", "hardshrink", "softshrink", "clamp", "full_like"]
)


def not_summable(family: Family) -> str | None:
    """Why the missing cells of a discrete family cannot be summed out; None where they can."""
    if family.event:
        reason = "draws vectors"
    elif family.support.kind == "count" and family.counts_to is None:
        reason = f"draws {support_words(family)} without end"
    elif family.bounded_by is not None:
        reason = "draws numbers between bounds of its own"
    else:
        return None
    return f"`{family.name}` {reason}, so its missing cells cannot be summed out; `missing=drop` leaves them out"


class Problem(NamedTuple):
    """`what` reads summed-out cells otherwise than each at its own place, and what to do about it."""

    place: Origin
    what: str
    instead: str = "draw a latent of their own and sum it out with `marginalize`"


def check_summed(program: Program, scope: Scope) -> None:
    """Report what reads summed-out cells in a way that no sum over each cell by itself can follow; once a site."""
    taken: dict[str, str] = {}
    for site in summed_sites(program):
        found = next(_problems(program, site, taken), None)
        if found is not None:
            message = (
                f"the missing cells of `{site.name}` are summed out, each with the observed elements that read it at "
                f"their own index, but {found.what}: {found.instead}"
            )
            scope.report(CANNOT_MARGINALIZE, message, found.place, (Related("its cells may be missing", site.origin),))


def _problems(program: Program, site: Site, taken: dict[str, str]) -> Iterator[Problem]:
    """What reads the cells otherwise."""
    name = site.name
    steps = program.steps
    own = next((at for at, step in enumerate(steps) if isinstance(step, ObserveModel) and step.site is site), None)
    for step in steps[: 0 if own is None else own + 1]:
        for found in reads(step, (name,)):
            itself = isinstance(step, ObserveModel) and step.site is site
            yield Problem(found.origin, "its own other elements read them" if itself else "a step above reads them")
    names, axes = {name}, axes_of(site)
    for reader in readers(program, site):
        found = next(reads(reader.step, names))
        yield from (Problem(found.origin, what) for what in _kind(reader.step, name, taken))
        running = {index.name for index in indices_of(reader.step)}
        for value in values(reader.step):
            if (part := not_own(value, names, axes, running)) is not None:
                yield _other_cells(part)
        names.update(reader.step.names if isinstance(reader.step, LetModel) else ())
    if (returned := next((one for _, one in program.returns if one in names), None)) is not None:
        yield Problem(site.origin, f"`return {returned}` wants one value of each")
    if (kept := next((one for one in program.keep or () if one in names), None)) is not None:
        yield Problem(site.origin, f"`keep` wants one value of `{kept}`")
    if None in axes and any(True for _ in readers(program, site)):
        yield Problem(site.origin, "no named set says which cell that is (`: S`)")


def _other_cells(part: Expr) -> Problem:
    """That a part of an expression reads other cells, or has a name in it of which nothing says over what it runs."""
    untold = next(_untyped(part), None)
    if untold is None:
        return Problem(part.origin, "this reads other ones")
    name = untold.name
    return Problem(
        untold.origin,
        f"`{name}` is declared nowhere, and data without a type may run over other cells",
        f"draw `{name}` in a step above, or write `data {name} : …`",
    )


def _untyped(expr: Expr) -> Iterator[Data]:
    if isinstance(expr, Data) and expr.type.space is None:
        yield expr
    for part in operands(expr):
        yield from _untyped(part)


def _kind(step: StepModel, name: str, taken: dict[str, str]) -> Iterator[str]:
    """Why a step may not read summed-out cells, whatever it does with them."""
    if isinstance(step, LetModel):
        if step.indexed is not None and any(index.lag for index in step.indexed.indices):
            yield "a recursion carries them on"
        return
    if isinstance(step, MarginalizeModel):
        yield f"the `marginalize` of `{step.site.name}` reads them, which is a sum of its own"
        return
    if not isinstance(step, ObserveModel) or not isinstance(step.site.draw, FamilyDraw):
        yield "an arrow reads them" if isinstance(step, ObserveModel) else "what reads them here is not observed"
        return
    site = step.site
    if site.via is not None or site.at is not None:
        yield f"`{site.name}` takes other rows"
    if site.missing is not None and site.missing.how != "drop":
        yield f"`{site.name}` may have missing cells of its own"
    if taken.setdefault(site.name, name) != name:
        yield f"`{site.name}` reads those of `{taken[site.name]}`, too"


# ---------------------------------------------------------------- own elements


def not_own(expr: Expr, names: Collection[str], axes: Collection[str | None], running: Collection[str]) -> Expr | None:
    """The part of an expression that reads names over `axes` at other places than its own; None where there is none.

    `running` are the indices of the step: another one over the same set is that of a sum.
    """
    inner = [part for part in operands(expr) if any(True for _ in reads_in(part, names))]
    if not inner and not (isinstance(expr, Bound | Data) and expr.name in names):
        return None
    for part in inner:
        if (found := not_own(part, names, axes, running)) is not None:
            return found
    kept = all(_axes_in(expr.type, running).count(axis) == 1 for axis in axes)
    return None if kept and _own(expr, inner, axes, running) else expr


def _axes_in(kind: ValueType, running: Collection[str]) -> tuple[str | None, ...]:
    """The sets of a value's axes, and the axes of indices that are not the step's own."""
    return tuple(
        name if name is not None and indexed(name) and name.partition("#")[2] not in running else found
        for name, found in zip(kind.indexed, sets_in(kind), strict=True)
    )


def _own(expr: Expr, inner: Collection[Expr], axes: Collection[str | None], running: Collection[str]) -> bool:
    """Whether each element of an expression is made of the elements at its place."""
    match expr:
        case Bound() | Data() | Arrange() | ListOf():
            return True
        case Window(shift=shift):
            return shift == 0
        case Index(base=base):
            return all(part is not base for part in inner)
        case Contract(factors=factors, axes=letters, result=result):
            found = zip(factors, letters, strict=True)
            return all(_product_keeps(factor, own, result, axes, running) for factor, own in found if factor in inner)
        case Builtin(function=name, args=args, keywords=keywords):
            rule = BUILTINS[name].rule if name in BUILTINS else ""
            if name in _OPERATORS or name in _POINTWISE or rule in ("pointwise", "compare"):
                return True
            return (
                rule in ("keep", "reduce") and len(args) == 1 and not keywords and _behind(args[0].type, axes, running)
            )
        case _:
            return False


def _product_keeps(
    factor: Expr,
    letters: tuple[str, ...],
    result: Collection[str],
    axes: Collection[str | None],
    running: Collection[str],
) -> bool:
    """Whether a product that is summed over some axes keeps these of a factor."""
    own = _axes_in(factor.type, running)
    if len(own) != len(letters):
        return False
    return all(letter in result for axis, letter in zip(own, letters, strict=True) if axis in axes)


def _behind(kind: ValueType, axes: Collection[str | None], running: Collection[str]) -> bool:
    """Whether a value's last axis is none of these: it is an event's, or another set's."""
    return kind.event is not None or (bool(kind.indexed) and _axes_in(kind, running)[-1] not in axes)
