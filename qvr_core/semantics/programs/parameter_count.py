"""How many numbers an arrow or a program learns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qvr_core.semantics.arrows.parameters import UnknownSize, own_count
from qvr_core.semantics.deductions.rule_instances import weight_count
from qvr_core.semantics.types.model.arrows import Arrow, ArrowBase, Instance, Ref, Stack
from qvr_core.semantics.types.model.expressions import DeductionRef
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ParamModel
from qvr_core.semantics.types.spaces import Constrained, Dim, Space, width
from qvr_core.semantics.types.walk import arrow_named, parts, until_arrows, walk

MOST_VISITED = 1_000_000


@dataclass(slots=True)
class Budget:
    """How many arrows may still be looked at."""

    left: int


class _UsedUp(Exception):
    pass


def parameter_count(model: Model, arrow: Arrow | Program, budget: Budget | None = None) -> int | None:
    """Learned numbers in an arrow; None while a size is unknown, or the weights of a deduction are (`weight_count`),
    and where the budget is used up.

    A name used twice counts once; each layer of a `stack` counts for itself.
    """
    try:
        return _count(model, arrow, set(), budget or Budget(MOST_VISITED))
    except (UnknownSize, _UsedUp):
        return None


def _count(model: Model, root: Arrow | Program, seen: set[str], budget: Budget) -> int:
    total = 0
    pending = [root]
    while pending:
        budget.left -= 1
        if budget.left < 0:
            raise _UsedUp
        match pending.pop():
            case Program() as program:
                for node in walk(program, until_arrows):
                    if isinstance(node, ArrowBase):
                        pending.append(node)
                    elif isinstance(node, ParamModel):
                        total += len(node.names) * learned_numbers(node)
                    elif isinstance(node, DeductionRef):
                        total += _weights(model, node.name, seen)
            case Ref(name=name):
                target = None if name in seen else arrow_named(model, name)
                seen.add(name)
                pending += [] if target is None else [target]
            case Instance(program=Program() as program):
                pending.append(program)
            case Stack(body=body, count=count):
                # Fresh copies: what is shared inside one layer counts once in it, and once more in the next.
                total += count * _count(model, body, set(), budget)
            case arrow:
                # what the call of a template makes stands at each of its uses
                key = f"#{id(arrow)}"
                if key not in seen:
                    seen.add(key)
                    total += own_count(arrow)
                pending += parts(arrow)
    return total


def learned_numbers(step: ParamModel) -> int:
    """How many numbers each name of a `param` step stands for, in their constrained form's own coordinates."""
    shape = (*step.type.sizes, _free(step.type.space))
    if not all(isinstance(size, int) for size in shape):
        raise UnknownSize
    return math.prod(int(size) for size in shape if isinstance(size, int))


def _free(space: Space | None) -> Dim | None:
    if not isinstance(space, Constrained):
        return None if space is None else width(space)
    if not isinstance(space.size, int):
        return None
    size = int(space.size)
    matrix = size * (size + 1) // 2 if space.kind in ("CholeskyFactor", "Covariance") else size * (size - 1) // 2
    return {"Simplex": size - 1, "Ordered": size}.get(space.kind, matrix)


def _weights(model: Model, deduction: str, seen: set[str]) -> int:
    found = model.deductions.get(deduction)
    if found is None or deduction in seen:
        return 0
    seen.add(deduction)
    count = weight_count(found)
    if count is None:
        raise UnknownSize
    return count
