"""The log density that a chain explores, on flat real vectors: value and gradient for all chains at once."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.inference.coordinates import HALF_LOG_2PI, Coordinate, coordinates, measured, standard_normal
from qvr_core.inference.lifting import LiftedModel, parameters_set
from qvr_core.inference.mcmc.centred_sites import advice
from qvr_core.inference.nonfinite import blamed, blamed_data
from qvr_core.runtime.families.bijectors import unconstrained_shape
from qvr_core.runtime.families.soundness import sound_arguments
from qvr_core.runtime.programs.execution import Execution, SiteRecord
from qvr_core.runtime.programs.handlers import Handler, by_rows, condition, densities, replay, unconstrained
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import repeat_rows
from qvr_core.runtime.values.decompositions import trying
from qvr_core.runtime.values.errors import InputProblem, NonFinite
from qvr_core.runtime.values.layout import parts


class Potential(Protocol):
    """What a sampler needs: `width` coordinates, their log density with gradient, and what a position means."""

    width: int
    dtype: arrays.dtype
    vectorised: bool
    advice: str | None
    """What would make the program easier for a chain, where that can be told."""

    def value_and_grad(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """log density (C,) in double precision and its gradient (C, width) at positions (C, width)."""
        ...

    def initial(self, generator: np.random.Generator) -> Tensor:
        """A start for one chain, (width,)."""
        ...

    def find_initial_position(self, q: Tensor) -> Tensor:
        """The first move of the warm-up, for one chain: where to go from a start that is far from typical."""
        ...

    def report(self, q: Tensor) -> dict[str, Tensor]:
        """Every latent by name at positions (C, width): (C, …)."""
        ...

    def blame(self, q: Tensor) -> NonFinite | None:
        """The site that makes the density at one position (width,) infinite or NaN."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """A coordinate's place in the flat vector."""

    coordinate: Coordinate
    start: int
    stop: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The block's shape in one row."""
        return self.coordinate.shape or ()


