"""A program at run time: its typed steps executed on rows.  Inference drives it through `ProgramModule.execute`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from functools import reduce
from typing import TYPE_CHECKING, Any

from qvr_core.arrays.engine import Generator, Tensor, arrays, is_tensor
from qvr_core.dependence import dependence_graph
from qvr_core.runtime.arrows.drawn_weights import undrawn, weights_set
from qvr_core.runtime.arrows.repetition import n_steps as run_n_steps
from qvr_core.runtime.families.soundness import sound_arguments
from qvr_core.runtime.programs.arithmetic import compile_expr
from qvr_core.runtime.programs.arrow_site import ArrowSite, SiteArrow
from qvr_core.runtime.programs.declared.collected_parts import CollectedParts
from qvr_core.runtime.programs.declared.parameters import ParamStep
from qvr_core.runtime.programs.deduction import DeductionModule
from qvr_core.runtime.programs.execution import Execution, Request, SiteInfo, SiteNoise, SiteRecord, paths_of
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.forward_algorithm import HiddenChain
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.handlers import Handler, by_rows, condition, densities, replay, seed, substitute
from qvr_core.runtime.programs.heads.program_heads import HEADS, Heads
from qvr_core.runtime.programs.interleaved import interleaved
from qvr_core.runtime.programs.labelled.taking import Taking
from qvr_core.runtime.programs.marginalize import Marginalize
from qvr_core.runtime.programs.missing.missing_cells import MissingCells, declared_data
from qvr_core.runtime.programs.observed.data_lets import with_data_lets
from qvr_core.runtime.programs.program_arrow import ProgramArrow, sum_of
from qvr_core.runtime.programs.rows import joined, sliced
from qvr_core.runtime.programs.steps import ScoreStep, Step, make_steps
from qvr_core.runtime.tensors.builder import ArrowBuilder
from qvr_core.runtime.tensors.tensors import LatentTensor
from qvr_core.runtime.values.arrow import NoiseSpec, Value, missing_innovations, repeat_rows
from qvr_core.runtime.values.cells import Cell, with_rows
from qvr_core.runtime.values.errors import InputProblem, RuntimeProblem, SequenceTooLong
from qvr_core.runtime.values.layout import Where, parts, regroup
from qvr_core.runtime.values.leaves import adopt
from qvr_core.runtime.values.padding import padded
from qvr_core.runtime.values.precision import computing_in, precision
from qvr_core.runtime.values.torch_errors import misfit
from qvr_core.semantics.types.deterministic import predicted
from qvr_core.semantics.types.model.arrows import Density, Sort
from qvr_core.semantics.types.model.programs import Program

if TYPE_CHECKING:
    import networkx as nx


Home = tuple[dict[str, Any], str]
"""The table of a module's parameters, and the name there."""


