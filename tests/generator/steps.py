"""The steps of a program as descriptions: what they print, and what they say to the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tests.generator.expressions import Binder, Def, Expr, Num, Ref
from tests.generator.families import FAMILIES, Family
from tests.generator.sets import Place, Set, Table


@dataclass(frozen=True)
class Draw:
    """`Family(arguments)`; with `keywords` by name."""

    family: str
    arguments: tuple[Expr, ...]
    keywords: bool = False
    called: str = ""
    """The family of the file that is drawn from: it has the density of `family`, and nothing else of it."""

    @property
    def row(self) -> Family:
        """Its densities."""
        row = FAMILIES[self.family]
        return replace(row, name=self.called, noncentred=False, lower=None, upper=None) if self.called else row

    def text(self, plain: bool) -> str:
        row = self.row
        written = [each.text(plain) for each in self.arguments]
        if self.keywords or not row.placed:
            written = [f"{key}={each}" for (key, _), each in zip(row.parameters, written, strict=False)]
        return f"{row.name}({', '.join(written)})"


@dataclass(frozen=True)
class Step:
    """One step; those of a block stand below it."""

    def lines(self) -> list[str]:
        """As written, without the indentation of the program."""
        raise NotImplementedError

    def inside(self) -> Iterator[Step]:
        """Itself and what stands in its block."""
        yield self


@dataclass(frozen=True)
class Data(Step):
    """`data x : Row -> Group`."""

    name: str
    axes: tuple[Set, ...]
    of: str = ""
    declared: bool = True

    def lines(self) -> list[str]:
        if not self.declared:
            return []
        axes = " * ".join(axis.name for axis in self.axes)
        if not axes:
            return [f"data {self.name} : {self.of or 'Real 1'}"]
        return [f"data {self.name} : {axes}" + (f" -> {self.of}" if self.of else "")]


def left_side(names: tuple[str, ...], binders: tuple[Binder, ...], style: str, shown: str = "") -> str:
    """`(a, b)[t : Time]`, or `a : Time` where the sets are an ascription."""
    name = names[0] if len(names) == 1 else f"({', '.join(names)})"
    if style == "indexed" and binders:
        name += f"[{', '.join(f'{b.name} : {b.over.name}' for b in binders)}]"
        return name + (f" : {shown}" if shown else "")
    if style == "plain" and binders:
        return f"{name} : {' * '.join(b.over.name for b in binders)}"
    return name + (f" : {shown}" if shown else "")


def started(entries: tuple[str, ...]) -> str:
    """`from a`, or `from (a, b)` for several."""
    if not entries:
        return ""
    return f" from {entries[0]}" if len(entries) == 1 else f" from ({', '.join(entries)})"


def _named(option: Ref | Num) -> str:
    """What an option says: a name, whose places are those of the step, or a number."""
    return option.name if isinstance(option, Ref) else option.text()


def _of_length(lengths: Ref | Num | None) -> list[str]:
    return [f"lengths={_named(lengths)}"] if lengths else []


@dataclass(frozen=True)
class Site(Step):
    """A `sample` or an `observe`.

    `binders` are its plates; `style` says whether they stand in brackets (`indexed`), behind a colon (`plain`) or
    nowhere (`silent`).  With `start` it is a chain along `time`, of the lag `lag`.  `event` is the size of a vector,
    which `shown` ascribes; options are pairs of a key and a name or number.
    """

    kind: str
    name: str
    binders: tuple[Binder, ...]
    style: str
    draw: Draw
    start: tuple[Draw, ...] = ()
    time: Binder | None = None
    lag: int = 0
    shown: str = ""
    event: int = 0
    options: tuple[tuple[str, Ref | Num], ...] = ()
    words: tuple[str, ...] = ()
    """Options that are no expressions: `noncentred`, `missing=drop`, `over=K`."""
    low: float | None = None
    high: float | None = None
    """Bounds of the value, where its arguments are literal bounds."""
    lengths: Ref | Num | None = None
    """How many elements along the last index exist."""

    def lines(self) -> list[str]:
        plain = self.style == "plain"
        text = f"{self.kind} {left_side((self.name,), self.binders, self.style, self.shown)} <- {self.draw.text(plain)}"
        text += started(tuple(each.text(plain) for each in self.start))
        options = [*self.words, *(f"{key}={_named(each)}" for key, each in self.options), *_of_length(self.lengths)]
        return [text + (f" [{', '.join(options)}]" if options else "")]

    @property
    def axes(self) -> tuple[Set, ...]:
        """Its plates."""
        return tuple(b.over for b in self.binders)

    def reaches(self, place: Place, data: Mapping[str, Table]) -> bool:
        """Whether an element exists."""
        match self.lengths:
            case Ref(name):
                return place[-1] < data[name].cells[place[:-1]]
            case Num(number):
                return place[-1] < number
            case None:
                return True


@dataclass(frozen=True)
class Let(Step):
    """A `let`: of several names, with binders, a recursion with `start`.

    Each entry of `start` is for one name a tuple of its first elements (one stands for all), `lags` how many there are.
    """

    names: tuple[str, ...]
    binders: tuple[Binder, ...]
    style: str
    bodies: tuple[Expr, ...]
    start: tuple[tuple[Expr, ...], ...] = ()
    time: Binder | None = None
    lags: tuple[int, ...] = ()

    def lines(self) -> list[str]:
        plain = self.style != "indexed"
        bodies = [each.text(plain) for each in self.bodies]
        right = bodies[0] if len(bodies) == 1 else f"({', '.join(bodies)})"
        starts = tuple(
            entry[0].text(plain) if len(entry) == 1 else f"({', '.join(each.text(plain) for each in entry)})"
            for entry in self.start
        )
        return [f"let {left_side(self.names, self.binders, self.style)} = {right}{started(starts)}"]


@dataclass(frozen=True)
class Score(Step):
    """`score s = e`; with axes the sum over them."""

    name: str
    value: Expr
    binders: tuple[Binder, ...] = ()

    def lines(self) -> list[str]:
        return [f"score {left_side((self.name,), self.binders, 'indexed')} = {self.value.text()}"]


@dataclass(frozen=True)
class Marginalize(Step):
    """`marginalize z[…] : State <- …` with its block.

    `shown` is what stands behind the colon; `states` how many values z has.
    """

    name: str
    binders: tuple[Binder, ...]
    style: str
    shown: str
    states: int
    draw: Draw
    start: tuple[Draw, ...]
    time: Binder | None
    words: tuple[str, ...]
    block: tuple[Step, ...]
    lengths: Ref | Num | None = None

    def lines(self) -> list[str]:
        plain = self.style == "plain"
        left = self.name
        if self.style == "indexed":
            left = left_side((self.name,), self.binders, "indexed")
        # plain, its rows stand behind the colon
        shown = self.binders[0].over.name if plain and self.binders else self.shown
        left += f" : {shown}" if shown else ""
        text = f"marginalize {left} <- {self.draw.text(plain)}" + started(
            tuple(each.text(plain) for each in self.start)
        )
        options = [*self.words, *_of_length(self.lengths)]
        text += f" [{', '.join(options)}]" if options else ""
        return [text, *(f"    {line}" for step in self.block for line in step.lines())]

    def inside(self) -> Iterator[Step]:
        yield self
        for step in self.block:
            yield from step.inside()


@dataclass(frozen=True)
class Declared:
    """A family of the file: a scalar family of the table under another name, its density written out."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Inlined(Step):
    """`sample u <- template(G, 1.3)`: a template whose steps are the program's, under names behind `u.`."""

    name: str
    template: str
    header: str
    """What the template declares, behind its name."""
    body: tuple[str, ...]
    given: tuple[Set | Num, ...]
    steps: tuple[Step, ...]

    def lines(self) -> list[str]:
        given = ", ".join(each.name if isinstance(each, Set) else each.text() for each in self.given)
        return [f"sample {self.name} <- {self.template}({given})"]

    def inside(self) -> Iterator[Step]:
        for step in self.steps:
            yield from step.inside()


