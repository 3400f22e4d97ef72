"""`marginalize`: a hidden name for each place, summed out: over its values, or along a chain by the forward algorithm.

Log densities of what a block observes are (elements…, values), and go to the places that the elements read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qvr_core.export.arrays.densities import Densities, axes_of, stripped
from qvr_core.export.arrays.expressions import Expressions
from qvr_core.export.refusals import Refused
from qvr_core.lowered.axes import plate_dims
from qvr_core.lowered.factors import beside, factors_of
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.types.hidden_counts import is_counts
from qvr_core.semantics.types.model.expressions import Arrange, Constant, Expr, Index, IndexValue
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import (
    Chain,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    ScoreModel,
    Site,
)
from qvr_core.semantics.types.spaces import Finite


@dataclass(frozen=True)
class Terms:
    """A line `name = text`, (places…, values)."""

    name: str
    text: str


@dataclass(frozen=True)
class Block:
    """A block in parts: what it observes, the log probabilities of the hidden name's values, and whether these follow
    one another.

    `later` is the table of each value given the one before, (…, values, values); where `timed`, its third last axis
    runs along the chain, from the second element.
    """

    name: str
    lets: tuple[LetModel, ...]
    terms: tuple[Terms, ...]
    first: str
    later: str | None
    timed: bool
    length: str


def block_of(step: MarginalizeModel, expressions: Expressions, densities: Densities) -> Block:
    """The parts of a block.  Raises `Refused` for those that cannot be said."""
    site, chain, draw = step.site, step.site.chain, step.site.draw
    assert isinstance(draw, FamilyDraw)
    if chain is None or step.reads is None:
        remedy = "write the block with an index: `marginalize z[i : Row] : State <- …`"
        raise Refused(site.origin, f"`{site.name}`: this form of `marginalize` is not exported", remedy)
    space = site.bound[0][1].space
    if not isinstance(space, Finite):
        raise Refused(site.origin, f"`{site.name}`: only finite values are summed out in an export")
    count = expressions.size(space.size)
    terms: list[Terms] = []
    lets: list[LetModel] = []
    for one, reads in zip(step.body, step.reads, strict=True):
        match one:
            case LetModel():
                lets.append(one)
            case ObserveModel(site=observed):
                terms.append(_terms(observed, reads, chain, expressions, densities, count))
            case _:
                origin = one.origin if isinstance(one, ScoreModel | ParamModel) else one.site.origin
                raise Refused(origin, f"only `observe` and `let` are exported below `marginalize {site.name}`")
    vector = draw.family == "Categorical"
    prior = draw.args[0][1]
    lagging = bool(chain.indices[chain.at].lag)
    if not lagging:
        if is_counts(space):
            low, high = (expressions.text(stripped(dict(draw.args)[name], 2)) for name in ("low", "high"))
            return Block(site.name, tuple(lets), tuple(terms), densities.counts(low, high, count), None, False, "")
        plain = stripped(prior, 2) if not vector else stripped(stripped(prior, 2), 2)
        first = densities.categories(draw, site, count, expressions.text(plain))
        return Block(site.name, tuple(lets), tuple(terms), first, None, False, "")
    if not vector or not isinstance(chain.start, FamilyDraw) or chain.start.family != "Categorical":
        raise Refused(site.origin, f"`{site.name}`: only chains of Categorical are exported")
    table = stripped(prior, 2)
    later = densities.categories(draw, site, count, expressions.text(table))
    start = stripped(chain.start.args[0][1], 2)
    first = densities.categories(chain.start, site, count, expressions.text(start))
    index = chain.indices[chain.at]
    assert isinstance(index.space, Finite)
    timed = axes_of(table) >= 3 and isinstance(table, Arrange | Index)
    if isinstance(table, Arrange) and len(table.axes) >= 3 and table.axes[-3] is None:
        raise Refused(site.origin, f"`{site.name}`: a chain whose table differs between chains only is not exported")
    return Block(site.name, tuple(lets), tuple(terms), first, later, timed, expressions.size(index.space.size))


def _terms(
    site: Site, reads: tuple[Expr, ...], chain: Chain, expressions: Expressions, densities: Densities, count: str
) -> Terms:
    """The log density of an observed step, at the places that its elements read."""
    draw = site.draw
    assert isinstance(draw, FamilyDraw)
    (factor,) = factors_of(site)
    family = facts_of_draw(draw)
    ranks = {n: p.rank for p in family.parameters for n in (p.name, *(alt for alt, _ in p.alternatives))}
    arguments: list[tuple[str, Expr]] = []
    for name, expr in draw.args:
        plain = stripped(expr, 2 + ranks.get(name, 0))
        if plain is expr and isinstance(expr, Arrange) and len(expr.axes) >= 2 + ranks.get(name, 0):
            raise Refused(site.origin, f"`{site.name}` reads the hidden value before its own, which is not exported")
        arguments.append((name, plain))
    inner = replace(draw, args=tuple(arguments))
    text = densities.of(beside(factor, inner, 1))
    count_axes = len(plate_dims(site))
    kept = _own_places(reads, count_axes)
    name = expressions.names.fresh(f"{expressions.names[site.name]}_terms")
    if kept is not None:
        gone = tuple(at for at in range(count_axes) if at not in kept)
        if gone:
            axes = str(gone[0]) if len(gone) == 1 else f"({', '.join(map(str, gone))})"
            text = expressions.dialect.sum_over.format(text, axes)
        return Terms(name, text)
    sizes = [expressions.size(index.space.size) for index in chain.indices if isinstance(index.space, Finite)]
    place = expressions.text(reads[0])
    for read, size in zip(reads[1:], sizes[1:], strict=True):
        place = f"({place} * {size} + {expressions.text(read)})"
    total = "*".join(sizes)
    text = expressions.template(expressions.dialect.places, text, place, f"({total})", count)
    return Terms(name, expressions.dialect.reshape.format(text, ", ".join([*sizes, count])) if len(sizes) > 1 else text)


def _own_places(reads: tuple[Expr, ...], axes: int) -> list[int] | None:
    """The axes of the elements along which the places run; None where data say the place."""
    found: list[int] = []
    for read in reads:
        moved: tuple[int | None, ...] = (0,)
        while isinstance(read, Arrange):
            moved, read = read.axes, read.base
        if isinstance(read, Constant):
            continue
        if not isinstance(read, IndexValue) or read.first or 0 not in moved:
            return None
        found.append(axes - len(moved) + moved.index(0))
    return found if found == sorted(found) else None
