"""Spaces: what an object denotes, and how wide it is (docs/reference.md#objects-and-dimensions)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import chain, islice

from qvr_core.syntax.immutable import immutable


@immutable
class Linear:
    """A size that is not (yet) one number: `constant + Σ coefficient · unknown` over the naturals.

    An unknown is named by a string that is unique in the file: a hole (`Embedded.0`), a `Nat` parameter, or a name
    shared by the whole file (`Real d`).
    """

    constant: int
    terms: tuple[tuple[str, int], ...]


class Known(int):
    """A size with a value that still says how it depends on declared sizes and solved holes.

    Everywhere an ordinary integer; only equations and the explanation of a wrong width read `form`.  `hole` says that
    the text writes no number.
    """

    form: Linear
    hole: bool

    def __new__(cls, value: int, form: Linear, hole: bool = False) -> Known:
        self = super().__new__(cls, value)
        self.form = form
        self.hole = hole
        return self

    def __reduce__(self) -> tuple[type[Known], tuple[int, Linear, bool]]:
        return (Known, (int(self), self.form, self.hole))


Dim = int | Linear


@immutable
class Finite:
    """A finite set.  `nominal` is the declared name that makes it this set; None for an anonymous one, which fits any
    set of its size.  `labels` for an enumeration; `parts` for a coproduct."""

    size: Dim
    nominal: str | None = None
    labels: tuple[str, ...] | None = None
    parts: tuple[Space, ...] | None = field(default=None, compare=False)


@immutable
class Real:
    """Real vectors.  `shape` keeps `Real 28 28`; only the product counts.  Bounds make a box; `None` is unbounded."""

    shape: tuple[Dim, ...]
    low: float | None = None
    high: float | None = None


@immutable
class Constrained:
    """`kind` is 'Simplex', 'Ordered', 'CholeskyFactor', 'Covariance' or 'Correlation' of size `size`; the bounds are
    those of the entries of an ordered vector."""

    kind: str
    size: Dim
    over: Finite | None = field(default=None, compare=False)
    """The set that the size is that of, which says what entries are called; the space is the same without it."""
    low: float | None = None
    high: float | None = None

    @property
    def vector(self) -> bool:
        """True for vectors, false for square matrices."""
        return self.kind in ("Simplex", "Ordered")


class Product:
    """A product, flat.  `names[i]` is how factor i is called in messages and after `.` (None: anonymous).

    A product of products keeps its parts and gives its factors when asked: of many declarations that build on each
    other, each costs what it adds.  `count` is the number of factors, `entries` the sum of all known sizes.
    """

    __slots__ = ("_factors", "_names", "_parts", "count", "entries", "head", "traits")
    __match_args__ = ("factors", "names")

    count: int
    entries: int
    traits: Traits
    head: tuple[Part, ...]
    """The first factors with their names."""

    def __init__(
        self, factors: tuple[Space, ...], names: tuple[str | None, ...], parts: tuple[Part, ...] | None = None
    ) -> None:
        """`parts` stand for factors and names, which are empty then."""
        self._factors, self._names, self._parts = factors, names, parts
        inside = factors if parts is None else tuple(space for _, space in parts)
        self.count = sum(map(factor_count, inside))
        self.entries = sum(map(entries, inside))
        self.traits = Traits.joint(map(traits, inside))
        first = self.parts[:MOST_COPIED]
        leading = chain.from_iterable(part[1].head if isinstance(part[1], Product) else (part,) for part in first)
        self.head = tuple(islice(leading, MOST_COPIED))

    @property
    def factors(self) -> tuple[Space, ...]:
        return self._factors if self._parts is None else tuple(space for _, space in flat(self._parts))

    @property
    def names(self) -> tuple[str | None, ...]:
        return self._names if self._parts is None else tuple(name for name, _ in flat(self._parts))

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the product was made of: factors, and products again."""
        return tuple(zip(self._names, self._factors, strict=True)) if self._parts is None else self._parts

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Product) or (self.count, self.entries) != (other.count, other.entries):
            return False
        return self.factors == other.factors and self.names == other.names

    def __hash__(self) -> int:
        return hash((self.count, self.entries))

    def __repr__(self) -> str:
        return f"Product(factors={self.factors!r}, names={self.names!r})"

    def __reduce__(self) -> tuple[type[Product], tuple[tuple[Space, ...], tuple[str | None, ...]]]:
        return (Product, (self.factors, self.names))


