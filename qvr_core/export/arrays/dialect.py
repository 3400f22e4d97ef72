"""What the array targets call what: templates by the names of the typed model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from qvr_core.semantics.language.builtins import BUILTINS, OPERATORS


@dataclass(frozen=True)
class Dialect:
    """`arrays` is the module of array functions (`torch`, `jnp`, `pt`).

    `functions` are templates of builtins (`{0}` is the first argument, `{axis}` the axis of a reduction); a builtin
    that is missing there cannot be said.  `families` are templates of distributions, keyed by family and arguments
    (`Poisson(log_rate)`), with the arguments by name; one that mentions `{value}` is a log density itself.
    """

    target: str
    arrays: str
    functions: Mapping[str, str]
    families: Mapping[str, str]
    arange: str
    einsum: str
    scatter: str
    places: str
    """Terms (N, K) added up by place: `{0}` terms, `{1}` places, `{2}` how many there are, `{3}` is K."""
    stack: str
    broadcast: str
    """A list of arrays, each with the axes of all."""
    constant: str
    """A list of numbers as an array."""
    number: str
    """A number that a function takes as an array."""
    full: str
    permute: str
    concatenate: str
    """Two arrays, `{axis}` the axis along which they stand."""
    where: str
    log_prob: str
    total_log_prob: str
    """Of all elements together."""
    sum_over: str
    reshape: str
    total: str
    """The sum of all elements."""
    logsumexp: str
    as_array: str
    """A value, which may be a number, as an array."""
    equations: Mapping[str, str]
    """Of each method of `solve` a call: `{0}` the right side, `{1}` the first state, `{2}` its arguments, `{3}` the
    start, `{4}` the times; `{steps}`, `{rtol}`, `{atol}`, `{most}`, `{plates}`.  One that is missing is refused."""
    helpers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Functions that an exported file has where a template calls them."""


TAILS = {"log1mexp": "log_one_minus_exp({0})", "log_between": "log_between({0}, {1}, {2}, {3})"}
"""What limits are lowered to beside builtins; both are helpers."""

REDUCTIONS = frozenset(name for name, function in BUILTINS.items() if function.along_axis)
"""Builtins with an axis."""

INFIX = {name: "**" if sign == "^" else sign for sign, name in OPERATORS.items()}
ARITHMETIC = ("add", "sub", "mul", "div", "pow")

BASES = ("bspline", "hsgp", "hsgp_frequencies")
"""Bases of functions: helpers that take plain numbers beside arrays."""
