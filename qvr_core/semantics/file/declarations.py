"""One statement of a file -> what it declares, what is wrong with it, and the equations between its widths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from qvr_core.semantics.algebras.saturation import saturated_joins
from qvr_core.semantics.arithmetic.arithmetic import check_arith
from qvr_core.semantics.arithmetic.defined_functions import check_function
from qvr_core.semantics.arrows.combinators import check_arrow_expr, damaged
from qvr_core.semantics.arrows.objects import alias_of, declared_space, written
from qvr_core.semantics.arrows.roles.morphisms import check_morphism
from qvr_core.semantics.arrows.uncounted import refuse_twice, terms_in, terms_of
from qvr_core.semantics.arrows.weight_priors import renamed, weights_of
from qvr_core.semantics.file.replicated_arrows import copies_of, replicas, replicate_number
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.compositions import COMPOSITION
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.scope.bounds import too_many_copies, too_many_stages
from qvr_core.semantics.scope.inherited import algebra_of, batched, data_of, extent_of, scanned_direction, stages_of
from qvr_core.semantics.scope.scope import (
    ArrowEntry,
    CompositionEntry,
    DamagedEntry,
    DataTypeEntry,
    DeductionEntry,
    DistributionEntry,
    Entry,
    Equation,
    FamilyEntry,
    FunctionEntry,
    Globals,
    GuideEntry,
    ObjectEntry,
    Scope,
    TemplateEntry,
    TransformationEntry,
    UnknownName,
)
from qvr_core.semantics.types.codes import HIDDEN_BUILTIN
from qvr_core.semantics.types.diagnostics import Diagnostic, Origin, Place
from qvr_core.semantics.types.internal_error import failure
from qvr_core.semantics.types.model.arrows import Arrow, Damaged, Latent, Sort
from qvr_core.semantics.types.model.deductions import Composition, Deduction, Transformation
from qvr_core.semantics.types.model.file import Export, LetArrow, ObjectModel, Replicated
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.terms import DataType, Decoder, Encoder
from qvr_core.semantics.types.program_codes import WEIGHT_PRIOR
from qvr_core.semantics.types.spaces import Linear, Named, sizes
from qvr_core.semantics.types.walk import arrows_of
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.statements import units_of
from qvr_core.syntax.tree.arrows import ArrowExpr, ArrowRef, ParenArrow
from qvr_core.syntax.tree.declarations import (
    CompositionHeader,
    DataTypeDecl,
    DecoderHeader,
    DeductionHeader,
    DefDecl,
    DefHeader,
    EncoderHeader,
    ExportDecl,
    FamilyHeader,
    Header,
    LetDecl,
    MorphismDecl,
    ObjectDecl,
    ProgramHeader,
    TransformationHeader,
)
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.units import Statement

Node = (
    ObjectModel
    | Arrow
    | LetArrow
    | Program
    | Composition
    | Transformation
    | DataType
    | Encoder
    | Decoder
    | Deduction
    | Replicated
)


@immutable
class Checked:
    """The result of checking one statement.  `nodes` are its parts of the typed model, by declared name."""

    entries: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    export: Export | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    unknown_names: tuple[UnknownName, ...] = ()
    equations: tuple[Equation, ...] = ()
    size_places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    size_values: Mapping[str, int] = field(default_factory=dict[str, int])
    holes: Mapping[str, str] = field(default_factory=dict[str, str])
    algebra: str = ""


def declared_names(statement: Statement, *, copied: bool = True) -> tuple[str, ...]:
    """The names that a statement adds to the file's namespace, copies of `replicate=` included unless not `copied`."""
    node = statement.header.unit.node
    names = tuple(name.text for name in statement.header.unit.declares)
    if statement.header.unit.keyword == "composition":
        # a namespace of their own: an algebra may be selected again further down
        return tuple(f"{COMPOSITION}{name}" for name in names)
    if copied and isinstance(node, MorphismDecl) and (copies := replicas(node)) is not None:
        return (*names, *(copy for name in names for copy in copies_of(name, copies)))
    return names


