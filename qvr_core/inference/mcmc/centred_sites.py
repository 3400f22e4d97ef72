"""Which latent makes a program hard for a chain: one that is drawn around other latents, or as wide as they say."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.types.model.expressions import Bound, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, SampleModel, Site
from qvr_core.semantics.types.walk import operands, walk


def hard_site(program: Program) -> tuple[Site, str, str] | None:
    """The site that is to blame, which parameter of it, and the latent that this depends on; one whose scale is a
    latent before one whose location is."""
    return min(_centred(program), key=lambda item: item[1] != "scale", default=None)


def advice(program: Program) -> str | None:
    """How to write the site that is to blame."""
    found = hard_site(program)
    if found is None:
        return None
    site, parameter, latent = found
    chained = site.chain is not None and any(index.lag for index in site.chain.indices)
    able = isinstance(site.draw, FamilyDraw) and facts_of_draw(site.draw).noncentred and not chained
    how = "put `[noncentred]` behind its draw" if able else "sample a standard one and shift and scale it in a `let`"
    return f"write `{site.name}` non-centred, since its {parameter} depends on the latent `{latent}`: {how}"


def _centred(program: Program) -> Iterator[tuple[Site, str, str]]:
    """(site, parameter, the latent that the parameter depends on) of every such site."""
    behind: dict[str, str] = {}
    for step in program.steps:
        match step:
            case LetModel(names=names, value=value):
                latent = next((behind[name] for name in _mentioned(value) if name in behind), None)
                if latent is not None:
                    behind |= dict.fromkeys(names, latent)
            case SampleModel(site=site):
                if isinstance(site.draw, FamilyDraw) and not site.noncentred:
                    for parameter, value in site.draw.args:
                        latent = next((behind[name] for name in _mentioned(value) if name in behind), None)
                        if latent is not None and parameter in ("loc", "scale"):
                            yield site, "location" if parameter == "loc" else "scale", latent
                behind |= {name: site.name for name, _ in site.bound}
            case _:
                pass


def _mentioned(value: Expr) -> Iterator[str]:
    """The bound names of an expression."""
    return (part.name for part in walk(value, operands) if isinstance(part, Bound))
