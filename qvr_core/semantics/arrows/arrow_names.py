"""A bare name where an arrow is wanted."""

from __future__ import annotations

from qvr_core.semantics.arrows.combinator_calls import CALLS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.scope.scope import (
    UNKNOWN,
    ArrowEntry,
    DamagedEntry,
    DistributionEntry,
    FamilyEntry,
    FunctionEntry,
    GuideEntry,
    ObjectEntry,
    Scope,
    TemplateEntry,
)
from qvr_core.semantics.types.codes import BARE_REPLICATED, CALL_ARGUMENTS, WRONG_KIND
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.arrows import Arrow, Damaged, Ref, Sort
from qvr_core.syntax.tree.names import Name


def damaged(origin: Origin) -> Damaged:
    """Stands for an arrow that could not be typed; it fits everywhere."""
    return Damaged(domain=UNKNOWN, codomain=UNKNOWN, sort=Sort.DETERMINISTIC, origin=origin, density=DETERMINISTIC)


def arrow_of(name: Name, scope: Scope) -> Arrow:
    """The arrow that a name stands for, as a `Ref` where one is declared; reports names that mean something else."""
    entry = scope.lookup(name.text)
    origin = scope.origin(name.span)
    if isinstance(entry, ArrowEntry) and entry.own is not None:
        return entry.own
    if isinstance(entry, ArrowEntry):
        return Ref(
            name=entry.name,
            domain=entry.domain,
            codomain=entry.codomain,
            sort=entry.sort,
            origin=origin,
            density=entry.density,
        )
    if entry is None:
        _unknown_arrow(name, scope)
    elif isinstance(entry, FamilyEntry):
        _bare_replicated(entry, name, scope)
    elif not isinstance(entry, DamagedEntry):
        kinds: dict[type[object], str] = {
            ObjectEntry: "an object",
            TemplateEntry: "a program with parameters: call it with its arguments",
            FunctionEntry: "a function of arithmetic: call it in a program",
            GuideEntry: f"the guide of `{getattr(entry, 'model', '')}`: only a fit draws from it",
            DistributionEntry: f"a family: draw from it in a program, `sample … <- {name.text}(…)`",
        }
        what = kinds.get(type(entry), "no arrow")
        related = (
            ()
            if name.text in scope.local
            else (Related(f"`{name.text}` is declared here", DeclarationSite(name.text)),)
        )
        scope.report(WRONG_KIND, f"an arrow is wanted here, but `{name.text}` is {what}", name.span, related)
    return damaged(origin)


def _unknown_arrow(name: Name, scope: Scope) -> None:
    if name.text in FAMILIES:
        message = f"an arrow is wanted here, but `{name.text}` is a family: declare a morphism `… ~ {name.text}`"
        scope.report(WRONG_KIND, message, name.span)
    elif name.text in CALLS:
        scope.report(CALL_ARGUMENTS, f"`{name.text}` wants arguments: `{name.text}(…)`", name.span)
    else:
        scope.unknown(name, "arrow")


def _bare_replicated(entry: FamilyEntry, name: Name, scope: Scope) -> None:
    copies = entry.copies
    listed = f"`{copies[0]}`" if len(copies) == 1 else f"`{copies[0]}` … `{copies[-1]}`"
    place = scope.origin(name.span)
    scope.report(
        BARE_REPLICATED,
        f"`{entry.name}` stands for {len(copies)} arrows, {listed}: choose one, or fan out over all of them",
        name.span,
        (Related(f"`{entry.name}` is replicated here", DeclarationSite(entry.name, "option:replicate")),),
        (
            Fix(f"Change to `fan({entry.name})`", (Edit(place, f"fan({entry.name})"),)),
            Fix(f"Change to `{copies[0]}`", (Edit(place, copies[0]),)),
        ),
    )
