"""Draws from a named arrow: arguments bound in the program, or the program's own input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from qvr_core.semantics.arithmetic.application import apply_to, input_lifts
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.arrows_along_axes import over_axes, with_events
from qvr_core.semantics.arithmetic.broadcasting import Axis, with_axes
from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.arithmetic.function_calls import fitted, reads_all, refuse_data, result_type, template_call
from qvr_core.semantics.arithmetic.mixture_draws import is_mixture
from qvr_core.semantics.arrows.combinators import arrow_of, check_arrow_expr, damaged
from qvr_core.semantics.arrows.family_calls import foreign_message
from qvr_core.semantics.arrows.uncounted import data_inside, refuse_terms, terms_of
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family_spelling import Foreign, converted, foreign_family
from qvr_core.semantics.language.gates import GATED
from qvr_core.semantics.language.mixtures import MIXTURE
from qvr_core.semantics.language.prelude import PRELUDE
from qvr_core.semantics.programs.families.gates import is_gate
from qvr_core.semantics.scope.environment import WHOLE_INPUT, StepContext
from qvr_core.semantics.scope.families import family_named
from qvr_core.semantics.scope.inherited import stages_of
from qvr_core.semantics.scope.scope import ArrowEntry, DamagedEntry, ObjectEntry, Scope, TemplateEntry
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.codes import UNKNOWN_FAMILY, UNSUPPORTED
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related
from qvr_core.semantics.types.model.arrows import Arrow, Damaged, Instance
from qvr_core.semantics.types.model.expressions import Data, Expr, ValueType
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.model.steps import ArrowDraw
from qvr_core.semantics.types.program_codes import (
    ANONYMOUS_DRAW,
    ARGUMENT_MISMATCH,
    FUNCTION_ARGUMENTS,
    NOT_A_VALUE,
    UNBOUND_ARGUMENT,
)
from qvr_core.semantics.types.spaces import Dim, Finite, Named, Seq, Space, Unknown, factors_of, has_terms, product
from qvr_core.semantics.types.walk import operands, walk
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, ParenArith, Variable
from qvr_core.syntax.tree.arrows import ArrowCall, ArrowExpr, TensorExpr
from qvr_core.syntax.tree.names import Name
from qvr_core.syntax.tree.steps import Draw
from qvr_core.syntax.walk import walk as walk_tree


@immutable
class TypedArrow:
    """The arrow as it acts at a site, the type of what it gives, and the plate of whose elements each has a draw."""

    model: ArrowDraw
    type: ValueType
    plate: Named | None = None


def check_arrow_draw(draw: Draw, site: str, ctx: StepContext, front: Sequence[Axis] = ()) -> TypedArrow:
    """What a site draws from an arrow, once for each element of the axes `front` and of those of its arguments."""
    typed = _typed(draw, site, ctx, front)
    several = front or typed.plate is not None or typed.type.indexed
    arrow = typed.model.arrow
    if several and (has_terms(arrow.domain.space) or has_terms(arrow.codomain.space)):
        word = "draws" if has_terms(arrow.codomain.space) else "reads"
        message = f"`{draw.name.text}` {word} a term for each element of a set, and a row has one term yet"
        ctx.scope.report(UNSUPPORTED, message, draw.name.span)
        return TypedArrow(typed.model, ValueType(Unknown(), rows=typed.type.rows))
    return typed


def _typed(draw: Draw, site: str, ctx: StepContext, front: Sequence[Axis]) -> TypedArrow:
    arrow, trees = _arrow(draw, site, ctx)
    told = refuse_data(arrow, draw.name, ctx)
    if draw.expression is None and not told:
        refuse_terms(arrow, draw.name, ctx.scope)
    if terms_of(arrow, ctx.scope):
        ctx.effects.add("Score")
    for name in data_inside(arrow, ctx.scope):
        ctx.reads[name] = None
        origin = ctx.scope.origin(draw.name.span)
        ctx.inherited.append(DataName(name=name, type=ValueType(None), origin=origin, inside=True))
    ctx.scope.stages += stages_of(arrow, ctx.scope)
    origin = ctx.scope.origin(draw.span)
    if not trees:
        rows = not _ignores_input(arrow, draw, ctx)
        # what is unknown may as well be a family, which reads no input
        arrow = _on_input(arrow, draw, ctx) if rows and not isinstance(arrow, Damaged) else arrow
        return _over(ArrowDraw(arrow=arrow, args=None, origin=origin), front, rows, ctx)
    args = with_events(arrow.domain.space, [_argument(tree, ctx) for tree in trees])
    arrow = fitted(arrow, args, trees, draw.name.text, ctx)
    rows = any(arg.type.rows for arg in args)
    texts = [words(tree, f"argument {index}") for index, tree in enumerate(trees, 1)]
    whole = not front and reads_all(arrow, args)
    over = None if whole else over_axes(arrow, args, texts, ctx.scope.origin(draw.name.span), ctx, front)
    if over is not None:
        model = ArrowDraw(arrow=arrow, args=over.values, origin=origin, own=over.own)
        return _over(model, over.plates, rows, ctx)
    model, kind = ArrowDraw(arrow=arrow, args=tuple(args), origin=origin), result_type(arrow, args)
    if (front or kind.indexed) and not isinstance(arrow, Damaged):
        _report_unknown_axes(args, trees, ctx)
        kind = ValueType(Unknown(), rows=kind.rows)
    return TypedArrow(model, kind)


def _over(model: ArrowDraw, plates: Sequence[Axis] | None, rows: bool, ctx: StepContext) -> TypedArrow:
    if plates is None:
        return TypedArrow(model, ValueType(Unknown(), rows=rows))
    outside = [(size, None if name is None else set_of(name)) for size, name in plates]
    kind = with_axes(outside, model.arrow.codomain.space, like=[ValueType(None, rows=rows)])
    return TypedArrow(model, kind, plate_over(outside, ctx.scope) if plates else None)


def plate_over(plates: Sequence[Axis], scope: Scope) -> Named:
    """Axes as a plate: the product of their sets."""
    factors = [(name or "_", _set(size, name, scope)) for size, name in plates]
    return Named(product(factors), " * ".join(name for name, _ in factors))


def _set(size: Dim | None, name: str | None, scope: Scope) -> Space:
    entry = None if name is None else scope.lookup(name)
    if isinstance(entry, ObjectEntry) and isinstance(entry.space.space, Finite) and entry.space.space.nominal == name:
        return entry.space.space
    return Unknown() if size is None else Finite(size, name)


def _spaces(tree: Arith, ctx: StepContext) -> Iterator[Space | None]:
    """The spaces of the names in an expression."""
    for node in walk_tree(tree):
        binding = ctx.find(node.name.text) if isinstance(node, Variable) else None
        if binding is not None:
            yield binding.type.space


def _report_unknown_axes(args: Sequence[Expr], trees: Sequence[Arith], ctx: StepContext) -> None:
    """A draw for each element of some axes, where an argument does not say what it runs over."""
    for arg, tree in zip(args, trees, strict=True):
        what, place = words(tree, "this argument"), ctx.scope.origin(tree.span)
        if any(told.code is UNSUPPORTED and told.place == place for told in ctx.scope.diagnostics):
            return
        if any(isinstance(space, Seq) for space in _spaces(tree, ctx)):
            message = f"{what} holds a sequence for each element: a draw from an arrow for each of several sequences "
            ctx.scope.report(UNSUPPORTED, message + "reads them as the program's input", tree.span)
            return
        if arg.type.space is None:
            name = next((one.name for one in walk(arg, operands) if isinstance(one, Data)), None)
            message = f"nothing says over which sets {what} runs, so there is no telling how many draws there are"
            hint = "" if name is None else f": declare it, `data {name} : …`"
            ctx.scope.report(UNBOUND_ARGUMENT, message + hint, tree.span)
            return


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
    if is_mixture(draw.name, ctx) or is_gate(draw.name, ctx):
        return damaged(ctx.scope.origin(draw.name.span)), []  # reported: a mixture, or a gate, that is none
    trees = _positional(args, draw, ctx)
    if entry is None:
        _unknown(draw, ctx)
        for tree in trees:
            for part in _family_arguments(tree, ctx) or (tree,):
                check_arith(part, ctx)
        return damaged(ctx.scope.origin(draw.name.span)), []
    return arrow_of(draw.name, ctx.scope), trees


def _family_arguments(tree: Arith, ctx: StepContext) -> tuple[Arith, ...]:
    """The arguments of a family that stands among those of a misspelt `Hurdle` or `Mixture`."""
    while isinstance(tree, ParenArith):
        tree = tree.inner
    if not isinstance(tree, ArithCall) or family_named(tree.func.text, ctx.scope) is None:
        return ()
    return tuple(arg.value for arg in tree.args)


def _unknown(draw: Draw, ctx: StepContext) -> None:
    binding = ctx.find(draw.name.text)
    of_families = any(_family_arguments(arg.value, ctx) for arg in draw.args or ())
    foreign = foreign_family(draw.name.text) if binding is None and not of_families else None
    if foreign is not None:
        _foreign(foreign, draw, ctx)
    elif binding is None:
        ctx.scope.unknown(draw.name, "arrow or family", (*FAMILIES, *GATED, MIXTURE, *PRELUDE))
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
    for tensor in products:
        first, *others = [ctx.text[factor.span.start : factor.span.end] for factor in tensor.factors]
        text = reduce(lambda left, right: f"matmul({left}, {right})", others, first)
        message = f"`@` joins arrows; the product of two matrices is `{text}`"
        fix = Fix(f"Change to `{text}`", (Edit(ctx.scope.origin(tensor.span), text),), True)
        ctx.scope.report(FUNCTION_ARGUMENTS, message, tensor.span, fixes=(fix,))
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
