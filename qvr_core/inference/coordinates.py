"""The real-valued coordinates in which guides and chains move.

A site drawn from a named arrow moves by the arrow's own standardised noise: its prior is the standard normal, whatever
the parameters are.  A family step moves in unconstrained space, through its bijector.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn, special
from qvr_core.runtime.arrows.training import training_layers
from qvr_core.runtime.families.bijectors import Support, constrain, unconstrained_shape
from qvr_core.runtime.programs.execution import Execution, SiteInfo
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import NoiseSpec
from qvr_core.runtime.values.errors import DiscreteLatent, NoDensity, NoDraws, RuntimeProblem

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_DICT = nn.ParameterDict()


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A block of latents.

    `kind`: 'normal' (the noise itself), 'uniform' (the noise by its normal quantile), 'value' (an arrow's draw whose
    noise is the value: through the bijector onto `support`), 'family' (a family step, by its own bijector).
    `shape` is without rows, None where only a run can tell.
    """

    site: str
    path: str
    kind: str
    shape: tuple[int, ...] | None
    support: Support

    @property
    def key(self) -> str:
        """A name for parameters: `h`, `h/cell`; dots are kept out of the way of `ParameterDict`, and what that itself
        has (`half`, `values`) ends in a stroke."""
        name = f"{self.site}/{self.path}".rstrip("/").replace(".", "/")
        return f"{name}/" if hasattr(_DICT, name) else name

    @property
    def standard(self) -> bool:
        """True where the prior of the coordinate is the standard normal."""
        return self.kind in ("normal", "uniform")

    def noise(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """The noise that an arrow takes for a coordinate's value, and log |∂noise/∂z| (B,) for kind 'value'."""
        if self.kind == "uniform":
            finfo = arrays.finfo(z.dtype)
            return special.ndtr(z).clamp(finfo.tiny, 1.0 - 0.5 * finfo.eps), None
        if self.kind == "value":
            return constrain(z, self.support)
        return z, None


def coordinates(
    model: ProgramModule,
    observed: Collection[str],
    *,
    innovations: bool,
    purpose: str,
    missing: Mapping[str, tuple[int, ...]] | None = None,
) -> list[Coordinate]:
    """The coordinates of all latents that are not observed; with `innovations`, of the noise inside every arrow too.
    `missing` are the shapes of what moves the missing cells of observed steps.

    Raises `DiscreteLatent` or `NoDensity` where a latent cannot move; `purpose` says who asks, for the message.
    """
    try:
        found = _coordinates(model, observed, innovations, purpose)
    except RuntimeProblem as problem:
        model.placed(problem)
        raise
    # those below a summed-out latent are no sites of the program
    infos = {site.name: site.info for site in model.gapped}
    return found + [Coordinate(n, "", "family", s, Support(infos[n].support)) for n, s in (missing or {}).items()]


def _coordinates(model: ProgramModule, observed: Collection[str], innovations: bool, purpose: str) -> list[Coordinate]:
    if purpose == "NUTS":
        _no_training_layer(model)
    found: list[Coordinate] = []
    for name, info in model.site_infos().items():
        latent = info.kind == "sample" and name not in observed
        if latent:
            _movable(model, name, info, purpose)
        if info.arrow:
            for spec in info.draws:
                if (latent and spec.final) or (innovations and not spec.final):
                    found.append(_arrow_coordinate(model, name, spec, purpose))
        elif latent:
            support = Support(info.support)
            shape = None if info.event is None else unconstrained_shape(info.support, info.event)
            found.append(Coordinate(name, "", "family", shape, support))
    return found


def _no_training_layer(model: ProgramModule) -> None:
    for layer in training_layers((model,)):
        if layer.reads_batch:
            problem, without = "normalises by statistics that SVI's training stores", "batch_norm"
        else:
            problem, without = "leaves numbers out at random", "dropout"
        raise NoDensity(
            f"`{layer.name}` {problem}, so program `{model.name}` has no one density for NUTS to explore; fit it with "
            f"SVI, or write it without {without}",
            site=str(layer.name),
        )


def measured(found: Sequence[Coordinate], run: Execution) -> list[Coordinate]:
    """Coordinates with the shapes that they have in a run; those that it does not have (no earlier step) are gone."""
    made: list[Coordinate] = []
    for coordinate in found:
        site = run.sites[coordinate.site]
        value = site.value if coordinate.kind == "family" else site.noise.get(coordinate.path)
        if site.kind == "observe" and coordinate.kind == "family":
            made.append(coordinate)  # missing cells: their number is known
        elif is_tensor(value):
            shape = unconstrained_shape(coordinate.support.kind, tuple(value.shape[1:]))
            made.append(replace(coordinate, shape=shape))
    return made


def _movable(model: ProgramModule, name: str, info: SiteInfo, purpose: str) -> None:
    # Chains have no guide to change.
    other = "" if purpose == "NUTS" else ", or use AutoPriorGuide, which draws it from the model"
    if info.discrete:
        raise DiscreteLatent(
            f"program `{model.name}`: the latent `{name}` is discrete, so {purpose} cannot move it. Sum it out with "
            f"`marginalize {name} <- …`{other}",
            site=name,
        )
    if info.improper and purpose != "NUTS":
        raise NoDensity(
            f"program `{model.name}`: the prior of `{name}` is improper, so {purpose} has no bound to fit; use "
            "NUTS, or draw it from a wide Normal",
            site=name,
        )
    if not info.drawn and purpose != "NUTS":
        raise NoDraws(
            f"program `{model.name}`: {purpose} draws `{name}` from its prior, whose family does not say how: add "
            "a line `draw = …` to the family, or use NUTS",
            site=name,
        )
    if info.undrawn and info.event is None:
        why = "its prior is improper" if info.improper else "the family of its prior has no `draw`"
        raise NoDensity(
            f"program `{model.name}`: nothing but a draw would tell the shape of `{name}`, and {why}; "
            "say it by a type, as in `: Group` or `: Real 3`",
            site=name,
        )
    if info.arrow and any(name == site.name for block in model.marginals.values() for site in block.latents()):
        raise NoDensity(
            f"program `{model.name}`: `{name}` is drawn from an arrow inside `marginalize`, where its noise gives "
            f"another value in every branch, so {purpose} cannot move it; draw it from a family{other}",
            site=name,
        )
    if info.arrow and info.density.kind == "none":
        raise NoDensity(
            f"program `{model.name}`: `{name}` ends in a deterministic arrow after its last draw, so it has no density "
            f"and {purpose} cannot move it; let its arrow end in a draw{other}",
            site=name,
        )


def _arrow_coordinate(model: ProgramModule, site: str, spec: NoiseSpec, purpose: str) -> Coordinate:
    support = Support("real")
    if spec.base == "discrete":
        raise DiscreteLatent(
            f"program `{model.name}`: `{site}` draws the discrete `{spec.path}` inside, which {purpose} cannot move; "
            "sum it out with `marginalize`",
            site=site,
        )
    if spec.base == "value":
        # a kernel that is used again, and its last draw, have other paths
        leaf = model.leaves.get(spec.path.partition("#")[0].removesuffix("@last"))
        head = getattr(leaf, "head", None)
        if head is None:
            raise NoDensity(f"`{site}`: {purpose} cannot move `{spec.path}`", site=site)
        support = head.family.support(())
    shape = tuple(spec.shape)
    if spec.base == "value":
        shape = unconstrained_shape(support.kind, shape)
    return Coordinate(site, spec.path, spec.base, shape, support)


def standard_normal(z: Tensor) -> Tensor:
    """log N(z; 0, 1) summed over everything but the rows, (B,)."""
    flat = z.reshape(z.shape[0], -1)
    return -0.5 * flat.square().sum(-1) - HALF_LOG_2PI * flat.shape[1]
