"""The roles of morphisms and their options: one closed table that the checker, completion and hovers read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.syntax.immutable import immutable

ValueKind = Literal["positive", "fraction", "count", "natural", "flag", "word", "start", "prior", "arrow"]
"""positive: a number above 0; fraction: at least 0 and below 1; count: a whole number from 1; natural: one from 0;
flag: true or false; prior: a family with its arguments; arrow: a declared morphism, or `transpose` of one."""


@immutable
class OptionSpec:
    """An option of a role: what it takes, what it is without it, what it does."""

    key: str
    kind: ValueKind
    default: str | int | float | bool | None
    meaning: str
    words: tuple[str, ...] = ()


@immutable
class Role:
    """A role.  `between` says in words which spaces it joins; `takes_init` what may follow `~`."""

    name: str
    sort: Sort
    between: str
    summary: str
    options: Mapping[str, OptionSpec]
    takes_init: Literal["", "family", "prior", "weights", "value"] = ""


def _options(*specs: OptionSpec) -> Mapping[str, OptionSpec]:
    return {spec.key: spec for spec in (_ROLE, *specs, _REPLICATE)}


_REPLICATE = OptionSpec(
    "replicate", "count", None, "declares this many independent copies `f_0`, `f_1`, …; `fan(f)` fans out over them"
)

_ROLE = OptionSpec(
    "role",
    "word",
    "kernel",
    "what kind of arrow this is",
    (
        "kernel",
        "embed",
        "linear",
        "conv",
        "pool",
        "norm",
        "batch_norm",
        "dropout",
        "attention",
        "position",
        "latent",
        "observed",
        "discretize",
    ),
)

_WINDOW = "numbers on each side of the window"
_PADDING = OptionSpec("padding", "natural", 0, "zeros beyond each edge of the domain")

_INIT = OptionSpec(
    "init",
    "word",
    "default",
    "how the weights start: torch's own way, Xavier-uniform, or zeros",
    ("default", "xavier", "zeros"),
)

ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role(
            "kernel",
            Sort.SAMPLED,
            "any space → what the family draws from",
            "a Markov kernel: a network from the input to the parameters of the family, then one draw",
            _options(
                OptionSpec("scale", "positive", 1.0, "the standard deviation at the start of training"),
                OptionSpec(
                    "param_source",
                    "word",
                    "mlp",
                    "the network: `mlp` has two hidden tanh layers, `linear` none",
                    ("mlp", "linear"),
                ),
                OptionSpec("hidden_dim", "count", 64, "width of the hidden layers of the network"),
                OptionSpec("prior", "prior", None, "makes the weights latents, each drawn from this family"),
                OptionSpec("tie", "arrow", None, "one linear map, whose matrix is that of a table or a linear map"),
                OptionSpec("bias", "flag", True, "adds a learned constant to a matrix of `tie`"),
            ),
            "family",
        ),
        Role(
            "embed",
            Sort.DETERMINISTIC,
            "finite → real",
            "a table with a learned vector per element, N(0, 0.5²) at the start",
            _options(),
            "weights",
        ),
        Role(
            "linear",
            Sort.DETERMINISTIC,
            "real → real",
            "a learned affine map",
            _options(
                OptionSpec("bias", "flag", True, "adds a learned constant"),
                OptionSpec("rank", "count", None, "two factors of this rank instead of one full matrix"),
                _INIT,
            ),
            "weights",
        ),
        Role(
            "conv",
            Sort.DETERMINISTIC,
            "real of channels by sizes → the same with other sizes; or over a sequence",
            "a learned linear map of a window, the same wherever the window stands",
            _options(
                OptionSpec("kernel", "count", 3, _WINDOW),
                OptionSpec("stride", "count", 1, "how far the window moves from one place to the next"),
                _PADDING,
                OptionSpec("bias", "flag", True, "adds a learned constant to each channel"),
            ),
        ),
        Role(
            "pool",
            Sort.DETERMINISTIC,
            "real of channels by sizes → the same channels with other sizes",
            "the largest number of a window, or their mean, channel by channel",
            _options(
                OptionSpec("kernel", "count", 2, _WINDOW),
                OptionSpec("stride", "count", None, "how far the window moves; as wide as it is without it"),
                _PADDING,
                OptionSpec("reduce", "word", "max", "what is taken of a window", ("max", "mean")),
            ),
        ),
        Role(
            "norm",
            Sort.DETERMINISTIC,
            "real → the same space",
            "layer normalisation with learned gain and bias",
            _options(),
        ),
        Role(
            "batch_norm",
            Sort.DETERMINISTIC,
            "real → the same space",
            "normalises each channel over the batch while SVI trains, by what it has stored of these everywhere else",
            _options(OptionSpec("momentum", "fraction", 0.1, "share of the newest batch in what is stored")),
        ),
        Role(
            "dropout",
            Sort.DETERMINISTIC,
            "real → the same space",
            "leaves numbers out at random while SVI trains, and is the identity everywhere else",
            _options(
                OptionSpec("p", "fraction", 0.5, "probability that a number is left out"),
                OptionSpec("once", "flag", False, "the same numbers are left out along a whole sequence"),
            ),
        ),
        Role(
            "attention",
            Sort.DETERMINISTIC,
            "real → the same space, over a sequence",
            "multi-head self-attention over the sequence",
            _options(
                OptionSpec("heads", "count", 1, "number of heads; divides the width"),
                OptionSpec("causal", "flag", False, "each position sees only itself and what stands before it"),
                OptionSpec("dropout", "fraction", 0.0, "share of the attention weights dropped in training"),
            ),
        ),
        Role(
            "position",
            Sort.DETERMINISTIC,
            "real → the same space, over a sequence",
            "adds a learned vector per position",
            _options(OptionSpec("max_length", "count", 512, "the longest sequence that it can take")),
        ),
        Role(
            "latent",
            Sort.TENSOR,
            "finite → finite",
            "a learned matrix of weights in the value set of the file's `composition`",
            _options(
                OptionSpec("scale", "positive", None, "spread of the weights at the start"),
                OptionSpec(
                    "init",
                    "start",
                    "auto",
                    "how the weights start, or the weight that they start near",
                    ("auto", "default", "xavier", "zeros", "normal"),
                ),
            ),
            "prior",
        ),
        Role(
            "observed",
            Sort.TENSOR,
            "finite → finite",
            "a given matrix: from data, or the value of an arrow",
            _options(),
            "value",
        ),
        Role(
            "discretize",
            Sort.SAMPLED,
            "bounded real → finite",
            "cuts an interval into bins",
            _options(OptionSpec("bins", "count", None, "number of bins; the size of the codomain without it")),
        ),
    )
}
"""Every role by name; the order is that of completion."""

HEAD_OPTIONS: Mapping[str, str] = {
    "total": "number of trials of a Binomial head",
    "rank": "rank of the covariance factor",
    "components": "number of mixture components",
}
"""Options that only kernels with certain families take (`Family.head_options`), with their meaning."""
