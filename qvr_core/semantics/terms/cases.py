"""What the cases of encoders and decoders have in common: the type that the header names, the constructors that have
none, and what is told of a name that is no constructor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from qvr_core.semantics.arrows.objects import written
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.inherited import batched
from qvr_core.semantics.scope.scope import DamagedEntry, DataTypeEntry, Scope, respelt
from qvr_core.semantics.types.diagnostics import Code, DeclarationSite, Related
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.terms import Constructor, DataType, constructor_text
from qvr_core.semantics.types.walk import arrows_of
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef, ParenObject

MOST_COMPARED = 200
"""Constructors of a type whose names are looked through for the one that was meant."""

SHOWN = 12
"""Constructors without a case that an error names."""


def declared(name: str) -> Related:
    """Where a type stands."""
    return Related(f"`{name}` is declared here", DeclarationSite(name))


def type_named(expr: ObjectExpr, reads: str, instead: str, code: Code, scope: Scope) -> DataType | None:
    """The data type that a header names; None (reported) where it is none.  `reads` begins the sentence, 'an encoder
    reads', `instead` ends it: what a morphism does."""
    inner = expr
    while isinstance(inner, ParenObject):
        inner = inner.inner
    if isinstance(inner, ObjectRef):
        entry = scope.lookup(inner.name.text)
        if isinstance(entry, DataTypeEntry):
            return entry.type
        if entry is None:
            scope.unknown(inner.name, "data type")
        if entry is None or isinstance(entry, DamagedEntry):
            return None
    what = "an object" if isinstance(inner, ObjectRef) else "a space"
    message = f"{reads} the terms of a `data type`, and `{written(expr)}` is {what}: a morphism {instead} that"
    scope.report(code, message, expr.span)
    return None


class Constructors:
    """The constructors of a type, while the cases of one block are gone through."""

    def __init__(self, held: DataType, code: Code, scope: Scope) -> None:
        self.held, self.code, self.scope = held, code, scope
        self.known = {one.name: one for one in held.constructors}

    def unknown(self, name: Name, seen: Mapping[str, object]) -> None:
        """Report a case of no constructor; those without a case so far may be meant, then any."""
        known = self.known if len(self.known) <= MOST_COMPARED else {}
        near = closest(name.text, [one for one in known if one not in seen]) or closest(name.text, known)
        guess = "" if near is None else f"; did you mean `{near}`?"
        message = f"`{self.held.name}` has no constructor `{name.text}`{guess}"
        self.scope.report(self.code, message, name.span, (declared(self.held.name),), respelt(name, near, self.scope))

    def missing(self, owner: Name, open_: Iterable[Constructor], which: str) -> None:
        """Report, once, the constructors that have no case; `which` of them want one, 'each constructor'."""
        missing = [f"`{constructor_text(one, self.held.name)}`" for one in open_]
        if not missing:
            return
        if len(missing) > SHOWN:
            missing[SHOWN:] = [f"{len(missing) - SHOWN} more"]
        listed = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
        message = f"`{owner.text}` has no case for {listed}: {which} of `{self.held.name}` wants one"
        self.scope.report(self.code, message, owner.span, (declared(self.held.name),))


class Mistakes:
    """What is told of since a case began: where something was, what the case gives says nothing."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.before = (len(scope.diagnostics), len(scope.unknown_names), len(scope.equations))

    def found(self) -> bool:
        """Whether there are any.  A width that is wrong is a mistake of the case, and not of the declarations that it
        names."""
        scope, (diagnostics, names, equations) = self.scope, self.before
        scope.equations[equations:] = [replace(one, local=True) for one in scope.equations[equations:]]
        wrong = any(one.wrong for one in scope.equations[equations:])
        return wrong or (len(scope.diagnostics), len(scope.unknown_names)) != (diagnostics, names)


def refuse_batch_norm(values: Sequence[Expr], code: Code, scope: Scope) -> None:
    """Report a batch norm in a case."""
    for arrow in (one for value in values for one in arrows_of(value)):
        if batched(arrow, scope):
            message = "a batch norm makes of each row what all rows together lead to, and a case has no rows of its own"
            scope.report(code, message, arrow.origin)
            return
