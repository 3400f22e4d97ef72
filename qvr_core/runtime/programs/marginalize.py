"""`marginalize`: a latent summed or integrated out exactly, per group, per row, or once per row of the batch.

The values of the latent become rows: inside the block every row of the batch is repeated once per value, so that each
step runs once on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.polynomial.legendre import leggauss

from qvr_core.arrays.engine import Tensor, arrays, broadcasting, is_tensor
from qvr_core.runtime.families.bijectors import constrain
from qvr_core.runtime.families.categories import categorical_draw
from qvr_core.runtime.families.soundness import asked
from qvr_core.runtime.programs import indexed
from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.chain_site import ChainSite
from qvr_core.runtime.programs.execution import SiteRecord
from qvr_core.runtime.programs.family_site import FamilySite
from qvr_core.runtime.programs.frame import Frame, as_tensor
from qvr_core.runtime.programs.missing.missing_site import filled_in_block, given_alone, note_filled
from qvr_core.runtime.programs.site_shapes import sizes
from qvr_core.runtime.programs.site_terms import Terms
from qvr_core.runtime.values.cells import Cell
from qvr_core.runtime.values.errors import NoDensity, RuntimeProblem
from qvr_core.runtime.values.indices import recording
from qvr_core.runtime.values.layout import blocks
from qvr_core.runtime.values.padding import each_repeated
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model.steps import MarginalizeModel

QUADRATURE_NODES = 64
"""Gauss-Legendre nodes: exact for polynomials up to degree 127."""


class _Step(Protocol):
    def run(self, frame: Frame) -> None: ...


@runtime_checkable
class _Block(Protocol):
    """A block in a block."""

    def observed(self) -> list[ArrowSite | FamilySite]: ...


class Marginalize:
    """`mode` says what the latent is drawn once for: 'group', 'row' (of the data) or 'batch' (a row of the batch).

    `plate` are the sizes of what it has a value for each element of, `axes` those of the axes that the sum keeps:
    groups lie along one.
    """

    def __init__(self, model: MarginalizeModel, latent: ArrowSite | FamilySite, body: Sequence[_Step]) -> None:
        self.name = model.site.name
        self.latent = latent
        self.body = body
        self.density = model.site.density
        if model.over is not None:
            self.mode, self.plate = "group", sizes(model.over.space)
        elif model.rows is not None:
            self.mode, self.plate = "row", sizes(model.rows.space)
        else:
            self.mode, self.plate = "batch", ()
        self.axes: tuple[int, ...] = (math.prod(self.plate),) if self.mode == "group" else self.plate
        self.discrete, self.places_of = latent.discrete, self.plate
        self.indexed = model.indexed
        self.places = dict(model.axes)

    def run(self, frame: Frame) -> None:
        """Leave one record with the summed-out density, and one per latent of the block; what is missing is drawn.

        A latent of the block has one value, whatever the summed-out one is: its density is part of the sum.
        """
        again = [site.name for site in self.observed() if site.kind == "observe"] if frame.request.redraw else ()
        with frame.hidden(again):
            self._run(frame)

    def _run(self, frame: Frame) -> None:
        filled = list(filled_in_block(self.observed(), frame))
        latents = self.latents()
        records = {site.name: self._latent(site, frame) for site in latents}
        drawn = None
        if not self._supplied(frame):
            frame.drawn.update(one.name for one in self.observed() if frame.supplied(one.name) is None)
            drawn = self._draw(frame)
        fresh = [site.name for site in latents if records[site.name] is None]
        log_prob = marginal = None
        if frame.request.wanted is not False:
            log_prob = self.evaluate(frame).per_row(frame.rows)
            if fresh:
                marginal = self.evaluate(frame, latents_only=True).per_row(frame.rows)
            if marginal is not None and frame.request.wanted == "observed":
                log_prob = log_prob - marginal
        for site in latents:
            record = records[site.name] or SiteRecord(site.name, "sample", False, None, None, None, {}, self.density)
            cell = frame.supplied(site.name)
            assert cell is not None
            frame.bound[site.name] = cell
            record.value = cell.value
            record.log_prob = None if log_prob is None else arrays.zeros_like(log_prob)
            frame.sites[site.name] = record
        if fresh and marginal is not None:
            # a mixture's draw carries no gradient: the score function's does
            frame.sites[fresh[0]].log_discrete = marginal
        record = SiteRecord(self.name, "marginalize", True, drawn, log_prob, None, {}, self.density)
        if frame.request.pointwise and any(site.kind == "observe" for site in self.observed()):
            with given_alone([filling for _, filling in filled]):
                record.pointwise = self.evaluate(frame).by_row(frame.rows)
                if latents:
                    record.pointwise = record.pointwise - self.evaluate(frame, latents_only=True).by_row(frame.rows)
            record.pointwise = self._present(record.pointwise, frame)
        if frame.request.states and self.latent.discrete:
            self._posterior(frame, record)
        frame.sites[self.name] = record
        note_filled(filled, log_prob, frame)

    def _present(self, density: Tensor, frame: Frame) -> Tensor:
        """The density of each element, NaN where all that would be observed there is missing."""
        gaps = [frame.gaps.get(site.name) for site in self.observed() if site.kind == "observe"]
        cells = [filling.gaps.cells for filling in gaps if filling is not None]
        if len(cells) < len(gaps) or any(one.shape != density.shape[1:] for one in cells):
            return density
        return arrays.where(arrays.stack(cells).all(0), arrays.full((), math.nan, dtype=density.dtype), density)

    def latents(self) -> list[ArrowSite | FamilySite]:
        """All sample sites inside."""
        return [site for site in self.observed() if site.kind == "sample"]

    def _latent(self, site: ArrowSite | FamilySite, frame: Frame) -> SiteRecord | None:
        """The record of a latent whose value is given; None where it is to be drawn."""
        request = frame.request
        free = request.unconstrained.get(site.name)
        if free is not None and isinstance(site, FamilySite):
            value, log_jacobian = constrain(free, site.own_support(frame))
            record = SiteRecord(site.name, "sample", False, None, None, None, {}, self.density)
            record.log_jacobian = log_jacobian
        else:
            given = request.values.get(site.name)
            given = request.observations.get(site.name) if given is None else given
            if given is None:
                return None
            rank = None if site.info.event is None else len(site.info.event)
            value = as_tensor(given)
            if rank is not None and value.ndim <= rank:
                value = value.expand(frame.rows, *value.shape)
            record = SiteRecord(site.name, "sample", True, None, None, None, {}, self.density)
        frame.given[site.name] = Cell(value, True)
        return record

    def observed(self) -> list[ArrowSite | FamilySite]:
        """All sites inside whose values enter the sum."""
        found: list[ArrowSite | FamilySite] = []
        for step in self.body:
            if isinstance(step, _Block):  # a hidden chain among them
                found.extend(step.observed())
            elif isinstance(step, ArrowSite | FamilySite):
                found.append(step)
        return found

    def _supplied(self, frame: Frame) -> bool:
        missing = [site for site in self.observed() if frame.supplied(site.name) is None]
        return not missing

    # ------------------------------------------------------------ forward draws

    def _draw(self, frame: Frame) -> Tensor:
        """Draw the latent, then the body given it; what the body draws counts as observed afterwards."""
        latent = self.latent
        if isinstance(latent, FamilySite):
            value = latent.draw_value(frame, self.plate)
            if self.mode == "batch" and value.ndim > 1 and value.numel() == frame.rows:
                # a probability computed from a `Real 1` is a column
                value = value.reshape(-1)
        else:
            latent.run(frame)
            value = frame.sites[self.name].value
        frame.bound[self.name] = Cell(value, True)
        for step in self.body:
            step.run(frame)
        for site in self.observed():
            cell = frame.bound[site.name]
            if site.kind == "sample" and is_tensor(cell.value):
                cell = Cell(cell.value.detach(), cell.rows)
            frame.given[site.name] = cell
        assert is_tensor(value)
        return value

    # ------------------------------------------------------------ the sum

    def evaluate(self, frame: Frame, *, latents_only: bool = False) -> Terms:
        """log Σ_z p(z) p(body | z) per row and, by mode, per group or row of the data; `latents_only` leaves out what
        the block observes and scores."""
        return Terms(arrays.logsumexp(self._joint(frame, latents_only), 1), True)

    def _posterior(self, frame: Frame, record: SiteRecord) -> None:
        """Leave the probability of each value given what the block observes, (B, *plate, K), and where it is asked for
        a draw from it, int64."""
        log_p = arrays.log_softmax(self._joint(frame, False), 1).movedim(1, -1)
        log_p = log_p.reshape(frame.rows, *self.plate, log_p.shape[-1])
        record.states = log_p.exp()
        if frame.request.paths:
            record.value = categorical_draw(tuple(log_p.shape[:-1]), frame.request.generator, log_p)

    def _joint(self, frame: Frame, latents_only: bool) -> Tensor:
        """log p(z) p(body | z) of every value, (B, K, *axes)."""
        values, log_weights, has_rows = self._values(frame)
        count = values.shape[-1]
        inner = frame.inner(count)
        inner.bound[self.name] = Cell(self._along_rows(_as_rows(values, has_rows, frame.rows)), True)
        total = self._prior(inner)
        with each_repeated(count):
            for step in self.body:
                term = self._term(step, inner, latents_only)
                if term is not None and not (latents_only and _scores(step)):
                    total = self._add(total, term, step)
        if total.ndim == 1:
            total = total.reshape(-1, *(1 for _ in self.axes)).expand(-1, *self.axes)
        joint = arrays.unflatten(total, 0, (frame.rows, count))
        if log_weights is not None:
            weights = arrays.unflatten(_as_rows(log_weights, has_rows, frame.rows), 0, (frame.rows, count))
            joint = joint + weights.reshape(*weights.shape, *(1,) * (joint.ndim - weights.ndim))
        for site in self.observed():
            given = frame.supplied(site.name)
            value = None if given is None else given.value
            frame.sites[site.name] = SiteRecord(site.name, "observe", True, value, None, None, {}, self.density)
            if given is not None:
                frame.bound[site.name] = given
        return joint

    def _values(self, frame: Frame) -> tuple[Tensor, Tensor | None, bool]:
        """The values of the latent along a last axis, log quadrature weights where it is integrated, and whether
        they have rows."""
        latent = self.latent
        if isinstance(latent, ArrowSite):
            return arrays.arange(blocks(latent.codomain)[0].size), None, False
        aligned = latent.arguments.align(frame, latent.event, latent.groups(frame))
        parameters = latent.arguments.canonical(aligned, len(aligned.batch))
        if latent.discrete:
            return arrays.arange(_cardinality(latent, parameters)), None, False
        support = latent.family.support(parameters)
        if support.low is None or support.high is None:
            raise NoDensity(
                f"site `{self.name}`: {latent.family.name} is not on a bounded interval, so it cannot be integrated "
                "by quadrature; use `sample`",
                site=self.name,
            )
        nodes, weights = (arrays.as_tensor(a, dtype=precision()) for a in leggauss(QUADRATURE_NODES))
        low, high = broadcasting.broadcast_tensors(as_tensor(support.low), as_tensor(support.high))
        low, high = low.unsqueeze(-1), high.unsqueeze(-1)
        half = 0.5 * (high - low)
        if not recording() and not bool(arrays.isfinite(half).all()):
            raise NoDensity(f"site `{self.name}`: the interval to integrate over is not bounded", site=self.name)
        has_rows = aligned.rows and half.ndim > len(aligned.batch) + 1
        return low + half * (nodes + 1.0), weights.log() + half.log(), has_rows

    def _along_rows(self, value: Tensor) -> Tensor:
        """(B · K, …) once for each row of the data, (B · K, *rows), where the block reads it by its index."""
        return indexed.full(value, self.plate, True) if self.indexed and self.mode == "row" else value

    def _prior(self, inner: Frame) -> Tensor:
        """log p(z) of every value, with the plate's axis where the arguments differ along it."""
        latent = self.latent
        if isinstance(latent, ArrowSite):
            return latent.module.log_prob(latent.argument(inner), inner[self.name].value)
        aligned = latent.arguments.align(inner, latent.event, latent.groups(inner))
        z = inner[self.name]
        value = z.value.reshape(*z.value.shape, *(1,) * (len(aligned.batch) - z.rank))
        terms = latent.terms(inner, Cell(value, True), aligned, None).value
        if self.mode == "batch" or terms.ndim == 1:
            return terms.flatten(1).sum(-1) if terms.ndim > 1 else terms
        while terms.ndim > len(self.plate) + 1 and self.plate[:1] != (1,) == terms.shape[1:2]:
            terms = terms.squeeze(1)  # arguments as drawn: the one row of a program that reads none
        if terms.ndim > len(self.plate) + 1:
            found = f"arguments of shape {tuple(terms.shape[1:])}"
            raise latent.where.misfit(f"one draw for each of {self._elements}", found)
        if self.mode == "group":
            try:
                return terms.expand(-1, *self.plate).flatten(1)
            except RuntimeError:
                found = f"arguments of shape {tuple(terms.shape[1:])}"
                raise latent.where.misfit(f"one draw for each of {self._elements}", found) from None
        return terms

    @property
    def _elements(self) -> str:
        """`3 × 4 rows`: what the latent has a value for each of."""
        return f"{' × '.join(map(str, self.plate))} {'groups' if self.mode == 'group' else 'rows'}"

    def _term(self, step: Any, inner: Frame, latents_only: bool) -> Terms | None:
        if isinstance(step, Marginalize):
            return self._placed(step.evaluate(inner, latents_only=latents_only), step.latent, inner)
        if isinstance(step, ChainSite):
            given = inner.supplied(step.name)
            assert given is not None
            return self._placed(step.given_terms(given, inner), step, inner)
        if isinstance(step, FamilySite):
            given = inner.supplied(step.name)
            assert given is not None
            groups = step.groups(inner)
            aligned = step.arguments.align(inner, step.event, groups)
            if asked() is not None:
                step.arguments.check(aligned)
            value = step.fitted(inner, given, aligned, groups, self.plate if self.mode == "row" else ())
            inner.bound[step.name] = value
            return self._placed(step.terms(inner, value, aligned, groups), step, inner)
        if isinstance(step, ArrowSite) and step.plate:
            return self._placed(step.terms(inner), step, inner)
        step.run(inner)
        name = getattr(step, "name", None)
        record = inner.sites.get(name) if name is not None else None
        if record is None or record.log_prob is None:
            return None
        cell = inner.bound[record.name] if record.kind == "score" else Cell(record.log_prob, True)
        return self._fold(Terms(cell.value, cell.rows))

    def _placed(self, terms: Terms, site: ArrowSite | FamilySite, inner: Frame) -> Terms:
        """Terms per data row added up by group."""
        places = self.places.get(site.name, ())
        if places:
            value = terms.value.movedim(
                [at + terms.rows for at in places], [at + terms.rows for at in range(len(places))]
            )
            terms = Terms(value, terms.rows)
        if self.mode != "group":
            return self._fold(terms)
        (size,) = self.axes
        via = site.via(inner) if isinstance(site, FamilySite) and site.via is not None else None
        value = terms.value if terms.rows else terms.value.expand(inner.rows, *terms.value.shape)
        if via is None:
            if value.shape[1 : 1 + len(self.plate)] == self.plate:
                return self._fold(Terms(value.flatten(1, len(self.plate)), True))
            raise RuntimeProblem(
                f"site `{site.name}` stands in `marginalize {self.name}` over groups: say each row's group by `via=`",
                site=site.name,
            )
        assert isinstance(site, FamilySite)
        site.arguments.check_groups(inner.program, via.value, size)
        value = value.flatten(2).sum(-1) if value.ndim > 2 else value
        index = (via.value.long() if via.rows else via.value.long().expand(inner.rows, -1)).expand(value.shape)
        return Terms(value.new_zeros(inner.rows, size).scatter_add(1, index, value), True)

    def _fold(self, terms: Terms) -> Terms:
        """Everything but the rows and the axes of the latent summed."""
        value = terms.value
        keep = int(terms.rows) + len(self.axes)
        if value.ndim > keep:
            value = value.flatten(keep).sum(-1)
        return Terms(value, terms.rows)

    def _add(self, total: Tensor, term: Terms, step: Any) -> Tensor:
        """A step's terms to those before it, element by element of the latent.

        What depends on no element counts in each, but only the latent's own draws and scores may be so.
        """
        value = term.value if term.rows else term.value.expand(total.shape[0], *term.value.shape)
        alone = value.ndim == 1 and math.prod(self.axes) != 1
        if alone and not isinstance(step, ArrowSite | FamilySite | Marginalize):
            return total + value.reshape(-1, *(1,) * (total.ndim - 1))
        fits = value.ndim == total.ndim and all(t in (1, n) for t, n in zip(total.shape, value.shape, strict=True))
        if alone or not (fits or total.ndim == 1):
            where = step.latent.where if isinstance(step, Marginalize) else step.where
            wanted = self._elements if alone else f"{' × '.join(map(str, total.shape[1:]))} rows"
            found = "one for all of them" if alone else " × ".join(map(str, value.shape[1:]))
            raise where.misfit(f"a value for each of the {wanted} that `{self.name}` has one for", found)
        return total.reshape(-1, *(1,) * (value.ndim - 1)) + value if total.ndim == 1 else total + value


def _scores(step: Any) -> bool:
    """True where a step's term is the data's or a score, not a latent's."""
    return not isinstance(step, Marginalize) and getattr(step, "kind", "score") != "sample"


def _as_rows(values: Tensor, has_rows: bool, rows: int) -> Tensor:
    """Values (rows?, …, K) as rows of their own, (B · K, …), the values fastest."""
    each = values if has_rows else values.expand(rows, *values.shape)
    return each.movedim(-1, 1).flatten(0, 1)


def _cardinality(site: FamilySite, parameters: tuple[Tensor, ...]) -> int:
    count = site.family.categories
    if count is None:
        raise NoDensity(
            f"site `{site.name}`: {site.family.name} has infinitely many values and cannot be summed out",
            site=site.name,
        )
    return count(*parameters)
