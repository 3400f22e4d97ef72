"""Leave-one-out figures of two programs by ArviZ on NumPyro's likelihood: `python -m tests.examples.loo.reference`.

Needs `pip install numpyro pandas arviz`; writes reference.json.  One long run is cut into runs as long as those of the
test, so that the spread of a figure between them is the Monte Carlo error of such a run.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arviz
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from numpyro import sample
from numpyro.infer import MCMC, NUTS, log_likelihood

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "examples"
CHAINS, DRAWS, RUNS = 4, 1000, 25
numpyro.enable_x64()


def eight_schools() -> None:
    data = pd.read_csv(EXAMPLES / "data" / "eight_schools.csv")
    mu, tau = sample("mu", dist.Normal(0, 5)), sample("tau", dist.HalfCauchy(5))
    theta = mu + tau * sample("z", dist.Normal(0, 1).expand([len(data)]))
    sample("effect", dist.Normal(theta, data["standard_error"].to_numpy()), obs=data["effect"].to_numpy())


def radon() -> None:
    houses = pd.read_csv(EXAMPLES / "statistics" / "radon.csv")
    counties = pd.read_csv(EXAMPLES / "statistics" / "radon_counties.csv")
    county = pd.Index(counties["County"]).get_indexer(houses["county"])
    mu, gamma = sample("mu", dist.Normal(0, 2)), sample("gamma", dist.Normal(0, 1))
    upstairs = sample("upstairs", dist.Normal(0, 1))
    tau, sigma = sample("tau", dist.HalfNormal(1)), sample("sigma", dist.HalfNormal(1))
    z = sample("z", dist.Normal(0, 1).expand([len(counties)]))
    level = mu + gamma * counties["log_uranium"].to_numpy() + tau * z
    expected = level[county] + upstairs * houses["floor"].to_numpy()
    sample("log_radon", dist.Normal(expected, sigma), obs=houses["log_radon"].to_numpy())


def figures(model: Callable[[], None]) -> dict[str, Any]:
    """elpd of each observation, their sum, its standard error and p: [mean, spread between runs] of each."""
    sampler = MCMC(
        NUTS(model, target_accept_prob=0.95),
        num_warmup=2000,
        num_samples=DRAWS * RUNS,
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    sampler.run(jax.random.PRNGKey(0))
    draws = sampler.get_samples(group_by_chain=True)
    ((name, pointwise),) = log_likelihood(model, draws, batch_ndims=2).items()
    rows: dict[str, list[Any]] = {"each": [], "elpd": [], "se": [], "p": []}
    for run in range(RUNS):
        part = slice(run * DRAWS, (run + 1) * DRAWS)
        tree = arviz.from_dict(
            {one: np.asarray(value)[:, part] for one, value in draws.items()},
            log_likelihood={name: np.asarray(pointwise)[:, part]},
        )
        found = arviz.loo(tree, pointwise=True)
        for key, value in zip(rows, (found.loo_i.to_numpy(), found.elpd_loo, found.se, found.p_loo), strict=True):
            rows[key].append(value)
    return {key: [np.round(of(value, 0), 5).tolist() for of in (np.mean, np.std)] for key, value in rows.items()}


if __name__ == "__main__":
    found = {model.__name__: figures(model) for model in (eight_schools, radon)}
    (HERE / "reference.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
