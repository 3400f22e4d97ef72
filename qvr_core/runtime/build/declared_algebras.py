"""A `composition` with a body as an algebra, a `transformation` as a map: compiled like any arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.execution import Request
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.tensors.algebras import ALGEBRAS, Algebra
from qvr_core.runtime.tensors.transformations import MAPS, Map
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.types.model.deductions import Composition
from qvr_core.semantics.types.model.file import Model


def algebra_named(name: str, model: Model, parts: Parts) -> Algebra:
    """The algebra that a tensor arrow names: one that the file defines, or a builtin one."""
    composition = model.compositions.get(name)
    if composition is not None and composition.operations:
        return defined_algebra(composition, parts)
    if name not in ALGEBRAS:
        raise RuntimeProblem(f"there is no composition `{name}`")
    return ALGEBRAS[name]


def transformation_named(name: str, model: Model, parts: Parts) -> Map:
    """The map that a change of base names: one that the file declares, or a builtin one."""
    declared = model.transformations.get(name)
    if declared is None or declared.body is None:
        if name not in MAPS:
            raise RuntimeProblem(f"there is no transformation `{name}`")
        return MAPS[name]
    evaluate, parameter = compile_expr(declared.body, parts), declared.parameter

    def mapped(weights: Tensor) -> Tensor:
        bound = {parameter: Cell(weights, False)}
        frame = Frame(f"transformation {name}", Request(), 1, None, False, {}, bound)
        found = arrays.as_tensor(evaluate(frame).value).to(weights.dtype)
        return found.expand(weights.shape)  # a formula that does not read the weight gives one number

    return mapped


def defined_algebra(composition: Composition, parts: Parts) -> Algebra:
    """The algebra of a composition's own operations."""
    operations = composition.operations

    def compiled(name: str) -> Callable[..., Tensor] | None:
        if name not in operations:
            return None
        names, body = operations[name]
        evaluate = compile_expr(body, parts)

        def call(*arguments: Tensor) -> Tensor:
            bound = {key: Cell(value, False) for key, value in zip(names, arguments, strict=True)}
            frame = Frame(f"composition {composition.name}", Request(), 1, None, False, {}, bound)
            return arrays.as_tensor(evaluate(frame).value)

        return call

    times, join = compiled("tensor_op"), compiled("join")
    if times is None or join is None:
        raise RuntimeProblem(f"composition `{composition.name}` needs `tensor_op(a, b) = …` and `join(t) = …`")
    unit, zero = (None if (make := compiled(name)) is None else float(make()) for name in ("unit", "zero"))
    truth = unit == 1.0 and zero == 0.0
    return Algebra(
        composition.name,
        times,
        join,
        unit,
        zero,
        arrays.sigmoid if truth else _free,
        0.0 if truth else -arrays.inf,
        1.0 if truth else arrays.inf,
    )


def _free(raw: Tensor) -> Tensor:
    return raw
