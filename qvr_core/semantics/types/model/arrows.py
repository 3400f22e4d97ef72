"""The typed arrows: one class for each kind of declared arrow, and one for each way of combining them.

A closed set of frozen dataclasses: hovers, diagrams and the runtime are each one `match` over `Arrow`.  A new
combinator is a grammar line, a node here, a typing rule, a runtime class, a diagram rule and a spec case.

Names stand for shared things: an arrow refers to a declared one by `Ref`, so the same name is the same parameters
wherever it is used.
"""

from __future__ import annotations

from enum import Enum

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.extents import ANY_LENGTH, ONE_STAGE, Extent, Stages
from qvr_core.semantics.types.spaces import Named
from qvr_core.syntax.immutable import immutable, immutable_by_name


class Sort(Enum):
    """`=>`, `->` and `-o` in hovers."""

    DETERMINISTIC = "=>"
    SAMPLED = "->"
    TENSOR = "-o"


Prior = tuple[str, tuple[tuple[str, float], ...]]
"""A family with its arguments."""


@immutable
class Density:
    """How a sampled arrow's density is computed.

    kind: 'deterministic' (no density), 'exact', 'conditional' (exact given `innovations` innovations), 'summed' (finite
    intermediates of joint size `summed` are summed out), 'score' (score-function gradient), 'none' (a sampled arrow
    followed by a deterministic one).
    `draws` counts all draws inside, the last ones included.
    """

    kind: str
    innovations: int = 0
    summed: int = 1
    draws: int = 0


@immutable_by_name
class ArrowBase:
    """What every arrow has.  `domain`/`codomain` are the types as used here, sequences included."""

    domain: Named
    codomain: Named
    sort: Sort
    origin: Origin
    density: Density


@immutable_by_name
class ProgramBase:
    """What an arrow tells of the program that it calls; the whole is `programs.Program`, which stands above arrows."""

    name: str
    uses_input: bool
    extent: Extent = ANY_LENGTH
    stages: Stages = ONE_STAGE


@immutable_by_name
class FamilyBase:
    """What a kernel tells of the family of the file that it draws from; the whole is `families.DeclaredFamily`, which
    stands above arrows."""

    name: str


@immutable_by_name
class Embed(ArrowBase):
    """Table (n, d) from a finite set to a real space, N(0, 0.5²) at the start."""

    name: str
    prior: Prior | None = None


@immutable
class Tie:
    """The matrix that a head has from the arrow `name`, or its transpose."""

    name: str
    transposed: bool


@immutable_by_name
class Kernel(ArrowBase):
    """A Markov kernel: a network from the domain to the parameters of `family`, then one draw.

    `family` is None for a finite table with softmax rows.  `fixed` are the literal arguments of `~ Normal(0.0, 1.0)`:
    the distribution is then the same for every input and the kernel has no parameters.
    """

    name: str
    family: str | None
    fixed: tuple[tuple[str, float], ...] | None
    scale: float
    param_source: str
    hidden_dim: int
    options: tuple[tuple[str, object], ...]
    prior: Prior | None = None
    tie: Tie | None = None
    bias: bool = True
    declared: FamilyBase | None = None
    """The family, where the file declares it."""


@immutable_by_name
class LinearMap(ArrowBase):
    """Weight and bias; `rank` makes it two low-rank factors.  `init` is 'default', 'xavier' or 'zeros'."""

    name: str
    bias: bool
    rank: int | None
    init: str
    prior: Prior | None = None


@immutable_by_name
class Conv(ArrowBase):
    """The same linear map of each window of `kernel` numbers a side; between sequences it keeps the length."""

    name: str
    kernel: int
    stride: int
    padding: int
    bias: bool


@immutable_by_name
class Pool(ArrowBase):
    """The maximum, or with `reduce` 'mean' the mean, of each window of `kernel` numbers a side."""

    name: str
    kernel: int
    stride: int
    padding: int
    reduce: str


@immutable_by_name
class BatchNorm(ArrowBase):
    """Gain and bias of each channel, which has mean 0 and variance 1 in its batch; `momentum` is the share of the
    newest batch in the statistics that are stored."""

    name: str
    momentum: float


@immutable_by_name
class Norm(ArrowBase):
    """LayerNorm gain and bias."""

    name: str


@immutable_by_name
class Attention(ArrowBase):
    """Multi-head self-attention over the sequence."""

    name: str
    heads: int
    causal: bool
    dropout: float


@immutable_by_name
class Dropout(ArrowBase):
    """Sets each number to 0 with probability `p` in training, the others divided by 1 − p; `once` keeps one choice
    along a sequence."""

    name: str
    p: float
    once: bool


@immutable_by_name
class Position(ArrowBase):
    """Adds learned positions up to `max_length`."""

    name: str
    max_length: int


@immutable_by_name
class Latent(ArrowBase):
    """A learned tensor of weights in the value set of `algebra`; `start` is the weight that all start near."""

    name: str
    algebra: str
    scale: float | None
    init: str
    prior: tuple[str, tuple[tuple[str, float], ...]] | None
    start: float | None = None


