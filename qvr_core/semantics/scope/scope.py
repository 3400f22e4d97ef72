"""What the check of one declaration reads and writes.

A check reads the *entries* of the names it uses (`Scope.lookup`) and writes diagnostics, equations between widths and
unresolved names.  It never evaluates another declaration: the checker (`semantics.file.checker`) has done that.

Neighbours of this contract:
    qvr_core.semantics.arrows.objects.check_object_expr(expr, scope) -> Named
    qvr_core.semantics.arrows.combinators.check_arrow_expr(expr, scope) -> Arrow
    qvr_core.semantics.arrows.combinators.arrow_of(name, scope) -> Arrow            (a bare name, as a `Ref`)
    qvr_core.semantics.scope.sequences.lift(arrow) -> Arrow                        (at every position of a sequence)
    qvr_core.semantics.programs.programs.check_program(statement, scope) -> Program
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from qvr_core.semantics.language.family import Family
from qvr_core.semantics.types.counted import Counted
from qvr_core.semantics.types.diagnostics import (
    Code,
    DeclarationSite,
    Diagnostic,
    Edit,
    Fix,
    Origin,
    Place,
    Related,
    Severity,
)
from qvr_core.semantics.types.model.arrows import Arrow, Density, Sort
from qvr_core.semantics.types.model.deductions import Composition, Deduction, Transformation
from qvr_core.semantics.types.model.extents import ANY_LENGTH, NO_STAGES, ONE_STAGE, Extent, Stages
from qvr_core.semantics.types.model.families import DeclaredFamily, Weights
from qvr_core.semantics.types.model.programs import Guided, Program
from qvr_core.semantics.types.model.terms import DataType
from qvr_core.semantics.types.spaces import Dim, Finite, Known, Linear, Named, Unknown
from qvr_core.semantics.types.subspace import fit
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.units import Statement

UNKNOWN = Named(Unknown(), "?")
"""The type of what could not be typed; it fits everywhere."""

RIGID = "%"
"""First letter of a template parameter's size variable.  Equations that mention one are not solved: the check of each
instance decides them."""


# ---------------------------------------------------------------- entries: what a name means to its users


@immutable
class ObjectEntry:
    """A declared object, or an `Object`/`FinSet` parameter of a template."""

    name: str
    space: Named


@immutable
class ArrowEntry:
    """A morphism, a let, an encoder, a decoder, a program, or a `Mor` parameter: everything that `Ref` may point at.

    `kind` is 'morphism', 'let', 'encoder', 'decoder', 'program' or 'parameter'; `role` that of a morphism
    ('' otherwise).
    `algebra` names the composition of a tensor arrow.
    """

    name: str
    kind: str
    domain: Named
    codomain: Named
    sort: Sort
    density: Density
    role: str = ""
    algebra: str | None = None
    direction: str | None = None
    """'forward' or 'backward' where the arrow folds the sequence that it reads."""
    ignores_input: bool = False
    """True for a statistical program: its declared domain names its rows, and any input will do."""
    extent: Extent = ANY_LENGTH
    stages: Stages = ONE_STAGE
    weights: tuple[Weights, ...] = ()
    """The weights with a prior that it applies."""
    data: tuple[str, ...] = ()
    """The data that programs in it read, which only a program that runs by itself is given."""
    terms: tuple[Counted, ...] = ()
    """The `score` and `observe` steps of programs in it, which count wherever they stand."""
    guided: Guided | None = None
    """Of a program: what its guides draw and read."""
    batched: bool = False
    """True where a batch norm in it makes of each row what all rows together lead to."""
    start: tuple[str, float | None, float | None] | None = None
    """Of a latent tensor: how it starts, near which weight, the spread of its parameters, where these are written."""
    own: Arrow | None = None
    """The arrow itself, where a template's call makes one and no declaration has it."""


@immutable
class FamilyEntry:
    """A declaration with `replicate=k`: only `fan(f)` and `scan(f)` may name it bare."""

    name: str
    copies: tuple[str, ...]


@immutable
class TemplateEntry:
    """A program with typed parameters.  `statement` is its tree: each instance is checked with arguments filled in."""

    name: str
    statement: Statement


@immutable
class GuideEntry:
    """A program that is the guide of another one: only a fit draws from it."""

    name: str
    model: str


@immutable
class FunctionEntry:
    """A function of arithmetic.  `statement` is its tree, which each call types anew; `reads` are the names of the file
    that its body may look up, and `language` those words of it that are the language's, whatever a file that calls it
    declares."""

    name: str
    statement: Statement
    reads: frozenset[str]
    language: frozenset[str] = frozenset()


@immutable
class DistributionEntry:
    """A family that the file declares; `facts` are what is known of any family."""

    name: str
    family: DeclaredFamily
    facts: Family


