"""Steps whose chains end: `h[g : Group, t : Time] [lengths=n]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.generator.expressions import Binary, Binder, Call, Compare, Expr, Num, Reduce, Ref, walk
from tests.generator.scope import Entry, number
from tests.generator.sets import Set
from tests.generator.steps import Draw, Let, Marginalize, Score, Site, Step
from tests.generator.writing_draws import KINDS, Ending
from tests.generator.writing_hidden import Hidden

ON_THE_LINE = ("Normal", "StudentT", "Laplace")


class Ragged(Hidden):
    """Chains of unequal length, and what reads them."""

    def _ragged(self) -> None:
        """Some steps that end together; then sums over what is there, and elements that data name."""
        rng = self.rng
        lasts = [s for s in self.names.sets if s.size > 1]
        if not lasts:
            return
        last = next((s for s in lasts if s.name == "Time"), None) if self.chance(0.7) else None
        last = last or rng.choice(lasts)
        plates = [s for s in self.names.sets if s != last]
        plates = rng.sample(plates, min(len(plates), rng.choice((0, 1, 1, 1, 2))))
        ending = Ending((*plates, last), self._ends(tuple(plates), last))
        begun = len(self.steps), len(self.names.entries)
        self.ending = ending
        ways: list[Callable[[], None]] = [
            lambda: self._latent(rng.choice(KINDS), ending.axes),
            self._chain, self._chain, self._let, self._shifted, self._recursion, self._feedback,
            self._observe, self._observe, self._series, self._mixture, self._hidden_chain, self._imputed,
        ]  # fmt: skip
        for _ in range(rng.randint(1, 4)):
            rng.choice(ways)()
            self._end(*begun)
        self.ending = None
        self.features.add(f"lengths-{len(plates)}")
        for _ in range(rng.randint(0, 2)):
            rng.choice((self._total, self._last, self._picked))(ending)

    def _ends(self, plates: tuple[Set, ...], last: Set) -> str:
        """What says where chains end."""
        rng = self.rng
        least = 0 if self.chance(0.3) else 1
        if not plates and self.chance(0.3):
            return str(rng.randint(least, last.size))
        return self._column("n", plates, "count", "Nat", lambda: float(rng.randint(least, last.size)))

    # ------------------------------------------------------------ steps that end

    def _end(self, steps: int, entries: int) -> None:
        """Steps over the sets end where they shall; so do lets that read them."""
        ended = {e.name for e in self.names.entries[entries:] if e.lengths}
        self.steps[steps:] = [self._ended(step, ended) for step in self.steps[steps:]]
        for step in self.steps[steps:] * 2:
            if isinstance(step, Let) and self._over(step.binders):
                read = {each.name for body in step.bodies for each in walk(body) if isinstance(each, Ref)}
                ended |= set(step.names) if read & ended else set()
        assert self.ending is not None
        known = self.names.entries
        known[entries:] = [replace(e, lengths=self.ending.name) if e.name in ended else e for e in known[entries:]]

    def _ended(self, step: Step, ended: set[str]) -> Step:
        if not isinstance(step, Site | Marginalize) or not self._over(step.binders):
            return step
        assert self.ending is not None
        ended.add(step.name)
        found = replace(step, lengths=self.ending.at(step.binders))
        if isinstance(found, Marginalize):
            found = replace(found, block=tuple(self._ended(each, ended) for each in found.block))
        return found

    def _over(self, binders: tuple[Binder, ...]) -> bool:
        return self.ending is not None and tuple(b.over for b in binders) == self.ending.axes

    # ------------------------------------------------------------ who reads them

    def _some(self, ending: Ending) -> Entry | None:
        entries = [e for e in self.names.entries if e.lengths == ending.name and e.axes == ending.axes]
        return self.rng.choice(entries) if entries else None

    def _total(self, ending: Ending) -> None:
        """A reduction of what is there, for each chain or of all."""
        entry = self._some(ending)
        if entry is None:
            return
        context = self._context(ending.axes, False)
        *front, last = context.binders
        there = Compare("<", last, ending.at(context.binders))
        read: Expr = Ref(entry.name, context.binders)
        body = Binary("+", Binary("*", self.expressions.literal(-0.8, 0.8), read), self.expressions.real(context, 1))
        kind = self.rng.choice(("sum", "sum", "mean", "max", "min", "logsumexp"))
        self.features.add(f"lengths-{kind}")
        if self.chance(0.3):
            total = Reduce("sum", body, context.binders, there)
            self.steps.append(Score(self.names.fresh("s"), Call("tanh", (total,))))
            return
        name = self.names.fresh("u")
        self.steps.append(Let((name,), tuple(front), "indexed", (Reduce(kind, body, (last,), there),)))
        self.names.entries.append(Entry(name, ending.axes[:-1], "real"))

    def _last(self, ending: Ending) -> None:
        """The last element of each chain."""
        entry, ends = self._some(ending), self.names.data.get(ending.name)
        if entry is None or ends is None or not all(ends.cells.values()):
            return
        binders = tuple(self.names.binder(axis) for axis in ending.axes[:-1])
        at = Binary("-", Ref(ending.name, binders), Num(1))
        name = self.names.fresh("u")
        self.steps.append(Let((name,), binders, "indexed", (Ref(entry.name, (*binders, at)),)))
        self.names.entries.append(Entry(name, ending.axes[:-1], entry.kind))
        self.features.add("lengths-last")

    def _picked(self, ending: Ending) -> None:
        """An observed step whose data say which elements it reads."""
        rng = self.rng
        entry, ends = self._some(ending), self.names.data.get(ending.name)
        if entry is None or ends is None:
            return
        there = [(*at, t) for at, count in ends.cells.items() for t in range(int(count))]
        rows = [s for s in self.names.sets if s not in ending.axes]
        if not there or not rows:
            return
        binder = self.names.binder(rng.choice(rows))
        chosen = [rng.choice(there) for _ in range(binder.over.size)]
        indices: list[Expr] = []
        for k, axis in enumerate(ending.axes):
            numbers = iter([float(place[k]) for place in chosen])
            column = self._column("g", (binder.over,), "member", axis.name, lambda n=numbers: next(n), axis)
            indices.append(Ref(column, (binder,)))
        context = replace(self._context((binder.over,), False), binders=(binder,))
        read = Ref(entry.name, tuple(indices))
        location = Binary(
            "+", Binary("*", self.expressions.literal(-0.8, 0.8), read), self.expressions.real(context, 1)
        )
        key = rng.choice(ON_THE_LINE)
        rest = self._draw(key, context, 1)[0].arguments
        at = 1 if key == "StudentT" else 0
        draw = Draw(key, (*rest[:at], location, *rest[at + 1 :]))
        site = Site("observe", self.names.fresh("y"), (binder,), "indexed", draw)
        self.steps.append(site)
        self._given(site, lambda: number(rng, "real"))
        self.features.add("lengths-picked")
