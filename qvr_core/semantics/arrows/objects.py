"""Object expressions: from the tree to spaces (docs/reference.md#objects-and-dimensions)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from qvr_core.semantics.scope.bounds import MOST_ENTRIES, bounded, bounded_product
from qvr_core.semantics.scope.scope import ArrowEntry, DamagedEntry, DataTypeEntry, ObjectEntry, Scope
from qvr_core.semantics.types.codes import (
    EMPTY_SIZE,
    HUGE_SIZE,
    INVALID_OPTION,
    INVALID_SPACE,
    UNKNOWN_OPTION,
    UNSUPPORTED,
    WRONG_KIND,
)
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Place, Related
from qvr_core.semantics.types.spaces import (
    Constrained,
    Dim,
    Finite,
    Known,
    Linear,
    Named,
    Real,
    Seq,
    Space,
    Unknown,
    add,
    has_seq,
    has_terms,
    is_unknown,
    width,
)
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import (
    CoproductExpr,
    EnumExpr,
    FinSetExpr,
    ObjectExpr,
    ObjectRef,
    ParenObject,
    ProductExpr,
    SeqExpr,
    Size,
    SpaceExpr,
)
from qvr_core.syntax.tree.options import Number, Options

BOUNDED = ("Real", "Ordered", "Nat")
"""The spaces that take bounds."""
LARGEST_SIZE = 10**11
"""A vector of so many numbers in single precision takes 400 GB: a warning, where `bounds.MOST_ENTRIES` is an error."""


def check_object_expr(expr: ObjectExpr, scope: Scope, *, terms: bool = False) -> Named:
    """The space that an object expression denotes, with the user's spelling; reports what is wrong with it.

    A template's parameters are spelt as what a call gives for them.  With `terms` a factor may be a data type.
    """
    before = scope.terms
    scope.terms = terms
    space = bounded(_space(expr, scope), expr.span, scope)
    scope.terms = before
    return Named(space, written(expr, _given(scope)))


def _given(scope: Scope) -> Mapping[str, str]:
    """How the arguments of a template's call are written."""
    if not scope.local and not scope.local_sizes:
        return {}
    entries = ((name, entry.space.written) for name, entry in scope.local.items() if isinstance(entry, ObjectEntry))
    sizes = ((name, str(int(size))) for name, size in scope.local_sizes.items() if isinstance(size, int))
    return dict((*entries, *sizes))


def declared_space(expr: ObjectExpr, scope: Scope) -> Space:
    """The space of `object scope.owner : expr`: a finite set is made *this* set."""
    space = bounded(_space(expr, scope), expr.span, scope)
    while isinstance(expr, ParenObject):
        expr = expr.inner
    if isinstance(space, Finite) and not isinstance(expr, ObjectRef):
        labels = space.labels if space.labels is not None else scope.globals.labels(scope.owner)
        return Finite(space.size, scope.owner, labels, space.parts)
    return space


def alias_of(expr: ObjectExpr) -> str | None:
    """The name that an object is an alias of."""
    while isinstance(expr, ParenObject):
        expr = expr.inner
    return expr.name.text if isinstance(expr, ObjectRef) else None


def written(expr: ObjectExpr, called: Mapping[str, str] = MappingProxyType({})) -> str:
    """An object expression as the user wrote it, in canonical spacing; names in `called` stand for another text."""
    match expr:
        case FinSetExpr(size=size):
            return f"FinSet {_size_word(size, called)}"
        case EnumExpr(labels=labels):
            return "{" + ", ".join(label.text for label in labels) + "}"
        case SpaceExpr(kind=kind, sizes=sizes, options=options):
            sizes = () if kind.text == "Nat" else sizes
            return " ".join([kind.text, *(_size_word(size, called) for size in sizes)]) + _options_words(options)
        case SeqExpr(item=item):
            return f"Seq {written(item, called)}"
        case ObjectRef(name=name):
            return called.get(name.text, name.text)
        case ParenObject(inner=inner):
            return f"({written(inner, called)})"
        case ProductExpr(factors=factors):
            return " * ".join(written(factor, called) for factor in factors)
        case CoproductExpr(parts=parts):
            return " + ".join(written(part, called) for part in parts)


