"""One wrong role or family is one mistake: what else of its declaration does not go with it is not told again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from qvr_core.semantics.arrows.objects import written
from qvr_core.semantics.arrows.options import find_role
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.codes import (
    FAMILY_ARGUMENTS,
    FAMILY_MISMATCH,
    MISSING_FAMILY,
    MISSING_MATRIX,
    ROLE_MISMATCH,
    SORT_MISMATCH,
    UNEXPECTED_INIT,
    UNKNOWN_FAMILY,
    UNKNOWN_OPTION,
    USELESS_OPTION,
    WRONG_KIND,
)
from qvr_core.semantics.types.diagnostics import Code, Diagnostic, Edit, Fix, Origin, Severity
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.declarations import MorphismDecl
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.options import Option, Options, Word

WouldFit = Callable[[MorphismDecl, Scope], bool]
"""Whether a declaration has no mistake; reports nothing."""

MOST_ROLES = 3
"""Other roles that are offered at most."""

_DOUBTFUL = (ROLE_MISMATCH, MISSING_FAMILY, UNKNOWN_FAMILY)
"""After these nobody knows what sort of arrow was meant."""

_EITHER = (ROLE_MISMATCH, FAMILY_MISMATCH, UNEXPECTED_INIT)
"""After these the role may be wrong, or what it does not go with."""

_FOLLOWING: tuple[Code, ...] = (
    UNEXPECTED_INIT,
    SORT_MISMATCH,
    WRONG_KIND,
    USELESS_OPTION,
    MISSING_FAMILY,
    MISSING_MATRIX,
)
"""What a wrong role brings along."""


@immutable
class Marks:
    """How much a scope held before a declaration's role was checked."""

    diagnostics: int
    equations: int

    @staticmethod
    def of(scope: Scope) -> Marks:
        return Marks(len(scope.diagnostics), len(scope.equations))


def resolve_role(decl: MorphismDecl, before: Marks, would_fit: WouldFit, scope: Scope) -> bool:
    """Leave one error of those that one wrong role, family or order of the spaces gives, with the fixes that fix it;
    True where it is left open what arrow was meant."""
    found = scope.diagnostics[before.diagnostics :]
    errors = [item for item in found if item.code.severity is Severity.ERROR]
    wrong = [item for item in scope.equations[before.equations :] if item.wrong and item.code is ROLE_MISMATCH]
    if not errors and not wrong:
        return False
    role = find_role(decl.options)
    others = cache(lambda: _other_roles(decl, would_fit, scope))
    swapped = cache(lambda: would_fit(_swapped(decl), scope))
    disagreeing = [item for item in errors if _disagrees(item)]
    if role is not None and isinstance(role.value, Word) and len(disagreeing) + len(wrong) > 1:
        left_out = set(map(id, disagreeing))
        kept = [item for item in found if id(item) not in left_out and item.code not in _FOLLOWING]
        del scope.equations[before.equations :]
        spaces = bool(wrong) or any(item.code is ROLE_MISMATCH for item in disagreeing)
        report = _at_role(decl, role.value, disagreeing, spaces=spaces, others=others(), scope=scope)
        scope.diagnostics[before.diagnostics :] = [report, *kept]
        return True
    if any(item.code is ROLE_MISMATCH for item in errors):
        found = [item for item in found if item.code not in _FOLLOWING]
    if any(_foreign(item) for item in errors):
        found = [item for item in found if item.code is not MISSING_FAMILY]
    if any(item.code is FAMILY_MISMATCH for item in errors):
        found = [item for item in found if item.code is not FAMILY_ARGUMENTS]
    fixed = [_with_fixes(item, decl, role, others, swapped, scope) for item in found]
    scope.diagnostics[before.diagnostics :] = fixed
    # a family that would fit other spaces or another role: either may be what is wrong
    either = any(new.code in _EITHER and new is not old for new, old in zip(fixed, found, strict=True))
    return either or bool(wrong) or any(item.code in _DOUBTFUL for item in errors)


def _disagrees(item: Diagnostic) -> bool:
    return item.code in (ROLE_MISMATCH, UNEXPECTED_INIT, SORT_MISMATCH, WRONG_KIND) or _foreign(item)


