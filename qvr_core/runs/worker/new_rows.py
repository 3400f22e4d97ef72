"""What new rows must hold to be predicted, and which of their observed columns the predictions are given."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.data.needs import Need, Needs
from qvr_core.data.typed.labels import missing
from qvr_core.data.typed.layout import MAIN, Layout
from qvr_core.data.typed.sources import Source, Sources, Table
from qvr_core.runs.prepare.failures import Refused
from qvr_core.semantics.types.data_lets import behind_observed, data_of_lets
from qvr_core.semantics.types.deterministic import reads_of_observed
from qvr_core.semantics.types.model.expressions import Builtin, Data
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel, ObserveModel, Site
from qvr_core.semantics.types.walk import all_steps, operands, sites, until_arrows, values, walk

NO_MATTER = {"right_censored": 0, "left_censored": 0, "interval": math.inf, "mask": 1, "weight": 1}
"""Options that say how an observation counts, and what makes them say nothing of a new row."""


@dataclass(frozen=True)
class NewRows:
    """The needs of a program, and the sources of the rows that it is to predict."""

    program: Program
    needs: Needs
    sources: Sources
    by_guide: frozenset[str] = frozenset()
    """The observed names by which the guide of a fit draws the latents of each row."""

    @cached_property
    def wanted(self) -> Needs:
        """What they must hold: what is observed only where they do, and a step reads it or fills in a part of it; nor
        what only says how observations count."""
        read, given = _read(self.program), self._read_observed - self._drawn_again
        observed = tuple(
            need
            for need in self.needs.observed
            if (need.missing not in ("", "drop", "lengths") and self._held(need))
            or (need.name in given and self._filled(need))
            or need.name in self.by_guide
        )
        data = tuple(need for need in self.needs.data if need.name in read or self._wants(need))
        return replace(self.needs, observed=observed, data=data)

    def _wants(self, need: Need) -> bool:
        """Whether data that no step computes with but lets that are observed are wanted: where they are there."""
        if need.name in self._behind:
            return self._filled(need)
        return not _counts(need) or self._held(need)

    @cached_property
    def _behind(self) -> frozenset[str]:
        """The data that lets are computed from which are observed."""
        known = data_of_lets(self.program)
        return frozenset[str]().union(*(known[name] for name in behind_observed(self.program)))

    @cached_property
    def _read_observed(self) -> frozenset[str]:
        """Observed names that a step reads."""
        return frozenset[str]().union(*reads_of_observed(self.program).values())

    @cached_property
    def _drawn_again(self) -> frozenset[str]:
        """Observed series inside a `marginalize`, which are drawn with the path that is summed out."""
        blocks = (step for step in self.program.steps if isinstance(step, MarginalizeModel))
        found = (site for block in blocks for site in sites(block.body, ObserveModel))
        return frozenset(site.name for site in found if site.chain is not None and _lag(site))

    def check(self) -> None:
        """Raises `Refused` where what the guide reads is not there."""
        for need in self.needs.observed:
            if need.name in self.by_guide and not self._filled(need):
                message = f"`{need.name}` is not in {self._where(need)}, and the guide draws the latents of a row by it"
                fix = f"Give the data a column `{self.sources.column(need.name)}`"
                raise Refused("data", message, site=need.name, fixes=(fix,))

    def notes(self) -> Iterator[str]:
        """What of the observed columns that steps read is not there, or is not used, and what is drawn instead.  Raises
        `Refused` where nothing says how, and where a basis would be another one than in the fit."""
        for step in all_steps(self.program.steps):
            for value in values(step):
                for node in walk(value, until_arrows):
                    if isinstance(node, Builtin) and node.function == "hsgp":
                        message = "`hsgp` makes its basis by the range of its numbers, and that of new rows is another"
                        fix = "Fit with these rows in the table, their outcomes missing, and `[missing=impute]`"
                        raise Refused("data", message, origin=node.origin, fixes=(fix,))
        given = {need.name for need in self.wanted.observed}
        for site in sites(self.program.steps, ObserveModel):
            if site.name not in self._read_observed or site.name in given:
                continue
            if site.of_let:
                absent = data_of_lets(self.program)[site.name] - {need.name for need in self.wanted.data}
                need = next((need for need in self.needs.data if need.name in absent), None)
                if need is None:
                    continue
            else:
                need = next(need for need in self.needs.observed if need.name == site.name)
            where = self._where(need)
            if site.name in self._drawn_again:
                if self._filled(need):
                    yield f"`{site.name}` in {where} is not used: it is drawn anew with the path that is summed out"
            elif site.chain is None or not _lag(site):
                yield f"`{need.name}` is not in {where}: what reads it reads a draw of it"
            elif site.chain.start is not None:
                yield f"`{need.name}` is not in {where}: the series begins anew from its `from`"
            else:
                lag = _lag(site)
                first = "its first element is" if lag == 1 else f"its first {lag} elements are"
                message = f"`{need.name}` is not in {where}, and without a `from` nothing says how {first} drawn"
                fixes = (f"Give the data a column `{self.sources.column(need.name)}`", "Give the step a `from`")
                raise Refused("data", message, site=site.name, fixes=fixes)

    def unsaid(self, names: Iterable[str]) -> list[str]:
        """Those of these sets that the file which no set is named for says nothing of, although something is read from
        it: neither a column is called so, nor does anything that it must hold run over one or name its elements."""
        layout, main = Layout(self.wanted.all, self.sources), self.sources.main
        if not any(layout.key(one) == MAIN and layout.columns_in(one, main) is not None for one in layout.needs):
            return []
        axes = [axis for one in layout.needs for axis in (*(one.axes or ()), *((one.values,) if one.values else ()))]
        said = {axis.name for axis in axes} | set(self.sources.named)
        return [name for name in names if name not in said and layout.index_column(MAIN, name) is None]

    def _where(self, need: Need) -> str:
        source = self._source(need)
        return "the new data" if source is None else source.path

    def _source(self, need: Need) -> Source | None:
        layout = Layout([need], self.sources)
        return layout.source(layout.key(need))

    def _held(self, need: Need) -> bool:
        return Layout(self.needs.all, self.sources).gives(need)

    def _filled(self, need: Need) -> bool:
        """Whether they hold any value of a need: a column without one is as good as none."""
        source = self._source(need)
        columns = Layout([need], self.sources).columns_in(need, source)
        if columns is None or not isinstance(source, Table):
            return columns is not None
        return any(not missing(cell) for name in columns.names for cell in source.columns.get(name, ()))

    def uncensored(self, rows: int | None) -> dict[str, Tensor]:
        """For options that the new data say nothing of: every row counts, in full."""
        absent = {need.name for need in self.needs.data} - {need.name for need in self.wanted.data}
        plates = {need.name: (need.plate[1],) for need in self.needs.observed if need.plate is not None}
        found: dict[str, Tensor] = {}
        for need in self.needs.data:
            if need.name in absent and need.purpose is not None and _counts(need):
                option, site = need.purpose
                axes = None if need.axes is None else tuple(axis.size or rows or 1 for axis in need.axes)
                found[need.name] = arrays.full(axes or plates.get(site) or (rows or 1,), NO_MATTER[option])
        return found


def _lag(site: Site) -> int:
    return 0 if site.chain is None else site.chain.indices[site.chain.at].lag


def _counts(need: Need) -> bool:
    return need.purpose is not None and need.purpose[0] in NO_MATTER


def _read(program: Program) -> set[str]:
    """The data names that steps compute with."""
    found: set[str] = set()
    behind = behind_observed(program)
    for step in all_steps(program.steps):
        if isinstance(step, LetModel) and behind >= {*step.names}:
            continue
        site = getattr(step, "site", None)
        options = [] if site is None else [site.mask, site.weight, *(value for _, value in site.limits)]
        for value in values(step):
            if not any(value is option for option in options):
                found |= {part.name for part in walk(value, operands) if isinstance(part, Data)}
    return found
