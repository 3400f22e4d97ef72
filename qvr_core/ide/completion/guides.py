"""What completion offers in a guide: the programs that it may be the guide of, and their latents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import type_text
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.offers import BEST, Items
from qvr_core.ide.symbols import bindings
from qvr_core.ide.view import model_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def models_offered(snapshot: Snapshot, place: Context) -> Items:
    """The programs of the file that a guide may be written for."""
    own = place.tokens[1].text if len(place.tokens) > 1 else ""
    for program in model_of(snapshot).programs.values():
        if program.guided is not None and program.name != own:
            detail = f"{program.domain.written} -> {program.codomain.written}"
            yield Completion(program.name, "function", detail, rank=BEST)


def latents_offered(snapshot: Snapshot, place: Context) -> Items:
    """The latents that the guide at the cursor does not draw yet."""
    declares = () if place.statement is None else place.statement.header.unit.declares
    programs = model_of(snapshot).programs
    guide = programs.get(declares[0].text) if declares else None
    if guide is None or guide.guidance is None or place.statement is None:
        return
    model = programs.get(guide.guidance.model)
    drawn = bindings(place.statement)
    for latent in () if model is None or model.guided is None else model.guided.latents:
        if latent.name not in drawn and not latent.imputed:
            yield Completion(
                latent.name, "variable", f"latent of {guide.guidance.model}: {type_text(latent.type)}", rank=BEST
            )