def _size_word(size: Size, called: Mapping[str, str]) -> str:
    return "_" if size.value is None else called.get(str(size.value), str(size.value))


def _options_words(options: Options | None) -> str:
    if options is None:
        return ""
    items = [
        f"{item.key.text}={item.value.text}" if isinstance(item.value, Number) else item.key.text
        for item in options.items
    ]
    return f" [{', '.join(items)}]"


def _space(expr: ObjectExpr, scope: Scope) -> Space:
    match expr:
        case ObjectRef(name=name):
            return _reference(name, scope)
        case FinSetExpr(size=size):
            return Finite(_size(size, scope))
        case SpaceExpr():
            return _continuous(expr, scope)
        case ProductExpr(factors=factors):
            return _product(factors, expr.span, scope)
        case ParenObject(inner=inner):
            return _space(inner, scope)
        case EnumExpr():
            return _enumeration(expr, scope)
        case SeqExpr(item=item):
            return _sequence(expr, _space(item, scope), scope)
        case CoproductExpr():
            return _coproduct(expr, scope)


def _reference(name: Name, scope: Scope) -> Space:
    entry = scope.lookup(name.text)
    if isinstance(entry, ObjectEntry):
        return entry.space.space
    if entry is None:
        scope.unknown(name, "object")
    elif isinstance(entry, DataTypeEntry) and scope.terms:
        return entry.type.space.space
    elif isinstance(entry, DataTypeEntry):
        message = f"the terms of `{name.text}` cannot stand here: an `encoder` reads them, a `decoder` makes them, "
        message += "and programs take and return them"
        scope.report(UNSUPPORTED, message, name.span, (_declared(name.text),))
    elif not isinstance(entry, DamagedEntry):
        kind = entry.kind if isinstance(entry, ArrowEntry) else "declaration"
        related = () if name.text in scope.local else (_declared(name.text),)
        scope.report(WRONG_KIND, f"an object is wanted here, but `{name.text}` is a {kind}", name.span, related)
    return Unknown()


def _declared(name: str) -> Related:
    return Related(f"`{name}` is declared here", DeclarationSite(name))


# ---------------------------------------------------------------- sizes


def _size(size: Size, scope: Scope) -> Dim:
    index = scope.size_index
    scope.size_index += 1
    value = size.value
    if isinstance(value, int):
        place: Place = DeclarationSite(scope.owner, f"size:{index}") if scope.declaring else scope.origin(size.span)
        variable = f"{scope.first_owner}.{index}" if scope.declaring else f"@{scope.unit}.{size.span.start}"
        if value < 1:
            scope.report(
                EMPTY_SIZE,
                "a size must be at least 1",
                size.span,
                fixes=(Fix("Use size 1", (Edit(scope.origin(size.span), "1"),)),),
            )
            return scope.size_variable(variable, "", place)
        if LARGEST_SIZE < value <= MOST_ENTRIES:
            message = f"no tensor with {value:,} entries along one axis fits in memory"
            scope.report(HUGE_SIZE, message, size.span)
        scope.size_places[variable] = place
        scope.size_values[variable] = value
        return Known(value, Linear(0, ((variable, 1),)))
    if value is None:
        if scope.declaring:
            return scope.size_variable(f"{scope.owner}.{index}", "_", DeclarationSite(scope.owner, f"size:{index}"))
        return scope.size_variable(f"@{scope.unit}.{size.span.start}", "_", scope.origin(size.span))
    return _named_size(value, size, scope)


def _named_size(name: str, size: Size, scope: Scope) -> Dim:
    if name in scope.local_sizes:
        return scope.local_sizes[name]
    entry = scope.lookup(name)
    if isinstance(entry, ObjectEntry):
        space = entry.space.space
        return space.size if isinstance(space, Finite) else width(space)
    if entry is not None and not isinstance(entry, DamagedEntry):
        scope.report(WRONG_KIND, f"a size is wanted here, but `{name}` is an arrow", size.span, (_declared(name),))
    return scope.size_variable(name, name, scope.origin(size.span))


