"""What the language knows of a family of distributions, whatever computes with it (docs/reference.md#families).

A *head* is a family on a kernel (`~ Normal`): a network gives its raw parameters.  A *step* names a family with
arguments (`sample mu <- Normal(0.0, 1.0)`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from qvr_core.syntax.immutable import immutable


@immutable
class Parameter:
    """A parameter of a family.

    `shape` is 'element' (broadcasts with the value), 'vector' (over a last axis of its own) or 'matrix'.  `constraint`
    is 'real', 'positive', 'unit' (0 to 1), 'natural', 'whole', 'simplex', 'ordered', 'positive vector' or 'lower
    triangular'.
    `alternatives` are other parametrisations under their own names (`logits` for `probs`): an argument so named stands
    in the model under that name, with the constraint given here.

    `fewer` is by how much a vector is shorter than what is drawn: cutpoints lie between categories.  A parameter that
    `sizes` says only how large a draw is; the axes of one that is `apart` say nothing of a draw's.  `raw` is how many
    numbers of a head's raw output become the parameter: 'none'; 'one'; 'width', one per number of a draw or per
    category; 'triangle', 'row triangle' or 'column triangle', a lower triangular matrix of that side of a draw; or a
    head option, as many times the width as it says.  `length` is how long a vector is, or the side of a matrix, where
    the family says so: a number, or a letter that stands for one number in all of its parameters and draws.
    """

    name: str
    shape: str = "element"
    constraint: str = "real"
    aliases: tuple[str, ...] = ()
    default: float | None = None
    alternatives: tuple[tuple[str, str], ...] = ()
    fewer: int = 0
    sizes: bool = False
    apart: bool = False
    raw: str = "width"
    length: int | str | None = None

    @property
    def rank(self) -> int:
        """How many of an argument's last axes are its own: 0, 1 or 2."""
        return ("element", "vector", "matrix").index(self.shape)


@immutable
class Support:
    """Where the draws live.  `kind` is 'real', 'count' (whole numbers), 'finite', 'Simplex', 'CholeskyFactor',
    'Correlation' or 'Covariance'; the bounds are those of a support that no argument changes, and `of` is the declared
    set that a family of the file draws from."""

    kind: str
    low: float | None = None
    high: float | None = None
    of: str | None = None

    @property
    def size(self) -> int | None:
        """How many values a finite support has; None where arguments say, or it is not finite."""
        if self.kind != "finite" or self.low is None or self.high is None:
            return None
        return int(self.high - self.low) + 1

    @property
    def categories(self) -> bool:
        """True for a finite set as large as the arguments say."""
        return self.kind == "finite" and self.size is None


@immutable
class Family:
    """A family.

    `event` is the rank of one draw (0 scalar, 1 vector, 2 matrix).  `noise` is the base of its standardised noise:
    'normal', 'uniform', 'value' (the value itself) or 'discrete' (`qvr_core.runtime.values.arrow.NoiseSpec`).
    `bounded_by` are the parameters that bound the support (Uniform), `above` is one that draws lie above (Pareto),
    `counts_to` one that a count does not exceed (Binomial).  `head_options` are whole-number options that only a head
    of this family takes, with their defaults.  A `common` family is offered before others.  `cdf`: the probabilities
    of tails and intervals are known, so that it can be censored and truncated (`RuntimeFamily` says so).
    A family that is `step_only` is no head; one that is `improper` has a density that no number makes a distribution
    of, and no draws.  One that is not `drawn` does not say how to draw.  `length` is that of a drawn vector, as of a
    parameter.
    """

    name: str
    parameters: tuple[Parameter, ...]
    support: Support
    noise: str
    summary: str
    event: int = 0
    bounded_by: tuple[str, str] | None = None
    above: str | None = None
    counts_to: str | None = None
    head_options: Mapping[str, int] = field(default_factory=dict[str, int])
    common: bool = False
    cdf: bool = False
    noncentred: bool = False
    step_only: bool = False
    improper: bool = False
    drawn: bool = True
    length: int | str | None = None
    no_head: str = ""
    """Why one that is `step_only` is no head, where there is more to say."""
    open: bool = False
    """Whether the ends of its support have no density."""

    @property
    def discrete(self) -> bool:
        return self.support.kind in ("finite", "count")

    @property
    def has_scale(self) -> bool:
        """True where the option `scale=` of a kernel has an effect."""
        spread = {"scale", "scales", "row_scale_tril", "scale_tril"}
        return self.support.kind != "Covariance" and any(p.name in spread for p in self.parameters)


_BETWEEN = "between "


def bounded(low: float | None, high: float | None, *, vector: bool = False) -> str:
    """The constraint of a parameter that lies between two numbers; None leaves a side open."""
    if (low, high) == (None, None):
        return "real"
    if (low, high) == (0.0, None):
        return "positive vector" if vector else "positive"
    if (low, high) == (0.0, 1.0):
        return "unit"
    ends = ("" if end is None else repr(end) for end in (low, high))
    return _BETWEEN + ";".join(ends)


def bounds_of(constraint: str) -> tuple[float | None, float | None] | None:
    """The ends of a constraint that `bounded` has made and that has no name of its own; None of any other."""
    if not constraint.startswith(_BETWEEN):
        return None
    low, high = constraint.removeprefix(_BETWEEN).split(";")
    return float(low) if low else None, float(high) if high else None


def inside(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def must_lie(low: float | None, high: float | None) -> str:
    """'must be between -1 and 1', 'must be at least 2'."""
    if low is None:
        return f"must be at most {high:g}"
    return f"must be at least {low:g}" if high is None else f"must be between {low:g} and {high:g}"


def support_words(family: Family) -> str:
    """The support in words, for hovers and messages: 'any real number', 'counts 0, 1, 2, …'."""
    support = family.support
    if support.kind == "real":
        if support.low is None and support.high is None:
            return "any real number" if family.event == 0 else "any real vector"
        return f"numbers from {interval(support.low, support.high)}"
    if support.kind == "count":
        counts = f"counts 0, 1, …, {family.counts_to}" if family.counts_to else "counts 0, 1, 2, …"
        whole = counts if support.low is not None else "whole numbers"
        return whole if family.event == 0 else f"vectors of {whole}"
    return "from a finite set" if support.kind == "finite" else f"from `{support.kind}`"


def interval(low: float | None, high: float | None) -> str:
    """'0 to ∞'."""
    left = "-∞" if low is None else f"{low:g}"
    right = "∞" if high is None else f"{high:g}"
    return f"{left} to {right}"