@immutable
class Seq:
    """Sequences of `item` along a length axis."""

    item: Space


@immutable
class Terms:
    """Finite trees of the data type `name`: each constructor with what stands at its places, None for a tree again.

    The spaces at places are finite sets and real spaces of known size.  `depth` is how many levels a term has at most,
    where a decoder makes them.
    """

    name: str
    constructors: tuple[tuple[str, tuple[Space | None, ...]], ...]
    depth: int | None = None

    def fits(self, wanted: Terms) -> bool:
        """Whether each of these terms is one that is `wanted`."""
        same = (self.name, self.constructors) == (wanted.name, wanted.constructors)
        return same and (wanted.depth is None or (self.depth is not None and self.depth <= wanted.depth))


@immutable
class Unknown:
    """The space of something that could not be typed.  It fits everywhere, so that one mistake stays one error."""


Space = Finite | Real | Constrained | Product | Seq | Terms | Unknown

Part = tuple[str | None, Space]
"""A factor with its name, or a product among those that another one is made of."""


@immutable
class Traits:
    """What holds of a space: something in it is unknown, a sequence, or trees; all of it is finite, or real."""

    unknown: bool = False
    sequence: bool = False
    finite: bool = False
    real: bool = False
    trees: bool = False

    @staticmethod
    def joint(all_traits: Iterable[Traits]) -> Traits:
        """The traits of a product."""
        found = list(all_traits)
        return Traits(
            any(one.unknown for one in found),
            any(one.sequence for one in found),
            all(one.finite for one in found),
            all(one.real for one in found),
            any(one.trees for one in found),
        )


def traits(space: Space) -> Traits:
    """Known of a product without going through it."""
    match space:
        case Product():
            return space.traits
        case Seq(item=item):
            return Traits(unknown=traits(item).unknown, sequence=True, trees=traits(item).trees)
        case Finite():
            return _FINITE
        case Unknown():
            return _UNKNOWN
        case Terms():
            return _TREES
        case _:
            return _REAL


_FINITE, _REAL, _UNKNOWN, _TREES = Traits(finite=True), Traits(real=True), Traits(unknown=True), Traits(trees=True)


def flat(parts: Iterable[Part]) -> Iterator[Part]:
    """The factors of products inside of products, in order."""
    pending = [iter(parts)]
    while pending:
        for part in pending[-1]:
            if isinstance(part[1], Product):
                pending.append(iter(part[1].parts))
                break
            yield part
        else:
            pending.pop()


def factor_count(space: Space) -> int:
    return space.count if isinstance(space, Product) else 1


def entries(space: Space) -> int:
    """The largest size written in a space, summed over factors; unsolved sizes count nothing."""
    match space:
        case Product():
            return space.entries
        case Seq(item=item):
            return entries(item)
        case Real(shape=shape):
            return math.prod(int(dim) for dim in shape if not isinstance(dim, Linear))
        case Finite(size=size) | Constrained(size=size):
            return 0 if isinstance(size, Linear) else int(size)
        case Terms() | Unknown():
            return 0


@immutable
class Named:
    """A space together with the way the user wrote it (`Embedded`, `FwdHidden * BwdHidden`), for messages and hovers.

    Comparison looks at the space only.
    """

    space: Space
    written: str = field(compare=False)


REAL_LINE = Real((1,))
"""The space of a scalar draw."""


# ---------------------------------------------------------------- sizes


def linear(dim: Dim) -> Linear:
    """A size as a linear form over declared sizes and holes."""
    if isinstance(dim, Linear):
        return dim
    return dim.form if isinstance(dim, Known) else Linear(int(dim), ())


def scale(form: Linear, factor: int) -> Linear:
    return Linear(form.constant * factor, tuple((name, count * factor) for name, count in form.terms if factor))


def add_forms(forms: Iterable[Linear]) -> Linear:
    constant = 0
    terms: dict[str, int] = {}
    for form in forms:
        constant += form.constant
        for name, count in form.terms:
            terms[name] = terms.get(name, 0) + count
    return Linear(constant, tuple(sorted((name, count) for name, count in terms.items() if count)))


