"""Random expressions of a kind, at a place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.generator.expressions import (
    Apply,
    Binary,
    Binder,
    Call,
    Compare,
    Def,
    Expr,
    Negative,
    Num,
    Number,
    Parameter,
    Reduce,
    Ref,
    Shift,
    Where,
    walk,
)
from tests.generator.scope import REALS, Context, Entry, Names, plain_axes
from tests.generator.sets import Set
from tests.generator.vectors import Items, Row, Softmax, Vec

MOST_TRIES = 100
"""For an element whose other places, picked at random, may not be in sight."""


class Expressions:
    """Writes expressions with what `names` has."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.rng = names.rng
        self.defs: list[Def] = []

    def chance(self, probability: float) -> bool:
        """Whether something happens that often."""
        return self.rng.random() < probability

    def literal(self, low: float, high: float) -> Num:
        """A short number."""
        return Num(round(self.rng.uniform(low, high), 2))

    def of(self, kind: str, context: Context, depth: int = 2) -> Expr:
        """An expression of a kind; in plain contexts its parts meet."""
        write: Callable[[Context, int], Expr] = {"positive": self.positive, "unit": self.unit}.get(kind, self.real)
        for shallow in range(4):
            found = write(context, max(depth - shallow, 0))
            if not context.plain or plain_axes(found) is not None:
                return found
        return {"positive": Num(0.8), "unit": Num(0.4)}.get(kind, Num(0.3))

    # ------------------------------------------------------------ numbers

    def real(self, context: Context, depth: int) -> Expr:
        """Any real number."""
        if depth <= 0 or self.chance(0.2):
            return self._real_leaf(context)
        below = depth - 1
        ways: list[tuple[float, Callable[[], Expr]]] = [
            (4, lambda: Binary("+", self.real(context, below), self.real(context, below))),
            (2, lambda: Binary("-", self.real(context, below), self.real(context, below))),
            (3, lambda: Binary("*", self.literal(-1.5, 1.5), self.real(context, below))),
            (2, lambda: Binary("*", self.real(context, 0), self.real(context, below))),
            (1, lambda: Binary("/", self.real(context, below), self.positive(context, 0))),
            (1, lambda: Negative(self.real(context, below))),
            (2, lambda: Call(self.rng.choice(("tanh", "sin", "cos", "atan", "erf")), (self.real(context, below),))),
            (1, lambda: Call(self.rng.choice(("log", "sqrt", "log1p")), (self.positive(context, below),))),
            (0.5, lambda: Call(self.rng.choice(("logsigmoid", "log_ndtr")), (self.real(context, 0),))),
            (0.5, lambda: Call("logit", (self.unit(context, 0),))),
            (1, lambda: self.positive(context, below)),
            (0.7, lambda: self._two("minimum", "maximum", "logaddexp", context=context)),
            (1, lambda: self._where(context, below, self.real)),
            (2.5, lambda: self._reduction(context, below)),
            (1, lambda: self._applied(context)),
        ]
        if not context.plain:
            ways.append((0.7, lambda: self._indicator(context)))
        return self._one_of(ways)

    def positive(self, context: Context, depth: int) -> Expr:
        """A positive number, as the checker can see."""
        if depth <= 0 or self.chance(0.3):
            found = self.names.read(("positive",), context) if self.chance(0.6) else None
            return found or self.literal(0.3, 2.0)
        below = depth - 1
        return self._one_of([
            (2, lambda: Call("exp", (Binary("*", self.literal(0.1, 0.5), Call("sin", (self.real(context, below),))),))),
            (2, lambda: Call("softplus", (self.real(context, below),))),
            (2, lambda: Binary("+", self.positive(context, below), self.positive(context, below))),
            (2, lambda: Binary("*", self.positive(context, 0), self.positive(context, below))),
            (1, lambda: Binary("/", self.positive(context, 0), self.positive(context, below))),
            (1, lambda: Call("sqrt", (self.positive(context, below),))),
            (1, lambda: Binary("+", Binary("^", self.real(context, 0), Num(2)), self.literal(0.2, 1.0))),
            (1, lambda: Binary("+", Call("abs", (self.real(context, 0),)), self.literal(0.2, 1.0))),
            (1, lambda: self._where(context, below, self.positive)),
            (0.5, lambda: Binary("^", self.positive(context, 0), Num(self.rng.choice((2, 3, 0.5))))),
            (1, lambda: self._positive_sum(context)),
        ])  # fmt: skip

    def unit(self, context: Context, depth: int) -> Expr:
        """A number between 0 and 1."""
        found = self.names.read(("unit",), context) if self.chance(0.5) else None
        if found is not None and (depth <= 0 or self.chance(0.6)):
            return found
        if depth <= 0 or self.chance(0.15):
            return self.literal(0.1, 0.9)
        if found is not None and self.chance(0.3):
            return Binary("-", Num(1.0), found)
        return Call("sigmoid", (self.real(context, depth - 1),))

    def _real_leaf(self, context: Context) -> Expr:
        if context.own and self.chance(0.3):
            return self.earlier(context)
        for each, member in context.drawn:
            if member is None and self.chance(0.5):
                return each
        if self.chance(0.8):
            found = self.names.read(REALS, context)
            if found is not None:
                return found
        if not context.plain and context.binders and self.chance(0.2):
            return self.rng.choice(context.binders)
        return self.literal(-2.0, 2.0)

    def earlier(self, context: Context, shift: int = 0, entry: Entry | None = None) -> Expr:
        """An earlier element of a name of the step, kept small."""
        found = self.own(context, shift, entry)
        return Call(self.rng.choice(("tanh", "sin")), (found,)) if self.chance(0.5) else Binary("*", Num(0.3), found)

    def own(self, context: Context, shift: int = 0, entry: Entry | None = None) -> Ref:
        """An earlier element of a name of the step."""
        entry = entry or self.rng.choice(context.own)
        for _ in range(MOST_TRIES):
            found = self.names.reference(entry, context, shift or self.rng.randint(1, context.lag))
            if found is not None:
                return found
        raise AssertionError(f"{entry.name} cannot be read")

    def _one_of(self, ways: list[tuple[float, Callable[[], Expr]]]) -> Expr:
        return self.rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()

    def _two(self, *functions: str, context: Context) -> Expr:
        return Call(self.rng.choice(functions), (self.real(context, 0), self.real(context, 1)))

    def _where(self, context: Context, depth: int, write: Callable[[Context, int], Expr]) -> Expr:
        self.names.features.add("where")
        return Where(self.condition(context), write(context, depth), write(context, depth))

    def condition(self, context: Context) -> Expr:
        """A comparison."""
        flag = self.names.read(("bool",), context) if self.chance(0.3) else None
        if flag is not None:
            return Compare("==", flag, Num(1))
        if not context.plain and context.binders and self.chance(0.4):
            binder = self.rng.choice(context.binders)
            same = [b for b in context.binders if b.over == binder.over and b != binder]
            other: Expr = self.rng.choice(same) if same else Num(self.rng.randrange(binder.over.size))
            return Compare(self.rng.choice(("<", "<=", ">", "==", "!=")), binder, other)
        return Compare(self.rng.choice(("<", ">=")), self.real(context, 0), self.literal(-1.0, 1.0))

    def _indicator(self, context: Context) -> Expr:
        """(s == t), or a binder's number."""
        if not context.binders:
            return self._real_leaf(context)
        return Number(self.condition(context))

    # ------------------------------------------------------------ reductions

    def _reduction(self, context: Context, depth: int) -> Expr:
        if context.via is not None:
            return self._real_leaf(context)
        if context.plain:
            return self._plain_reduction(context)
        names = self.names
        over = [each for each in names.sets if each.size <= 4] or names.sets
        chosen = self.rng.sample(over, 2 if len(over) > 1 and self.chance(0.15) else 1)
        binders = tuple(names.binder(each) for each in chosen)
        inner = self._reduced(context, binders)
        kind = self.rng.choice(("sum", "sum", "sum", "mean", "max", "min", "logsumexp", "prod"))
        condition: Expr | None = None
        if kind in ("sum", "prod") and self.chance(0.4):
            condition = self._filter(binders[0], inner, context)
            names.features.add("reduction-if")
        body = self.real(inner, max(depth - 1, 0))
        if binders[0] not in _binders(body):
            found = self._reading(binders[0], inner)
            body = Binary("*", body, found) if found is not None else body
        if kind == "prod":
            body = Binary("+", Num(1.0), Binary("*", Num(0.3), Call("tanh", (body,))))
        names.features.add(f"reduction-{kind}")
        return Reduce(kind, body, binders, condition)

    def _reduced(self, context: Context, binders: tuple[Binder, ...]) -> Context:
        """What a reduction may read: no hidden value where it runs over that value's own set."""
        over = {b.over for b in binders}
        near = any(each.over in over for e, _ in context.drawn for each in walk(e) if isinstance(each, Binder))
        drawn = () if near else context.drawn
        return replace(context, binders=(*context.binders, *binders), own=(), lag=0, drawn=drawn)

    def _reading(self, binder: Binder, context: Context) -> Expr | None:
        """A value that runs over a binder."""
        entries = [e for e in self.names.entries if binder.over in e.axes and e.kind in REALS and not e.own]
        self.rng.shuffle(entries)
        for entry in entries[:4]:
            found = self.names.reference(entry, context)
            if found is not None and binder in _binders(found):
                return found
        return None

    def _filter(self, binder: Binder, inner: Context, outer: Context) -> Expr:
        """What a reduction keeps: by a column's group, by a comparison."""
        columns = [
            e for e in self.names.entries
            if e.kind == "member" and e.axes == (binder.over,) and e.member and outer.binder(e.member) and not e.own
        ]  # fmt: skip
        if columns and self.chance(0.7):
            column = self.rng.choice(columns)
            assert column.member is not None
            other = outer.binder(column.member)
            assert other is not None
            self.names.features.add("scatter")
            return Compare("==", Ref(column.name, (binder,)), other)
        same = outer.binder(binder.over)
        if same is not None and self.chance(0.7):
            return Compare(self.rng.choice(("<", "<=", "!=", ">=")), binder, same)
        return self.condition(replace(inner, drawn=()))

    def _plain_reduction(self, context: Context) -> Expr:
        names = self.names
        taken = {b.over for b in context.binders}
        entries = [
            e for e in names.entries
            if e.kind in REALS and not e.own and not e.lengths
            and any(axis not in taken and axis.name for axis in e.axes)
            and all(axis.name for axis in e.axes)
        ]  # fmt: skip
        self.rng.shuffle(entries)
        for entry in entries[:4]:
            free = [axis for axis in entry.axes if axis not in taken and axis.name]
            if len(free) != 1 or entry.axes.count(free[0]) > 1:
                continue
            binder = names.binder(free[0])
            inner = replace(context, binders=(*context.binders, binder), own=(), lag=0)
            left = Ref(entry.name, tuple(inner.binder(axis) or binder for axis in entry.axes))
            if not all(axis == free[0] or axis in taken for axis in entry.axes):
                continue
            right = next(
                (e for e in names.entries
                 if e.kind in REALS and e.axes and e.axes[0] == free[0] and e.name != entry.name and not e.own
                 and len(e.axes) == 1 and not e.event and not e.lengths), None)  # fmt: skip
            if right is not None and entry.axes[-1] == free[0] and not entry.event and self.chance(0.5):
                names.features.add("matmul")
                product = Binary("*", left, Ref(right.name, (binder,)))
                return Reduce("sum", product, (binder,), product=True)
            kind = self.rng.choice(("sum", "mean", "max", "min", "logsumexp"))
            names.features.add("reduction-over")
            return Reduce(kind, left, (binder,))
        return self._real_leaf(context)

    def _positive_sum(self, context: Context) -> Expr:
        if context.plain or context.via is not None:
            return self.literal(0.3, 2.0)
        binder = self.names.binder(self.rng.choice(self.names.sets))
        inner = self._reduced(context, (binder,))
        kind = self.rng.choice(("sum", "mean", "max"))
        return Reduce(kind, self.positive(inner, 0), (binder,))

    def lags(self, context: Context, entry: Entry, lag: Set) -> Expr:
        """`sum(phi[j] * y[t - 1 - j] for j : Lag)`."""
        binder = self.names.binder(lag)
        found = self.own(context, 1, entry)
        indices = tuple(
            Shift(index.binder, 1, binder) if isinstance(index, Shift) else index for index in found.indices
        )
        inner = Context(binders=(*context.binders, binder))
        coefficient: Expr = self._reading(binder, inner) or self.literal(-0.5, 0.5)
        self.names.features.add("lag-sum")
        product = Binary("*", Call("tanh", (coefficient,)), Ref(found.name, indices))
        return Reduce("sum", Binary("*", Num(0.5), product), (binder,))

    # ------------------------------------------------------------ functions

    def _applied(self, context: Context) -> Expr:
        """A call of a declared function, declared now or before."""
        if not self.defs or (len(self.defs) < 3 and self.chance(0.4)):
            self._declare()
        called = self.rng.choice(self.defs)
        self.names.features.add("def")
        required = [name for name, default in called.parameters if default is None]
        given = [self.real(context, 0) for _ in required]
        optional = [
            (name, self.real(context, 0)) for name, d in called.parameters if d is not None and self.chance(0.5)
        ]
        return Apply(called.name, tuple(given), tuple(optional))

    def _declare(self) -> None:
        names = self.names
        one, two = Parameter(names.fresh("x")), Parameter(names.fresh("k"))
        let = Parameter(names.fresh("w"))
        function = self.rng.choice(("tanh", "sin", "atan", "sigmoid"))
        inner = Call(function, (Binary("*", one, two),))
        lets: tuple[tuple[str, Expr], ...] = ()
        body: Expr = Binary(self.rng.choice("+-"), inner, self.literal(-1.0, 1.0))
        if self.chance(0.5):
            squared = Binary("+", Binary("*", let, let), Binary("*", self.literal(-1.0, 1.0), one))
            body = Parameter(names.fresh("w"))
            lets = ((let.name, inner), (body.name, squared))
        default = round(self.rng.uniform(-1.0, 1.0), 2) if self.chance(0.5) else None
        self.defs.append(Def(names.fresh("f"), ((one.name, None), (two.name, default)), lets, body))

    # ------------------------------------------------------------ vectors

    def vector(self, kind: str, size: int, over: Set | None, context: Context) -> Vec:
        """A vector argument: simplex, logits, positives, ordered or a lower triangle."""
        item = replace(context, binders=(), own=(), lag=0, time=None) if context.plain else context
        if kind == "tril":
            rows: list[Expr] = []
            for k in range(size):
                row: list[Expr] = [self.literal(-0.8, 0.8) if j < k else Num(0.0) for j in range(size)]
                row[k] = self.positive(item, 0)
                rows.append(Items(tuple(row)))
            return Items(tuple(rows))
        if kind == "ordered":
            found = self.row("ordered", size, over, context)
            return found or Items(tuple(Num(round(-1.0 + 1.3 * k, 2)) for k in range(size)))
        if kind == "positives":
            return Items(tuple(self.positive(item, 1) for _ in range(size)))
        if kind == "logits":
            found = self.row("real", size, over, context) if self.chance(0.5) else None
            return found or Items(tuple(self.real(item, 1) for _ in range(size)))
        found = self.row("simplex", size, over, context) if self.chance(0.6) else None
        if found is not None:
            return found
        if self.chance(0.5):
            return Softmax(Items(tuple(self.real(item, 1) for _ in range(size))))
        weights = [self.rng.randint(1, 9) for _ in range(size)]
        parts = [round(each / sum(weights), 3) for each in weights[:-1]]
        return Items(tuple(Num(each) for each in (*parts, round(1.0 - sum(parts), 3))))

    def row(self, space: str, size: int, over: Set | None, context: Context) -> Row | None:
        """The last axis of a named value."""
        entries = [
            e for e in self.names.entries
            if e.axes and e.axes[-1].size == size and (over is None or not e.axes[-1].name or e.axes[-1] == over)
            and (e.space == space and e.event if space in ("simplex", "ordered") else e.kind == "real" and not e.event)
            and not e.own and not e.lengths
        ]  # fmt: skip
        self.rng.shuffle(entries)
        for entry in entries[:4]:
            if context.plain and context.binder(entry.axes[-1]) is not None:
                continue
            front = self.names.reference(replace(entry, axes=entry.axes[:-1]), context)
            if front is not None and not front.bare:
                return Row(entry.name, front.indices, size)
        return None


def _binders(expr: Expr) -> set[Binder]:
    return {each for each in walk(expr) if isinstance(each, Binder)}
