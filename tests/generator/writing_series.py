"""Chains, lets and recursions of a random program."""

from __future__ import annotations

from dataclasses import replace

from tests.generator.expressions import (
    Binary,
    Call,
    Expr,
    Num,
    Ref,
)
from tests.generator.scope import Context, Entry, begun_apart, greatest_shift, lags_of, number, plain_axes, without_time
from tests.generator.sets import Set
from tests.generator.steps import Draw, Let, Site
from tests.generator.writing_draws import (
    CHAINS,
)
from tests.generator.writing_latents import Latents


class Series(Latents):
    """What reads earlier elements, and what is computed."""

    def _ordered_axes(self, time: Set) -> tuple[Set, ...]:
        """Time with plates before or behind it."""
        if self.ending is not None:
            return self.ending.axes
        plates = [s for s in self._plates(1, time=False) if s != time] if self.chance(0.5) else []
        axes = [*plates, time]
        if plates and self.chance(0.3):
            self.rng.shuffle(axes)
        if plates:
            self.features.add("plate of chains")
        return tuple(axes)

    def _chain(self) -> None:
        time = self._time()
        if time is None:
            return
        rng = self.rng
        support = rng.choice(("real", "real", "real", "positive", "unit"))
        axes = self._ordered_axes(time)
        context = self._context(axes, False)
        binder = context.binder(time)
        name = self.names.fresh("h")
        kind = support
        lag = min(rng.choice((1, 1, 1, 2, 3)), time.size)
        own = Entry(name, axes, kind, latent=True)
        context = replace(context, time=binder, lag=lag, own=(own,))
        draw = self._tied(self._draw(rng.choice(CHAINS[support]), context, 1)[0], context)
        lag = max(greatest_shift(each, binder, self.names.begun) for each in draw.arguments) if binder else 0
        start = self._started(support, without_time(context), lag)
        words = self._noncentred(draw, chain=True) if all(each.row.noncentred for each in start) else ()
        site = Site("sample", name, context.binders, "indexed", draw, start, binder, lag, words=words)
        self.steps.append(site)
        self.features.add(f"chain-lag-{min(lag, 3)}")
        self._drawn(site, lambda: number(rng, support))

    def _started(self, support: str, context: Context, lag: int) -> tuple[Draw, ...]:
        count = lag if lag > 1 and self.chance(0.6) else 1
        return tuple(self._draw(self.rng.choice(CHAINS[support]), context, 1)[0] for _ in range(count))

    def _tied(self, draw: Draw, context: Context) -> Draw:
        """A draw that reads its own element at the greatest shift."""
        assert context.time is not None
        k = next(k for k, (_, kind) in enumerate(draw.row.parameters) if kind in ("real", "positive", "unit"))
        kind = draw.row.parameters[k][1]
        arguments = list(draw.arguments)
        arguments[k] = self._tying(arguments[k], kind, context, context.own[0])
        return replace(draw, arguments=tuple(arguments))

    def _tying(self, expr: Expr, kind: str, context: Context, entry: Entry) -> Expr:
        """An expression of a kind that reads an earlier element of a name of the step."""
        lags = next((s for s in self.names.sets if s.name == "Lag"), None)
        found: Expr = Binary("*", self.expressions.literal(0.1, 0.9), self.expressions.own(context, context.lag, entry))
        first = entry.axes[0] == context.time.over and not context.lengths if context.time else False
        if lags is not None and lags.size == context.lag and first and self.chance(0.6):
            found = self.expressions.lags(context, entry, lags)
        if kind == "real":
            return Binary("+", found, expr)
        if kind == "unit":
            return Call("sigmoid", (Binary("+", found, Call("logit", (expr,))),))
        if entry.kind == "real" or not isinstance(found, Binary):
            return Binary("*", Call("exp", (Binary("*", Num(0.3), Call("tanh", (found,))),)), expr)
        return Binary("+", found, expr)

    # ------------------------------------------------------------ lets

    def _let(self) -> None:
        axes = self._plates() if self.chance(0.8) else ()
        plain = self.chance(0.4)
        context = self._context(axes, plain)
        kind = self.rng.choice(("real", "real", "positive", "unit"))
        body = self.expressions.of(kind, context)
        name = self.names.fresh("u")
        binders, style = context.binders, "indexed"
        if context.plain:
            # as many axes as it has; without an ascription in the order of its parts
            found = plain_axes(body) or []
            style = self.rng.choice(("plain", "silent"))
            order = [b.over for b in binders if b.over in found] if style == "plain" else found
            axes = tuple(order)
            binders = tuple(b for axis in axes if (b := context.binder(axis)))
        self.steps.append(Let((name,), binders, style, (body,)))
        self.names.entries.append(Entry(name, axes, kind))
        self.features.add(f"let-{style}" if axes else "let-scalar")

    def _recursion(self) -> None:
        """`let v[t : Time] = … v[t - 1] … from …`, of one name or several."""
        time = self._time()
        if time is None:
            return
        rng = self.rng
        axes = self._ordered_axes(time)
        context = self._context(axes, False)
        binder = context.binder(time)
        assert binder is not None
        several = self.chance(0.35)
        kinds = [rng.choice(("real", "real", "positive")) for _ in range(2 if several else 1)]
        lags = [min(rng.choice((1, 1, 1, 2, 3)), time.size) for _ in kinds]
        own = tuple(Entry(self.names.fresh("r"), axes, kind) for kind in kinds)
        bodies: list[Expr] = []
        for k, entry in enumerate(own):
            here = replace(context, time=binder, lag=lags[k], own=own)
            body = self.expressions.of(entry.kind, here)
            if k and self.chance(0.5):
                now = Ref(own[0].name, context.binders)
                body = Binary("+", body, Call("exp", (Call("tanh", (now,)),)) if entry.kind == "positive" else now)
            bodies.append(self._tying(body, entry.kind, here, entry))
        lags = lags_of([entry.name for entry in own], bodies, binder, self.names.begun)
        first = without_time(replace(context, time=binder))
        start = tuple(self._first(entry.kind, first, lag) for entry, lag in zip(own, lags, strict=True))
        self.steps.append(
            Let(tuple(e.name for e in own), context.binders, "indexed", tuple(bodies), start, binder, lags)
        )
        if len(set(lags)) > 1:
            self.features.add("recursion-apart")
            self.names.begun.update(begun_apart([e.name for e in own], lags, axes.index(time)))
        self.names.entries += own
        self.features.add("recursion-several" if several else f"recursion-lag-{min(lags[0], 3)}")

    def _first(self, kind: str, context: Context, lag: int) -> tuple[Expr, ...]:
        count = lag if lag > 1 and self.chance(0.6) else 1
        return tuple(self.expressions.of(kind, context, 1) for _ in range(count))

    def _shifted(self) -> None:
        """A let that reads earlier elements of others."""
        time = self._time()
        if time is None:
            return
        axes = self._ordered_axes(time)
        context = self._context(axes, False)
        binder = context.binder(time)
        assert binder is not None
        body = self.expressions.of("real", replace(context, time=binder, lag=min(self.rng.randint(1, 2), time.size)))
        lag = greatest_shift(body, binder, self.names.begun)
        name = self.names.fresh("d")
        start = (self._first("real", without_time(replace(context, time=binder)), lag),) if lag else ()
        self.steps.append(Let((name,), context.binders, "indexed", (body,), start, binder if lag else None, (lag,)))
        self.names.entries.append(Entry(name, axes, "real"))
        self.features.add(f"shifted-{lag}")