@immutable
class CompositionEntry:
    name: str
    composition: Composition


@immutable
class TransformationEntry:
    """A map between the weights of two compositions: what `change_base` takes."""

    name: str
    transformation: Transformation


@immutable
class DataTypeEntry:
    """A type of terms."""

    name: str
    type: DataType


@immutable
class DeductionEntry:
    name: str
    deduction: Deduction


@immutable
class DamagedEntry:
    """Declared, but its text is broken or part of a cycle: fits everywhere, is never reported again."""

    name: str


Entry = (
    ObjectEntry | ArrowEntry | FamilyEntry | TemplateEntry | GuideEntry | FunctionEntry | DistributionEntry
    | CompositionEntry | TransformationEntry | DataTypeEntry | DeductionEntry
    | DamagedEntry
)  # fmt: skip


PRELUDE: Mapping[str, ObjectEntry] = {"One": ObjectEntry("One", Named(Finite(1, "One"), "One"))}
"""What every file has without declaring it; a declaration of that name hides it, in its file alone."""

Argument = float | int | str | Entry
"""The value of a template's parameter: a number, or the entry of an object or an arrow."""


class Globals(Protocol):
    """The file as a check sees it."""

    def entry(self, name: str) -> Entry | None:
        """What a top-level name means; None where nobody declares it."""
        ...

    def solved(self, variable: str) -> int | None:
        """The value of a hole where it is solved."""
        ...

    def labels(self, name: str) -> tuple[str, ...] | None:
        """The labels that data have given to the elements of an open set."""
        ...

    def check_program(self, statement: Statement, scope: Scope, arguments: Mapping[str, Argument]) -> Program:
        """A template's body with its arguments filled in (symbols stand for those that are missing)."""
        ...


# ---------------------------------------------------------------- what a check writes


@immutable
class Equation:
    """The two sides of each pair must be equal: the widths of `given` and `wanted` at `place`.

    `gives` and `wants` make the message, which is asked for only where the equation is violated or cannot be solved.
    """

    pairs: tuple[tuple[Linear, Linear], ...]
    place: Origin
    code: Code
    gives: str
    wants: str
    given: Named
    wanted: Named
    related: tuple[Related, ...] = ()
    wrong: bool = False
    """True where known widths differ."""
    local: bool = False
    """True where a misfit rather means that another arrow was meant than that a declared size is wrong."""
    replica: tuple[str, int] | None = None
    """The replicated arrow that `given` fans out over, and the width of one copy."""


@immutable
class UnknownName:
    """A name that nobody declares.  The checker finds the likely spelling when it reports it.

    `wanted` says what stands there in words ('object', 'arrow', 'variable' …); `candidates` are local names to suggest
    besides the file's.
    """

    name: str
    place: Origin
    wanted: str
    candidates: tuple[str, ...] = ()


