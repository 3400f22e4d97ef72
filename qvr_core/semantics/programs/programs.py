"""Programs: the typed do-block, step by step (docs/reference.md#programs-and-steps).

A step is checked again only where its own text or something that it reads has changed: `step_results`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from weakref import WeakKeyDictionary

from qvr_core.operations.intervals import ANYTHING, Interval
from qvr_core.semantics.arithmetic.charts.parsing import check_sentences
from qvr_core.semantics.arithmetic.read_cycles import check_cycles
from qvr_core.semantics.arrows.objects import check_object_expr
from qvr_core.semantics.arrows.own_arrows import own_arrows
from qvr_core.semantics.arrows.uncounted import called_there, refuse_steps, refuse_taken
from qvr_core.semantics.arrows.weight_sites import Use, has_weights, weight_sites
from qvr_core.semantics.programs.chains.group_lags import group_lags
from qvr_core.semantics.programs.chains.group_shifts import check_group_shifts
from qvr_core.semantics.programs.chains.ragged_data import ragged_sets
from qvr_core.semantics.programs.chains.ragged_reads import check_ragged_reads
from qvr_core.semantics.programs.guides.checks import (
    check_guide,
    check_no_guide,
    data_bindings,
    guided_model,
    sequence_inputs,
)
from qvr_core.semantics.programs.guides.guided import guided
from qvr_core.semantics.programs.observed.data_lets import check_observed_again
from qvr_core.semantics.programs.observed.missing_cells import check_missing
from qvr_core.semantics.programs.program_density import program_density
from qvr_core.semantics.programs.program_inputs import (
    InputFactor,
    check_inputs,
    check_template,
    check_term_uses,
    flat_names,
    input_bindings,
    model_inputs,
)
from qvr_core.semantics.programs.program_options import HeaderOptions, check_keep, check_lengths, read_header_options
from qvr_core.semantics.programs.program_rules import (
    Bound,
    bind_all,
    check_free,
    check_local_name,
    check_plates,
    check_unused,
    tell_once,
)
from qvr_core.semantics.programs.returns import Returned, check_return
from qvr_core.semantics.programs.step_results import Block, Memory, Pass
from qvr_core.semantics.programs.step_typing import type_steps
from qvr_core.semantics.programs.undeclared.aligned_data import with_aligned
from qvr_core.semantics.scope.environment import Binding
from qvr_core.semantics.scope.inherited import joint_extent
from qvr_core.semantics.scope.scope import Argument, ArrowEntry, Globals, Scope
from qvr_core.semantics.types.deterministic import deterministic
from qvr_core.semantics.types.diagnostics import Edit, Fix, Origin
from qvr_core.semantics.types.model.arrows import Sort
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.extents import NO_STAGES
from qvr_core.semantics.types.model.programs import Guidance, Program
from qvr_core.semantics.types.model.steps import ArrowDraw, ObserveModel, SampleModel
from qvr_core.semantics.types.program_codes import EFFECT_MISMATCH, MISSING_RETURN, UNUSED_EFFECT
from qvr_core.semantics.types.spaces import Named, Unknown, has_seq
from qvr_core.semantics.types.walk import sites
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.statements import units_of
from qvr_core.syntax.tree.arithmetic import Variable
from qvr_core.syntax.tree.declarations import Item, ProgramHeader
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import Size
from qvr_core.syntax.tree.steps import ReturnStep
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.walk import walk as walk_tree

_memories: WeakKeyDictionary[Globals, dict[str, Memory]] = WeakKeyDictionary()
"""Per file and program: the passes of the last check, the program that was checked last at the end."""

_MOST_STEPS = 20_000
"""Steps remembered in one file; programs that were not checked for long are forgotten first."""


def check_program(statement: Statement, scope: Scope, arguments: Mapping[str, Argument] | None = None) -> Program:
    """The typed program; `arguments` fill in its typed parameters (symbols stand for them otherwise)."""
    try:
        return _check_program(statement, scope, arguments)
    except Exception:
        with suppress(TypeError):
            _memories.pop(scope.globals, None)  # a pass may have stopped half-way
        raise


def _check_program(statement: Statement, scope: Scope, arguments: Mapping[str, Argument] | None) -> Program:
    header = statement.header.unit.node
    assert isinstance(header, ProgramHeader)
    template, parameters = check_template(header, scope, arguments)
    domain = check_object_expr(header.domain, scope, terms=True)
    codomain = check_object_expr(header.codomain, scope, terms=True)
    options = read_header_options(header, scope)
    model = None if options.guide is None else guided_model(options.guide, options.rest, header, scope)
    factors = check_inputs(header, domain, scope)
    for factor in factors:
        if factor.given:
            check_local_name(
                factor.name, Binding("input", ValueType(None), factor.named, scope.origin(factor.span)), scope
            )
    # What a step has read of the header's arrows and objects is not recorded: such templates are typed anew.
    # symbols of a template are no part of what a step records
    memory = _memory(scope) if arguments is None and not scope.local and not scope.local_sizes else {}
    if model is not None:
        parameters = {**data_bindings(model, statement.header.children), **parameters}
    lifted = frozenset[str]() if model is None else sequence_inputs(model, flat_names(factors))
    typed = _read(statement, factors, parameters, memory, scope, lifted)
    returned = _returned(statement, typed, codomain, scope, guide=options.guides)
    done = typed.effects
    scope.unit = statement.uid
    if options.effects is not None:
        _check_effects(options.effects, options.span, done, scope)
    reached = {
        name: entry.extent
        for block in typed.blocks
        for name, entry in block.entries.items()
        if isinstance(entry, ArrowEntry)
    }
    made = [scope.local.get(one.name) for one in template]
    reached.update((entry.name, entry.extent) for entry in made if isinstance(entry, ArrowEntry))
    lengths = None
    # a line that cannot be read may be the one that would have read a sequence
    if options.lengths is not None and not any(placed.unit.broken for placed in units_of(statement)):
        lengths = check_lengths(options.lengths, typed.bindings, typed.whole, reached, scope)
    padded = None if lengths is None else lengths.datum
    _check_data_inside(typed.blocks, typed.bindings, scope)
    if lengths is not None:
        _refuse_padded(typed.blocks, scope)
    guidance = None
    if not options.guides:
        check_no_guide(statement.header.children, typed.blocks, scope)
    elif model is not None:
        lines = statement.header.children
        guidance = check_guide(model, header, lines, typed.blocks, typed.bindings, typed.whole, typed.uses_input, scope)
        typed = replace(typed, uses_input=model.reads_input)
    data = check_free(typed.blocks, Bound(typed.bindings, typed.inner), statement.header.children, scope, padded)
    check_sentences(chain.from_iterable(block.models for block in typed.blocks), scope)
    if model is not None:
        read = frozenset[str]().union(*(block.reads for block in typed.blocks))
        data = (*(item for item in model.guided.data if item.name in read), *data)
    if not typed.uses_input:
        results = chain.from_iterable(block.results for block in typed.blocks)
        data = with_aligned(data, (one.beside for one in results if one.beside is not None), scope)
    _check_whole(typed, returned, options, statement, scope)
    if not scope.mistaken:
        scope.unit = statement.uid
        models = [*chain.from_iterable(block.models for block in typed.blocks)]
        check_term_uses(models, typed.whole, header.domain.span, scope)
    if not scope.mistaken:
        check_group_shifts(statement.header.children, data, scope)
    scope.unit = statement.uid
    items = () if returned is None else returned.items
    name_place = scope.origin(header.name.span)
    used = [] if options.guides else _weighted(typed, name_place)
    weights = weight_sites(used, typed.bindings, typed.uses_input, scope, name_place)
    sampled = bool(weights) or any(block.sampled for block in typed.blocks)
    sort = Sort.SAMPLED if sampled else Sort.DETERMINISTIC
    program = Program(
        name=header.name.text,
        inputs=model_inputs(factors, typed.bindings),
        template=template,
        declared_domain=domain,
        declared_codomain=codomain,
        domain=typed.whole,
        codomain=Named(Unknown(), codomain.written) if returned is None else returned.codomain,
        sort=sort,
        steps=(*weights, *chain.from_iterable(block.models for block in typed.blocks)),
        returns=items,
        tupled=returned is not None and returned.tupled,
        data=data,
        uses_input=typed.uses_input,
        effects=done or frozenset(("Pure",)),
        density=program_density(typed.blocks, [name for _, name in items]),
        origin=name_place,
        lengths=None if lengths is None else lengths.value,
        extent=joint_extent(reached.values()),
        stages=sum((block.stages for block in typed.blocks), NO_STAGES),
        returned=tuple(_value(typed, name) for _, name in items),
        own=own_arrows(made),
        guidance=guidance or (Guidance(model=options.guided_name, rest=options.rest) if options.guides else None),
    )
    if not options.guides and not template:
        program = replace(program, guided=guided(program.steps, data, scope))
    if returned is not None and not scope.mistaken:
        _check_used(typed, returned, options, statement, program, scope)
    if options.keep is not None and not scope.mistaken:
        program = replace(program, keep=check_keep(options.keep, program, scope))
    if any(block.incomplete for block in typed.blocks):
        check_missing(program, scope)
    if any(block.incomplete for block in typed.blocks) or any(item.lengths for item in data):
        check_ragged_reads(program, scope)
    return program


def _weighted(typed: Reading, header: Origin) -> list[Use]:
    """What each step looks up, at the first name that it binds, in the blocks that apply weights with a prior."""
    results = chain.from_iterable(block.results for block in typed.blocks if has_weights(block.entries.values()))
    places = ((result, next(iter(result.binds.values()), None)) for result in results)
    return [Use(result.entries.values(), header if first is None else first.origin) for result, first in places]


def _value(typed: Reading, name: str) -> tuple[ValueType, Interval]:
    binding = typed.bindings.get(name)
    return (ValueType(Unknown()), ANYTHING) if binding is None else (binding.type, binding.range)


def _memory(scope: Scope) -> Memory:
    """What is remembered of a program, under its name."""
    try:
        known = _memories.setdefault(scope.globals, {})
    except TypeError:
        return {}
    key = f"{scope.owner} {scope.algebra}"
    memory = known.pop(key, None)
    if memory is None:
        memory = {}
        kept = sum(len(one.order) for each in known.values() for one in each.values())
        while known and kept > _MOST_STEPS:
            kept -= sum(len(one.order) for one in known.pop(next(iter(known))).values())
    known[key] = memory
    return memory


# ---------------------------------------------------------------- steps


@immutable
class Reading:
    """All steps, typed: what they bind, and the `return` line."""

    blocks: list[Block]
    inputs: dict[str, Binding]
    bindings: dict[str, Binding]
    inner: dict[str, Binding]
    whole: Named
    uses_input: bool
    effects: frozenset[str]
    final: Placed[Item] | None
    damaged_return: bool


def _read(
    statement: Statement,
    factors: tuple[InputFactor, ...],
    parameters: Mapping[str, Binding],
    memory: Memory,
    scope: Scope,
    lifted: frozenset[str],
) -> Reading:
    """Type the steps, with the inputs `lifted` as sequences; once more with others where an arrow wants them so."""
    visited: set[frozenset[str]] = set()
    while True:
        visited.add(lifted)
        one = memory.setdefault(lifted, Pass())
        fresh, whole = input_bindings(factors, lifted, scope)
        fresh.update(parameters)
        fresh.update(ragged_sets(statement.header.children))
        type_steps(
            statement, one, fresh, flat_names(factors), group_lags(statement.header.children, fresh, scope), scope
        )
        blocks = one.regroup()
        wanted = lifted.union(*(block.lifts for block in blocks))
        if wanted == lifted:
            break
        lifted = wanted
    for key in [key for key in memory if key not in visited]:
        del memory[key]
    return _assemble(statement, blocks, one, whole, scope)


def _assemble(statement: Statement, blocks: list[Block], one: Pass, whole: Named, scope: Scope) -> Reading:
    for block in blocks:
        block.write_to(scope)
    bindings, inner = bind_all(blocks, one.inputs, scope)
    tell_once(scope)
    returns = [p for p in statement.header.children[-1:] if isinstance(p.unit.node, ReturnStep)]
    if not returns:
        returns = [p for p in statement.header.children if isinstance(p.unit.node, ReturnStep)]
    damaged = not returns and any(p.unit.node is None and p.unit.keyword == "return" for p in statement.header.children)
    return Reading(
        blocks=blocks,
        inputs=one.inputs,
        bindings=bindings,
        inner=inner,
        whole=whole,
        uses_input=any(block.uses_input for block in blocks) or _returns_input(returns, one.inputs),
        effects=frozenset[str]().union(*(block.effects for block in blocks)),
        final=returns[0] if returns else None,
        damaged_return=damaged,
    )


def _returns_input(returns: Sequence[Placed[Item]], inputs: Mapping[str, Binding]) -> bool:
    names = {item.name.text for p in returns if isinstance(p.unit.node, ReturnStep) for item in p.unit.node.items}
    return any(name in names and binding.kind == "input" for name, binding in inputs.items())


# ---------------------------------------------------------------- the whole


def _returned(statement: Statement, typed: Reading, codomain: Named, scope: Scope, *, guide: bool) -> Returned | None:
    """What the `return` line says; a guide needs none, and may return anything."""
    if typed.final is not None:
        node = typed.final.unit.node
        assert isinstance(node, ReturnStep)
        scope.unit = typed.final.uid
        return check_return(node, typed.bindings, typed.inner, codomain, typed.uses_input and not guide, scope)
    if guide:
        return Returned((), False, codomain, codomain)
    if not typed.damaged_return:
        _missing_return(statement, typed, scope)
    return None


def _missing_return(statement: Statement, typed: Reading, scope: Scope) -> None:
    header = statement.header
    node = header.unit.node
    assert isinstance(node, ProgramHeader)
    fixes: tuple[Fix, ...] = ()
    last = next((next(reversed(block.binds)) for block in reversed(typed.blocks) if block.binds), None)
    if last is not None and header.children:
        place, column = _last_line(header.children[-1]), header.children[0].column
        edit = Edit(place, f"\n{' ' * column}return {last}", "after")
        fixes = (Fix(f"Add `return {last}`", (edit,), True),)
    scope.unit = statement.uid
    scope.report(MISSING_RETURN, f"`{node.name.text}` does not say what it returns", node.name.span, fixes=fixes)


def _last_line(placed: Placed[Item]) -> Origin:
    while placed.children:
        placed = placed.children[-1]
    return Origin(placed.uid, Span(0, len(placed.unit.text)))


def _check_whole(
    typed: Reading, returned: Returned | None, options: HeaderOptions, statement: Statement, scope: Scope
) -> None:
    """Circles of reads; a program with mistakes is left alone, they may be why."""
    if scope.mistaken or returned is None:
        return
    check_observed_again(typed.blocks, scope)
    if observed := _observed_above(typed):
        check_cycles(statement.header.children, observed, scope)


def _check_used(
    typed: Reading, returned: Returned, options: HeaderOptions, statement: Statement, program: Program, scope: Scope
) -> None:
    """Hints about what nothing uses; a let that depends on a latent is kept with the draws, and so of use."""
    names = [name for _, name in returned.items]
    if options.lengths is not None:
        names.append(options.lengths.text)
    names.extend(name.text for name in options.keep or ())
    names += _read_by_header(statement)
    kept = partial(deterministic, program) if options.keep is None else tuple[str, ...]
    check_unused(typed.blocks, typed.inputs, names, "Score" in typed.effects, kept, scope)
    if not options.guides:
        check_plates(typed.blocks, typed.bindings, names, scope)


def _read_by_header(statement: Statement) -> Iterator[str]:
    """Typed parameters that stand in defaults, and those that are sizes anywhere."""
    header = statement.header.unit.node
    assert isinstance(header, ProgramHeader)
    for one in header.parameters or ():
        if one.default is not None:
            yield from (node.name.text for node in walk_tree(one.default) if isinstance(node, Variable))
    if any(one.kind is not None and one.kind.text == "Nat" for one in header.parameters or ()):
        nodes = chain.from_iterable(walk_tree(placed.unit.node) for placed in units_of(statement))
        yield from (node.value for node in nodes if isinstance(node, Size) and isinstance(node.value, str))


def _observed_above(typed: Reading) -> list[str]:
    """The observed names that other steps read."""
    bound = chain(typed.inner.items(), typed.bindings.items())
    observed = dict.fromkeys(name for name, binding in bound if binding.kind == "observe")
    return [name for name in observed if any(_reads(name, block) for block in typed.blocks)]


def _reads(name: str, block: Block) -> bool:
    """Whether a step of the block reads a name other than to bind it."""
    return name in block.reads and any(name in each.reads and name not in each.binds for each in block.results)


def _check_data_inside(blocks: Sequence[Block], bindings: Mapping[str, Binding], scope: Scope) -> None:
    """Report what two programs in arrows observe under one name, or one under a name that stands for something else."""
    if scope.mistaken:
        return
    bound = {name: "a name of the program" for name, binding in bindings.items() if binding.kind != "data"}
    for site in sites(chain.from_iterable(block.models for block in blocks), SampleModel, ObserveModel):
        if isinstance(site.draw, ArrowDraw):
            bound |= refuse_taken(site.draw.arrow, site.draw.origin, bound, scope)


def _refuse_padded(blocks: Sequence[Block], scope: Scope) -> None:
    """Report what is scored or observed along sequences whose positions do not all count."""
    for site in sites(chain.from_iterable(block.models for block in blocks), SampleModel, ObserveModel):
        if isinstance(site.draw, ArrowDraw) and has_seq(site.draw.arrow.domain.space):
            arrow = site.draw.arrow
            refuse_steps(arrow, called_there(arrow), site.draw.origin, scope, "beside the program's `lengths`")


def _check_effects(declared: frozenset[str], span: Span, done: frozenset[str], scope: Scope) -> None:
    missing = sorted(done - declared)
    if missing:
        words = ", ".join(f"`{name}`" for name in missing)
        body = "has the effect" if len(missing) == 1 else "has the effects"
        scope.report(EFFECT_MISMATCH, f"the body {body} {words}, which `effects=` does not list", span)
        return
    surplus = sorted(declared - done - {"Pure"})
    if "Pure" in declared and done:
        surplus.append("Pure")
    if surplus:
        words = ", ".join(f"`{name}`" for name in surplus)
        scope.report(UNUSED_EFFECT, f"the body does not have the effect {words}", span)
