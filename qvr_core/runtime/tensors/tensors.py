"""Tensor arrows: matrices of weights between finite sets, composed in an algebra.

The matrix of an arrow A -o B has one axis per factor of A and then one per factor of B; inside this file it is mostly
flattened to (|A|, |B|), last factor fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.runtime.arrows.repetition import wanted_steps
from qvr_core.runtime.families import RUNTIME_FAMILIES
from qvr_core.runtime.tensors.algebras import Algebra
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.errors import InputProblem, MissingData
from qvr_core.runtime.values.leaves import adopt
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.arrows.parameters import Shape, parameter_shapes
from qvr_core.semantics.types.model.arrows import Latent, Observed
from qvr_core.semantics.types.spaces import Named, Space

LATENT_SPREAD = 0.5


def sizes(space: Space) -> tuple[int, ...]:
    """The sizes of the finite factors."""
    return tuple(block.size for block in layout.blocks(space))


class TensorArrow(ArrowModule):
    """Base of the tensor arrows.  On a value of the domain it gives that element's row of weights, (B, |B|)."""

    algebra: Algebra

    def __init__(self, domain: Named, codomain: Named, algebra: Algebra) -> None:
        super().__init__()
        self.domain, self.codomain, self.algebra = domain, codomain, algebra
        self.shape = (layout.total_elements(domain.space), layout.total_elements(codomain.space))

    def flat(self) -> Tensor:
        """The matrix as (|A|, |B|)."""
        raise NotImplementedError

    def matrix(self) -> Tensor:
        """The matrix with an axis per factor: of the domain, then of the codomain."""
        return self.flat().reshape(*sizes(self.domain.space), *sizes(self.codomain.space))

    def rsample(self, x: Value | None, sample_shape: tuple[int, ...] = ()) -> Tensor:
        """Nothing is drawn from a matrix of weights.  Raises `InputProblem`, which says what there is."""
        written = f"{self.domain.written} -o {self.codomain.written}"
        raise InputProblem(
            f"a tensor arrow {written} is a matrix of weights, not a distribution: `.matrix()` gives all of it, and "
            "called with elements of its domain it gives their rows"
        )

    def forward(self, x: Value) -> Value:
        return self.flat()[layout.flat_index(x, self.domain.space)]

    def output_like(self, x: Value) -> Value:
        return arrays.zeros(()).expand(*layout.lead_shape(x, self.domain.space), self.shape[1])


class LatentTensor(TensorArrow):
    """A learned matrix: free parameters `weight`, mapped into the algebra's value set."""

    def __init__(self, node: Latent, algebra: Algebra) -> None:
        super().__init__(node.domain, node.codomain, algebra)
        self.prior = node.prior
        self.scale = node.scale
        first = _initial(parameter_shapes(node)["weight"], node.init, node.scale)
        self.weight = nn.Parameter(first if node.start is None else first + algebra.free(node.start))

    def flat(self) -> Tensor:
        return self.algebra.value(self.weight)

    def log_prior(self) -> Tensor:
        """log density of the tensor under its prior, summed over its entries; zero where it has none."""
        if self.prior is None:
            return self.weight.new_zeros(())
        name, literal = self.prior
        family = RUNTIME_FAMILIES[name]
        given = {key: self.weight.new_tensor(value) for key, value in literal}
        if not given:
            # a prior without arguments: centred, `scale` wide
            given = {
                parameter.name: self.weight.new_tensor(self._default(parameter.constraint))
                for parameter in family.facts.parameters
            }
        value = self.flat()
        if family.event == 1:
            given = {key: entry.expand(value.shape[-1]) for key, entry in given.items()}
        return family.log_prob(value, *family.canonical(given)).sum()

    def _default(self, constraint: str) -> float:
        return 0.0 if constraint == "real" else self.scale or 1.0


def _initial(shape: Shape, init: str, scale: float | None) -> Tensor:
    weight = arrays.empty(shape)
    if init == "zeros":
        return nn.init.zeros_(weight)
    if init == "xavier":
        return nn.init.xavier_uniform_(weight, gain=scale or 1.0)
    return weight.normal_(std=LATENT_SPREAD if scale is None else scale)