def _foreign(item: Diagnostic) -> bool:
    """An option that another role has, not a misspelt one."""
    return item.code is UNKNOWN_OPTION and not any(fix.preferred for fix in item.fixes)


def _at_role(
    decl: MorphismDecl,
    role: Word,
    disagreeing: Sequence[Diagnostic],
    *,
    spaces: bool,
    others: Sequence[str],
    scope: Scope,
) -> Diagnostic:
    assert decl.options is not None
    places = {item.place.span for item in disagreeing if _foreign(item) and isinstance(item.place, Origin)}
    against = ["these spaces"] if spaces else []
    against += [f"`{option.key.text}`" for option in decl.options.items if option.key.span in places]
    if decl.init is not None and not all(_foreign(item) or item.code is ROLE_MISMATCH for item in disagreeing):
        against.append("what follows `~`")
    listed = " and ".join(part for part in (", ".join(against[:-1]), against[-1]) if part)
    message = f"role `{role.text}` does not go with {listed}" + (f"; did you mean `{others[0]}`?" if others else "")
    return Diagnostic(ROLE_MISMATCH, message, scope.origin(role.span), fixes=_role_fixes(role, others, scope))


def _role_fixes(role: Word, others: Sequence[str], scope: Scope) -> tuple[Fix, ...]:
    return tuple(Fix(f"Change the role to `{other}`", (Edit(scope.origin(role.span), other),)) for other in others)


def _other_roles(decl: MorphismDecl, would_fit: WouldFit, scope: Scope) -> list[str]:
    """The roles with which the declaration would be right."""
    own = find_role(decl.options)
    named = own.value.text if own is not None and isinstance(own.value, Word) else "kernel"
    fitting = [name for name in ROLES if name != named and would_fit(_with_role(decl, name), scope)]
    return fitting[:MOST_ROLES]


def _with_role(decl: MorphismDecl, name: str) -> MorphismDecl:
    items = decl.options.items if decl.options is not None else ()
    own = find_role(decl.options)
    role = Option(Name("role", decl.span), Word(name, decl.span), decl.span)
    kept = [item for item in items if item is not own]
    return replace(decl, options=Options((role, *kept), decl.span))


def _swapped(decl: MorphismDecl) -> MorphismDecl:
    return replace(decl, domain=decl.codomain, codomain=decl.domain)


# ---------------------------------------------------------------- fixes


def _with_fixes(
    item: Diagnostic,
    decl: MorphismDecl,
    role: Option | None,
    others: Callable[[], Sequence[str]],
    swapped: Callable[[], bool],
    scope: Scope,
) -> Diagnostic:
    """A diagnostic with the fixes that the whole declaration shows: other sides, another role."""
    if item.code in _EITHER:
        more = _swap(decl, scope) if swapped() else ()
        if role is not None and isinstance(role.value, Word):
            more = (*_role_fixes(role.value, others(), scope), *more)
        return replace(item, fixes=(*item.fixes, *more)) if more else item
    if item.code is MISSING_FAMILY and decl.options is None:
        named = [name for name in others() if name in ("embed", "linear")]
        edits = [(name, Edit(scope.origin(decl.codomain.span), f" [role={name}]", "after")) for name in named]
        return replace(item, fixes=(*item.fixes, *(Fix(f"Add `[role={name}]`", (edit,)) for name, edit in edits)))
    if _foreign(item) and role is None and decl.options is not None:
        place = scope.origin(decl.options.items[0].span)
        fixes = tuple(Fix(f"Add `role={name}`", (Edit(place, f"role={name}, ", "before"),)) for name in others())
        return replace(item, fixes=(*item.fixes, *fixes))
    return item


def _swap(decl: MorphismDecl, scope: Scope) -> tuple[Fix, ...]:
    edits = (
        Edit(scope.origin(decl.domain.span), written(decl.codomain)),
        Edit(scope.origin(decl.codomain.span), written(decl.domain)),
    )
    return (Fix("Swap the domain and the codomain", edits),)