@immutable_by_name
class Observed(ArrowBase):
    """A given tensor: from data under `source`, or the value of `arrow`, or the identity-like default."""

    name: str
    algebra: str
    source: str | None
    arrow: Arrow | None


@immutable_by_name
class Discretize(ArrowBase):
    """A bounded real into `bins` bins."""

    name: str
    bins: int


@immutable_by_name
class Ref(ArrowBase):
    """A declared morphism, let or program by name.  Copies of `replicate=k` are called `f_0` … `f_{k-1}`."""

    name: str


@immutable_by_name
class Instance(ArrowBase):
    """A template program with its typed parameters filled in: `p(alpha=1.0)`.

    `program` is the body with the parameters substituted; arrows passed for `Mor` parameters stand in it as `Ref`.
    `inferred` are the arguments that the others say.
    """

    name: str
    arguments: tuple[tuple[str, int | float | str | Arrow], ...]
    program: ProgramBase
    inferred: tuple[str, ...] = ()


@immutable_by_name
class Lift(ArrowBase):
    """`arrow` applied at every position of a sequence."""

    arrow: Arrow


@immutable_by_name
class Compose(ArrowBase):
    """`a >> b >> …`; `operators[i]` is the place of the `>>` after stage i."""

    stages: tuple[Arrow, ...]
    operators: tuple[Origin, ...]


@immutable_by_name
class Tensor(ArrowBase):
    """`a @ b @ …`."""

    factors: tuple[Arrow, ...]


@immutable_by_name
class Fan(ArrowBase):
    """All branches on one input.  `replicated` is the family's name where `fan(f)` fans out over its copies."""

    branches: tuple[Arrow, ...]
    replicated: str | None


@immutable_by_name
class Scan(ArrowBase):
    """The cell folded over a sequence.  `backward` reads from the end; `inferred` says the name decided it."""

    cell: Arrow
    item: Named
    state: Named
    emit_all: bool
    backward: bool
    inferred: bool
    learned_init: bool


@immutable_by_name
class Stack(ArrowBase):
    """`count` fresh copies, one after the other."""

    body: Arrow
    count: int


@immutable_by_name
class Repeat(ArrowBase):
    """The same arrow `count` times; None: the count comes at run time as `n_steps`."""

    body: Arrow
    count: int | None


@immutable_by_name
class Residual(ArrowBase):
    """`x + body(x)`."""

    body: Arrow


@immutable_by_name
class Identity(ArrowBase):
    """The identity of a space."""


@immutable_by_name
class Last(ArrowBase):
    """The last element of a sequence."""


@immutable_by_name
class MeanOverTime(ArrowBase):
    """The mean over the length axis."""


@immutable_by_name
class TakeFactor(ArrowBase):
    """`f.h`: the factor at `index` of the codomain of `base`."""

    base: Arrow
    field: str
    index: int


@immutable_by_name
class Dagger(ArrowBase):
    base: Arrow


@immutable_by_name
class ChangeBase(ArrowBase):
    """`f.change_base(support)`: every weight mapped by a transformation, from the composition `source` to `target`."""

    base: Arrow
    transformation: str
    source: str
    target: str


@immutable_by_name
class Curry(ArrowBase):
    """`f.curry_left` and `f.curry_right`: the first (`left`) or the last factor of the domain goes to the codomain."""

    base: Arrow
    left: bool


@immutable_by_name
class PartialTrace(ArrowBase):
    """`f.trace(X)`: A * X -o B * X to A -o B."""

    base: Arrow
    over: Named


@immutable_by_name
class DropFactors(ArrowBase):
    """`f.marginalize(X, …)`: the factors at `indices` of the codomain are joined out."""

    base: Arrow
    indices: tuple[int, ...]


@immutable_by_name
class Freeze(ArrowBase):
    """`f.freeze`: no gradient reaches the parameters."""

    base: Arrow


@immutable_by_name
class TermArrowBase(ArrowBase):
    """An arrow from the terms of a data type, or to them; the whole is `terms.Encoder` or `terms.Decoder`, whose cases
    are arithmetic, which stands above arrows."""

    name: str


@immutable_by_name
class FromData(ArrowBase):
    """`from_data("name")`."""

    source: str


@immutable_by_name
class Damaged(ArrowBase):
    """Stands where the text could not be typed; the runtime refuses it."""


Arrow = (
    Embed | Kernel | LinearMap | Conv | Pool | Norm | BatchNorm | Dropout | Attention | Position | Latent | Observed
    | Discretize | Ref | Instance | Lift | Compose | Tensor | Fan | Scan | Stack | Repeat | Residual | Identity | Last
    | MeanOverTime | TakeFactor | ChangeBase | Dagger | Curry | PartialTrace | DropFactors | Freeze | TermArrowBase
    | FromData | Damaged
)  # fmt: skip
