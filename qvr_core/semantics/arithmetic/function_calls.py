"""Calls in arithmetic: builtins, deterministic arrows, functions bound by `let`, methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from qvr_core.semantics.arithmetic.application import apply_to, argument_space, declared, fits, refuse_free_terms
from qvr_core.semantics.arithmetic.arrows_along_axes import applied_over_axes, with_events
from qvr_core.semantics.arithmetic.broadcasting import data_like, flattened, is_data, plate_axes
from qvr_core.semantics.arithmetic.builtin_calls import check_builtin
from qvr_core.semantics.arithmetic.charts.questions import CHART_METHODS, check_question, is_chart
from qvr_core.semantics.arithmetic.defined_functions import check_function_call
from qvr_core.semantics.arithmetic.elementwise import Check, named_value, words
from qvr_core.semantics.arithmetic.factor_order import check_order, factor_names
from qvr_core.semantics.arrows.combinators import arrow_of
from qvr_core.semantics.arrows.template_arguments import Numbers
from qvr_core.semantics.arrows.templates import instance_of
from qvr_core.semantics.arrows.uncounted import refuse_steps, refuse_terms
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.spelling import candidates, closest
from qvr_core.semantics.scope.bounds import MOST_OPERATIONS
from qvr_core.semantics.scope.environment import Binding, StepContext, TemplateCall
from qvr_core.semantics.scope.families import family_named
from qvr_core.semantics.scope.inherited import data_of, stages_of
from qvr_core.semantics.scope.scope import (
    ArrowEntry,
    DamagedEntry,
    FamilyEntry,
    FunctionEntry,
    TemplateEntry,
    respelt,
)
from qvr_core.semantics.types.diagnostics import Edit, Fix
from qvr_core.semantics.types.model.arrows import Arrow, Instance, Sort
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Bound,
    Builtin,
    Constant,
    Expr,
    Index,
    Method,
    ValueType,
)
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.program_codes import (
    ARGUMENT_MISMATCH,
    DIFFERENTIAL_EQUATION,
    FUNCTION_ARGUMENTS,
    NOT_A_VALUE,
    SAMPLED_IN_LET,
    UNBOUND_ARGUMENT,
    UNKNOWN_VALUE_FIELD,
)
from qvr_core.semantics.types.spaces import Named, Unknown, item_of, product
from qvr_core.semantics.types.walk import operands
from qvr_core.syntax.tree.arithmetic import (
    Arith,
    ArithArg,
    ArithCall,
    Lambda,
    Literal,
    MethodCall,
    ParenArith,
    Variable,
)
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import Draw


def check_call(expr: ArithCall, ctx: StepContext, check: Check) -> Expr:
    """`f(x, y)` in arithmetic."""
    name = expr.func.text
    binding = ctx.find(name)
    if binding is not None and binding.kind == "function" and binding.function is not None:
        return _expand(expr, binding, binding.function, ctx, check)
    entry = ctx.scope.lookup(name)
    if isinstance(entry, ArrowEntry):
        return _arrow_call(expr, ctx, check)
    if isinstance(entry, TemplateEntry):
        return _template_call(expr, entry, ctx, check)
    if isinstance(entry, FunctionEntry) and binding is None:
        return check_function_call(expr, entry, ctx, check)
    family = family_named(name, ctx.scope) if binding is None or ctx.drawing is not None else None
    if family is not None and ctx.drawing is not None:
        return ctx.drawing(expr, family)
    builtin = BUILTINS.get(name)
    if builtin is not None:
        return check_builtin(builtin, expr, ctx, check)
    if name == "solve" and binding is None and entry is None:
        message = "`solve` is the whole right side of a `let` with indices: `let z[t : Time, a : State] = solve(…)`"
        ctx.scope.report(DIFFERENTIAL_EQUATION, message, expr.func.span)
        return Builtin(type=ValueType(Unknown()), origin=ctx.scope.origin(expr.span), function=name, args=())
    args = tuple(check(arg.value, ctx) for arg in expr.args)
    if binding is not None:
        if binding.kind != "damaged":
            _called_value(expr, ctx)
    elif family is not None:
        message = f"`{name}` is drawn from, not computed: write `sample … <- {name}(…)`"
        ctx.scope.report(SAMPLED_IN_LET, message, expr.func.span, fixes=_drawn_instead(expr, ctx))
    elif isinstance(entry, FamilyEntry):
        arrow_of(expr.func, ctx.scope)
    elif entry is None:
        ctx.scope.unknown(expr.func, "function", (*BUILTINS, *candidates(ctx.bindings)))
    elif not isinstance(entry, DamagedEntry):
        ctx.scope.report(NOT_A_VALUE, f"`{name}` cannot be called", expr.func.span, [declared(name)])
    return Builtin(type=ValueType(Unknown()), origin=ctx.scope.origin(expr.span), function=name, args=args)


_LET = re.compile(r"(let)\b[^=]*(=)\s*")


def _drawn_instead(expr: ArithCall, ctx: StepContext) -> tuple[Fix, ...]:
    """`sample s <- f(x)` for `let s = f(x)`, where the call is all that is bound."""
    found = _LET.match(ctx.text)
    rest = ctx.text[expr.span.end :].strip()
    if found is None or found.end() != expr.span.start or (rest and not rest.startswith("#")):
        return ()
    edits = ((Span(*found.span(1)), "sample"), (Span(*found.span(2)), "<-"))
    title = f"Change to `sample … <- {expr.func.text}(…)`"
    return (Fix(title, tuple(Edit(ctx.scope.origin(span), text) for span, text in edits), True),)


def _called_value(expr: ArithCall, ctx: StepContext) -> None:
    name, place = expr.func.text, ctx.scope.origin(expr.span)
    message = f"`{name}` is a value, not a function; its elements are `{name}[…]`"
    if len(expr.args) == 1 and isinstance(expr.args[0].value, Variable | Literal):
        inner = expr.args[0].value
        text = inner.name.text if isinstance(inner, Variable) else inner.text
        fix = Fix(f"Change to `{name}[{text}]`", (Edit(place, f"{name}[{text}]"),))
        ctx.scope.report(NOT_A_VALUE, message, expr.func.span, fixes=(fix,))
    else:
        ctx.scope.report(NOT_A_VALUE, message, expr.func.span)


# ---------------------------------------------------------------- functions bound by let


def _expand(expr: ArithCall, binding: Binding, function: Lambda, ctx: StepContext, check: Check) -> Expr:
    """The body with the argument in place of the parameter."""
    if len(expr.args) != 1 or expr.args[0].key is not None:
        message = f"`{expr.func.text}` takes 1 argument, but {len(expr.args)} are given"
        ctx.scope.report(FUNCTION_ARGUMENTS, message, expr.span)
        return Builtin(type=ValueType(Unknown()), origin=ctx.scope.origin(expr.span), function=expr.func.text, args=())
    before = ctx.scope.operations
    argument = check(expr.args[0].value, ctx)
    if ctx.scope.operations > MOST_OPERATIONS:
        return argument
    aliases, weights, unit, reported = ctx.aliases, ctx.weights, ctx.scope.unit, len(ctx.scope.diagnostics)
    ctx.aliases = {function.parameter.text: argument}
    ctx.weights = {function.parameter.text: ctx.scope.operations - before}
    ctx.scope.unit = binding.origin.unit
    body = check(function.body, ctx)
    # the function's own mistakes were reported where it is defined
    del ctx.scope.diagnostics[reported:]
    ctx.aliases, ctx.weights, ctx.scope.unit = aliases, weights, unit
    return replace(body, origin=ctx.scope.origin(expr.span))


# ---------------------------------------------------------------- arrows


def _arrow_call(expr: ArithCall, ctx: StepContext, check: Check) -> Expr:
    arrow = arrow_of(expr.func, ctx.scope)
    positional = _positional(expr.args, expr.func, ctx)
    args = [check(arg.value, ctx) for arg in positional]
    if len(positional) < len(expr.args):
        return Apply(type=ValueType(Unknown()), origin=ctx.scope.origin(expr.span), arrow=arrow, args=tuple(args))
    if arrow.sort is Sort.TENSOR:
        origin = ctx.scope.origin(expr.span)
        matrix = check(Variable(expr.func), ctx)
        kind = data_like([arg.type for arg in args])
        return Index(type=kind, origin=origin, base=matrix, indices=tuple(args)) if args else matrix
    return applied(arrow, args, [arg.value for arg in expr.args if arg.key is None], expr, ctx)


def _template_call(expr: ArithCall, entry: TemplateEntry, ctx: StepContext, check: Check) -> Expr:
    known: dict[int, Expr] = {}

    def value(tree: Arith) -> Expr:
        if id(tree) not in known:
            known[id(tree)] = check(tree, ctx)
        return known[id(tree)]

    def spaces(trees: Sequence[Arith]) -> Sequence[Named]:
        return [_space_of(value(tree), ctx) for tree in trees]

    call = instance_of(entry, expr.func, expr.args, expr.span, ctx.scope, spaces, _numbers(ctx))
    args = [value(tree) for tree in call.inputs]
    return applied(call.arrow, args, call.inputs, expr, ctx)


def _numbers(ctx: StepContext) -> Numbers:
    """The number parameters of the template that the step stands in."""

    def found(name: str) -> tuple[str, int | float | None] | None:
        binding = ctx.find(name)
        if binding is None or binding.kind != "parameter":
            return None
        return binding.named.written, binding.constant

    return found


def template_call(
    entry: TemplateEntry, draw: Draw, ctx: StepContext, renames: Callable[[Program], Sequence[str]] | None = None
) -> TemplateCall:
    """The template that a step draws from; it is looked at once, however often it is asked for."""
    if ctx.called is None or ctx.called.name is not draw.name:
        args, numbers = draw.args or (), _numbers(ctx)

        def spaces(trees: Sequence[Arith]) -> Sequence[Named]:
            return _bound_spaces(trees, ctx)

        ctx.called = instance_of(entry, draw.name, args, draw.span, ctx.scope, spaces, numbers, renames)
    return ctx.called


def _space_of(value: Expr, ctx: StepContext) -> Named:
    """The space of a value, with the name that it has."""
    named = named_value(value, ctx)
    return named if not is_data(value.type) else Named(Unknown(), named.written)


def _bound_spaces(trees: Sequence[Arith], ctx: StepContext) -> Sequence[Named]:
    """The spaces of names that the program binds; unknown for any other argument of a draw."""
    found: list[Named] = []
    for tree in trees:
        while isinstance(tree, ParenArith):
            tree = tree.inner
        binding = ctx.find(tree.name.text) if isinstance(tree, Variable) else None
        found.append(Named(Unknown(), "?") if binding is None or is_data(binding.type) else binding.named)
    return found


def _positional(args: Sequence[ArithArg], func: Name, ctx: StepContext) -> list[ArithArg]:
    for arg in args:
        if arg.key is not None:
            message = f"`{func.text}` takes its arguments by position, not by keyword"
            ctx.scope.report(FUNCTION_ARGUMENTS, message, arg.key.span)
    return [arg for arg in args if arg.key is None]


def _is_parameter(name: str, ctx: StepContext) -> bool:
    """True for an arrow that a template is given: whether it is sampled shows at each call."""
    entry = ctx.scope.lookup(name)
    return isinstance(entry, ArrowEntry) and entry.kind == "parameter"


def applied(arrow: Arrow, args: Sequence[Expr], trees: Sequence[Arith], expr: ArithCall, ctx: StepContext) -> Expr:
    """A deterministic arrow applied to values; where the context has draws, a sampled one, too."""
    name = expr.func.text
    drawn = arrow.sort is Sort.SAMPLED and not ctx.draws and not _is_parameter(name, ctx)
    if drawn:
        message = f"`{name}` is a sampled arrow: draw from it with `sample … <- {name}(…)`"
        ctx.scope.report(SAMPLED_IN_LET, message, expr.func.span, fixes=_drawn_instead(expr, ctx))
    origin = ctx.scope.origin(expr.span)
    if args:
        args = with_events(arrow.domain.space, args)
        arrow = fitted(arrow, args, trees, name, ctx)
    elif not drawn and not isinstance(arrow.domain.space, Unknown):
        ctx.scope.report(ARGUMENT_MISMATCH, f"`{name}` wants an argument, `{arrow.domain.written}`", expr.span)
    refuse_data(arrow, expr.func, ctx)
    if arrow.sort is Sort.SAMPLED and ctx.draws and not refuse_terms(arrow, expr.func, ctx.scope):
        refuse_steps(arrow, name, expr.func.span, ctx.scope, "where a value is computed from it")
    refuse_free_terms(arrow, name, args, ctx)
    ctx.scope.stages += stages_of(arrow, ctx.scope)
    if args and not reads_all(arrow, args):
        texts = [words(tree, f"argument {index}") for index, tree in enumerate(trees, 1)]
        over = applied_over_axes(arrow, args, texts, ctx.scope.origin(expr.func.span), origin, ctx)
        if over is not None:
            return over
    kind = result_type(arrow, args)
    return Apply(type=kind, origin=origin, arrow=arrow, args=tuple(args))


def refuse_data(arrow: Arrow, name: Name, ctx: StepContext) -> bool:
    """Report an arrow that reads data: a call or a draw has none to give it.  True where one has been told of."""
    names = data_of(arrow, ctx.scope)
    # a template whose data do not fit has been told of
    if isinstance(arrow, Instance) and ctx.scope.mistaken:
        return True
    if not names:
        return False
    words = ", ".join(f"`{each}`" for each in names)
    entry = ctx.scope.lookup(name.text)
    remedy = "make it an input"
    if isinstance(arrow, Instance) and not arrow.program.uses_input:
        remedy = "drawn from without type, indices and options, its steps and data become this program's"
    elif isinstance(entry, ArrowEntry) and entry.ignores_input:
        remedy = f"with a typed parameter, `program {name.text}(S : FinSet)`, its steps and data become this program's"
    message = f"`{name.text}` reads the data {words}, which only a program that runs by itself is given; {remedy}"
    ctx.scope.report(UNBOUND_ARGUMENT, message, name.span, [declared(name.text)])
    return True


def fitted(arrow: Arrow, args: Sequence[Expr], trees: Sequence[Arith], name: str, ctx: StepContext) -> Arrow:
    """`arrow` as it acts on `args`; reports at the arguments what does not fit."""
    given = argument_space([(named_value(arg, ctx), _argument_type(arg)) for arg in args], arrow.domain.space)
    reaches = union(reached(arg, ctx) for arg in args)
    start, end = trees[0].span.start, trees[-1].span.end
    place = ctx.scope.origin(trees[0].span._replace(start=start, end=end))
    gives = f"{words(trees[0], 'the argument')} is" if len(trees) == 1 else "the arguments are"
    related = [] if name in ctx.scope.local else [declared(name)]
    reported = len(ctx.scope.diagnostics)
    applied = apply_to(
        arrow, given, ctx, place, ARGUMENT_MISMATCH, gives, f"`{name}` wants", reaches=reaches, related=related
    )
    wanted = factor_names(arrow.domain)
    if len(wanted) == len(args) and len(ctx.scope.diagnostics) == reported:
        objects = [named_value(arg, ctx).written.removeprefix("Seq ") for arg in args]
        places = [(tree.span, ctx.text[tree.span.start : tree.span.end]) for tree in trees]
        check_order(objects, wanted, places, f"`{name}` takes", ctx.scope, related)
    return applied


def _argument_type(arg: Expr) -> ValueType:
    # a whole number may stand for an element of a finite set
    whole = isinstance(arg, Constant) and isinstance(arg.value, int)
    return ValueType(None) if whole else arg.type


def reached(expr: Expr, ctx: StepContext) -> frozenset[str]:
    """The inputs that a value is computed from."""
    if isinstance(expr, Bound):
        binding = ctx.find(expr.name)
        return frozenset() if binding is None else binding.reaches
    return union(reached(child, ctx) for child in operands(expr))


def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    joined: set[str] = set()
    for each in sets:
        joined |= each
    return frozenset(joined)


def result_type(arrow: Arrow, args: Sequence[Expr]) -> ValueType:
    """The type of `arrow` on `args`: the codomain behind the arguments' plates."""
    rows = any(arg.type.rows for arg in args)
    if any(is_data(arg.type) for arg in args):
        unknown = any(isinstance(arg.type.space, Unknown) for arg in args)
        return ValueType(arrow.codomain.space if unknown else None, rows=rows)
    plates = max((arg.type for arg in args), key=lambda kind: len(kind.indexed), default=None)
    if plates is None or not plates.indexed or reads_all(arrow, args):
        return ValueType(arrow.codomain.space, rows=rows)
    front = plate_axes(plates)
    return ValueType(arrow.codomain.space, tuple(n for _, n in front), rows, tuple(s for s, _ in front))


