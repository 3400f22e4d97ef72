"""Small programs with any of a list of features, which meet in as few steps as there can be.

A panel `y` over groups and times is observed; a feature is an option of it, another latent that it reads, a hidden
value above it, or another way to its elements.  Programs are descriptions (`tests/generator/steps.py`), so that the
interpreter there scores them one element at a time.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from tests.generator.expressions import Binary, Binder, Call, Compare, Expr, Num, Reduce, Ref, Shift
from tests.generator.scope import number
from tests.generator.sets import Set, Table, places
from tests.generator.steps import Case, Data, Draw, Let, Marginalize, Score, Site, Step
from tests.generator.vectors import Row, Softmax

GROUP, TIME, STATE, ROW, SCHOOL, REGION = (
    Set("Group", 2), Set("Time", 4), Set("State", 2), Set("Row", 5), Set("School", 3), Set("Region", 2)
)  # fmt: skip
LATENT = {"noncentred", "chain", "weighted latent", "masked latent"}
"""What is said of a latent of the panel."""
SERIES = {"series", "started"}
"""An observed step that reads its own earlier elements, the first of which are given, or drawn."""
LIMITS = ("right_censored", "left_censored", "interval", "truncate_lower", "truncate_upper")
FEATURES = (
    "lengths", "noncentred", "chain", "weighted latent", "masked latent", "impute", "sum", "drop", "mask", "weight",
    *LIMITS, "marginalize", "hidden chain", "series", "started", "recursion", "nested", "crossed", "index", "via",
    "score", "padded",
)  # fmt: skip
UNWRITTEN = {
    "via": ("lengths", "chain", "hidden chain", "series", "started", "recursion", "crossed", "index", "sum", "padded")
}
"""What a step that looks up all its arguments by one column cannot say beside: it has no index."""
ROWS = 2


def written(features: Collection[str]) -> bool:
    """Whether a program can say all of these."""
    return not any(one in features and not set(others).isdisjoint(features) for one, others in UNWRITTEN.items())


def features_of(text: str) -> frozenset[str]:
    """`"lengths, impute"` as a set."""
    return frozenset(part.strip() for part in text.split(","))


class Panel:
    """Writes the program of some features."""

    def __init__(self, features: Collection[str]) -> None:
        self.features = frozenset(features)
        assert self.features <= set(FEATURES), self.features - set(FEATURES)
        self.seed = zlib.crc32(", ".join(sorted(self.features)).encode())
        self.rng = random.Random(self.seed)
        self.data: dict[str, Table] = {}
        self.latents: dict[str, tuple[Table, ...]] = {}
        self.steps: list[Step] = []
        self.group, self.time = Binder("g", GROUP), Binder("t", TIME)
        self.ends = Ref("n", (self.group,)) if "lengths" in self.features else None
        self.counts = {(0,): 4.0, (1,): 2.0}
        by_row = {"index", "via"} & self.features
        row = Binder("i", ROW)
        self.binders = (row,) if by_row else (self.group, self.time)
        self.at: dict[Set, Expr] = {GROUP: self.group, TIME: self.time}
        if by_row:
            self.at = {GROUP: Ref("group", (row,)), TIME: Ref("time", (row,))}
        self.hidden: list[tuple[str, tuple[Expr, ...]]] = []

    # ------------------------------------------------------------ parts

    def _column(self, name: str, axes: tuple[Set, ...], of: str, numbers: dict[tuple[int, ...], float]) -> None:
        self.steps.append(Data(name, axes, of))
        self.data[name] = Table(tuple(axis.size for axis in axes), numbers)

    def _numbers(self, axes: tuple[Set, ...], kind: str) -> dict[tuple[int, ...], float]:
        return {place: number(self.rng, kind) for place in places(axes)}

    def _sample(self, name: str, binders: tuple[Binder, ...], draw: Draw, **more: Any) -> Site:
        site = Site("sample", name, binders, "indexed" if binders else "silent", draw, **more)
        kind = draw.row.support
        shape = tuple(b.over.size for b in binders)
        self.latents[name] = tuple(Table.filled(shape, lambda: number(self.rng, kind)) for _ in range(ROWS))
        self.steps.append(site)
        return site

    def _ended(self, binders: tuple[Binder, ...]) -> Ref | None:
        """The lengths of a step over the panel's indices."""
        return self.ends if binders == (self.group, self.time) else None

    def _read(self, name: str, *sets: Set) -> Ref:
        return Ref(name, tuple(self.at[one] for one in sets))

    def _flags(self, name: str, binders: tuple[Binder, ...], kind: str) -> Ref:
        of = {"bool": "Bool", "positive": "Real 1 [low=0.0]"}[kind]
        axes = tuple(b.over for b in binders)
        numbers = self._numbers(axes, kind)
        if kind == "bool":
            numbers = {place: float(k % 2) for k, place in enumerate(numbers)}
        self._column(name, axes, of, numbers)
        return Ref(name, binders)

    # ------------------------------------------------------------ the program

    def case(self) -> Case:
        """The program, its data and values for its latents."""
        has = self.features
        if self.ends is not None:
            self._column("n", (GROUP,), "Nat", self.counts)
        if {"index", "via"} & has:
            self._look_ups()
        self._column("x", tuple(b.over for b in self.binders), "", self._numbers(self._axes, "real"))
        self._sample("s", (), Draw("HalfNormal", (Num(1.3),)))
        mean = self._effects()
        scale: Expr = Ref("s")
        if (has & LATENT and "via" not in has) or {"lengths", "index"} <= has:
            self._panel_latent()
            mean = Binary("+", mean, Binary("*", Num(0.7), self._read("h", GROUP, TIME)))
        if "recursion" in has:
            scale = Binary("+", scale, self._recursion())
        if "sum" in has:
            mean = Binary("+", mean, Binary("*", Num(0.9), self._summed_cells()))
        blocks = self._blocks()
        for name, at in self.hidden:
            mean = Binary("+", mean, Ref(f"b_{name}", (Ref(name, at, bare="via" in has),)))
        if has & SERIES:
            *front, last = self.binders
            mean = Binary("+", mean, Binary("*", Num(0.4), Ref("y", (*front, Shift(last, 1)))))
        if "padded" in has:
            self._column("d", self._axes, "", self._padded())
            mean = Binary("+", mean, Binary("/", Binary("*", Num(0.3), Ref("s")), Ref("d", self.binders)))
        inner: list[Step] = [self._observed(mean, scale)]
        if "score" in has:
            inner.append(self._score())
        for block in reversed(blocks):
            inner = [replace(block, block=tuple(inner))]
        self.steps += inner
        rows = tuple({name: tables[row] for name, tables in self.latents.items()} for row in range(ROWS))
        steps = tuple(self.steps)
        names = {axis for step in steps for axis in _sets(step)}
        sets = tuple(one for one in (ROW, GROUP, TIME, STATE, SCHOOL, REGION) if one in names)
        sets = (self.binders[0].over, *(one for one in sets if one != self.binders[0].over))
        return Case(self.seed, sets, (), steps, "s", self.data, rows)

    @property
    def _axes(self) -> tuple[Set, ...]:
        return tuple(b.over for b in self.binders)

    def _look_ups(self) -> None:
        there = [(g, t) for g in range(2) for t in range(4) if self.ends is None or t < self.counts[g,]]
        chosen = [self.rng.choice(there) for _ in range(ROW.size)]
        for at, (name, of) in enumerate((("group", GROUP), ("time", TIME))):
            if name == "time" and not self._needs_times:
                continue
            self._column(name, (ROW,), of.name, {(k,): float(place[at]) for k, place in enumerate(chosen)})

    @property
    def _needs_times(self) -> bool:
        return "via" not in self.features and bool(self.features & {*LATENT, "crossed", "hidden chain", "lengths"})

    def _effects(self) -> Expr:
        """Plates: of groups, nested in regions, crossed with times, of schools within groups."""
        has = self.features
        loc: Expr = Num(0.0)
        if "nested" in has:
            region = Binder("r", REGION)
            self._column("region", (GROUP,), "Region", {(0,): 1.0, (1,): 0.0})
            self._sample("m", (region,), Draw("Normal", (Num(0.0), Num(1.0))))
            loc = Ref("m", (Ref("region", (self.group,)),))
        draw, of_a = Draw("Normal", (loc, Num(1.0))), {} if "via" not in has else self._of_latent("a", (self.group,))
        self._sample("a", (self.group,), draw, **of_a)
        group = self.at[GROUP]
        found: Expr = Ref("a", (group,))
        if "via" in has:
            found = Ref("a", (Ref("group", self.binders),), bare=True)
        if "crossed" in has:
            self._sample("c", (self.time,), Draw("Normal", (Num(0.0), Num(1.0))))
            found = Binary("+", found, self._read("c", TIME))
        if "via" not in has:
            found = Binary("+", found, Binary("*", Num(0.5), Ref("x", self.binders)))
        return found

    def _panel_latent(self) -> None:
        """`h[g, t]`, with all that is said of a latent."""
        binders = (self.group, self.time)
        of_h = self._of_latent("h", binders)
        loc: Expr = Ref("a", (self.group,))
        start: tuple[Draw, ...] = ()
        if "chain" in self.features:
            loc = Binary("*", Num(0.6), Ref("h", (self.group, Shift(self.time, 1))))
            start = (Draw("Normal", (Ref("a", (self.group,)), Num(1.2))),)
        time = self.time if start else None
        self._sample("h", binders, Draw("Normal", (loc, Ref("s"))), start=start, time=time, lag=len(start),
                     lengths=self._ended(binders), **of_h)  # fmt: skip

    def _of_latent(self, name: str, binders: tuple[Binder, ...]) -> dict[str, Any]:
        """What is said of a latent."""
        has = self.features
        kinds = (("masked latent", "mask", "bool"), ("weighted latent", "weight", "positive"))
        options = [(key, self._flags(f"{key}_of_{name}", binders, kind)) for each, key, kind in kinds if each in has]
        return {"options": tuple(options), "words": ("noncentred",) if "noncentred" in has else ()}

    def _recursion(self) -> Expr:
        """`v`, which reads itself one element back, and the panel where it can."""
        *front, last = self.binders
        before = (*front, Shift(last, 1))
        body: Expr = Binary("+", Num(0.2), Binary("*", Num(0.5), Ref("v", before)))
        body = Binary("+", body, Binary("*", Num(0.1), Binary("^", Ref("x", self.binders), Num(2))))
        if not self.features & {"drop", "marginalize", "hidden chain", "index"}:
            body = Binary("+", body, Binary("*", Num(0.1), Binary("^", Ref("y", before), Num(2))))
        self.steps.append(Let(("v",), self.binders, "indexed", (body,), ((Ref("s"),),), last, (1,)))
        return Ref("v", self.binders)

    def _summed_cells(self) -> Expr:
        """`w`, of 0 and 1, whose missing cells are summed out."""
        chance = Call("sigmoid", (Ref("x", self.binders),))
        site = Site("observe", "w", self.binders, "indexed", Draw("Bernoulli", (chance,)), words=("missing=impute",),
                    lengths=self._ended(self.binders))  # fmt: skip
        self.steps.append(site)
        self.data["w"] = self._with_gaps(Table.filled(self._shape, lambda: number(self.rng, "bool")), 1)
        return Ref("w", self.binders)

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self._axes)

    def _with_gaps(self, table: Table, first: int) -> Table:
        """A table of which every third cell is missing."""
        cells = {at: math.nan if k % 3 == first else x for k, (at, x) in enumerate(table.cells.items())}
        return self._cut_off(Table(table.shape, cells))

    def _cut_off(self, table: Table) -> Table:
        """Without what stands beyond the ends."""
        if self._ended(self.binders) is None:
            return table
        cells = {at: math.nan if at[-1] >= self.counts[at[:-1]] else x for at, x in table.cells.items()}
        return Table(table.shape, cells)

    def _padded(self) -> dict[tuple[int, ...], float]:
        """Numbers of elements that count, and 0 of those that a mask, a gap or an end leaves out."""
        numbers = self._numbers(self._axes, "positive")
        for k, at in enumerate(numbers):
            masked = "mask" in self.features and k % 2 == 0
            gone = "drop" in self.features and k % 3 == 2
            ended = self._ended(self.binders) is not None and at[-1] >= self.counts[at[:-1]]
            numbers[at] = 0.0 if masked or gone or ended else numbers[at]
        return numbers

    def _blocks(self) -> list[Marginalize]:
        """`marginalize` blocks, the outer one first, with what reads their values."""
        found: list[Marginalize] = []
        for feature, name in (("marginalize", "z"), ("hidden chain", "k")):
            if feature not in self.features:
                continue
            state = Binder("q", STATE)
            self._sample(f"b_{name}", (state,), Draw("Normal", (Num(0.0), Num(1.0))))
            other = Binder("p", STATE)
            if feature == "marginalize":
                binders: tuple[Binder, ...] = (self.group,)
                self._sample("lp", (state,), Draw("Normal", (Num(0.0), Num(1.0))))
                draw = Draw("Categorical", (Softmax(Row("lp", (), 2)),))
                via = "via" in self.features
                style, words = ("silent", ("over=Group",)) if via else ("indexed", ())
                found.append(Marginalize(name, binders, style, "State", 2, draw, (), None, words, ()))
                self.hidden.append((name, (self.at[GROUP],)))
                continue
            binders = (self.group, self.time)
            self._sample("lq", (other, state), Draw("Normal", (Num(0.0), Num(1.0))))
            self._sample("l0", (state,), Draw("Normal", (Num(0.0), Num(1.0))))
            row = Row("lq", (Ref(name, (self.group, Shift(self.time, 1))),), 2)
            draw = Draw("Categorical/logits", (row,))
            start = (Draw("Categorical/logits", (Row("l0", (), 2),)),)
            found.append(Marginalize(name, binders, "indexed", "State", 2, draw, start, self.time, (), (),
                                     lengths=self._ended(binders)))  # fmt: skip
            self.hidden.append((name, (self.at[GROUP], self.at[TIME])))
        return found

    def _observed(self, mean: Expr, scale: Expr) -> Site:
        """`y`, with its options and data."""
        has = self.features
        words = tuple(f"missing={how}" for how in ("impute", "drop") if how in has)
        style = "indexed"
        if "via" in has:
            words, style = (*words, "via=group"), "plain"
        options: list[tuple[str, Ref | Num]] = []
        if "mask" in has:
            options.append(("mask", self._flags("mask_of_y", self.binders, "bool")))
        if "weight" in has:
            options.append(("weight", self._flags("weight_of_y", self.binders, "positive")))
        values = Table.filled(self._shape, lambda: number(self.rng, "real"))
        for k, key in enumerate(("right_censored", "left_censored")):
            if key in has:
                self._column(key, self._axes, "Bool", {
                    at: float(j % 3 == k) for j, at in enumerate(values.cells)
                })  # fmt: skip
                options.append((key, Ref(key, self.binders)))
        if "interval" in has:
            widths = (0.7, 0.0, 1.4, math.inf)
            ends = {at: x + widths[j % 4] for j, (at, x) in enumerate(values.cells.items())}
            self._column("upper", self._axes, "", ends)
            options.append(("interval", Ref("upper", self.binders)))
        options += [(key, Num(at)) for key, at in (("truncate_lower", -4.0), ("truncate_upper", 4.5)) if key in has]
        series = bool(has & SERIES)
        start = (Draw("Normal", (Num(0.3), Num(1.4))),) if "started" in has else ()
        self.data["y"] = self._with_gaps(values, 2) if words and "missing" in words[0] else self._cut_off(values)
        return Site("observe", "y", self.binders, style, Draw("Normal", (mean, scale)), start,
                    self.binders[-1] if series else None, int(series), options=tuple(options), words=words,
                    lengths=self._ended(self.binders))  # fmt: skip

    def _score(self) -> Score:
        """A penalty of what the panel reads, below a hidden value where there is one."""
        read: Expr = Ref("x", self.binders)
        if "h" in self.latents:
            read = Binary("+", read, self._read("h", GROUP, TIME))
        for name, at in () if "via" in self.features else self.hidden:
            read = Binary("+", read, Ref(f"b_{name}", (Ref(name, at),)))
        if "impute" in self.features:
            read = Binary("+", read, Ref("y", self.binders))
        ends = self._ended(self.binders)
        there = None if ends is None else Compare("<", self.time, ends)
        return Score("penalty", Reduce("sum", Call("tanh", (read,)), self.binders, there))


def _sets(step: Step) -> set[Set]:
    found: set[Set] = set()
    for each in step.inside():
        match each:
            case Data(axes=axes, of=of):
                found |= {*axes, *(one for one in (GROUP, TIME, REGION, SCHOOL) if one.name == of)}
            case Site(binders=binders) | Marginalize(binders=binders) | Let(binders=binders) | Score(binders=binders):
                found |= {b.over for b in binders}
            case _:
                pass
    return found
