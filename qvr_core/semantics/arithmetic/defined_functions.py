"""Functions of arithmetic, `def f(x, k = 1.0) = …`: checked once with unknown parameters, typed anew at each call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from qvr_core.semantics.arithmetic.elementwise import Check
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.bounds import MOST_OPERATIONS
from qvr_core.semantics.scope.environment import FreeName, StepContext
from qvr_core.semantics.scope.scope import Argument, DamagedEntry, Entry, FunctionEntry, Globals, Scope
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related, Severity
from qvr_core.semantics.types.model.expressions import Builtin, Data, Expr, Function, ValueType
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.program_codes import (
    BOUND_TWICE,
    FUNCTION_ARGUMENTS,
    MISSING_RETURN,
    NOT_A_VALUE,
    UNKNOWN_LABEL,
)
from qvr_core.semantics.types.spaces import Unknown
from qvr_core.syntax.statements import units_of
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, Binary, Comprehension, Gather, Variable
from qvr_core.syntax.tree.declarations import DefDecl, DefHeader, FunctionParameter, Item
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.steps import LetStep, ReturnStep
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.walk import walk

_UNKNOWN = ValueType(Unknown())


def check_function(statement: Statement, scope: Scope, check: Check) -> FunctionEntry | DamagedEntry:
    """What the calls of a function see; reports what is wrong whatever it is given."""
    node = statement.header.unit.node
    assert isinstance(node, DefDecl | DefHeader)
    name = node.name.text
    _check_distinct(node.parameters, scope)
    if isinstance(node, DefHeader) and not _has_shape(statement, node, scope):
        return DamagedEntry(name)
    ctx = StepContext(scope, {}, statement.header.unit.text)
    for parameter in node.parameters:
        if parameter.default is not None:
            check(parameter.default, ctx)
    values = {p.name.text: _unknown(p.name, scope) for p in node.parameters}
    _body(statement, values, {}, ctx, check)
    scope.unit = statement.uid
    elements = _elements(statement)
    for free in ctx.free:
        if free.name in elements:
            continue  # what it indexes is known at the call
        place = Name(free.name, free.origin.span)
        scope.unit = free.origin.unit
        scope.unknown(place, "variable", values)
    scope.unit = statement.uid
    broken = any(placed.unit.broken or placed.unit.node is None for placed in statement.header.children)
    if scope.mistaken or broken:
        return DamagedEntry(name)
    read = frozenset(word for word in ctx.reads if word not in values)
    language = frozenset(word for word in _called(statement) & BUILTINS.keys() if scope.lookup(word) is None)
    return FunctionEntry(name, statement, read, language)


def _called(statement: Statement) -> set[str]:
    """The names of functions in a body."""
    nodes = [placed.unit.node for placed in units_of(statement)]
    parts = [part for node in nodes if node is not None for part in walk(node)]
    calls = {part.func.text for part in parts if isinstance(part, ArithCall)}
    return calls | {part.function.text for part in parts if isinstance(part, Comprehension)}


@dataclass(frozen=True, slots=True)
class _Without:
    """The file as a function of another one sees it: `names` are the language's there."""

    file: Globals
    names: frozenset[str]

    def entry(self, name: str) -> Entry | None:
        return None if name in self.names else self.file.entry(name)

    def solved(self, variable: str) -> int | None:
        return self.file.solved(variable)

    def labels(self, name: str) -> tuple[str, ...] | None:
        return self.file.labels(name)

    def check_program(self, statement: Statement, scope: Scope, arguments: Mapping[str, Argument]) -> Program:
        return self.file.check_program(statement, scope, arguments)


def _elements(statement: Statement) -> set[str]:
    """The names of a body that stand only where the label of an element may: as an index, or beside `==` and `!=`."""
    nodes = [node for placed in units_of(statement) for node in walk(placed.unit.node)]
    places = [index for node in nodes if isinstance(node, Gather) for index in node.indices]
    sides = (node for node in nodes if isinstance(node, Binary) and node.operator in ("==", "!="))
    places += (side for node in sides for side in (node.left, node.right))
    labels = {id(tree) for tree in places if isinstance(tree, Variable)}
    elsewhere = {node.name.text for node in nodes if isinstance(node, Variable) and id(node) not in labels}
    return {tree.name.text for tree in places if isinstance(tree, Variable)} - elsewhere


