"""The finite sets that a program speaks of: those of a file that others use alone may have any size."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.data.needs import reachable
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel
from qvr_core.semantics.types.spaces import Finite, Named, Product, Seq, Space
from qvr_core.semantics.types.walk import all_steps

TYPES = ("domain", "codomain", "declared_domain", "declared_codomain")


def sets_used(program: Program, model: Model) -> set[str]:
    """Their names: in its type, its data and steps, and the arrows below."""
    found: set[str] = set()
    spaces: list[Space | None] = []
    for node in reachable(program, model):
        types = [getattr(node, name, None) for name in TYPES]
        spaces += [one.space for one in types if isinstance(one, Named)]
        kind = getattr(node, "type", None)
        if kind is not None:
            found |= {set_of(name) for name in kind.indexed if name}
            spaces.append(kind.space)
    for step in all_steps(program.steps):
        site = getattr(step, "site", None)
        named = [] if site is None else [site.plate, site.element, site.over, *(one for _, one in site.bound)]
        if isinstance(step, MarginalizeModel):
            named += [step.over, step.rows]
        spaces += [one.space for one in named if one is not None]
        if site is not None:
            running = [*site.indices, *(site.chain.indices if site.chain is not None else ())]
            spaces += [index.space for index in running]
        if isinstance(step, LetModel) and step.indexed is not None:
            spaces += [index.space for index in step.indexed.indices]
    for item in program.data:
        spaces += [*item.over, item.type.space]
    return found | {one.nominal for space in spaces for one in _finite(space) if one.nominal is not None}


def _finite(space: Space | None) -> Iterator[Finite]:
    match space:
        case Finite(parts=parts):
            yield space
            yield from (one for part in parts or () for one in _finite(part))
        case Product(factors=factors):
            yield from (one for factor in factors for one in _finite(factor))
        case Seq(item=item):
            yield from _finite(item)
        case _:
            pass
