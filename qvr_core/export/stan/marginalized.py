"""`marginalize` in Stan: what each hidden value explains is added up place by place, then summed over the values, or
along a chain by the forward algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from qvr_core.export.refusals import Refused
from qvr_core.export.stan.densities import Densities
from qvr_core.export.stan.elements import Elements, Places
from qvr_core.export.stan.places import BEFORE, Place
from qvr_core.lowered.axes import Axis, event_dims
from qvr_core.lowered.factors import beside, factors_of
from qvr_core.semantics.types.hidden_counts import is_counts
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel, ObserveModel, ParamModel, ScoreModel, Site
from qvr_core.semantics.types.spaces import Finite


class Hidden:
    """Writes one block.  `target` says what the density of the places of a chain is added to: that of the program, or
    what a value of the state around explains."""

    def __init__(
        self,
        step: MarginalizeModel,
        elements: Elements,
        densities: Densities,
        target: Callable[[Places], str] = lambda at: "target",
    ) -> None:
        self.step, self.site = step, step.site
        self.target = target
        self.elements, self.densities = elements, densities
        if step.site.chain is None or step.reads is None or not isinstance(step.site.draw, FamilyDraw):
            remedy = "write the block with an index: `marginalize z[i : Row] : State <- …`"
            raise Refused(step.site.origin, f"`{step.site.name}`: this form of `marginalize` is not exported", remedy)
        self.chain, self.draw, self.reads = step.site.chain, step.site.draw, step.reads
        space = step.site.bound[0][1].space
        if not isinstance(space, Finite):
            raise Refused(step.site.origin, f"`{step.site.name}`: only finite values are summed out in an export")
        self.space = space
        self.count = elements.shapes.size(space.size)
        self.sizes = tuple(
            elements.shapes.size(index.space.size) if isinstance(index.space, Finite) else "1"
            for index in self.chain.indices
        )
        self.name = elements.names[step.site.name]
        self.terms = elements.local(f"{self.name}_terms")

    def lines(self) -> list[str]:
        """The block, in braces."""
        placed = [size for size in self.sizes if size != "1"]
        declared = f"vector[{self.count}] {self.terms}"
        start = f"rep_vector(0, {self.count})"
        if placed:
            inner = ", ".join(placed)
            declared, start = f"array[{inner}] {declared}", f"rep_array({start}, {inner})"
        for one in self.step.body:
            if isinstance(one, LetModel):
                self._inline(one)
        found = [f"// what each value of {self.name} explains", f"{declared} = {start};"]
        for one, reads in zip(self.step.body, self.reads, strict=True):
            match one:
                case LetModel():
                    pass
                case ObserveModel(site=site):
                    found += self._observed(site, reads)
                case MarginalizeModel():
                    found += self._nested(one, reads)
                case _:
                    origin = one.origin if isinstance(one, ScoreModel | ParamModel) else one.site.origin
                    raise Refused(origin, f"only `observe` and `let` are exported below `marginalize {self.site.name}`")
        found += self._forward() if self.chain.indices[self.chain.at].lag else self._summed()
        made = ["{", *(f"  {line}" for line in found), "}"]
        if any(BEFORE.text in line for line in made):
            raise Refused(
                self.site.origin, f"`{self.site.name}`: what reads the hidden value before its own is not exported"
            )
        return made

    def _inline(self, let: LetModel) -> None:
        if let.indexed is not None and (any(i.lag for i in let.indexed.indices) or len(let.names) != 1):
            raise Refused(let.origin, f"`{let.names[0]}`: a recursion in this block is not exported")
        if len(let.names) != 1:
            raise Refused(let.origin, "a `let` of several names is not exported", "write one `let` for each")
        self.elements.shapes.inline[let.names[0]] = let.value if let.indexed is None else let.indexed.values[0]

    def _observed(self, site: Site, reads: tuple[Expr, ...]) -> list[str]:
        """What an observed step says of each hidden value, at the places that its elements read."""
        draw, elements = site.draw, self.elements
        assert isinstance(draw, FamilyDraw)
        if event_dims(site):
            raise Refused(site.origin, f"`{site.name}`: vectors are not exported in a block")
        (factor,) = factors_of(site)
        wide = beside(factor, draw, 2)

        def inner(at: Places) -> list[str]:
            at = tuple(place.moved(-axis.first) for place, axis in zip(at, factor.axes, strict=True))
            with elements.running(self.name, own=True) as value:
                with elements.apart() as lines:
                    places = [elements.code(read, at) for read in reads]
                kept = [place for place, size in zip(places, self.sizes, strict=True) if size != "1"]
                target = f"{self.terms}[{', '.join(map(str, (*kept, value)))}]"
                places_of = (*at, BEFORE, Place(value))
                added = self.densities.added(wide, places_of, target, summed=True)
                possible = self.densities.possible(wide, places_of) if is_counts(self.space) else None
                if possible is not None:
                    inside = [f"  {line}" for line in added]
                    added = [f"if ({possible}) {{", *inside, "} else {", f"  {target} = negative_infinity();", "}"]
                lines += added
                return [f"for ({value} in 1:{self.count}) {{", *(f"  {line}" for line in lines), "}"]

        return over_axes(elements, factor.axes, inner)

    def _nested(self, step: MarginalizeModel, reads: tuple[Expr, ...]) -> list[str]:
        """A block inside this one, for each value of its state: what it explains goes to the places that it reads."""
        elements, shapes, own = self.elements, self.elements.shapes, self.site.name
        with elements.running(self.name, own=True) as value:
            shapes.known[own], elements.called[own] = (), value
            shapes.whole.add(own)
            shapes.codes.add(own)

            def target(at: Places) -> str:
                places = [elements.code(read, at) for read in reads]
                kept = [str(place) for place, size in zip(places, self.sizes, strict=True) if size != "1"]
                return f"{self.terms}[{', '.join((*kept, value))}]"

            lines = Hidden(step, elements, self.densities, target).lines()
            del shapes.known[own], elements.called[own]
            shapes.whole.discard(own)
            shapes.codes.discard(own)
            name = elements.names[step.site.name]
            heads = [f"// {name} is summed out for each value of {self.name}", f"for ({value} in 1:{self.count}) {{"]
            return [*heads, *(f"  {line}" for line in lines), "}"]

    def _summed(self) -> list[str]:
        elements = self.elements

        def inner(at: Places) -> list[str]:
            with elements.apart() as lines:
                first = self.densities.probabilities(self.draw, self.site, (*at, BEFORE), self.count)
            return [*lines, f"{self.target(at)} += log_sum_exp({first} + {self._term(at)});"]

        return looped(elements, self.sizes, [index.name for index in self.chain.indices], inner)

    def _term(self, at: Places) -> str:
        kept = [str(place) for place, size in zip(at, self.sizes, strict=True) if size != "1"]
        return f"{self.terms}[{', '.join(kept)}]" if kept else self.terms

    def _forward(self) -> list[str]:
        """The forward algorithm, along the index with a lag."""
        chain, elements, start = self.chain, self.elements, self.chain.start
        if self.draw.family != "Categorical" or not isinstance(start, FamilyDraw) or chain.indices[chain.at].lag != 1:
            raise Refused(self.site.origin, f"`{self.site.name}`: only chains of Categorical are exported")
        others = [index for at, index in enumerate(chain.indices) if at != chain.at]
        sizes = [size for at, size in enumerate(self.sizes) if at != chain.at]
        ways, steps, ahead = (elements.local(f"{self.name}_{word}") for word in ("so_far", "steps", "next"))

        def whole(at: Places, here: Place) -> Places:
            return (*at[: chain.at], here, *at[chain.at :])

        def table(at: Places, here: Place) -> list[str]:
            """The log probabilities of each value given the one before."""
            with elements.running(f"{self.name}_before") as before, elements.apart() as lines:
                places = (*whole(at, here), Place(before))
                row = self.densities.probabilities(self.draw, self.site, places, self.count)
                return [
                    f"matrix[{self.count}, {self.count}] {steps};",
                    f"for ({before} in 1:{self.count}) {{",
                    *(f"  {line}" for line in (*lines, f"{steps}[{before}] = {row}';")),
                    "}",
                ]

        fixed = table(tuple(BEFORE for _ in others), BEFORE)
        stays = not any(BEFORE.text in line for line in fixed)

        def inner(at: Places) -> list[str]:
            with elements.apart() as lines:
                first = self.densities.probabilities(start, self.site, (*at, BEFORE), self.count)
            with ExitStack() as stack:
                t = stack.enter_context(elements.running(chain.indices[chain.at].name or "t"))
                k = stack.enter_context(elements.running(self.name, own=True))
                moving = [] if stays else table(at, Place(t, -1))
                return [
                    *lines,
                    f"vector[{self.count}] {ways} = {first} + {self._term(whole(at, Place('1')))};",
                    f"for ({t} in 2:{self.sizes[chain.at]}) {{",
                    *(f"  {line}" for line in moving),
                    f"  vector[{self.count}] {ahead};",
                    f"  for ({k} in 1:{self.count}) {{",
                    f"    {ahead}[{k}] = log_sum_exp({ways} + {steps}[, {k}]);",
                    "  }",
                    f"  {ways} = {ahead} + {self._term(whole(at, Place(t)))};",
                    "}",
                    f"{self.target(whole(at, Place('1')))} += log_sum_exp({ways});",
                ]

        opened = looped(elements, sizes, [index.name for index in others], inner)
        return [*(fixed if stays else []), *opened]


def over_axes(elements: Elements, axes: Sequence[Axis], inner: Callable[[Places], list[str]]) -> list[str]:
    """Lines for each element of these axes."""
    sizes = elements.shapes.texts([axis.size for axis in axes])
    return looped(elements, sizes, [axis.name for axis in axes], inner, [axis.first for axis in axes])


def looped(
    elements: Elements,
    sizes: Sequence[str],
    wanted: Sequence[str],
    inner: Callable[[Places], list[str]],
    firsts: Sequence[int] = (),
) -> list[str]:
    """Lines in a loop for each axis, of which that of a single place needs none; `firsts` are how many
    elements each leaves out."""
    places: list[Place] = []
    heads: list[str] = []
    with ExitStack() as stack:
        for at, size in enumerate(sizes):
            left_out = firsts[at] if firsts else 0
            if size == "1" and not left_out:
                places.append(Place("1"))
                continue
            name = stack.enter_context(elements.running((wanted[at] if at < len(wanted) else "") or "ijklmnop"[at]))
            heads.append(f"for ({name} in {1 + left_out}:{size}) {{")
            places.append(Place(name))
        lines = inner(tuple(places))
    for head in reversed(heads):
        lines = [head, *(f"  {line}" for line in lines), "}"]
    return lines
