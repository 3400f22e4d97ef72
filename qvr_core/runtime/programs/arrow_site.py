"""Sites drawn from a named arrow: one record from one draw or one exact density."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.runtime.arrows.lifting import LiftArrow
from qvr_core.runtime.arrows.terms_in_parts import given_inside
from qvr_core.runtime.families import standard_noise
from qvr_core.runtime.programs.arithmetic import Parts, compile_expr
from qvr_core.runtime.programs.execution import SiteInfo, SiteKind, SiteRecord
from qvr_core.runtime.programs.frame import Frame, as_tensor
from qvr_core.runtime.programs.plated_draws import argument_along, as_elements, given_along, is_number, repeated_along
from qvr_core.runtime.programs.site_shapes import plate_shape
from qvr_core.runtime.programs.site_terms import Terms, fitted_option
from qvr_core.runtime.values.arrow import ArrowModule, Noise, NoiseSpec, Term, Value, repeat_rows
from qvr_core.runtime.values.cells import Cell, as_argument, with_rows
from qvr_core.runtime.values.errors import NoDensity
from qvr_core.runtime.values.layout import Where, blocks, dummy, from_parts, parts, prepare, regroup
from qvr_core.runtime.values.padding import valid_positions
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model.arrows import Density
from qvr_core.semantics.types.model.steps import ArrowDraw, Site
from qvr_core.semantics.types.spaces import Space


class ArrowSite:
    """`sample v <- f(args)` or `observe v <- f(args)`."""

    def __init__(self, site: Site, kind: SiteKind, program: str, source: Parts) -> None:
        assert isinstance(site.draw, ArrowDraw)
        self.site = site
        self.kind: SiteKind = kind
        self.name = site.name
        arrow = site.draw.arrow
        self.arrow = source.arrow(arrow)
        self.plate = plate_shape(site)
        self.own = site.draw.own
        self.domain, self.codomain = arrow.domain.space, arrow.codomain.space
        depth = 1 + len(self.plate)
        self.module = LiftArrow(self.arrow, arrow.domain, arrow.codomain, depth) if self.plate else self.arrow
        self.where = Where(program, f"site `{site.name}`", site.name)
        args = site.draw.args
        self.args = None if args is None else [compile_expr(arg, source) for arg in args]
        self.weight = None if site.weight is None else compile_expr(site.weight, source)
        self.mask = None if site.mask is None else compile_expr(site.mask, source)
        self.at = None if site.at is None else compile_expr(site.at, source)
        self.lift = by_position(self.module, self.codomain)
        self.discrete = self.module.sampled and all(block.finite for block in blocks(self.codomain))
        self.info = site_info(self)
        self.observes = [name for name, word in self.module.terms.items() if word == "observe"]

    def with_module(self, module: ArrowModule) -> ArrowSite:
        """This site drawing from another arrow of the same type."""
        changed = copy.copy(self)
        changed.module = module
        changed.arrow = module.body[0] if self.plate and isinstance(module, LiftArrow) else module
        changed.lift = by_position(module, self.codomain)
        changed.info = site_info(changed)
        return changed

    def argument(self, frame: Frame) -> Value:
        """The arrow's argument on this frame, in normal form."""
        if self.args is None:
            # a program that ignores its input needs no more than the number of rows
            x = dummy(self.domain, (frame.rows,)) if frame.x is None else frame.x
            x = repeated_along(x, self.plate) if self.plate else x
        elif self.plate:
            x = argument_along([arg(frame) for arg in self.args], self.own, self.domain, frame.rows, self.plate)
        else:
            x = as_argument([arg(frame) for arg in self.args], self.domain, frame.rows)
        return x if self.at is None else self._at(x, self._positions(frame))

    def _positions(self, frame: Frame) -> Tensor:
        """The selected positions of each row's sequence, int64 (B, P)."""
        assert self.at is not None
        value = with_rows(self.at(frame), frame.rows)
        if value.ndim != 2 or value.is_floating_point() or value.dtype == arrays.bool:
            raise self.where.misfit(
                f"positions ({frame.rows}, P) in `at`", f"{str(value.dtype)[6:]} {tuple(value.shape)}"
            )
        return value

    def _at(self, value: Value, positions: Tensor) -> Value:
        """The elements of sequences (B, L, …) at these positions, (B, P, …)."""
        length = parts(value)[0].shape[1]
        if positions.numel() and (int(positions.min()) < 0 or int(positions.max()) >= length):
            found = int(positions.max()) if int(positions.max()) >= length else int(positions.min())
            raise self.where.misfit(f"positions 0 … {length - 1} in `at`", f"{found}")
        row = arrays.arange(positions.shape[0], device=positions.device).unsqueeze(1)
        return from_parts([part[row, positions] for part in parts(value)])

    def run(self, frame: Frame) -> None:
        """Draw or score the site, bind what it binds, and leave a record."""
        request = frame.request
        given = self._given(frame)
        x = self.argument(frame)
        with self._inside(frame):
            record, terms = self._recorded(x, given, frame)
        self._bind(record.value, frame)
        if given is not None and request.redraw and self.kind == "observe" and self.module.sampled:
            record, _ = self._drawn(x, frame)
        frame.sites[self.name] = record
        for inner, term in terms.items():
            name = f"{self.name}.{inner}"
            frame.sites[name] = _counted(name, self.module.terms[inner], term)

    def _recorded(self, x: Value, given: Cell | None, frame: Frame) -> tuple[SiteRecord, Mapping[str, Term]]:
        if not self.module.sampled:
            return self._plain(x, given), {}
        return self._drawn(x, frame) if given is None else self._scored(x, given, frame)

    def _inside(self, frame: Frame) -> AbstractContextManager[None]:
        """What programs in the arrow observe: their data by bare name; in a program that is an arrow itself as it was
        told, under the name of this site."""
        if not self.observes:
            return nullcontext()
        found: dict[str, Tensor] = {}
        for inner in self.observes:
            cell = frame.supplied(f"{self.name}.{inner}") or frame.supplied(inner.rpartition(".")[2])
            if cell is not None:
                found[inner] = with_rows(cell, frame.rows)
        return given_inside(found, redraw=frame.request.redraw)

    def _given(self, frame: Frame) -> Cell | None:
        request = frame.request
        inside = frame.parent is not None
        given = None if inside else request.values.get(self.name)
        if given is None and (inside or self.kind == "observe"):
            return frame.supplied(self.name)
        if given is None and self.kind != "predict":
            given = request.observations.get(self.name)
        return None if given is None else Cell(given, False)

    def _plain(self, x: Value, given: Cell | None) -> SiteRecord:
        if given is not None:
            raise NoDensity(
                f"{self.where.program}: site `{self.name}` comes from a deterministic arrow: it has no density and "
                "cannot be observed",
                site=self.name,
            )
        return self._record(False, self.module(x), None, None, {})

    def _drawn(self, x: Value, frame: Frame) -> tuple[SiteRecord, Mapping[str, Term]]:
        request = frame.request
        noise = request.noise_of(self.name, lambda: self.module.noise_specs(x))
        wanted = request.wants(self.name)
        drawn = self.module.draw(x, noise, generator=request.generator, want_log_prob=wanted)
        record = self._record(False, drawn.value, drawn.log_prob, drawn.log_innovations, drawn.noise)
        record.log_noise = drawn.log_noise
        if self.kind == "sample":
            record.log_discrete = drawn.score_log_prob
        return record, drawn.terms

    def _scored(self, x: Value, given: Cell, frame: Frame) -> tuple[SiteRecord, Mapping[str, Term]]:
        if not self.module.has_density:
            raise NoDensity(
                f"{self.where.program}: site `{self.name}` ends in a deterministic arrow after its last draw: it has "
                "no density and cannot be observed",
                site=self.name,
            )
        y = self.prepared(given, frame.rows)
        if self.at is not None and parts(y)[0].shape[1] != parts(x)[0].shape[1]:
            # values for the whole sequence: those at the selected positions count
            y = self._at(y, self._positions(frame))
        request = frame.request
        given_noise = request.noise_of(self.name, lambda: self.module.noise_specs(x))
        noise = self.innovations(x, given_noise, request.generator)
        log_prob = log_innovations = None
        terms: Mapping[str, Term] = {}
        # the elements of what is observed are asked for: the noise that a latent came from need not be known
        if request.wanted is not False and not (request.pointwise and self.kind == "sample"):
            log_prob, log_innovations, terms = self._densities(x, y, noise or None, frame)
        elif request.redraw and self.observes:
            terms = self.module.conditioned(x, y, noise or None).terms
        record = self._record(True, y, log_prob, log_innovations, dict(noise))
        if request.pointwise and self.kind == "observe":
            record.pointwise = self._pointwise(x, y, noise or None, frame)
        if request.tables:
            self._add_table(record, x, y, noise or None, frame)
        return record, terms

    def prepared(self, given: Cell, rows: int) -> Value:
        """A value from outside, checked and in normal form."""
        if self.plate:
            return given_along(self.codomain, given, rows, self.plate, self.where)
        y = prepare(self.codomain, as_tensor(given.value), self.where)
        if parts(y)[0].shape[0] != rows:
            raise self.where.misfit(f"{rows} rows as in the input", f"{parts(y)[0].shape[0]}")
        return y

    def innovations(self, x: Value, given: Noise | None = None, generator: arrays.Generator | None = None) -> Noise:
        """The innovations on `x` by path, drawn where they are not given."""
        return innovations_of(self.module, x, given, generator)

    def _densities(
        self, x: Value, y: Value, noise: Noise | None, frame: Frame
    ) -> tuple[Tensor, Tensor | None, Mapping[str, Term]]:
        """log p(y | x, u) and log p(u), (B,), masked and weighted by row or by position; what is scored inside, which
        stands beside neither."""
        by_row, per_position = self._factors(y, frame)
        terms: Mapping[str, Term] = {}
        if per_position and self.lift is not None:
            each, inner = self.lift.densities_by_position(x, y, noise)
            for factor in per_position:
                each = each * factor if factor.is_floating_point() else arrays.where(factor.bool(), each, 0.0)
            log_prob, log_innovations = each.flatten(1).sum(1), None if inner is None else inner.flatten(1).sum(1)
        else:
            drawn = self.module.conditioned(x, y, noise)
            assert drawn.log_prob is not None
            log_prob, log_innovations, terms = drawn.log_prob, drawn.log_innovations, drawn.terms
        for factor in by_row:
            log_prob = log_prob * factor.to(log_prob.dtype)
        return log_prob, log_innovations, terms

    def terms(self, frame: Frame) -> Terms:
        """log p(y | x, u) of each element of a plate, (B, *plate), of a value that is given; binds it."""
        given = self._given(frame)
        assert given is not None
        x = self.argument(frame)
        y = self.prepared(given, frame.rows)
        self._bind(as_elements(y, self.codomain), frame)
        noise = self.innovations(x, frame.request.noise_of(self.name, lambda: self.module.noise_specs(x)))
        return Terms(self._pointwise(x, y, noise or None, frame, absent=0.0), True)

    def _pointwise(self, x: Value, y: Value, noise: Noise | None, frame: Frame, *, absent: float = math.nan) -> Tensor:
        """log p(y | x, u) of each row, (B,), or of each position where the arrow works by position, (B, L); `absent`
        where one does not count."""
        by_row, per_position = self._factors(y, frame)
        if self.lift is None:
            each = self.module.densities(x, y, noise)[0]
        else:
            each = self.lift.densities_by_position(x, y, noise)[0]
        by_row = [factor.reshape(-1, *(1,) * (each.ndim - 1)) for factor in by_row]
        for factor in (*by_row, *per_position):
            each = each * factor if factor.is_floating_point() else arrays.where(factor.bool(), each, absent)
        return each

    def _factors(self, y: Value, frame: Frame) -> tuple[list[Tensor], list[Tensor]]:
        """What masks, weights and padding multiply the terms with: by row, (B,) or (1,), and by position, (B, L)."""
        if self.plate:
            return [], self._along_plate(frame)
        found = [] if self.mask is None else [self.mask(frame).value]
        found += [] if self.weight is None else [_as_weight(self.weight(frame).value)]
        if self.lift is None:
            positions = None
        else:
            rows, length = parts(y)[0].shape[:2]
            positions = (rows, length)
            valid = valid_positions(rows, length) if self.at is None else None
            found += [] if valid is None else [valid]
        by_row = [value for value in found if tuple(value.shape) != positions]
        for value in by_row:
            if value.numel() not in (1, frame.rows):
                wanted = f"a mask or weight for {frame.rows} rows" + (f" or of shape {positions}" if positions else "")
                raise self.where.misfit(wanted, f"shape {tuple(value.shape)}")
        return [value.reshape(-1) for value in by_row], [value for value in found if tuple(value.shape) == positions]

    def _along_plate(self, frame: Frame) -> list[Tensor]:
        """What masks and weights multiply the terms of a plate's elements with, (1 or B, *plate)."""
        elements = Cell(arrays.zeros(()).expand(frame.rows, *self.plate), True)
        found: list[Tensor] = []
        for option, made in ((self.mask, _as_mask), (self.weight, _as_weight)):
            if option is not None:
                cell = fitted_option(option, "a mask or weight", frame, elements, None, self.where)
                found.append(made(cell.value))
        return found

    def _add_table(self, record: SiteRecord, x: Value, y: Value, noise: Noise | None, frame: Frame) -> None:
        """Leave the log-probabilities of all values in the record, and which positions count."""
        body = self.module if self.lift is None else self.lift.body[0]
        if not body.tabular:
            return
        if self.lift is not None:
            record.log_table = self.lift.log_table_by_position(x, noise)
            masks = [factor.bool() for factor in self._factors(y, frame)[1] if not factor.is_floating_point()]
            record.counted = arrays.stack(masks).all(0) if masks else None
        else:
            record.log_table = self.module.log_table(x, noise)[0]

    def _record(
        self,
        observed: bool,
        value: Value,
        log_prob: Tensor | None,
        log_innovations: Tensor | None,
        noise: dict[str, Tensor],
    ) -> SiteRecord:
        value = as_elements(value, self.codomain) if self.plate else value
        return SiteRecord(self.name, self.kind, observed, value, log_prob, log_innovations, noise, self.site.density)

    def _bind(self, value: Value | None, frame: Frame) -> None:
        bound = self.site.bound
        if len(bound) <= 1:
            frame.bound[bound[0][0] if bound else self.name] = Cell(value, True)
            return
        assert value is not None
        cut = regroup(value, [named.space for _, named in bound])
        if self.plate:
            cut = [as_elements(part, named.space) for part, (_, named) in zip(cut, bound, strict=True)]
        frame.bound.update({name: Cell(part, True) for (name, _), part in zip(bound, cut, strict=True)})


