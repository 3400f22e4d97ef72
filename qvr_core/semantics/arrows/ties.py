"""`[tie=tok_embed]`: a head whose matrix is that of a table or of a linear map."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.arrows.arrow_names import arrow_of
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.family_heads import raw_width
from qvr_core.semantics.scope.scope import ArrowEntry, Scope, show
from qvr_core.semantics.types.codes import INVALID_OPTION
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.types.model.arrows import Damaged, Tie
from qvr_core.semantics.types.spaces import Finite, Linear, Named, factors_of, is_finite, is_unknown, item_of, width
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import CallValue, Option, Word


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
    transposed = isinstance(value, CallValue)
    word = _argument(value) if isinstance(value, CallValue) else value
    if not isinstance(word, Word):
        scope.report(INVALID_OPTION, "`transpose` takes a linear map by its name: `tie=transpose(f)`", value.span)
        return None
    name = Name(word.text, word.span)
    if isinstance(arrow_of(name, scope), Damaged):
        return None
    entry = scope.lookup(name.text)
    problem = _unfit(entry)
    if problem is None and transposed and isinstance(entry, ArrowEntry) and entry.role == "embed":
        problem = f"the table `{name.text}` has a row for each element already"
    if problem is not None:
        fixes = ()
        if transposed and problem.endswith("already"):
            fixes = (Fix(f"Change to `{name.text}`", (Edit(scope.origin(value.span), name.text),)),)
        scope.report(INVALID_OPTION, problem, word.span, _declared(name.text, scope), fixes)
        return None
    assert isinstance(entry, ArrowEntry)
    reads, gives = entry.domain, entry.codomain
    if transposed or entry.role == "embed":
        reads, gives = gives, reads
    written = f"transpose({name.text})" if transposed else name.text
    if not _fits(written, reads, gives, domain, codomain, family, given, value.span, scope):
        return None
    return Tie(entry.name, transposed)


def _argument(value: CallValue) -> object:
    only = value.args[0] if len(value.args) == 1 else None
    return None if only is None or only.key is not None else only.value


def _unfit(entry: object) -> str | None:
    """Why an arrow has no matrix to share."""
    assert isinstance(entry, ArrowEntry)
    what = f"`{entry.name}`"
    if entry.kind != "morphism" or entry.role not in ("embed", "linearmap"):
        said = f"role `{entry.role}`" if entry.kind == "morphism" else f"a {entry.kind}"
        return f"`tie` names a morphism of role `embed` or `linear`, but {what} is {said}"
    if entry.weights:
        return f"the weights of {what} are latents with a prior, which a head does not share"
    return None


def _fits(
    written: str,
    reads: Named,
    gives: Named,
    domain: Named,
    codomain: Named,
    family: Family | None,
    given: Mapping[str, object],
    place: Span,
    scope: Scope,
) -> bool:
    """Whether a matrix from `reads` to `gives` goes from `domain` to the parameters of the family."""
    name = written.removeprefix("transpose(").removesuffix(")")
    related = _declared(name, scope)
    have, want = _size(gives), _parameters(family, codomain, given)
    fixes = _other_way(written, reads, gives, domain, want, place, scope)
    rows, columns = _size(reads), width(domain.space)
    sizes = [have, want, rows, columns]
    if any(not isinstance(size, int) for size in sizes):
        return scope.require_fit(
            reads, domain, place, INVALID_OPTION, f"the matrix of `{written}` reads", f"`{scope.owner}` reads", related
        )
    if (rows, have) == (columns, want):
        return True
    drawn = f"a {family.name}" if family is not None else "a table"
    message = (
        f"the matrix of `{written}` goes from {rows} numbers to {have}, but {drawn} over {show(codomain)} wants one "
        f"from {columns} to {want}"
    )
    scope.report(INVALID_OPTION, message, place, related, fixes)
    return False


def _size(side: Named) -> int | None:
    """Elements of a finite set, numbers of a real space; None where they are not known."""
    if is_unknown(side.space):
        return None
    if is_finite(side.space):
        found = 1
        for factor in factors_of(item_of(side.space)):
            size = factor.size if isinstance(factor, Finite) else None
            if not isinstance(size, int):
                return None
            found *= size
        return found
    size = width(item_of(side.space))
    return None if isinstance(size, Linear) else int(size)


def _parameters(family: Family | None, codomain: Named, given: Mapping[str, object]) -> int | None:
    if family is None:
        return _size(codomain)
    try:
        return raw_width(family, item_of(codomain.space), dict(given))
    except (TypeError, ValueError):
        return None


def _other_way(
    written: str, reads: Named, gives: Named, domain: Named, want: int | None, place: Span, scope: Scope
) -> tuple[Fix, ...]:
    """The fix that turns the matrix round, where that fits."""
    if is_finite(reads.space) or is_finite(gives.space) or (_size(gives), _size(reads)) != (_size(domain), want):
        return ()
    bare = written.removeprefix("transpose(").removesuffix(")")
    text = bare if written != bare else f"transpose({bare})"
    return (Fix(f"Change to `{text}`", (Edit(scope.origin(place), text),)),)


def _declared(name: str, scope: Scope) -> tuple[Related, ...]:
    return () if name in scope.local else (Related(f"`{name}` is declared here", DeclarationSite(name)),)