@dataclass(slots=True)
class Scope:
    """One check.  `unit` is the unit whose spans are being read: set it when going from a header to a step.

    `owner` is the declaration's name.  `local` holds entries that hide globals (template parameters), `local_sizes` the
    sizes that names stand for (`Nat` parameters).  `algebra` is the composition in force where the declaration stands.
    """

    globals: Globals
    unit: int
    owner: str
    algebra: str = "product_fuzzy"
    local: dict[str, Entry] = field(default_factory=dict[str, Entry])
    local_sizes: dict[str, Dim] = field(default_factory=dict[str, Dim])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    equations: list[Equation] = field(default_factory=list[Equation])
    unknown_names: list[UnknownName] = field(default_factory=list[UnknownName])
    size_places: dict[str, Place] = field(default_factory=dict[str, Place])
    """Where each size variable of this declaration is written."""
    size_values: dict[str, int] = field(default_factory=dict[str, int])
    """The value of each size variable that is written as a number."""
    holes: dict[str, str] = field(default_factory=dict[str, str])
    """Unknown size variables of this declaration -> how they are written (`_`, `d`); '' where the text writes none."""
    let_name: str | None = None
    """The top-level let that is being checked: its name may say in which direction a scan reads."""
    first_owner: str = ""
    """The first name of the declaration, which names the sizes that `object A, B : Real 64` writes once."""
    declaring: bool = False
    """True while the sizes of an `object` or `morphism` are read: their places are then `DeclarationSite`s."""
    terms: bool = False
    """True while a space is read in which a data type may stand."""
    size_index: int = 0
    doubtful: bool = False
    """True where it is left open what arrow the declaration means: what uses it says nothing more."""
    stages: Stages = NO_STAGES
    """How many declared arrows the step that is being checked applies."""
    operations: int = 0
    """How many operations its arithmetic comes to, with the functions that it calls written out."""

    # -- reading

    def lookup(self, name: str) -> Entry | None:
        """What a name means here, or None; reports nothing."""
        entry = self.local.get(name)
        entry = entry if entry is not None else self.globals.entry(name)
        return entry if entry is not None else PRELUDE.get(name)

    # -- writing

    def origin(self, span: Span) -> Origin:
        return Origin(self.unit, span)

    def report(
        self,
        code: Code,
        message: str,
        place: Span | Origin | DeclarationSite,
        related: Iterable[Related] = (),
        fixes: Iterable[Fix] = (),
    ) -> None:
        """One diagnostic; a span counts from the current unit."""
        where = self.origin(place) if isinstance(place, Span) else place
        self.diagnostics.append(Diagnostic(code, message, where, tuple(related), tuple(fixes)))

    def withdraw(self, code: Code, place: Origin) -> None:
        """Take back what was reported at a place, where it turns out to be no news."""
        self.diagnostics[:] = [one for one in self.diagnostics if one.code is not code or one.place != place]

    @property
    def mistaken(self) -> bool:
        """True where an error has been found so far."""
        errors = any(found.code.severity is Severity.ERROR for found in self.diagnostics)
        return bool(self.unknown_names) or errors or any(equation.wrong for equation in self.equations)

    def unknown(self, name: Name, wanted: str, candidates: Iterable[str] = ()) -> None:
        """A name that nobody declares; the checker adds the 'did you mean'."""
        self.unknown_names.append(UnknownName(name.text, self.origin(name.span), wanted, tuple(candidates)))

    def require_fit(
        self,
        given: Named,
        wanted: Named,
        place: Span | Origin,
        code: Code,
        gives: str,
        wants: str,
        related: Iterable[Related] = (),
        *,
        local: bool = False,
        replica: tuple[str, int] | None = None,
    ) -> bool:
        """Demand that `given` fits where `wanted` is wanted; False where it certainly does not.

        A misfit of kind (another finite set, a support) is reported here as '{gives} {given}, but {wants} {wanted}'.
        Widths become an equation, reported once for the whole file with the size to blame.
        `gives` and `wants` are halves of a sentence: '`fan(f, g)` gives', '`combine` wants'.
        """
        result = fit(given.space, wanted.space)
        where = self.origin(place) if isinstance(place, Span) else place
        if result.problem is not None:
            message = f"{gives} {show(given)}, but {wants} {show(wanted)}"
            if result.problem:
                message += f": {result.problem}"
            self.report(code, message, where, (*related, *declarations(self, given, wanted)))
            return False
        if result.widths:
            wrong = result.widths == "wrong"
            self.equations.append(
                Equation(result.pairs, where, code, gives, wants, given, wanted, tuple(related), wrong, local, replica)
            )
        return result.widths != "wrong"

    def size_variable(self, name: str, written: str, place: Place) -> Dim:
        """A hole's unknown: its solved value where there is one, else itself."""
        self.size_places[name] = place
        self.holes[name] = written
        value = self.globals.solved(name)
        form = Linear(0, ((name, 1),))
        return form if value is None else Known(value, form, hole=True)

    def fresh(self, span: Span, label: str) -> Dim:
        """An unknown width that the text does not write (a chunk's): same text, same unknown."""
        return self.size_variable(f"@{self.unit}.{span.start}.{label}", "", self.origin(span))


def respelt(name: Name, near: str | None, scope: Scope) -> tuple[Fix, ...]:
    """The fix of a 'did you mean'."""
    return () if near is None else (Fix(f"Change to `{near}`", (Edit(scope.origin(name.span), near),), True),)


def show(named: Named) -> str:
    """A space as messages give it: 'FwdHidden * BwdHidden (64 + 32 = 96)'."""
    from qvr_core.semantics.types.type_text import space_text

    return space_text(named)


def declarations(scope: Scope, *spaces: Named) -> list[Related]:
    """Related information: where the objects that `spaces` are made of are declared."""
    found: dict[str, Related] = {}
    for named in spaces:
        for name in words_of(named.written):
            entry = scope.lookup(name)
            if isinstance(entry, ObjectEntry) and name not in found and not _undeclared(name, entry, scope):
                found[name] = Related(f"`{name}` is declared here", DeclarationSite(name))
    return list(found.values())


def _undeclared(name: str, entry: ObjectEntry, scope: Scope) -> bool:
    return name in scope.local or PRELUDE.get(name) is entry


def words_of(written: str) -> list[str]:
    """The names in a space as the user wrote it."""
    return [word.strip("()") for word in written.split() if is_name(word.strip("()"))]


def is_name(written: str) -> bool:
    """Whether a text is a name, of an imported file perhaps: `Hidden`, `l.Hidden`."""
    return all(part.isidentifier() for part in written.split("."))
