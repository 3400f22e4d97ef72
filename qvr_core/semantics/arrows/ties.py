"""`[tie=tok_embed]`: a head whose matrix is that of a table or of a linear map."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from qvr_core.semantics.arrows.arrow_names import arrow_of
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.family_heads import raw_width
from qvr_core.semantics.scope.scope import ArrowEntry, Scope, show
from qvr_core.semantics.types.codes import INVALID_OPTION
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.types.model.arrows import Damaged, Tie
from qvr_core.semantics.types.spaces import Finite, Linear, Named, factors_of, is_finite, is_unknown, item_of, width
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import CallValue, Option, Word


@immutable
class _Matrix:
    """The matrix of an arrow as `tie=` names it: what it reads and gives, and the fix that turns it round."""

    arrow: str
    transposed: bool
    reads: Named
    gives: Named
    place: Span

    @property
    def written(self) -> str:
        return f"transpose({self.arrow})" if self.transposed else self.arrow

    def turned(self, scope: Scope) -> tuple[Fix, ...]:
        text = self.arrow if self.transposed else f"transpose({self.arrow})"
        return (Fix(f"Change to `{text}`", (Edit(scope.origin(self.place), text),)),)


def read_tie(
    option: Option,
    family: Family | None,
    domain: Named,
    codomain: Named,
    given: Mapping[str, object],
    scope: Scope,
) -> Tie | None:
    """What `tie=f` or `tie=transpose(f)` names; None, reported, where its matrix does not go from `domain` to what a
    head of `family` into `codomain` needs."""
    value = option.value
    assert value is not None
    word = _argument(value) if isinstance(value, CallValue) else value
    if not isinstance(word, Word):
        scope.report(INVALID_OPTION, "`transpose` takes a linear map by its name: `tie=transpose(f)`", value.span)
        return None
    matrix = _matrix(word, isinstance(value, CallValue), value.span, scope)
    if matrix is None or not _fits(matrix, family, domain, codomain, given, scope):
        return None
    return Tie(matrix.arrow, matrix.transposed)


def _argument(value: CallValue) -> object:
    only = value.args[0] if len(value.args) == 1 else None
    return None if only is None or only.key is not None else only.value


def _matrix(word: Word, transposed: bool, place: Span, scope: Scope) -> _Matrix | None:
    """The matrix of the arrow that a word names; None, reported, where it has none to share."""
    if isinstance(arrow_of(Name(word.text, word.span), scope), Damaged):
        return None
    entry = scope.lookup(word.text)
    assert isinstance(entry, ArrowEntry)
    what, table = f"`{entry.name}`", entry.role == "embed"
    problem, fixes = None, ()
    sides = (entry.codomain, entry.domain) if transposed or table else (entry.domain, entry.codomain)
    matrix = _Matrix(entry.name, transposed, *sides, place)
    if entry.kind != "morphism" or entry.role not in ("embed", "linearmap"):
        said = f"role `{entry.role}`" if entry.kind == "morphism" else f"a {entry.kind}"
        problem = f"`tie` names a morphism of role `embed` or `linear`, but {what} is {said}"
    elif entry.weights:
        problem = f"the weights of {what} are latents with a prior, which a head does not share"
    elif transposed and table:
        problem, fixes = f"the table {what} has a row for each element already", matrix.turned(scope)
    if problem is not None:
        scope.report(INVALID_OPTION, problem, word.span, _declared(word.text, scope), fixes)
        return None
    return matrix


def _fits(
    matrix: _Matrix, family: Family | None, domain: Named, codomain: Named, given: Mapping[str, object], scope: Scope
) -> bool:
    """Whether a matrix goes from `domain` to the parameters of the family."""
    related = _declared(matrix.arrow, scope)
    have, want = (_size(matrix.reads), _size(matrix.gives)), (_size(domain), _parameters(family, codomain, given))
    if None in (*have, *want):
        reads = f"the matrix of `{matrix.written}` reads"
        own = f"`{scope.owner}` reads"
        return scope.require_fit(matrix.reads, domain, matrix.place, INVALID_OPTION, reads, own, related)
    if have == want:
        return True
    drawn = f"a {family.name}" if family is not None else "a table"
    message = (
        f"the matrix of `{matrix.written}` goes from {have[0]} numbers to {have[1]}, but {drawn} over {show(codomain)} "
        f"wants one from {want[0]} to {want[1]}"
    )
    a_table = is_finite(matrix.reads.space) or is_finite(matrix.gives.space)
    fixes = matrix.turned(scope) if have[::-1] == want and not a_table else ()
    scope.report(INVALID_OPTION, message, matrix.place, related, fixes)
    return False


def _size(side: Named) -> int | None:
    """Elements of a finite set, numbers of a real space; None where they are not known."""
    if is_unknown(side.space):
        return None
    if is_finite(side.space):
        sizes = [factor.size for factor in factors_of(item_of(side.space)) if isinstance(factor, Finite)]
        known = [size for size in sizes if isinstance(size, int)]
        return prod(known) if len(known) == len(sizes) else None
    size = width(item_of(side.space))
    return None if isinstance(size, Linear) else int(size)


def _parameters(family: Family | None, codomain: Named, given: Mapping[str, object]) -> int | None:
    """Numbers that a head of a family makes of its input."""
    if family is None:
        return _size(codomain)
    try:
        return raw_width(family, item_of(codomain.space), given)
    except (TypeError, ValueError):
        return None


def _declared(name: str, scope: Scope) -> tuple[Related, ...]:
    return () if name in scope.local else (Related(f"`{name}` is declared here", DeclarationSite(name)),)