class ObservedTensor(TensorArrow):
    """A given matrix.  It moves with the module but is no parameter."""

    given: Tensor

    def __init__(self, node: Observed, algebra: Algebra, value: Tensor) -> None:
        super().__init__(node.domain, node.codomain, algebra)
        self.register_buffer("given", value, persistent=False)

    def flat(self) -> Tensor:
        return self.given


def given_matrix(
    name: str, source: str, data: Mapping[str, object], shape: tuple[int, int], algebra: Algebra
) -> Tensor:
    """The matrix that data holds under `source`, checked for its size and the algebra's value set."""
    if source not in data:
        known = ", ".join(f"`{key}`" for key in sorted(data)) or "nothing"
        raise MissingData(
            f'`{name}` reads data `{source}`, which is missing (given: {known}); pass load(…, data={{"{source}": …}})'
        )
    value = arrays.as_tensor(data[source])
    if value.numel() != shape[0] * shape[1]:
        raise InputProblem(
            f"`{name}`: data `{source}` has shape {tuple(value.shape)}, expected {shape[0]} × {shape[1]} weights"
        )
    value = value.reshape(shape).to(precision())
    low, high = (float(bound) for bound in arrays.aminmax(value))
    if low < algebra.low or high > algebra.high:
        bad = low if low < algebra.low else high
        raise InputProblem(
            f"`{name}`: data `{source}` holds {bad:g}, but weights in `{algebra.name}` lie between "
            f"{algebra.low:g} and {algebra.high:g}"
        )
    return value


class KernelTensor(TensorArrow):
    """A finite kernel as a matrix: its probabilities, or their logarithms in a logarithmic algebra."""

    def __init__(self, kernel: ArrowModule, algebra: Algebra) -> None:
        super().__init__(kernel.domain, kernel.codomain, algebra)
        self.kernel = (kernel,)
        adopt(self, [kernel])

    def flat(self) -> Tensor:
        device = next((p.device for p in self.parameters()), None)
        index = arrays.arange(self.shape[0], device=device)
        blocks = layout.blocks(self.domain.space)
        x = layout.from_flat_index(index, self.domain.space) if len(blocks) > 1 else index
        return self.algebra.from_log_probs(self.kernel[0].log_table(x)[0])


class IdentityTensor(TensorArrow):
    """Unit on the diagonal, zero elsewhere."""

    def flat(self) -> Tensor:
        return self.algebra.identity(self.shape[0])


class ComposedTensor(TensorArrow):
    """`a >> b`: join over the middle of the products."""

    def __init__(self, stages: Sequence[TensorArrow], domain: Named, codomain: Named, algebra: Algebra) -> None:
        super().__init__(domain, codomain, algebra)
        self.stages = tuple(stages)
        adopt(self, stages)

    def flat(self) -> Tensor:
        matrix = self.stages[0].flat()
        for stage in self.stages[1:]:
            matrix = self.algebra.matmul(matrix, stage.flat())
        return matrix


class ParallelTensor(TensorArrow):
    """`a @ b` (all pairs of rows), or `fan(a, b)` (the same row in each)."""

    def __init__(
        self, branches: Sequence[TensorArrow], domain: Named, codomain: Named, algebra: Algebra, shared_input: bool
    ) -> None:
        super().__init__(domain, codomain, algebra)
        self.branches = tuple(branches)
        self.shared_input = shared_input
        adopt(self, branches)

    def flat(self) -> Tensor:
        matrix = self.branches[0].flat()
        for branch in self.branches[1:]:
            other = branch.flat()
            if self.shared_input:
                matrix = self.algebra.times(matrix[:, :, None], other[:, None, :]).flatten(1)
            else:
                joint = self.algebra.times(matrix[:, None, :, None], other[None, :, None, :])
                matrix = joint.flatten(2).flatten(0, 1)
        return matrix


