"""A guide that is written as a program: `program encoder : Image -> Image [guide=vae]`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from qvr_core.arrays.engine import Generator, nn
from qvr_core.inference.guides.base import Gradient, Guide, Inputs, Proposal
from qvr_core.inference.guides.normal import AutoNormalGuide
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.handlers import Handler, by_rows, condition, densities, replay, seed, substitute
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import Value
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.types.model.steps import SampleModel
from qvr_core.semantics.types.walk import sites


class _Run(nn.Module):
    """Lets `functional_call` run a program with other parameters."""

    def __init__(self, program: ProgramModule) -> None:
        super().__init__()
        self.program = program

    def forward(self, value: Value | None, *handlers: Handler) -> Execution:
        return self.program.run(value, *handlers)


class ProgramGuide(Guide):
    """The latents of `model` as `program` draws them, which the file declares with `[guide=…]`.

    log q is the density of the draws that carry the names of latents, given the innovations inside their arrows and
    what is drawn on the way to them (`[auxiliary]`).  Both are their own reverse model, so they cancel and the bound
    holds (Ranganath et al. 2016, with r = q); it is exact where there are none.  With `[rest=mean_field]` the other
    latents have the independent Normals of `AutoNormalGuide`.

    `program` is `loads(…).guide`; `observed_names` are what data will give, by default all that the model observes.
    Raises `InputProblem` where the program is no guide of the model.
    """

    def __init__(
        self,
        model: ProgramModule,
        program: ProgramModule,
        observed_names: Collection[str] | None = None,
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
    ) -> None:
        observed = [name for name, site in model.sites.items() if site.kind == "observe"]
        super().__init__(model, observed if observed_names is None else observed_names)
        guidance = program.program.guidance
        if guidance is None or guidance.model != model.name:
            what = "no guide" if guidance is None else f"a guide of `{guidance.model}`"
            raise InputProblem(f"`{program.name}` is {what}, and the model is `{model.name}`")
        self.program = program
        drawn = [site.name for site in sites(program.program.steps, SampleModel) if not site.auxiliary]
        self.drawn = tuple(drawn)
        given = {*self.observed, *drawn}
        self.rest = AutoNormalGuide(model, given, x=x, observations=observations) if guidance.rest else None

    def propose(
        self,
        rows: int,
        generator: Generator | None = None,
        *,
        gradient: Gradient = "sampled",
        inputs: Inputs | None = None,
    ) -> Proposal:
        """One run of the guide on the data, (rows, …) for each latent that it draws; the rest is mean-field Normal.
        Raises `InputProblem` where no data are given."""
        if inputs is None:
            raise InputProblem(f"`{self.program.name}` is a guide that reads data: none are given")
        self._check_data(inputs)
        asked = (condition(_cells(inputs, rows)), by_rows(rows), seed(generator))
        run = self.program.run(inputs.value, *asked, densities("observed", self.drawn))
        latents = {name: run.sites[name] for name in self.drawn}
        values: dict[str, Value] = {name: _value(site.value) for name, site in latents.items()}
        proposal = Proposal() if self.rest is None else self.rest.propose(rows, generator, gradient=gradient)
        proposal.values.update(values)
        proposal.scores += [site.log_discrete for site in run.sites.values() if site.log_discrete is not None]
        if gradient == "sticking":
            latents = self._without_score(inputs, asked, values, run).sites
        for name in self.drawn:
            log_q = latents[name].log_prob
            assert log_q is not None
            proposal.terms.append(-log_q)
        return proposal

    def _without_score(
        self, inputs: Inputs, asked: tuple[Handler, ...], values: Mapping[str, Value], run: Execution
    ) -> Execution:
        """The densities of the draws that were made, as functions of the values alone."""
        from torch.func import functional_call

        whole = _Run(self.program)
        still = {name: parameter.detach() for name, parameter in whole.named_parameters()}
        noise = {name: site.noise for name, site in run.sites.items()}
        scored = (*asked, replay(noise), substitute(values), densities("observed", self.drawn))
        return functional_call(whole, still, (inputs.value, *scored))

    def _check_data(self, inputs: Inputs) -> None:
        model = inputs.model
        for item in self.program.program.data:
            name = item.name
            if name in model.sites and name not in inputs.observations and name not in model.data:
                message = f"`{self.program.name}` draws the latents of `{model.name}` by its observed `{name}`: give it"
                raise InputProblem(message, site=name)


def _value(value: Value | None) -> Value:
    assert value is not None
    return value


def _cells(inputs: Inputs, rows: int) -> dict[str, Cell]:
    """Data and observed values, each as the steps of the model read it."""
    model = inputs.model
    frame = Frame(model.name, inputs.request, rows, inputs.value, model.program.uses_input, model.data)
    frame.declared, frame.ranks = model.declared, model.ranks
    found: dict[str, Cell] = {}
    for name in {*inputs.observations, *model.data}:
        cell = frame.supplied(name)
        if cell is None:
            continue
        site = model.sites.get(name)
        prepared = getattr(site, "prepared", None)
        if prepared is not None and model.program.uses_input and not getattr(site, "plate", ()):
            cell = Cell(prepared(cell, rows), True)
        found[name] = cell
    return found
