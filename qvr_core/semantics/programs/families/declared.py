"""Families that a file declares: `family F(loc, scale : Real 1 [low=0.0]) : Real 1` and the formulas below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from qvr_core.operations.intervals import COUNT
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.broadcasting import axes
from qvr_core.semantics.arithmetic.ranges import range_of, within
from qvr_core.semantics.language.declared_families import facts_of
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.programs.families.headers import Header, check_header
from qvr_core.semantics.programs.families.inner_draws import InnerDraws, refused
from qvr_core.semantics.programs.families.standard_form import NotAffine, affine_form
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import DamagedEntry, DistributionEntry, Scope, respelt
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.types.model.expressions import Apply, Constant, DeductionRef, Expr, Matrix, ValueType
from qvr_core.semantics.types.model.families import DeclaredFamily, Formula, Standard
from qvr_core.semantics.types.program_codes import BOUND_TWICE, FAMILY_FORMULA, NOT_A_VALUE
from qvr_core.semantics.types.spaces import Dim, Finite, Linear, Named, Real, Space, Unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import operands, walk
from qvr_core.syntax.tree.declarations import CompositionRule, FamilyHeader, Item
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import LetStep
from qvr_core.syntax.tree.units import Placed, Statement

FORMULAS: Mapping[str, int] = {"density": 1, "draw": 0, "cdf": 1, "log_survival": 1, "standard": 1}
"""What a family may say of itself, and how many values each formula is of."""

_EXAMPLES: Mapping[str, str] = {
    "density": "density(x) = …",
    "draw": "draw = …",
    "cdf": "cdf(x) = …",
    "log_survival": "log_survival(x) = …",
    "standard": "standard(z) = loc + scale * z",
}


@dataclass(slots=True)
class _Body:
    """What the lines of a body have said so far."""

    header: Header
    scope: Scope
    values: dict[str, Binding]
    lets: list[tuple[str, Expr]] = field(default_factory=list[tuple[str, Expr]])
    formulas: dict[str, Formula] = field(default_factory=dict[str, Formula])
    places: dict[str, Name] = field(default_factory=dict[str, Name])
    drawn: InnerDraws = field(default_factory=InnerDraws)
    standard: Standard | None = None


def check_family_declaration(statement: Statement, scope: Scope) -> DistributionEntry | DamagedEntry:
    """What the draws from a declared family see; reports what is wrong whatever its arguments are."""
    node = statement.header.unit.node
    assert isinstance(node, FamilyHeader)
    name = node.name.text
    header = check_header(node, scope)
    values = {
        one.name: _bound(parameter.name, one.space, one.numbers, scope)
        for one, parameter in zip(header.parameters, node.parameters, strict=True)
    }
    body = _Body(header, scope, values)
    lines = statement.header.children
    for placed in lines:
        scope.unit = placed.uid
        _line(placed, body)
    scope.unit = statement.uid
    unread = any(placed.unit.broken or placed.unit.node is None for placed in lines)
    if "density" not in body.places and not unread:
        _missing_density(node, scope)
    if scope.mistaken or unread or "density" not in body.formulas:
        return DamagedEntry(name)
    formulas = body.formulas
    family = DeclaredFamily(
        name=name,
        space=header.space,
        numbers=header.numbers,
        parameters=header.parameters,
        lets=tuple(body.lets),
        density=formulas["density"],
        cdf=formulas.get("cdf"),
        log_survival=formulas.get("log_survival"),
        drawn=tuple(body.drawn.made),
        draw=formulas["draw"].value if "draw" in formulas else None,
        origin=scope.origin(node.name.span),
        standard=body.standard,
    )
    return DistributionEntry(name, family, facts_of(family))


def _bound(name: Name, space: Space, numbers: str, scope: Scope) -> Binding:
    lies = COUNT if numbers == "count" else within(space)
    kind = ValueType(space)
    return Binding("parameter", kind, Named(space, structure(space)), scope.origin(name.span), range=lies)


def _missing_density(node: FamilyHeader, scope: Scope) -> None:
    message = f"`{node.name.text}` does not say its density: `density(x) = …`, the log density of one element"
    scope.report(FAMILY_FORMULA, message, node.name.span)


# ---------------------------------------------------------------- lines


def _line(placed: Placed[Item], body: _Body) -> None:
    node = placed.unit.node
    if isinstance(node, LetStep) and len(node.pattern.names) == 1 and not node.binders and node.space is None:
        _let(node, placed.unit.text, body)
    elif isinstance(node, CompositionRule):
        _formula(node, placed.unit.text, body)
    elif node is not None:
        message = "a family is made of `let` lines that bind one name each, `density(x) = …`, `draw = …`, and its cdf"
        body.scope.report(FAMILY_FORMULA, message, Span(0, len(placed.unit.text)))


def _let(step: LetStep, text: str, body: _Body) -> None:
    name, scope = step.pattern.names[0], body.scope
    if name.text in body.values:
        related = (Related(f"`{name.text}` is bound here", body.values[name.text].origin),)
        scope.report(BOUND_TWICE, f"`{name.text}` is bound already", name.span, related)
        return
    ctx = StepContext(scope, body.values, text)
    ctx.drawing = refused(ctx)
    value = _checked(lambda: check_arith(step.value, ctx), ctx, body)
    space: Space = Unknown() if value.type.space is None else value.type.space
    named = Named(space, structure(space))
    origin = scope.origin(name.span)
    body.values = {**body.values, name.text: Binding("let", value.type, named, origin, range=range_of(value, ctx))}
    body.lets.append((name.text, value))


def _formula(rule: CompositionRule, text: str, body: _Body) -> None:
    if not _known(rule.name, body):
        return
    name, scope = rule.name.text, body.scope
    if name in body.places:
        related = (Related("the first one is here", DeclarationSite(scope.owner)),)
        scope.report(FAMILY_FORMULA, f"`{name}` is said twice", rule.name.span, related)
        return
    body.places[name] = rule.name
    if not _arity(rule, scope):
        return
    header = body.header
    argument = rule.parameters[0] if rule.parameters else None
    values = body.values
    if argument is not None:
        if argument.text in values:
            related = (Related(f"`{argument.text}` is bound here", values[argument.text].origin),)
            scope.report(BOUND_TWICE, f"`{argument.text}` is bound already", argument.span, related)
        values = {**values, argument.text: _bound(argument, header.space.space, header.numbers, scope)}
    ctx = StepContext(scope, values, text)
    ctx.drawing = body.drawn.at(ctx) if name == "draw" else refused(ctx)
    value = _checked(lambda: check_arith(rule.body, ctx), ctx, body)
    if name == "draw":
        _check_drawn(value, rule, header, scope)
    else:
        _check_number(value, rule, scope)
    if name in ("cdf", "log_survival"):
        _check_ordered(rule, header, scope)
    if name == "standard" and argument is not None and not scope.mistaken:
        body.standard = _standard(rule, argument, StepContext(scope, values, text), header)
    body.formulas[name] = Formula("" if argument is None else argument.text, value)


def _standard(rule: CompositionRule, z: Name, ctx: StepContext, header: Header) -> Standard | None:
    """The shift and the factor of a standardised draw; reports what samplers could not move by it."""
    space, problem = header.space.space, ""
    above = isinstance(space, Real) and (space.low, space.high) == (0.0, None)
    whole = isinstance(space, Real) and (space.low, space.high) == (None, None)
    if header.numbers or axes(ValueType(space)) or not (whole or above):
        what = "any real number, or one from 0 up (`Real 1 [low=0.0]`)"
        message = f"`standard` is of a family that draws {what}, and one element here is `{header.space.written}`"
        ctx.scope.report(FAMILY_FORMULA, message, rule.name.span)
        return None
    try:
        form = affine_form(rule.body, z)
    except NotAffine as wrong:
        message = f"`standard` is `shift + factor * {z.text}`, and this is not: what stands there has no `{z.text}`"
        message = message if wrong.part == rule.body else f"`standard` adds to and multiplies `{z.text}` alone"
        ctx.scope.report(FAMILY_FORMULA, message, wrong.part.span)
        return None
    shift, factor = None if form.shift is None else check_arith(form.shift, ctx), check_arith(form.factor, ctx)
    if above and form.shift is not None:
        problem = f"an element is from 0 up, so `{z.text}` is multiplied and nothing is added"
    elif range_of(factor, ctx).low < 0.0:
        problem = f"what `{z.text}` is multiplied with may be negative: give its parameter a bound, `Real 1 [low=0.0]`"
    if problem:
        ctx.scope.report(FAMILY_FORMULA, problem, rule.body.span)
        return None
    return Standard(shift, factor)


def _known(name: Name, body: _Body) -> bool:
    if name.text in FORMULAS:
        return True
    near = closest(name.text, FORMULAS)
    message = f"a family has no formula `{name.text}`"
    message += f"; did you mean `{near}`?" if near else f"; it has {', '.join(f'`{one}`' for one in FORMULAS)}"
    fixes = respelt(name, near, body.scope)
    if near is None and name.text not in body.values:
        place = body.scope.origin(name.span)
        message += f", and `let {name.text} = …` for what they share"
        fixes = (Fix("Put `let` before it", (Edit(place, f"let {name.text}"),)),)
    body.scope.report(FAMILY_FORMULA, message, name.span, fixes=fixes)
    if near is not None:
        body.places[near] = name
    return False


def _arity(rule: CompositionRule, scope: Scope) -> bool:
    wanted, given = FORMULAS[rule.name.text], len(rule.parameters or ())
    if wanted == given:
        return True
    takes = "one value" if wanted else "no value"
    message = f"`{rule.name.text}` takes {takes}: `{_EXAMPLES[rule.name.text]}`"
    scope.report(FAMILY_FORMULA, message, rule.name.span)
    return False


# ---------------------------------------------------------------- values


def _checked(check: Callable[[], Expr], ctx: StepContext, body: _Body) -> Expr:
    """A typed expression; reports names that nobody binds, and arrows."""
    value = check()
    for free in ctx.free:
        ctx.scope.unknown(Name(free.name, free.origin.span), "variable", body.values)
    for part in walk(value, operands):
        if isinstance(part, Apply | Matrix | DeductionRef):
            message = "a family is arithmetic of its parameters: no arrow can stand in it"
            ctx.scope.report(NOT_A_VALUE, message, part.origin)
            break
    return replace(value, type=ValueType(Unknown())) if ctx.free else value


def _check_number(value: Expr, rule: CompositionRule, scope: Scope) -> None:
    """A density is one number."""
    shape = axes(value.type)
    text = isinstance(value, Constant) and isinstance(value.value, str)
    if text or shape or isinstance(value.type.space, Finite):
        space = value.type.space
        what = "a text" if text or space is None else f"`{structure(space)}`"
        hint = ": add its entries up with `sum(…)`" if shape else ""
        scope.report(FAMILY_FORMULA, f"`{rule.name.text}` is one number, and this is {what}{hint}", rule.body.span)


def _check_drawn(value: Expr, rule: CompositionRule, header: Header, scope: Scope) -> None:
    shape, wanted = axes(value.type), axes(ValueType(header.space.space))
    if shape is None or wanted is None:
        return
    if len(shape) != len(wanted) or not all(_same(a, b) for (a, _), (b, _) in zip(shape, wanted, strict=True)):
        space = value.type.space
        what = "one number" if not shape else f"`{structure(space)}`" if space is not None else "something else"
        message = f"`draw` gives {what}, and one element is `{header.space.written}`"
        scope.report(FAMILY_FORMULA, message, rule.body.span)


def _same(found: Dim | None, wanted: Dim | None) -> bool:
    if isinstance(found, int) and isinstance(wanted, int):
        return int(found) == int(wanted)
    if isinstance(found, Linear) and isinstance(wanted, Linear):
        return found == wanted
    return found is None or wanted is None


def _check_ordered(rule: CompositionRule, header: Header, scope: Scope) -> None:
    space = header.space.space
    if axes(ValueType(space)) or (isinstance(space, Finite) and not header.numbers):
        what = "a vector" if axes(ValueType(space)) else "an element of a finite set"
        message = f"`{rule.name.text}` is of a number, and one element here is {what}"
        scope.report(FAMILY_FORMULA, message, rule.name.span)
