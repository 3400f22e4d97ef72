"""What a program returns, and whether that fits its codomain (docs/reference.md#what-a-program-returns)."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.arithmetic.application import fits
from qvr_core.semantics.arithmetic.broadcasting import flattened
from qvr_core.semantics.arithmetic.factor_order import check_order, factor_names
from qvr_core.semantics.language.spelling import candidates
from qvr_core.semantics.scope.environment import Binding
from qvr_core.semantics.scope.predictions import report_predicted
from qvr_core.semantics.scope.scope import Scope, show
from qvr_core.semantics.types.diagnostics import Related
from qvr_core.semantics.types.program_codes import PATTERN_MISMATCH, RETURN_MISMATCH, USED_BEFORE_BOUND, WRONG_RETURN
from qvr_core.semantics.types.spaces import (
    Named,
    Product,
    Space,
    Unknown,
    factors_of,
    has_seq,
    item_of,
    product,
    sequence_of,
)
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import ReturnItem, ReturnStep


@immutable
class Returned:
    """The returned names with their labels, and the space of what is returned ('?' where data decides)."""

    items: tuple[tuple[str | None, str], ...]
    tupled: bool
    given: Named
    codomain: Named


def check_return(
    step: ReturnStep,
    bindings: Mapping[str, Binding],
    inner: Mapping[str, Binding],
    codomain: Named,
    uses_input: bool,
    scope: Scope,
) -> Returned:
    """The `return` of a program; reports unbound names and a misfit of a value that comes through the input."""
    found = [_binding(item.name, bindings, inner, scope) for item in step.items]
    _check_labels(step, scope)
    items = tuple((None if item.label is None else item.label.text, item.name.text) for item in step.items)
    given = _given(step, found)
    reported = len(scope.diagnostics)
    effective = _effective(step, found, given, codomain, uses_input, scope)
    if uses_input and step.tupled and len(scope.diagnostics) == reported:
        _check_order(step, found, bindings, codomain, scope)
    return Returned(items, step.tupled, given, effective)


def _binding(name: Name, bindings: Mapping[str, Binding], inner: Mapping[str, Binding], scope: Scope) -> Binding | None:
    binding = bindings.get(name.text)
    if binding is None and name.text in inner:
        related = (Related(f"`{name.text}` is bound here", inner[name.text].origin),)
        message = f"`{name.text}` is bound only inside `marginalize`, which sums it out"
        scope.report(USED_BEFORE_BOUND, message, name.span, related)
    elif binding is None:
        scope.unknown(name, "variable", [known for known in candidates(bindings) if known])
    elif binding.predicted:
        report_predicted(name.text, scope.origin(name.span), binding, scope)
    return binding


def _check_labels(step: ReturnStep, scope: Scope) -> None:
    seen: set[str] = set()
    for item in step.items:
        name = item.label or item.name
        if name.text in seen:
            scope.report(PATTERN_MISMATCH, f"two factors are called `{name.text}`", name.span)
        seen.add(name.text)


def _check_order(
    step: ReturnStep, found: list[Binding | None], bindings: Mapping[str, Binding], codomain: Named, scope: Scope
) -> None:
    """Warn of labels, or else of declared objects, that are the codomain's in another order."""
    wanted = factor_names(codomain)
    if len(wanted) != len(step.items):
        return
    given = [_object(item, binding, bindings, wanted) for item, binding in zip(step.items, found, strict=True)]
    places = [
        (item.span, item.name.text if item.label is None else f"{item.label.text}: {item.name.text}")
        for item in step.items
    ]
    check_order(given, wanted, places, "the program returns", scope)


def _object(item: ReturnItem, value: Binding | None, bindings: Mapping[str, Binding], wanted: list[str]) -> str:
    """The object of a returned value: the factor or the input that its label names, else what it was declared as."""
    if item.label is not None:
        label = item.label.text
        if factor := next((name for name in wanted if name.lower() == label.lower()), None):
            return factor
        labelled = bindings.get(label)
        value = labelled if labelled is not None and labelled.kind == "input" else value
    return "" if value is None else value.named.written.removeprefix("Seq ")


def _given(step: ReturnStep, found: list[Binding | None]) -> Named:
    spaces = [_space(binding) for binding in found]
    if len(spaces) == 1 and not step.tupled:
        binding = found[0]
        text = structure(spaces[0]) if binding is None or binding.type.indexed else binding.named.written
        return Named(spaces[0], text)
    named: list[tuple[str | None, Space]] = [
        ((item.label or item.name).text, space) for item, space in zip(step.items, spaces, strict=True)
    ]
    texts = [structure(s) if b is None else b.named.written for b, s in zip(found, spaces, strict=True)]
    joined = product(named)
    return Named(sequence_of(joined) if has_seq(joined) else joined, " * ".join(texts))


def _space(binding: Binding | None) -> Space:
    if binding is None or binding.kind in ("chart", "deduction", "function"):
        return Unknown()
    space = flattened(binding.type)
    return Unknown() if space is None else space


def _effective(
    step: ReturnStep, found: list[Binding | None], given: Named, codomain: Named, uses_input: bool, scope: Scope
) -> Named:
    """The codomain as it is: declared, lifted to sequences, or whatever a statistical program returns."""
    known = not isinstance(given.space, Unknown)
    if not uses_input:
        return given if known else codomain
    rows = all(binding is not None and binding.type.rows for binding in found)
    wanted = codomain
    if has_seq(given.space) and not has_seq(codomain.space) and not isinstance(codomain.space, Unknown):
        wanted = Named(sequence_of(codomain.space), f"Seq {codomain.written}")
    span = Span(step.items[0].name.span.start, step.items[-1].name.span.end)
    if not rows:
        if known and not fits(given.space, wanted.space):
            message = f"what is returned, {show(given)}, is shared by all rows and is no `{codomain.written}`"
            scope.report(RETURN_MISMATCH, message, span)
        return _named_factors(given, wanted) if known and fits(given.space, wanted.space) else given
    if _each_fits(found, given, wanted):
        return wanted
    gives = f"`{step.items[0].name.text}` is" if len(step.items) == 1 else "what is returned is"
    if has_seq(given.space):
        plain, item = (Named(item_of(n.space), n.written.removeprefix("Seq ")) for n in (given, codomain))
        fit = scope.require_fit(plain, item, span, WRONG_RETURN, gives, "the program returns")
    else:
        fit = scope.require_fit(given, wanted, span, WRONG_RETURN, gives, "the program returns")
    if not fit and len(factors_of(item_of(given.space))) != len(factors_of(item_of(wanted.space))):
        # which factor got lost is not known, nor are their names: whoever takes one is not to blame
        return Named(Unknown(), wanted.written)
    return _named_factors(given, wanted)


def _each_fits(found: list[Binding | None], given: Named, wanted: Named) -> bool:
    """True where each element of a plate fits, though all of them together do not."""
    if fits(given.space, wanted.space) or not any(binding is not None and binding.type.indexed for binding in found):
        return False
    elements = [(None, binding.type.space) for binding in found if binding is not None and binding.type.space]
    return len(elements) == len(found) and fits(product(elements), wanted.space)


def _named_factors(given: Named, wanted: Named) -> Named:
    """The codomain under the labels of `return (h: h2, c: c2)`, so that `.h` takes one."""
    have, want = given.space, wanted.space
    if isinstance(have, Product) and isinstance(want, Product) and len(have.factors) == len(want.factors):
        return Named(Product(want.factors, have.names), wanted.written)
    return wanted