def _counted(name: str, word: str, term: Term) -> SiteRecord:
    """What a program inside the arrow scores or observes, as a site of the whole."""
    kind: SiteKind = "observe" if word == "observe" else "score"
    density = Density("exact" if word == "observe" else "deterministic")
    return SiteRecord(name, kind, term.given, term.value, term.log_prob, None, {}, density)


def innovations_of(
    module: ArrowModule, x: Value, given: Noise | None = None, generator: arrays.Generator | None = None
) -> Noise:
    """The innovations of an arrow on `x` by path, drawn where they are not given."""
    specs = [spec for spec in module.noise_specs(x) if not spec.final]
    if not specs:
        return {}
    given = given or {}
    if any(spec.base not in ("normal", "uniform") and spec.path not in given for spec in specs):
        drawn = module.draw(x, given, generator=generator, want_log_prob=False).noise
        return {spec.path: drawn[spec.path] for spec in specs}
    like = _float_like(module, x)
    return {
        spec.path: given[spec.path] if spec.path in given else standard_noise(spec.base, spec.shape, like, generator)
        for spec in specs
    }


class SiteArrow(nn.Module):
    """The arrow of a site as users meet it: `model._step_h`, `model.step("h")`."""

    def __init__(self, site: ArrowSite) -> None:
        super().__init__()
        self.module = site.arrow
        self._site = site

    def _value(self, x: object) -> Value:
        where = Where(self._site.where.program, f"the argument of site `{self._site.name}`", self._site.name)
        return prepare(self._site.domain, x, where)

    def rsample(
        self, x: object, sample_shape: tuple[int, ...] = (), generator: arrays.Generator | None = None
    ) -> Value:
        """A reparameterised draw on `x`: (B, …), or (*sample_shape, B, …)."""
        value = repeat_rows(self._value(x), math.prod(sample_shape))
        drawn = self.module.draw(value, generator=generator, want_log_prob=False).value
        if not sample_shape:
            return drawn
        return from_parts([part.reshape(*sample_shape, -1, *part.shape[1:]) for part in parts(drawn)])

    def innovations(self, x: object, generator: arrays.Generator | None = None) -> dict[str, Tensor]:
        """Fresh innovations by path of the draw; empty where the density needs none."""
        return dict(innovations_of(self.module, self._value(x), None, generator))

    def log_prob(self, x: object, y: object, innovations: Noise | None = None) -> Tensor:
        """log p(y | x, innovations), (B,)."""
        return self.module.log_prob(self._value(x), prepare(self._site.codomain, y, self._site.where), innovations)

    def forward(self, x: object) -> Value:
        """The value of a deterministic arrow; a draw of a sampled one."""
        return self.rsample(x)


