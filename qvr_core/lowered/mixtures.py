"""`Mixture(w, A(…), B(…))` as a draw from each of its families."""

from __future__ import annotations

from dataclasses import replace

from qvr_core.semantics.language.mixtures import WEIGHTS, component_names
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw


def components(draw: FamilyDraw) -> tuple[tuple[str, Expr], tuple[FamilyDraw, ...]]:
    """The weights, or their logits, by name, and a draw from each component of a mixture."""
    names = component_names(draw.family) or ()
    own = {WEIGHTS.name, *(other for other, _ in WEIGHTS.alternatives)}
    (weights,) = (arg for arg in draw.args if arg[0] in own)
    parts = [
        replace(
            draw,
            family=name,
            args=tuple(
                (key.removesuffix(f"_{number}"), value)
                for key, value in draw.args
                if key not in own and key.endswith(f"_{number}")
            ),
            declared=tuple(one for one in draw.declared if one.name == name),
        )
        for number, name in enumerate(names, 1)
    ]
    return weights, tuple(parts)
