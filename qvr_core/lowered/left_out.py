"""`[missing=drop]` as a mask: a let of data says which cells are there, and a factor counts where they are."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.lowered.axes import plate_axes
from qvr_core.lowered.tails import ANY, call
from qvr_core.semantics.types.model.expressions import Bound, ValueType
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel, Site
from qvr_core.semantics.types.walk import sites


def with_presence(program: Program) -> Program:
    """The program with a let in front for each observed step that leaves out missing cells."""
    lets = tuple(
        LetModel(names=(present.name,), value=call("eq", call("isnan", _value(site)), 0), origin=site.origin)
        for site in sites(program.steps, ObserveModel)
        if (present := presence(site)) is not None
    )
    return replace(program, steps=(*lets, *program.steps)) if lets else program


def presence(site: Site) -> Bound | None:
    """Which cells of a step are there; None where none may be missing, or something fills them."""
    if site.missing is None or site.missing.how != "drop":
        return None
    kind = ValueType(None, (None,) * len(plate_axes(site)))
    # no name of a program has a sign in it
    return Bound(type=kind, origin=site.origin, name=f"{site.name}?")


def _value(site: Site) -> Bound:
    return Bound(type=site.type or ANY, origin=site.origin, name=site.name)
