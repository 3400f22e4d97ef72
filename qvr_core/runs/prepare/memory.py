"""The memory a run will need, computed from the typed model before anything is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from qvr_core.arrays.engine import arrays
from qvr_core.arrays.engine import device as Device
from qvr_core.data.size_limits import available, in_bytes
from qvr_core.data.synthetic import SELECTED
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.record.config import RunConfig
from qvr_core.semantics.programs.parameter_count import parameter_count
from qvr_core.semantics.types.model.arrows import Arrow, Kernel
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ArrowDraw, ObserveModel, SampleModel, Site, StepModel
from qvr_core.semantics.types.spaces import Finite, Product, Seq, Space, item_of, width
from qvr_core.semantics.types.walk import all_steps, operands, sites, values, walk

# torch, the interpreter and their buffers; and what storing chains loads.  Measured, like all numbers here.
BASE = 360 * 2**20
CHAINS_BASE = 120 * 2**20
# Copies of a parameter that a step holds: itself, its gradient, the optimiser's moments, and what updating them takes.
STATES = {"adam": 6, "adamw": 6, "rmsprop": 5, "adagrad": 4, "sgd": 3}
# Forward values kept for the backward pass, and gradients of about the same size.
ACTIVATION_COPIES = 2
# Copies of the logits of a finite draw: themselves, normalised, and their gradients.
LOGIT_COPIES = 4
# Copies of what a step draws: the values, what they are computed from, and their densities.
SITE_COPIES = 4
# Bytes of a number among the draws that are kept: as it was made, stacked, narrowed, and as it is written.
DRAWN = 30
# Vectors that a chain holds: state, momentum, gradient, mass, and the ends of its tree at every depth.
TREE = 30
SMALLER = "Make the widest spaces smaller", "Use a smaller batch_size or sequence_length"


@dataclass(frozen=True)
class Estimate:
    """Bytes, and the declarations that need most of them: (name, bytes, how it is written)."""

    parameters: int
    activations: int
    draws: int
    largest: tuple[tuple[str, int, str], ...]

    @property
    def total(self) -> int:
        chains = CHAINS_BASE if self.draws else 0
        return BASE + chains + self.parameters + self.activations + self.draws


def estimate(model: Model, program: Program, config: RunConfig, *, rows: int, sequence: bool) -> Estimate:
    """What a run of `program` needs with `rows` rows in a step; a statistical program has one, and data of its own."""
    number = 8 if config.precision == "float64" else 4
    count = parameter_count(model, program) or 0
    declared = sorted(_declared(model), key=lambda item: -item[1])
    positions = rows * (config.sequence_length if sequence else 1)
    particles = config.particles if config.algorithm == "svi" else config.chains
    kept = sum(_values(arrow) for arrow in model.arrows.values())
    kept += sum(_arithmetic(one.steps, config.batch_rows) for one in model.programs.values() if not one.template)
    logits = LOGIT_COPIES * sum(_logits(site, config) for site in sites(program.steps, SampleModel, ObserveModel))
    activations = (ACTIVATION_COPIES * kept * positions + logits * rows) * particles * number
    if config.source == "synthetic" and program.uses_input:
        # All rows are drawn at once.
        activations = max(activations, logits * config.rows * number)
    activations += SITE_COPIES * rows * sum(numbers_drawn(program).values()) * particles * number
    largest = _largest(model, declared, number) or _largest_sites(program, number)
    latents = rows * sum(_latents(step) for step in program.steps)
    if config.algorithm == "svi":
        # a mean and a scale for each latent that every row shares
        count += 0 if program.uses_input else 2 * latents
        return Estimate(STATES[config.optimizer] * count * number, activations, 0, largest)
    moved = config.chains * (count + latents)
    return Estimate(TREE * 8 * moved, activations, DRAWN * moved * config.samples, largest)


def check_draws(program: Program, draws: int, limit: int | None) -> None:
    """Refuse draws of every step of a statistical program that cannot fit.  Raises `Refused`."""
    numbers = sum(numbers_drawn(program).values())
    check_fits(Estimate(0, 0, DRAWN * numbers * draws, _largest_sites(program, DRAWN * draws)), limit)


def numbers_drawn(program: Program) -> dict[str, int]:
    """Numbers that each step draws in one row, latent or observed."""
    steps = (step for step in all_steps(program.steps) if isinstance(step, SampleModel | ObserveModel))
    return {step.site.name: _numbers(step.site) for step in steps}


def _largest_sites(program: Program, size: int) -> tuple[tuple[str, int, str], ...]:
    """The steps that draw most numbers, of `size` bytes each."""
    found = {
        step.site.name: step.site for step in all_steps(program.steps) if isinstance(step, SampleModel | ObserveModel)
    }
    order = sorted(numbers_drawn(program).items(), key=lambda item: -item[1])[:3]
    return tuple((name, count * size, _over(found[name])) for name, count in order if count > 1)


def _over(site: Site) -> str:
    named = site.element or site.plate
    return named.written if named is not None else site.bound[0][1].written if site.bound else "…"


def _latents(step: StepModel) -> int:
    """Numbers that a sample step draws in one row; what depends on the data counts as one."""
    return _numbers(step.site) if isinstance(step, SampleModel) else 0


def _numbers(site: Site) -> int:
    size = sum(_width(named.space) for _, named in site.bound)
    plate = None if site.plate is None or site.each_row else site.plate.space
    return size * plate.size if isinstance(plate, Finite) and isinstance(plate.size, int) else size


def _logits(site: Site, config: RunConfig) -> int:
    """Probabilities that a draw from an arrow into finite sets makes in one row."""
    if not isinstance(site.draw, ArrowDraw):
        return 0
    space = site.draw.arrow.codomain.space
    positions = config.sequence_length if isinstance(space, Seq) else 1
    if site.at is not None:
        positions = max(config.sequence_length // SELECTED, 1)
    item = item_of(space)
    factors = item.factors if isinstance(item, Product) else (item,)
    return positions * sum(f.size for f in factors if isinstance(f, Finite) and isinstance(f.size, int))


def _arithmetic(steps: tuple[StepModel, ...], entries: int) -> int:
    """Numbers that the arithmetic of a program makes in one row, with so many entries in data of unknown length: every
    operation keeps its result."""
    made = (
        expr.type
        for step in all_steps(steps)
        for value in values(step)
        for expr in walk(value, operands)
        if operands(expr)  # a name or a number makes nothing
    )
    return sum(
        _width(kind.space) * prod(size if isinstance(size, int) else entries for size in kind.sizes) for kind in made
    )


def _width(space: Space | None) -> int:
    size = None if space is None else width(space)
    return size if isinstance(size, int) else 1


def _declared(model: Model) -> Iterator[tuple[str, int]]:
    for name, arrow in model.arrows.items():
        yield name, parameter_count(model, arrow) or 0


def _largest(model: Model, declared: list[tuple[str, int]], number: int) -> tuple[tuple[str, int, str], ...]:
    return tuple(
        (name, count * number, f"{model.arrows[name].domain.written} -> {model.arrows[name].codomain.written}")
        for name, count in declared[:3]
        if count
    )


def _values(arrow: Arrow) -> int:
    """Numbers that one application leaves for the backward pass."""
    size = width(arrow.codomain.space)
    kept = size if isinstance(size, int) else 0
    return 3 * kept + 2 * arrow.hidden_dim if isinstance(arrow, Kernel) else kept


def check_fits_on(device: Device, needed: Estimate, config: RunConfig) -> int | None:
    """The same of a run on a device: a GPU holds what its steps do, and the machine the data."""
    if device.type == "cuda":
        free, _ = arrays.cuda.mem_get_info(device)
        there = needed.parameters + needed.activations
        if there > free:
            raise _refused(needed, there, f"{in_bytes(free)} are free on {device}", *SMALLER)
        if config.source != "synthetic":  # which are drawn here
            needed = replace(needed, activations=0)
    return check_fits(needed, config.memory_limit)


def check_fits(needed: Estimate, limit: int | None) -> int | None:
    """Refuse a run that cannot fit, with the numbers and the declarations to blame.

    The bytes that are left for its data; None where nobody knows.
    """
    free = limit if limit is not None else available()
    if free is None or needed.total <= free:
        return None if free is None else free - needed.total
    raise _refused(
        needed, needed.total, f"{in_bytes(free)} are free", *SMALLER, "Raise memory_limit if you know better"
    )


def _refused(needed: Estimate, total: int, free: str, *fixes: str) -> Refused:
    blamed = "; ".join(f"`{name} : {written}` has {in_bytes(size)}" for name, size, written in needed.largest)
    detail = f"{in_bytes(needed.parameters)} for parameters and optimiser, {in_bytes(needed.activations)} for a step"
    if needed.draws:
        detail += f", {in_bytes(needed.draws)} for the draws that are kept"
    return Refused(
        "memory",
        f"the run would need about {in_bytes(total)} and {free}: {detail}. {blamed}",
        fixes=fixes,
    )
