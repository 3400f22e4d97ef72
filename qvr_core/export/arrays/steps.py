"""The steps of a program in an array target: what is common to torch, NumPyro and PyMC."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from qvr_core.export.arrays.densities import Densities
from qvr_core.export.arrays.dialect import Dialect
from qvr_core.export.arrays.expressions import Expressions, is_constant
from qvr_core.export.arrays.marginalized import Block, block_of
from qvr_core.export.exported import Exported
from qvr_core.export.names import Names
from qvr_core.export.python_layout import header, laid_out
from qvr_core.export.reading import Reading, filled, fills, is_flat
from qvr_core.export.refusals import Refused
from qvr_core.lowered.axes import event_dims, plate_dims
from qvr_core.lowered.factors import Factor, drawn, existing, factors_of, resting
from qvr_core.lowered.left_out import presence
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.programs.families.narrowed import has_places
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Data, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import (
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    RunningIndex,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Constrained, Dim, Space
from qvr_core.semantics.types.walk import sites


class Steps(ABC):
    """Writes a program's steps as lines of Python.  A target says how it samples, observes, keeps a let and adds a
    density; `indent` is where its body stands."""

    dialect: Dialect
    indent = 4
    reserved: tuple[str, ...] = ()
    discrete = False
    """Whether whole numbers without a distribution of the target's can be latents."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        indices = [
            node.name
            for step in reading.program.steps
            for node in _indices(step)
            if node.name and node.name.isidentifier()
        ]
        self.names = Names([*reading.names, *dict.fromkeys(indices)], self.reserved)
        self.own = self.names.fresh(reading.program.name)
        self.expressions = Expressions(reading, self.names, self.dialect)
        self.densities = Densities(self.expressions)
        self.lines: list[str] = []

    # ------------------------------------------------------------ what a target says

    @abstractmethod
    def latent(self, site: Site, draw: FamilyDraw, shape: tuple[Dim, ...]) -> None:
        """A latent with the density of its family."""

    @abstractmethod
    def free(self, site: Site, name: str, shape: str) -> None:
        """A latent without a density: `name` of `shape`, on the support of the site."""

    @abstractmethod
    def observed(self, site: Site, draw: FamilyDraw, value: str) -> None:
        """Data with the density of their family."""

    @abstractmethod
    def add(self, name: str, density: str) -> None:
        """A log density of its own."""

    def keep(self, name: str, value: str, *, derived: bool) -> None:
        """A let."""
        self.write(f"{self.names[name]} = {value}")

    @abstractmethod
    def recursion(self, step: LetModel, indexed: IndexedValue, starts: Sequence[Sequence[Expr]]) -> None:
        """A let that reads its own past, over one index."""

    @abstractmethod
    def forward(self, block: Block, terms: str) -> str:
        """log p of what a chain explains: writes the forward algorithm, gives the name of its last state."""

    def predicted(self, site: Site, draw: FamilyDraw) -> None:
        """A draw made after the fit."""
        self.write(f"# predict {site.name}: drawn after the fit, no part of the density")

    @abstractmethod
    def completed(self, site: Site, name: str, there: str) -> None:
        """Data whose missing cells are a latent `name`; `there` says which elements something draws, '' of all."""

    # ------------------------------------------------------------ writing

    def write(self, line: str, deeper: int = 0) -> None:
        """A line of the body."""
        indent = self.indent + deeper
        if line.startswith("#"):
            self.lines.append(" " * indent + line)
        elif line.endswith(":"):
            self.lines += header(line, indent)
        else:
            self.lines += laid_out(line, indent)

    def comment(self, origin: Origin) -> str:
        """Writes the comments above a statement; those beside it are given."""
        above, beside = self.reading.about(origin)
        for line in above:
            self.write(f"# {line}")
        return beside

    def exported(self, lines: Sequence[str]) -> Exported:
        """The file of these lines."""
        names = {item.name: self.names[item.name] for item in self.reading.data}
        arrays = {item.name: item for item in self.reading.data}
        return Exported("\n".join(lines) + "\n", names, self.expressions.sizes, arrays, counts=self.reading.counts)

    def body(self) -> list[str]:
        """All steps."""
        steps = self.reading.program.steps
        observed = list(sites(steps, ObserveModel))
        present = {one.name for site in observed if (one := presence(site)) is not None}
        first = [step for step in steps if isinstance(step, LetModel) and present & {*step.names}]
        for step in first:
            self._let(step)
        for site in filled(self.reading.program):
            self._completed(site)
        for site in observed:
            self._filled(site)
        for step in steps:
            if not any(step is one for one in first):
                self.step(step)
        return self.lines

    def _completed(self, site: Site) -> None:
        """In front of all steps, since those above read the completed values, too."""
        name, there = self.names[site.name], drawn(site)
        self.write(f"# the missing cells of {name} are latents, in their order")
        missing = self.names.fresh(f"{name}_missing")
        self.completed(site, missing, "" if there is None else self.densities.truth(there))

    def _filled(self, site: Site) -> None:
        """Numbers in place of elements that do not exist or are missing, where data may have NaN, whose gradient is one
        whatever is left out later."""
        name = self.names[site.name]
        words = {"is missing in": presence(site), "is behind the end of a sequence of": existing(site)}
        for what, there in words.items():
            if there is None:
                continue
            text = self.densities.truth(there) + "[..., None]" * len(event_dims(site))
            self.write(f"# what {what} {name} counts nothing")
            number = "0" if facts_of_draw(_family(site)).discrete else "0.5"
            ends = [self.names[one.name] for key, one in site.limits if key == "interval" and isinstance(one, Data)]
            for each in (name, *ends):
                self.write(f"{each} = {self.expressions.template(self.dialect.where, text, each, number)}")

    def step(self, step: StepModel) -> None:
        """One step, with its comments."""
        origin = step.origin if isinstance(step, LetModel | ScoreModel | ParamModel) else step.site.origin
        beside = self.comment(origin)
        if beside:
            self.write(f"# {beside}")
        match step:
            case LetModel(names=names) if set(names) & self.reading.ahead:
                self.write(f"# {', '.join(names)}: made of what is predicted after the fit")
            case LetModel():
                self._let(step)
            case ScoreModel(name=name, value=value):
                self.add(name, self.densities.summed(self.expressions.text(value)))
            case SampleModel(site=site):
                self._sample(site)
            case ObserveModel(site=site):
                self._observe(site)
            case PredictModel(site=site):
                self.predicted(site, _family(site))
            case MarginalizeModel():
                self._marginalize(step)
            case ParamModel(names=names):
                raise Refused(origin, f"`{names[0]}` is a parameter of a guide, and guides are not exported")

    # ------------------------------------------------------------ the steps

    def _let(self, step: LetModel) -> None:
        indexed = step.indexed
        if indexed is None or not any(index.lag for index in indexed.indices):
            if len(step.names) != 1 and indexed is None:
                raise Refused(step.origin, "a `let` of several names is not exported", "write one `let` for each")
            for name, value in zip(step.names, (step.value,) if indexed is None else indexed.values, strict=True):
                text = self.expressions.number(value, self.expressions.text(value))
                self.keep(name, text, derived=name in self.reading.derived)
            return
        if len(indexed.indices) != 1:
            raise Refused(step.origin, f"`{step.names[0]}`: a recursion over several indices is not exported")
        self.recursion(step, indexed, indexed.starts)

    def starts(self, indexed: IndexedValue, at: int) -> list[str]:
        """The first elements of a name of a recursion, in the order in which they are read: those from which on the
        recursion runs also stand before the others."""
        texts = [
            self.dialect.number.format(self.expressions.text(start))
            if is_constant(start)
            else self.expressions.text(start)
            for start in indexed.starts[at]
        ]
        lag, begun = indexed.lag(at), indexed.indices[0].lag
        texts = texts if len(texts) > 1 else texts * lag
        return [*texts[begun:], *texts[:begun]] if lag > begun else texts

    def later(self, indexed: IndexedValue, at: int, before: str) -> str:
        """An element of a name where the index of its recursion is; `before` holds the elements before it."""
        text, lag = self.expressions.text(indexed.values[at]), indexed.lag(at)
        index = indexed.indices[0]
        if lag == index.lag:
            return text
        begins = self.expressions.compared("lt", self.names[index.name], str(lag))
        return self.expressions.template(self.dialect.where, begins, f"{before}[0]", text)

    def _sample(self, site: Site) -> None:
        draw, name = _family(site), self.names[site.name]
        factors = (*factors_of(site), *resting(site))
        shape = self.expressions.shape((*plate_dims(site), *event_dims(site)))
        if site.chain is not None or any(factor.partial for factor in factors):
            if facts_of_draw(draw).discrete and not self.discrete:
                raise Refused(
                    site.origin, f"`{site.name}`: a discrete latent with a density of its own is not exported"
                )
            self.free(site, name, shape)
            self.add(f"{name}_density", self._density(factors))
            return
        space = site.bound[0][1].space
        flat = is_flat(draw)
        if isinstance(space, Constrained) and space.kind == "Ordered" and not flat:
            self.ordered(site, draw)
        elif flat or self.densities.distribution(draw, site) is None or draw.family == "ICAR":
            self.free(site, name, shape)
            if not flat:
                self.add(f"{name}_density", self.densities.total(draw, site, name))
        else:
            self.latent(site, draw, plate_dims(site))

    def ordered(self, site: Site, draw: FamilyDraw) -> None:
        """An ascending vector: k! times the product of the densities."""
        name = self.names[site.name]
        dims = (*plate_dims(site), *event_dims(site))
        if len(dims) != 1 or not isinstance(dims[0], int):
            raise Refused(site.origin, f"`{site.name}`: ordered vectors over a plate are not exported")
        self.free(site, name, self.expressions.shape(dims))
        self.add(f"{name}_density", f"{self.densities.total(draw, site, name)}{more_of(site)}")

    def _density(self, factors: Sequence[Factor]) -> str:
        """The log density of a site's elements, each as far as it counts."""
        return " + ".join(map(self._scored, factors))

    def _scored(self, factor: Factor) -> str:
        if not factor.partial:
            return self.densities.total(factor.draw, factor.site, self.expressions.text(factor.value))
        return self.densities.summed(self.densities.of(factor))

    def _observe(self, site: Site) -> None:
        draw, name = _family(site), self.names[site.name]
        factors = factors_of(site)
        *begun, last = factors
        if begun or last.partial or fills(site):
            self.add(f"{name}_density", self._density(factors))
        else:
            self.observed(site, draw, self.expressions.text(last.value))

    def _marginalize(self, step: MarginalizeModel) -> None:
        block = block_of(step, self.expressions, self.densities)
        for let in block.lets:
            self._let(let)
        for term in block.terms:
            self.write(f"{term.name} = {term.text}")
        terms = " + ".join(term.name for term in block.terms)
        if block.later is None:
            joint = f"({block.first} + {terms})" if terms else block.first
            self.write(f"# {block.name} is summed out")
            last = joint
        else:
            self.write(f"# {block.name} is summed out by the forward algorithm")
            last = self.forward(block, terms)
        summed = self.expressions.template(self.dialect.logsumexp, last, "-1")
        self.add(f"{self.names[block.name]}_density", self.densities.summed(summed))


def more_of(site: Site) -> str:
    """log k!, what an ordered vector's density has more than the product; nothing by place, which is not normalised."""
    space = site.bound[0][1].space
    return "" if has_places(_family(site), space) else f" + {orders(_width(space))}"


def orders(size: int) -> str:
    """log k!."""
    return f"{math.lgamma(size + 1):.16g}"


def _width(space: Space | None) -> int:
    assert isinstance(space, Constrained) and isinstance(space.size, int)
    return space.size


def _family(site: Site) -> FamilyDraw:
    assert isinstance(site.draw, FamilyDraw)
    return site.draw


def _indices(step: StepModel) -> Iterator[RunningIndex]:
    if isinstance(step, LetModel) and step.indexed is not None:
        yield from step.indexed.indices