class ProgramPotential:
    """The latents of a program given data; every chain is a copy of all rows, so chains run in one execution."""

    vectorised = True

    def __init__(
        self, model: ProgramModule, x: object, observations: Mapping[str, Any], handlers: Sequence[Handler] = ()
    ) -> None:
        """`handlers` say what every execution is asked beside, as that a part of the rows stands for all."""
        self.model, self.handlers = model, tuple(handlers)
        self.advice = advice(model.program)
        self.observations = dict(observations)
        model.note_unobserved(observations)
        self.value = model.input(x)
        self.rows = 1 if self.value is None else parts(self.value)[0].shape[0]
        free = [p for p in model.parameters() if p.is_floating_point()]
        # a program without parameters owes nothing to single precision
        self.dtype = free[0].dtype if free else arrays.float64
        missing = model.missing_shapes(observations)
        found = coordinates(model, frozenset(observations), innovations=True, purpose="NUTS", missing=missing)
        with arrays.no_grad(), trying():
            zeros = {name: arrays.zeros(self.rows, *shape, dtype=self.dtype) for name, shape in missing.items()}
            undrawn = unconstrained({**self._undrawn(), **zeros})
            run = model.run(self.value, condition(observations), undrawn, densities(False))
        self.blocks = _place(measured(found, run))
        self.width = self.rows * (self.blocks[-1].stop if self.blocks else 0)
        if self.width == 0:
            raise InputProblem(f"`{model.name}` has no latent to sample: everything is observed")
        self.scored = {b.coordinate.site for b in self.blocks if b.coordinate.kind == "value"}
        self._expanded: dict[int, tuple[Any, Mapping[str, Any]]] = {}

    def _undrawn(self) -> dict[str, Tensor]:
        """Zeros for the latents that have no prior to draw from: a run shows the shapes of the others."""
        infos = {name: info for name, info in self.model.site_infos().items() if name not in self.observations}
        return {
            name: arrays.zeros(self.rows, *unconstrained_shape(info.support, info.event), dtype=self.dtype)
            for name, info in infos.items()
            if info.undrawn and info.event is not None
        }

    def in_double(self) -> ProgramPotential:
        """The same density in double precision."""
        found = copy.copy(self)
        found.dtype, found._expanded = arrays.float64, {}
        return found

    def _inputs(self, chains: int) -> tuple[Any, Mapping[str, Any]]:
        if chains not in self._expanded:
            value, given = self.value, self.observations
            if value is not None and chains > 1:
                given = self.model.repeat_data(given, self.rows, chains)
                value = repeat_rows(value, chains)
            if self.dtype == arrays.float64:
                given = {name: _double(v) for name, v in given.items()}
                value = tuple(map(_double, value)) if isinstance(value, tuple) else _double(value)
            self._expanded[chains] = (value, given)
        return self._expanded[chains]

    def run(self, q: Tensor, wanted: bool = True) -> tuple[Execution, Tensor]:
        """An execution at positions (C, width), and the density of the latents per row less what sites add."""
        chains = q.shape[0]
        value, given = self._inputs(chains)
        rows = chains * self.rows
        each = q.reshape(rows, -1)
        noise: dict[str, dict[str, Tensor]] = {}
        free: dict[str, Tensor] = {}
        total = arrays.zeros((), dtype=arrays.float64)
        for block in self.blocks:
            coordinate = block.coordinate
            z = each[:, block.start : block.stop].reshape(rows, *block.shape)
            if coordinate.kind == "family":
                free[coordinate.site] = z
                continue
            made, log_jacobian = coordinate.noise(z)
            noise.setdefault(coordinate.site, {})[coordinate.path] = made
            if log_jacobian is not None:
                total = total + log_jacobian
            elif coordinate.kind == "uniform" or coordinate.site not in self.scored:
                total = total + standard_normal(z.double())
        with trying():
            asked = densities("observed" if wanted else False, self.scored)
            known = (condition(given), replay(noise), unconstrained(free), asked, by_rows(rows))
            run = self.model.run(value, *known, *(self.handlers if wanted else ()))
        if wanted:
            for name, site in run.sites.items():
                if name in free:
                    assert site.log_prob is not None
                    total = total + site.log_prob
                    if site.log_jacobian is not None:
                        total = total + site.log_jacobian
                elif site.observed:
                    if site.kind == "prior":
                        continue
                    term = self.likelihood(run, site)
                    if term is not None:
                        total = total + term
                    if name in self.scored and site.log_innovations is not None:
                        total = total + site.log_innovations
                elif name in self.scored and site.log_noise is not None:
                    total = total + site.log_noise
            total = run.possible(total)
        return run, total

    def likelihood(self, run: Execution, site: SiteRecord) -> Tensor | None:
        """What an observed step adds to the density, (B,)."""
        return site.log_prob

    def log_density_of(self, q: Any) -> Any:
        """The log density of one chain's position (1, width), by rows, of whatever arrays it is given in."""
        return self.run(q)[1]

    @arrays.no_grad()
    def log_densities(self, q: NDArray[Any]) -> NDArray[Any]:
        """Of positions (N, width): (N,)."""
        _, total = self.run(arrays.from_numpy(q).to(self.dtype))
        return total.expand(q.shape[0] * self.rows).reshape(q.shape[0], -1).sum(-1).double().numpy()

    def value_and_grad(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """The log joint (C,) with its log Jacobians, in double precision, and its gradient (C, width) by autograd."""
        q = q.detach().requires_grad_()
        with arrays.enable_grad():
            _, total = self.run(q)
            each = total.expand(q.shape[0] * self.rows).reshape(q.shape[0], -1).sum(-1)
            (gradient,) = arrays.autograd.grad(each.sum(), q)
        return each.detach().double(), gradient

    def initial(self, generator: np.random.Generator) -> Tensor:
        """Noise from its prior; unconstrained values uniform on (−2, 2), as in Stan."""
        pieces: list[NDArray[Any]] = []
        for block in self.blocks:
            shape = (self.rows, block.stop - block.start)
            standard = block.coordinate.standard
            pieces.append(generator.standard_normal(shape) if standard else generator.uniform(-2.0, 2.0, shape))
        return arrays.from_numpy(np.concatenate(pieces, -1).reshape(-1)).to(self.dtype)

    def find_initial_position(self, q: Tensor) -> Tensor:
        return q

    @arrays.no_grad()
    def report(self, q: Tensor) -> dict[str, Tensor]:
        """Every latent on its own scale by name, (C, …) or (C, rows, …), and the noise of what is drawn by arrows."""
        run, _ = self.run(q, wanted=False)
        values: dict[str, Tensor] = {}
        for block in self.blocks:
            site = run.sites[block.coordinate.site]
            value = site.imputed if site.kind == "observe" else site.reported
            if site.kind in ("sample", "observe") and not site.observed and is_tensor(value):
                values[site.name] = self._by_chain(value, q.shape[0])
        for block in self.blocks:
            coordinate = block.coordinate
            if coordinate.path and not _is_final(self.model, coordinate):
                noise = run.sites[coordinate.site].noise[coordinate.path]
                values[f"{coordinate.site}/{coordinate.path}"] = self._by_chain(noise, q.shape[0])
        return values

    @arrays.no_grad()
    def blame(self, q: Tensor) -> NonFinite | None:
        """Data, arguments or the first site that are not finite at one position (width,); None where all are."""
        found = blamed_data(self.model, self.value, self.observations)
        try:
            with sound_arguments():
                found = found or blamed(self.model.name, self.run(q.unsqueeze(0))[0])
        except NonFinite as wrong:
            found = wrong
        return None if found is None else self.model.placed(found)

    def _by_chain(self, value: Tensor, chains: int) -> Tensor:
        """(C · B, …) as (C, B, …); without an input there is no row axis to report."""
        if self.value is None:
            return value
        return value.reshape(chains, self.rows, *value.shape[1:])


class LiftedPotential:
    """Parameters in units of their priors, then the latents of the program; several chains are one vmap."""

    vectorised = True

    def __init__(self, lifted: LiftedModel, x: object, observations: Mapping[str, Any]) -> None:
        self.lifted = lifted
        self._one_by_one = False
        model = lifted.model
        try:
            self.inner: ProgramPotential | None = ProgramPotential(model, x, observations)
        except InputProblem:
            # nothing but the parameters is latent
            self.inner = None
        self.advice = None if self.inner is None else self.inner.advice
        self.x, self.observations = model.input(x), dict(observations)
        self.dtype = next(model.parameters()).dtype
        self.shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.own = sum(self.sizes)
        self.width = self.own + (self.inner.width if self.inner is not None else 0)
        self.scale = arrays.cat(
            [arrays.full((size,), lifted.scales[name]) for name, size in zip(self.shapes, self.sizes, strict=True)]
        ).to(self.dtype)

    def in_double(self) -> LiftedPotential:
        """The same density in double precision, as far as the networks compute in it."""
        found = copy.copy(self)
        found.dtype, found.scale = arrays.float64, self.scale.double()
        found.x = tuple(map(_double, self.x)) if isinstance(self.x, tuple) else _double(self.x)
        found.observations = {name: _double(value) for name, value in self.observations.items()}
        if self.inner is not None:
            found.inner = self.inner.in_double()
        return found

    def log_density_of(self, q: Any) -> Any:
        """The log density at the position (1, width) of one chain, of whatever arrays it is given in."""
        return self.log_density(q[0])

    @arrays.no_grad()
    def log_densities(self, q: NDArray[Any]) -> NDArray[Any]:
        """Of positions (N, width): (N,)."""
        return arrays.stack([self.log_density(row) for row in arrays.from_numpy(q).to(self.dtype)]).double().numpy()

    def parameters(self, q: Tensor) -> dict[str, Tensor]:
        """The parameters at one position (width,)."""
        pieces = arrays.split(q[: self.own] * self.scale, self.sizes)
        return {name: piece.reshape(shape) for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)}

    def log_density(self, q: Tensor) -> Tensor:
        """At one position (width,): log p(θ, noise) of the coordinates plus log p(data | …), a double."""
        with parameters_set(self.lifted.model, self.parameters(q), self.lifted.owners):
            if self.inner is not None:
                _, rest = self.inner.run(q[self.own :].unsqueeze(0))
                prior = self.lifted.model.log_prior()
                rest = rest.sum() if prior is None else rest.sum() + prior
            else:
                with trying():
                    run = self.lifted.model.run(self.x, condition(self.observations))
                rest = run.log_joint()
        theta = q[: self.own].double()
        return rest.double().sum() - 0.5 * theta.square().sum() - HALF_LOG_2PI * self.own

    def value_and_grad(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """All chains at once where the model allows."""
        if q.shape[0] > 1 and not self._one_by_one:
            try:
                return self._gradient(arrays.vmap(self.log_density), q)
            except RuntimeError:
                # what looks at values (a fixed point, say) cannot be batched
                self._one_by_one = True
        each = [self._gradient(self.log_density, row) for row in q]
        return arrays.stack([value for value, _ in each]), arrays.stack([gradient for _, gradient in each])

    @staticmethod
    def _gradient(density: Callable[[Tensor], Tensor], q: Tensor) -> tuple[Tensor, Tensor]:
        here = q.detach().requires_grad_()
        with arrays.enable_grad():
            value = density(here)
            (gradient,) = arrays.autograd.grad(value.sum(), here)
        return value.detach(), gradient

    def initial(self, generator: np.random.Generator) -> Tensor:
        """The module's current parameters; noise from its prior."""
        start = arrays.cat([p.detach().reshape(-1) for p in self.lifted.model.parameters()]).to(self.dtype) / self.scale
        if self.inner is None:
            return start
        return arrays.cat([start, self.inner.initial(generator)])

    @arrays.no_grad()
    def find_initial_position(self, q: Tensor) -> Tensor:
        """The densest of eleven points between the parameters as they are and their contraction onto the shell where
        almost all of the prior lies.  Weights well outside it make a recurrent network chaotic, and no step size that
        such a place allows would ever leave it; where the data want large weights the density says so."""
        inner = arrays.ones_like(q)
        offset = 0
        for size in self.sizes:
            block = q[offset : offset + size]
            rms = block.square().mean().sqrt()
            inner[offset : offset + size] = (1.0 / rms).clamp(max=1.0)
            offset += size
        points = [q * (1.0 - t + t * inner) for t in arrays.linspace(0.0, 1.0, 11)]
        densities = arrays.stack([self.log_density(point) for point in points]).nan_to_num(-math.inf)
        return points[int(densities.argmax())]

    @arrays.no_grad()
    def report(self, q: Tensor) -> dict[str, Tensor]:
        """Every parameter by name, and the latents at them, (C, …)."""
        found: dict[str, list[Tensor]] = {}
        for row in q.to(self.dtype):
            theta = self.parameters(row)
            here = dict(theta)
            if self.inner is not None:
                with parameters_set(self.lifted.model, theta, self.lifted.owners):
                    here |= {n: v[0] for n, v in self.inner.report(row[self.own :].unsqueeze(0)).items()}
            for name, value in here.items():
                found.setdefault(name, []).append(value)
        return {name: arrays.stack(values) for name, values in found.items()}

    @arrays.no_grad()
    def blame(self, q: Tensor) -> NonFinite | None:
        with parameters_set(self.lifted.model, self.parameters(q), self.lifted.owners):
            return None if self.inner is None else self.inner.blame(q[self.own :])


def _place(found: Sequence[Coordinate]) -> list[Block]:
    """Blocks in order."""
    blocks: list[Block] = []
    start = 0
    for coordinate in found:
        stop = start + math.prod(coordinate.shape or ())
        blocks.append(Block(coordinate, start, stop))
        start = stop
    return blocks


def _is_final(model: ProgramModule, coordinate: Coordinate) -> bool:
    return coordinate.path in model.final_paths[coordinate.site]


def _double(value: Any) -> Any:
    return value.double() if is_tensor(value) and value.is_floating_point() else value


def potential_of(
    model: ProgramModule | LiftedModel,
    x: object,
    observations: Mapping[str, Any] | None,
) -> Potential:
    """The potential of a program, or of one whose parameters are lifted."""
    if isinstance(model, LiftedModel):
        given = observations if observations is not None else model.observations
        model.model.check_names(given, "observations")
        _check_here(model.model, x, given)
        return LiftedPotential(model, x, given)
    model.check_names(observations or {}, "observations")
    _check_here(model, x, observations or {})
    return ProgramPotential(model, x, observations or {})


def _check_here(model: ProgramModule, x: object, observations: Mapping[str, Any]) -> None:
    """Chains move on the CPU.  Raises `InputProblem` for what lies elsewhere, rather than move what is not theirs."""
    given = {"the input": x, **{f"`{name}`": value for name, value in observations.items()}}
    parameters = {f"the parameter `{name}`": value for name, value in model.named_parameters()}
    for name, value in (*given.items(), *parameters.items()):
        if isinstance(value, Tensor) and value.device.type != "cpu":
            own = "model.cpu()" if name in parameters else ".cpu()"
            raise InputProblem(f"`{model.name}`: chains run on the CPU, and {name} lies on {value.device} (`{own}`)")