class ProgramModule(ProgramArrow, MissingCells, Taking, Heads):
    """A program as a module, and as an arrow that other arrows may use.

    `x` is (B, …) rows of the domain, or None for a program that does not use its input: then B is the number of rows
    asked for (particles, chains; one by default).  Everything random comes from torch's global generator or the one
    given.
    """

    def __init__(self, program: Program, builder: ArrowBuilder) -> None:
        super().__init__()
        self.program = program
        self.file_model = builder.model
        self.name = program.name
        self.domain, self.codomain = program.domain, program.codomain
        self.sampled = program.sort is Sort.SAMPLED
        self.data: Mapping[str, Any] = builder.data
        self.declared = declared_data(program)
        self.places: dict[str | None, str] = {}
        made = self.inner = CollectedParts(builder)
        self.predicted = predicted(program)
        self.steps = make_steps(program.steps, program.name, made, self.predicted)
        self.groups = interleaved(program, self.steps, made)
        self.steps = with_data_lets(program, self.steps, made)
        self.ranks = {site.name: len(site.sizes) for group in self.groups.groups for site in group.sites.values()}
        self.lengths = None if program.lengths is None else compile_expr(program.lengths, made)
        self.lengths_name = getattr(program.lengths, "name", "")
        self.sites: dict[str, ArrowSite | FamilySite] = {}
        self.marginals: dict[str, Marginalize | HiddenChain] = {}
        for step in self.steps:
            if isinstance(step, ArrowSite | FamilySite):
                self.sites[step.name] = step
            elif isinstance(step, Marginalize | HiddenChain):
                self.marginals[step.name] = step
                self.sites.update({site.name: site for site in step.latents()})
        learned = (step for step in self.steps if isinstance(step, ParamStep))
        adopt(self, made.used, {f"{self.name}.{name}": one for step in learned for name, one in step.modules.items()})
        self.paths = self._all_paths()
        self.scored = frozenset(step.name for step in self.steps if isinstance(step, ScoreStep))
        self.terms = {name: word for step in self.steps for name, word in _counted(step)}
        self._names_of_inputs = [entry.name for entry in program.inputs]
        inner = (site.name for block in self.marginals.values() for site in block.observed())
        self.readable = frozenset([*self.wanted_data, *self.sites, *inner, *filter(None, self._names_of_inputs)])
        self._spaces_of_inputs = [entry.space.space for entry in program.inputs]
        self.priors = {
            name: leaf
            for name, leaf in self.leaves.items()
            if isinstance(leaf, LatentTensor) and leaf.prior is not None
        }
        self.returned = [name for _, name in program.returns]
        self.has_density = program.density.kind not in ("none", "deterministic")
        self.drawn_weights = [step.name for step in self.steps if isinstance(step, FamilySite) and step.site.weights]
        self._homes: tuple[Home | None, Home | None] | None = None
        self.lacking = undrawn(self.leaves, self.drawn_weights, made.used)

    @property
    def deductions(self) -> dict[str, DeductionModule]:
        """The deductions that the program parses with, by name."""
        return {part.deduction.name: part for part in self.modules() if isinstance(part, DeductionModule)}

    # ------------------------------------------------------------ execution

    def execute(self, x: object = None, *handlers: Handler) -> Execution:
        """Run every step once, as the handlers ask (`qvr_core.runtime.programs.handlers`)."""
        return self.run(self.input(x), by_rows(self.unread_rows(x)), *handlers)

    def run(self, value: Value | None, *handlers: Handler) -> Execution:
        """As `execute`, on an input in normal form that has been checked."""
        request = Request()
        for handle in handlers:
            handle(request)
        count = self._rows(value, request)
        if self.lacking:
            raise InputProblem(f"the weights of `{self.lacking[0]}` have a prior: only a program can draw them")
        if self.drawn_weights and count > 1:
            # each row has weights of its own
            return joined([self.run(None, sliced(request, row, count)) for row in range(count)], request)
        frame = Frame(self.name, request, count, value, self.program.uses_input, self.data)
        frame.declared, frame.ranks = self.declared, self.ranks
        device = frame.device = self._device(value, request)
        if value is not None:
            self._bind_inputs(value, frame)
        with (
            padded(self._row_lengths(frame)) if self.lengths is not None else nullcontext(),
            device or nullcontext(),
            computing_in(self._precision(request)),
            ExitStack() as weights,
        ):
            step = None
            try:
                self.prepare_gaps(frame)
                for step in self.in_order(frame):
                    if request.argument_of and isinstance(step, ArrowSite) and step.name == request.argument_of:
                        return Execution(frame.sites, step.argument(frame), count)
                    step.run(frame)
                    if isinstance(step, FamilySite) and step.site.weights:
                        weights.enter_context(weights_set(self.leaves[step.name], frame.bound[step.name].value[0]))
            except SequenceTooLong as problem:
                raise self.placed(problem.within(self.name)) from None
            except RuntimeProblem as problem:
                # what a family says of its arguments is about the step that runs
                problem.site = problem.site or getattr(step, "name", None)
                self.placed(problem)
                raise
            except RuntimeError as error:
                found = misfit(self.name, step, error) or _unsound(step, frame)
                if found is None:
                    raise
                raise self.placed(found) from error
        if self.priors and request.wanted:
            self._add_priors(frame, value is not None)
        for name, factor in request.scales.items():
            record = frame.sites.get(name)
            if record is not None and record.observed and record.log_prob is not None:
                record.log_prob = factor * record.log_prob
        cells = {name: frame.bound[name] for name in request.keep if name in frame.bound}
        kept = {name: with_rows(cell, count) for name, cell in cells.items() if is_tensor(cell.value)}
        return Execution(frame.sites, self._output(frame), count, kept, tuple(frame.ended))

    def _row_lengths(self, frame: Frame) -> Tensor:
        """How many positions of each row are valid, int64 (B,)."""
        assert self.lengths is not None
        cell = self.lengths(frame)
        value = with_rows(cell, frame.rows)
        if value.ndim != 1 or value.is_floating_point():
            where = Where(self.name, f"the lengths `{self.lengths_name}`", self.lengths_name)
            raise where.misfit(f"whole numbers ({frame.rows},)", f"{str(value.dtype)[6:]} {tuple(value.shape)}")
        return value

    def _first_parameters(self) -> tuple[Tensor | None, Tensor | None]:
        """The first parameter, and the first of real numbers.  Where they stand is looked for once: a walk through the
        modules takes as long as a layer."""
        found = _there(self._homes)
        if found is None:
            tables = [vars(module)["_parameters"] for module in self.modules()]
            own = [(table, name) for table in tables for name, value in table.items() if value is not None]
            real = (home for home in own if home[0][home[1]].is_floating_point())
            self._homes = next(iter(own), None), next(real, None)
            found = _there(self._homes)
            assert found is not None
        return found

    def _device(self, value: object, request: Request) -> arrays.device | None:
        """Where literals must lie: with the parameters, else the input, the latents, the data; None for the CPU."""
        like = self._first_parameters()[0]
        if like is None:
            given = (parts(value) if value is not None else (), request.unconstrained.values())  # pyright: ignore
            data = (request.observations.values(), self.data.values(), request.values.values())
            like = next((item for group in (*given, *data) for item in group if is_tensor(item)), None)
        device = request.device if like is None else like.device
        return None if device is None or device.type == "cpu" else device

    def _precision(self, request: Request) -> arrays.dtype:
        """What literals and made tensors are of: as the parameters, else as the latents that are given."""
        like = self._first_parameters()[1]
        if like is not None:
            return like.dtype
        noise = (made for site in request.noise.values() if not callable(site) for made in site.values())
        given = (*request.unconstrained.values(), *noise, *request.values.values())
        found = {item.dtype for item in given if is_tensor(item) and item.is_floating_point()}
        return reduce(arrays.promote_types, found) if found else precision()

    def _add_priors(self, frame: Frame, by_rows: bool) -> None:
        """A tensor's prior is one term of the whole: rows share it."""
        for name, tensor in self.priors.items():
            share = tensor.log_prior() / (frame.rows if by_rows else 1)
            frame.sites[name] = SiteRecord(
                name, "prior", True, tensor.matrix(), share.expand(frame.rows), None, {}, Density("exact")
            )

    def log_prior(self) -> Tensor | None:
        """log density of all tensors under their priors, a scalar; None where none has one."""
        return sum_of([tensor.log_prior() for tensor in self.priors.values()])

    def _rows(self, value: Value | None, request: Request) -> int:
        if value is not None:
            return parts(value)[0].shape[0]
        if request.rows is not None:
            return request.rows
        for given in request.noise.values():
            for tensor in () if callable(given) else given.values():
                return tensor.shape[0]
        for tensor in request.unconstrained.values():
            return tensor.shape[0]
        counts = [self._leading(name, given) for name, given in request.values.items()]
        return max((count for count in counts if count is not None), default=1)

    def _leading(self, name: str, given: Value) -> int | None:
        """Rows of a conditioned latent: the leading axis, where there is one more than the site has."""
        site = self.sites.get(name)
        if site is None or site.info.event is None or site.kind != "sample":
            return None
        tensor = arrays.as_tensor(given) if not isinstance(given, tuple) else given[0]
        return tensor.shape[0] if tensor.ndim > len(site.info.event) else None

    def _bind_inputs(self, value: Value, frame: Frame) -> None:
        names, spaces = self._names_of_inputs, self._spaces_of_inputs
        if not any(names):
            return
        cut = [value] if len(spaces) == 1 else regroup(value, spaces)
        frame.bound.update({name: Cell(v, True) for name, v in zip(names, cut, strict=True) if name is not None})

    def _output(self, frame: Frame) -> Value:
        cells = [frame[name] for name in self.returned]
        if len(cells) == 1 and not self.program.tupled:
            return self._returned(cells[0], frame)
        values = tuple(self._returned(cell, frame) for cell in cells)
        return values  # pyright: ignore[reportReturnType]

    def _returned(self, cell: Cell, frame: Frame) -> Any:
        if is_tensor(cell.value):
            return with_rows(cell, frame.rows)
        return cell.value

    # ------------------------------------------------------------ what users call

    def rsample(
        self,
        x: object = None,
        /,
        sample_shape: tuple[int, ...] = (),
        observations: Mapping[str, Any] | None = None,
        *,
        n_steps: int | None = None,
        generator: Generator | None = None,
        **data: Any,
    ) -> Any:
        """What the program returns, drawn: (B, …), or (*sample_shape, B, …); reparameterised where it can be.

        Data and observed values are in `observations`, or given by keyword.  `x=` is the input, unless the program has
        data of that name.  Frames, series and arrays with labels go in too (`taken`).
        """
        if x is None and "x" in data and "x" not in self.wanted_data:
            x = data.pop("x")
        if data:
            self.check_names(data, "keywords")
            observations = {**self.taken(observations), **data}
        observations = self.taken(observations)
        value = self.input(x)
        count = math.prod(sample_shape)
        if value is not None and sample_shape:
            value = repeat_rows(value, count)
        given = observations
        if observations and value is not None and count > 1:
            given = self.repeat_data(observations, parts(value)[0].shape[0] // count, count)
        drawn = by_rows(None if value is not None else max(count, 1) * (self.unread_rows(x) or 1))
        with run_n_steps(n_steps) if n_steps is not None else nullcontext():
            output = self.run(value, condition(given), densities(False), drawn, seed(generator)).output
        if not sample_shape:
            return output
        shaped = [part.reshape(*sample_shape, -1, *part.shape[1:]) for part in parts(output)]
        return shaped[0] if not isinstance(output, tuple) else tuple(shaped)

    def repeat_data(self, observations: Mapping[str, Any], rows: int, count: int) -> dict[str, Any]:
        """Observations and data of `rows` rows for `count` copies of all rows (copy by copy)."""
        if not self.program.uses_input or count == 1:
            return dict(observations)
        return {
            name: repeat_rows(value, count) if is_tensor(value) and self._by_rows(name, value, rows) else value
            for name, value in observations.items()
        }

    def _by_rows(self, name: str, value: Tensor, rows: int) -> bool:
        """Whether a value has an entry for each row; of declared data the rank says it."""
        declared = self.declared.get(name)
        return value.shape[:1] == (rows,) and (declared is None or value.ndim > len(declared.shape))

    def innovations(self, x: object = None, generator: Generator | None = None) -> dict[str, dict[str, Tensor]]:
        """Fresh innovations on `x` by site and path: what `log_joint` is conditional on."""
        value = self.input(x)
        drawn = self.run(value, densities(False), seed(generator), by_rows(self.unread_rows(x)))
        return drawn.innovations(self.final_paths)

    def log_joint(self, x: object, values: Mapping[str, Any], innovations: SiteNoise | None = None) -> Tensor:
        """log p(values | x, innovations), (B,): every sample, observe and score site, without log p(innovations).
        Values with labels go in too, draws of `idata.posterior` as rows.

        Raises `MissingInnovations` where the program has some and they are not all given, and `MissingData` where a
        site has no value.
        """
        value, values = self.input(x), self.taken(values)
        latents = {name: values[name] for name, site in self.sites.items() if site.kind == "sample" and name in values}
        data = {name: given for name, given in values.items() if name not in latents}
        missing = [
            name
            for name, site in self.sites.items()
            if name not in values and _has_density(site) and not self._is_given(site)
        ]
        missing += [name for name in self.observed_inside if name not in values and name not in self.data]
        if missing:
            words = ", ".join(f"`{name}`" for name in missing)
            raise self.placed(InputProblem(f"`{self.name}`: log_joint needs a value for {words}", site=missing[0]))
        self.check_complete(data)
        self._need_innovations(value, latents, data, innovations or {})
        return self.run(value, condition(data), substitute(latents), replay(innovations)).log_joint()

    def _is_given(self, site: ArrowSite | FamilySite) -> bool:
        """Whether its value need not be told: data that the program was loaded with, or a let of data."""
        return site.kind == "observe" and (site.name in self.data or site.site.of_let)

    def _need_innovations(
        self,
        value: Value | None,
        latents: Mapping[str, Value],
        data: Mapping[str, Any],
        innovations: SiteNoise,
    ) -> None:
        lacking = [
            (name, spec)
            for name, site in self.sites.items()
            for spec in site.info.innovations
            if spec.path not in paths_of(innovations.get(name))
        ]
        if not lacking:
            return
        with arrays.no_grad():
            run = self.run(value, condition(data), substitute(latents), replay(innovations), densities(False))
        specs = [
            NoiseSpec(spec.path, tuple(run.sites[name].noise[spec.path].shape), spec.base, False)
            for name, spec in lacking
            if spec.path in run.sites[name].noise
        ]
        if specs:
            raise missing_innovations(specs)

    def step(self, name: str) -> SiteArrow:
        """The arrow of a site: `model.step("h").rsample(x)`."""
        site = self.sites.get(name)
        if not isinstance(site, ArrowSite):
            known = ", ".join(f"`{n}`" for n, s in self.sites.items() if isinstance(s, ArrowSite)) or "none"
            raise AttributeError(f"program `{self.name}` has no site `{name}` drawn from an arrow; it has {known}")
        return SiteArrow(site)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_step_"):
            return self.step(name.removeprefix("_step_"))
        try:
            return super().__getattr__(name)
        except AttributeError:
            # looked up last, so that arrows of these names keep the names of their parameters
            if name in HEADS and "lacking" in self.__dict__:
                return getattr(self, f"head_{name}")
            raise

    def __repr__(self) -> str:
        return self.described(sum(parameter.numel() for parameter in self.parameters()))

    def graph(self) -> nx.DiGraph[str]:
        """Who depends on whom: a `networkx.DiGraph` of the program's names (`qvr_core.dependence.dependence_graph` says
        what its nodes and edges hold)."""
        return dependence_graph(self.program, self.file_model)

    def site_infos(self) -> dict[str, SiteInfo]:
        """What is known of every sample and observe site before anything has run."""
        return {name: site.info for name, site in self.sites.items()}


def _there(homes: tuple[Home | None, Home | None] | None) -> tuple[Tensor | None, Tensor | None] | None:
    """What stands there; None where one is gone, or nobody has looked yet."""
    if homes is None:
        return None
    first, second = homes
    if first is None:
        return None, None
    one = first[0].get(first[1])
    if second is None or one is None:
        return None if one is None else (one, None)
    other = second[0].get(second[1])
    return None if other is None else (one, other)


def _counted(step: Step) -> Iterator[tuple[str, str]]:
    """What a step scores and observes, in its arrow too, with the keyword."""
    if isinstance(step, ScoreStep):
        yield step.name, "score"
    if isinstance(step, ArrowSite | FamilySite) and step.kind == "observe":
        yield step.name, "observe"
    if isinstance(step, ArrowSite):
        yield from ((f"{step.name}.{name}", word) for name, word in step.module.terms.items())


def _has_density(site: ArrowSite | FamilySite) -> bool:
    return isinstance(site, FamilySite) or (site.module.sampled and site.module.has_density)


def _unsound(step: Step | None, frame: Frame) -> RuntimeProblem | None:
    """The argument that its family cannot take, where that is why a draw has failed."""
    try:
        with sound_arguments():
            if step is not None:
                step.run(frame)
    except RuntimeProblem as problem:
        return problem
    except RuntimeError:
        pass
    return None
