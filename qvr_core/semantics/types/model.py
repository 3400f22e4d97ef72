"""The typed model: what every layer after the checker reads.

A small closed set of frozen dataclasses.  Hovers, inlays, diagrams and the runtime are each one `match` over it.  A new
combinator is a grammar line, a node here, a typing rule, a runtime class, a diagram rule and a spec case.

Names stand for shared things: an arrow expression refers to a declared arrow by `Ref`, so the same name is the same
parameters wherever it is used.  All solved holes are substituted in a model that is handed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.intervals import Interval
from qvr_core.semantics.types.spaces import Dim, Finite, Named, Space
from qvr_core.syntax.immutable import immutable, immutable_by_name


class Sort(Enum):
    """`=>`, `->` and `-o` in hovers."""

    DETERMINISTIC = "=>"
    SAMPLED = "->"
    TENSOR = "-o"


@immutable
class Weights:
    """The weights of a morphism with a prior: the family of each number, with its arguments, and the sets that the site
    of the weights runs over."""

    name: str
    family: str
    arguments: tuple[tuple[str, float], ...]
    sets: tuple[Finite, ...]
    declared: tuple[DeclaredFamily, ...] = ()


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


# ---------------------------------------------------------------- declared arrows (one per name)


@immutable_by_name
class Embed(ArrowBase):
    """Table (n, d) from a finite set to a real space, N(0, 0.5²) at the start."""

    name: str
    prior: Prior | None = None


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


@immutable_by_name
class LinearMap(ArrowBase):
    """Weight and bias; `rank` makes it two low-rank factors.  `init` is 'default', 'xavier' or 'zeros'."""

    name: str
    bias: bool
    rank: int | None
    init: str
    prior: Prior | None = None


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
class Position(ArrowBase):
    """Adds learned positions up to `max_length`."""

    name: str
    max_length: int


@immutable_by_name
class Latent(ArrowBase):
    """A learned tensor of weights in the value set of `algebra`."""

    name: str
    algebra: str
    scale: float | None
    init: str
    prior: tuple[str, tuple[tuple[str, float], ...]] | None


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


# ---------------------------------------------------------------- combinators


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
    program: Program
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
class FromData(ArrowBase):
    """`from_data("name")`."""

    source: str


@immutable_by_name
class Damaged(ArrowBase):
    """Stands where the text could not be typed; the runtime refuses it."""


Arrow = (
    Embed | Kernel | LinearMap | Norm | Attention | Position | Latent | Observed | Discretize
    | Ref | Instance | Lift | Compose | Tensor | Fan | Scan | Stack | Repeat | Residual | Identity | Last | MeanOverTime
    | TakeFactor | Dagger | PartialTrace | DropFactors | Freeze | FromData | Damaged
)  # fmt: skip


# ---------------------------------------------------------------- typed arithmetic


@immutable
class ValueType:
    """The type of a value in arithmetic.

    `space` is None where it depends on data.  `indexed` are the plates in front of it, outermost first (each a space's
    nominal name or None) and `sizes` their lengths (None where only data can tell); `space` is that of one element.
    `event` names the finite set that the last axis of the element runs over (a Dirichlet with `over=Topic`).
    `rows` says that a value differs from row to row of the batch: it comes through the program's input.
    `last` is the last axis, length and set, where that is known though the rest depends on data.
    """

    space: Space | None
    indexed: tuple[str | None, ...] = ()
    rows: bool = False
    sizes: tuple[Dim | None, ...] = ()
    event: str | None = None
    last: tuple[Dim, str | None] | None = None


@immutable_by_name
class ExprBase:
    type: ValueType
    origin: Origin


@immutable_by_name
class Constant(ExprBase):
    """A number or a text.  `element_of` is the set that a label names an element of, '' of one without a name."""

    value: int | float | str
    element_of: str | None = None


@immutable_by_name
class Bound(ExprBase):
    """A name bound in the program: input, site, let, lambda or factor variable, typed parameter."""

    name: str


@immutable_by_name
class Data(ExprBase):
    """A name that nobody binds: supplied at run time."""

    name: str


@immutable_by_name
class Matrix(ExprBase):
    """A tensor arrow standing for its matrix."""

    arrow: Arrow


@immutable_by_name
class Apply(ExprBase):
    """A deterministic arrow applied to values (their product is the argument).

    `own` has for each argument how many of its last axes the arrow reads, where the others are as rows to it; empty
    where the arguments have none.
    """

    arrow: Arrow
    args: tuple[Expr, ...]
    own: tuple[int, ...] = ()


@immutable_by_name
class DeductionRef(ExprBase):
    """A deduction by name (`parse(D, sentence)`)."""

    name: str


@immutable_by_name
class Builtin(ExprBase):
    """A builtin function, operator included: 'add', 'sub', 'mul', 'div', 'pow', 'neg', 'lt', 'le', 'gt', 'ge', 'eq',
    'ne', or a function by its own name.  `keywords` are named arguments."""

    function: str
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()


@immutable_by_name
class Index(ExprBase):
    """`x[i, j]`; `whole` says that the indices are all the axes that the value has."""

    base: Expr
    indices: tuple[Expr, ...]
    whole: bool = False


@immutable_by_name
class IndexValue(ExprBase):
    """The elements that the index `name` runs through: `first`, …, `size` − 1."""

    name: str
    first: int
    size: Dim


@immutable_by_name
class Window(ExprBase):
    """`x[t - shift]`: what the index `index` runs through of axis `axis` of `base`, counted from the last axis (−1).

    In the step the index runs from `first` to the end of the axis, which has `size` elements.  An element before the
    first, which only a name of a recursion has, is the one `again` later: its first elements stand there once more.
    """

    base: Expr
    axis: int
    index: str
    shift: int
    first: int
    size: Dim
    again: int = 0


@immutable_by_name
class Contract(ExprBase):
    """A product of `factors` summed over the axes that `result` lacks; `axes[k]` are those of factor k."""

    factors: tuple[Expr, ...]
    axes: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]


@immutable_by_name
class Scatter(ExprBase):
    """`body` (…, N) added up by `index` (N,): (…, `size`)."""

    body: Expr
    index: Expr
    size: Dim


@immutable_by_name
class Arrange(ExprBase):
    """The axes of `base` (behind rows) in another order: axis k of the value is axis `axes[k]`, or new where None."""

    base: Expr
    axes: tuple[int | None, ...]


@immutable_by_name
class FieldOf(ExprBase):
    """`x.h`: the columns or the factor at `index`."""

    base: Expr
    field: str
    index: int


@immutable_by_name
class Method(ExprBase):
    """A method of a chart (`goal_weight`, `weight`, `derivations`), or of a template (`morphism`)."""

    base: Expr
    method: str
    args: tuple[Expr, ...]


@immutable_by_name
class ListOf(ExprBase):
    items: tuple[Expr, ...]


@immutable_by_name
class Function(ExprBase):
    """`x -> e`."""

    parameter: str
    body: Expr


@immutable_by_name
class FactorTable(ExprBase):
    """`factor i : I, … in body`; `cases` where the table is written out (index -> value)."""

    indices: tuple[tuple[str, Space], ...]
    body: Expr | None
    cases: tuple[tuple[int, Expr], ...]


@immutable_by_name
class TermValue(ExprBase):
    """A term of a deduction (`chart.weight(span(0, 2, S))`), as text."""

    text: str


Expr = (
    Constant | Bound | Data | Matrix | Apply | Builtin | Index | IndexValue | Window | Contract | Scatter | Arrange
    | FieldOf | Method | ListOf | Function | FactorTable | TermValue | DeductionRef
)  # fmt: skip


# ---------------------------------------------------------------- programs


@immutable_by_name
class ArrowDraw:
    """A named arrow applied to arguments; no arguments means the program's input.

    Where the site has a plate (`iid_over`), there is a draw for each of its elements: of each argument the last `own`
    axes are the arrow's, those before them are the plate's.
    """

    arrow: Arrow
    args: tuple[Expr, ...] | None
    origin: Origin
    own: tuple[int, ...] = ()


@immutable_by_name
class FamilyDraw:
    """A family with its parameters by their canonical names, in the family's order.

    `declared` are the families of the file that it names: the family itself, or components of a mixture.
    """

    family: str
    args: tuple[tuple[str, Expr], ...]
    origin: Origin
    declared: tuple[DeclaredFamily, ...] = ()


@immutable
class DeclaredParameter:
    """A parameter of a declared family; `numbers` is 'count' for `Nat`."""

    name: str
    space: Space
    default: float | None = None
    numbers: str = ""


@immutable
class Formula:
    """`density(x) = …`: what the value is called, and the expression."""

    argument: str
    value: Expr


@immutable
class InnerDraw:
    """A family that stands in the formula of a draw: its value is bound under `name`."""

    name: str
    draw: FamilyDraw
    type: ValueType


@immutable_by_name
class DeclaredFamily:
    """A family that the file declares (docs/reference.md#families-of-your-own).

    `space` is that of one element, `numbers` 'count' for `Nat` and 'bool' for `Bool`; a size that the arguments decide
    is an unknown `%k`.  `lets` are bound in front of every formula; those of `drawn` are drawn, in their order, before
    `draw` is computed.
    """

    name: str
    space: Named
    parameters: tuple[DeclaredParameter, ...]
    density: Formula
    origin: Origin
    numbers: str = ""
    lets: tuple[tuple[str, Expr], ...] = ()
    cdf: Formula | None = None
    log_survival: Formula | None = None
    drawn: tuple[InnerDraw, ...] = ()
    draw: Expr | None = None


DrawModel = ArrowDraw | FamilyDraw


class Ascription(Enum):
    """What `: S` beside a family means, decided once by the checker (docs/reference.md#ascriptions)."""

    NONE = "none"
    VALUE = "value"  # S ascribes the value
    VALUE_SET = "value set"  # a discrete family per row: S is the set of values
    ROW_DRAWS = "draws in each row"  # continuous, an argument per row: |S| draws in each row
    PLATE = "plate"  # independent draws, or an S-indexed likelihood


Start = FamilyDraw | tuple[FamilyDraw, ...] | tuple[Expr, ...]


@immutable_by_name
class Chain:
    """A site whose elements depend on earlier ones along the index `at` of `indices`.

    `start` is the family of the first elements, a family for each, or their values; None where they are given with the
    data (`chain_starts` tells them apart).
    """

    indices: tuple[RunningIndex, ...]
    at: int
    start: Start | None


@immutable_by_name
class MissingCells:
    """What an observed step does with cells that its data leave out: `how` is 'impute', 'sum' or 'drop'.

    `[missing=impute]` makes cells of a continuous family latents, and sums those of a discrete one out.

    `shifts` are how far back, along the index of its chain, each element reads the step's own name.
    """

    how: str
    shifts: tuple[int, ...] = ()


@immutable_by_name
class Site:
    """What sample and observe steps share."""

    name: str
    bound: tuple[tuple[str, Named], ...]
    ascription: Ascription
    ascribed: Named | None
    draw: DrawModel
    density: Density
    over: Named | None
    via: Expr | None
    mask: Expr | None
    weight: Expr | None
    at: Expr | None
    row_local: bool
    """True where the draw is made anew in each row of the batch."""
    origin: Origin
    limits: tuple[tuple[str, Expr], ...] = ()
    """The options that censor or truncate an observed step, by name."""
    iid_over: Named | None = None
    """The plate in front of a value whose own space is ascribed (`: Latent … [iid_over=Item]`), or of draws from an
    arrow."""
    noncentred: bool = False
    """True where a sampler moves the standardised value."""
    chain: Chain | None = None
    indices: tuple[RunningIndex, ...] = ()
    """The indices that the step is written with."""
    weights: bool = False
    """True for the weights of the morphism of this name."""
    missing: MissingCells | None = None
    """What is done with the missing cells of an observed step; None where there may be none."""
    lengths: Expr | None = None
    """How many elements there are along the last of `indices`, for each element of the others; None for all."""


@immutable_by_name
class SampleModel:
    site: Site


@immutable_by_name
class ObserveModel:
    site: Site


@immutable_by_name
class PredictModel:
    """A draw that is made after the fit and has no density."""

    site: Site


@immutable_by_name
class MarginalizeModel:
    """`over` is the group axis, or None; `rows` the plate of the rows where no group is given."""

    site: Site
    over: Named | None
    rows: Named | None
    body: tuple[StepModel, ...]
    reads: tuple[tuple[Expr, ...], ...] | None = None
    """Of a hidden chain: the place that each element of each step of the body reads, an index for each of its sets."""
    indexed: bool = False
    """Without indices of its own: true where the body uses index notation."""
    axes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Without indices of its own: of the sites with indices, by name, where those of the rows stand among them."""


@immutable_by_name
class RunningIndex:
    """An index of a step: the set that it runs over, and how many first elements it leaves out."""

    name: str
    space: Space
    lag: int


@immutable_by_name
class IndexedValue:
    """`(v, w)[t : Time] = (…) from (…)`: the value of each name over the indices, in their order, further axes behind.

    `starts` are the first elements of each name along the index that has a lag, one expression for each of them or one
    for all.  `recursive`: a name reads its own earlier elements.  `lags` says how many first elements each name has,
    where there are several; the index has the least of them.
    """

    indices: tuple[RunningIndex, ...]
    values: tuple[Expr, ...]
    starts: tuple[tuple[Expr, ...], ...]
    recursive: bool
    lags: tuple[int, ...] = ()

    def lag(self, place: int) -> int:
        """How many first elements the name at a place has."""
        return self.lags[place] if self.lags else max((index.lag for index in self.indices), default=0)

    @property
    def longest(self) -> int:
        """How many first elements the name has that begins last."""
        return max((self.lag(place) for place in range(len(self.values))), default=0)


@immutable_by_name
class LetModel:
    """`value` is the first name's where the step is `indexed`."""

    names: tuple[str, ...]
    value: Expr
    origin: Origin
    indexed: IndexedValue | None = None


@immutable_by_name
class ScoreModel:
    """`indices` are those of the terms of a score below a hidden chain, of which `value` has one for each element."""

    name: str
    value: Expr
    origin: Origin
    indices: tuple[RunningIndex, ...] = ()


StepModel = SampleModel | ObserveModel | PredictModel | MarginalizeModel | LetModel | ScoreModel


@immutable_by_name
class Input:
    """An input of a program: a factor of its domain.  `name` is None where the header names none."""

    name: str | None
    space: Named


@immutable_by_name
class TemplateParameter:
    """A typed parameter: `kind` is 'FinSet', 'Real', 'Nat', 'Object' or 'Mor'."""

    name: str
    kind: str
    mor: tuple[Named, Named] | None
    default: str | None = None
    """As it is written."""

    @property
    def written(self) -> str:
        """`sd : Real = 1.0`"""
        sides = f"[{self.mor[0].written}, {self.mor[1].written}]" if self.mor else ""
        return f"{self.name} : {self.kind}{sides}" + ("" if self.default is None else f" = {self.default}")


@immutable_by_name
class DataName:
    """A name supplied at run time, with what is known of its type; `origin` is its declaration or its first use.

    `declared` where a `data` step says all of its type; `numbers` is then 'count' for whole numbers from 0, 'bool' for
    true and false, and '' for what the space says.
    """

    name: str
    type: ValueType
    origin: Origin
    declared: bool = False
    numbers: str = ""
    over: tuple[Finite, ...] = ()
    """The sets that it runs over, where that is known, with their labels."""
    aligned: bool = False
    """True where that is only known from what it stands beside: it may as well be one value for all."""


@immutable
class Extent:
    """How an arrow goes through a sequence: `positions` is the longest one that the learned positions of `place` allow
    (None: any); `scans` where it folds one."""

    positions: int | None = None
    place: str = ""
    scans: bool = False


ANY_LENGTH = Extent()


@immutable
class Stages:
    """How many declared arrows an arrow is made of, each counted as often as it is applied; not `sure` where something
    in it could not be typed."""

    count: int = 1
    sure: bool = True

    def __add__(self, other: Stages) -> Stages:
        return Stages(self.count + other.count, self.sure and other.sure)

    def times(self, count: int) -> Stages:
        return Stages(self.count * count, self.sure)


NO_STAGES, ONE_STAGE = Stages(0), Stages()


@immutable_by_name
class Program:
    """A typed program.  `domain`/`codomain` are effective (sequence lifting applied), `declared_*` as written."""

    name: str
    inputs: tuple[Input, ...]
    template: tuple[TemplateParameter, ...]
    declared_domain: Named
    declared_codomain: Named
    domain: Named
    codomain: Named
    sort: Sort
    steps: tuple[StepModel, ...]
    returns: tuple[tuple[str | None, str], ...]
    tupled: bool
    data: tuple[DataName, ...]
    uses_input: bool
    effects: frozenset[str]
    density: Density
    origin: Origin
    lengths: Expr | None = None
    """How many positions of each row's sequences are valid; None where nothing is padded."""
    extent: Extent = ANY_LENGTH
    stages: Stages = ONE_STAGE
    keep: tuple[str, ...] | None = None
    """The lets that a fit keeps; None: all that depend on a latent, while they are small."""
    returned: tuple[tuple[ValueType, Interval], ...] = ()
    """The type of each returned value, and where its numbers lie."""
    own: tuple[Arrow, ...] = ()
    """The arrows that a call of the template makes: they stand in the steps as these very objects."""


# ---------------------------------------------------------------- compositions, deductions, the file


@immutable_by_name
class Composition:
    """A selected or defined algebra.  `operations` maps 'tensor_op', 'join', 'unit', 'zero', 'negation' to
    (parameter names, body); empty for a builtin one."""

    name: str
    kind: str
    operations: Mapping[str, tuple[tuple[str, ...], Expr]]
    origin: Origin


@immutable
class TermModel:
    """A term: an atom, an integer, a variable, or a constructor with arguments.  kind: 'atom', 'integer', 'variable',
    'constructor'."""

    kind: str
    head: str
    args: tuple[TermModel, ...] = ()


@immutable_by_name
class RuleModel:
    name: str
    premises: tuple[TermModel, ...]
    conclusion: TermModel
    learnable: bool
    attributes: tuple[tuple[str, object], ...]
    origin: Origin


@immutable_by_name
class EntryModel:
    word: str
    category: TermModel
    form: TermModel | None
    learnable: bool
    attributes: tuple[tuple[str, object], ...]
    origin: Origin


@immutable_by_name
class Deduction:
    name: str
    domain: Named
    codomain: Named
    atoms: tuple[str, ...]
    binders: tuple[str, ...]
    rules: tuple[RuleModel, ...]
    lexicon: tuple[EntryModel, ...]
    lexicon_files: tuple[str, ...]
    semiring: str
    start: str | None
    depth: int | None
    tolerance: float
    max_iterations: int
    origin: Origin


@immutable_by_name
class ObjectModel:
    """A declared object.  `alias` is the name it is an alias of."""

    name: str
    space: Named
    alias: str | None
    origin: Origin


@immutable_by_name
class LetArrow:
    """A top-level let: a name for an arrow expression."""

    name: str
    arrow: Arrow
    origin: Origin


@immutable_by_name
class Replicated:
    """A declaration with `replicate=k`: the copies are declared arrows of their own, `f_0` … `f_{k-1}`."""

    name: str
    copies: tuple[str, ...]
    origin: Origin


@immutable_by_name
class Export:
    """`name` is the exported declaration, or `export_<n>` for an anonymous expression (then `arrow` holds it)."""

    name: str
    arrow: Arrow | None
    origin: Origin


@immutable
class Model:
    """One file, typed.  `arrows` holds morphisms by name, replicated copies included."""

    objects: Mapping[str, ObjectModel]
    arrows: Mapping[str, Arrow]
    replicated: Mapping[str, Replicated]
    lets: Mapping[str, LetArrow]
    programs: Mapping[str, Program]
    compositions: Mapping[str, Composition]
    deductions: Mapping[str, Deduction]
    exports: tuple[Export, ...]
    order: tuple[str, ...]
    """Names of all declarations in file order, those of other files first."""
    imported: frozenset[str] = frozenset()
    """Names of the declarations of other files."""

    @property
    def own_programs(self) -> dict[str, Program]:
        """The programs that the file itself declares, or exports."""
        left = self.imported - {export.name for export in self.exports}
        return {name: program for name, program in self.programs.items() if name not in left}
