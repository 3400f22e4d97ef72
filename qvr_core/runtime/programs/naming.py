"""What a program calls its parts: names that callers may use, and the lines that errors speak of."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem, Unobserved
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import MarginalizeModel, ObserveModel, PredictModel, SampleModel, StepModel
from qvr_core.semantics.types.walk import all_steps

Problem = TypeVar("Problem", bound=RuntimeProblem)


MOST_NAMES = 12
"""Of one kind that a description lists."""


class Naming:
    """The names of a program module, and where they stand in its text."""

    program: Program
    name: str
    data: Mapping[str, Any]
    sites: dict[str, ArrowSite | FamilySite]
    readable: frozenset[str]
    """Data, sites (those inside blocks included) and named inputs."""
    places: dict[str | None, str]
    """Where the steps stand, as `model.qvr:12`; the program itself under None.  Empty where no text is known."""

    @property
    def wanted_data(self) -> frozenset[str]:
        """Names that nobody binds: what the program wants from outside, besides the values of its sites."""
        return frozenset(item.name for item in self.program.data)

    @property
    def observed_inside(self) -> list[str]:
        """The names of the data that programs in arrows observe."""
        arrows = (site for site in self.sites.values() if isinstance(site, ArrowSite))
        return [name.rpartition(".")[2] for site in arrows for name in site.observes]

    def placed(self, problem: Problem) -> Problem:
        """A problem with the line of its site, else of the program."""
        return problem.at(self.places.get(problem.site) or self.places.get(None))

    def note_unobserved(self, given: Collection[str]) -> None:
        """Warns of `observe` steps that have no value, in `given` or as data."""
        lacking = [f"`{name}`" for name, site in self.sites.items() if site.kind == "observe" and not site.site.of_let
                   and name not in given and name not in self.data]  # fmt: skip
        lacking += [f"`{name}`" for name in self.observed_inside if name not in given and name not in self.data]
        if lacking:
            words = ", ".join(lacking)
            message = f"`{self.name}`: no value was given for {words}, so it is drawn from the model and scores nothing"
            warnings.warn(message, Unobserved, stacklevel=4)

    def check_names(self, given: Collection[str], what: str) -> None:
        """Raises `InputProblem` for a name in `what` that no site, data or input has, so that nothing would read it."""
        if self.readable.issuperset(given):
            return
        name = next(name for name in given if name not in self.readable)
        inputs = [entry.name for entry in self.program.inputs if entry.name is not None]
        known = sorted(self.readable.difference(inputs))
        raise self.unknown(f"{what}: `{self.name}` has no data and no site", name, known)

    def unknown(self, lacks: str, name: str, known: Sequence[str]) -> InputProblem:
        """A name that is none of those known: the one that was probably meant, else all of them."""
        near = closest(name, known)
        more = f"did you mean `{near}`?" if near else f"it has {', '.join(f'`{item}`' for item in known) or 'none'}"
        return self.placed(InputProblem(f"{lacks} `{name}`; {more}", site=name))

    def described(self, parameters: int) -> str:
        """The program, what it takes and what it draws, in a few lines."""
        program = self.program
        kinds = {"data": [item.name for item in program.data if item.name not in self.sites]}
        for step in all_steps(program.steps):
            if (word := _WORDS.get(type(step))) is not None:
                kinds.setdefault(word, []).append(step.site.name)  # pyright: ignore
        head = f"program {self.name} : {program.declared_domain.written} -> {program.declared_codomain.written}"
        more = f", {parameters:,} parameters" if parameters else ""
        lines = [f"    {word:<11} {_few(names)}" for word, names in kinds.items() if names]
        return "\n".join([head + more, *lines])


_WORDS: Mapping[type[StepModel], str] = {
    SampleModel: "sample",
    ObserveModel: "observe",
    MarginalizeModel: "marginalize",
    PredictModel: "predict",
}


def _few(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
