"""What is called of `torch`, `torch.linalg` and `torch.special`, with the types that torch leaves out.

torch fills both modules by a function without types, so that all they give would be unknown to the type checker.
Matrices stand on the last two axes; the axes before them broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class FactorAndInfo(NamedTuple):
    """A Cholesky factor, and 0 or the order of the leading minor that is not positive."""

    L: Tensor
    info: Tensor


class InverseAndInfo(NamedTuple):
    """An inverse, and 0 or the place of a pivot that is zero."""

    inverse: Tensor
    info: Tensor


class Eigen(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LinearAlgebra(Protocol):
    """`torch.linalg`.  Raises its `LinAlgError` where a matrix has no such factor or inverse, but for `…_ex`."""

    def cholesky(self, a: Tensor, /) -> Tensor:
        """The lower factor L with L Lᵀ = a."""
        ...

    def cholesky_ex(self, a: Tensor, /) -> FactorAndInfo:
        """The same without a look at whether there is one."""
        ...

    def det(self, a: Tensor, /) -> Tensor:
        """Determinants."""
        ...

    def eigh(self, a: Tensor, /) -> Eigen:
        """Of symmetric matrices."""
        ...

    def inv(self, a: Tensor, /) -> Tensor:
        """Inverses."""
        ...

    def inv_ex(self, a: Tensor, /) -> InverseAndInfo:
        """The same without a look at whether there is one."""
        ...

    def solve_triangular(self, a: Tensor, b: Tensor, /, *, upper: bool, left: bool = True) -> Tensor:
        """The x with a x = b, or x a = b where not `left`."""
        ...

    def vector_norm(self, x: Tensor, /, *, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """The 2-norm along an axis, or of all numbers."""
        ...


class SpecialFunctions(Protocol):
    """`torch.special`: elementwise."""

    def i0e(self, x: Tensor, /) -> Tensor:
        """exp(−|x|) I₀(x), I₀ the modified Bessel function."""
        ...

    def log_ndtr(self, x: Tensor, /) -> Tensor:
        """log Φ(x)."""
        ...

    def ndtr(self, x: Tensor, /) -> Tensor:
        """Φ(x), the cdf of the standard normal."""
        ...

    def ndtri(self, p: Tensor, /) -> Tensor:
        """The inverse of Φ."""
        ...


class Broadcasting(Protocol):
    """Of `torch`, what leaves the types of its results open.  RuntimeError where shapes do not broadcast."""

    def broadcast_tensors(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """All of them, expanded to one shape."""
        ...

    def broadcast_shapes(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that all of them have then."""
        ...
