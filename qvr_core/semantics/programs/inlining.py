"""`sample u <- intercepts(County)`: the steps of a template that never reads its input, as steps of the program.

They are called `u.tau`, and what the template returns is `u`; so are its data, unless an argument names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.function_calls import template_call
from qvr_core.semantics.programs.data_agreement import other_type
from qvr_core.semantics.programs.undeclared.aligned_data import without_aligned
from qvr_core.semantics.scope.environment import Binding, StepContext
from qvr_core.semantics.scope.scope import ObjectEntry, TemplateEntry
from qvr_core.semantics.types.diagnostics import DeclarationSite, Edit, Fix, Origin, Related
from qvr_core.semantics.types.model.arrows import ArrowBase, Instance
from qvr_core.semantics.types.model.expressions import Bound, Data, Expr, FactorTable, Function, ValueType
from qvr_core.semantics.types.model.programs import DataName, Program, called
from qvr_core.semantics.types.model.steps import (
    LetModel,
    ObserveModel,
    ParamModel,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.program_codes import (
    ASCRIPTION_MISMATCH,
    DATA_MISMATCH,
    TEMPLATE_ARGUMENTS,
    UNCOUNTED_STEP,
)
from qvr_core.semantics.types.spaces import Named, Unknown, is_finite
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import all_steps, sites
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import ArithArg, ParenArith, Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr, ObjectRef
from qvr_core.syntax.tree.steps import SampleStep

Bindings = list[tuple[str, Binding]]

MODEL = Program.__module__.rpartition(".")[0]
"""The package whose classes are the nodes of the model."""
_WORD = re.compile(r"\w+")


@immutable
class Renaming:
    """What names of a template are called in the program, and what stands for its data."""

    names: Mapping[str, str]
    data: Mapping[str, Expr]
    sets: Mapping[str, str]
    """What the template's objects are called in the file."""


def inlined(step: SampleStep, ctx: StepContext) -> tuple[StepModel, Bindings] | None:
    """The template's steps in place of the draw (`ctx.inlined`); None where the step is a draw from an arrow."""
    entry = ctx.scope.lookup(step.draw.name.text)
    named = step.space is None or _is_set(step.space, ctx)
    plain = step.options is None and named and not step.binders and step.draw.expression is None
    if not isinstance(entry, TemplateEntry) or not plain or ctx.marginal:
        return None
    call = template_call(entry, step.draw, ctx, data_of)
    arrow, names = call.arrow, step.pattern.names
    if not isinstance(arrow, Instance) or arrow.program.uses_input or call.inputs:
        return None
    program = called(arrow)
    if len(program.returns) != len(names) or (program.tupled and not step.pattern.brackets):
        return None
    if isinstance(step.space, ObjectRef):
        if is_finite(arrow.codomain.space):
            return None
        _report_plate(step, step.space, ctx)
    label = "_".join(name.text for name in names)
    renaming = _renaming(label, arrow, call.data, ctx)
    if renaming is None:
        return None
    ctx.effects |= program.effects - {"Pure"}
    ctx.scope.stages += program.stages
    return _placed(step, program, label, renaming, ctx)


def _is_set(space: ObjectExpr, ctx: StepContext) -> bool:
    entry = ctx.scope.lookup(space.name.text) if isinstance(space, ObjectRef) else None
    return isinstance(entry, ObjectEntry) and is_finite(entry.space.space)


def _report_plate(step: SampleStep, space: ObjectRef, ctx: StepContext) -> None:
    """`u : S <- template(S)`, as a family's plate is written."""
    name, called = step.pattern.names[0], step.draw.name.text
    message = f"`{name.text}` is what `{called}` returns, with the axes that it has there: no set stands behind `:`"
    edit = Edit(ctx.scope.origin(Span(name.span.end, space.span.end)), "")
    fix = Fix(f"Leave `: {space.name.text}` out", (edit,), True)
    ctx.scope.report(ASCRIPTION_MISMATCH, message, space.span, (), () if step.pattern.brackets else (fix,))


# ---------------------------------------------------------------- names


