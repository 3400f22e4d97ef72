"""What a composite arrow inherits from its parts: the algebra of tensors, the direction of a scan."""

from __future__ import annotations

from collections.abc import Iterator

from qvr_core.semantics.model import (
    Arrow,
    Compose,
    Dagger,
    DropFactors,
    Fan,
    Freeze,
    Latent,
    Lift,
    Observed,
    PartialTrace,
    Ref,
    Repeat,
    Residual,
    Scan,
    Stack,
    TakeFactor,
    Tensor,
)
from qvr_core.semantics.scope import ArrowEntry, Scope


def parts(arrow: Arrow) -> Iterator[Arrow]:
    """The arrows that a combinator is made of, in order; none for a declared arrow or a name."""
    match arrow:
        case Compose(stages=inner) | Tensor(factors=inner) | Fan(branches=inner):
            yield from inner
        case Lift(arrow=inner) | Scan(cell=inner) | Stack(body=inner) | Repeat(body=inner) | Residual(body=inner):
            yield inner
        case (
            TakeFactor(base=inner) | Dagger(base=inner) | PartialTrace(base=inner) | DropFactors(base=inner)
            | Freeze(base=inner)
        ):  # fmt: skip
            yield inner
        case _:
            return


def algebra_of(arrow: Arrow, scope: Scope) -> str | None:
    """The algebra in which a tensor arrow composes; None where no declared tensor decides it."""
    if isinstance(arrow, Latent | Observed):
        return arrow.algebra
    if isinstance(arrow, Ref):
        entry = scope.lookup(arrow.name)
        return entry.algebra if isinstance(entry, ArrowEntry) else None
    return next((found for part in parts(arrow) if (found := algebra_of(part, scope)) is not None), None)


def scanned_direction(arrow: Arrow, scope: Scope) -> str | None:
    """'forward' or 'backward' where an arrow folds the sequence that it reads; None where it does not."""
    if isinstance(arrow, Scan):
        return "backward" if arrow.backward else "forward"
    if isinstance(arrow, Ref):
        entry = scope.lookup(arrow.name)
        return entry.direction if isinstance(entry, ArrowEntry) else None
    if isinstance(arrow, Compose | Lift | Freeze | TakeFactor):
        return next((found for part in parts(arrow) if (found := scanned_direction(part, scope)) is not None), None)
    return None