class DaggerTensor(TensorArrow):
    """The transposed matrix."""

    def __init__(self, base: TensorArrow, domain: Named, codomain: Named) -> None:
        super().__init__(domain, codomain, base.algebra)
        self.base = (base,)
        adopt(self, [base])

    def flat(self) -> Tensor:
        return self.base[0].flat().mT


class MappedTensor(TensorArrow):
    """`f.change_base(t)`: every weight mapped into another algebra."""

    def __init__(self, base: TensorArrow, mapped: Callable[[Tensor], Tensor], algebra: Algebra) -> None:
        super().__init__(base.domain, base.codomain, algebra)
        self.base = (base,)
        self.mapped = mapped
        adopt(self, [base])

    def flat(self) -> Tensor:
        return self.mapped(self.base[0].flat())


class CurriedTensor(TensorArrow):
    """The same weights under other sides: A * B -o C as B -o A * C (`left`) or as A -o B * C.

    `matrix` is a view of the base's; where the first factor moves, only who wants it flat has a copy made.
    """

    def __init__(self, base: TensorArrow, domain: Named, codomain: Named, left: bool) -> None:
        super().__init__(domain, codomain, base.algebra)
        self.base = (base,)
        self.left = left
        adopt(self, [base])

    def matrix(self) -> Tensor:
        whole = self.base[0].matrix()
        if not self.left:
            return whole  # the last axis of the domain is already the one before the codomain's
        others = len(sizes(self.domain.space))
        behind = range(others + 1, whole.ndim)
        return whole.permute(*range(1, others + 1), 0, *behind)

    def flat(self) -> Tensor:
        return self.matrix().reshape(self.shape)


class TracedTensor(TensorArrow):
    """`f.trace(X)`: A * X -o B * X to A -o B, the join over x of f(a, x; b, x)."""

    def __init__(self, base: TensorArrow, domain: Named, codomain: Named, over: Named) -> None:
        super().__init__(domain, codomain, base.algebra)
        self.base = (base,)
        self.size = layout.total_elements(over.space)
        adopt(self, [base])

    def flat(self) -> Tensor:
        blocks = self.base[0].flat().reshape(self.shape[0], self.size, self.shape[1], self.size)
        return self.algebra.join(blocks.diagonal(dim1=1, dim2=3))


class DroppedTensor(TensorArrow):
    """`f.marginalize(X, …)`: factors of the codomain joined out."""

    def __init__(self, base: TensorArrow, indices: Sequence[int], domain: Named, codomain: Named) -> None:
        super().__init__(domain, codomain, base.algebra)
        self.base = (base,)
        self.indices = tuple(indices)
        adopt(self, [base])

    def flat(self) -> Tensor:
        matrix = self.base[0].flat()
        axes = sizes(self.base[0].codomain.space)
        matrix = matrix.reshape(matrix.shape[0], *axes)
        kept = [axis + 1 for axis in range(len(axes)) if axis not in self.indices]
        dropped = [axis + 1 for axis in self.indices]
        return self.algebra.join(matrix.permute(0, *kept, *dropped).reshape(*self.shape, -1))


class FrozenTensor(TensorArrow):
    """The same matrix; no gradient reaches its parameters."""

    def __init__(self, base: TensorArrow) -> None:
        super().__init__(base.domain, base.codomain, base.algebra)
        self.base = (base,)
        adopt(self, [base])

    def flat(self) -> Tensor:
        return self.base[0].flat().detach()


class RepeatedTensor(TensorArrow):
    """A power of a square matrix; without a count as often as `n_steps` says when it runs."""

    def __init__(self, base: TensorArrow, count: int | None) -> None:
        super().__init__(base.domain, base.codomain, base.algebra)
        self.base = (base,)
        self.count = count
        adopt(self, [base])

    def flat(self) -> Tensor:
        matrix = self.base[0].flat()
        power = matrix
        for _ in range((self.count if self.count is not None else wanted_steps()) - 1):
            power = self.algebra.matmul(power, matrix)
        return power
