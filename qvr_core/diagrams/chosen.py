"""What of a file can be drawn, and what is drawn where nothing is named."""

from __future__ import annotations

from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.file import Model


class NoDiagram(Exception):
    """There is nothing of that name to draw."""


def main_name(model: Model) -> str:
    """What is drawn where nothing is named: the first export, else the last program or let."""
    if model.exports:
        return model.exports[0].name
    drawn = [name for name in model.order if name in model.programs or name in model.lets]
    models = [name for name in drawn if name not in model.programs or model.programs[name].guidance is None]
    if drawn:
        return (models or drawn)[-1]
    raise NoDiagram("This file declares no let and no program, so there is nothing to draw.")


def drawable(model: Model) -> list[str]:
    """Names that `build` takes, in file order."""
    groups = (model.programs, model.lets, model.arrows, model.term_arrows)
    return [name for name in model.order if any(name in group for group in groups)]


def arrow_named(model: Model, name: str) -> Arrow:
    if name in model.lets:
        return model.lets[name].arrow
    if name in model.arrows:
        return model.arrows[name]
    if name in model.term_arrows:
        return model.term_arrows[name]
    for export in model.exports:
        if export.name == name and export.arrow is not None:
            return export.arrow
    known = ", ".join(drawable(model)) or "none"
    raise NoDiagram(f"There is no let, program or morphism called '{name}'. Known: {known}.")
