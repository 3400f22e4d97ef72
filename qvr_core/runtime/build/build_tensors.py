"""From the typed model to tensor arrows."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.runtime.tensors.algebras import ALGEBRAS, Algebra
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.tensors.tensors import (
    ComposedTensor,
    CurriedTensor,
    DaggerTensor,
    DroppedTensor,
    FrozenTensor,
    IdentityTensor,
    KernelTensor,
    LatentTensor,
    MappedTensor,
    ObservedTensor,
    ParallelTensor,
    RepeatedTensor,
    TensorArrow,
    TracedTensor,
    given_matrix,
)
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    ChangeBase,
    Compose,
    Curry,
    Dagger,
    DropFactors,
    Fan,
    Freeze,
    FromData,
    Identity,
    Latent,
    Observed,
    PartialTrace,
    Ref,
    Repeat,
    Stack,
    Tensor,
)
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.walk import arrow_named, parts

DEFAULT_ALGEBRA = "product_fuzzy"


def tensor_arrow(node: Arrow, builder: ArrowBuilder) -> TensorArrow:
    """The tensor arrow of an expression; a finite kernel in it stands for its matrix."""
    algebra = algebra_of(node, builder)
    return _tensor(node, builder, algebra)


def _tensor(node: Arrow, builder: ArrowBuilder, algebra: Algebra) -> TensorArrow:
    domain, codomain = node.domain, node.codomain
    match node:
        case Latent():
            return LatentTensor(node, algebra)
        case Observed():
            return _observed(node, builder, algebra)
        case Ref():
            return _as_tensor(builder.named(node.name), algebra)
        case Compose():
            return ComposedTensor([_tensor(s, builder, algebra) for s in node.stages], domain, codomain, algebra)
        case Tensor():
            factors = [_tensor(factor, builder, algebra) for factor in node.factors]
            return ParallelTensor(factors, domain, codomain, algebra, False)
        case Fan():
            branches = [_tensor(branch, builder, algebra) for branch in node.branches]
            return ParallelTensor(branches, domain, codomain, algebra, True)
        case Stack():
            copies = [_as_tensor(copy, algebra) for copy in builder.copies(node)]
            return ComposedTensor(copies, domain, codomain, algebra)
        case Repeat():
            return RepeatedTensor(_tensor(node.body, builder, algebra), node.count)
        case Identity():
            return IdentityTensor(domain, codomain, algebra)
        case Dagger():
            return DaggerTensor(_tensor(node.base, builder, algebra), domain, codomain)
        case ChangeBase():
            # below it another algebra holds
            base = _tensor(node.base, builder, builder.algebra(node.source))
            return MappedTensor(base, builder.transformation(node.transformation), algebra)
        case Curry():
            return CurriedTensor(_tensor(node.base, builder, algebra), domain, codomain, node.left)
        case PartialTrace():
            return TracedTensor(_tensor(node.base, builder, algebra), domain, codomain, node.over)
        case DropFactors():
            return DroppedTensor(_tensor(node.base, builder, algebra), node.indices, domain, codomain)
        case Freeze():
            return FrozenTensor(_tensor(node.base, builder, algebra))
        case _:
            return _as_tensor(builder.arrow(node), algebra)


def _as_tensor(arrow: ArrowModule, algebra: Algebra) -> TensorArrow:
    if isinstance(arrow, TensorArrow):
        return arrow
    if arrow.tabular:
        return KernelTensor(arrow, algebra)
    raise RuntimeProblem("only tensor arrows and finite kernels can stand for a matrix")


def _observed(node: Observed, builder: ArrowBuilder, algebra: Algebra) -> ObservedTensor:
    shape = (layout.total_elements(node.domain.space), layout.total_elements(node.codomain.space))
    if node.source is not None:
        data: Mapping[str, object] = builder.data
        return ObservedTensor(node, algebra, given_matrix(node.name, node.source, data, shape, algebra))
    if node.arrow is not None:
        inner = node.arrow
        value = (
            given_matrix(node.name, inner.source, builder.data, shape, algebra)
            if isinstance(inner, FromData)
            else _tensor(inner, builder, algebra).flat().detach()
        )
        return ObservedTensor(node, algebra, value)
    raise RuntimeProblem(f'nothing says what the matrix of `{node.name}` is: write `~ from_data("{node.name}")`')


def algebra_of(node: Arrow, builder: ArrowBuilder) -> Algebra:
    """The algebra that the tensors in an expression were declared under; the default where none decides it."""
    name = _algebra_name(node, builder.model, set())
    return builder.algebra(name) if name is not None else ALGEBRAS[DEFAULT_ALGEBRA]


def _algebra_name(node: Arrow, model: Model, seen: set[str]) -> str | None:
    if isinstance(node, Latent | Observed):
        return node.algebra
    if isinstance(node, ChangeBase):
        return node.target
    if isinstance(node, Ref):
        if node.name in seen:
            return None
        seen.add(node.name)
        declared = arrow_named(model, node.name)
        return None if declared is None or isinstance(declared, Program) else _algebra_name(declared, model, seen)
    return next((name for part in parts(node) if (name := _algebra_name(part, model, seen)) is not None), None)
