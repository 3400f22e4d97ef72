"""Rows run one after the other, where each has weights of its own: a request for one of them, and all runs as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.programs.execution import Execution, Noises, Request, SiteRecord
from qvr_core.runtime.programs.handlers import Handler
from qvr_core.runtime.values.arrow import Noise, NoiseSpec


def sliced(request: Request, row: int, count: int) -> Handler:
    """What a request for `count` rows asks of one."""

    def handle(one: Request) -> None:
        for field in fields(Request):
            setattr(one, field.name, getattr(request, field.name))
        one.rows = 1
        one.values = {name: _row(value, row, count) for name, value in request.values.items()}
        one.unconstrained = {name: value[row : row + 1] for name, value in request.unconstrained.items()}
        one.noise = {name: _noise(given, row, count) for name, given in request.noise.items()}

    # a function that makes noise is asked once for all rows
    if row == 0:
        request.noise = {name: _once(given, count) for name, given in request.noise.items()}
    return handle


def _once(given: Noises, count: int) -> Noises:
    if not callable(given):
        return given
    source: Callable[[Sequence[NoiseSpec]], Noise] = given
    made: list[Noise] = []

    def noise(specs: Sequence[NoiseSpec]) -> Noise:
        if not made:
            wide = [NoiseSpec(one.path, (count, *one.shape[1:]), one.base, one.final) for one in specs]
            made.append(source(wide))
        return made[0]

    return noise


def _noise(given: Noises, row: int, count: int) -> Noises:
    if callable(given):
        return lambda specs: _cut(given(specs), row)
    return _cut(given, row)


def _cut(noise: Mapping[str, Tensor], row: int) -> dict[str, Tensor]:
    return {path: value[row : row + 1] for path, value in noise.items()}


def _row(value: Any, row: int, count: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_row(part, row, count) for part in value)  # pyright: ignore[reportUnknownVariableType]
    tensor = arrays.as_tensor(value)
    return tensor[row : row + 1] if tensor.ndim and tensor.shape[0] == count else value


def joined(runs: Sequence[Execution], request: Request) -> Execution:
    """The runs of single rows, of this request, as one run."""
    first = runs[0]
    data = {name for name, site in first.sites.items() if site.observed and name not in request.values}
    sites = {name: _record([run.sites[name] for run in runs], shared=name in data) for name in first.sites}
    kept = {name: arrays.cat([run.kept[name] for run in runs]) for name in first.kept}
    ended = tuple(arrays.cat(each) for each in zip(*(run.ended for run in runs), strict=True))
    return Execution(sites, _stacked([run.output for run in runs]), len(runs), kept, ended)


def _record(records: Sequence[SiteRecord], *, shared: bool) -> SiteRecord:
    """One record for all rows; a value that is that of the data is `shared` by them."""
    first = records[0]
    changed: dict[str, Any] = {}
    for field in fields(SiteRecord):
        held = getattr(first, field.name)
        if is_tensor(held) and not (field.name in ("value", "counted") and shared):
            changed[field.name] = arrays.cat([getattr(one, field.name) for one in records])
        elif field.name == "noise":
            changed["noise"] = {path: arrays.cat([one.noise[path] for one in records]) for path in first.noise}
        elif field.name == "value" and isinstance(held, tuple) and not shared:
            changed["value"] = _stacked([one.value for one in records])
        else:
            changed[field.name] = held
    return SiteRecord(**changed)


def _stacked(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, tuple):
        return tuple(_stacked(part) for part in zip(*values, strict=True))
    return arrays.cat(list(values)) if is_tensor(first) and first.ndim else first
