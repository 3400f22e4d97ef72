"""A program as an arrow: what other arrows see of it when they compose, scan or stack it.

Every draw of its sites is a draw of the arrow, under the path `site/path`; the density is that of the site that the
program returns, given all others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, arrays, is_tensor
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.runtime.arrows.normal_chain import standard_density
from qvr_core.runtime.arrows.terms_in_parts import given_inside, inside
from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.execution import Execution, SiteInfo, SiteRecord, Wanted
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.handlers import (
    Handler,
    condition,
    densities,
    drawn_anew,
    keep,
    redraw,
    replay,
    seed,
    substitute,
)
from qvr_core.runtime.programs.steps import Step
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Term, Value, missing_innovations
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.layout import join, parts
from qvr_core.semantics.types.spaces import Product


class ProgramArrow(ArrowModule):
    """The arrow's side of a program; `run` is `ProgramModule`'s."""

    name: str
    returned: list[str]
    steps: list[Step]
    scored: frozenset[str]
    sites: dict[str, ArrowSite | FamilySite]
    run: Callable[..., Execution]

    def forward(self, x: Value) -> Value:
        """The value of a deterministic program; a draw of a sampled one."""
        output = self.run(x, densities(False), *self._within()).output
        if isinstance(output, tuple) and isinstance(self.codomain.space, Product):
            return join([self._wide(part) for part in output])
        return output

    def output_like(self, x: Value) -> Value:
        # only shapes are asked for, of whatever part of the arrow at hand
        with given_inside({}, redraw=False):
            return super().output_like(x)

    @staticmethod
    def _wide(part: Tensor) -> Tensor:
        return part.unsqueeze(-1) if part.ndim == 1 and part.is_floating_point() else part

    @property
    def final_paths(self) -> dict[str, frozenset[str]]:
        """The last draws of every site."""
        return {
            name: frozenset(spec.path for spec in site.info.draws if spec.final) for name, site in self.sites.items()
        }

    @property
    def _returned_site(self) -> str | None:
        """The site whose draw is the program's value, where it is one."""
        if len(self.returned) == 1 and isinstance(self.sites.get(self.returned[0]), ArrowSite | FamilySite):
            return self.returned[0]
        return None

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        # only shapes are asked for: no one's random numbers are used up
        with arrays.no_grad(), random_state_kept(parts(x)[0].device):
            run = self.run(x, densities(False), drawn_anew(self.data_inside))
        last = self._returned_site
        return [
            NoiseSpec(
                _joined(name, path),
                tuple(noise.shape),
                _base(self.sites[name].info, path),
                name == last and path in self.final_paths[name],
            )
            for name, record in run.sites.items()
            if name in self.sites and name not in self.terms
            for path, noise in record.noise.items()
        ]

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        asked = (
            replay(_by_site(noise, self.sites)),
            seed(generator),
            densities(want_log_prob or self._unasked),
            keep(self.scored),
        )
        run = self.run(x, *asked, *self._within())
        own = {name: site for name, site in run.sites.items() if name not in self.terms}
        flat = {_joined(name, path): u for name, site in own.items() for path, u in site.noise.items()}
        scores = [site.log_discrete for site in own.values() if site.log_discrete is not None]
        output = run.output
        if isinstance(output, tuple) and isinstance(self.codomain.space, Product):
            output = join([self._wide(part) for part in output])
        drawn = Drawn(output, flat, None, None, None, sum_of(scores), self._terms_of(run))
        if want_log_prob:
            drawn.log_prob, drawn.log_innovations = self._split(run.sites)
            drawn.log_noise = sum_of([self._log_noise(name, record) for name, record in run.sites.items()])
        return drawn

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        last = self._returned_site
        if last is None:
            raise NotImplementedError(f"program `{self.name}` does not return one of its draws: it has no density")
        given = innovations or {}
        lacking = [s for s in self.noise_specs(x) if not s.final and s.path not in given]
        if lacking:
            raise missing_innovations(lacking)
        asked = (substitute({last: y}), replay(_by_site(given, self.sites)), keep(self.scored))
        run = self.run(x, *asked, *self._within())
        return Drawn(y, {}, *self._split(run.sites), terms=self._terms_of(run))

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        drawn = self._conditioned(x, y, innovations)
        assert drawn.log_prob is not None
        return drawn.log_prob, drawn.log_innovations

    def _terms_of(self, run: Execution) -> dict[str, Term]:
        """What the program scores and observes, itself and in its arrows."""
        found: dict[str, Term] = {}
        for name in self.terms:
            record = run.sites.get(name)
            if record is not None:
                value = run.kept.get(name, record.value)
                assert is_tensor(value)
                found[name] = Term(value, record.log_prob, record.observed)
        return found

    def _within(self) -> list[Handler]:
        """What the arrow that the program stands in says of its data; none that the file was loaded with is read."""
        given = inside()
        data = {name: Cell(value, True) for name, value in given.data.items() if name in self.terms}
        return [condition(data), drawn_anew(self.data_inside), *([redraw] if given.redraw else ())]

    @property
    def _unasked(self) -> Wanted:
        """The densities that are computed where nobody asks for the draws': those of what is observed count anyway."""
        return "observed" if self.data_inside else False

    @property
    def data_inside(self) -> frozenset[str]:
        """The names of what the program observes, itself and in its arrows."""
        return frozenset(name.rpartition(".")[2] for name, word in self.terms.items() if word == "observe")

    def _split(self, sites: Mapping[str, SiteRecord]) -> tuple[Tensor | None, Tensor | None]:
        """The density of the returned site, and that of everything drawn before it."""
        last = self._returned_site
        own = [sites[last].log_prob] if last is not None else []
        before = [self._log_noise(name, site) for name, site in sites.items() if name != last]
        return sum_of(own), sum_of([*before, None if last is None else sites[last].log_innovations])

    def _log_noise(self, name: str, record: SiteRecord) -> Tensor | None:
        """log density of all noise of a site: what it counts where the program is on the way to another draw."""
        if name in self.terms:
            return None  # counted by the whole
        if record.log_noise is not None or record.observed:
            return record.log_noise if record.log_noise is not None else record.log_prob
        site = self.sites.get(name)
        bases = {spec.base for spec in site.info.draws} if isinstance(site, FamilySite) else set[str]()
        if bases == {"uniform"}:
            return None
        if bases == {"normal"}:
            return standard_density(record.noise)
        return sum_of([record.log_prob, record.log_innovations])

    def as_innovation(self) -> ArrowModule:
        changed = {
            name: inner
            for name, site in self.sites.items()
            if isinstance(site, ArrowSite) and (inner := site.module.as_innovation()) is not site.module
        }
        if not changed:
            return self
        clone = copy.copy(self)
        clone.steps = [
            step.with_module(changed[step.name]) if isinstance(step, ArrowSite) and step.name in changed else step
            for step in self.steps
        ]
        clone.sites = {step.name: step for step in clone.steps if isinstance(step, ArrowSite | FamilySite)}
        clone.paths = clone._all_paths()
        return clone

    def _all_paths(self) -> tuple[str, ...]:
        """Every draw that can occur, so that a program used twice in one arrow keeps two sets of them."""
        return tuple(
            _joined(name, path)
            for name, site in self.sites.items()
            for path in (site.module.paths if isinstance(site, ArrowSite) else ("",))
        )


def sum_of(terms: Sequence[Tensor | None]) -> Tensor | None:
    """The sum of what is there; None where nothing is."""
    present = [term for term in terms if term is not None]
    return sum(present[1:], present[0]) if present else None


def _joined(site: str, path: str) -> str:
    return f"{site}/{path}" if path else site


def _by_site(noise: Noise | None, sites: Mapping[str, Any]) -> dict[str, dict[str, Tensor]]:
    cut: dict[str, dict[str, Tensor]] = {}
    for key, value in (noise or {}).items():
        site, _, path = key.partition("/")
        if site in sites:
            cut.setdefault(site, {})[path] = value
    return cut


def _base(info: SiteInfo, path: str) -> str:
    return next((spec.base for spec in info.draws if spec.path == path), "value")
