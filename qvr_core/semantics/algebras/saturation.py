"""Joins that saturate before anything is learned: the noisy-or of thousands of weights near one half is 1.

At its bound a join is flat, so no gradient reaches the weights.  Where they start is known: near one half, or near the
number of `init=`, independently of each other; so is what their join is then.
"""

from __future__ import annotations

import math

from qvr_core.semantics.scope.inherited import algebra_of
from qvr_core.semantics.scope.scope import ArrowEntry, Scope
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Compose,
    Curry,
    Dagger,
    DropFactors,
    Freeze,
    PartialTrace,
    Ref,
    Sort,
)
from qvr_core.semantics.types.program_codes import SATURATED_JOIN
from qvr_core.semantics.types.spaces import Finite, Space, factors_of
from qvr_core.semantics.types.walk import parts, walk
from qvr_core.syntax.immutable import immutable

FLAT = math.log(2.0**-25)
"""log(1 − join) below which a noisy-or rounds to 1 in single precision."""
ONE_HALF = 0.5
SPREAD = 0.5
"""The spread of the parameters of a latent that says none (`runtime/tensors/tensors.py`)."""


@immutable
class _Start:
    """A latent's name, the weight that it starts near, and how far its weights are from that."""

    name: str
    weight: float
    spread: float
    written: frozenset[str]
    """Which of `init` and `scale` its declaration says."""


def saturated_joins(arrow: Arrow, scope: Scope) -> None:
    """Warn, at the latent, of the first join in an expression whose weights start where it is flat."""
    if arrow.sort is not Sort.TENSOR:
        return
    for node in walk(arrow, parts):
        if _in_node(node, scope):
            return


def _in_node(node: Arrow, scope: Scope) -> bool:
    """Whether a join of the node was told."""
    match node:
        case Compose(stages=(first, second, *_), operators=(operator, *_)):
            # from the left: what stands further on is joined with a composite, whose weights are not known
            one, two, algebra = _start(first, scope), _start(second, scope), algebra_of(first, scope)
            count = _elements(first.codomain.space)
            if one is None or two is None or algebra is None or not count:
                return False
            return _report_saturated(algebra, count, (one, two), operator, scope)
        case PartialTrace(base=base, over=over):
            count = _elements(over.space)
        case DropFactors(base=base, indices=indices):
            factors = factors_of(base.codomain.space)
            count = math.prod(_elements(factors[index]) for index in indices)
        case _:
            return False
    one, algebra = _start(base, scope), algebra_of(base, scope)
    if one is None or algebra is None or not count:
        return False
    return _report_saturated(algebra, count, (one,), node.origin, scope)


def _start(arrow: Arrow, scope: Scope) -> _Start | None:
    """Where the weights of an arrow start that is a latent under whatever sides; None of any other."""
    if isinstance(arrow, Dagger | Curry | Freeze):
        return _start(arrow.base, scope)
    entry = scope.lookup(arrow.name) if isinstance(arrow, Ref) else None
    if not isinstance(entry, ArrowEntry) or entry.start is None:
        return None
    init, weight, scale = entry.start
    written = frozenset(key for key, given in (("init", init != "auto"), ("scale", scale is not None)) if given)
    weight = ONE_HALF if weight is None else weight
    return _Start(entry.name, weight, weight * (1.0 - weight) * (SPREAD if scale is None else scale), written)


def _elements(space: Space) -> int:
    """How many elements a finite space has; 0 where that is open."""
    sizes = [factor.size if isinstance(factor, Finite) else 0 for factor in factors_of(space)]
    return math.prod(size if isinstance(size, int) else 0 for size in sizes)


def _report_saturated(algebra: str, count: int, latents: tuple[_Start, ...], place: Origin, scope: Scope) -> bool:
    """Report a join of `count` weights, or of as many products of two, that starts at its bound."""
    near = math.prod(latent.weight for latent in latents)
    if algebra == "product_fuzzy":
        flat, said = count * math.log1p(-near) < FLAT, "noisy-or"
        better = ("init", (math.log(2.0) / count) ** (1.0 / len(latents)))
    elif algebra == "lukasiewicz":
        near = _bounded_difference(*latents) if len(latents) == 2 else near
        flat, said = count * near >= 2.0, "bounded sum"
        # two weights of one half combine to what their spread makes of them: on average to 0.1 of it
        better = ("init", 0.5 / count) if len(latents) == 1 else ("scale", 0.5 / count / _OF_SPREAD)
        if len(latents) == 2 and any(latent.weight != ONE_HALF for latent in latents):
            better = None
    else:
        return False
    if not flat:
        return False
    names = " and ".join(f"`{name}`" for name in dict.fromkeys(latent.name for latent in latents))
    message = f"the {said} of {count:,} weights near {near:.2g} is 1 at the start: no gradient reaches {names}"
    fixes: tuple[Fix, ...] = ()
    if better is not None:
        key, value = better
        option = f"{key}={float(f'{value:.2g}')}"
        message += f"; with `{option}` it is not"
        fixes = _fix(key, option, latents)
    related = (Related("it is joined here", place),)
    scope.report(SATURATED_JOIN, message, DeclarationSite(latents[0].name), related, fixes)
    return True


_OF_SPREAD = 0.25 * math.sqrt(2.0) / math.sqrt(2.0 * math.pi)
"""E max(a + b − 1, 0) of two weights near one half, by the spread of their parameters."""


def _bounded_difference(one: _Start, two: _Start) -> float:
    """E max(a + b − 1, 0) of two weights, as if they were Normal."""
    mean, spread = one.weight + two.weight - 1.0, math.hypot(one.spread, two.spread)
    if spread == 0.0:
        return max(mean, 0.0)
    at = mean / spread
    below = 0.5 * math.erfc(-at / math.sqrt(2.0))
    return mean * below + spread * math.exp(-0.5 * at * at) / math.sqrt(2.0 * math.pi)


def _fix(key: str, option: str, latents: tuple[_Start, ...]) -> tuple[Fix, ...]:
    """The option written into each declaration; none where one stands in another file."""
    edits: dict[str, Edit] = {}
    for latent in latents:
        if not latent.name.isidentifier():
            return ()
        if key in latent.written:
            edits[latent.name] = Edit(DeclarationSite(latent.name, f"option:{key}"), option)
        else:
            edits[latent.name] = Edit(DeclarationSite(latent.name, "option:role"), f"role=latent, {option}")
    return (Fix(f"Start elsewhere: `{option}`", tuple(edits.values())),)
