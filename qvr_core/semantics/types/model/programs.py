"""A typed program: its inputs, its parameters, the data it reads, its steps and what it returns."""

from __future__ import annotations

from qvr_core.operations.intervals import Interval
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow, Density, Instance, ProgramBase, Sort
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.model.steps import StepModel
from qvr_core.semantics.types.spaces import Finite, Named
from qvr_core.syntax.immutable import immutable_by_name


@immutable_by_name
class Input:
    """An input of a program: a factor of its domain.  `name` is None where the header names none."""

    name: str | None
    space: Named


@immutable_by_name
class TemplateParameter:
    """A typed parameter: `kind` is 'FinSet', 'Real', 'Nat', 'Object' or 'Mor'."""

    name: str
    kind: str
    mor: tuple[Named, Named] | None
    default: str | None = None
    """As it is written."""

    @property
    def written(self) -> str:
        """`sd : Real = 1.0`"""
        sides = f"[{self.mor[0].written}, {self.mor[1].written}]" if self.mor else ""
        return f"{self.name} : {self.kind}{sides}" + ("" if self.default is None else f" = {self.default}")


@immutable_by_name
class DataName:
    """A name supplied at run time, with what is known of its type; `origin` is its declaration or its first use.

    `declared` where a `data` step says all of its type; `numbers` is then 'count' for whole numbers from 0, 'bool' for
    true and false, and '' for what the space says.
    """

    name: str
    type: ValueType
    origin: Origin
    declared: bool = False
    numbers: str = ""
    over: tuple[Finite, ...] = ()
    """The sets that it runs over, where that is known, with their labels."""
    aligned: bool = False
    """True where that is only known from what it stands beside: it may as well be one value for all."""
    lengths: str = ""
    """Of ragged data: the data name that says how many elements there are along the last set."""
    inside: bool = False
    """True of what a program in an arrow observes: an arrow that draws from that one is given it too."""


@immutable_by_name
class Latent:
    """What a sampler moves of a program, as its guides see it: the type of the whole value and where its numbers lie.

    `still` says why no automatic guide moves it ('' where one does).  `lengths`: True where it is ragged.
    """

    name: str
    type: ValueType
    named: Named
    range: Interval
    origin: Origin
    still: str = ""
    lengths: bool = False
    imputed: bool = False
    """True for the missing cells of an observed step, which no step of a guide draws."""


@immutable_by_name
class Guided:
    """A program as its guides see it: what they draw, and the data that they may read, what it observes included."""

    latents: tuple[Latent, ...]
    data: tuple[DataName, ...]
    observed: tuple[str, ...]


@immutable_by_name
class Guidance:
    """What a guide is the guide of; `rest` where the latents that it leaves out have an automatic guide."""

    model: str
    rest: bool


@immutable_by_name
class Program(ProgramBase):
    """A typed program.  `domain`/`codomain` are effective (sequence lifting applied), `declared_*` as written."""

    inputs: tuple[Input, ...]
    template: tuple[TemplateParameter, ...]
    declared_domain: Named
    declared_codomain: Named
    domain: Named
    codomain: Named
    sort: Sort
    steps: tuple[StepModel, ...]
    returns: tuple[tuple[str | None, str], ...]
    tupled: bool
    data: tuple[DataName, ...]
    effects: frozenset[str]
    density: Density
    origin: Origin
    lengths: Expr | None = None
    """How many positions of each row's sequences are valid; None where nothing is padded."""
    keep: tuple[str, ...] | None = None
    """The lets that a fit keeps; None: all that depend on a latent, while they are small."""
    returned: tuple[tuple[ValueType, Interval], ...] = ()
    """The type of each returned value, and where its numbers lie."""
    guided: Guided | None = None
    """What its guides draw and read; None of a template and of a guide."""
    guidance: Guidance | None = None
    """Of a guide: of what program."""
    own: tuple[Arrow, ...] = ()
    """The arrows that a call of the template makes: they stand in the steps as these very objects."""


def called(instance: Instance) -> Program:
    """The whole of the program that a template's call stands for."""
    assert isinstance(instance.program, Program)
    return instance.program
