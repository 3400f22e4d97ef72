"""What an arrow is at run time: the contract that every module in this folder keeps.

Shapes: B rows, L positions, width d.  A finite value is int64 (B,) or (B, L); a real one float (B, d) or (B, L, d);
a product is in the normal form of `layout`: neighbouring real factors are one tensor, a mixed product is a tuple.
The leading axis is always the row axis: particles and vectorised chains are rows too.

A sampled arrow makes one or more *draws*.  Each draw turns parameter-free standardised noise into a value; the noise of
every draw but the last is an *innovation*.  Given the innovations, the density of the arrow's value is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from typing_extensions import TypeIs

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.runtime.values.errors import MissingInnovations
from qvr_core.runtime.values.module_recipes import Remade
from qvr_core.semantics.types.spaces import Named

Value = Tensor | tuple[Tensor, ...]
Noise = Mapping[str, Tensor]
"""Noise by draw: the path of the draw inside the arrow -> tensor with the row axis first."""


def is_product(value: object) -> TypeIs[tuple[Tensor, ...]]:
    """Whether a value is of a mixed product, and not one tensor."""
    return isinstance(value, tuple)


@dataclass(frozen=True, slots=True)
class NoiseSpec:
    """One draw of an arrow.

    `path` names the draw inside the arrow (`fwd_cell`, `enc_block.0.enc_head_2`); `shape` is the noise's shape with the
    rows; `base` is its parameter-free density: 'normal' (standard normal), 'uniform' (on (0, 1)), or 'value' where the
    noise is the value itself with a density that depends on the input (Gamma, Beta, Dirichlet, …), or 'discrete' for a
    finite draw that is not summed out.  `final` marks the last draw of its branch: not an innovation.

    A scan has two entries for its cell's last draw: `cell` holds the steps but the last, time on axis 1 in reading
    order, and `cell@last` the last step (final).  With `emit=all` there is one, `cell`, and it is final.

    `made` (B,) says which rows make the draw, None where all do: the noise of the others is read by nothing.
    """

    path: str
    shape: tuple[int, ...]
    base: str
    final: bool
    made: Tensor | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Term:
    """What a `score` or an `observe` inside an arrow adds to the density of the whole: `value` (B, …), with a last axis
    for the places where its program stands, and `log_prob` (B,), the sum of a row.  `given` is False of what is
    observed and has no value, so that it is drawn."""

    value: Tensor
    log_prob: Tensor | None
    given: bool = True


@dataclass(slots=True)
class Drawn:
    """A value with how it came about.

    `log_prob` (B,) is log p(value | x, innovations), None where the arrow has no density; `log_innovations` (B,) is
    log p(innovations | x): the sum of the standard densities, and of the conditional ones where the noise is the value
    itself; `log_noise` (B,) adds the final draws' noise to that.  `score_log_prob` (B,) is the log-probability of the
    discrete draws that went into the value and cannot be reparameterised: what a score-function surrogate multiplies.
    `terms` are in none of these: they are sites of the whole, whatever is asked of densities.
    """

    value: Value
    noise: dict[str, Tensor]
    log_prob: Tensor | None
    log_innovations: Tensor | None
    log_noise: Tensor | None = None
    score_log_prob: Tensor | None = None
    terms: dict[str, Term] = field(default_factory=dict[str, Term])


class ArrowModule(Remade):
    """Base class of all arrows at run time.

    A deterministic arrow implements `forward`; a sampled one implements `noise_specs`, `draw` and `densities`.
    `pointwise` arrows accept any number of leading axes and treat them alike (densities sum all but the first).
    `paths` are all noise paths that can occur; `leaves` the modules with parameters below it by full name
    (`runtime.leaves`); `has_density` is False where a deterministic arrow follows the last draw.  `terms` are
    the names of what its programs score and observe, with the keyword; an arrow that has some implements `conditioned`,
    from which its `densities` follow.
    A `tabular` arrow has a finite codomain and can list the log-probabilities of all its values (`log_table`).
    In training, `drop_rate` is the share of numbers that it leaves out at random, and an arrow that `reads_batch` gives
    each row what all rows together lead to.
    """

    sampled: bool = False
    pointwise: bool = False
    has_density: bool = True
    tabular: bool = False
    drop_rate: float = 0.0
    reads_batch: bool = False
    name: str
    paths: tuple[str, ...] = ()
    terms: Mapping[str, str] = {}
    leaves: Mapping[str, nn.Module] = {}
    domain: Named
    codomain: Named

    def forward(self, x: Value) -> Value:
        """The value of a deterministic arrow, row by row."""
        raise NotImplementedError(f"{type(self).__name__} is a sampled arrow: call draw(x)")

    def factor(self, x: Value, index: int) -> Value | None:
        """Of the value of a deterministic arrow the factor at `index`, where it has a shorter way there; else None."""
        return None

    def output_like(self, x: Value) -> Value:
        """A value of the codomain with the shapes that `x` leads to; its numbers mean nothing."""
        with arrays.no_grad(), random_state_kept(_parts(x)[0].device):
            return self.draw(x, want_log_prob=False).value

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        """Every draw of this arrow on `x`, in the order in which they are made.  Reads the shapes of `x` only."""
        return []

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: arrays.Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        """Draw a value.  Noise given by path is used, the rest is drawn; everything is reparameterised where it can be.

        With `want_log_prob` False all log densities are None (and cost nothing).
        """
        return Drawn(self.forward(x), {}, None, None)

    def draw_inside(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: arrays.Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        """A draw on the way to another one: like `draw`, but only `log_noise` of its densities is needed."""
        return self.draw(x, noise, generator=generator, want_log_prob=want_log_prob)

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        """(log p(y | x, innovations), log p(innovations | x)), each (B,), exact and deterministic.

        The second is None where there are no innovations.  Raises `MissingInnovations` where the arrow has some and
        they are not all given, `NoDensity` where it has no density.
        """
        raise NotImplementedError(f"{type(self).__name__} is deterministic: it has no density")

    def conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        """The value `y` as if it had been drawn: its densities as in `densities`, and the terms."""
        return self._conditioned(x, y, innovations) if self.terms else Drawn(y, {}, *self.densities(x, y, innovations))

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        """The same of an arrow with terms, which goes part by part; `densities` alone may be quicker."""
        raise NotImplementedError(f"{type(self).__name__} has no terms")

    def log_prob(self, x: Value, y: Value, innovations: Noise | None = None) -> Tensor:
        """log p(y | x, innovations), shape (B,), exact and deterministic; errors as in `densities`."""
        return self.densities(x, y, innovations)[0]

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        """Log-probabilities (B, n) of all values of a finite codomain given innovations, and the innovations' own
        density as in `densities`.  Only where `tabular`; values in the order of `layout.flat_index`."""
        raise NotImplementedError(f"{type(self).__name__} cannot list its values")

    def as_innovation(self) -> ArrowModule:
        """This arrow where its value is not what is scored: nothing is summed out, every draw is an innovation."""
        return self

    def rsample(self, x: Value, sample_shape: tuple[int, ...] = ()) -> Tensor | tuple[Tensor, ...]:
        """A draw for each row of `x`, with `sample_shape` in front."""
        if not sample_shape:
            return self.draw(x, want_log_prob=False).value
        count = arrays.Size(sample_shape).numel()
        rows = self.draw(repeat_rows(x, count), want_log_prob=False).value
        reshaped = [part.reshape(*sample_shape, -1, *part.shape[1:]) for part in _parts(rows)]
        return reshaped[0] if len(reshaped) == 1 else tuple(reshaped)


def missing_innovations(missing: Iterable[NoiseSpec]) -> MissingInnovations:
    """The error that names the shapes of what is missing and how to get it."""
    shapes = ", ".join(f"`{spec.path}` {tuple(spec.shape)}" for spec in missing)
    return MissingInnovations(
        f"this density is exact only given the noise of the draws inside the arrow; missing: {shapes}. "
        "Draw it with `model.innovations(x)` and pass it on"
    )


def _parts(value: Value) -> tuple[Tensor, ...]:
    return value if isinstance(value, tuple) else (value,)


def repeat_rows(value: Value, count: int) -> Value:
    """`count` copies of all rows, copy by copy: row i of copy k stands at k · B + i."""
    if isinstance(value, tuple):
        return tuple(part.repeat(count, *(1,) * (part.dim() - 1)) for part in value)
    return value.repeat(count, *(1,) * (value.dim() - 1))
