"""Sites drawn from a family with arguments: plates, likelihoods over data, grouped and selected rows.

A draw has the joint batch shape of its arguments, which an ascription may widen
(docs/reference.md#plates-without-an-index).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.families.bijectors import Support, constrain, restored, unconstrained_shape
from qvr_core.runtime.families.on_spaces.ordered import ordered
from qvr_core.runtime.families.random_draws import open_uniforms
from qvr_core.runtime.families.soundness import asked, doubtful
from qvr_core.runtime.programs.arguments import Aligned, Arguments, joint_shape
from qvr_core.runtime.programs.arithmetic import Evaluate, Parts, compile_expr
from qvr_core.runtime.programs.censoring_and_truncation import Limits
from qvr_core.runtime.programs.declared.families import runtime_family
from qvr_core.runtime.programs.execution import SiteInfo, SiteKind, SiteRecord
from qvr_core.runtime.programs.frame import Frame, as_tensor
from qvr_core.runtime.programs.missing.stand_ins import StandIns
from qvr_core.runtime.programs.site_shapes import (
    entry_batch,
    event_free,
    event_shape,
    own_batch,
    places,
    plate_shape,
    sizes,
)
from qvr_core.runtime.programs.site_terms import Terms, fitted_option
from qvr_core.runtime.values.arrow import NoiseSpec
from qvr_core.runtime.values.cells import Cell, as_one, lead
from qvr_core.runtime.values.errors import NoDensity, OtherLength
from qvr_core.runtime.values.indices import recording
from qvr_core.runtime.values.layout import Where
from qvr_core.runtime.values.padding import valid_positions
from qvr_core.runtime.values.precision import precision
from qvr_core.runtime.values.whole_numbers import drawn_counts
from qvr_core.semantics.types.model.expressions import Data
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import Constrained, Seq


class FamilySite:
    """`sample v : S <- Family(args)` or `observe v : S <- Family(args)`."""

    def __init__(self, site: Site, kind: SiteKind, program: str, parts: Parts) -> None:
        draw = site.draw
        assert isinstance(draw, FamilyDraw)
        self.site = site
        self.kind: SiteKind = kind
        self.name = site.name
        space = site.bound[0][1].space if site.bound else None
        family = self.family = runtime_family(draw, parts)
        if isinstance(space, Constrained) and space.kind == "Ordered":
            placed = places(draw, family, space)
            self.family = ordered(family, *sizes(space), places=placed)
            family = self.family if placed else family
        self.facts = self.family.facts
        self.where = Where(program, f"site `{site.name}`", site.name)
        self.arguments = Arguments(draw, family, site, self.where, parts)
        if isinstance(site.mask, Data) or site.lengths is not None or site.missing is not None:
            self.arguments.stand_ins = StandIns(site, [value for _, value in draw.args], self.counted)
        self.via, self.at, self.mask, self.weight = (
            None if option is None else compile_expr(option, parts)
            for option in (site.via, site.at, site.mask, site.weight)
        )
        self.limits = Limits(site.limits, self.family, self.where, parts) if site.limits else None
        self.truncated = self.limits is not None and bool(self.limits.bounds)
        self.plate = plate_shape(site)
        self.space = space
        self.event = event_shape(self.facts.event, site, self.space)
        self.discrete = self.facts.discrete
        # draws without a reparameterised gradient carry the score function's
        self.by_score = not self.family.reparameterised
        self._literal_support: dict[arrays.dtype, Support] = {}
        self._sound: Tensor | None = None
        self._plate_name = "" if (named := site.element or site.plate) is None else named.written
        self._noted = False
        self.info = self._info()

    def _info(self) -> SiteInfo:
        batch = self._widened(()) if self.via is None and self.at is None else None
        batch = own_batch(self.site, self.facts) if batch == () else batch
        shape = None if self.event is None or batch is None else (*batch, *self.event)
        spec = NoiseSpec("", shape or (), "uniform" if self.truncated else self.family.noise, True)
        kind = "discrete" if self.discrete else self.family.support(()).kind
        made = (self.name, self.kind, self.kind == "observe", False, shape, kind, (spec,), self.discrete)
        return SiteInfo(*made, self.site.density, self.facts.improper, self.facts.drawn)

    def prepare(self, frame: Frame) -> None:
        """Before any step runs: note what is lacking of the value that was given."""

    def there(self, given: Cell, frame: Frame) -> Tensor | None:
        """Which elements of a given value exist, bool (*sizes, 1, …); None where all do."""

    def counted(self, frame: Frame) -> Tensor | None:
        """Which elements count as far as data say it, bool (*sizes); None where all do."""
        cell = self.mask(frame) if self.mask is not None and isinstance(self.site.mask, Data) else None
        return None if cell is None or cell.rows or cell.value.shape != self.plate else cell.value.bool()

    def run(self, frame: Frame) -> None:
        """Draw or score the site, bind it, and leave a record."""
        groups = self.groups(frame)
        aligned = self.arguments.align(frame, self.event, groups)
        if asked() is not None:
            self.arguments.check(aligned)
        given = self._given(frame)
        record = self._drawn(frame, aligned, groups) if given is None else self._scored(frame, aligned, given, groups)
        if given is not None and frame.request.redraw and self.kind == "observe":
            read = frame.bound[self.name]
            record = self._drawn(frame, aligned, groups)
            frame.bound[self.name] = read
        frame.sites[self.name] = record

    def _given(self, frame: Frame) -> Cell | None:
        request = frame.request
        value: Any = request.values.get(self.name)
        if value is None and self.kind == "observe":
            return frame.supplied(self.name)
        if value is None and self.kind != "predict":
            value = request.observations.get(self.name)
        if value is None:
            return None
        tensor = as_tensor(value)
        rank = None if self.info.event is None else len(self.info.event)
        rows = tensor.ndim > 0 and tensor.shape[0] == frame.rows if rank is None else tensor.ndim > rank
        return Cell(tensor if rows else tensor.unsqueeze(0).expand(frame.rows, *tensor.shape), True)

    def groups(self, frame: Frame) -> Cell | None:
        """What `via` or `at` says of the rows, as whole numbers; a mask in `at` selects its rows."""
        for option in (self.via, self.at):
            if option is not None:
                cell = option(frame)
                if cell.value.dtype == arrays.bool:
                    return Cell(cell.value.nonzero().squeeze(-1), False)
                self.arguments.check_groups.whole(frame.program, cell.value)
                return Cell(cell.value.long(), cell.rows)
        return None

    # ------------------------------------------------------------ draws

    def _target(self, batch: tuple[int, ...], groups: Cell | None) -> tuple[int, ...]:
        """The batch shape of a draw: what the arguments have, widened by the ascription."""
        if groups is not None:
            length = tuple(groups.value.shape[groups.rows :])
            return batch if batch[: len(length)] == length else (*length, *batch)
        return self._widened(batch)

    def _widened(self, batch: tuple[int, ...]) -> tuple[int, ...]:
        site = self.site
        if site.element is not None and event_free(self.facts, self.space):
            batch = entry_batch(site, batch)
        if site.each_row:
            return self.plate if all(size == 1 for size in batch) else batch
        wide = self.plate
        if batch[: len(wide)] == wide:
            return batch
        if (
            batch
            and len(batch) < len(wide)
            and all(b in (1, w) for b, w in zip(batch, wide[-len(batch) :], strict=True))
        ):
            # over the last of several plates
            return wide
        # one entry per plate element, or the same for all
        aligned = len(batch) >= len(wide) and all(b in (1, w) for b, w in zip(batch, wide, strict=False))
        if not aligned and len(batch) >= len(wide) and self.kind == "observe" and self.arguments.by_data:
            return batch  # the data have another number of rows than the plate: as many are drawn
        return (*wide, *batch[len(wide) :]) if aligned else (*wide, *batch)

    def _drawn(self, frame: Frame, aligned: Aligned, groups: Cell | None) -> SiteRecord:
        request = frame.request
        batch = self._limited(self._target(aligned.batch, groups), frame)
        parameters = self.arguments.canonical(aligned, len(batch))
        given = request.noise_of(self.name, lambda: self.info.draws)
        noise = None if given is None else given.get("")
        free = request.unconstrained.get(self.name)
        log_jacobian = None
        density = None
        if free is not None:
            value, log_jacobian, density = self._moved(frame, free, parameters)
            noise = None
        else:
            value, noise = self._fresh(frame, noise, batch, parameters, groups)
        if self.discrete:
            value = drawn_counts(value, self.name)
        record = self._record(False, value, {} if noise is None else {"": noise})
        record.log_jacobian = log_jacobian
        frame.bound[self.name] = Cell(value, True)
        by_score = self.by_score and free is None
        if request.wants(self.name) or (request.wanted and (by_score or free is not None)):
            if density is None:
                density, _ = self._log_prob(frame, Cell(value, True), parameters, groups, drawn=True)
            terms = self.weighted(Terms(density, True), frame, groups)
            record.log_prob = terms.per_row(frame.rows)
            record.log_discrete = record.log_prob if by_score else None
        return record

    def _limited(self, batch: tuple[int, ...], frame: Frame) -> tuple[int, ...]:
        """The batch shape of a draw, as wide as the bounds and censoring of its elements."""
        if self.limits is None or self.at is not None:
            return batch
        return joint_shape([batch, *self.limits.shapes(frame, sized=bool(self.plate))])

    def _fresh(
        self,
        frame: Frame,
        noise: Tensor | None,
        batch: tuple[int, ...],
        parameters: tuple[Tensor, ...],
        groups: Cell | None,
    ) -> tuple[Tensor, Tensor]:
        """A value and its noise; that of a truncated site is uniform."""
        generator = frame.request.generator
        if self.limits is not None and self.limits.bounds:
            if noise is None:
                noise = open_uniforms((frame.rows, *batch), floating(parameters), generator)
            given = self.fitted_limits(frame, Cell(noise, True), groups, self.limits.bounds)
            return self.limits.draw(noise, parameters, {key: cell.value for key, cell in given.items()}), noise
        if noise is None:
            shape = (frame.rows, *batch, *self._noise_event(parameters))
            noise = self.family.fresh_noise(shape, generator, parameters)
        return self.family.value_of(noise, parameters), noise

    def _moved(
        self, frame: Frame, free: Tensor, parameters: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The value of unconstrained numbers, log |∂value/∂free| (B,), and the density where it is known."""
        how = self.family.standardised if self.site.noncentred else None
        if how is None:
            return *constrain(free, self._support(parameters)), None
        made = restored(free, how, self.family.log_prob, parameters)
        kind = self.family.support(()).kind
        if unconstrained_shape(kind, tuple(made.value.shape)) != tuple(free.shape):
            raise self.where.misfit(f"standardised values {tuple(made.value.shape)}", f"{tuple(free.shape)}")
        return made.value, made.log_jacobian.reshape(len(free), -1).sum(-1), made.log_density

    def _support(self, parameters: tuple[Tensor, ...]) -> Support:
        """Where the draws live; bounds that literal arguments give are plain numbers, known once and for all."""
        if not self.arguments.literal:
            return self.family.support(parameters)
        made = self._literal_support.get(precision())
        if made is None:
            found = self.family.support(parameters)
            low, high = (float(end) if is_tensor(end) else end for end in (found.low, found.high))
            made = self._literal_support[precision()] = Support(found.kind, low, high)
        return made

    def own_support(self, frame: Frame) -> Support:
        """The support where it does not depend on what is computed in the program."""
        if self.arguments.literal:
            aligned = self.arguments.align(frame, self.event, None)
            return self._support(self.arguments.canonical(aligned, len(aligned.batch)))
        if self.facts.bounded_by is not None or self.facts.above is not None:
            raise NoDensity(
                f"{self.where.program}: site `{self.name}` is drawn inside `marginalize` between bounds that are "
                "computed; write the bounds as numbers, or use AutoPriorGuide",
                site=self.name,
            )
        return self.family.support(())

    def draw_value(self, frame: Frame, plate: tuple[int, ...]) -> Tensor:
        """A draw for every element of a plate, without a record."""
        aligned = self.arguments.align(frame, self.event, None)
        batch = aligned.batch
        wide = batch if batch[: len(plate)] == plate else (*plate, *batch)
        parameters = self.arguments.canonical(aligned, len(wide))
        shape = (frame.rows, *wide, *self._noise_event(parameters))
        noise = self.family.fresh_noise(shape, frame.request.generator, parameters)
        value = self.family.value_of(noise, parameters)
        return drawn_counts(value, self.name) if self.discrete else value

    def _noise_event(self, parameters: tuple[Tensor, ...]) -> tuple[int, ...]:
        shape = self.family.noise_event(parameters, self.event)
        if shape is None:
            raise self.where.misfit("a size, as in `: CholeskyFactor 3` or `dim=3`", "none")
        return shape

    # ------------------------------------------------------------ densities

    def _scored(self, frame: Frame, aligned: Aligned, given: Cell, groups: Cell | None) -> SiteRecord:
        value = self.fitted(frame, given, aligned, groups)
        record = self._record(True, value.value, {})
        frame.bound[self.name] = value
        if frame.request.wanted is not False:
            record.log_prob = self.terms(frame, value, aligned, groups).per_row(frame.rows)
        if self.kind == "observe" and (frame.request.pointwise or doubtful(record.log_prob)):
            record.pointwise = self.terms(frame, value, aligned, groups, absent=math.nan).by_row(frame.rows)
        return record

    def terms(self, frame: Frame, value: Cell, aligned: Aligned, groups: Cell | None, *, absent: float = 0.0) -> Terms:
        """Elementwise log densities of a fitted value, `absent` for those that do not count."""
        rank = value.rank - self.facts.event
        parameters = self.arguments.canonical(aligned, rank)
        if self.facts.support.categories and self.family.categories is not None:
            self._check_categories(value.value, self.family.categories(*parameters))
        density, rows = self._log_prob(frame, value, parameters, groups)
        terms = Terms(density, value.rows or aligned.rows or rows)
        terms = self._valid(terms, absent) if isinstance(self.space, Seq) else terms
        return self.weighted(terms, frame, groups, absent)

    def _log_prob(
        self, frame: Frame, value: Cell, parameters: tuple[Tensor, ...], groups: Cell | None, *, drawn: bool = False
    ) -> tuple[Tensor, bool]:
        """The elementwise log density and whether censoring or truncation gives it rows; a value that was `drawn` is
        not censored."""
        if self.limits is None:
            return self.family.log_prob(value.value, *parameters), False
        options = self.limits.bounds if drawn or self.name in frame.drawn else self.limits.options
        given = self.fitted_limits(frame, value, groups, options)
        density = self.limits.log_prob(value.value, parameters, {key: cell.value for key, cell in given.items()})
        return density, any(cell.rows for cell in given.values())

    def fitted_limits(
        self, frame: Frame, value: Cell, groups: Cell | None, options: Mapping[str, Evaluate]
    ) -> dict[str, Cell]:
        """What the options say, each fitted to a value."""
        return {k: self._fitted_option(f"`{k}`", option, frame, value, groups) for k, option in options.items()}

    def _valid(self, terms: Terms, absent: float) -> Terms:
        """The terms of a sequence, those of padded positions `absent`."""
        valid = valid_positions(*terms.value.shape[:2]) if terms.rows and terms.value.ndim > 1 else None
        if valid is None:
            return terms
        wide = valid.reshape(*valid.shape, *(1,) * (terms.value.ndim - 2))
        return Terms(arrays.where(wide, terms.value, absent), True)

    def _check_categories(self, value: Tensor, size: int) -> None:
        """Elsewhere a value outside the support has density zero; here torch fails, or reads a fraction as whole."""
        if value is self._sound or recording() or not value.numel():
            return
        wrong = (value < 0) | (value >= size) | (value != value.round() if value.is_floating_point() else False)
        if bool(wrong.any()):
            raise self.where.misfit(f"values 0 … {size - 1}", f"{value[wrong][0].item()}")
        self._sound = value

    def fitted(
        self, frame: Frame, given: Cell, aligned: Aligned, groups: Cell | None, rows_of: tuple[int, ...] = ()
    ) -> Cell:
        """A given value in the shape of the likelihood, checked; `rows_of` is the plate of a summed-out latent that
        has a value for each row."""
        cell, event, batch = as_one(given), self.facts.event, aligned.batch
        value: Tensor = cell.value
        if not self.discrete and not value.is_floating_point():
            value = value.to(precision())
        if event == 2 and value.ndim == cell.rows + 1 and self.event:
            value = arrays.unflatten(value, -1, self.event)
        if groups is not None and not cell.rows and value.shape[:1] == (1,) != groups.value.shape[-1:]:
            value = value[0]  # as drawn: the one row of a program that reads none
        elif not frame.reads_rows and not cell.rows:
            value = self._one_draw(value, aligned.batch, rows_of)
        axis = int(cell.rows)
        if self.at is not None and groups is not None and value.shape[axis] != groups.value.shape[-1]:
            self.arguments.check_groups(frame.program, groups.value, value.shape[axis])
            value = value[:, groups.value] if cell.rows else value[groups.value]
        own = tuple(value.shape[axis : value.ndim - event])
        short = len(batch) - len(own)
        if cell.rows and short > 0 and all(size == 1 for size in batch[:short]):
            value = lead(value, len(batch) + event)
            own = (1,) * short + own
        if isinstance(self.space, Seq) and own == batch[:-1] and batch[-1:] == (1,):
            # one number a position, as a table and a head of a kernel have it
            value, own = value.unsqueeze(-1 - event), (*own, 1)
        self._check_shape(frame, cell.rows, own, aligned, groups)
        return Cell(value, cell.rows)

    def _one_draw(self, value: Tensor, batch: tuple[int, ...], rows_of: tuple[int, ...]) -> Tensor:
        """A value as drawn, with the one row of a program that reads none, as that row.  Rows of data meet rows of
        arguments, so any other axis in front of them is refused."""
        own = tuple(value.shape[: value.ndim - self.facts.event])
        by_element = self.site.elementwise is not None or bool(self.site.indices)
        plate = (self.plate if self.kind == "observe" and by_element else ()) or rows_of
        rank = max(len(plate), len(batch))
        if not plate or len(own) <= rank:
            return value
        if len(own) == rank + 1 and own[0] == 1 != plate[0]:
            return value[0]
        if rows_of or any(size != 1 for size in batch):
            wanted = " × ".join(map(str, plate))
            raise self.where.misfit(
                f"{wanted} values, one per row as its arguments have; for {own[0]} draws of all rows score one at a "
                f"time (`{self.name}[i]`), for {own[0]} rows of several numbers say `: Real …`",
                f"shape {own}",
            )
        return value

    def _check_shape(
        self, frame: Frame, rows: bool, own: tuple[int, ...], aligned: Aligned, groups: Cell | None
    ) -> None:
        batch = aligned.batch
        if groups is not None and own[:1] != tuple(groups.value.shape[-1:]):
            option = "via" if self.via is not None else "at"
            found = f"{own[0]} values" if own else "one value"
            raise self.where.misfit(f"{groups.value.shape[-1]} values, one per row of `{option}`", found)
        if frame.reads_rows and aligned.rows and not rows and own != batch:
            raise self.where.misfit(f"{frame.rows} rows as in the input", f"shape {own}")
        fits = len(batch) <= len(own) and all(b in (1, o) for b, o in zip(reversed(batch), reversed(own), strict=False))
        if not fits:
            raise self.where.misfit(f"values of shape {batch}, as the arguments have", f"shape {own}")
        if self.site.element is not None and event_free(self.facts, self.space) and len(own) > 1:
            wanted = sizes(self.space) if self.space is not None else ()
            numbers = wanted == (1,) and bool(self.plate) and own == self.plate  # one for each element of the indices
            if not numbers and all(size == 1 for size in batch) and own[-len(wanted) :] != wanted:
                raise self.where.misfit(f"rows of {wanted}, as `: {self._plate_name}` says", f"shape {own}")
        plate = self.plate
        plain = self.kind == "observe" and groups is None and self.site.elementwise is not None
        if plain and plate and own[: len(plate)] != plate and not self._noted:
            self._noted = True
            size = " × ".join(map(str, plate))
            warnings.warn(
                f"`{frame.program}`, site `{self.name}`: `: {self._plate_name}` declares {size} rows, and the data has "
                f"{own[0] if own else 1}: all of them count (noted once)",
                OtherLength,
                stacklevel=2,
            )
        wide = self.plate if self.kind == "sample" and not self.site.each_row else ()
        if wide and own[: len(wide)] != wide:
            raise self.where.misfit(f"values of shape {wide}, as the plate has", f"shape {own}")

    def weighted(self, terms: Terms, frame: Frame, groups: Cell | None, absent: float = 0.0) -> Terms:
        """Masked and weighted."""
        for option, masks in ((self.mask, True), (self.weight, False)):
            if option is None:
                continue
            elements = Cell(terms.value, terms.rows)
            factor = self._fitted_option("a mask or weight", option, frame, elements, groups)
            rows = terms.rows or factor.rows
            value = terms.value if terms.rows or not rows else terms.value.expand(frame.rows, *terms.value.shape)
            if masks:
                made = arrays.where(factor.value.bool(), value, arrays.full((), absent, dtype=value.dtype))
            else:
                made = value * factor.value.to(value.dtype)
            terms = Terms(made, rows)
        return terms

    def _fitted_option(self, what: str, option: Evaluate, frame: Frame, elements: Cell, groups: Cell | None) -> Cell:
        return fitted_option(option, what, frame, elements, groups if self.at is not None else None, self.where)

    def _record(self, observed: bool, value: Tensor, noise: dict[str, Tensor]) -> SiteRecord:
        return SiteRecord(self.name, self.kind, observed, value, None, None, noise, self.site.density)


def floating(parameters: tuple[Tensor, ...]) -> Tensor:
    """One of the parameters that is no whole number."""
    return next(parameter for parameter in parameters if parameter.is_floating_point())
