"""How large what a file declares may be (docs/reference.md#bounds): told once, where the bound is crossed."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.scope.scope import UNKNOWN, Scope, is_name
from qvr_core.semantics.types.codes import TOO_LARGE
from qvr_core.semantics.types.model.extents import Stages
from qvr_core.semantics.types.spaces import (
    Named,
    Part,
    Product,
    Space,
    Unknown,
    entries,
    factor_count,
    is_unknown,
    product,
)
from qvr_core.semantics.types.type_text import MOST_SPELT
from qvr_core.syntax.tree.names import Span

MOST_FACTORS = 10_000
MOST_ENTRIES = 10**12
MOST_STAGES = 100_000
MOST_COPIES = 10_000
"""Of replicated arrows, in one file."""

MOST_OPERATIONS = 10_000
"""In the arithmetic of one step, with the functions that it calls written out."""


def bounded(space: Space, span: Span, scope: Scope) -> Space:
    """`space`, or unknown (reported) where it is too large."""
    return bounded_product([(None, space)], span, scope)


def bounded_product(parts: Sequence[Part], span: Span, scope: Scope) -> Space:
    """The product of `parts`, or unknown (reported) where it is too large."""
    count, total = (sum(each(space) for _, space in parts) for each in (factor_count, entries))
    if count <= MOST_FACTORS and total <= MOST_ENTRIES:
        return product(parts)
    if not any(is_unknown(space) for _, space in parts):
        most, what = (MOST_FACTORS, "factors") if count > MOST_FACTORS else (MOST_ENTRIES, "entries")
        number = _many(count if count > MOST_FACTORS else total)
        scope.report(TOO_LARGE, f"this space has {number} {what}, and no space may have more than {most:,}", span)
    return Unknown()


def joined(parts: Sequence[Named], span: Span, scope: Scope) -> Named:
    """The product of spaces as the user would write it; unknown (reported) where it is too large."""
    if len(parts) == 1:
        return parts[0]
    named = [(_factor_name(part.written), part.space) for part in parts]
    space = bounded_product(named, span, scope)
    return UNKNOWN if isinstance(space, Unknown) else Named(space, product_text(parts, space))


def _factor_name(written: str) -> str | None:
    """What a factor is called: its declared name, without the prefix of an import."""
    last = written.rpartition(".")[2]
    return last if is_name(written) else None


def product_text(parts: Sequence[Named], space: Space) -> str:
    """A product as the user would write it; of a long one the first factor, and how many there are."""
    if isinstance(space, Product) and space.count > MOST_SPELT:
        return f"{parts[0].written.split(' * ', 1)[0]} * … ({space.count:,} factors)"
    return " * ".join(f"({part.written})" if " + " in part.written else part.written for part in parts)


def too_many_stages(stages: Stages, domain: Named, codomain: Named, span: Span, scope: Scope) -> bool:
    """True (reported, where all of it is known) of an arrow that is made of more arrows than may be built."""
    if stages.count <= MOST_STAGES:
        return False
    if stages.sure and not is_unknown(domain.space) and not is_unknown(codomain.space):
        message = f"this is made of {_many(stages.count)} arrows, and nothing may be made of more than {MOST_STAGES:,}"
        scope.report(TOO_LARGE, message, span)
    return True


def too_many_copies(total: int, span: Span, scope: Scope) -> None:
    """Report the declaration with which the replicated arrows of a file become too many."""
    most = f"{MOST_COPIES:,}"
    message = f"with these, the file has {_many(total)} copies of arrows, and no file may have more than {most}"
    scope.report(TOO_LARGE, message, span)


def too_many_operations(span: Span, scope: Scope) -> None:
    """Report arithmetic that grows beyond what can be computed."""
    message = f"with its functions written out, this has more than {MOST_OPERATIONS:,} operations"
    scope.report(TOO_LARGE, message, span)


def _many(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"more than {10**15:,}"
