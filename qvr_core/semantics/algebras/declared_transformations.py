"""Transformations, checked: a map between the weights of two compositions (docs/reference.md#changes-of-base)."""

from __future__ import annotations

from qvr_core.operations.intervals import Interval
from qvr_core.semantics.algebras.declared_compositions import promised, unknown_composition
from qvr_core.semantics.algebras.enclosures import enclose
from qvr_core.semantics.algebras.kept import leaves, not_kept
from qvr_core.semantics.algebras.numbers import Uncomputed, constants, formula
from qvr_core.semantics.algebras.weights import Weights, weights_of
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.language.compositions import BUILTIN_COMPOSITIONS, COMPOSITION
from qvr_core.semantics.language.transformations import KEEPS, RULES
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import UNKNOWN, CompositionEntry, Scope
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.model.deductions import Composition, Transformation
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.program_codes import (
    LAW_VIOLATED,
    TRANSFORMATION_RULE,
    UNCHECKED_LAW,
)
from qvr_core.semantics.types.spaces import REAL_LINE
from qvr_core.syntax.tree.declarations import CompositionRule, TransformationHeader
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.units import Placed, Statement


def check_transformation(statement: Statement, scope: Scope) -> Transformation | None:
    """The declared map; None where its compositions are unknown or its formula cannot be read.  Reports these, a map
    that leads out of the weights, and one that keeps less than it claims."""
    header = statement.header.unit.node
    assert isinstance(header, TransformationHeader)
    sides = [_composition(side, scope) for side in (header.source, header.target)]
    keeps = promised(header.kind, KEEPS, "map", "transformation", TRANSFORMATION_RULE, scope)
    rule = _rule(statement, header, scope)
    if rule is None:
        return None
    scope.unit = rule.uid
    node = rule.unit.node
    assert isinstance(node, CompositionRule)
    parameter, body, line = node.parameters[0].text if node.parameters else "", _body(node, scope), node.name
    where = scope.origin(line.span)
    scope.unit = statement.uid
    if not all(known for known, _ in sides):
        return None
    found = Transformation(
        name=header.name.text,
        source=header.source.text,
        target=header.target.text,
        keeps=keeps,
        parameter=parameter,
        body=body,
        origin=scope.origin(header.name.span),
    )
    if not scope.mistaken:
        source, target = (
            weights_of(name.text, own) for name, (_, own) in zip((header.source, header.target), sides, strict=True)
        )
        _laws(found, body, (source, target), where, header.kind, scope)
    return found


def _composition(name: Name, scope: Scope) -> tuple[bool, Composition | None]:
    """Whether there is such a composition, and what the file declares under the name."""
    entry = scope.lookup(f"{COMPOSITION}{name.text}")
    if isinstance(entry, CompositionEntry):
        return entry.composition.operations != {} or name.text in BUILTIN_COMPOSITIONS, entry.composition
    if name.text in BUILTIN_COMPOSITIONS or entry is not None:
        return entry is None, None
    unknown_composition(name, scope)
    return False, None


def _rule(statement: Statement, header: TransformationHeader, scope: Scope) -> Placed[object] | None:
    """The line `map(x) = …`; None (reported) where there is none."""
    found: Placed[object] | None = None
    damaged = False
    for child in statement.header.children:
        rule = child.unit.node
        damaged = damaged or rule is None
        if not isinstance(rule, CompositionRule):
            continue
        scope.unit = child.uid
        if rule.name.text not in RULES:
            damaged = True
            _unknown_rule(rule.name, scope)
        elif len(rule.parameters or ()) != RULES[rule.name.text]:
            damaged = True
            given = len(rule.parameters or ())
            scope.report(TRANSFORMATION_RULE, f"`map` takes 1 parameter, but has {given}", rule.name.span)
        elif found is not None:
            scope.report(TRANSFORMATION_RULE, "`map` is defined twice", rule.name.span)
        else:
            found = child
    scope.unit = statement.uid
    if found is None and not damaged:
        message = f"nothing says what `{header.name.text}` makes of a weight: `map(x) = …`"
        scope.report(TRANSFORMATION_RULE, message, header.name.span)
    return found


def _unknown_rule(name: Name, scope: Scope) -> None:
    message = f"a transformation has no line `{name.text}`; did you mean `map`?"
    fix = Fix("Change to `map`", (Edit(scope.origin(name.span), "map"),))
    scope.report(TRANSFORMATION_RULE, message, name.span, fixes=(fix,))


def _body(rule: CompositionRule, scope: Scope) -> Expr:
    bindings = {
        parameter.text: Binding("parameter", ValueType(REAL_LINE), UNKNOWN, scope.origin(parameter.span))
        for parameter in rule.parameters or ()
    }
    ctx = StepContext(scope, bindings)
    body = check_arith(rule.body, ctx)
    for free in ctx.free:
        scope.unknown(Name(free.name, free.origin.span), "variable", tuple(bindings))
    return body


def _laws(
    found: Transformation,
    body: Expr,
    sides: tuple[Weights | None, Weights | None],
    where: Origin,
    kind: Name | None,
    scope: Scope,
) -> None:
    """Tell what the map does not keep, at its line."""
    source, target = sides
    if source is None or target is None:
        if found.keeps == "homomorphism" and kind is not None:
            name = found.source if source is None else found.target
            message = f"what `{found.name}` keeps is not checked: the operations of `{name}` are not computed here"
            scope.report(UNCHECKED_LAW, message, kind.span)
        return
    try:
        mapped = formula((found.parameter,), body)
    except Uncomputed as missing:
        message = f"where `{found.name}` leads is not checked: {missing} is not computed here"
        scope.report(UNCHECKED_LAW, message, where)
        return
    near = constants(body)

    def enclosed(box: Interval) -> Interval:
        lies = enclose(body, {found.parameter: box})
        return lies if isinstance(lies, Interval) else Interval()

    problem = leaves(mapped, enclosed, source, target, near)
    if problem is not None:
        scope.report(LAW_VIOLATED, problem, where)
    elif found.keeps == "homomorphism" and kind is not None:
        problem = not_kept(mapped, enclosed, source, target, near)
        if problem is not None:
            fix = Fix("Claim less: `as map`", (Edit(scope.origin(kind.span), "map"),))
            scope.report(LAW_VIOLATED, problem, where, fixes=(fix,))
