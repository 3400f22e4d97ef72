"""What the names of a program stand for while its steps are typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qvr_core.operations.intervals import ANYTHING, Interval
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.diagnostics import Diagnostic, Origin
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.programs import DataName
from qvr_core.semantics.types.model.steps import StepModel
from qvr_core.semantics.types.spaces import Finite, Named
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.arithmetic import Arith, ArithArg, ArithCall, Lambda
from qvr_core.syntax.tree.declarations import Item
from qvr_core.syntax.tree.names import Name, Span


@immutable
class Binding:
    """A bound name.

    `kind` is 'input', 'sample', 'observe', 'predict', 'marginalize', 'let', 'score', 'parameter', 'index' (of a
    factor), 'chart', 'deduction', 'function', 'data' (declared by a `data` step) or 'pieces' (several values, as from
    `chunk`).  `named` is the space of one element as messages give it; `reaches` are the inputs that the value is
    computed from; `parts` the pieces' types.
    """

    kind: str
    type: ValueType
    named: Named
    origin: Origin
    reaches: frozenset[str] = frozenset()
    parts: tuple[ValueType, ...] = ()
    function: Lambda | None = None
    real_site: bool = False
    """True for a draw of a continuous family, and for a let computed of one: no index."""
    family: str | None = None
    """The family that a `sample` step draws the whole value from."""
    constant: int | float | None = None
    """The number that a template's parameter stands for in an instance."""
    range: Interval = ANYTHING
    """Where the numbers lie that a site or a let binds."""
    numbers: str = ""
    """Of a data name: 'count' where its numbers are whole, 'bool' where they are true or false."""
    predicted: bool = False
    """True where the value is only known after the fit."""
    over: tuple[Finite, ...] = ()
    """Of a data name: the sets that it runs over."""
    over_place: Origin | None = None
    """Where its one set is written, for it alone."""
    begun: Begun | None = None
    """Of a name of a recursion whose names begin at different elements."""
    drawn: str = ""
    """Of a let: why it is no value of data, `the latent `m`` that it depends on; '' of one that is."""
    columns: frozenset[str] = frozenset()
    """Of such a let: the data names that it is computed from."""
    lengths: str = ""
    """Of a ragged name: the data name, or the number, that says how many elements there are along its last axis."""


MISTAKEN = "?"
"""The lengths of data whose option is wrong: what reads such data is not looked at."""


@immutable
class Begun:
    """How a name of a recursion begins: `lag` first elements along the axis `at`, of which the last `before` also stand
    before the first, since another name of the recursion begins so much earlier."""

    at: int
    lag: int
    before: int


@dataclass(slots=True)
class Uses:
    """What an index has been used for: whether anything fits, the sets that wanted another one, and what was told."""

    fits: bool = False
    wanted: list[str | None] = field(default_factory=list["str | None"])
    told: Diagnostic | None = None


@immutable
class Running:
    """An index that runs over a set; `axis` is what its axis is called, `lag` how many first elements it leaves out."""

    name: str
    space: Finite | None
    named: Named
    axis: str
    lag: int
    span: Span
    uses: Uses = field(default_factory=Uses, compare=False)


@immutable
class Hidden:
    """A state that is summed out along indices: the axes on which it stands for all its values, now and one back.

    To a block inside its block it is `outer`: one value, whichever it is.
    """

    name: str
    states: Finite | None
    axes: tuple[str, str]
    indices: tuple[Running, ...]
    outer: bool = False


@immutable
class TemplateCall:
    """A template called in a step: its arrow, the arguments that are inputs, and those that give its data by name."""

    name: Name
    arrow: Arrow
    inputs: tuple[Arith, ...]
    data: Mapping[str, ArithArg]


WHOLE_INPUT = ""
"""The name under which the whole input of a program is bound: what a draw without arguments reads."""


@immutable
class FreeName:
    """A name that no earlier step binds.  `argument` where an arrow's argument must be bound."""

    name: str
    origin: Origin
    argument: bool


