"""What a step that is being written can read, and how."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.generator.expressions import (
    Apply,
    Binary,
    Binder,
    Call,
    Compare,
    Element,
    Expr,
    Negative,
    Number,
    Reduce,
    Ref,
    Shift,
    Where,
    walk,
)
from tests.generator.sets import Set, Table
from tests.generator.steps import Declared

REALS = ("real", "positive", "unit", "count", "bool")
"""Kinds of values that are numbers."""


@dataclass(frozen=True)
class Entry:
    """A named value: its axes, an event's last, and what its numbers are (a kind of `REALS`, or member).

    `owner` is where it may be read: everywhere, or (`own`) at its own index alone.
    """

    name: str
    axes: tuple[Set, ...]
    kind: str
    member: Set | None = None
    event: int = 0
    """Numbers of the event, which is the last axis."""
    space: str = ""
    """simplex, ordered or vector, of an event."""
    own: bool = False
    latent: bool = False
    lengths: str = ""
    """What says how many elements along the last axis exist, where not all do."""

    @property
    def plates(self) -> tuple[Set, ...]:
        """Its axes without the event."""
        return self.axes[:-1] if self.event else self.axes


@dataclass(frozen=True)
class Context:
    """Where an expression stands."""

    binders: tuple[Binder, ...] = ()
    plain: bool = False
    time: Binder | None = None
    lag: int = 0
    """The greatest shift that may be written."""
    own: tuple[Entry, ...] = ()
    """Names that the step defines: read with a shift only."""
    drawn: tuple[tuple[Expr, Set | None], ...] = ()
    """Hidden values to be read here: an index of a set, or a number."""
    via: Ref | None = None
    """The group of each row."""
    lengths: str = ""
    """What says how many elements along the last index exist."""

    def binder(self, over: Set) -> Binder | None:
        """The binder that runs over a set."""
        return next((b for b in self.binders if b.over == over), None)


@dataclass(frozen=True)
class Begun:
    """A name of a recursion whose names begin at different elements: `lag` first elements along the axis `at`, the last
    `before` of which stand before the first as well."""

    at: int
    lag: int
    before: int


@dataclass
class Names:
    """Fresh names, and all that has been declared."""

    rng: random.Random
    sets: list[Set] = field(default_factory=list[Set])
    entries: list[Entry] = field(default_factory=list[Entry])
    data: dict[str, Table] = field(default_factory=dict[str, Table])
    latents: dict[str, tuple[Table, ...]] = field(default_factory=dict[str, tuple[Table, ...]])
    features: set[str] = field(default_factory=set[str])
    families: dict[str, Declared] = field(default_factory=dict[str, Declared])
    """Families of the file, by those whose density they have."""
    begun: dict[str, Begun] = field(default_factory=dict[str, Begun])
    count: int = 0

    def fresh(self, stem: str) -> str:
        """A new name."""
        self.count += 1
        return f"{stem}{self.count}"

    def binder(self, over: Set) -> Binder:
        """A new index."""
        return Binder(self.fresh("t" if over.name.startswith("Time") else "i"), over)

    def reference(self, entry: Entry, context: Context, shift: int = 0) -> Ref | None:
        """An element of a value, by what is in sight; None where something is wanting.

        With `shift` it is one of the step's own names, so many elements earlier.
        """
        if context.via is not None and entry.axes:
            group = next((e.member for e in self.entries if e.name == context.via.name), None)
            looked_up = entry.axes == (group,) and not entry.lengths
            return Ref(entry.name, (context.via,), bare=True) if looked_up else None
        if entry.lengths:
            return self._among_those_there(entry, context)
        indices: list[Expr] = []
        for axis in entry.axes:
            if shift and context.time is not None and axis == context.time.over:
                indices.append(Shift(context.time, shift))
                continue
            index = self.index(axis, entry, context, own=bool(shift))
            if index is None:
                return None
            indices.append(index)
        found = Ref(entry.name, tuple(indices))
        return None if context.plain and not plainly(found) else found

    def _among_those_there(self, entry: Entry, context: Context) -> Ref | None:
        """An element of a chain that ends, in a step that ends where it does: at the same place, or earlier."""
        own = context.binders[: len(entry.axes)]
        if context.lengths != entry.lengths or tuple(b.over for b in own) != entry.axes:
            return None
        last: Expr = own[-1]
        if context.time == last and context.lag and self.rng.random() < 0.3:
            last = Shift(own[-1], self.rng.randint(1, context.lag))
        return Ref(entry.name, (*own[:-1], last))

    def index(self, axis: Set, entry: Entry, context: Context, own: bool = False) -> Expr | None:
        """An index of a set."""
        rng = self.rng
        found: list[tuple[float, Expr]] = []
        for binder in context.binders:
            if binder.over == axis or (not axis.name and binder.over.size == axis.size and not context.plain):
                found.append((6.0, binder))
        if entry.own:
            return found[0][1] if found else None
        if own:
            # a name that the step defines is read at its own plate, but for few
            return found[0][1] if found and (context.lengths or rng.random() < 0.9) else self._looked_up(axis, context)
        if context.time is not None and context.lag and axis == context.time.over:
            found.append((3.0, Shift(context.time, rng.randint(1, context.lag))))
        found += [(12.0, each) for each, member in context.drawn if member == axis]
        looked_up = self._looked_up(axis, context)
        if looked_up is not None:
            found.append((4.0, looked_up))
        if not found or rng.random() < 0.08:
            at = rng.randrange(axis.size)
            found.append((2.0, Element(axis, -1 if axis.name and rng.random() < 0.2 else at)))
        return rng.choices([each for _, each in found], [weight for weight, _ in found])[0]

    def _looked_up(self, axis: Set, context: Context) -> Ref | None:
        """A column of data that holds elements of a set."""
        columns = [e for e in self.entries if e.kind == "member" and e.member == axis and not e.own]
        self.rng.shuffle(columns)
        for column in columns:
            indices = [context.binder(each) for each in column.axes]
            if all(index is not None for index in indices):
                return Ref(column.name, tuple(index for index in indices if index is not None))
        return None

    def read(self, kinds: Sequence[str], context: Context) -> Ref | None:
        """Some value of one of these kinds."""
        entries = [e for e in self.entries if e.kind in kinds and not (context.plain and e.event and e.plates)]
        self.rng.shuffle(entries)
        # those that vary with the element first
        entries.sort(key=lambda e: not any(context.binder(axis) for axis in e.axes) and self.rng.random() < 0.5)
        for entry in entries[:6]:
            found = self.reference(entry, context)
            if found is not None:
                return found
        return None


def plainly(ref: Ref) -> bool:
    """Whether a plain text can say it: indices in front, whole axes behind."""
    indices = list(ref.indices)
    whole: list[Set] = []
    while indices and isinstance(indices[-1], Binder):
        whole.append(indices.pop().over)
    found = [axis for index in indices for axis in plain_axes(index) or []]
    return not any(isinstance(index, Binder | Shift) for index in indices) and not set(found) & set(whole)


def meet(left: Sequence[Set] | None, right: Sequence[Set] | None) -> list[Set] | None:
    """The axes of an operation on plain values; None where they do not meet."""
    if left is None or right is None:
        return None
    if not left or not right:
        return list(left or right)
    if not set(left) & set(right):
        return None
    if set(right) <= set(left):
        return list(left)
    if set(left) <= set(right):
        return list(right)
    return [*left, *(axis for axis in right if axis not in left)]


def plain_axes(expr: Expr) -> list[Set] | None:
    """The axes of a plain value, in order; None where its parts do not meet, or it says what only indices can say."""
    match expr:
        case Ref(bare=True):
            return []
        case Ref(_, indices):
            picked = _all([index for index in indices if not isinstance(index, Binder)])
            whole = [index.over for index in indices if isinstance(index, Binder)]
            return None if picked is None else [*picked, *(axis for axis in whole if axis not in picked)]
        case Binder() | Shift():
            return None
        case Reduce(_, body, binders):
            inner = plain_axes(body)
            if inner is None or binders[0].over not in inner:
                return None
            return [axis for axis in inner if axis != binders[0].over]
        case Binary(_, left, right) | Compare(_, left, right):
            return meet(plain_axes(left), plain_axes(right))
        case Negative(of) | Number(of):
            return plain_axes(of)
        case Call(_, arguments):
            return _all(arguments)
        case Apply(_, arguments, keywords):
            return _all([*arguments, *(each for _, each in keywords)])
        case Where(condition, then, otherwise):
            return _all([condition, then, otherwise])
        case _:
            return []


def _all(expressions: Iterable[Expr]) -> list[Set] | None:
    found: list[Set] | None = []
    for each in expressions:
        found = meet(found, plain_axes(each))
    return found


def shifts(expr: Expr, time: Binder, begun: Mapping[str, Begun]) -> Iterator[tuple[str, int]]:
    """What an expression reads at earlier elements: the name, and how many of the first elements lack it."""
    for each in walk(expr):
        for at, index in enumerate(each.indices if isinstance(each, Ref) else ()):
            if isinstance(index, Shift) and index.binder == time:
                back = index.by + (index.further.over.size - 1 if index.further else 0)
                one = begun.get(each.name)
                if one is not None and one.at == at:
                    back = max(back - one.before, min(back, one.lag - one.before))
                yield each.name, back


def greatest_shift(expr: Expr, time: Binder, begun: Mapping[str, Begun]) -> int:
    """How many of the first elements of an index lack what an expression reads."""
    return max((back for _, back in shifts(expr, time, begun)), default=0)


def lags_of(names: Sequence[str], bodies: Sequence[Expr], time: Binder, begun: Mapping[str, Begun]) -> tuple[int, ...]:
    """How many first elements each name of a recursion has: how far back it is read, or what its own elements read of
    others.  Empty where nothing reads an earlier element."""
    found = dict.fromkeys(names, 0)
    for name, body in zip(names, bodies, strict=True):
        for read, back in shifts(body, time, begun):
            begins = read if read in found else name
            found[begins] = max(found[begins], back)
    least = min((lag for lag in found.values() if lag), default=0)
    return tuple(lag or least for lag in found.values()) if least else ()


def begun_apart(names: Sequence[str], lags: Sequence[int], at: int) -> dict[str, Begun]:
    """Where the names of a recursion begin; `at` is the axis of its time.  Empty where all begin together."""
    least = min(lags, default=0)
    return {n: Begun(at, lag, lag - least) for n, lag in zip(names, lags, strict=True)} if len(set(lags)) > 1 else {}


def without_time(context: Context) -> Context:
    """What the first elements of a chain may read."""
    return replace(
        context,
        binders=tuple(b for b in context.binders if b != context.time),
        time=None,
        lag=0,
        own=(),
        drawn=(),
        lengths="",
    )


def number(rng: random.Random, kind: str) -> float:
    """A value of a kind, of moderate size."""
    match kind:
        case "positive":
            return math.exp(rng.gauss(0.0, 0.7))
        case "unit":
            return rng.uniform(0.05, 0.95)
        case "angle":
            return rng.uniform(-3.0, 3.0)
        case "count":
            return float(rng.choice((0, 0, 1, 1, 2, 3, 5)))
        case "bool":
            return float(rng.random() < 0.5)
        case _:
            return rng.gauss(0.0, 1.0)
