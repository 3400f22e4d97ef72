"""Composition declarations, checked: the algebra of the tensor arrows after them (docs/reference.md#compositions)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from qvr_core.semantics.algebras.laws import broken_law
from qvr_core.semantics.algebras.numbers import Uncomputed
from qvr_core.semantics.algebras.weights import declared_weights
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.language.compositions import (
    BUILTIN_COMPOSITIONS,
    COMPOSITION_KINDS,
    COMPOSITION_OPERATIONS,
    UNREAD,
)
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import UNKNOWN, Scope
from qvr_core.semantics.types.codes import UNUSED
from qvr_core.semantics.types.diagnostics import Code, Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.deductions import Composition
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.program_codes import COMPOSITION_RULE, LAW_VIOLATED, UNCHECKED_LAW, UNKNOWN_COMPOSITION
from qvr_core.syntax.tree.declarations import CompositionHeader, CompositionRule
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.units import Statement


def check_composition(statement: Statement, scope: Scope) -> Composition:
    """The selected or defined composition; reports unknown names, wrong arities and missing operations."""
    header = statement.header.unit.node
    assert isinstance(header, CompositionHeader)
    kind = promised(header.kind, COMPOSITION_KINDS, "algebra", "composition", COMPOSITION_RULE, scope)
    rules = [child for child in statement.header.children if isinstance(child.unit.node, CompositionRule)]
    operations: dict[str, tuple[tuple[str, ...], Expr]] = {}
    places: dict[str, Name] = {}
    units: dict[str, int] = {}
    for child in rules:
        rule = child.unit.node
        assert isinstance(rule, CompositionRule)
        scope.unit = child.uid
        if rule.name.text in places:
            message = f"`{rule.name.text}` is defined twice"
            scope.report(COMPOSITION_RULE, message, rule.name.span)
        elif _known_operation(rule, scope):
            places[rule.name.text], units[rule.name.text] = rule.name, child.uid
            if rule.name.text in UNREAD:
                _unread(rule, Span(-child.column, len(child.unit.text) + 1), scope)
            operations[rule.name.text] = _operation(rule, scope)
    scope.unit = statement.uid
    # a rule that cannot be read may be the one that is missing, and a kind that cannot may ask for less
    damaged = len(places) < len(rules) or any(child.unit.node is None for child in statement.header.children)
    damaged = damaged or (header.kind is not None and header.kind.text not in COMPOSITION_KINDS)
    if operations or rules:
        written = {child.unit.node.name.text for child in rules if isinstance(child.unit.node, CompositionRule)}
        missing = [name for name in COMPOSITION_KINDS[kind] if name not in written]
        if missing and not damaged:
            words = ", ".join(f"`{name}`" for name in missing)
            article = "an" if kind[0] in "aeiou" else "a"
            scope.report(COMPOSITION_RULE, f"{article} {kind} must define {words}", header.name.span)
    elif header.name.text not in BUILTIN_COMPOSITIONS and not damaged:
        unknown_composition(header.name, scope)
    composition = Composition(
        name=header.name.text, kind=kind, operations=operations, origin=scope.origin(header.name.span)
    )
    if header.kind is not None and header.kind.text == "algebra" and not damaged and not scope.mistaken:
        _claimed(composition, header.kind, {name: Origin(units[name], places[name].span) for name in places}, scope)
    return composition


def _claimed(composition: Composition, kind: Name, places: Mapping[str, Origin], scope: Scope) -> None:
    """Tell the law that a composition claims `as algebra` and that does not hold, at its line."""
    if not composition.operations:
        return
    try:
        broken = broken_law(declared_weights(composition))
    except Uncomputed as found:
        message = f"the laws of `{composition.name}` are not checked: {found} is not computed here"
        scope.report(UNCHECKED_LAW, message, kind.span)
        return
    if broken is not None:
        fix = Fix(f"Claim less: `as {broken.kind}`", (Edit(scope.origin(kind.span), broken.kind),))
        scope.report(LAW_VIOLATED, broken.text, places[broken.rule], fixes=(fix,))


def promised(word: Name | None, words: Collection[str], otherwise: str, what: str, code: Code, scope: Scope) -> str:
    """What a statement promises to be `as`: one of `words`; what it is `otherwise`, without a word or with another,
    which is reported with the nearest one."""
    if word is None or word.text in words:
        return otherwise if word is None else word.text
    near = closest(word.text, words)
    message = f"a {what} is no `{word.text}`"
    message += f"; did you mean `{near}`?" if near else f"; it is one of {', '.join(words)}"
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(word.span), near),), True),)
    scope.report(code, message, word.span, fixes=fixes)
    return otherwise


def unknown_composition(name: Name, scope: Scope) -> None:
    """Report a composition that there is not, with the one that was likely meant."""
    near = closest(name.text, BUILTIN_COMPOSITIONS)
    message = f"there is no composition `{name.text}`"
    message += f"; did you mean `{near}`?" if near else f"; there are {', '.join(BUILTIN_COMPOSITIONS)}"
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(name.span), near),), True),)
    scope.report(UNKNOWN_COMPOSITION, message, name.span, fixes=fixes)


def _known_operation(rule: CompositionRule, scope: Scope) -> bool:
    name = rule.name
    wanted = COMPOSITION_OPERATIONS.get(name.text)
    if wanted is None:
        near = closest(name.text, COMPOSITION_OPERATIONS)
        message = f"a composition has no operation `{name.text}`"
        message += f"; did you mean `{near}`?" if near else f"; it has {', '.join(COMPOSITION_OPERATIONS)}"
        fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(name.span), near),), True),)
        scope.report(COMPOSITION_RULE, message, name.span, fixes=fixes)
        return False
    given = len(rule.parameters or ())
    if given != wanted:
        words = {0: "no parameters", 1: "1 parameter"}.get(wanted, f"{wanted} parameters")
        scope.report(COMPOSITION_RULE, f"`{name.text}` takes {words}, but has {given}", name.span)
        return False
    return True


def _unread(rule: CompositionRule, line: Span, scope: Scope) -> None:
    name = rule.name.text
    fix = Fix(f"Remove `{name}`", (Edit(scope.origin(line), ""),))
    scope.report(
        UNUSED, f"nothing reads `{name}`: no combinator of tensor arrows asks for it", rule.name.span, fixes=(fix,)
    )


def _operation(rule: CompositionRule, scope: Scope) -> tuple[tuple[str, ...], Expr]:
    parameters = rule.parameters or ()
    bindings: dict[str, Binding] = {}
    for parameter in parameters:
        origin = scope.origin(parameter.span)
        if parameter.text in bindings:
            related = (Related("the first one is here", bindings[parameter.text].origin),)
            scope.report(COMPOSITION_RULE, f"two parameters are called `{parameter.text}`", origin, related)
        bindings[parameter.text] = Binding("parameter", ValueType(None), UNKNOWN, origin)
    ctx = StepContext(scope, bindings)
    body = check_arith(rule.body, ctx)
    for free in ctx.free:
        span = free.origin.span
        scope.unknown(Name(free.name, span), "variable", tuple(bindings))
    return tuple(parameter.text for parameter in parameters), body
