"""`scan`: which factors are the state, and in which direction the sequence is read (docs/reference.md#scans)."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.arrows.combinator_arguments import Call, Sorted, bad_call, nothing, sort_arguments, word_of
from qvr_core.semantics.arrows.uncounted import refuse_states
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.scope.bounds import joined
from qvr_core.semantics.scope.scope import UNKNOWN, ArrowEntry, FamilyEntry, show
from qvr_core.semantics.scope.sequences import as_sequence
from qvr_core.semantics.types.arrow_text import arrow_text, leading_name, plain
from qvr_core.semantics.types.codes import (
    INFERRED_DIRECTION,
    SCAN_MISMATCH,
    SEQUENCE_MISMATCH,
    UNSUPPORTED,
    USELESS_OPTION,
)
from qvr_core.semantics.types.density import beside, scanned
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.types.model.arrows import Arrow, Fan, Scan
from qvr_core.semantics.types.spaces import (
    Linear,
    Named,
    Product,
    Real,
    Seq,
    Space,
    factors_of,
    has_seq,
    has_terms,
    is_finite,
    is_real,
    is_unknown,
    item_of,
    width,
)
from qvr_core.semantics.types.subspace import fit
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.arrows import ArrowExpr, ArrowRef
from qvr_core.syntax.tree.names import Name, Span

_BACKWARD = ("backward", "bwd", "reverse", "right_to_left")
_FORWARD = ("forward", "fwd", "left_to_right")
_WORDS = COMBINATORS["scan"].words


def check_scan(call: Call) -> Arrow:
    """`scan(cell, emit=…, direction=…, init=…)`; of a replicated cell the fan of its scans."""
    found = sort_arguments(call, words=tuple(_WORDS))
    if found is None:
        return nothing(call)
    if found.arrow is None:
        return bad_call(call, "`scan` takes a cell: scan(cell)")
    inner = plain(found.arrow)
    entry = call.scope.lookup(inner.name.text) if isinstance(inner, ArrowRef) else None
    if isinstance(entry, FamilyEntry) and isinstance(inner, ArrowRef):
        copies = [ArrowRef(Name(copy, inner.name.span)) for copy in entry.copies]
        first, *others = [_scan(call, found, copy, hint=index == 0) for index, copy in enumerate(copies)]
        return _side_by_side(call, entry.name, [first, *others])
    return _scan(call, found, found.arrow, hint=True)


def _scan(call: Call, found: Sorted, expr: ArrowExpr, *, hint: bool) -> Arrow:
    cell = call.check(expr, call.scope)
    refuse_states(cell, call.scope)
    emit = word_of(found, "emit", _WORDS["emit"], call)
    start = word_of(found, "init", _WORDS["init"], call)
    direction = word_of(found, "direction", _WORDS["direction"], call)
    backward = direction == "backward"
    if start == "learned":
        _require_real_state(call, found, cell)
    inferred = "direction" not in found.words and _reads_backward(expr, call.scope.let_name)
    item, state = _split(call, expr, cell)
    if inferred and hint:
        _hint_direction(call, expr)
    return Scan(
        domain=Named(Seq(item.space), "Seq ?") if is_unknown(item.space) else as_sequence(item),
        codomain=as_sequence(state) if emit == "all" else state,
        sort=cell.sort,
        origin=call.scope.origin(call.span),
        density=scanned(cell.density, state.space, emit_all=emit == "all"),
        cell=cell,
        item=item,
        state=state,
        emit_all=emit == "all",
        backward=backward or inferred,
        inferred=inferred,
        learned_init=start == "learned",
    )


def _require_real_state(call: Call, found: Sorted, cell: Arrow) -> None:
    """A state of finite sets alone begins at their first elements: there is no number to learn."""
    if not is_finite(cell.codomain.space):
        return
    span = found.words["init"][1]
    message = f"`init` has no effect here: the state {cell.codomain.written} is finite and starts at its first element"
    fixes = (Fix("Change to `zeros`", (Edit(call.scope.origin(span), "zeros"),), True),)
    call.scope.report(USELESS_OPTION, message, span, fixes=fixes)


def _side_by_side(call: Call, family: str, scans: Sequence[Arrow]) -> Fan:
    spaces = [scan.codomain for scan in scans]
    return Fan(
        domain=scans[0].domain,
        codomain=joined(spaces, call.span, call.scope),
        sort=scans[0].sort,
        origin=call.scope.origin(call.span),
        density=beside([scan.density for scan in scans]),
        branches=tuple(scans),
        replicated=family,
    )


# ---------------------------------------------------------------- direction


def _says(name: str | None) -> str | None:
    folded = (name or "").lower()
    if folded.startswith(_BACKWARD):
        return "backward"
    return "forward" if folded.startswith(_FORWARD) else None


def _reads_backward(expr: ArrowExpr, let_name: str | None) -> bool:
    return (_says(leading_name(expr)) or _says(let_name)) == "backward"


def _hint_direction(call: Call, expr: ArrowExpr) -> None:
    cell = leading_name(expr)
    name = cell if _says(cell) is not None else call.scope.let_name
    end = Span(call.span.end - 1, call.span.end - 1)
    call.scope.report(
        INFERRED_DIRECTION,
        f"the name `{name}` says that this scan reads the sequence from its end",
        call.name.span,
        fixes=(Fix("Write `direction=backward`", (Edit(call.scope.origin(end), ", direction=backward"),)),),
    )


# ---------------------------------------------------------------- item and state


def _split(call: Call, expr: ArrowExpr, cell: Arrow) -> tuple[Named, Named]:
    """The item that a cell reads at each position, and its state."""
    domain, codomain = cell.domain.space, cell.codomain.space
    if is_unknown(domain) or is_unknown(codomain):
        return UNKNOWN, cell.codomain
    text = arrow_text(expr)
    if has_seq(domain) or has_seq(codomain):
        message = f"the cell of a scan works on one element at a time, but `{text}` reads {show(cell.domain)}"
        call.scope.report(SEQUENCE_MISMATCH, message, expr.span)
        return UNKNOWN, UNKNOWN
    if has_terms(domain):
        message = f"`{text}` reads a term, {show(cell.domain)}, and there are no sequences of terms yet"
        call.scope.report(UNSUPPORTED, message, expr.span)
        return UNKNOWN, UNKNOWN
    factors = factors_of(domain)
    count = len(factors_of(codomain))
    cut = len(factors) - count
    if cut < 1 or _clearly_wrong(codomain, domain, cut):
        by_width = _cut_by_width(domain, codomain)
        if by_width is not None:
            return by_width
    if cut < 1:
        message = f"`{text}` reads {show(cell.domain)} and gives {show(cell.codomain)}: "
        message += "the domain of a cell is the item and then the state"
        call.scope.report(SCAN_MISMATCH, message, expr.span)
        return UNKNOWN, UNKNOWN
    item, state = _slice(domain, 0, cut), _slice(domain, cut, len(factors))
    if (swapped := _state_first(call, domain, codomain, count)) is not None:
        _report_order(call, expr, cell, *swapped)
        return swapped
    if not call.scope.require_fit(
        cell.codomain, state, expr.span, SCAN_MISMATCH, f"`{text}` gives", "the state that it reads is"
    ):
        return item, UNKNOWN
    # the labels of `return (h: h2, c: c2)` name the factors of the result
    return item, cell.codomain if fit(codomain, state.space).problem is None else state


def _state_first(call: Call, domain: Space, codomain: Space, count: int) -> tuple[Named, Named] | None:
    """Item and state of a cell that reads them in the wrong order; None where it does not."""
    total = len(factors_of(domain))
    if not _clearly_wrong(codomain, domain, total - count):
        return None
    item, state = _slice(domain, count, total), _slice(domain, 0, count)
    given = UNKNOWN if call.given is None else call.given
    return (item, state) if _fits(codomain, state.space) and _fits(item_of(given.space), item.space) else None


def _fits(given: Space, wanted: Space) -> bool:
    result = fit(given, wanted)
    return result.problem is None and result.widths != "wrong"


def _report_order(call: Call, expr: ArrowExpr, cell: Arrow, item: Named, state: Named) -> None:
    inner = plain(expr)
    order = f"{item.written} * {state.written}"
    message = f"`{arrow_text(expr)}` reads {cell.domain.written}, the state before the item; "
    message += f"a cell reads the item first and the state second: `{order}`"
    fixes: tuple[Fix, ...] = ()
    related: tuple[Related, ...] = ()
    if isinstance(inner, ArrowRef):
        name = inner.name.text
        related = (Related(f"`{name}` is declared here", DeclarationSite(name)),)
        entry = call.scope.lookup(name)
        if isinstance(entry, ArrowEntry) and entry.kind == "morphism":
            fixes = (Fix(f"Change to `{order}`", (Edit(DeclarationSite(name, "domain"), order),)),)
    call.scope.report(SCAN_MISMATCH, message, expr.span, related, fixes)


def _clearly_wrong(codomain: Space, domain: Space, cut: int) -> bool:
    state = _slice(domain, cut, len(factors_of(domain))).space
    result = fit(codomain, state)
    return result.problem is not None or result.widths == "wrong"


def _cut_by_width(domain: Space, codomain: Space) -> tuple[Named, Named] | None:
    wanted = width(codomain)
    factors = factors_of(domain)
    if isinstance(wanted, Linear) or not is_real(codomain):
        return None
    for cut in range(len(factors) - 1, 0, -1):
        state = _slice(domain, cut, len(factors))
        total = width(state.space)
        if not isinstance(total, Linear) and total == wanted and fit(codomain, state.space).problem is None:
            return _slice(domain, 0, cut), state
    total = width(domain)
    if len(factors) == 1 and isinstance(domain, Real) and not isinstance(total, Linear) and total > wanted:
        item = Real((int(total) - int(wanted),))
        return Named(item, structure(item)), Named(codomain, structure(codomain))
    return None


def _slice(space: Space, start: int, stop: int) -> Named:
    if not isinstance(space, Product):
        return Named(space, structure(space))
    names, factors = space.names[start:stop], space.factors[start:stop]
    words = [name or structure(factor) for name, factor in zip(names, factors, strict=True)]
    if len(factors) == 1:
        return Named(factors[0], words[0])
    return Named(Product(factors, names), " * ".join(words))
