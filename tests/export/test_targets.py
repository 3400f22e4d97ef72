"""Exports of thirty programs have our log density in the other engines (`make targets`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch

from qvr_core.export.arrays.tables_numpyro import NUMPYRO
from qvr_core.export.arrays.tables_pymc import PYMC
from qvr_core.export.stan.tables import FAMILIES as STAN
from qvr_core.inference import MCMC, NUTSKernel
from scripts.targets import PYTHON, STAN_PYTHON
from tests.export.exports import worst, write_cases
from tests.export.families import CASES as OWN
from tests.export.families import write_case, write_cases_of_families
from tests.findings.lagged_recursions import CASES, EXPORTED, HEAD, values_of
from tests.patience import HANG
from tests.programs.programs import NAMES, data_of, prepared

TABLES = {"numpyro": NUMPYRO.families, "pymc": PYMC.families, "stan": STAN}
EVALUATORS = Path(__file__).with_name("evaluators")
SAMPLED = ("change_point", "garch", "radon", "survival")

pytestmark = pytest.mark.targets


def asked(evaluator: str, folder: Path) -> dict:
    python = STAN_PYTHON if evaluator.endswith("stan") else PYTHON
    done = subprocess.run(
        [str(python), str(EVALUATORS / f"{evaluator}.py"), str(folder)],
        capture_output=True, text=True, timeout=12 * HANG, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("target", list(TABLES))
def test_thirty_programs_and_all_families_agree(target: str, tmp_path: Path) -> None:
    write_cases(tmp_path, NAMES, target)
    # NumPyro's own BetaBinomial is right to 1e-7 of its logarithm only
    known = {key: one for key, one in TABLES[target].items() if not key.startswith("BetaBinomial")}
    write_cases_of_families(tmp_path, target, known)
    found = worst(asked(f"evaluate_{target}", tmp_path), tmp_path)
    assert set(found) == {*NAMES, *OWN}
    assert {name: far for name, far in found.items() if not far <= 1e-6} == {}


@pytest.mark.parametrize("target", list(TABLES))
def test_a9_names_of_recursions_begin_where_ours_do(target: str, tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    for number, name in enumerate(EXPORTED):
        own, data = f"seasons{number}", values_of(name, 3 + number % 4)
        text = f"{HEAD}{CASES[name][1]}    return a\n".replace("program seasons", f"program {own}")
        plain = {key: value.tolist() for key, value in data.items()}
        write_case(tmp_path, own, target, text, {"y": plain.pop("y")}, plain)
    found = worst(asked(f"evaluate_{target}", tmp_path), tmp_path)
    assert len(found) == len(EXPORTED)
    assert {name: far for name, far in found.items() if not far <= 1e-6} == {}


LETS = """\
object Row : FinSet 4
object G : FinSet 2
program lets : Row -> Row
    data y, x : Row
    data n : Row -> Nat
    data g : Row -> G
    let z = (y - mean(y)) / sd(y)
    let w[i : Row] = (x[i] - mean(x)) / var(x)
    let k = n + n
    let t[q : G] = sum(y[i] for i : Row if g[i] == q)
    sample m <- Normal(0.0, 1.0)
    observe z[i : Row] <- Normal(m * w[i], 1.5)
    observe k[i : Row] <- Poisson(exp(m))
    observe t[q : G] <- Normal(m, 1.0)
    return m
"""


COUNTS = """\
object Site : FinSet 5
object Visit : FinSet 3
object Row : FinSet 6
program counts : Site -> Site
    data low, high : Site -> Nat
    data site : Row -> Site
    sample p <- Beta(2.0, 2.0)
    sample r <- Gamma(2.0, 1.0)
    marginalize n[g : Site] <- DiscreteUniform(low[g], high[g])
        observe y[g : Site, t : Visit] <- Binomial(n[g], p)
        observe k[i : Row] <- Poisson(r * n[site[i]] + 0.5)
    marginalize m[g : Site] <- DiscreteUniform(0, 12)
        observe z[g : Site] <- Normal(0.1 * m[g], 1.0)
    return p
"""


@pytest.mark.parametrize("target", list(TABLES))
def test_hidden_counts_are_summed_up_to_their_largest_bound(target: str, tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    data = {"low": [0, 2, 0, 1, 3], "high": [10, 20, 15, 8, 30], "site": [0, 1, 1, 4, 3, 2], "k": [1, 5, 3, 9, 2, 0]}
    data |= {"y": [[1, 2, 0], [4, 3, 2], [0, 0, 1], [2, 1, 1], [9, 8, 10]], "z": [0.1, 0.5, -0.3, 1.2, 0.8]}
    write_case(tmp_path, "counts", target, COUNTS, data, {"p": 0.35, "r": 0.8})
    assert max(worst(asked(f"evaluate_{target}", tmp_path), tmp_path).values()) <= 1e-6


@pytest.mark.parametrize("target", list(TABLES))
def test_lets_of_data_are_observed(target: str, tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    data = {"y": [0.4, 1.5, 2.0, 3.5], "x": [0.2, -1.0, 0.7, 1.1], "n": [1, 0, 2, 1], "g": [0, 1, 0, 1]}
    write_case(tmp_path, "lets", target, LETS, data, {"m": 0.35})
    assert max(worst(asked(f"evaluate_{target}", tmp_path), tmp_path).values()) <= 1e-6


def test_numpyro_samples_the_same_posterior(tmp_path: Path) -> None:
    """Means of single numbers within five standard errors, on at least 100 independent draws in 2,000."""
    write_cases(tmp_path, SAMPLED, "numpyro")
    for name, moments in asked("sample_numpyro", tmp_path).items():
        result = MCMC(NUTSKernel(), num_warmup=500, num_samples=2000, seed=1).run(
            prepared(name).model, None, data_of(name)
        )
        assert moments
        for site, (mean, sd) in moments.items():
            ours = result.samples[site].double()
            assert abs(float(ours.mean()) - mean) < 5.0 * sd * (2.0 / 100.0) ** 0.5, (name, site)
