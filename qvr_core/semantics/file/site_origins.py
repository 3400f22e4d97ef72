"""Where the names of a program stand in its text: what errors at run time point to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, ParamModel, ScoreModel, StepModel
from qvr_core.semantics.types.walk import all_steps


def site_origins(program: Program) -> dict[str, Origin]:
    """The step that binds each name, blocks included; for data names their first mention."""
    found: dict[str, Origin] = {}
    for name, origin in _bound(program.steps):
        found.setdefault(name, origin)
    for item in program.data:
        found.setdefault(item.name, item.origin)
    return found


def _bound(steps: Sequence[StepModel]) -> Iterator[tuple[str, Origin]]:
    for step in all_steps(steps):
        match step:
            case LetModel(names=names, origin=origin) | ParamModel(names=names, origin=origin):
                yield from ((name, origin) for name in names)
            case ScoreModel(name=name, origin=origin):
                yield name, origin
            case _:
                yield step.site.name, step.site.origin
                yield from ((name, step.site.origin) for name, _ in step.site.bound)
