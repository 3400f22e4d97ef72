"""Deterministic sites: the lets of a program that depend on what it draws."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.semantics.types.model import Bound, Expr, LetModel, Program, SampleModel
from qvr_core.semantics.types.walk import operands, values, walk


def deterministic(program: Program) -> tuple[str, ...]:
    """The names of all lets that depend on a latent, in order; of a program that reads its input there are none."""
    if program.uses_input:
        return ()
    latent: set[str] = set()
    found: list[str] = []
    for step in program.steps:
        if isinstance(step, SampleModel):
            latent.update(name for name, _ in step.site.bound)
        elif isinstance(step, LetModel) and any(name in latent for value in values(step) for name in _mentioned(value)):
            latent.update(step.names)
            found.extend(name for name in step.names if name != "_")
    return tuple(found)


def _mentioned(value: Expr) -> Iterator[str]:
    return (part.name for part in walk(value, operands) if isinstance(part, Bound))
