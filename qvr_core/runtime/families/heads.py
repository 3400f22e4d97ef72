"""Heads: from the raw output of a kernel's network to a legal distribution on the kernel's codomain.

A head cuts the raw output by `semantics.families.raw_blocks`, applies link functions that are legal for any real
numbers, and draws and scores values in the layout of the codomain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from qvr_core.runtime.families.continuous import LOG_SQRT_2PI
from qvr_core.runtime.families.registry import RUNTIME_FAMILIES, canonical, standard_noise
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import Value
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.families import FAMILIES, matrix_shape, raw_blocks
from qvr_core.semantics.types.spaces import Constrained, Finite, Real, Space

SOFTPLUS_SHIFT = 0.541325
"""softplus(0.541325) = 1: a raw output of zero gives one."""
FLOOR = 0.001
_LARGE = 1e4
"""Raw outputs are taken as at most this in size where a family's arithmetic would overflow."""

Params = tuple[Tensor, ...]


def positive(raw: Tensor) -> Tensor:
    """softplus, 1 at raw 0, never below 1/1000."""
    return F.softplus(raw + SOFTPLUS_SHIFT) + FLOOR


class Head:
    """The distribution of a kernel: parameters from raw output, noise to value, value to density.

    `raw_width` is the number P of raw parameters; `zero_rows` are the rows of the last layer that start at zero
    (scales).  Shapes below: `lead` are the axes before a value's own.
    """

    def __init__(self, family: str, codomain: Space, scale: float, options: Mapping[str, object]) -> None:
        self.facts = FAMILIES[family]
        self.runtime = RUNTIME_FAMILIES[family]
        self.name = family
        self.codomain = codomain
        self.scale = scale
        self.noise = self.facts.noise
        self.raw_blocks = raw_blocks(self.facts, codomain, options)
        self.sizes = [size for _, size in self.raw_blocks]
        self.raw_width = sum(self.sizes)
        self.blocks = layout.blocks(codomain)
        self.finite = any(block.finite for block in self.blocks)
        self.options = options
        self.event_shape = self._event_shape()

    def zero_rows(self) -> list[int]:
        """Rows of the raw output that hold a scale."""
        rows: list[int] = []
        start = 0
        for name, size in self.raw_blocks:
            if name in ("scale", "scales"):
                rows.extend(range(start, start + size))
            start += size
        return rows

    def _event_shape(self) -> tuple[int, ...]:
        """The family's own view of one value: () joint index, (d,) vector, (k, k) or (n, m) matrix."""
        if self.name in ("Categorical", "OrderedLogistic"):
            return ()
        if self.facts.event == 2:
            if self.name == "MatrixNormal":
                return matrix_shape(self.codomain)
            assert isinstance(self.codomain, Constrained) and isinstance(self.codomain.size, int)
            return (self.codomain.size, self.codomain.size)
        return (layout.width(self.codomain),)

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """The noise of one value, without its leading axes."""
        if self.name == "LogisticNormal":
            return (self.event_shape[0] - 1,)
        if self.name == "LowRankMultivariateNormal":
            return (self.event_shape[0] + self.sizes[1] // self.event_shape[0],)
        return self.event_shape

    # ------------------------------------------------------------ parameters

    def link(self, raw: Tensor) -> Params:
        """Legal parameters of the family from any raw output (…, P), in the canonical order."""
        if self.name == "Categorical":
            return (raw,)
        if self.name == "Normal":
            loc, scale = raw.chunk(2, dim=-1)
            return loc, (F.softplus(scale + SOFTPLUS_SHIFT) + FLOOR) * self.scale
        raw = raw.clamp(-_LARGE, _LARGE)
        pieces = dict(zip([name for name, _ in self.raw_blocks], raw.split(self.sizes, dim=-1), strict=True))
        return _LINKS.get(self.name, _elementwise)(self, pieces)

    def fixed(self, arguments: Mapping[str, float], lead: tuple[int, ...], like: Tensor) -> Params:
        """Literal arguments, one distribution for every input."""
        tensors = {
            key: torch.as_tensor(value, dtype=like.dtype, device=like.device).expand(*lead, *self.event_shape[-1:])
            for key, value in arguments.items()
        }
        return canonical(self.name, tensors)

    # ------------------------------------------------------------ draws and densities

    def make_noise(self, lead: tuple[int, ...], params: Params, generator: Generator | None) -> Tensor:
        """Fresh noise (lead + noise_shape); for a family without parameter-free noise the value itself."""
        like = params[-1]
        if self.runtime.transform is not None:
            return standard_noise(self.noise, (*lead, *self.noise_shape), like, generator)
        assert self.runtime.draw is not None
        return self.runtime.draw((*lead, *self.event_shape), generator, *params)

    def to_value(self, noise: Tensor, params: Params) -> Value:
        """The value that the noise makes, in the layout of the codomain."""
        event = noise if self.runtime.transform is None else self.runtime.transform(noise, *params)
        if self.finite:
            if not self.event_shape:
                return layout.from_flat_index(event, self.codomain) if len(self.blocks) > 1 else event
            columns = event.long().unbind(-1)
            return columns[0] if len(columns) == 1 else tuple(columns)
        return event.flatten(-2) if self.facts.event == 2 else event

    def _event(self, value: Value) -> Tensor:
        """The family's view of a value."""
        if self.finite:
            if not self.event_shape:
                return layout.flat_index(value, self.codomain)
            return torch.stack([part.to(precision()) for part in layout.parts(value)], dim=-1)
        tensor = layout.parts(value)[0]
        return tensor.unflatten(-1, self.event_shape) if self.facts.event == 2 else tensor

    def log_prob(self, value: Value, params: Params) -> Tensor:
        """Log density with the axes of `lead`."""
        each = self.runtime.log_prob(self._event(value), *params)
        return each if self.facts.event or not self.event_shape else each.sum(-1)

    def log_prob_of_noise(self, noise: Tensor, params: Params) -> Tensor:
        """log of the noise's density, conditional where the noise is the value itself; axes of `lead`."""
        axes = tuple(range(noise.dim() - len(self.noise_shape), noise.dim()))
        if self.noise == "normal":
            count = math.prod(self.noise_shape)
            return -0.5 * noise.square().sum(axes) - count * LOG_SQRT_2PI
        if self.noise == "uniform":
            return torch.zeros(noise.shape[: noise.dim() - len(axes)], dtype=noise.dtype, device=noise.device)
        each = self.runtime.log_prob(noise, *params)
        return each if self.facts.event or not self.event_shape else each.sum(-1)

    def log_prob_of_draw(self, noise: Tensor, value: Value, params: Params) -> Tensor:
        """log p(value) where the noise that made it is at hand; axes of `lead`."""
        if self.name == "Normal":
            return self.log_prob_of_noise(noise, params) - params[1].log().sum(-1)
        if self.runtime.transform is None:
            return self.log_prob_of_noise(noise, params)
        return self.log_prob(value, params)

    def log_table(self, params: Params) -> Tensor:
        """Log-probabilities (…, n) of all values of a finite codomain, in the order of `layout.flat_index`."""
        if self.name == "Categorical":
            return torch.log_softmax(params[0], -1)
        count = layout.total_elements(self.codomain)
        index = torch.arange(count, device=params[0].device)
        values = self._event(layout.from_flat_index(index, self.codomain))
        spread = tuple(p.unsqueeze(-2 if p.dim() > 1 and self.event_shape else -1) for p in params)
        if self.name == "OrderedLogistic":
            predictor, cutpoints = params
            return self.runtime.log_prob(index, predictor.unsqueeze(-1), cutpoints.unsqueeze(-2))
        each = self.runtime.log_prob(values, *spread)
        return each.sum(-1)


# ---------------------------------------------------------------- links

Pieces = dict[str, Tensor]


def _elementwise(head: Head, raw: Pieces) -> Params:
    """The default: real parameters as they are, positive ones by softplus, `scale` times the option `scale`."""
    made: list[Tensor] = []
    for parameter in head.facts.parameters:
        value = raw[parameter.name]
        if parameter.name == "scale":
            value = positive(value) * head.scale
        elif parameter.constraint == "positive":
            value = positive(value)
        made.append(value)
    return tuple(made)


def _tril(raw: Tensor, size: int, scale: float) -> Tensor:
    """A lower triangular matrix with a positive diagonal, `scale` · identity at raw 0."""
    rows, columns = torch.tril_indices(size, size)
    matrix = raw.new_zeros(*raw.shape[:-1], size, size)
    matrix[..., rows, columns] = raw
    diagonal = positive(matrix.diagonal(dim1=-2, dim2=-1))
    return scale * (matrix.tril(-1) + torch.diag_embed(diagonal))


def _bounds(head: Head) -> tuple[float | None, float | None]:
    space = head.codomain
    return (space.low, space.high) if isinstance(space, Real) else (None, None)


def _uniform(head: Head, raw: Pieces) -> Params:
    low, high = _bounds(head)
    if low is None and high is None:
        return raw["low"], raw["low"] + positive(raw["high"])
    if low is not None and high is not None:
        # both ends inside the codomain, the upper above the lower
        start = low + (high - low) * 0.999 * raw["low"].sigmoid()
        return start, start + (high - start) * (FLOOR + (1.0 - FLOOR) * raw["high"].sigmoid())
    if low is not None:
        start = low + positive(raw["low"])
        return start, start + positive(raw["high"])
    end = torch.full_like(raw["high"], 0.0 if high is None else high) - positive(raw["high"])
    return end - positive(raw["low"]), end


def _truncated_normal(head: Head, raw: Pieces) -> Params:
    low, high = _bounds(head)
    loc = raw["loc"]
    return (
        loc,
        positive(raw["scale"]) * head.scale,
        torch.full_like(loc, -math.inf if low is None else low),
        torch.full_like(loc, math.inf if high is None else high),
    )


def _student_t(head: Head, raw: Pieces) -> Params:
    # df above 1 keeps a mean, and near 4 at the start: heavy tails without wild first gradients
    return 1.0 + 3.0 * positive(raw["df"]), raw["loc"], positive(raw["scale"]) * head.scale


def _half_student_t(head: Head, raw: Pieces) -> Params:
    return 1.0 + 3.0 * positive(raw["df"]), positive(raw["scale"]) * head.scale


def _binomial(head: Head, raw: Pieces) -> Params:
    total, space = head.options.get("total"), head.codomain
    if not isinstance(total, int):
        total = head.facts.head_options["total"]
        if isinstance(space, Finite) and isinstance(space.size, int):
            total = space.size - 1
    return torch.full_like(raw["probs"], float(total)), raw["probs"]


def _ordered_logistic(head: Head, raw: Pieces) -> Params:
    first, steps = raw["cutpoints"][..., :1], raw["cutpoints"][..., 1:]
    return raw["predictor"].squeeze(-1), torch.cat([first, first + positive(steps).cumsum(-1)], dim=-1)


def _multivariate_normal(head: Head, raw: Pieces) -> Params:
    return raw["loc"], _tril(raw["scale_tril"], head.event_shape[0], head.scale)


def _low_rank(head: Head, raw: Pieces) -> Params:
    size = head.event_shape[0]
    return raw["loc"], raw["cov_factor"].unflatten(-1, (size, -1)), positive(raw["cov_diag"])


def _matrix_normal(head: Head, raw: Pieces) -> Params:
    rows, columns = head.event_shape
    return (
        raw["loc"].unflatten(-1, (rows, columns)),
        _tril(raw["row_scale_tril"], rows, head.scale),
        _tril(raw["column_scale_tril"], columns, 1.0),
    )


def _wishart(head: Head, raw: Pieces) -> Params:
    size = head.event_shape[0]
    return size - 1.0 + positive(raw["df"].squeeze(-1)), _tril(raw["scale_tril"], size, 1.0)


def _lkj_cholesky(head: Head, raw: Pieces) -> Params:
    return (positive(raw["concentration"].squeeze(-1)),)


def _mixture_normal(head: Head, raw: Pieces) -> Params:
    shape = (head.event_shape[0], -1)
    return (
        raw["weights"].unflatten(-1, shape),
        raw["locs"].unflatten(-1, shape),
        positive(raw["scales"].unflatten(-1, shape)) * head.scale,
    )


def _dirichlet(head: Head, raw: Pieces) -> Params:
    return (positive(raw["concentration"]),)


def _logistic_normal(head: Head, raw: Pieces) -> Params:
    return raw["loc"], positive(raw["scale"]) * head.scale


_LINKS = {
    "Uniform": _uniform,
    "TruncatedNormal": _truncated_normal,
    "StudentT": _student_t,
    "HalfStudentT": _half_student_t,
    "Binomial": _binomial,
    "OrderedLogistic": _ordered_logistic,
    "Dirichlet": _dirichlet,
    "LogisticNormal": _logistic_normal,
    "MultivariateNormal": _multivariate_normal,
    "LowRankMultivariateNormal": _low_rank,
    "MatrixNormal": _matrix_normal,
    "Wishart": _wishart,
    "InverseWishart": _wishart,
    "LKJCholesky": _lkj_cholesky,
    "MixtureNormal": _mixture_normal,
}