def by_position(module: ArrowModule, codomain: Space) -> LiftArrow | None:
    """An arrow as one that works at every position of a sequence by itself; None where it does not."""
    if module.pointwise and any(block.sequence for block in blocks(codomain)):
        return LiftArrow(module, module.domain, module.codomain)
    return module if isinstance(module, LiftArrow) else None


def _as_mask(value: Tensor) -> Tensor:
    return value.bool()


def _as_weight(value: Tensor) -> Tensor:
    """Whole numbers that weigh, not those of a mask."""
    return value if value.is_floating_point() else value.to(precision())


def _float_like(module: nn.Module, x: Value) -> Tensor:
    first = parts(x)[0]
    if first.is_floating_point():
        return first
    return next(module.parameters(), arrays.zeros(0, device=first.device))


# ---------------------------------------------------------------- what is known before a value is seen


def site_info(site: ArrowSite) -> SiteInfo:
    """Draws and shapes of an arrow site, before it has run."""
    specs = _draws(site) if site.module.sampled else ()
    return SiteInfo(
        site.name,
        site.kind,
        site.kind == "observe",
        True,
        _shape(site),
        "discrete" if site.discrete else "real",
        specs,
        site.discrete,
        site.site.density,
    )


def _shape(site: ArrowSite) -> tuple[int, ...] | None:
    own = event_shape(site.codomain)
    if not site.plate or own is None:
        return own
    return site.plate if is_number(site.codomain) else (*site.plate, *own)


def _draws(site: ArrowSite) -> tuple[NoiseSpec, ...]:
    """All draws with their shapes without rows; an axis that follows the length of a sequence counts as one."""
    if not any(block.sequence for block in blocks(site.domain)):
        lead = (1, *site.plate)
        return tuple(_without_rows(spec, spec) for spec in site.module.noise_specs(dummy(site.domain, lead)))
    short, long = (site.module.noise_specs(dummy(site.domain, (1, length))) for length in (2, 3))
    return tuple(_without_rows(one, other) for one, other in zip(short, long, strict=True))


def _without_rows(one: NoiseSpec, other: NoiseSpec) -> NoiseSpec:
    shape = tuple(a if a == b else 1 for a, b in zip(one.shape[1:], other.shape[1:], strict=True))
    return NoiseSpec(one.path, shape, one.base, one.final)


def event_shape(space: Space) -> tuple[int, ...] | None:
    """The shape of a value without rows; None where it has a length or several tensors."""
    if len(blocks(space)) != 1 or blocks(space)[0].sequence:
        return None
    return () if blocks(space)[0].finite else (blocks(space)[0].size,)