# ---------------------------------------------------------------- constructors


def _continuous(expr: SpaceExpr, scope: Scope) -> Space:
    kind = expr.kind.text
    if kind == "Nat" and not expr.sizes:
        message = "`Nat` has bounds beside a draw alone, `observe n[i : I] : Nat [low=1] <- Poisson(r)`"
        scope.report(INVALID_SPACE, message, expr.span)
        return Unknown()
    dims = tuple(_size(size, scope) for size in expr.sizes)
    low, high = _bounds(expr, scope) if expr.options is not None else (None, None)
    if kind in ("Real", "Nat"):
        return Real(dims, low, high)
    if len(dims) > 1:
        scope.report(INVALID_SPACE, f"`{kind}` has one size", expr.sizes[1].span)
    return Constrained(kind, next(iter(dims), 1), _set_named(expr.sizes[0], scope) if expr.sizes else None, low, high)


def _set_named(size: Size, scope: Scope) -> Finite | None:
    """The set whose number of elements a size is."""
    entry = scope.lookup(size.value) if isinstance(size.value, str) else None
    space = entry.space.space if isinstance(entry, ObjectEntry) else None
    return space if isinstance(space, Finite) else None


def _bounds(expr: SpaceExpr, scope: Scope) -> tuple[float | None, float | None]:
    assert expr.options is not None
    found: dict[str, float] = {}
    for item in expr.options.items:
        key = item.key.text
        if expr.kind.text not in BOUNDED or key not in ("low", "high"):
            scope.report(UNKNOWN_OPTION, f"`{expr.kind.text}` has no option `{key}`", item.key.span)
        elif not isinstance(item.value, Number):
            scope.report(INVALID_OPTION, f"`{key}` takes a number", item.value.span if item.value else item.span)
        else:
            found[key] = float(item.value.value)
    low, high = found.get("low"), found.get("high")
    if low is not None and high is not None and low >= high:
        scope.report(
            INVALID_OPTION, f"`low` must be below `high`, but {low:g} is not below {high:g}", expr.options.span
        )
        return None, None
    return low, high


def _product(factors: tuple[ObjectExpr, ...], span: Span, scope: Scope) -> Space:
    return bounded_product([(_factor_name(factor), _space(factor, scope)) for factor in factors], span, scope)


def _factor_name(expr: ObjectExpr) -> str | None:
    while isinstance(expr, ParenObject):
        expr = expr.inner
    return expr.name.text if isinstance(expr, ObjectRef) else None


def _enumeration(expr: EnumExpr, scope: Scope) -> Space:
    seen: set[str] = set()
    for label in expr.labels:
        if label.text in seen:
            scope.report(INVALID_SPACE, f"`{label.text}` stands twice in this set", label.span)
        seen.add(label.text)
    labels = tuple(dict.fromkeys(label.text for label in expr.labels))
    return Finite(len(labels), None, labels)


def _sequence(expr: SeqExpr, item: Space, scope: Scope) -> Space:
    if has_seq(item):
        scope.report(INVALID_SPACE, "a sequence of sequences has no meaning here", expr.span)
        return Unknown()
    if has_terms(item):
        scope.report(UNSUPPORTED, "there are no sequences of terms yet: a row has one term", expr.span)
        return Unknown()
    return item if is_unknown(item) else Seq(item)


def _coproduct(expr: CoproductExpr, scope: Scope) -> Space:
    parts = [_space(part, scope) for part in expr.parts]
    finite: list[Finite] = []
    for part, space in zip(expr.parts, parts, strict=True):
        if isinstance(space, Finite):
            finite.append(space)
        elif not isinstance(space, Unknown):
            scope.report(INVALID_SPACE, f"`+` joins finite sets, but `{written(part)}` is not a finite set", part.span)
    if len(finite) < len(parts):
        return Unknown()
    size = add(part.size for part in finite)
    return Finite(size, None, None, tuple(finite))