def bound_names(steps: Sequence[StepModel]) -> list[str]:
    """The names that steps bind, those of blocks included."""
    found: dict[str, None] = {}
    for step in all_steps(steps):
        match step:
            case LetModel(names=names) | ParamModel(names=names):
                found.update(dict.fromkeys(names))
            case ScoreModel(name=name):
                found[name] = None
            case _:
                found[step.site.name] = None
                found.update(dict.fromkeys(name for name, _ in step.site.bound))
    return list(found)


def own_steps(program: Program) -> list[StepModel]:
    """The steps that are written; weights with a prior are those of the program that applies them last of all."""
    return [step for step in program.steps if not (isinstance(step, SampleModel) and step.site.weights)]


def data_of(program: Program) -> list[str]:
    """What a call of the template may name: its data, and what it observes."""
    if program.uses_input:
        return []
    observed = [site.name for site in sites(program.steps, ObserveModel) if not site.of_let]
    return list(dict.fromkeys([*(item.name for item in program.data), *observed]))


def _renaming(label: str, arrow: Instance, given: Mapping[str, ArithArg], ctx: StepContext) -> Renaming | None:
    program, arguments = called(arrow), arrow.arguments
    observed = {site.name for site in sites(program.steps, ObserveModel) if not site.of_let}
    names = {name: f"{label}.{name}" for name in bound_names(own_steps(program))}
    data: dict[str, Expr] = {}
    declared = {item.name: without_aligned(item) for item in program.data}
    assert ctx.called is not None
    origin = ctx.scope.origin(ctx.called.name.span)
    within = next((item.name for item in program.data if item.inside), None)
    if within is not None:
        message = f"`{within}`, which an arrow of `{arrow.name}` observes, would not count here, where the template's "
        message += "steps become the program's and data get its name: observe it in the template itself"
        ctx.scope.report(UNCOUNTED_STEP, message, origin)
        return None
    for key in data_of(program):
        item, arg = declared.get(key), given.get(key)
        if arg is None:
            if item is not None:
                ctx.inherited.append(replace(item, name=f"{label}.{key}", origin=origin))
            names[key] = f"{label}.{key}"
            continue
        bare = _bare(arg)
        if bare is not None and _is_data(bare, ctx):
            if not _same_data(item, bare, arg, ctx):
                return None
            names[key] = bare.text
        elif key in observed:
            message = f"`{key}` is observed: only data can be given for it"
            ctx.scope.report(TEMPLATE_ARGUMENTS, message, arg.value.span)
            return None
        else:
            value = check_arith(arg.value, ctx)
            if item is not None and not _agrees(item, value.type, arg, ctx):
                return None
            data[key] = value
    return Renaming(names, data, {key: value for key, value in arguments if isinstance(value, str)})


def _bare(arg: ArithArg) -> Name | None:
    tree = arg.value
    while isinstance(tree, ParenArith):
        tree = tree.inner
    return tree.name if isinstance(tree, Variable) else None


def _is_data(name: Name, ctx: StepContext) -> bool:
    """Whether a name is data of the calling program: declared, observed or bound by nobody."""
    binding = ctx.find(name.text)
    if binding is None:
        return ctx.scope.lookup(name.text) is None
    return binding.kind == "data"


def _same_data(item: DataName | None, name: Name, arg: ArithArg, ctx: StepContext) -> bool:
    binding = ctx.bindings.get(name.text)
    if binding is not None:
        return item is None or _agrees(item, binding.type, arg, ctx)
    ctx.unbound(name, argument=False)
    origin = ctx.scope.origin(name.span)
    if item is not None:
        ctx.data.setdefault(name.text, (item.type, origin))
        ctx.inherited.append(replace(item, name=name.text, origin=origin))
    return True


def _agrees(item: DataName, given: ValueType, arg: ArithArg, ctx: StepContext) -> bool:
    problem = other_type(item.type, given)
    if problem is None:
        return True
    assert ctx.called is not None
    template = ctx.called.name.text
    message = f"`{item.name}` of `{template}` {problem}"
    related = (Related(f"`{template}` is declared here", DeclarationSite(template)),)
    ctx.scope.report(DATA_MISMATCH, message, arg.value.span, related)
    return False


