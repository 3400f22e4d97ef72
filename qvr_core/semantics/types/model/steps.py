"""The typed steps of a program: what each draws, observes, sums out or computes, a closed set (`StepModel`)."""

from __future__ import annotations

from qvr_core.operations.intervals import Interval
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow, Density
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.spaces import Named, Space, is_finite
from qvr_core.syntax.immutable import immutable_by_name


@immutable_by_name
class ArrowDraw:
    """A named arrow applied to arguments; no arguments means the program's input.

    Where the site has a plate, there is a draw for each of its elements: of each argument the last `own`
    axes are the arrow's, those before them are the plate's.
    """

    arrow: Arrow
    args: tuple[Expr, ...] | None
    origin: Origin
    own: tuple[int, ...] = ()


DrawModel = ArrowDraw | FamilyDraw


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
    plate: Named | None
    """The sets that it runs over, whether they were written as indices or not: a draw, or a term of the likelihood, for
    each element; None for one draw, and where only data tell."""
    element: Named | None
    """The space of one element where the step names it (`: Real 1 [low=0.0]`); None for what the draw gives."""
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
    type: ValueType | None = None
    """The type of the whole value, where a step draws or observes it."""
    range: Interval | None = None
    """Where its numbers lie, likewise."""
    auxiliary: bool = False
    """True for a draw of a guide that is none of the model's latents."""
    of_let: bool = False
    """True where what is observed is a let of data above: the step binds nothing anew."""
    each_row: bool = False
    """True where the draws of the plate are made in each row, whose arguments may be along them."""

    @property
    def elementwise(self) -> Named | None:
        """The plate of a family each of whose elements is one draw; None of vectors whose entries are drawn one by one,
        and of an arrow."""
        entries = self.element is not None and not is_finite(self.element.space)
        return None if entries or self.each_row or isinstance(self.draw, ArrowDraw) else self.plate


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


@immutable_by_name
class ParamModel:
    """Numbers that a guide learns: `type` has their plates and the space of one element, in which they stay.

    `init` is where they start, one number for all or one for each of an element's; None for the middle of the space.
    """

    names: tuple[str, ...]
    type: ValueType
    named: Named
    init: tuple[float, ...] | None
    origin: Origin


StepModel = SampleModel | ObserveModel | PredictModel | MarginalizeModel | LetModel | ScoreModel | ParamModel
