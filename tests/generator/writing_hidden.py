"""Hidden values of a random program: what `marginalize` sums out, and missing cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.generator.expressions import (
    Binary,
    Binder,
    Call,
    Expr,
    Num,
    Ref,
    Shift,
    walk,
)
from tests.generator.scope import Context, Entry, without_time
from tests.generator.sets import Set
from tests.generator.steps import Data, Draw, Marginalize, Site, Step
from tests.generator.vectors import Items, Softmax
from tests.generator.writing_draws import (
    FINITE,
    READING,
    SAMPLED,
)
from tests.generator.writing_observed import Observed


class Hidden(Observed):
    """What is summed out or filled in."""

    def _mixture(self) -> None:
        """`marginalize` of independent values: with indices, of the rows of a set, one for all."""
        rng = self.rng
        ending = () if self.ending is None else self.ending.axes
        sets = [s for s in self.names.sets if 1 < s.size <= 4 and s not in ending]
        if not sets:
            return
        how = "indexed" if ending else rng.choice(("indexed", "indexed", "one", "rows"))
        states = rng.choice(sets)
        if how == "one":
            return self._one_value(states)
        if how == "rows":
            return self._rows(states)
        plates = tuple(s for s in self._plates() if s != states)
        if not plates:
            return None
        context = self._context(plates, False)
        name = self.names.fresh("z")
        draw = self._draw(rng.choice(("Categorical", "Categorical/logits")), context, size=states.size, over=states)[0]
        self._block(name, context, states, draw, (), None, states.size)
        self.features.add("marginalize-indexed")
        return None

    def _rows(self, states: Set) -> None:
        """A hidden value for each element of a set, which no index writes."""
        rng = self.rng
        key = rng.choice(FINITE)
        member = key.startswith("Categorical")
        rows = [s for s in self.names.sets if s != states]
        if not rows:
            return
        axis = rng.choice(rows)
        context = self._context((axis,), True)
        draw = self._draw(key, context, 1, size=states.size, over=states)[0]
        count = states.size if member else int(self._states(draw))
        if axis.size == count:
            return
        name = self.names.fresh("z")
        block = self._observes(lambda inner: self._at_row(name, axis, inner), states if member else None, (axis,), ())
        if block:
            self.steps.append(Marginalize(name, context.binders, "plain", "", count, draw, (), None, (), block))
            self.features.add(f"marginalize-rows-{draw.row.name}")

    def _at_row(self, name: str, axis: Set, context: Context) -> Ref | None:
        binder = context.binder(axis)
        return Ref(name, (binder,)) if binder else None

    def _states(self, draw: Draw) -> int:
        if draw.row.support == "bool":
            return 2
        total = draw.arguments[1 if draw.row.name == "DiscreteUniform" else 0]
        assert isinstance(total, Num)
        return int(total.number) + 1

    def _one_value(self, states: Set) -> None:
        """One hidden value for all that the block observes."""
        name = self.names.fresh("z")
        draw = self._draw(
            self.rng.choice(("Categorical", "Categorical/logits")), Context(), size=states.size, over=states
        )[0]
        drawn = Ref(name, (), bare=True)
        block = self._observes(lambda context: drawn, states, None, ())
        if block:
            self.steps.append(Marginalize(name, (), "silent", states.name, states.size, draw, (), None, (), block))
            self.features.add("marginalize-one")

    def _block(
        self, name: str, context: Context, states: Set | None, draw: Draw, start: tuple[Draw, ...],
        time: Binder | None, count: int
    ) -> None:  # fmt: skip
        """A block under indexed hidden values, whose steps read them at their own place or where data say."""
        axes = tuple(b.over for b in context.binders)

        def place(inner: Context) -> Ref | None:
            indices = [inner.binder(axis) or self.names._looked_up(axis, inner) for axis in axes]
            if any(index is None for index in indices):
                return None
            return Ref(name, tuple(index for index in indices if index is not None))

        block = self._observes(place, states, axes, ())
        if not block:
            return
        shown = states.name if states else ""
        self.steps.append(Marginalize(name, context.binders, "indexed", shown, count, draw, start, time, (), block))

    def _observes(
        self, place: Callable[[Context], Ref | None], states: Set | None, axes: tuple[Set, ...] | None,
        options: tuple[str, ...],
    ) -> tuple[Step, ...]:  # fmt: skip
        """What a block observes; its data lines go above it."""
        rng = self.rng
        outside, self.steps = self.steps, []
        entries = list(self.names.entries)
        block: list[Step] = []
        for _ in range(rng.choice((1, 1, 2))):
            own = axes is not None and (self.ending is not None or self.chance(0.6))
            chosen = axes if own and axes is not None else self._plates()
            context = self._context(chosen, False)
            drawn = place(context)
            if drawn is None:
                continue
            context = replace(context, drawn=((drawn, states),))
            if not own:
                self.features.add("hidden-by-data")
            site = self._reading(context, drawn, states)
            block.append(site)
        columns = [s for s in self.steps if isinstance(s, Data)]
        self.steps = [*outside, *columns]
        self.names.entries = [e for e in self.names.entries if e in entries or e.name in {c.name for c in columns}]
        return tuple(block)

    def _reading(self, context: Context, drawn: Ref, states: Set | None) -> Site:
        """An observed step that reads a hidden value."""
        known = list(self.names.entries)
        site = self._site(context, "indexed", limits=False, keys=READING)
        self.names.entries = [e for e in self.names.entries if e in known or e.name != site.name]
        if not any(each == drawn for each in walk(site)):
            draw = site.draw
            at = [k for k, (_, kind) in enumerate(draw.row.parameters) if kind in ("real", "positive", "unit")]
            if at:
                arguments = list(draw.arguments)
                k = at[0]
                arguments[k] = self._with_hidden(arguments[k], draw.row.parameters[k][1], context, drawn, states)
                site = replace(site, draw=replace(draw, arguments=tuple(arguments)))
        if self.chance(0.25):
            site = self._marked(site, context)
            self.names.entries = [e for e in self.names.entries if e in known or e.name != site.name]
        return site

    def _marked(self, site: Site, context: Context) -> Site:
        """With a mask, a weight, missing cells or a limit, below a hidden value."""
        outer = replace(context, drawn=())
        value = self._support(site.draw.row, site.draw, site.low, site.high)
        found = self._optioned(site, outer, value)
        if "missing=drop" in found.words or self.pending:
            self._given(found, value)
        self.features.add("hidden-optioned")
        return found

    def _with_hidden(self, expr: Expr, kind: str, context: Context, drawn: Ref, states: Set | None) -> Expr:
        of: Expr = drawn
        if states is not None:
            entries = [
                e
                for e in self.names.entries
                if states in e.axes and e.kind in ("real", "positive", "unit") and not e.own
            ]
            self.rng.shuffle(entries)
            found = next((f for e in entries if (f := self.names.reference(e, context)) and drawn in walk(f)), None)
            of = found or Binary("*", self.expressions.literal(0.2, 0.9), drawn)
        if kind == "real":
            return Binary("+", of, expr)
        if kind == "unit":
            return Call("sigmoid", (Binary("+", of, Call("logit", (expr,))),))
        return Binary("*", Call("exp", (Binary("*", Num(0.5), Call("tanh", (of,))),)), expr)

    def _hidden_chain(self) -> None:
        """A hidden Markov chain."""
        time = self._time()
        ending = () if self.ending is None else self.ending.axes
        sets = [s for s in self.names.sets if 1 < s.size <= 3 and s.name != "Time" and s not in ending]
        if time is None or not sets or time.size > 5:
            return
        states = self.rng.choice(sets)
        plates = [s for s in self._plates(1, time=False) if s != states][:1] if self.chance(0.4) else []
        plates = plates if self.ending is None else list(ending[:-1])
        context = self._context((*plates, time), False)
        binder = context.binders[-1]
        name = self.names.fresh("z")
        # each chain reads its own past
        earlier = Ref(name, (*context.binders[:-1], Shift(binder, 1)))
        inside = replace(context, drawn=((earlier, states),))
        key = self.rng.choice(("Categorical", "Categorical/logits"))
        draw = self._draw(key, inside, size=states.size, over=states)[0]
        if earlier not in walk(draw):
            items = tuple(
                self._with_hidden(self.expressions.real(context, 0), "real", inside, earlier, states)
                if k else Num(0.0) for k in range(states.size)
            )  # fmt: skip
            draw = Draw(key, (Softmax(Items(items)) if key == "Categorical" else Items(items),))
        if any(isinstance(e, Ref) and e.name == name and e != earlier for e in walk(draw)):
            return
        start = self._draw(key, without_time(replace(context, time=binder)), size=states.size, over=states)[0]
        self._block(name, context, states, draw, (start,), binder, states.size)
        self.features.add("hidden-chain-plates" if plates else "hidden-chain")

    def _imputed(self) -> None:
        """An observed step whose missing cells are filled or summed out, and a step that reads it."""
        rng = self.rng
        axes = tuple(self._plates(1)) if self.ending is not None else tuple(self._plates(1))[:1]
        context = self._context(axes, False)
        discrete = self.chance(0.5)
        name = self.names.fresh("w")
        if not discrete:
            support = rng.choice(("real", "real", "positive", "unit"))
            draw, low, high = self._draw(rng.choice(SAMPLED[support]), context)
            site = Site("observe", name, context.binders, "indexed", draw, words=("missing=impute",))
            value = self._support(draw.row, draw, low, high)
            self.steps.append(site)
            self._given(site, value)
            self.names.entries.append(Entry(name, axes, self._kind(draw.row)))
            self.features.add("missing-impute")
            return
        over, size = self._categories()
        draw = self._draw(rng.choice(FINITE), context, size=size, over=over)[0]
        site = Site("observe", name, context.binders, "indexed", draw, words=("missing=impute",))
        self.steps.append(site)
        self._given(site, self._support(draw.row, draw, None, None))
        member = over if draw.row.support == "member" else None
        if draw.row.support == "member" and member is None:
            return
        alone = self.ending is not None or self.chance(0.6)
        outer = self._context(axes if alone else (*axes, *(s for s in self._plates(1) if s not in axes)), False)
        place = Ref(name, tuple(b for b in outer.binders if b.over in axes))
        reading = replace(outer, drawn=((place, member),))
        self.steps.append(self._reading(reading, place, member))
        self.names.entries = [e for e in self.names.entries if e.name != self.steps[-1].name]  # pyright: ignore
        self.features.add("missing-summed")