def _check_distinct(parameters: Sequence[FunctionParameter], scope: Scope) -> None:
    seen: set[str] = set()
    for parameter in parameters:
        name = parameter.name
        if name.text in seen:
            scope.report(BOUND_TWICE, f"there are two parameters called `{name.text}`", name.span)
        seen.add(name.text)


def _unknown(name: Name, scope: Scope) -> Expr:
    return Data(type=_UNKNOWN, origin=scope.origin(name.span), name=name.text)


def _has_shape(statement: Statement, node: DefHeader, scope: Scope) -> bool:
    """Whether a body is made of `let` lines that bind one name each, and a `return` of one value at its end."""
    lines = statement.header.children
    for placed in lines:
        step = placed.unit.node
        scope.unit = placed.uid
        if isinstance(step, LetStep) and not step.binders and len(step.pattern.names) == 1:
            continue
        if step is None or (isinstance(step, ReturnStep) and len(step.items) == 1):
            continue
        message = "a function is made of `let` lines, each of which binds one name, and a `return` of one value"
        scope.report(NOT_A_VALUE, message, Span(0, len(placed.unit.text)))
        scope.unit = statement.uid
        return False
    scope.unit = statement.uid
    if not any(isinstance(placed.unit.node, ReturnStep) or placed.unit.node is None for placed in lines):
        scope.report(MISSING_RETURN, f"`{node.name.text}` does not say what it returns", node.name.span)
        return False
    return True


# ---------------------------------------------------------------- the body


def _body(
    statement: Statement, values: Mapping[str, Expr], weights: Mapping[str, int], ctx: StepContext, check: Check
) -> Expr | None:
    """The value of a body with its parameters in place; None where a line cannot be read."""
    node = statement.header.unit.node
    ctx.aliases, ctx.weights = dict(values), dict(weights)
    ctx.scope.unit = statement.uid
    if isinstance(node, DefDecl):
        return check(node.body, ctx)
    for placed in statement.header.children:
        step = placed.unit.node
        ctx.scope.unit = placed.uid
        if isinstance(step, LetStep):
            _bind(step, ctx, check)
        elif isinstance(step, ReturnStep):
            return _returned(step, placed, ctx)
    return None


def _bind(step: LetStep, ctx: StepContext, check: Check) -> None:
    name = step.pattern.names[0]
    if name.text in ctx.aliases:
        ctx.scope.report(BOUND_TWICE, f"`{name.text}` is bound already", name.span)
        return
    before = ctx.scope.operations
    value = check(step.value, ctx)
    ctx.weights = {**ctx.weights, name.text: ctx.scope.operations - before}
    ctx.aliases = {**ctx.aliases, name.text: value}


def _returned(step: ReturnStep, placed: Placed[Item], ctx: StepContext) -> Expr | None:
    name = step.items[0].name
    if name.text not in ctx.aliases:
        ctx.scope.unknown(name, "variable", ctx.aliases)
        return None
    ctx.scope.operations += ctx.weights.get(name.text, 0)
    return ctx.aliases[name.text]


# ---------------------------------------------------------------- calls


def check_function_call(expr: ArithCall, entry: FunctionEntry, ctx: StepContext, check: Check) -> Expr:
    """`f(x, k=2.0)`: the body with the arguments in place of the parameters."""
    node = entry.statement.header.unit.node
    assert isinstance(node, DefDecl | DefHeader)
    origin = ctx.scope.origin(expr.span)
    nothing = Builtin(type=_UNKNOWN, origin=origin, function=entry.name, args=())
    values: dict[str, Expr] = {}
    weights: dict[str, int] = {}
    for name, arg in _matched(expr, node.parameters, ctx):
        before = ctx.scope.operations
        values[name] = check(arg.value, ctx)
        weights[name] = ctx.scope.operations - before
    wanted = [p for p in node.parameters if p.name.text not in values]
    missing = [p.name.text for p in wanted if p.default is None]
    if len(values) < len(expr.args):
        return nothing  # reported: an argument that the function does not take
    if missing:
        words = ", ".join(f"`{name}`" for name in missing)
        related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
        ctx.scope.report(FUNCTION_ARGUMENTS, f"`{entry.name}` needs {words}", expr.func.span, related)
        return nothing
    if ctx.scope.operations > MOST_OPERATIONS:
        return nothing
    defaults = [(p.name.text, p.default) for p in wanted if p.default is not None]
    value = expanded(expr, entry, values, weights, defaults, ctx, check)
    return nothing if value is None else value if isinstance(value, Function) else replace(value, origin=origin)


