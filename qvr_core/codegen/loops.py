"""The loop language: expressions of loop variables, and nests of loops that store or accumulate them.

A graph of arrays has known shapes, so every index is a linear form of loop variables and of stored whole numbers.
Buffers are written once, or zeroed and then only added to: so a nest may move up to where all that it reads is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """A place for numbers: `q` (position), `g` (gradient), `d` and `k` (real and whole constants), `w` (made)."""

    kind: str
    size: int
    zeroed: bool = False


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + Σ coefficient · atom; an atom is a loop variable or a stored whole number."""

    constant: int = 0
    terms: tuple[tuple[str | Load, int], ...] = ()

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.constant + other, self.terms)
        total = dict(self.terms)
        for atom, coefficient in other.terms:
            total[atom] = total.get(atom, 0) + coefficient
        # one order, so that equal indices are equal
        terms = tuple(sorted(((a, c) for a, c in total.items() if c), key=lambda term: str(term[0])))
        return Linear(self.constant + other.constant, terms)

    def __mul__(self, factor: int) -> Linear:
        return Linear(self.constant * factor, tuple((a, c * factor) for a, c in self.terms) if factor else ())

    def loads(self) -> Iterator[Load]:
        """The stored numbers in it."""
        for atom, _ in self.terms:
            if isinstance(atom, Load):
                yield atom
                yield from atom.place.loads()

    @property
    def fixed(self) -> bool:
        """True where no loop variable moves it."""
        return not self.terms


@dataclass(frozen=True, slots=True)
class Load:
    """The number at a place of a buffer."""

    buffer: Buffer
    place: Linear


@dataclass(frozen=True, slots=True)
class Literal:
    """A number that is known."""

    value: float


@dataclass(frozen=True, slots=True)
class Call:
    """An operation on numbers, by its name in `pointwise`."""

    name: str
    arguments: tuple[Expression, ...]


Expression = Load | Literal | Call
Index = tuple[Linear, ...]
Loops = tuple[tuple[str, int], ...]
"""Variables and their extents, outermost first."""


def loads(expression: Expression) -> Iterator[Load]:
    """Every number that an expression reads, the indices of its places included."""
    match expression:
        case Load():
            yield expression
            yield from expression.place.loads()
        case Call():
            for argument in expression.arguments:
                yield from loads(argument)
        case Literal():
            pass


def variable(name: str) -> Linear:
    """A loop variable as an index."""
    return Linear(0, ((name, 1),))


def counters(prefix: str, shape: Sequence[int]) -> tuple[Loops, Index]:
    """Loops over a shape and its index; an axis of one element needs no loop."""
    names = iter(f"{prefix}{number}" for number in range(len(shape)))
    index = tuple(variable(next(names)) if size != 1 else Linear() for size in shape)
    kept = [size for size in shape if size != 1]
    return tuple((f"{prefix}{number}", size) for number, size in enumerate(kept)), index


@dataclass(frozen=True, slots=True)
class Strided:
    """Numbers that lie in a buffer."""

    buffer: Buffer
    offset: int
    strides: tuple[int, ...]

    def place(self, index: Index) -> Linear:
        """Where the number at an index lies."""
        found = Linear(self.offset)
        for at, stride in zip(index, self.strides, strict=True):
            found = found + at * stride
        return found


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of rows one behind the other."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


@dataclass(frozen=True, slots=True)
class Piece:
    """Numbers that are added into a larger shape: where each of them goes; `box` is what they fill where that is a
    block, (start, stop) an axis."""

    source: Value
    where: Callable[[Index], Index]
    box: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor as it may be read: `at` gives the number at an index.  `kind` is 'real', 'whole' or 'truth'; `cost`
    counts the operations that one number takes.  `pieces`: it is a sum of pieces, not yet made."""

    shape: tuple[int, ...]
    kind: str
    at: Callable[[Index], Expression]
    cost: int = 0
    strided: Strided | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def numel(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a nest does at each turn.

    'store': target[place] = value.  'add': target[place] += value.  'reduce': the same with all of `inner` joined by
    `joined_by` first.  'scan': target[place] is what runs up along `inner`.  'routine': `value` names a function of
    `matrices` that fills the target from `place` on; it takes whole numbers, and places: loads stand for where they
    load from, and for all that lies behind.
    """

    kind: str
    target: Buffer
    place: Linear
    value: Expression
    inner: Loops = ()
    joined_by: str = "+"

    def reads(self) -> Iterator[Load]:
        """Every number that it reads."""
        yield from loads(self.value)
        yield from self.place.loads()


@dataclass(slots=True)
class Nest:
    """Loops around statements."""

    extents: tuple[int, ...]
    statements: list[Statement]
    written: dict[Buffer, Statement] = field(default_factory=dict[Buffer, Statement])
    read: set[Buffer] = field(default_factory=set[Buffer])

    def take(self, statement: Statement) -> None:
        """Append a statement."""
        self.statements.append(statement)
        self.written[statement.target] = statement
        self.read.update(load.buffer for load in statement.reads())


Placed = tuple[tuple[int, ...], Statement]
"""A statement and the extents of the loops around it, over i0, i1, …"""


TURN = "r"
"""The variable of a loop over turns."""


@dataclass(slots=True)
class Turns:
    """Statements that run `count` times in their order, over `TURN`; `scratch` are buffers to be zeroed each time.
    Those of `after` follow them and may write over what they have read; the turn is the last one where `going` is not
    above 0."""

    count: int
    statements: list[Placed]
    scratch: list[Buffer]
    after: list[Placed] = field(default_factory=list[Placed])
    going: Expression | None = None


class Plan:
    """Statements in the order in which they may run; what stands before turns is done before them."""

    def __init__(self) -> None:
        self.statements: list[Placed | Turns] = []

    def put(self, loops: Loops, statement: Statement) -> None:
        """Append a statement in loops over i0, i1, …"""
        self.statements.append((tuple(size for _, size in loops), statement))


@dataclass(slots=True)
class Program:
    """Loops, and the constants that they read."""

    plan: Plan
    value: Expression
    reals: list[float]
    wholes: list[int]
    width: int
    real_buffer: Buffer
    whole_buffer: Buffer


def fused(statements: Sequence[Placed]) -> list[Nest]:
    """Nests in order: a statement goes into the first nest of its extents behind everything that it reads."""
    nests: list[Nest] = []
    written: dict[Buffer, int] = {}
    for extents, statement in statements:
        first = 0
        for load in statement.reads():
            last = written.get(load.buffer, -1)
            if last >= 0:
                beside = statement.kind != "routine" and _beside(nests[last], extents, load)
                first = max(first, last if beside else last + 1)
        for place in range(first, len(nests)):
            if nests[place].extents == extents:
                break
        else:
            place = len(nests)
            nests.append(Nest(extents, []))
        nests[place].take(statement)
        written[statement.target] = max(place, written.get(statement.target, -1))
    return nests


def _beside(nest: Nest, extents: tuple[int, ...], load: Load) -> bool:
    """Whether the number is there already at the same turn of the nest that makes it."""
    statement = nest.written[load.buffer]
    made = statement.kind in ("store", "reduce") and statement.place == load.place
    alone = sum(other.target is load.buffer for other in nest.statements) == 1
    return made and alone and nest.extents == extents
