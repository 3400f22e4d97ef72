"""The weights with a prior that a program applies: latents of the program, one site a morphism, above its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from qvr_core.semantics.scope.environment import Binding
from qvr_core.semantics.scope.scope import ArrowEntry, Entry, Scope
from qvr_core.semantics.types.density import EXACT
from qvr_core.semantics.types.diagnostics import DeclarationSite, Origin, Related
from qvr_core.semantics.types.model.expressions import Constant, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw, Weights
from qvr_core.semantics.types.model.steps import SampleModel, Site
from qvr_core.semantics.types.program_codes import BOUND_TWICE, HIDDEN_GLOBAL, WEIGHT_PRIOR
from qvr_core.semantics.types.spaces import REAL_LINE, Finite, Named, product
from qvr_core.syntax.immutable import immutable


@immutable
class Use:
    """What a step looks up in the file, and where the step stands."""

    entries: Iterable[Entry | None]
    place: Origin


def has_weights(entries: Iterable[Entry | None]) -> bool:
    """Whether one of them has weights with a prior."""
    return any(isinstance(entry, ArrowEntry) and entry.weights for entry in entries)


def weight_sites(
    uses: Sequence[Use], bindings: Mapping[str, Binding], uses_input: bool, scope: Scope, origin: Origin
) -> tuple[SampleModel, ...]:
    """A site for the weights of each morphism with a prior; reports where there can be none."""
    found: dict[Weights, Origin] = {}
    for use in (*uses, Use(scope.local.values(), origin)):
        for entry in use.entries:
            for one in entry.weights if isinstance(entry, ArrowEntry) else ():
                found.setdefault(one, use.place)
    if uses_input and found:
        _report_input(*next(iter(found.items())), scope)
        return ()
    for one in found:
        if one.name in bindings:
            _report_name(one, bindings[one.name].origin, scope)
            return ()
    return tuple(SampleModel(site=_site(one, origin)) for one in found)


def _report_input(one: Weights, place: Origin, scope: Scope) -> None:
    message = f"the weights of `{one.name}` have a prior, so they are drawn once for all rows; this program reads its "
    message += "input, and draws anew in each row: declare the rows as `data` instead"
    related = (Related(f"`{one.name}` is declared here", DeclarationSite(one.name)),)
    scope.report(WEIGHT_PRIOR, message, place, related)


def _report_name(one: Weights, place: Origin, scope: Scope) -> None:
    # it hides the declaration as well, which is no news then
    scope.withdraw(HIDDEN_GLOBAL, place)
    related = (Related(f"`{one.name}` is declared here", DeclarationSite(one.name)),)
    message = f"`{one.name}` is the site of the weights of the morphism `{one.name}`, which have a prior"
    scope.report(BOUND_TWICE, message, place, related)


def _site(one: Weights, origin: Origin) -> Site:
    over = Named(product([(axis.nominal, axis) for axis in one.sets]), " * ".join(map(_written, one.sets)))
    args = tuple(
        (name, Constant(type=ValueType(REAL_LINE), origin=origin, value=value)) for name, value in one.arguments
    )
    return Site(
        name=one.name,
        bound=((one.name, Named(REAL_LINE, "Real 1")),),
        plate=over,
        element=None,
        draw=FamilyDraw(family=one.family, args=args, origin=origin, declared=one.declared),
        density=EXACT,
        over=None,
        via=None,
        mask=None,
        weight=None,
        at=None,
        row_local=True,
        origin=origin,
        weights=True,
        type=ValueType(
            REAL_LINE, tuple(axis.nominal for axis in one.sets), sizes=tuple(axis.size for axis in one.sets)
        ),
    )


def _written(axis: Finite) -> str:
    return axis.nominal or f"FinSet {axis.size}"