@dataclass(frozen=True)
class Case:
    """A program with its data, and values for its latents (one table a row)."""

    seed: int
    sets: tuple[Set, ...]
    defs: tuple[Def, ...]
    steps: tuple[Step, ...]
    returned: str
    data: dict[str, Table]
    rows: tuple[dict[str, Table], ...]
    families: tuple[Declared, ...] = ()
    open: frozenset[str] = frozenset()
    """The sets whose sizes come with the data."""

    def all_steps(self) -> list[Step]:
        """Steps, blocks included, in order."""
        return [each for step in self.steps for each in step.inside()]

    @property
    def text(self) -> str:
        """The file."""
        lines = [each.line(each.name in self.open) for each in self.sets]
        for each in self.families:
            lines += each.lines
        for each in self.defs:
            lines += each.lines
        for each in {step.template: step for step in self.steps if isinstance(step, Inlined)}.values():
            lines += [f"program {each.template}{each.header}", *(f"    {line}" for line in each.body)]
        lines.append(f"program p : {self.sets[0].name} -> {self.sets[0].name}")
        lines += [f"    {line}" for step in self.steps for line in step.lines()]
        lines.append(f"    return {self.returned}")
        return "\n".join([*lines, "export p", ""])

    def changed(self, **changes: object) -> Case:
        """Another case."""
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]