@dataclass(slots=True)
class StepContext:
    """One step being typed: the names bound above it, and what the step turns out to use.

    `reads` records every name that was looked up with what it stood for; `lifts` asks for inputs to be read as
    sequences; `reaches` collects the inputs that the current expression is computed from.
    """

    scope: Scope
    bindings: dict[str, Binding]
    text: str = ""
    """The text of the unit that is being read."""
    reads: dict[str, Binding | None] = field(default_factory=dict[str, "Binding | None"])
    free: list[FreeName] = field(default_factory=list[FreeName])
    data: dict[str, tuple[ValueType, Origin]] = field(default_factory=dict[str, tuple[ValueType, Origin]])
    begins: Mapping[str, Begun] = field(default_factory=dict[str, Begun])
    """How the names of the step begin, where other steps tie them to theirs."""
    input_names: tuple[str, ...] = ()
    """A name for every flat factor of the program's domain."""
    lifts: set[str] = field(default_factory=set[str])
    reaches: set[str] = field(default_factory=set[str])
    uses_input: bool = False
    effects: set[str] = field(default_factory=set[str])
    plates: set[str] = field(default_factory=set[str])
    """Finite sets that something runs over, picks from or is reduced over here."""
    aliases: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """What the parameters of lambdas that are being expanded stand for."""
    weights: dict[str, int] = field(default_factory=dict[str, int])
    """How many operations each of them comes to."""
    locals: dict[str, Binding] = field(default_factory=dict[str, Binding])
    """Index variables of the `factor`, and the indices of the step that is being typed."""
    drawing: Callable[[ArithCall, Family], Expr] | None = None
    """What the call of a family comes to in the formula of a draw; None elsewhere."""
    draws: bool = False
    """True where a sampled arrow that is applied to values is drawn from: in a case of an encoder."""
    marginal: bool = False
    """True inside `marginalize`."""
    guarded: bool = False
    """True inside a `where`, which may keep a function away from values that it is not defined for."""
    indices: dict[str, Running] = field(default_factory=dict[str, Running])
    """The indices in force."""
    table: frozenset[str] = frozenset()
    """The sets that the step is ascribed: values over some of them go together."""
    tree: Item | None = None
    """The step that is being typed, as it is written."""
    reducing: frozenset[str] = frozenset()
    """The indices over which a reduction runs."""
    conditions: tuple[Arith, ...] = ()
    """What an `if` asks of the elements that are looked at."""
    looks_back: bool = False
    """True where the step may read earlier elements: it says what the first ones are, or they are given."""
    hidden: dict[str, Hidden] = field(default_factory=dict[str, Hidden])
    hidden_reads: list[tuple[str, tuple[Expr, ...]]] = field(default_factory=list[tuple[str, tuple[Expr, ...]]])
    """The places of hidden chains that the step reads, each as it is written."""
    outer_reads: list[tuple[str, tuple[Expr, ...]]] = field(default_factory=list[tuple[str, tuple[Expr, ...]]])
    """Those of the chain in whose block the block of the step stands."""
    summed: dict[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    """What a `marginalize` without indices sums out, and the lets that read it: the sets of the rows of each."""
    called: TemplateCall | None = None
    """The template that the step draws from."""
    inlined: tuple[StepModel, ...] = ()
    """All that the step comes to, where it is a template's steps."""
    inherited: list[DataName] = field(default_factory=list[DataName])
    """The data of that template, as the program calls them."""

    def find(self, name: str) -> Binding | None:
        """The binding of a name, recorded as read."""
        if name in self.locals:
            return self.locals[name]
        binding = self.bindings.get(name)
        self.reads[name] = binding
        if binding is not None:
            self.reaches |= binding.reaches
            self.uses_input = self.uses_input or binding.kind == "input"
        return binding

    def begun(self, name: str | None, at: int) -> Begun | None:
        """How a name of a recursion begins along its axis `at`, where others of it begin elsewhere."""
        binding = None if name is None else self.locals.get(name, self.bindings.get(name))
        found = None if binding is None else binding.begun
        return found if found is not None and found.at == at else None

    def unbound(self, name: Name, *, argument: bool) -> None:
        """A name that nobody above binds: data, or a mistake that the program as a whole decides."""
        self.free.append(FreeName(name.text, self.scope.origin(name.span), argument))