def check_statement(statement: Statement, file: Globals, algebra: str, beyond: int | None = None) -> Checked:
    """Check one statement against what the other names of its file mean.  Never raises, whatever the tree.  `beyond`:
    what `copies.Copies` says of a statement that declares too many copies."""
    node = statement.header.unit.node
    if node is None:
        return Checked({name: DamagedEntry(name) for name in declared_names(statement)}, algebra=algebra)
    first = statement.header.unit.declares[0].text if statement.header.unit.declares else ""
    scope = Scope(file, statement.uid, first, algebra, first_owner=first)
    try:
        return _check(statement, node, scope, beyond)
    except Exception as error:
        found = (*scope.diagnostics, failure(error, _failed_at(statement, scope)))
        damaged_entries = {name: DamagedEntry(name) for name in declared_names(statement)}
        return Checked(damaged_entries, diagnostics=found, unknown_names=tuple(scope.unknown_names), algebra=algebra)


def _failed_at(statement: Statement, scope: Scope) -> Origin:
    """The line that was being checked."""
    units = {placed.uid: placed.unit for placed in units_of(statement)}
    uid = scope.unit if scope.unit in units else statement.uid
    return Origin(uid, Span(0, len(units[uid].text)))


def _check(statement: Statement, node: Header, scope: Scope, beyond: int | None) -> Checked:
    entries: dict[str, Entry] = {}
    nodes: dict[str, Node] = {}
    export: Export | None = None
    _report_hidden(statement, scope)
    match node:
        case ObjectDecl():
            _objects(node, scope, entries, nodes)
        case MorphismDecl():
            _morphisms(node, scope, entries, nodes, beyond)
        case LetDecl():
            _let(node, scope, entries, nodes)
        case ExportDecl():
            export = _export(node, scope)
        case ProgramHeader():
            _program(statement, scope, entries, nodes)
        case DefDecl(name=name) | DefHeader(name=name):
            entries[name.text] = check_function(statement, scope, check_arith)
        case FamilyHeader(name=name):
            from qvr_core.semantics.programs.families.declared import check_family_declaration

            entries[name.text] = check_family_declaration(statement, scope)
        case CompositionHeader(name=name):
            from qvr_core.semantics.algebras.declared_compositions import check_composition

            composition = check_composition(statement, scope)
            entries[f"{COMPOSITION}{name.text}"] = CompositionEntry(name.text, composition)
            nodes[name.text] = composition
        case TransformationHeader(name=name):
            from qvr_core.semantics.algebras.declared_transformations import check_transformation

            transformation = check_transformation(statement, scope)
            if transformation is None:
                entries[name.text] = DamagedEntry(name.text)
            else:
                entries[name.text] = TransformationEntry(name.text, transformation)
                nodes[name.text] = transformation
        case DataTypeDecl(name=name):
            from qvr_core.semantics.terms.data_types import check_data_type

            data_type = check_data_type(statement, scope)
            entries[name.text] = DataTypeEntry(name.text, data_type)
            nodes[name.text] = data_type
        case EncoderHeader(name=name):
            from qvr_core.semantics.terms.encoders import check_encoder

            encoder = check_encoder(statement, scope)
            if encoder is None:
                entries[name.text] = DamagedEntry(name.text)
            else:
                entries[name.text] = arrow_entry(name.text, "encoder", encoder, scope)
                nodes[name.text] = encoder
        case DecoderHeader(name=name):
            from qvr_core.semantics.terms.decoders import check_decoder

            decoder = check_decoder(statement, scope)
            if decoder is None:
                entries[name.text] = DamagedEntry(name.text)
            else:
                entries[name.text] = arrow_entry(name.text, "decoder", decoder, scope)
                nodes[name.text] = decoder
        case DeductionHeader(name=name):
            from qvr_core.semantics.deductions.deductions import check_deduction

            deduction = check_deduction(statement, scope)
            entries[name.text] = DeductionEntry(name.text, deduction)
            nodes[name.text] = deduction
        case _:
            pass
    _forgive_broken_lines(statement, scope)
    return Checked(
        entries,
        nodes,
        export,
        tuple(scope.diagnostics),
        tuple(scope.unknown_names),
        tuple(scope.equations),
        scope.size_places,
        scope.size_values,
        scope.holes,
        scope.algebra,
    )