def add(dims: Iterable[Dim]) -> Dim:
    """The sum of sizes: a number where all are known."""
    items = list(dims)
    if len(items) == 1:
        return items[0]
    value = 0
    plain = True
    for dim in items:
        if isinstance(dim, Linear):
            return add_forms(map(linear, items))
        plain = plain and not isinstance(dim, Known)
        value += dim
    return value if plain else Known(value, add_forms(map(linear, items)))


def multiply(dim: Dim, factor: int) -> Dim:
    """A size times a number that no hole stands for."""
    if isinstance(dim, Linear):
        return scale(dim, factor)
    return Known(int(dim) * factor, scale(dim.form, factor)) if isinstance(dim, Known) else dim * factor


def is_hole(dim: Dim) -> bool:
    """Whether the text writes no number for a size, which may be solved."""
    return isinstance(dim, Linear) or (isinstance(dim, Known) and dim.hole)


def product_of(dims: tuple[Dim, ...]) -> Dim:
    """|Real a b …|.  Of several holes the product is no linear form: the first one stands for all."""
    if len(dims) == 1:
        return dims[0]
    holes = [i for i, dim in enumerate(dims) if is_hole(dim)]
    if not holes:
        return math.prod(int(dim) for dim in dims if not isinstance(dim, Linear))
    first = dims[holes[0]]
    others = math.prod(int(d) for i, d in enumerate(dims) if i != holes[0] and not isinstance(d, Linear))
    form = scale(linear(first), others)
    return form if isinstance(first, Linear) else Known(int(first) * others, form, hole=True)


# ---------------------------------------------------------------- spaces


def width(space: Space) -> Dim:
    """|A|: numbers in one element; 1 for a finite set and for a tree, d · d for matrices.  A sequence counts one
    position."""
    if isinstance(space, Real):
        return product_of(space.shape)
    if isinstance(space, Product):
        return add(width(factor) for factor in space.factors)
    if isinstance(space, Constrained):
        if space.vector:
            return space.size
        return int(space.size) ** 2 if isinstance(space.size, int) else scale(space.size, 1)
    return width(space.item) if isinstance(space, Seq) else 1


MOST_COPIED = 64
"""Products of more factors share those that they are made of."""


def product(parts: Iterable[Part]) -> Space:
    """The flat product of (name, space); one factor alone is itself."""
    given = tuple(parts)
    if len(given) == 1:
        return given[0][1]
    if sum(factor_count(space) for _, space in given) > max(MOST_COPIED, len(given)):
        return Product((), (), given)
    whole = tuple(flat(given))
    return Product(tuple(space for _, space in whole), tuple(name for name, _ in whole))


def factors_of(space: Space) -> tuple[Space, ...]:
    return space.factors if isinstance(space, Product) else (space,)


def has_seq(space: Space) -> bool:
    return traits(space).sequence


def sequence_of(space: Space) -> Space:
    """`Seq A`, factor by factor; what is a sequence stays one."""
    if isinstance(space, Product):
        return Product(tuple(sequence_of(factor) for factor in space.factors), space.names)
    return space if isinstance(space, Seq) else Seq(space)


def item_of(space: Space) -> Space:
    """What a sequence is made of, factor by factor; anything else is itself."""
    if isinstance(space, Product):
        if not space.traits.sequence:
            return space
        return Product(tuple(item_of(factor) for factor in space.factors), space.names)
    return space.item if isinstance(space, Seq) else space


def is_unknown(space: Space) -> bool:
    return traits(space).unknown


def is_finite(space: Space) -> bool:
    """A finite set, or a product of such."""
    return traits(space).finite


def has_terms(space: Space) -> bool:
    """Whether a factor is a data type's trees."""
    return traits(space).trees


def is_real(space: Space) -> bool:
    """A real space, a constrained one included, or a product of such."""
    return traits(space).real


def sizes(space: Space) -> Iterator[Dim]:
    """Every size in a space."""
    if isinstance(space, Finite):
        yield space.size
    elif isinstance(space, Real):
        yield from space.shape
    elif isinstance(space, Constrained):
        yield space.size
    elif isinstance(space, Product):
        for factor in space.factors:
            yield from sizes(factor)
    elif isinstance(space, Seq):
        yield from sizes(space.item)
