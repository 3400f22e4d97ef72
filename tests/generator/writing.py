"""A random program: a function of its seed."""

from __future__ import annotations

from collections.abc import Callable

from tests.generator.expressions import Element, Shift, walk
from tests.generator.scope import number
from tests.generator.sets import Set
from tests.generator.steps import Case, Data, Marginalize, Site, Step
from tests.generator.writing_draws import (
    KINDS,
    ROWS,
)
from tests.generator.writing_templates import Templates


class Writer(Templates):
    """Writes one program."""

    def case(self) -> Case:
        """The program of this seed."""
        self._sets()
        self._columns()
        for kind in ("real", "positive"):
            self._latent(kind, ())
        ways: list[tuple[float, Callable[[], None]]] = [
            (2, lambda: self._latent(self.rng.choice(KINDS), ())),
            (4, lambda: self._latent(self.rng.choice(KINDS), self._plates())),
            (1.5, self._vector),
            (2.5, self._chain),
            (2, self._let),
            (2, self._recursion),
            (1, self._shifted),
            (4, self._observe),
            (1.5, self._series),
            (1, self._feedback),
            (1.5, self._mixture),
            (1.5, self._hidden_chain),
            (1, self._imputed),
            (0.7, self._score),
            (0.7, self._via),
            (1.2, self._ragged),
            (1, self._inlined),
        ]
        for _ in range(self.rng.randint(2, 6)):
            self.rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()
        self._observe()
        returned = next(e.name for e in self.names.entries if e.latent)
        rows = tuple({name: tables[row] for name, tables in self.names.latents.items()} for row in range(ROWS))
        observed = {s.name for step in self.steps for s in step.inside() if isinstance(s, Site)}
        steps = tuple(s for s in self.steps if not isinstance(s, Data) or s.name in observed or self._read(s.name))
        kept = {s.name for step in steps for s in step.inside() if isinstance(s, Data | Site)}
        data = {name: table for name, table in self.names.data.items() if name in kept}
        sets, defs, families = self.names.sets, self.expressions.defs, self.names.families.values()
        return Case(
            self.seed, tuple(sets), tuple(defs), steps, returned, data, rows, tuple(families), self._open(steps)
        )

    def _open(self, steps: tuple[Step, ...]) -> frozenset[str]:
        """Sets that data have as an axis, and whose elements no step calls by their numbers."""
        given = [
            s
            for step in steps
            for s in step.inside()
            if isinstance(s, Data) or (isinstance(s, Site) and s.kind == "observe")
        ]
        parts = [each for step in steps for each in walk(step)]
        called = {each.over for each in parts if isinstance(each, Element)}
        # how far a shift reaches must be known
        called |= {each.further.over for each in parts if isinstance(each, Shift) and each.further}
        # beside literal probabilities a set of unknown size is rows
        shown = {s.shown for step in steps for s in step.inside() if isinstance(s, Marginalize)}
        sets = {axis for each in given for axis in each.axes} - called
        found = frozenset(
            each.name
            for each in self.names.sets
            if each in sets and each.name not in shown and not each.labels and self.chance(0.12)
        )
        if found:
            self.features.add("open set")
        return found

    def _read(self, name: str) -> bool:
        """Whether some step reads a name."""
        steps = [each for each in self.steps if not isinstance(each, Data)]
        if any(getattr(each, "name", None) == name for step in steps for each in walk(step)):
            return True
        return any(f"via={name}" in each.words for each in steps if isinstance(each, Site))

    def _sets(self) -> None:
        rng, names = self.rng, self.names
        for stem in rng.sample(("Row", "Group", "Item"), rng.randint(1, 3)):
            size = rng.randint(1, 4)
            labels = tuple(f"{stem.lower()}_{k}" for k in range(size)) if self.chance(0.25) else ()
            names.sets.append(Set(stem, size, labels))
        if self.chance(0.8):
            names.sets.append(Set("Time", rng.randint(2, 6)))
        if self.chance(0.5):
            size = rng.randint(2, 3)
            labels = ("low", "mid", "high")[:size] if self.chance(0.4) else ()
            names.sets.append(Set("State", size, labels))
        if self.chance(0.3):
            names.sets.append(Set("Lag", rng.randint(1, 2)))
        if any(each.labels for each in names.sets):
            self.features.add("labels")

    def _columns(self) -> None:
        """Data of several kinds."""
        rng, sets = self.rng, self.names.sets
        for _ in range(rng.randint(1, 4)):
            kind = rng.choice(("real", "real", "member", "member", "bool", "count", "positive", "unit"))
            axes = tuple(rng.sample(sets, min(len(sets), rng.choice((1, 1, 1, 2)))))
            if kind == "member":
                member = rng.choice(sets)
                self._column("g", axes, kind, member.name, lambda m=member: rng.randrange(m.size), member)
            else:
                if kind in ("real", "positive") and self.chance(0.1):
                    axes = ()
                of = {"real": "", "positive": "Real 1 [low=0.0]", "unit": "Real 1 [low=0.0, high=1.0]",
                      "bool": "Bool", "count": "Nat"}[kind]  # fmt: skip
                self._column("x", axes, kind, of, lambda k=kind: number(rng, k))


def written(seed: int) -> tuple[Case, frozenset[str]]:
    """The case of a seed, and the features that it has."""
    writer = Writer(seed)
    case = writer.case()
    return case, frozenset(writer.features)