def _forgive_broken_lines(statement: Statement, scope: Scope) -> None:
    """Where a line has a syntax error, its meaning is a guess: what is wrong with that is not the user's mistake, nor
    what is wrong in other lines with a name that it may have bound."""
    if not (scope.diagnostics or scope.unknown_names or scope.equations):
        return
    units = {placed.uid: placed.unit for placed in units_of(statement)}
    broken = {uid for uid, unit in units.items() if unit.broken}
    if not broken:
        return
    words = {word for uid in broken for word in _WORD.findall(units[uid].text)}

    def forgiven(place: Place) -> bool:
        if not isinstance(place, Origin) or place.unit not in units:
            return False
        marked = units[place.unit].text[place.span.start : place.span.end]
        return place.unit in broken or marked in words

    scope.diagnostics = [item for item in scope.diagnostics if not forgiven(item.place)]
    scope.unknown_names = [item for item in scope.unknown_names if not forgiven(item.place)]
    scope.equations = [item for item in scope.equations if item.place.unit not in broken]


_WORD = re.compile(r"\w+")


def _report_hidden(statement: Statement, scope: Scope) -> None:
    if isinstance(statement.header.unit.node, CompositionHeader):
        return
    for name in statement.header.unit.declares:
        builtin = BUILTINS.get(name.text)
        if name.text in FAMILIES:
            scope.report(HIDDEN_BUILTIN, f"`{name.text}` hides the language's family of that name", name.span)
        elif builtin is not None and builtin.reserved:
            scope.report(HIDDEN_BUILTIN, f"`{name.text}` hides the language's function of that name", name.span)


def _owners(names: tuple[Name, ...], scope: Scope) -> Iterator[tuple[Name, Scope]]:
    """Each declared name with a scope of its own: what is wrong is reported for the first one only."""
    yield names[0], scope
    for name in names[1:]:
        quiet = Scope(scope.globals, scope.unit, name.text, scope.algebra, first_owner=scope.first_owner)
        yield name, quiet
        # a hole is an unknown of its own for each name
        scope.size_places.update(quiet.size_places)
        scope.holes.update(quiet.holes)
        scope.equations.extend(quiet.equations)


def _objects(decl: ObjectDecl, scope: Scope, entries: dict[str, Entry], nodes: dict[str, Node]) -> None:
    for name, own in _owners(decl.names, scope):
        own.declaring = True
        space = declared_space(decl.space, own)
        own.declaring = False
        entries[name.text] = ObjectEntry(name.text, Named(space, name.text))
        nodes[name.text] = ObjectModel(
            name=name.text,
            space=Named(space, written(decl.space)),
            alias=alias_of(decl.space),
            origin=own.origin(name.span),
        )


def _morphisms(
    decl: MorphismDecl, scope: Scope, entries: dict[str, Entry], nodes: dict[str, Node], beyond: int | None
) -> None:
    count = replicas(decl)
    if beyond and (number := replicate_number(decl)) is not None:
        too_many_copies(beyond, number.span, scope)
    for name, own in _owners(decl.names, scope):
        arrow = replace(check_morphism(decl, own), origin=own.origin(name.span))
        if beyond is not None:
            arrow = damaged(arrow.origin)
        entry = _morphism_entry(name.text, arrow, own)
        if count is None or beyond is not None:
            entries[name.text], nodes[name.text] = entry, arrow
            continue
        names = copies_of(name.text, count)
        for copy in names:
            entries[copy] = _copy(entry, copy)
            nodes[copy] = arrow if isinstance(arrow, Damaged) else replace(arrow, name=copy)
        entries[name.text] = FamilyEntry(name.text, names)
        nodes[name.text] = Replicated(name=name.text, copies=names, origin=own.origin(name.span))


def _copy(entry: ArrowEntry | DamagedEntry, name: str) -> ArrowEntry | DamagedEntry:
    if isinstance(entry, DamagedEntry):
        return replace(entry, name=name)
    return replace(entry, name=name, weights=renamed(entry.weights, name))


def _morphism_entry(name: str, arrow: Arrow, scope: Scope) -> ArrowEntry | DamagedEntry:
    if isinstance(arrow, Damaged) or scope.doubtful:
        return DamagedEntry(name)
    return arrow_entry(name, "morphism", arrow, scope, type(arrow).__name__.lower())


def arrow_entry(name: str, kind: str, arrow: Arrow, scope: Scope, role: str = "") -> ArrowEntry:
    """What the users of a declared arrow see."""
    return ArrowEntry(
        name,
        kind,
        arrow.domain,
        arrow.codomain,
        arrow.sort,
        arrow.density,
        role,
        algebra_of(arrow, scope) if arrow.sort is Sort.TENSOR else None,
        scanned_direction(arrow, scope),
        extent=extent_of(arrow, scope),
        stages=stages_of(arrow, scope),
        weights=weights_of(arrow, scope),
        data=data_of(arrow, scope),
        terms=terms_of(arrow, scope),
        start=(arrow.init, arrow.start, arrow.scale) if isinstance(arrow, Latent) else None,
        batched=batched(arrow, scope),
    )


