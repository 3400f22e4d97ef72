"""Draws from a named arrow: arguments bound in the program, or the program's own input."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from qvr_core.semantics.arithmetic.application import apply_to, input_lifts
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.function_calls import fitted, result_type, template_call
from qvr_core.semantics.arithmetic.mixture_draws import is_mixture
from qvr_core.semantics.arrows.combinators import arrow_of, check_arrow_expr, damaged
from qvr_core.semantics.arrows.heads import foreign_message
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family_spelling import Foreign, converted, foreign_family
from qvr_core.semantics.scope.environment import WHOLE_INPUT, StepContext
from qvr_core.semantics.scope.families import family_named
from qvr_core.semantics.scope.inherited import stages_of
from qvr_core.semantics.scope.scope import ArrowEntry, DamagedEntry, TemplateEntry
from qvr_core.semantics.scope.unsupported import refuse
from qvr_core.semantics.types.codes import UNKNOWN_FAMILY
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.types.model import Arrow, ArrowDraw, Data, Expr, Instance, ValueType
from qvr_core.semantics.types.program_codes import ANONYMOUS_DRAW, ARGUMENT_MISMATCH, FUNCTION_ARGUMENTS, NOT_A_VALUE
from qvr_core.semantics.types.spaces import Named, Unknown, factors_of
from qvr_core.syntax.tree import Arith, ArithArg, ArrowCall, ArrowExpr, Draw, Name, ParenArith, TensorExpr, Variable


def check_arrow_draw(draw: Draw, site: str, ctx: StepContext) -> tuple[ArrowDraw, ValueType]:
    """The arrow as it acts here, and the type of what it gives."""
    arrow, trees = _arrow(draw, site, ctx)
    ctx.scope.stages += stages_of(arrow, ctx.scope)
    origin = ctx.scope.origin(draw.span)
    if not trees and _ignores_input(arrow, draw, ctx):
        return ArrowDraw(arrow=arrow, args=None, origin=origin), ValueType(arrow.codomain.space)
    if not trees:
        arrow = _on_input(arrow, draw, ctx)
        kind = ValueType(arrow.codomain.space, rows=True)
        return ArrowDraw(arrow=arrow, args=None, origin=origin), kind
    args = [_argument(tree, ctx) for tree in trees]
    arrow = fitted(arrow, args, trees, draw.name.text, ctx)
    kind = result_type(arrow, args)
    if kind.indexed and refuse("arrow over axes", draw.span, ctx.scope):
        kind = ValueType(Unknown(), rows=kind.rows)
    return ArrowDraw(arrow=arrow, args=tuple(args), origin=origin), kind


def _ignores_input(arrow: Arrow, draw: Draw, ctx: StepContext) -> bool:
    """Whether this is a statistical program, whose draw does not differ from row to row."""
    if isinstance(arrow, Instance):
        return not arrow.program.uses_input
    entry = ctx.scope.lookup(draw.name.text)
    return isinstance(entry, ArrowEntry) and entry.ignores_input


def _arrow(draw: Draw, site: str, ctx: StepContext) -> tuple[Arrow, list[Arith]]:
    if draw.expression is not None and _products_in_arguments(draw.expression, ctx):
        return damaged(ctx.scope.origin(draw.name.span)), []
    if draw.expression is not None:
        _anonymous(draw, site, ctx)
        return check_arrow_expr(draw.expression, ctx.scope), []
    args = draw.args or ()
    entry = ctx.scope.lookup(draw.name.text)
    if isinstance(entry, TemplateEntry):
        call = template_call(entry, draw, ctx)
        return call.arrow, list(call.inputs)
    if is_mixture(draw.name, ctx):
        return damaged(ctx.scope.origin(draw.name.span)), []  # reported: a mixture that is none
    trees = _positional(args, draw, ctx)
    if entry is None:
        _unknown(draw, ctx)
        for tree in trees:
            check_arith(tree, ctx)
        return damaged(ctx.scope.origin(draw.name.span)), []
    return arrow_of(draw.name, ctx.scope), trees


def _unknown(draw: Draw, ctx: StepContext) -> None:
    binding = ctx.find(draw.name.text)
    foreign = foreign_family(draw.name.text) if binding is None else None
    if foreign is not None:
        _foreign(foreign, draw, ctx)
    elif binding is None:
        ctx.scope.unknown(draw.name, "arrow or family", FAMILIES)
    else:
        message = f"`{draw.name.text}` is a value, not an arrow or a family"
        related = (Related(f"`{draw.name.text}` is bound here", binding.origin),)
        ctx.scope.report(NOT_A_VALUE, message, draw.name.span, related)


def _foreign(foreign: Foreign, draw: Draw, ctx: StepContext) -> None:
    """A family of another package whose arguments mean something else here."""
    args = draw.args or ()
    texts = [ctx.text[arg.value.span.start : arg.value.span.end] for arg in args if arg.key is None]
    call = converted(foreign, texts) if len(texts) == len(args) else None
    fix = Fix(f"Change to `{call}`", (Edit(ctx.scope.origin(draw.span), call or ""),), True)
    message = foreign_message(draw.name.text, foreign)
    ctx.scope.report(UNKNOWN_FAMILY, message, draw.name.span, fixes=(fix,) if call else ())


def _positional(args: Sequence[ArithArg], draw: Draw, ctx: StepContext) -> list[Arith]:
    for arg in args:
        if arg.key is not None and _declared_soundly(draw.name, ctx):
            message = f"`{draw.name.text}` takes its arguments by position, not by keyword"
            ctx.scope.report(FUNCTION_ARGUMENTS, message, arg.key.span)
    return [arg.value for arg in args]


def _declared_soundly(name: Name, ctx: StepContext) -> bool:
    entry = ctx.scope.lookup(name.text)
    return entry is not None and not isinstance(entry, DamagedEntry)


def _products_in_arguments(expression: ArrowExpr, ctx: StepContext) -> bool:
    """Reports `@` between values in the arguments of a family, which makes an expression of arrows of the draw."""
    if not isinstance(expression, ArrowCall) or family_named(expression.func.text, ctx.scope) is None:
        return False
    products = [arg.value for arg in expression.args if isinstance(arg.value, TensorExpr)]
    for product in products:
        first, *others = [ctx.text[factor.span.start : factor.span.end] for factor in product.factors]
        text = reduce(lambda left, right: f"matmul({left}, {right})", others, first)
        message = f"`@` joins arrows; the product of two matrices is `{text}`"
        fix = Fix(f"Change to `{text}`", (Edit(ctx.scope.origin(product.span), text),), True)
        ctx.scope.report(FUNCTION_ARGUMENTS, message, product.span, fixes=(fix,))
    return bool(products)


def _anonymous(draw: Draw, site: str, ctx: StepContext) -> None:
    text = ctx.text[draw.span.start : draw.span.end]
    name = f"{site}_arrow"
    fix = Fix(
        f"Extract to `let {name}`",
        (
            Edit(DeclarationSite(ctx.scope.owner), f"let {name} = {text}", "line-before"),
            Edit(ctx.scope.origin(draw.span), name),
        ),
        True,
    )
    message = "a draw names an arrow or a family; give this expression a name with a top-level `let`"
    ctx.scope.report(ANONYMOUS_DRAW, message, draw.span, fixes=(fix,))


def _argument(tree: Arith, ctx: StepContext) -> Expr:
    """An argument of a named arrow: a bare name must be bound in the program."""
    inner = tree
    while isinstance(inner, ParenArith):
        inner = inner.inner
    if isinstance(inner, Variable) and _is_free(inner.name, ctx):
        ctx.reads[inner.name.text] = None
        ctx.unbound(inner.name, argument=True)
        return Data(type=ValueType(Unknown()), origin=ctx.scope.origin(tree.span), name=inner.name.text)
    return check_arith(tree, ctx)


def _is_free(name: Name, ctx: StepContext) -> bool:
    text = name.text
    if text in ctx.bindings or text in ctx.aliases or text in ctx.locals:
        return False
    return ctx.scope.lookup(text) is None


def _on_input(arrow: Arrow, draw: Draw, ctx: StepContext) -> Arrow:
    """The arrow on the program's input; inputs that it wants as sequences become so."""
    whole = ctx.find(WHOLE_INPUT)
    if whole is None or isinstance(whole.named.space, Unknown) or isinstance(arrow.domain.space, Unknown):
        return arrow
    given = whole.named
    factors = factors_of(given.space)
    wanted = input_lifts(factors, arrow.domain.space)
    names = frozenset(name for index, name in enumerate(ctx.input_names) if index in wanted)
    related = () if draw.expression is not None else (_declared(draw.name),)
    program = f"the input of `{ctx.scope.owner}` is"
    return apply_to(
        arrow,
        Named(given.space, given.written),
        ctx,
        ctx.scope.origin(draw.name.span),
        ARGUMENT_MISMATCH,
        program,
        f"`{draw.name.text}` wants",
        reaches=names,
        related=related,
    )


def _declared(name: Name) -> Related:
    return Related(f"`{name.text}` is declared here", DeclarationSite(name.text))