# ---------------------------------------------------------------- steps


def _placed(
    step: SampleStep, program: Program, label: str, renaming: Renaming, ctx: StepContext
) -> tuple[StepModel, Bindings]:
    origin = ctx.scope.origin(step.pattern.span)
    names = step.pattern.names
    drawn = _drawn_alone(program) if not step.pattern.brackets else None
    if drawn is not None:
        renaming = replace(renaming, names={**renaming.names, drawn: label})
    steps = [_renamed(inner, renaming) for inner in own_steps(program)]
    bindings: Bindings = []
    for name, (_, returned), (kind, lies) in zip(names, program.returns, program.returned, strict=True):
        sources = frozenset(renaming.names.get(source, source) for source in lies.sources)
        place = ctx.scope.origin(name.span)
        named = Named(Unknown() if kind.space is None else kind.space, structure(kind.space or Unknown()))
        bindings.append((name.text, Binding("sample", kind, named, place, range=replace(lies, sources=sources))))
        if drawn is None:
            value = Bound(type=kind, origin=place, name=renaming.names.get(returned, returned))
            steps.append(LetModel(names=(name.text,), value=value, origin=place))
    whole = next((one for one in steps if drawn is not None and _is_site(one, label)), steps[-1])
    if drawn is not None:
        at = steps.index(whole)
        whole = steps[at] = _moved(whole, origin)
    ctx.inlined = tuple(steps)
    return whole, bindings


def _drawn_alone(program: Program) -> str | None:
    """The draw that is all that a template returns."""
    if len(program.returns) != 1:
        return None
    name = program.returns[0][1]
    found = any(isinstance(step, SampleModel) and step.site.name == name for step in program.steps)
    return name if found else None


def _is_site(step: StepModel, name: str) -> bool:
    return isinstance(step, SampleModel) and step.site.name == name


def _moved(step: StepModel, origin: Origin) -> StepModel:
    assert isinstance(step, SampleModel)
    return SampleModel(site=replace(step.site, origin=origin))


def _renamed(node: Any, renaming: Renaming) -> Any:
    """A node of the typed model with other names; arrows are left alone, their names are the file's."""
    match node:
        case Bound(name=name) | Data(name=name) if name in renaming.data:
            return renaming.data[name]
        case Bound(name=name) | Data(name=name):
            return replace(node, name=renaming.names.get(name, name))
        case Function(parameter=name):
            return _each(node, _without(renaming, [name]))
        case FactorTable(indices=indices):
            return _each(node, _without(renaming, [name for name, _ in indices]))
        case LetModel(names=names):
            made = replace(_each(node, renaming), names=tuple(renaming.names[name] for name in names))
            return made if made.indexed is None else replace(made, value=made.indexed.values[0])
        case ScoreModel(name=name):
            return replace(_each(node, renaming), name=renaming.names[name])
        case Site(name=name, bound=bound):
            held = tuple((renaming.names[one], named) for one, named in bound)
            return replace(_each(replace(node, bound=()), renaming), name=renaming.names[name], bound=held)
        case tuple():
            return tuple(_renamed(one, renaming) for one in cast(tuple[Any, ...], node))
        case Named(written=written):
            return replace(node, written=_WORD.sub(lambda found: renaming.sets.get(found[0], found[0]), written))
        case ArrowBase() | Origin() | ValueType():
            return node
        case _ if is_dataclass(node) and type(node).__module__.startswith(MODEL):
            return _each(node, renaming)
        case _:
            return node


def _each(node: Any, renaming: Renaming) -> Any:
    held = ((field.name, getattr(node, field.name)) for field in fields(node))
    return replace(node, **{name: _renamed(value, renaming) for name, value in held if not isinstance(value, str)})


def _without(renaming: Renaming, hidden: Sequence[str]) -> Renaming:
    names = {old: new for old, new in renaming.names.items() if old not in hidden}
    data = {name: value for name, value in renaming.data.items() if name not in hidden}
    return replace(renaming, names=names, data=data)
