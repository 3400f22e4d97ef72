"""Undeclared data that two places use differently."""

from __future__ import annotations

from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.diagnostics import Origin, Related
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.program_codes import DATA_MISMATCH
from qvr_core.semantics.types.spaces import Finite, Space


def check_uses(name: str, before: ValueType, first: Origin, now: ValueType, second: Origin, scope: Scope) -> bool:
    """Whether two uses of a data name go together; reported at the second where they do not."""
    words = _elements(before.space, now.space) or _axes(before, now)
    if words is None:
        return True
    there, here, what = words
    related = (Related(f"`{name}` {what} {there} here", first),)
    message = f"`{name}` {what} {here} here and {there} elsewhere: one name holds one kind of data"
    scope.report(DATA_MISMATCH, message, second, related)
    return False


def _elements(before: Space | None, now: Space | None) -> tuple[str, str, str] | None:
    """The two sets whose elements a name holds, where they differ."""
    if not isinstance(before, Finite) or not isinstance(now, Finite):
        return None
    there, here = before.nominal, now.nominal
    return (there, here, "indexes") if there is not None and here is not None and there != here else None


def _axes(before: ValueType, now: ValueType) -> tuple[str, str, str] | None:
    """The two sets that a name runs over at one place, where they differ."""
    for one, other in zip(before.indexed, now.indexed, strict=False):
        if one is not None and other is not None and set_of(one) != set_of(other):
            return set_of(one), set_of(other), "runs over"
    return None
