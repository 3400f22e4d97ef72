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
from tests.examples.statistics.programs import NAMES, data_of, prepared
from tests.export.equations import EQUATIONS, LATENTS, MEASURED, in_steps
from tests.export.exports import worst, write_cases
from tests.export.families import CASES as OWN
from tests.export.families import write_case, write_cases_of_families
from tests.patience import HANG
from tests.regressions.lagged_recursions import CASES, EXPORTED, HEAD, values_of

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


BLOCKS = """\
object Group : FinSet 3
object Row : FinSet 4
object Time : FinSet 3
object Kind : FinSet 2
object State : FinSet 3
program blocks : Row -> Row
    data group : Row -> Group
    data item : Time -> Row
    data top : Group -> Nat
    data P : Kind * State
    data Q : State * State
    sample mu[s : State] <- Normal(0.0, 2.0)
    sample nu[k : Kind] <- Normal(0.0, 2.0)
    marginalize z[g : Group] : Kind <- Categorical([0.3, 0.7])
        observe x[g : Group] <- Normal(nu[z[g]], 1.0)
        marginalize c[i : Row] : State <- Categorical(P[z[group[i]]])
            observe y[i : Row] <- Normal(mu[c[i]] * nu[z[group[i]]], 1.0)
            observe u[t : Time] <- Normal(mu[c[item[t]]] + 0.5 * z[group[item[t]]], 1.0)
        marginalize d[i : Row, t : Time] : State <- Categorical(Q[d[i, t - 1]]) from Categorical(P[z[group[i]]])
            observe v[i : Row, t : Time] <- Normal(mu[d[i, t]], 1.0)
    marginalize n[g : Group] <- DiscreteUniform(0, top[g])
        marginalize b[i : Row] <- DiscreteUniform(1, 9)
            observe w[i : Row] <- Normal(0.3 * b[i] + 0.2 * n[group[i]], 1.0)
    return mu
"""


def test_blocks_in_blocks_are_said_in_stan(tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    data = {"group": [0, 2, 2, 1], "item": [1, 3, 1], "top": [3, 0, 6], "P": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]}
    data |= {"Q": [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], "x": [0.1, 0.5, -0.3], "u": [1.0, 0.2, -0.4]}
    data |= {"y": [0.4, 1.5, 2.0, -0.5], "w": [0.3, 1.5, 2.2, 0.9]}
    data["v"] = [[0.1, 0.4, 1.0], [0.0, -0.3, 2.0], [1.1, 0.2, 0.1], [0.4, 0.4, -1.0]]
    write_case(tmp_path, "blocks", "stan", BLOCKS, data, {"mu": [0.5, -1.0, 1.4], "nu": [0.3, -0.8]})
    assert max(worst(asked("evaluate_stan", tmp_path), tmp_path).values()) <= 1e-6


@pytest.mark.parametrize("target", list(TABLES))
def test_lets_of_data_are_observed(target: str, tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    data = {"y": [0.4, 1.5, 2.0, 3.5], "x": [0.2, -1.0, 0.7, 1.1], "n": [1, 0, 2, 1], "g": [0, 1, 0, 1]}
    write_case(tmp_path, "lets", target, LETS, data, {"m": 0.35})
    assert max(worst(asked(f"evaluate_{target}", tmp_path), tmp_path).values()) <= 1e-6


@pytest.mark.parametrize("target", list(TABLES))
def test_equations_are_solved(target: str, tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    # PyMC has no adaptive method
    text = EQUATIONS if target != "pymc" else in_steps(EQUATIONS)
    write_case(tmp_path, "equations", target, text, MEASURED, LATENTS)
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
