"""Typed arithmetic: every expression with its type and its place, a closed set (`Expr`)."""

from __future__ import annotations

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.spaces import Dim, Space
from qvr_core.syntax.immutable import immutable, immutable_by_name


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
    """A deterministic arrow applied to values (their product is the argument); in a case of an encoder also a sampled
    one, which is drawn from.

    `own` has for each argument how many of its last axes the arrow reads, where the others are as rows to it; empty
    where the arguments have none.
    """

    arrow: Arrow
    args: tuple[Expr, ...]
    own: tuple[int, ...] = ()


@immutable
class Lexicon:
    """The words of a deduction: those that its text lists, in their order, the labels of the set that its domain
    enumerates (None where it does not), and the files that list more words."""

    deduction: str
    words: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    files: tuple[str, ...] = ()


@immutable_by_name
class DeductionRef(ExprBase):
    """A deduction by name (`parse(D, sentence)`)."""

    name: str
    lexicon: Lexicon


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


COLUMN: tuple[int | None, ...] = (0, None)
"""The axes of an `Arrange` that makes numbers one a position of a sequence a column; one that is a column stays."""


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
class Solve(ExprBase):
    """`solve(f, z0, …, start=, at=)`: the solution of dz/dt = f(t, z, …) at the times `at`.

    Each value has the axes of all plates of equations in front (length 1 where it lacks one); behind them `at` has that
    of the times, `initial` that of the state where it is a vector, `start` none.  The result has plates, times, state.
    `rate` reads `names`: the time, the state and the arguments, which no program can call so.
    """

    function: str
    names: tuple[str, ...]
    rate: Expr
    initial: Expr
    arguments: tuple[Expr, ...]
    start: Expr
    at: Expr
    plates: int
    method: str
    """Of `METHODS`."""
    steps: int
    """Between two times, of a method without control of its error."""
    rtol: float
    atol: float
    max_steps: int
    """Between two times, of a method that controls its error: by these tolerances."""


@immutable_by_name
class TermValue(ExprBase):
    """A term of a deduction (`chart.weight(span(0, 2, S))`), as text, and the names in it that are no constructors,
    each with the constructors around it that may bind it."""

    text: str
    names: tuple[tuple[str, Origin, tuple[str, ...]], ...] = ()


Expr = (
    Constant | Bound | Data | Matrix | Apply | Builtin | Index | IndexValue | Window | Contract | Scatter | Arrange
    | FieldOf | Method | ListOf | Function | FactorTable | Solve | TermValue | DeductionRef
)  # fmt: skip
