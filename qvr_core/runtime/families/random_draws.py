"""What draws are made of: parameter-free noise, and Gamma draws."""

from __future__ import annotations

from qvr_core.arrays.engine import Generator, Tensor, arrays

Shape = tuple[int, ...]


def standard_noise(base: str, shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Parameter-free noise of base 'normal' or 'uniform'."""
    return normals(shape, like, generator) if base == "normal" else open_uniforms(shape, like, generator)


def normals(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Standard normal noise."""
    return arrays.randn(shape, generator=generator, dtype=like.dtype, device=like.device)


def open_uniforms(shape: Shape, like: Tensor, generator: Generator | None) -> Tensor:
    """Uniform noise strictly between 0 and 1."""
    u = arrays.rand(shape, generator=generator, dtype=like.dtype, device=like.device)
    return u.clamp_(arrays.finfo(u.dtype).tiny, 1.0 - 0.5 * arrays.finfo(u.dtype).eps)


def standard_gamma(concentration: Tensor, generator: Generator | None) -> Tensor:
    """A Gamma(concentration, 1) draw with implicit gradients: what torch.distributions calls, with a generator."""
    return arrays._standard_gamma(concentration, generator=generator)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]


def log_gamma_draw(shape: Shape, concentration: Tensor, generator: Generator | None) -> Tensor:
    """log of a standard Gamma draw; by Γ(c) = Γ(c + 1) · u^(1/c) it neither under- nor overflows for small c."""
    c = concentration.expand(shape)
    boosted = standard_gamma(c + 1.0, generator)
    return boosted.log() + open_uniforms(shape, c, generator).log() / c