def _matched(
    expr: ArithCall, parameters: Sequence[FunctionParameter], ctx: StepContext
) -> Iterator[tuple[str, ArithArg]]:
    names = [parameter.name.text for parameter in parameters]
    given: set[str] = set()
    for at, arg in enumerate(expr.args):
        name = arg.key.text if arg.key is not None else names[at] if at < len(names) else None
        if name is None:
            takes = f"{len(names)} argument" + ("" if len(names) == 1 else "s")
            message = f"`{expr.func.text}` takes {takes}, and this is one more"
            ctx.scope.report(FUNCTION_ARGUMENTS, message, arg.span)
            return
        if name not in names:
            assert arg.key is not None
            _unknown_parameter(expr, arg.key, names, ctx)
            return
        if name in given:
            ctx.scope.report(FUNCTION_ARGUMENTS, f"`{name}` is given twice", arg.span)
            return
        given.add(name)
        yield name, arg


def _unknown_parameter(expr: ArithCall, key: Name, names: Sequence[str], ctx: StepContext) -> None:
    near = closest(key.text, names)
    message = f"`{expr.func.text}` has no parameter `{key.text}`"
    message += f"; did you mean `{near}`?" if near else f"; it has {', '.join(f'`{name}`' for name in names)}"
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(ctx.scope.origin(key.span), near),), True),)
    ctx.scope.report(FUNCTION_ARGUMENTS, message, key.span, fixes=fixes)


def expanded(
    expr: ArithCall,
    entry: FunctionEntry,
    values: Mapping[str, Expr],
    weights: Mapping[str, int],
    defaults: Sequence[tuple[str, Arith]],
    ctx: StepContext,
    check: Check,
) -> Expr | None:
    """The body, typed with these values; what goes wrong only now is told at the call."""
    scope = ctx.scope
    kept = ctx.aliases, ctx.weights, ctx.bindings, ctx.locals, dict(ctx.reads), dict(ctx.data), list(ctx.free)
    unit, told, equations = scope.unit, len(scope.diagnostics), len(scope.equations)
    unknown = len(scope.unknown_names)
    # what the body reads of the file is not what the program calls so
    ctx.bindings = {name: held for name, held in ctx.bindings.items() if name not in entry.reads}
    ctx.locals = {name: held for name, held in ctx.locals.items() if name not in entry.reads}
    ctx.aliases, ctx.weights, scope.unit = {}, {}, entry.statement.uid
    outside = scope.globals
    scope.globals = _Without(outside, entry.language) if entry.language else outside
    inner = {**values, **{name: check(default, ctx) for name, default in defaults}}
    value = _body(entry.statement, inner, weights, ctx, check)
    scope.globals = outside
    _check_labels(kept[-1], inner.values(), ctx)
    ctx.aliases, ctx.weights, ctx.bindings, ctx.locals, ctx.reads, ctx.data, ctx.free = kept
    scope.unit = unit
    found = [one for one in scope.diagnostics[told:] if one.code.severity is Severity.ERROR]
    del scope.diagnostics[told:], scope.unknown_names[unknown:]
    here = scope.origin(expr.span)
    scope.equations[equations:] = [replace(one, place=here) for one in scope.equations[equations:]]
    if found:
        related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
        message = f"with these arguments, {found[0].message}"
        scope.report(FUNCTION_ARGUMENTS, message, expr.func.span, related)
        return None
    return value


def _check_labels(before: Sequence[FreeName], arguments: Iterable[Expr], ctx: StepContext) -> None:
    """Names of a body that turned out to be no element of what they index here."""
    if any(isinstance(one.type.space, Unknown) for one in arguments):
        return
    for free in ctx.free[len(before) :]:
        message = f"`{free.name}` is no element of what it indexes"
        ctx.scope.report(UNKNOWN_LABEL, message, free.origin)
