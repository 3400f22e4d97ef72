"""Observed steps of a random program, with their options and data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.generator.expressions import (
    Binary,
    Binder,
    Call,
    Expr,
    Num,
    Reduce,
    Ref,
    Shift,
    walk,
)
from tests.generator.families import FAMILIES
from tests.generator.scope import Context, Entry, greatest_shift, number, without_time
from tests.generator.sets import Place, Table
from tests.generator.steps import Draw, Let, Score, Site
from tests.generator.writing_draws import (
    CHAINS,
    OBSERVED,
)
from tests.generator.writing_series import Series


class Observed(Series):
    """What is observed and scored."""

    def _observe(self) -> None:
        axes = self._plates() if self.chance(0.9) else ()
        plain = self.chance(0.4)
        context = self._context(axes, plain)
        self.steps.append(self._site(context, "plain" if context.plain else "indexed"))

    def _site(self, context: Context, style: str, limits: bool = True, keys: Sequence[str] = OBSERVED) -> Site:
        """An observed step at a place, its data made."""
        rng = self.rng
        key = rng.choice(keys)
        over, size = self._categories()
        draw, low, high = self._draw(key, context, size=size, over=over)
        name = self.names.fresh("y")
        site = Site("observe", name, context.binders, style, draw, low=low, high=high)
        value = self._support(draw.row, draw, low, high)
        if limits and not context.drawn and self.chance(0.5):
            site = self._optioned(site, context, value)
        self._given(site, value)
        self.features.add(f"observe-{style}-{len(site.axes)}")
        return site

    def _given(self, site: Site, value: Callable[[], float], event: int = 0) -> None:
        """The data of an observed step, with cells missing where it says what is done with them."""
        missing = any(word.startswith("missing") for word in site.words)
        table = self.pending or Table.filled(tuple(a.size for a in site.axes), value)
        self.pending = None
        if missing:
            there = [at for at in table.cells if self._reaches(site, at)]
            cells = {at: math.nan if self.chance(0.3) else x for at, x in table.cells.items()}
            if there and all(math.isnan(cells[at]) for at in there):
                cells[there[0]] = value()
            table = Table(table.shape, cells)
        if self.ending is not None and site.axes == self.ending.axes and self.chance(0.5):
            cells = {at: x if self._reaches(site, at) else math.nan for at, x in table.cells.items()}
            table = Table(table.shape, cells)
        self.names.data[site.name] = table
        if not missing and self.chance(0.4) and site.draw.row.support != "member":
            self.names.entries.append(Entry(site.name, site.axes, self._kind(site.draw.row)))

    def _reaches(self, site: Site, place: Place) -> bool:
        """Whether an element exists where the steps that are being written end."""
        if self.ending is None or site.axes != self.ending.axes:
            return True
        return replace(site, lengths=self.ending.at(site.binders)).reaches(place, self.names.data)

    def _optioned(self, site: Site, context: Context, value: Callable[[], float]) -> Site:
        """An observed step with options: limits, mask, weight, missing=drop."""
        rng = self.rng
        row = site.draw.row
        if not context.binders:
            return site
        how = rng.choice(("limits", "limits", "mask", "weight", "drop"))
        if how == "limits" and row.lower is not None and row.support != "interval":
            return self._limited(site, context, value)
        axes = context.binders
        if how == "drop":
            self.features.add("missing-drop")
            return replace(site, words=(*site.words, "missing=drop"))
        if how in ("mask", "weight"):
            kind = "bool" if how == "mask" else "positive"
            of = "Bool" if how == "mask" else "Real 1 [low=0.0]"
            name = self._column("m", site.axes, kind, of, lambda: number(rng, kind))
            self.features.add(how)
            return replace(site, options=(*site.options, (how, Ref(name, axes))))
        return site

    def _limited(self, site: Site, context: Context, value: Callable[[], float]) -> Site:
        """Censoring, truncation or both."""
        rng, row = self.rng, site.draw.row
        options: list[tuple[str, Ref | Num]] = []
        key = rng.choice(("right_censored", "left_censored", "interval", ""))
        axes = context.binders
        if key in ("right_censored", "left_censored"):
            name = self._column("c", site.axes, "bool", "Bool", lambda: number(rng, "bool"))
            options.append((key, Ref(name, axes)))
            self.features.add(key)
        if key == "interval":
            self.features.add(key)
            options.append((key, Ref(self._upper_ends(site, value), axes)))
        if not key or self.chance(0.3):
            positive = row.support in ("positive", "unit") or row.discrete
            low = 0.0 if positive else -30.0
            for side in rng.sample(("truncate_lower", "truncate_upper"), rng.randint(1, 2)):
                bound = (
                    low
                    if side == "truncate_lower"
                    else {"unit": 0.97, "positive": 40.0, "real": 30.0}.get(row.support, 9.0)
                )
                if side == "truncate_lower" and not row.discrete:
                    bound = {"unit": 0.03, "positive": 0.01}.get(row.support, -4.0)
                if side == "truncate_upper" and row.support == "real":
                    bound = 4.5
                if row.support == "whole" and side == "truncate_upper":
                    total = site.draw.arguments[0]
                    bound = float(total.number) if isinstance(total, Num) else 9.0
                options.append((side, Num(bound if not row.discrete else int(bound))))
                self.features.add(side)
        return replace(site, options=tuple(options))

    def _upper_ends(self, site: Site, value: Callable[[], float]) -> str:
        """The data of a site known in intervals, and of the ends."""
        rng = self.rng
        whole = site.draw.row.discrete
        own = Table.filled(tuple(a.size for a in site.axes), value)
        ends: dict[tuple[int, ...], float] = {}
        for at, x in own.cells.items():
            if self.chance(0.25):
                ends[at] = x
            elif self.chance(0.2):
                ends[at] = math.inf
            elif site.draw.row.support == "unit":
                ends[at] = min(x + rng.uniform(0.1, 0.5), 1.0)
            else:
                ends[at] = x + (rng.randint(1, 3) if whole else rng.uniform(0.2, 2.0))
        name = self._column("e", site.axes, "real", "", lambda: 0.0)
        self.names.data[name] = Table(own.shape, ends)
        # it says what is known of one step, and is no number to compute with
        self.names.entries = [e for e in self.names.entries if e.name != name]
        self.pending = own
        return name

    def _series(self) -> None:
        """An observed step that reads its own earlier values."""
        time = self._time()
        if time is None:
            return
        rng = self.rng
        axes = self._ordered_axes(time)
        context = self._context(axes, False)
        binder = context.binder(time)
        assert binder is not None
        support = rng.choice(("real", "real", "positive", "unit", "count", "bool"))
        keys = {"count": ("Poisson", "NegativeBinomial", "Poisson/log_rate", "Geometric"),
                "bool": ("Bernoulli", "Bernoulli/logits")}.get(support) or CHAINS[support]  # fmt: skip
        lag = min(rng.choice((1, 1, 2, 3)), time.size)
        own = Entry(self.names.fresh("y"), axes, support)
        context = replace(context, time=binder, lag=lag, own=(own,))
        draw = self._tied(self._draw(rng.choice(keys), context, 1)[0], context)
        lag = max(greatest_shift(each, binder, self.names.begun) for each in draw.arguments)
        # which elements it reads must be plain to see
        reads = [
            each for one in draw.arguments for each in walk(one) if isinstance(each, Ref) and each.name == own.name
        ]
        seen = all(isinstance(index, Binder | Shift) for each in reads for index in each.indices)
        drop = seen and self.chance(0.3)
        site = Site("observe", own.name, context.binders, "indexed", draw, (), binder, lag,
                    words=("missing=drop",) if drop else ())  # fmt: skip
        self.steps.append(site)
        self._given(site, self._support(draw.row, draw, None, None))
        self.features.add(f"series-lag-{min(lag, 3)}")
        if drop:
            self.features.add("series-drop")

    def _feedback(self) -> None:
        """A recursion that reads what is observed below it, earlier (GARCH)."""
        time = self._time()
        if time is None:
            return
        axes = self._ordered_axes(time)
        context = self._context(axes, False)
        binder = context.binder(time)
        assert binder is not None
        v = Entry(self.names.fresh("r"), axes, "positive")
        y = Entry(self.names.fresh("y"), axes, "real")
        here = replace(context, time=binder, lag=1, own=(v,))
        earlier = Ref(y.name, tuple(Shift(b, 1) if b == binder else b for b in context.binders))
        shocks = Binary("*", self.expressions.literal(0.1, 0.5), Binary("^", earlier, Num(2)))
        body = Binary(
            "+", self._tying(self.expressions.positive(replace(here, own=()), 1), "positive", here, v), shocks
        )
        if greatest_shift(body, binder, self.names.begun) != 1:
            return
        start = (self._first("positive", without_time(here), 1),)
        self.steps.append(Let((v.name,), context.binders, "indexed", (body,), start, binder, (1,)))
        scale = Call("sqrt", (Ref(v.name, context.binders),))
        draw = Draw("Normal", (self.expressions.of("real", context, 1), scale))
        site = Site("observe", y.name, context.binders, "indexed", draw)
        self.steps.append(site)
        self._given(site, lambda: self.rng.gauss(0.0, 1.0))
        # above, it would be read at places whose elements are drawn later
        self.names.entries.append(v)
        self.features.add("feedback")

    def _score(self) -> None:
        name = self.names.fresh("s")
        if self.chance(0.5):
            axes = self._plates(1)
            binder = self.names.binder(axes[0])
            value = self.expressions.of("real", Context((binder,)))
            self.steps.append(Score(name, Reduce("sum", value, (binder,))))
        else:
            self.steps.append(Score(name, self.expressions.of("real", Context())))
        self.features.add("score")

    def _via(self) -> None:
        """An observed step whose rows have groups."""
        columns = [e for e in self.names.entries if e.kind == "member" and len(e.axes) == 1 and e.member]
        columns = [e for e in columns if e.member != e.axes[0]]
        if not columns:
            return
        column = self.rng.choice(columns)
        context = self._context(column.axes, True)
        context = replace(context, via=Ref(column.name, context.binders))
        key = self.rng.choice(("Normal", "StudentT", "Poisson", "Gamma", "Laplace", "Exponential"))
        row = FAMILIES[key]
        arguments = [self._grouped(kind, context) for _, kind in row.parameters]
        site = Site("observe", self.names.fresh("y"), context.binders, "plain", Draw(key, tuple(arguments)),
                    words=(f"via={column.name}",))  # fmt: skip
        self.steps.append(site)
        self._given(site, self._support(row, site.draw, None, None))
        self.features.add("via")

    def _grouped(self, kind: str, context: Context) -> Expr:
        found = self.names.read((kind,) if kind != "real" else ("real", "positive", "unit"), context)
        return found or self.expressions.literal(0.3, 2.0)
