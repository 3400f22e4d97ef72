"""What names of a program are for, read off its dependence graph: standardised helpers, and what is predicted last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from qvr_core.dependence.graph import LET, PREDICTED, dependence_graph, plates, reads
from qvr_core.runs.record.program import analysed
from qvr_core.runs.record.protocol import Job
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.types.model.expressions import Constant, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, SampleModel
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import all_steps, sites

if TYPE_CHECKING:
    import networkx as nx


def program_of(job: Job) -> tuple[Model, Program] | None:
    """The model of a run's text and its program; None where the text has no such program any more."""
    model = analysed(job).model
    found = model.programs.get(job.program or "")
    return None if found is None else (model, found)


def standardised(job: Job) -> frozenset[str]:
    """Plates of `Normal(0, 1)` that only deterministic steps read: these give the draws their scale, and are what is
    of interest.  Weights with that prior are no helpers: another prior's are shown, too."""
    found = program_of(job)
    if found is None:
        return frozenset()
    model, steps = found[0], found[1].steps
    given = [site for site in sites(steps, SampleModel) if plates(site) and not site.weights]
    helpers = {site.name for site in given if _standard_normal(site.draw)}
    # a summary is printed after each run: the steps tell it sooner than a graph, for which networkx is loaded
    computed = set[str]()
    for step in all_steps(steps) if helpers else ():
        read = reads(step, model, helpers)
        if isinstance(step, LetModel):
            computed |= read
        else:
            helpers -= read
    return frozenset(helpers & computed)


def _standard_normal(draw: object) -> bool:
    family = FAMILIES.get(draw.family) if isinstance(draw, FamilyDraw) else None
    if family is None or family.noise != "normal" or not _whole_line(family) or not isinstance(draw, FamilyDraw):
        return False
    arguments: Mapping[str, Expr] = dict(draw.args)
    given = tuple(one.value if isinstance(one, Constant) else None for one in arguments.values())
    return given == (0, 1)


def _whole_line(family: Family) -> bool:
    return family.support.kind == "real" and family.support.low is None and family.support.high is None


def predicted_last(job: Job) -> frozenset[str]:
    """Predicted steps, and lets of them, that no further step reads: the forecasts themselves, not their parts."""
    found = program_of(job)
    if found is None:
        return frozenset()
    model, program = found
    graph = dependence_graph(program, model)
    predicted = {name for name in graph if graph.nodes[name]["kind"] == PREDICTED}
    later = set(predicted)
    for name in graph:
        if graph.nodes[name]["kind"] == LET and later & _before(graph, name):
            later.add(name)
    return frozenset(name for name in later if not set(graph.successors(name)) - {name})


def _before(graph: nx.DiGraph[str], name: str) -> set[str]:
    import networkx as nx

    return set(nx.ancestors(graph, name))


def enumerated(job: Job) -> dict[str, tuple[str, ...]]:
    """The labels of the sets that a run's text enumerates, by the name of the set."""
    found = program_of(job)
    spaces = {name: held.space.space for name, held in found[0].objects.items()} if found is not None else {}
    return {name: one.labels for name, one in spaces.items() if isinstance(one, Finite) and one.labels is not None}


def labels_of(job: Job) -> dict[str, str]:
    """The sets that the values of data names are elements of, by data name."""
    from qvr_core.data.needs import needs_of

    found = program_of(job)
    if found is None:
        return {}
    needs = needs_of(found[1]).data
    return {need.name: need.values.name for need in needs if need.values is not None and need.values.name is not None}