def reads_all(arrow: Arrow, args: Sequence[Expr]) -> bool:
    """Whether the plates of the arguments themselves are the vector that the arrow reads."""
    wanted = item_of(arrow.domain.space)
    plain = product((None, arg.type.space or Unknown()) for arg in args)
    if fits(item_of(plain), wanted):
        return False
    return fits(item_of(product((None, flattened(arg.type) or Unknown()) for arg in args)), wanted)


# ---------------------------------------------------------------- methods


def check_method(expr: MethodCall, ctx: StepContext, check: Check) -> Expr:
    """`x.m(args)`: a chart's question, or a builtin written behind its first argument."""
    base = check(expr.base, ctx)
    origin = ctx.scope.origin(expr.span)
    name = expr.method.text
    if is_chart(base, ctx):
        return check_question(base, expr, ctx)
    builtin = BUILTINS.get(name)
    if builtin is not None:
        call = ArithCall(expr.method, expr.args, expr.span)
        return check_builtin(builtin, call, ctx, check, base)
    args = tuple(check(arg.value, ctx) for arg in expr.args)
    if not isinstance(base.type.space, Unknown):
        near = closest(name, (*BUILTINS, *CHART_METHODS))
        message = f"{words(expr.base, 'the value')} has no method `{name}`" + (
            f"; did you mean `{near}`?" if near else ""
        )
        ctx.scope.report(UNKNOWN_VALUE_FIELD, message, expr.method.span, fixes=respelt(expr.method, near, ctx.scope))
    return Method(type=data_like([base.type]), origin=origin, base=base, method=name, args=args)
