"""Latents of a random program: numbers, plates, vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tests.generator.expressions import (
    Expr,
)
from tests.generator.scope import Context, Entry
from tests.generator.sets import Set, Table
from tests.generator.steps import Draw, Site
from tests.generator.vectors import Items, Repeated
from tests.generator.writing_draws import (
    ROWS,
    SAMPLED,
    Draws,
)


class Latents(Draws):
    """Latents, with their values."""

    def _latent(self, support: str, axes: tuple[Set, ...]) -> None:
        plain = self.chance(0.4)
        context = self._context(axes, plain)
        key = self.rng.choice(SAMPLED[support])
        draw, low, high = self._draw(key, context, 1 if axes else 0)
        name = self.names.fresh("a")
        words = self._noncentred(draw)
        style = "plain" if context.plain else "indexed"
        site = Site("sample", name, context.binders, style, draw, words=words, low=low, high=high)
        self.steps.append(site)
        self.features.add(f"plate-{len(axes)}-{style}" if axes else "scalar")
        self._drawn(site, self._support(draw.row, draw, low, high))

    def _noncentred(self, draw: Draw, chain: bool = False) -> tuple[str, ...]:
        if draw.row.noncentred and self.chance(0.35):
            self.features.add("noncentred-chain" if chain else "noncentred")
            return ("noncentred",)
        return ()

    def _drawn(self, site: Site, value: Callable[[], float], event: Set | None = None, space: str = "") -> None:
        """A latent: its values, and its place in the scope."""
        axes = site.axes
        shape = tuple(a.size for a in axes)
        names = self.names
        if site.event:
            event = event or Set("", site.event)
            names.latents[site.name] = tuple(self._vectors(shape, site.event, space, value) for _ in range(ROWS))
            kind = {"simplex": "unit"}.get(space, "real")
            names.entries.append(Entry(site.name, (*axes, event), kind, None, site.event, space, latent=True))
            return
        names.latents[site.name] = tuple(Table.filled(shape, value) for _ in range(ROWS))
        names.entries.append(Entry(site.name, axes, self._kind(site.draw.row), latent=True))

    def _vectors(self, shape: tuple[int, ...], size: int, space: str, value: Callable[[], float]) -> Table:
        whole = Table.filled((*shape, size), value)
        if space not in ("simplex", "ordered"):
            return whole
        cells = dict(whole.cells)
        for place in Table.filled(shape, lambda: 0.0).cells:
            each = [cells[*place, k] for k in range(size)]
            if space == "ordered":
                each = sorted(each)
            else:
                weights = [math.exp(x) for x in each]
                each = [x / math.fsum(weights) for x in weights]
            for k, x in enumerate(each):
                cells[*place, k] = x
        return Table(whole.shape, cells)

    def _vector(self) -> None:
        """A latent vector: a simplex, correlated Normals, ordered numbers, a random walk."""
        rng = self.rng
        axes = self._plates(1) if self.chance(0.4) else ()
        context = self._context(axes, False)
        name = self.names.fresh("v")
        over = rng.choice([s for s in self.names.sets if s.size > 1] or [None])
        kind = rng.choice(("dirichlet", "dirichlet", "normal", "ordered", "real", "walk"))
        self.features.add(f"vector-{kind}")
        sampled: Callable[[], float] = lambda: rng.gauss(0.0, 1.0)  # noqa: E731
        if kind == "dirichlet":
            if over is not None and over not in axes and self.chance(0.5):
                of: Expr = Repeated(self.expressions.positive(context, 0), over.size)
                site = Site("sample", name, context.binders, "indexed", Draw("Dirichlet", (of,)), event=over.size,
                            words=(f"over={over.name}",))  # fmt: skip
                return self._appended(site, sampled, over, "simplex")
            size = rng.randint(2, 3)
            draw = self._draw("Dirichlet", context, size=size)[0]
            site = Site("sample", name, context.binders, "indexed", draw, event=size)
            return self._appended(site, sampled, None, "simplex")
        if kind == "normal":
            size = rng.randint(2, 3)
            draw = self._draw("MultivariateNormal", context, size=size)[0]
            if not isinstance(draw.arguments[0], Items):
                # a row of a named value would give its set to the vector
                loc = Items(tuple(self.expressions.real(context, 1) for _ in range(size)))
                draw = replace(draw, arguments=(loc, *draw.arguments[1:]))
            site = Site("sample", name, context.binders, "indexed", draw, event=size, words=self._noncentred(draw))
            return self._appended(site, sampled, None, "vector")
        if kind == "ordered":
            size = rng.randint(2, 3)
            draw = self._draw(rng.choice(("Normal", "StudentT")), replace(context, binders=()))[0]
            words = (f"iid_over={axes[0].name}",) if axes else ()
            site = Site(
                "sample", name, context.binders, "silent", draw, shown=f"Ordered {size}", event=size, words=words
            )
            return self._appended(site, sampled, None, "ordered")
        if kind == "real":
            draw = self._draw("Normal", context)[0]
            site = Site("sample", name, context.binders, "indexed", draw, shown="Real 2", event=2)
            return self._appended(site, sampled, None, "vector")
        if over is None:
            return None
        draw = self._draw("GaussianRandomWalk", Context())[0]
        site = Site("sample", name, (), "silent", draw, shown=over.name, event=over.size, words=self._noncentred(draw))
        return self._appended(site, sampled, over, "vector")

    def _appended(self, site: Site, value: Callable[[], float], event: Set | None, space: str) -> None:
        self.steps.append(site)
        self._drawn(site, value, event, space)
