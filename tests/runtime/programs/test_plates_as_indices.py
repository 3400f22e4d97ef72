"""`qvr fix` keeps the meaning: what it writes has the sites, shapes, draws and densities of what stood there.

Every program of the spec, the docs, the examples and the library; a twelfth of them in `make test`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.analysis import Snapshot
from qvr_core.cli.files import analysed_file
from qvr_core.data.needs import Needs, needs_of
from qvr_core.data.synthetic import synthetic
from qvr_core.ide.to_indices.rewriting import rewritten
from qvr_core.inference import Trace, trace
from qvr_core.runtime.programs.handlers import condition, densities
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.semantics.types.model.steps import MarginalizeModel
from qvr_core.semantics.types.walk import sites
from tests.spec.cases import analysed, read_cases

ROOT = Path(__file__).resolve().parents[3]
SLICES = 12
SEEDS = (1, 2, 3)
TOLERANCE = 1e-12
"""Relative to 1 and to the size of a log density."""

Source = tuple[str, str, Path, tuple[tuple[str, str], ...]]
"""Where a text stands, itself, its file, and the files beside it."""


def sources() -> Iterator[Source]:
    """Every text that checks, or may: pages with marked errors are left out."""
    for folder in ("tests/spec", "docs"):
        for page in sorted((ROOT / folder).rglob("*.md")):
            for case in read_cases(page):
                if not case.wrong:
                    yield f"{page.relative_to(ROOT)}:{case.number}", case.source, Path(case.file), case.files
    for folder in ("examples", "qvr_core/std", "tests"):
        for path in sorted((ROOT / folder).rglob("?*.qvr")):
            if "broken" not in path.parts:
                yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"), path, ()


SOURCES = list({source[1]: source for source in sources()}.values())
EACH = [pytest.param(at, marks=pytest.mark.slow if at else ()) for at in range(SLICES)]


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """What a program makes itself (`ones(8)`) is as exact as what is compared."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("part", EACH)
def test_what_is_rewritten_means_the_same(part: int, tmp_path: Path) -> None:
    changed = 0
    found: list[str] = []
    for at, (name, text, file, files) in enumerate(SOURCES[part::SLICES]):
        folder = tmp_path / str(at)
        folder.mkdir()
        for beside, content in files:
            (folder / beside).write_text(content, encoding="utf-8")
        analyse = _analysis(file, files)
        new = rewritten(text, analyse).text
        assert rewritten(new, analyse).text == new, f"{name} is not written alike the second time"
        if new == text:
            continue
        changed += 1
        # products of matrices may add up in another order
        exact = "matmul" not in text
        found += [f"{name}: {one}" for one in _differences(text, new, file, folder, exact=exact)]
    assert changed > 5
    assert not found, "\n".join(found)


def _analysis(file: Path, files: tuple[tuple[str, str], ...]) -> Callable[[str], Snapshot]:
    if file.is_absolute():
        return lambda text: analysed_file(str(file), text)
    return lambda text: analysed(text, str(file), files)


def _differences(old: str, new: str, file: Path, beside: Path, *, exact: bool) -> Iterator[str]:
    """What differs between the programs of two texts, in words."""
    folder = file.parent if file.is_absolute() else beside
    try:
        before, after = (_loaded(text, folder) for text in (old, new))
    except RuntimeProblem:
        return  # what cannot be built from a text alone, in either form: open sets
    for name, module in before.programs.items():
        model = before.model.programs[name]
        other, needs = after.programs[name], needs_of(after.model.programs[name])
        wanted = {need.name for need in needs_of(model).data}
        if wanted != {need.name for need in needs.data}:
            yield f"`{name}` reads other data"
            continue
        summed = {site.name for site in sites(model.steps, MarginalizeModel)}
        made = _made(other, needs)
        if made is None and _made(module, needs_of(model)) is not None:
            yield f"`{name}` cannot be drawn any more"
        if made is None:
            continue
        x, observed = made
        for seed in SEEDS:
            for given in (observed, {need.name: observed[need.name] for need in needs.data}):
                first, second = _traced(module, x, given, seed), _traced(other, x, given, seed)
                yield from (f"`{name}`, seed {seed}: {one}" for one in _unlike(first, second, summed, exact))


def _loaded(text: str, folder: Path) -> Any:
    torch.manual_seed(0)  # weights
    loaded = dsl.loads(text, folder=folder)
    for module in loaded.programs.values():
        module.double()
    return loaded


def _made(module: ProgramModule, needs: Needs) -> tuple[Any, Mapping[str, Tensor]] | None:
    """Inputs, data and observed values; data are made positive where that alone can be drawn."""
    for positive in (False, True):

        def draw(x: Any, data: Mapping[str, Tensor], positive: bool = positive) -> dict[str, Any]:
            for value in data.values() if positive else ():
                if value.is_floating_point():
                    value.abs_().add_(0.1)
            run = module.execute(x, condition(data), densities(False))
            return {need.name: run.sites[need.name].value for need in needs.observed}

        try:
            rows = synthetic(needs, draw, rows=3, length=4, seed=1)
        except RuntimeProblem:
            continue
        return rows.batch(torch.arange(rows.rows))
    return None


def _traced(module: ProgramModule, x: Any, given: Mapping[str, Tensor], seed: int) -> Trace | None:
    """A draw with its density; None where what is drawn has none (a probability above 1)."""
    torch.manual_seed(seed)
    try:
        return trace(module, x, given)
    except RuntimeProblem:
        return None


def _unlike(first: Trace | None, second: Trace | None, summed: set[str], exact: bool) -> Iterator[str]:
    if first is None:
        return  # what was refused says nothing
    if second is None:
        yield "cannot be drawn any more"
        return
    if list(first.sites) != list(second.sites):
        yield f"sites {list(first.sites)}, then {list(second.sites)}"
        return
    for name, site in first.sites.items():
        one, two = site.value, second.sites[name].value
        if name in summed and isinstance(one, Tensor) and isinstance(two, Tensor) and one.numel() == two.numel():
            two = two.reshape(one.shape)  # a state without an index has one place
        yield from (f"`{name}` {one}" for one in _far(_numbers(one), _numbers(two), 0.0 if exact else TOLERANCE))
    pairs = [("log density", first.log_joint, second.log_joint), ("what it returns", first.output, second.output)]
    for what, one, two in pairs:
        yield from (f"{what} {one}" for one in _far(_numbers(one), _numbers(two), TOLERANCE))


def _numbers(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    inner: list[Any] = [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, tuple) else []
    return [part for one in inner for part in _numbers(one)]


def _far(first: Sequence[Tensor], second: Sequence[Tensor], tolerance: float) -> Iterator[str]:
    if [one.shape for one in first] != [one.shape for one in second]:
        yield f"has the shapes {[tuple(one.shape) for one in first]}, then {[tuple(one.shape) for one in second]}"
        return
    for one, two in zip(first, second, strict=True):
        if not torch.allclose(one.double(), two.double(), rtol=tolerance, atol=tolerance, equal_nan=True):
            yield f"differs by {float((one.double() - two.double()).abs().max())}"
