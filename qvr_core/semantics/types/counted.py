"""What programs that stand in an arrow add to the density of the whole, and what it is called there.

Each is a site of the program that draws from the arrow, under the name of the draw: `z.k`.  A name that several parts
of an arrow have gets the part's place (`z.1.k`); where a program runs step by step, or is a branch twice, there is one
name, and the value has a last axis for the places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Compose,
    Fan,
    Freeze,
    Instance,
    Lift,
    Ref,
    Repeat,
    Scan,
    Stack,
    TakeFactor,
    Tensor,
)
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    MarginalizeModel,
    ObserveModel,
    SampleModel,
    ScoreModel,
    Site,
)
from qvr_core.semantics.types.walk import all_steps, arrow_named
from qvr_core.syntax.immutable import immutable


@immutable
class Counted:
    """A step that counts wherever its program stands: `word` is its keyword, `axes` those of the places.  `lost` says
    why it would not: the program is no arrow then."""

    name: str
    word: str = "score"
    axes: tuple[str, ...] = ()
    lost: str = ""

    @property
    def step(self) -> str:
        """What the step is called in its program."""
        return self.name.rpartition(".")[2]


Declared = Callable[[str], Sequence[Counted]]
"""What the arrow of a name counts."""


def in_file(model: Model) -> Declared:
    """What the declared arrows of a file count."""

    def declared(name: str) -> tuple[Counted, ...]:
        found = arrow_named(model, name)
        if isinstance(found, Program):
            return counted_by(found, declared)
        return () if found is None else counted(found, declared)

    return declared


def counted_by(program: Program, declared: Declared) -> tuple[Counted, ...]:
    """What the steps of a program count where it is used as an arrow."""
    returned = {name for _, name in program.returns}
    found: list[Counted] = []
    for step in program.steps:
        if isinstance(step, ScoreModel):
            found.append(Counted(step.name))
        elif isinstance(step, MarginalizeModel):
            if any(isinstance(one, ObserveModel | ScoreModel) for one in all_steps(step.body)):
                found.append(Counted(step.site.name, "marginalize", lost="marginalize"))
        elif isinstance(step, SampleModel | ObserveModel):
            if isinstance(step, ObserveModel):
                found.append(Counted(step.site.name, "observe", lost=_lost(step.site, returned)))
            inside = counted(step.site.draw.arrow, declared) if isinstance(step.site.draw, ArrowDraw) else ()
            found.extend(replace(one, name=f"{step.site.name}.{one.name}") for one in inside)
    return tuple(found)


def _lost(site: Site, returned: Collection[str]) -> str:
    """Why what a step observes would not count in an arrow."""
    if site.name in returned:
        return "returned"
    return "data" if site.of_let or site.missing is not None or site.lengths is not None else ""


def counted(arrow: Arrow, declared: Declared) -> tuple[Counted, ...]:
    """What the programs in an arrow count, under its names there."""
    match arrow:
        case Ref(name=name):
            return tuple(declared(name))
        case Instance():
            return counted_by(program, declared) if isinstance(program := arrow.program, Program) else ()
        case Lift(arrow=inner) | Freeze(base=inner) | TakeFactor(base=inner):
            return counted(inner, declared)
        case Scan(cell=inner) | Stack(body=inner) | Repeat(body=inner):
            return _along("step", counted(inner, declared))
        case Compose(stages=parts) | Tensor(factors=parts):
            return _named([counted(part, declared) for part in parts], list(range(len(parts))))
        case Fan(branches=parts):
            return _named([counted(part, declared) for part in parts], heads(parts))
        case _:
            return ()


def _along(axis: str, found: Iterable[Counted]) -> tuple[Counted, ...]:
    return tuple(replace(one, axes=(*one.axes, axis)) for one in found)


def _named(parts: Sequence[Sequence[Counted]], heads: Sequence[object]) -> tuple[Counted, ...]:
    """The names of all parts in the whole, each once."""
    found: dict[str, Counted] = {}
    names = names_in_whole([[one.name for one in part] for part in parts], heads)
    for part, own in zip(parts, names, strict=True):
        for one in part:
            name = own.get(one.name, one.name)
            axes = (*one.axes, "branch") if one.name in own and name == one.name else one.axes
            found.setdefault(name, replace(one, name=name, axes=axes))
    return tuple(found.values())


def heads(branches: Sequence[Arrow]) -> list[object]:
    """What tells the branches of a fan apart: those of one declared arrow are the same."""
    found: list[object] = []
    for place, branch in enumerate(branches):
        while isinstance(branch, Lift):
            branch = branch.arrow
        found.append(branch.name if isinstance(branch, Ref) else place)
    return found


def names_in_whole(parts: Sequence[Sequence[str]], heads: Sequence[object]) -> list[dict[str, str]]:
    """What the names that several parts have are called in the whole, for each part: by themselves where these parts
    are one arrow (an axis tells them apart), else behind the part's place."""
    count = Counter(name for part in parts for name in part)
    who = {name: {head for part, head in zip(parts, heads, strict=True) if name in part} for name in count}
    return [
        {name: name if len(who[name]) == 1 else f"{place}.{name}" for name in part if count[name] > 1}
        for place, part in enumerate(parts)
    ]
