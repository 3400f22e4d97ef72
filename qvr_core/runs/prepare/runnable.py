"""What of a file is run: a program, a template whose parameters are given, or an arrow observed at its codomain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qvr_core import dsl
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.record.program import analysed, library_of
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.record.settings import main_program
from qvr_core.runtime.build.export import one_step
from qvr_core.runtime.build.templates import call_of, instance_of
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.types.model.arrows import Arrow, Sort
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program, called

Parameters = Mapping[str, float | str]
Known = Mapping[str, KnownSet] | None


def chosen(job: Job, model: Model, known: Known = None) -> Program:
    """What the job names, else the first export, else the last program or let.  Raises `Refused`, which says why."""
    name = job.program or main_program(model)
    if name is None:
        raise Refused("no-program", _nothing(model))
    program, parameters = model.own_programs.get(name), job.config.param
    if program is not None and program.template:
        return _instance(job, program, parameters, known)
    if parameters:
        raise Refused("template", f"`{name}` takes no parameters: leave out param {', '.join(parameters)}", site=name)
    if program is not None:
        return program
    guide = model.programs.get(name)
    if guide is not None and guide.guidance is not None:
        message = f"`{name}` is the guide of `{guide.guidance.model}`: a fit of `{guide.guidance.model}` draws from it"
        raise Refused("no-program", message, site=name, fixes=(f"Run `{guide.guidance.model}`",))
    arrow = arrow_of(name, model)
    if arrow is None:
        programs = ", ".join(f"`{one}`" for one in model.own_programs) or "none"
        raise Refused("no-program", f"`{name}` is not a program of this file; its programs are {programs}")
    _check_observable(name, arrow)
    return one_step(name, arrow, model, observed=True)


def built(job: Job, known: Known = None) -> ProgramModule:
    """The module of what `chosen` gives, with parameters drawn now; `known` are the open sets that the data tell."""
    return built_with_guides(job, known)[0]


def built_with_guides(job: Job, known: Known = None) -> tuple[ProgramModule, dict[str, ProgramModule]]:
    """The same, and the guides that the file writes for it: they share the arrows that both use."""
    source = Path(job.path).name
    loaded = dsl.loads(job.text, known=known, location=job.location, library=library_of(job), source=source)
    name = job.program or main_program(loaded.model)
    assert name is not None
    if name in loaded.templates:
        made = loaded.templates[name](**dict(job.config.param)).morphism
        assert isinstance(made, ProgramModule)
    else:
        made = loaded.programs[name] if name in loaded.programs else loaded.observed(name)
    return made, {one: loaded.guides[one] for one in loaded.model.guides_of(name)}


def arrow_of(name: str, model: Model) -> Arrow | None:
    """A morphism, a let, or an anonymous export."""
    if name in model.lets:
        return model.lets[name].arrow
    exported = next((export.arrow for export in model.exports if export.name == name), None)
    return exported or model.arrows.get(name)


def _nothing(model: Model) -> str:
    if model.deductions:
        names = ", ".join(f"`{name}`" for name in model.deductions)
        return f"this file declares deductions ({names}) and no program: write one that parses and scores"
    return "this file declares no program: there is nothing to fit"


def _instance(job: Job, program: Program, parameters: Parameters, known: Known) -> Program:
    wanted = [parameter.written for parameter in program.template]
    names = [parameter.name for parameter in program.template]
    missing = [one.name for one in program.template if one.name not in parameters and one.default is None]
    if missing and set(parameters) <= set(names):
        given = " ".join(f"--param {name}=…" for name in missing)
        message = f"`{program.name}` is a template of {', '.join(wanted)}: {', '.join(missing)} must be given"
        raise Refused("template", message, site=program.name, fixes=(f"Run it with {given}", "Export an instance"))
    try:
        return called(instance_of(analysed(job), call_of(program.name, parameters), known))
    except InputProblem as problem:
        raise Refused("template", str(problem), site=program.name) from problem


def _check_observable(name: str, arrow: Arrow) -> None:
    """Only a draw with a density can be observed."""
    written = f"{arrow.domain.written} -> {arrow.codomain.written}"
    match arrow.sort:
        case Sort.TENSOR:
            why = f"`{name}` is a matrix of weights: nothing is drawn from it, so nothing is observed"
        case Sort.DETERMINISTIC:
            why = f"`{name} : {written}` is a function: its value is not drawn, so nothing is observed"
        case _ if arrow.density.kind == "none":
            why = f"`{name} : {written}` ends in a function behind its last draw: its value has no density"
        case _:
            return
    raise Refused("no-program", why, site=name, fixes=("Write a program that observes what it is about",))
