"""A block in a block: each element of the inner plate belongs to one element of the outer, whose value it reads.

`marginalize z[g : Group] : Kind <- …` above `marginalize c[i : Row] : State <- Categorical(P[z[group[i]]])`: which z
an element of c belongs to is what stands in the brackets, by the indices of c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.programs.chains.along import Along, laid_out
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.density import MOST_SUMMED
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.program_codes import CANNOT_MARGINALIZE, INDEX_MISMATCH
from qvr_core.semantics.types.spaces import Finite, Named
from qvr_core.syntax.tree.names import Name

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(slots=True)
class Nest:
    """What is known of the inner block: the outer state, the inner one and its indices, and where the outer one is
    read, as text and as an index for each of its sets, laid along the inner plate."""

    outer: Name
    inner: Name
    indices: tuple[str, ...]
    text: str | None = None
    place: tuple[Expr, ...] | None = None


def taken_from_draw(nest: Nest, along: Along, place: Name, ctx: StepContext) -> None:
    """Which element of the outer plate each inner one belongs to, where the inner draw says it."""
    found = _one_place(nest, place, ctx)
    if found is None:
        return
    text, values = found
    last = along.indices[-1].axis if along.indices else None
    if along.chain is not None and any(axis == last for value in values for _, axis in axes(value.type) or []):
        message = f"a chain of `{nest.inner.text}` belongs to one element of `{nest.outer.text}`, and "
        message += f"`{nest.outer.text}[{text}]` differs along it"
        ctx.scope.report(INDEX_MISMATCH, message, place.span)
        return
    nest.text, nest.place = text, tuple(laid_out(value, along, ctx) for value in values)


def taken_from_element(nest: Nest, name: Name, along: Along, ctx: StepContext) -> None:
    """The same of an observed or scored step, whose elements read the outer state of the inner element that they
    read."""
    found = _one_place(nest, name, ctx)
    if found is None or not ctx.hidden_reads:
        return
    text, values = found
    own = _parts(ctx.hidden_reads[0][0])
    if nest.text is None:
        running = {one.name: one for one in along.indices}
        if len(own) != len(nest.indices) or any(part not in running for part in own):
            message = f"nothing says which `{nest.outer.text}` each `{nest.inner.text}` belongs to: read "
            message += f"`{nest.outer.text}[…]` in the draw of `{nest.inner.text}`"
            ctx.scope.report(INDEX_MISMATCH, message, name.span)
            return
        inner = Along(tuple(running[part] for part in own), None, 0)
        kept = {one.axis for one in inner.indices}
        if any(axis not in kept for value in values for _, axis in axes(value.type) or []):
            _report_other(nest, name, text, ctx)
            return
        nest.text = _renamed(text, dict(zip(own, nest.indices, strict=True)))
        nest.place = tuple(laid_out(value, inner, ctx) for value in values)
    elif _renamed(nest.text, dict(zip(nest.indices, own, strict=False))) != text:
        _report_other(nest, name, text, ctx)


def _report_other(nest: Nest, name: Name, text: str, ctx: StepContext) -> None:
    own = f"one `{nest.outer.text}[…]`" if nest.text is None else f"`{nest.outer.text}[{nest.text}]`"
    message = (
        f"each `{nest.inner.text}` belongs to {own}, and `{name.text}` reads `{nest.outer.text}[{text}]` beside it"
    )
    ctx.scope.report(INDEX_MISMATCH, message, name.span)


def _one_place(nest: Nest, name: Name, ctx: StepContext) -> tuple[str, tuple[Expr, ...]] | None:
    """The one place of the outer state that has been read; reports others."""
    reads, ctx.outer_reads = ctx.outer_reads, []
    texts = list(dict.fromkeys(text for text, _ in reads))
    if len(texts) > 1:
        message = f"each `{nest.inner.text}` belongs to one element of `{nest.outer.text}`, and this reads "
        message += f"`{nest.outer.text}[{texts[0]}]` and `{nest.outer.text}[{texts[1]}]`"
        ctx.scope.report(INDEX_MISMATCH, message, name.span)
        return None
    return reads[0] if reads else None


def check_nest(nest: Nest, outer: Named, inner: Named, told: int, ctx: StepContext) -> None:
    """Report a block that nothing ties to the outer one, and too many values together."""
    if nest.place is None and len(ctx.scope.diagnostics) == told:
        message = f"nothing in this block reads `{nest.outer.text}`: move it out of the block of `{nest.outer.text}`"
        ctx.scope.report(CANNOT_MARGINALIZE, message, nest.inner.span)
    sizes = [one.space.size for one in (outer, inner) if isinstance(one.space, Finite)]
    known = [int(size) for size in sizes if isinstance(size, int)]
    if len(known) == 2 and known[0] * known[1] > MOST_SUMMED:
        message = f"`{nest.outer.text}` and `{nest.inner.text}` have {known[0]:,} × {known[1]:,} values together, "
        message += f"and at most {MOST_SUMMED:,} are summed over"
        ctx.scope.report(CANNOT_MARGINALIZE, message, nest.inner.span)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda found: names.get(found[0], found[0]), text)


def _parts(text: str) -> Sequence[str]:
    """The places of a text `a, b[c, d]`, one for each index."""
    found, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]
