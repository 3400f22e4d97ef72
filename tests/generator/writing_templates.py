"""Templates of a random program: steps over sets and numbers that its calls give."""

from __future__ import annotations

from dataclasses import dataclass

from tests.generator.expressions import Binary, Binder, Expr, Num, Ref, Shift
from tests.generator.scope import Entry, number
from tests.generator.sets import Set, Table
from tests.generator.steps import Draw, Inlined, Let, Site, Step
from tests.generator.writing_draws import ROWS
from tests.generator.writing_ragged import Ragged


@dataclass(frozen=True)
class Template:
    """What its steps are: a scale, effects or a chain of them with it, and what is returned of these."""

    name: str
    scale: str
    effect: str
    moved: bool
    chain: bool
    computed: bool
    default: float

    def names(self, call: str) -> tuple[str, str, str]:
        """What its steps are called where `call` is drawn from it: that what it returns has the call's name."""
        return f"{call}.tau", call if not self.computed else f"{call}.a", call if self.computed else f"{call}.eta"

    def steps(self, names: tuple[str, str, str], over: Set, number: Expr) -> tuple[Step, ...]:
        """Its steps: as the template has them, or with names and arguments of a call."""
        scale, effect, computed = names
        place = Binder("i", over)
        here = Ref(effect, (place,))
        words = ("noncentred",) if self.moved else ()
        shape = (number, Num(1.1)) if self.scale == "Gamma" else (number,)
        first: tuple[Expr, ...] = (Num(4.0),) if self.effect == "StudentT" else ()
        mean: Expr = Binary("*", Num(0.6), Ref(effect, (Shift(place, 1),))) if self.chain else Num(0.2)
        start = (Draw("Normal", (number, Num(0.9))),) if self.chain else ()
        draw = Draw(self.effect, (*first, mean, Ref(scale)))
        drawn = Site("sample", effect, (place,), "indexed", draw, start, place if self.chain else None,
                     int(self.chain), words=words)  # fmt: skip
        let = Let((computed,), (place,), "indexed", (Binary("+", Binary("*", here, Ref(scale)), number),))
        return (Site("sample", scale, (), "silent", Draw(self.scale, shape)), drawn, let)

    @property
    def returned(self) -> str:
        """The name of what a call gives."""
        return "eta" if self.computed else "a"


class Templates(Ragged):
    """Draws from templates."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.templates: list[Template] = []

    def _inlined(self) -> None:
        """A template, new or known, and what it returns at a call."""
        rng = self.rng
        if not self.templates or self.chance(0.5):
            self.templates.append(self._template())
        template = rng.choice(self.templates)
        over = rng.choice([s for s in self.names.sets if not template.chain or s.size > 1] or [None])
        if over is None:
            return
        name = self.names.fresh("e")
        given = None if self.chance(0.3) else self.expressions.literal(0.3, 2.0)
        body = [
            line
            for each in template.steps(("tau", "a", "eta"), Set("G", over.size), Ref("sd"))
            for line in each.lines()
        ]
        scale, effect, computed = template.names(name)
        steps = template.steps((scale, effect, computed), over, given or Num(template.default))
        header = f"(G : Object, sd : Real = {template.default!r}) : G -> Real 1"
        self.steps.append(
            Inlined(
                name, template.name, header, (*body, f"return {template.returned}"),
                (over, given) if given else (over,), steps,
            )
        )  # fmt: skip
        latents = self.names.latents
        latents[scale] = tuple(Table.filled((), lambda: number(rng, "positive")) for _ in range(ROWS))
        latents[effect] = tuple(Table.filled((over.size,), lambda: number(rng, "real")) for _ in range(ROWS))
        self.names.entries.append(Entry(name, (over,), "real"))
        self.features.add("template-chain" if template.chain else "template")

    def _template(self) -> Template:
        rng = self.rng
        effect = rng.choice(("Normal", "Normal", "Laplace", "StudentT"))
        return Template(
            self.names.fresh("tpl"), rng.choice(("HalfNormal", "Exponential", "Gamma", "HalfCauchy")), effect,
            self.chance(0.4), self.chance(0.4), self.chance(0.5), round(rng.uniform(0.5, 2.0), 2),
        )  # fmt: skip
