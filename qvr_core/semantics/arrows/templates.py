"""Templates: programs with typed parameters, checked once with symbols and again for each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qvr_core.semantics.arrows.arrow_names import damaged
from qvr_core.semantics.arrows.template_arguments import (
    Given,
    ModelArgument,
    Numbers,
    default_of,
    no_numbers,
    role_of,
    value_of,
    written_in_arithmetic,
    written_in_arrow,
)
from qvr_core.semantics.arrows.template_inference import INFERRED, NOTHING_SOLVED, solve
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.scope.environment import TemplateCall
from qvr_core.semantics.scope.scope import Argument, ArrowEntry, ObjectEntry, Scope, TemplateEntry, show
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Related, Severity
from qvr_core.semantics.types.model.arrows import Instance
from qvr_core.semantics.types.model.programs import Program, called
from qvr_core.semantics.types.program_codes import TEMPLATE_ARGUMENTS
from qvr_core.semantics.types.spaces import Linear, Named, Unknown, width
from qvr_core.semantics.types.subspace import fit
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg
from qvr_core.syntax.tree.arrows import ArrowCall
from qvr_core.syntax.tree.declarations import Parameter, ProgramHeader
from qvr_core.syntax.tree.names import Name, Span


def instantiate(entry: TemplateEntry, expr: ArrowCall, scope: Scope) -> Instance | None:
    """`template(1.0, f=cell)` in an arrow expression; None where the arguments are wrong."""
    header = _header(entry)
    if header is None:
        return None
    parameters = _typed(header)
    given = [written_in_arrow(arg) for arg in expr.args]
    named = {one.key.text for one in given if one.key is not None}
    order = iter([name for name in parameters if name not in named])
    pairs: list[tuple[str, Given]] = []
    for one in given:
        name = next(order, None) if one.key is None else one.key.text
        if name is None:
            _surplus(entry, one, len(parameters), scope)
            return None
        if name not in parameters:
            _unknown_parameter(entry, one, parameters, scope)
            return None
        pairs.append((name, one))
    return _instance(entry, header, pairs, expr.func, expr.span, scope, no_numbers, lambda: ())


def instance_of(
    entry: TemplateEntry,
    name: Name,
    args: Sequence[ArithArg],
    span: Span,
    scope: Scope,
    spaces: Callable[[Sequence[Arith]], Sequence[Named]],
    numbers: Numbers = no_numbers,
    renames: Callable[[Program], Sequence[str]] | None = None,
) -> TemplateCall:
    """A template called in a step; `spaces` are those of arguments that are inputs.

    Arguments by position fill the header's parameters in order, those given by keyword aside; what is left when all
    typed ones are given is inputs.  `renames` says which further keywords a program takes: the names of its data.
    """
    header = _header(entry)
    nothing = TemplateCall(name, damaged(scope.origin(span)), (), {})
    if header is None:
        return nothing
    parameters = _typed(header)
    pairs, inputs, others = _sorted(header, args)
    if renames is None and others:
        _unknown_parameter(entry, written_in_arithmetic(next(iter(others.values()))), parameters, scope)
        return nothing
    given = {key for key, _ in pairs}
    missing = [key for key, one in parameters.items() if one.default is None and key not in given]
    meant = next((arg for key, arg in others.items() if closest(key, missing) is not None), None)
    if meant is not None:
        _unknown_parameter(entry, written_in_arithmetic(meant), parameters, scope)
        return nothing
    arrow = _instance(entry, header, pairs, name, span, scope, numbers, lambda: spaces(inputs))
    if arrow is None:
        return nothing
    wanted = () if renames is None else renames(called(arrow))
    for key, arg in others.items():
        if key not in wanted:
            _unknown_parameter(entry, written_in_arithmetic(arg), parameters, scope, wanted)
            return nothing
    return TemplateCall(name, arrow, tuple(inputs), others)


def _header(entry: TemplateEntry) -> ProgramHeader | None:
    header = entry.statement.header.unit.node
    return header if isinstance(header, ProgramHeader) else None


def _typed(header: ProgramHeader) -> dict[str, Parameter]:
    return {one.name.text: one for one in header.parameters or () if one.kind is not None}


def _sorted(
    header: ProgramHeader, args: Sequence[ArithArg]
) -> tuple[list[tuple[str, Given]], list[Arith], dict[str, ArithArg]]:
    """The typed parameters with what they are given, the inputs, and the keywords that name no parameter."""
    keys = {arg.key.text: arg for arg in args if arg.key is not None}
    typed = _typed(header)
    left = [one for one in header.parameters or () if one.name.text not in keys or one.kind is None]
    pairs: list[tuple[str, Given]] = []
    inputs: list[Arith] = []
    for arg in args:
        if arg.key is not None:
            if arg.key.text in typed:
                pairs.append((arg.key.text, written_in_arithmetic(arg)))
            continue
        if not any(one.kind is not None for one in left):
            inputs.append(arg.value)
            continue
        parameter = left.pop(0)
        if parameter.kind is None:
            inputs.append(arg.value)
        else:
            pairs.append((parameter.name.text, written_in_arithmetic(arg)))
    return pairs, inputs, {key: arg for key, arg in keys.items() if key not in typed}


# ---------------------------------------------------------------- arguments


def _instance(
    entry: TemplateEntry,
    header: ProgramHeader,
    given: Sequence[tuple[str, Given]],
    name: Name,
    span: Span,
    scope: Scope,
    numbers: Numbers,
    inputs: Callable[[], Sequence[Named]],
) -> Instance | None:
    """`inputs` are the spaces of the inputs, asked for where parameters are to be solved."""
    parameters = _typed(header)
    values: dict[str, Argument] = {}
    arguments: list[tuple[str, ModelArgument]] = []
    for key, one in given:
        found = value_of(parameters[key], one, scope, numbers)
        if found is None:
            return None
        if found.value is not None:
            values[key] = found.value
        arguments.append((key, found.model))
    have = {key for key, _ in given}
    wanted: list[str] = []
    solved = NOTHING_SOLVED
    missing = [key for key, one in parameters.items() if key not in have and one.default is None]
    if missing:
        wanted = [key for key in missing if _kind(parameters[key]) in INFERRED]
        solved = solve(header, values, wanted, inputs()) if wanted else solved
        values.update(solved.values)
        arguments += ((key, _written(solved.values[key])) for key in wanted if key in solved.values)
        open_here = solved.open if _symbolic(scope) else frozenset[str]()
        missing = [key for key in missing if key not in solved.values and key not in open_here]
    if missing:
        if not solved.open.issuperset(missing) or not scope.mistaken:
            _missing(entry, missing, [key for key in missing if key in wanted], name, scope)
        return None
    for key, parameter in parameters.items():
        found = None if key in have or _makes_its_own(parameter, scope) else default_of(parameter, scope)
        if found is not None and found.value is not None:
            values[key] = found.value
    program = _checked(entry, values, name, scope)
    return Instance(
        name=entry.name,
        domain=program.domain,
        codomain=program.codomain,
        sort=program.sort,
        origin=scope.origin(span),
        density=program.density,
        arguments=tuple(arguments),
        program=program,
        inferred=tuple(key for key in wanted if key in solved.values),
    )


def _makes_its_own(parameter: Parameter, scope: Scope) -> bool:
    """Whether the body makes the arrow that no argument gives."""
    role = role_of(parameter.default) if _kind(parameter) == "Mor" else None
    return role is not None and not isinstance(scope.globals.entry(role.text), ArrowEntry)


def _kind(parameter: Parameter) -> str:
    return "" if parameter.kind is None else parameter.kind.text


def _written(value: Argument) -> ModelArgument:
    """A solved parameter as the model has it."""
    if isinstance(value, ObjectEntry):
        return value.space.written
    return value if isinstance(value, int) else str(value)


def _symbolic(scope: Scope) -> bool:
    """Whether the call stands in a template whose objects are symbols."""
    spaces = (entry.space.space for entry in scope.local.values() if isinstance(entry, ObjectEntry))
    return any(isinstance(space, Unknown) or isinstance(width(space), Linear) for space in spaces)


def _missing(entry: TemplateEntry, missing: Sequence[str], unsaid: Sequence[str], name: Name, scope: Scope) -> None:
    words = ", ".join(f"`{key}`" for key in missing)
    message = f"`{entry.name}` needs {words}: `{missing[0]}=…`"
    if unsaid and len(unsaid) == len(missing):
        message = f"`{entry.name}` needs {words}, which its arguments do not say: `{missing[0]}=…`"
    related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
    scope.report(TEMPLATE_ARGUMENTS, message, name.span, related)


def _surplus(entry: TemplateEntry, one: Given, count: int, scope: Scope) -> None:
    takes = f"{count} argument" + ("" if count == 1 else "s")
    scope.report(TEMPLATE_ARGUMENTS, f"`{entry.name}` takes {takes}, and this is one more", one.span)


def _unknown_parameter(
    entry: TemplateEntry, one: Given, parameters: Mapping[str, Parameter], scope: Scope, data: Sequence[str] = ()
) -> None:
    assert one.key is not None
    near = closest(one.key.text, (*parameters, *data))
    what = "parameter or data" if data else "parameter"
    message = f"`{entry.name}` has no {what} `{one.key.text}`"
    has = ", ".join(f"`{name}`" for name in (*parameters, *data))
    message += f"; did you mean `{near}`?" if near else f"; it has {has}"
    place = scope.origin(one.key.span)
    fixes = () if near is None else (Fix(f"Change to `{near}`", (Edit(place, near),), True),)
    scope.report(TEMPLATE_ARGUMENTS, message, place, fixes=fixes)


# ---------------------------------------------------------------- the check of one call


def _checked(entry: TemplateEntry, values: Mapping[str, Argument], name: Name, scope: Scope) -> Program:
    """The body with the arguments filled in; what goes wrong only then is told at the call."""
    own = Scope(scope.globals, entry.statement.uid, entry.name, scope.algebra, first_owner=entry.name)
    program = scope.globals.check_program(entry.statement, own, values)
    _check_arrows(program, values, name, scope)
    symbolic = Scope(scope.globals, entry.statement.uid, entry.name, scope.algebra, first_owner=entry.name)
    scope.globals.check_program(entry.statement, symbolic, {})
    known = {(d.code.name, d.place) for d in symbolic.diagnostics}
    for found in own.diagnostics:
        if found.code.severity is Severity.ERROR and (found.code.name, found.place) not in known:
            related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
            scope.report(TEMPLATE_ARGUMENTS, f"with these arguments, {found.message}", name.span, related)
            break
    for equation in own.equations:
        if any(_contradicts(left, right) for left, right in equation.pairs):
            related = (Related(f"`{entry.name}` is declared here", DeclarationSite(entry.name)),)
            message = f"with these arguments, {equation.gives} {show(equation.given)}, but {equation.wants} "
            scope.report(TEMPLATE_ARGUMENTS, message + show(equation.wanted), name.span, related)
            break
    return program


def _contradicts(left: object, right: object) -> bool:
    assert isinstance(left, Linear) and isinstance(right, Linear)
    return not left.terms and not right.terms and left.constant != right.constant


def _check_arrows(program: Program, values: Mapping[str, Argument], name: Name, scope: Scope) -> None:
    for parameter in program.template:
        entry = values.get(parameter.name)
        if parameter.mor is None or not isinstance(entry, ArrowEntry):
            continue
        for given, wanted in zip((entry.domain, entry.codomain), parameter.mor, strict=True):
            result = fit(given.space, wanted.space)
            if result.problem is not None or result.widths == "wrong":
                message = f"`{parameter.name}` wants an arrow from {show(parameter.mor[0])} to "
                message += f"{show(parameter.mor[1])}, but `{entry.name}` goes from {show(entry.domain)} to "
                scope.report(TEMPLATE_ARGUMENTS, message + show(entry.codomain), name.span)
                break
