"""ArviZ reads a stored posterior as it is, and its leave-one-out figures are those of NumPyro's log likelihood."""

from __future__ import annotations

import importlib
import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.evaluation.loo import loo_of
from qvr_core.runs.record.store import RunStore
from tests.patience import HANG

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference.json").read_text(encoding="utf-8"))
PROGRAMS = {
    "eight_schools": (EXAMPLES, ["--data", "csv:data/eight_schools.csv"]),
    "radon": (EXAMPLES / "statistics", []),
}
"""Where each program is, and what a run of it is given."""
LENGTH = ["--warmup", "1000", "--samples", "1000", "--chains", "4", "--target-accept", "0.95"]
"""As long as the runs of which reference.json holds the spread."""


@pytest.fixture(scope="module")
def arviz() -> Any:
    """Imported by whoever runs these tests, not by all who collect them: it brings scipy and matplotlib."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its first import announces a change of its folders
        return importlib.import_module("arviz")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The files that `qvr run nuts` leaves."""
    found: dict[str, Path] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, (source, given) in PROGRAMS.items():
            folder = tmp_path_factory.mktemp(name) / "checkout"
            shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".qvr", "analyses"))
            patch.chdir(folder)
            ran = CliRunner().invoke(app, ["run", "nuts", f"{name}.qvr", *given, *LENGTH])
            assert ran.exit_code == 0, ran.output
            found[name] = RunStore(folder).open(name).posterior
        yield found


@pytest.mark.statistical
@pytest.mark.timeout(2 * HANG)
@pytest.mark.parametrize("name", PROGRAMS)
def test_leave_one_out_is_that_of_numpyro_within_monte_carlo_error(
    name: str, stored: dict[str, Path], arviz: Any
) -> None:
    found = arviz.loo(arviz.from_netcdf(stored[name]), pointwise=True)
    figures = {"elpd": found.elpd_loo, "se": found.se, "p": found.p_loo, "each": found.loo_i.to_numpy()}
    for key, figure in figures.items():
        mean, spread = map(np.asarray, REFERENCE[name][key])
        # One normal deviate in 16,000 is further.
        assert np.all(abs(figure - mean) <= 4 * spread + 1e-4), key
    # one school lies near the limit of 0.7, on either side by the seed
    assert int((found.pareto_k.to_numpy() > found.good_k).sum()) <= 1


@pytest.mark.statistical
@pytest.mark.timeout(2 * HANG)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_figures_of_runs_compare_are_those_of_arviz(name: str, arviz: Any, stored: dict[str, Path]) -> None:
    theirs = arviz.loo(arviz.from_netcdf(stored[name]), pointwise=True)
    with xarray.open_datatree(stored[name], engine="h5netcdf") as tree:
        ours = loo_of(tree)
    assert ours is not None
    spread = np.asarray(REFERENCE[name]["each"][1])
    # Another implementation of the fit of the tail: the two differ by far less than two runs do.
    assert np.all(abs(ours.elpd - theirs.loo_i.to_numpy()) < spread / 10 + 1e-4)


@pytest.mark.statistical
@pytest.mark.timeout(2 * HANG)
def test_arviz_draws_and_compares_a_stored_file_as_it_is(arviz: Any, stored: dict[str, Path]) -> None:
    schools = arviz.from_netcdf(stored["eight_schools"])
    axes = arviz.plot_ppc(schools, num_pp_samples=20, random_seed=0)
    assert len(axes.lines) > 20
    # Against a model of the same data that knows no schools: its posterior is that of one mean, in closed form.
    y, sigma = schools.observed_data["effect"].to_numpy(), schools.constant_data["standard_error"].to_numpy()
    precision = 1 / 25 + (1 / sigma**2).sum()
    mean = np.random.default_rng(0).normal((y / sigma**2).sum() / precision, precision**-0.5, (4, 1000))
    likelihood = -0.5 * ((y - mean[..., None]) / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
    pooled = arviz.from_dict({"mu": mean}, log_likelihood={"effect": likelihood}, observed_data={"effect": y})
    table = arviz.compare({"schools": schools, "pooled": pooled})
    assert set(table.index) == {"schools", "pooled"}
    assert table.loc["schools", "elpd_loo"] == pytest.approx(REFERENCE["eight_schools"]["elpd"][0], abs=0.11)
    assert abs(table["elpd_diff"]).max() < 2
