"""What every arrow with parameters and without draws has from its declaration."""

from __future__ import annotations

from typing import TypedDict

from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Density, Sort
from qvr_core.semantics.types.spaces import Named
from qvr_core.syntax.tree.declarations import MorphismDecl


class Declared(TypedDict):
    """Fields of `model.arrows`."""

    name: str
    domain: Named
    codomain: Named
    sort: Sort
    origin: Origin
    density: Density


def deterministic(decl: MorphismDecl, domain: Named, codomain: Named, scope: Scope) -> Declared:
    """Those of a deterministic arrow between two spaces."""
    return {
        "name": scope.owner,
        "domain": domain,
        "codomain": codomain,
        "sort": Sort.DETERMINISTIC,
        "origin": scope.origin(decl.span),
        "density": DETERMINISTIC,
    }
