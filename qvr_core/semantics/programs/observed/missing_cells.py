"""`[missing=impute]` and `[missing=drop]`: what an observed step does with cells that its data leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qvr_core.semantics.arithmetic.indices import set_size, shift_of
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.programs.observed.summed_cells import check_summed, not_summable
from qvr_core.semantics.programs.step_options import StepOptions
from qvr_core.semantics.scope.environment import Running, StepContext
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.diagnostics import Related
from qvr_core.semantics.types.model.expressions import Bound, Constant, Data, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import MarginalizeModel, MissingCells, ObserveModel, Site, StepModel
from qvr_core.semantics.types.program_codes import STEP_OPTION
from qvr_core.semantics.types.walk import all_steps, operands, values, walk
from qvr_core.syntax.tree.arithmetic import Arith, Comprehension, Gather, Variable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.options import Word
from qvr_core.syntax.walk import walk as walk_tree

_WITHOUT = {"impute": ("via", "at", "mask", "weight"), "drop": ("at",)}
"""Options that say something else of the same cells."""


def missing_cells(
    name: Name,
    family: Family | None,
    options: StepOptions,
    ctx: StepContext,
    trees: Sequence[Arith] = (),
    indices: Sequence[Running] = (),
) -> MissingCells | None:
    """What the option of a step comes to, or None; reports where it cannot be.

    `trees` are the arguments of a step with `indices`, one of which may lag behind.
    """
    option = options.missing
    if option is None or not isinstance(option.value, Word):
        return None
    how = option.value.text
    problem = _problem(how, family, options, ctx)
    if problem is not None:
        ctx.scope.report(STEP_OPTION, problem, option.span)
        return None
    chain = next((one for one in indices if one.lag), None)
    if how == "impute":
        return MissingCells(how="sum" if family is not None and family.discrete else how)
    if chain is None:
        return MissingCells(how=how)
    return MissingCells(how=how, shifts=tuple(sorted(set(_shifts(name, trees, indices, chain, ctx)))))


def _problem(how: str, family: Family | None, options: StepOptions, ctx: StepContext) -> str | None:
    if family is None:
        return "`missing` needs a family with its arguments behind `<-`, such as `Normal(m, s)`"
    other = next((key for key in _WITHOUT[how] if getattr(options, key) is not None), None)
    if other is not None:
        return f"`missing={how}` and `{other}` both say which cells count: leave one of them out"
    if how == "drop":
        return None
    if options.limits:
        key = next(iter(options.limits))
        if key.startswith("truncate"):
            said = f"a missing cell would have to be drawn within `{key}`, which is not there"
            return f"{said}; `missing=drop` leaves it out"
        return f"a cell with `{key}` is not missing: something is known of its value"
    if ctx.marginal and family.discrete:
        return (
            f"`{family.name}` is discrete, so its missing cells would be summed out: inside `marginalize` "
            "`missing=drop` does that"
        )
    return not_summable(family) if family.discrete else None


def _shifts(
    name: Name, trees: Sequence[Arith], indices: Sequence[Running], chain: Running, ctx: StepContext
) -> Iterator[int]:
    """How far back the step reads itself; reports a place that only a run would tell."""
    for tree in trees:
        nodes = list(walk_tree(tree))
        inner = [node for node in nodes if isinstance(node, Comprehension)]
        sizes: dict[str, int | None] = {
            binder.name.text: set_size(binder, ctx.scope) for n in inner for binder in n.binders
        }
        sizes |= {one.name: None if one.space is None else _number(one.space.size) for one in indices}
        chosen = {id(part) for one in inner if one.condition is not None for part in walk_tree(one)}
        gathers = [node for node in nodes if isinstance(node, Gather) and _is(node.base, name)]
        bases = {id(node.base) for node in gathers}
        for node in nodes:
            if _is(node, name) and id(node) not in bases:
                _report_place(name, node.name.span, ctx)  # pyright: ignore
        for node in gathers:
            found = _own_shift(node, indices, chain, sizes, ctx)
            if found is None or id(node) in chosen:
                _report_place(name, node.span, ctx)
            else:
                yield from found


def _is(node: object, name: Name) -> bool:
    return isinstance(node, Variable) and node.name.text == name.text


def _number(size: object) -> int | None:
    return int(size) if isinstance(size, int) else None


def _own_shift(
    node: Gather, indices: Sequence[Running], chain: Running, sizes: dict[str, int | None], ctx: StepContext
) -> range | None:
    if len(node.indices) != len(indices):
        return None
    found: range | None = None
    for index, own in zip(node.indices, indices, strict=True):
        shift = shift_of(index, sizes, ctx)
        if shift is None or shift.index != own.name:
            return None
        if own is chain:
            found = range(shift.least, shift.most + 1)
        elif shift.most:
            return None
    return found


def _report_place(name: Name, place: Span, ctx: StepContext) -> None:
    message = (
        f"`missing=drop` leaves out what reads a missing `{name.text}`, and which elements this reads, only a run "
        "would tell: shift the index (`t - 1`), or use `missing=impute`"
    )
    ctx.scope.report(STEP_OPTION, message, place)


# ---------------------------------------------------------------- the program as a whole


def check_missing(program: Program, scope: Scope) -> None:
    """Report who reads cells that may be missing, and a program whose rows would each miss others."""
    steps = list(all_steps(program.steps))
    below = {id(inner) for step in steps if isinstance(step, MarginalizeModel) for inner in all_steps(step.body)}
    for at, step in enumerate(steps):
        site = step.site if isinstance(step, ObserveModel) else None
        if site is None or site.missing is None:
            continue
        if site.missing.how != "drop" and program.uses_input:
            message = (
                "`missing=impute` is for a program that does not read its input: each row here may miss another cell"
            )
            scope.report(STEP_OPTION, message, site.origin)
        elif site.missing.how == "drop":
            _check_dropped(site, step, steps, scope)
        elif _computed_bounds(site):
            _check_late(site, steps[:at], scope, id(step) in below)
    check_summed(program, scope)


def _check_late(site: Site, above: Sequence[StepModel], scope: Scope, below: bool) -> None:
    """Bounds that are computed are known at the step only, and so is a value between them; `below` a `marginalize` not
    even there, as each hidden value may have others."""
    if below:
        message = (
            f"between which bounds a missing cell of `{site.name}` lies is known with the arguments, which each hidden "
            "value has of its own; `missing=drop` leaves the cell out"
        )
        scope.report(STEP_OPTION, message, site.origin)
        return
    if site.chain is not None:
        message = f"the bounds of `{site.name}` are computed from its own earlier elements, which may be missing"
        scope.report(STEP_OPTION, message, site.origin)
    for expr in _mentions(site.name, above):
        message = f"`{site.name}` has missing cells, and the bounds that they lie between are computed further down"
        scope.report(STEP_OPTION, message, expr.origin, (Related(f"`{site.name}` is observed here", site.origin),))


def _computed_bounds(site: Site) -> bool:
    draw = site.draw
    if not isinstance(draw, FamilyDraw) or all(isinstance(value, Constant) for _, value in draw.args):
        return False
    family = facts_of_draw(draw)
    return family.bounded_by is not None or family.above is not None


def _check_dropped(site: Site, own: StepModel, steps: Sequence[StepModel], scope: Scope) -> None:
    for step in steps:
        for expr in _mentions(site.name, [step]):
            if step is own:
                continue
            message = (
                f"`{site.name}` has missing cells, which its step leaves out: nothing else can read it. To fill them "
                "in there, use `missing=impute`"
            )
            scope.report(STEP_OPTION, message, expr.origin, (Related(f"`{site.name}` is observed here", site.origin),))
            return


def _mentions(name: str, steps: Sequence[StepModel]) -> Iterator[Expr]:
    for step in steps:
        for value in values(step):
            yield from (part for part in walk(value, operands) if isinstance(part, Bound | Data) and part.name == name)
