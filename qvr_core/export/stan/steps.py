"""The steps of a program in Stan, each in the block where it belongs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from qvr_core.export.reading import Reading, filled, is_flat
from qvr_core.export.refusals import Refused
from qvr_core.export.stan.declarations import bounds, declared, parameter
from qvr_core.export.stan.densities import Densities
from qvr_core.export.stan.elements import Elements, Places
from qvr_core.export.stan.equations import Equations, equation_of
from qvr_core.export.stan.marginalized import Hidden, looped, over_axes
from qvr_core.export.stan.places import AND
from qvr_core.export.stan.stan_names import StanNames
from qvr_core.export.stan.tables import RANDOM, reserved
from qvr_core.lowered.axes import event_dims, plate_dims
from qvr_core.lowered.factors import Factor, drawn, factors_of, resting
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.sum_to_zero import SUM_TO_ZERO
from qvr_core.semantics.programs.families.narrowed import has_places
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import (
    IndexedValue,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    Site,
)
from qvr_core.semantics.types.spaces import Constrained
from qvr_core.semantics.types.walk import all_steps, until_arrows, values, walk


class Steps:
    """Writes a program's steps as lines of Stan's blocks: `known` is transformed data, `made` transformed parameters,
    `drawn` generated quantities."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.names = StanNames(reading.names, reserved(_functions(reading)))
        self.elements = Elements(reading, self.names)
        self.shapes = self.elements.shapes
        self.densities = Densities(self.elements)
        self.equations = Equations(self.elements)
        self.data = frozenset(item.name for item in reading.data)
        self.known: list[str] = []
        self.parameters: list[str] = []
        self.made: list[str] = []
        self.model: list[str] = []
        self.drawn: list[str] = []

    def run(self) -> None:
        """All steps."""
        for site in filled(self.reading.program):
            self._completed(site)
        for step in self.reading.program.steps:
            match step:
                case LetModel():
                    self._let(step)
                case ScoreModel():
                    self._score(step)
                case SampleModel(site=site):
                    self._sample(site)
                case ObserveModel(site=site):
                    self._observe(site)
                case PredictModel(site=site):
                    self._predict(site)
                case MarginalizeModel(site=site):
                    self.model += self._comments(site.origin)
                    self.model.append(f"// {self.names[site.name]} is summed out")
                    self.model += Hidden(step, self.elements, self.densities).lines()
                case ParamModel(names=names, origin=origin):
                    raise Refused(origin, f"`{names[0]}` is a parameter of a guide, and guides are not exported")
            self.elements.statement_over()

    def _comments(self, origin: Origin) -> list[str]:
        above, beside = self.reading.about(origin)
        return [f"// {line}" for line in (*above, beside) if line]

    # ------------------------------------------------------------ lets

    def _let(self, step: LetModel) -> None:
        derived = any(name in self.reading.derived for name in step.names)
        lines = self.made if derived else self.known
        if set(step.names) & self.reading.ahead:
            lines = self.drawn
        lines += self._comments(step.origin)
        indexed = step.indexed
        if indexed is not None and any(index.lag for index in indexed.indices):
            lines += self._recursion(step, indexed)
            return
        if len(step.names) != 1 and indexed is None:
            raise Refused(step.origin, "a `let` of several names is not exported", "write one `let` for each")
        for own, value in zip(step.names, (step.value,) if indexed is None else indexed.values, strict=True):
            self._value(own, value, indexed, lines, derived=derived)

    def _value(self, own: str, value: Expr, indexed: IndexedValue | None, lines: list[str], *, derived: bool) -> None:
        """One name of a let."""
        solved = equation_of(value)
        if solved is not None and indexed is not None:
            lines += self.equations.solution(own, *solved, [index.name for index in indexed.indices])
            return
        name, sizes = self.names[own], self.shapes.of(value)
        if indexed is not None:
            of_index = self.shapes.texts([getattr(index.space, "size", 1) for index in indexed.indices])
            sizes = (*of_index, *sizes[len(of_index) :])
        if isinstance(value, Builtin) and canonical(value.function) in ("cholesky", "inverse"):
            lines += self._matrix(own, value)
            return
        whole = not derived and self.shapes.is_whole(value)
        code = whole and self.shapes.is_code(value)
        wanted = [index.name for index in indexed.indices] if indexed is not None else []

        def inner(at: Places) -> list[str]:
            with self.elements.apart() as before:
                text = str(self.elements.code(value, at)) if code else self.elements.text(value, at)
            place = f"[{', '.join(map(str, at))}]" if sizes else ""
            return [*before, f"{name}{place} = {text};"]

        made = looped(self.elements, sizes, wanted, inner)
        opening = declared(name, sizes, whole=whole)
        if not sizes and len(made) == 1:
            lines.append(f"{opening} = {made[0].removeprefix(f'{name} = ')}")
        elif not sizes:
            lines += [f"{opening};", "{", *(f"  {line}" for line in made), "}"]
        else:
            lines += [f"{opening};", *made]
        self.shapes.known[own] = sizes
        if whole:
            self.shapes.whole.add(own)
        if code:
            self.shapes.codes.add(own)

    def _matrix(self, own: str, value: Builtin) -> list[str]:
        """A function of a whole matrix."""
        (arg,) = value.args
        sizes = self.shapes.of(arg)
        if not isinstance(arg, Bound) or len(sizes) != 2:
            raise Refused(arg.origin, "a matrix without a name cannot be said in Stan", "give it one: `let C = …`")
        self.shapes.known[own] = sizes
        function = {"cholesky": "cholesky_decompose", "inverse": "inverse"}[canonical(value.function)]
        return [f"{declared(self.names[own], sizes)} = {function}({self.names[arg.name]});"]

    def _recursion(self, step: LetModel, indexed: IndexedValue) -> list[str]:
        """A let that reads its own past."""
        if len(indexed.indices) != 1:
            raise Refused(step.origin, f"`{step.names[0]}`: a recursion over several indices is not exported")
        (index,) = indexed.indices
        size = self.shapes.size(getattr(index.space, "size", 0))
        lines: list[str] = []
        for own in step.names:
            self.shapes.known[own] = (size,)
            lines.append(f"{declared(self.names[own], (size,))};")
        for name_at, (own, starts) in enumerate(zip(step.names, indexed.starts, strict=True)):
            for at in range(indexed.lag(name_at)):
                value = starts[at if len(starts) > 1 else 0]
                if self.shapes.of(value):
                    raise Refused(step.origin, f"`{own}`: a recursion over vectors is not exported in Stan")
                with self.elements.apart() as before:
                    text = self.elements.text(value)
                lines += [*before, f"{self.names[own]}[{at + 1}] = {text};"]

        def inner(at: Places) -> list[str]:
            found: list[str] = []
            for place, (own, value) in enumerate(zip(step.names, indexed.values, strict=True)):
                lag = indexed.lag(place)
                if len(self.shapes.of(value)) > 1:
                    raise Refused(step.origin, f"`{own}`: a recursion over vectors is not exported in Stan")
                with self.elements.apart() as before:
                    text = self.elements.text(value, (at[0].moved(-lag),))
                made = [*before, f"{self.names[own]}[{at[0]}] = {text};"]
                found += made if lag == index.lag else [f"if ({at[0]} > {lag}) {{", *(f"  {x}" for x in made), "}"]
            return found

        return [*lines, *looped(self.elements, (size,), [index.name], inner, [index.lag])]

    def _score(self, step: ScoreModel) -> None:
        def inner(at: Places) -> list[str]:
            with self.elements.apart() as before:
                text = self.elements.text(step.value, at)
            return [*before, f"target += {text};"]

        wanted = [index.name for index in step.indices]
        self.model += self._comments(step.origin)
        self.model += self._braced(looped(self.elements, self.shapes.of(step.value), wanted, inner))

    # ------------------------------------------------------------ draws

    def _sample(self, site: Site) -> None:
        draw, own = _family(site), site.name
        name = self.names[own]
        if facts_of_draw(draw).discrete:
            raise Refused(
                site.origin, f"`{own}`: Stan has no discrete parameters", f"sum it out: `marginalize {own} <- …`"
            )
        plates, event = self.shapes.texts(plate_dims(site)), self.shapes.texts(event_dims(site))
        self.shapes.known[own] = (*plates, *event)
        comments = self._comments(site.origin)
        self.parameters += comments
        space = site.bound[0][1].space
        if draw.family == "ICAR":
            if plates:
                raise Refused(site.origin, f"`{own}`: ICAR over a plate is not exported")
            free = self.names.fresh(f"{name}_free")
            self.parameters.append(f"vector[{event[0]} - 1] {free};  // all of {name} but the last")
            self.made.append(f"vector[{event[0]}] {name} = append_row({free}, -sum({free}));  // adds up to 0")
        elif draw.family == SUM_TO_ZERO:
            self._contrasts(name, plates, event[0])
        else:
            self.parameters.append(f"{parameter(site, name, plates, event)};")
        if isinstance(space, Constrained) and space.vector and plates:
            self.elements.columns.add(own)
        if is_flat(draw):
            return
        more = ""
        if isinstance(space, Constrained) and space.kind == "Ordered":
            if plates or not event[0].isdigit():
                raise Refused(site.origin, f"`{own}`: ordered vectors over a plate are not exported")
            more = "" if has_places(draw, space) else f" + lgamma({int(event[0]) + 1})"
        self.model += self._density(site, name, more)

    def _contrasts(self, name: str, plates: Sequence[str], size: str) -> None:
        """Vectors that add up to 0, by their coordinates in an orthonormal basis: the Jacobian is 1."""
        free = self.names.fresh(f"{name}_contrasts")
        self.elements.used.add("zero_sum")
        self.parameters.append(f"{declared(free, (*plates, f'{size} - 1'))};")
        opening = declared(name, (*plates, size))
        if not plates:
            self.made.append(f"{opening} = zero_sum({free});")
            return

        def inner(at: Places) -> list[str]:
            place = f"[{', '.join(map(str, at))}]"
            return [f"{name}{place} = zero_sum({free}{place}')';"]

        self.made += [f"{opening};", *looped(self.elements, plates, [], inner)]

    def _density(self, site: Site, name: str, more: str = "") -> list[str]:
        """The density of all elements."""
        factors = (*factors_of(site), *(resting(site) if site.name not in self.data else ()))
        together = self._together(factors[0], name)
        if together is not None:
            return [f"target += {together}{more};"]
        made = [line for factor in factors for line in self._elements(factor)]
        return [*made, f"target += {more.removeprefix(' + ')};"] if more else made

    def _elements(self, factor: Factor) -> list[str]:
        """The densities of a factor's elements, one by one."""

        def inner(at: Places) -> list[str]:
            places = tuple(place.moved(-axis.first) for place, axis in zip(at, factor.axes, strict=True))
            return self.densities.added(factor, places, "target")

        return self._braced(over_axes(self.elements, factor.axes, inner))

    def _together(self, factor: Factor, name: str) -> str | None:
        """The density of all elements in one call; None where that cannot be."""
        site, sizes = factor.site, self.shapes.texts([axis.size for axis in factor.axes])
        single = factor.partial or site.chain is not None
        if single or not sizes or len(sizes) > 2 or (len(sizes) == 2 and site.name in self.shapes.whole):
            return None
        count = " * ".join(sizes)
        value = name if len(sizes) == 1 else f"to_vector({name})"
        found: list[str | None] = []

        def inner(at: Places) -> list[str]:
            found.append(self.densities.along(factor.draw, site, value, at, count))
            return []

        over_axes(self.elements, factor.axes, inner)
        return found[0]

    def _observe(self, site: Site) -> None:
        name = self.names[site.name]
        self.model += self._comments(site.origin)
        if site.of_let and facts_of_draw(_family(site)).discrete and site.name not in self.shapes.whole:
            raise Refused(site.origin, f"`{site.name}`: numbers that are computed are no whole ones in Stan")
        self.model += self._density(site, self.elements.called.get(site.name, name))

    def _completed(self, site: Site) -> None:
        """Data whose missing cells are parameters: in front of all steps, since those above read the completed values,
        too."""
        name, there = self.names[site.name], drawn(site)
        sizes, wanted = self.shapes.known[site.name], [index.name for index in site.indices] or ["i"]
        missing, whole = self.names.fresh(f"{name}_missing"), self.names.fresh(f"{name}_complete")
        count, following = self.names.fresh(f"n_{missing}"), self.elements.local("next")

        def each(do: Callable[[str], list[str]]) -> list[str]:
            """Lines for each missing cell."""

            def inner(at: Places) -> list[str]:
                place = f"[{', '.join(map(str, at))}]"
                absent = f"is_nan({name}{place})"
                if there is not None:
                    absent = f"{self.elements.of(there, at).at(AND)} && {absent}"
                return [f"if ({absent}) {{", *(f"  {line}" for line in do(place)), "}"]

            return looped(self.elements, sizes, wanted, inner)

        self.known.append(f"int {count} = 0;")
        self.known += each(lambda place: [f"{count} += 1;"])
        self.parameters.append(f"// the missing cells of {name}, in their order")
        self.parameters.append(f"vector{bounds(site)}[{count}] {missing};")
        self.made.append(f"{declared(whole, sizes)} = {name};")
        lines = each(lambda place: [f"{whole}{place} = {missing}[{following}];", f"{following} += 1;"])
        self.made += ["{", f"  int {following} = 1;", *(f"  {line}" for line in lines), "}"]
        self.elements.called[site.name] = whole
        self.elements.statement_over()

    def _predict(self, site: Site) -> None:
        """A draw made after the fit."""
        draw, name = _family(site), self.names[site.name]
        sizes = (*self.shapes.texts(plate_dims(site)), *self.shapes.texts(event_dims(site)))
        self.drawn += self._comments(site.origin)
        family = facts_of_draw(draw)
        if family.event or site.chain is not None or site.limits or draw.family not in RANDOM:
            raise Refused(site.origin, f"`{site.name}`: this prediction is not exported to Stan", "leave it out")

        def inner(at: Places) -> list[str]:
            with self.elements.apart() as before:
                text = self.densities.of(draw, site, "", at).text
            call = re.sub(r"_lp[dm]f\( \| ", "_rng(", text)
            place = f"[{', '.join(map(str, at))}]" if at else ""
            return [*before, f"{name}{place} = {call};"]

        self.drawn.append(f"{declared(name, sizes, whole=family.discrete)};")
        self.drawn += self._braced(looped(self.elements, sizes, [index.name for index in site.indices], inner))
        self.shapes.known[site.name] = sizes

    @staticmethod
    def _braced(lines: list[str]) -> list[str]:
        """In braces where they declare names of their own."""
        plain = len(lines) == 1 or lines[0].startswith(("for (", "if (", "target +="))
        return lines if plain else ["{", *(f"  {line}" for line in lines), "}"]


def _functions(reading: Reading) -> Iterator[str]:
    """The functions that a program calls."""
    for step in all_steps(reading.program.steps):
        for value in values(step):
            for node in walk(value, until_arrows):
                if isinstance(node, Builtin):
                    yield canonical(node.function)


def _family(site: Site) -> FamilyDraw:
    assert isinstance(site.draw, FamilyDraw)
    return site.draw