def _let(decl: LetDecl, scope: Scope, entries: dict[str, Entry], nodes: dict[str, Node]) -> None:
    name = decl.name.text
    scope.let_name = name
    arrow = _buildable(check_arrow_expr(decl.value, scope), decl.value.span, scope)
    nodes[name] = LetArrow(name=name, arrow=arrow, origin=scope.origin(decl.name.span))
    saturated_joins(arrow, scope)
    damaged = isinstance(arrow, Damaged) or scope.doubtful
    entries[name] = DamagedEntry(name) if damaged else arrow_entry(name, "let", arrow, scope)


def _buildable(arrow: Arrow, span: Span, scope: Scope) -> Arrow:
    """The arrow, or a damaged one (reported) where it is too large, or observes two things under one name."""
    too_large = too_many_stages(stages_of(arrow, scope), arrow.domain, arrow.codomain, span, scope)
    return damaged(arrow.origin) if too_large or refuse_twice(arrow, scope) else arrow


def _export(decl: ExportDecl, scope: Scope) -> Export:
    name = bare_name(decl.value)
    if name is None:
        arrow = _buildable(check_arrow_expr(decl.value, scope), decl.value.span, scope)
        saturated_joins(arrow, scope)
        return Export(name="", arrow=arrow, origin=scope.origin(decl.span))
    entry = scope.lookup(name.text)
    if isinstance(entry, ArrowEntry) and entry.weights:
        message = f"the weights of `{entry.weights[0].name}` have a prior: only a program can draw them"
        scope.report(WEIGHT_PRIOR, message, name.span)
    if entry is None or isinstance(entry, ObjectEntry | FamilyEntry | GuideEntry):
        check_arrow_expr(decl.value, scope)
    return Export(name=name.text, arrow=None, origin=scope.origin(decl.span))


def bare_name(expr: ArrowExpr) -> Name | None:
    """The name that an expression is, parentheses aside; None for any other expression."""
    while isinstance(expr, ParenArrow):
        expr = expr.inner
    return expr.name if isinstance(expr, ArrowRef) else None


def _program(statement: Statement, scope: Scope, entries: dict[str, Entry], nodes: dict[str, Node]) -> None:
    from qvr_core.semantics.programs.programs import check_program

    program = check_program(statement, scope)
    scope.unit = statement.uid
    nodes[program.name] = program
    if too_many_stages(program.stages, program.domain, program.codomain, program.origin.span, scope):
        entries[program.name] = DamagedEntry(program.name)
        nodes[program.name] = damaged(program.origin)
        return
    if program.guidance is not None:
        entries[program.name] = GuideEntry(program.name, program.guidance.model)
        return
    if program.template:
        entries[program.name] = TemplateEntry(program.name, statement)
        return
    entries[program.name] = ArrowEntry(
        program.name,
        "program",
        program.domain,
        program.codomain,
        program.sort,
        program.density,
        ignores_input=not program.uses_input,
        extent=program.extent,
        stages=program.stages,
        data=tuple(item.name for item in program.data if not item.inside),
        terms=terms_in(program, scope),
        guided=program.guided,
        batched=any(batched(arrow, scope) for arrow in arrows_of(program)),
    )


# ---------------------------------------------------------------- signatures


Signature = tuple[object, ...]


def signature(entry: Entry) -> Signature:
    """What must be equal for the users of a name to stay as they are."""
    match entry:
        case ObjectEntry(name=name, space=space):
            return ("object", name, *_spelt(space))
        case ArrowEntry():
            return (entry, *_spelt(entry.domain), *_spelt(entry.codomain))
        case TemplateEntry() | FunctionEntry() | DistributionEntry():
            return (object(),)  # what calls it is typed with its lines
        case _:
            return (entry,)


def _spelt(named: Named) -> tuple[object, ...]:
    # equality of spaces looks at neither the spelling nor the variables behind the sizes
    forms = tuple(size if isinstance(size, Linear) else getattr(size, "form", None) for size in sizes(named.space))
    return (named.space, named.written, forms)
