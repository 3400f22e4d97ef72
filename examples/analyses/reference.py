"""The posteriors of these analyses by NumPyro, an independent implementation: `python examples/analyses/reference.py`.

Needs `pip install numpyro pandas`; writes reference.json, {analysis: {name: [mean, sd, Monte Carlo error]}}, with which
tests/examples/test_analyses.py compares what QVR samples.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from jax.nn import sigmoid
from numpyro import deterministic, sample
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

HERE = Path(__file__).parent
numpyro.enable_x64()


def table(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / f"{name}.csv")


def codes(column: pd.Series, labels: list[str] | None = None) -> tuple[np.ndarray, int]:
    """Positions of labels: in order of appearance, or in the order given."""
    labels = labels or list(column.unique())
    return np.array([labels.index(cell) for cell in column]), len(labels)


def investment() -> None:
    data = table("investment")
    firm, firms = codes(data["firm"])
    level, slope = sample("beta_level", dist.Normal(4, 1)), sample("beta_elasticity", dist.Normal(1, 0.5))
    tau_level, tau_slope = sample("tau_level", dist.HalfNormal(1)), sample("tau_elasticity", dist.HalfNormal(0.5))
    L = sample("L", dist.LKJCholesky(2, concentration=2.0))
    z = sample("z", dist.Normal(0, 1).expand([firms, 2]))
    sigma = sample("sigma", dist.HalfNormal(0.5))
    levels = deterministic("level", level + tau_level * z[:, 0])
    slopes = deterministic("elasticity", slope + tau_slope * z @ L[1])
    deterministic("correlation", L[1, 0])
    expected = levels[firm] + slopes[firm] * np.log(data["value"].to_numpy() / 500)
    sample("invest", dist.LogNormal(expected, sigma), obs=data["invest"].to_numpy())


def penguin_sex() -> None:
    data = table("penguin_sex")
    species, kinds = codes(data["species"], ["Adelie", "Chinstrap", "Gentoo"])
    even = sample("even", dist.Normal(4.2, 1).expand([kinds]))
    slope = sample("slope", dist.Normal(0, 4).expand([kinds]))
    logits = slope[species] * (data["mass"].to_numpy() - even[species])
    sample("male", dist.Bernoulli(logits=logits), obs=data["male"].to_numpy())


def infant_deaths() -> None:
    data = table("infant_deaths")
    rate, race = sample("rate", dist.Normal(np.log(0.002), 1)), sample("race", dist.Normal(0, 1))
    dispersion = sample("dispersion", dist.HalfNormal(0.5))
    expected = data["births"].to_numpy() * jnp.exp(rate + race * (data["nonwhite"].to_numpy() - 0.3))
    sample("deaths", dist.NegativeBinomial2(expected, 1 / dispersion), obs=data["deaths"].to_numpy())


def nile() -> None:
    data = table("nile")["volume"].to_numpy(float)
    start, gain = sample("start", dist.Normal(1000, 300)), sample("gain", dist.Uniform(0, 1))
    sigma = sample("sigma", dist.HalfNormal(200))
    _, level = jax.lax.scan(lambda level, y: (level + gain * (y - level), level), start, data)
    deterministic("level", level)
    deterministic("drift", gain * sigma)
    deterministic("gauge", jnp.sqrt(1 - gain) * sigma)
    sample("volume", dist.Normal(level, sigma), obs=data)


def bills() -> None:
    data = table("bills")[["length", "depth"]].to_numpy()
    share = sample("share", dist.Dirichlet(jnp.full(3, 5.0)))
    stoutest, gap = sample("stoutest", dist.Normal(3, 5)), sample("gap", dist.LogNormal(1.8, 0.4).expand([2]))
    slender = deterministic("slender", stoutest + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gap)]))
    deep = sample("deep", dist.Normal(17, 4).expand([3]))
    scale = sample("scale", dist.LogNormal(jnp.array([1.0, 0.0]), 0.3))
    L = sample("L", dist.LKJCholesky(2, concentration=2.0))
    mu = deterministic("mu", jnp.stack([slender + 2 * deep, deep], -1))
    one = dist.MultivariateNormal(mu, scale_tril=scale[:, None] * L)
    sample("bill", dist.MixtureSameFamily(dist.Categorical(share), one), obs=data)


def breast_cancer() -> None:
    data = table("breast_cancer")
    grade, grades = codes(data["grade"], ["I", "II", "III"])
    x = data[["hormone", "log_nodes", "size", "age"]].to_numpy()
    level = sample("level", dist.Normal(2, 1).expand([grades]))
    beta = sample("beta", dist.Normal(0, 0.7).expand([4]))
    sigma = sample("sigma", dist.HalfNormal(1.5))
    deterministic("times_longer", jnp.exp(beta[0]))
    z = (np.log(data["years"].to_numpy()) - level[grade] - x @ beta) / sigma
    seen = dist.Normal(0, 1).log_prob(z) - jnp.log(sigma)
    numpyro.factor("years", jnp.where(data["censored"].to_numpy() == 1, jax.scipy.stats.norm.logsf(z), seen).sum())


def lung() -> None:
    data = table("lung")
    age, female, ecog = (data[name].to_numpy(float) for name in ("age", "female", "ecog"))
    eats, eats_sd = sample("eats", dist.Normal(0.9, 0.3)), sample("eats_sd", dist.HalfNormal(0.5))
    eats_of = sample("eats_of", dist.Normal(0, 0.2).expand([3]))
    meals = _completed("meals", data, dist.Normal(eats + jnp.stack([age, female, ecog], -1) @ eats_of, eats_sd))
    loses, loses_sd = sample("loses", dist.Normal(4, 4)), sample("loses_sd", dist.HalfNormal(8))
    loss = _completed("loss", data, dist.Normal(loses + sample("loses_of", dist.Normal(0, 3)) * ecog, loses_sd))
    level = sample("level", dist.Normal(0, 1))
    b = {name: sample(f"b_{name}", dist.Normal(0, 0.7)) for name in ("age", "female", "ecog", "meals", "loss")}
    shape = sample("shape", dist.LogNormal(0, 0.5))
    eta = level + b["age"] * age + b["female"] * female + b["ecog"] * ecog
    eta = eta + b["meals"] * (meals - 0.9) + b["loss"] * (loss - 4) / 10
    years = data["years"].to_numpy()
    hazard = (years / jnp.exp(eta)) ** shape
    density = jnp.log(shape / years) + jnp.log(hazard) - hazard
    numpyro.factor("years", jnp.where(data["censored"].to_numpy() == 1, -hazard, density).sum())


def _completed(name: str, data: pd.DataFrame, of: Any) -> jax.Array:
    """A column whose empty cells are latent; all cells, known or not, have this distribution."""
    known = data[name].to_numpy()
    empty = np.flatnonzero(np.isnan(known))
    guessed = sample(name, dist.ImproperUniform(dist.constraints.real, (), (len(empty),)))
    full = jnp.asarray(known).at[empty].set(guessed)
    numpyro.factor(f"{name}_prior", of.log_prob(full).sum())
    return full


PARTIES = ["strong_democrat", "democrat", "leans_democrat", "independent", "leans_republican", "republican",
           "strong_republican"]  # fmt: skip


def party() -> None:
    data = table("party")
    outcome, _ = codes(data["party"], PARTIES)
    cuts = sample(
        "cuts",
        dist.ImproperUniform(dist.constraints.ordered_vector, (), (6,)),
    )
    numpyro.factor("cuts_prior", dist.Normal(0, 2).log_prob(cuts).sum())
    whole = sample("whole", dist.Normal(2, 3))
    part = sample("part", dist.Dirichlet(jnp.full(6, 2.0)))
    beta = sample("beta", dist.Normal(0, 0.7).expand([3]))
    below = np.arange(6)[None] < data["view"].to_numpy()[:, None] - 1
    eta = whole * (below * part).sum(-1) + data[["age", "educ", "income"]].to_numpy() @ beta
    sample("party", dist.OrderedLogistic(eta, cuts), obs=outcome)


def engel() -> None:
    data = table("engel")
    level, slope = sample("level", dist.Normal(0.6, 0.15)), sample("slope", dist.Normal(0, 0.2))
    amplitude, bend = sample("amplitude", dist.HalfNormal(0.03)), sample("bend", dist.LogNormal(-0.3, 0.37))
    z = sample("z", dist.Normal(0, 1).expand([12]))
    sigma = sample("sigma", dist.HalfNormal(0.1))
    x = np.log(data["income"].to_numpy() / 900)
    frequency = np.pi * np.arange(1, 13) / 6
    weight = amplitude * jnp.sqrt(np.sqrt(2 * np.pi) * bend) * jnp.exp(-0.25 * (bend * frequency) ** 2)
    waves = (np.sin(frequency * (x[:, None] + 3)) - np.sin(frequency * 3)) / np.sqrt(3)
    curve = deterministic("curve", level + slope * x + waves @ (weight * z))
    sample("share", dist.Normal(curve, sigma), obs=data["share"].to_numpy())


TRAITS = {
    "income": ["lowest", "low", "middle", "high", "highest"],
    "schooling": ["school", "some_college", "associate", "degree"],
    "age": ["under_35", "from_35", "from_50", "from_65"],
}


def poll() -> None:
    data, cells = table("poll"), table("poll_cells")
    eta = sample("mu", dist.Normal(0, 1)) * np.ones(len(data))
    of_cell = eta[0] * np.ones(len(cells))
    for name, labels in TRAITS.items():
        tau = sample(f"tau_{name}", dist.HalfNormal(1))
        effect = deterministic(f"by_{name}", tau * sample(f"z_{name}", dist.Normal(0, 1).expand([len(labels)])))
        eta = eta + effect[codes(data[name], labels)[0]]
        of_cell = of_cell + effect[codes(cells[f"cell_{name}"], labels)[0]]
    sample("dole", dist.Bernoulli(logits=eta), obs=data["dole"].to_numpy())
    people, p = cells["people"].to_numpy(), sigmoid(of_cell)
    deterministic("share", (people * p).sum() / people.sum())
    income = codes(cells["cell_income"], TRAITS["income"])[0]
    by = [(people * p)[income == g].sum() / people[income == g].sum() for g in range(5)]
    deterministic("support", jnp.stack(by))


MODELS: tuple[Callable[[], None], ...] = (
    investment, penguin_sex, infant_deaths, nile, bills, breast_cancer, lung, party, engel, poll
)  # fmt: skip
AUXILIARY = {"z_income", "z_schooling", "z_age"}
"""Latents that stand for others, and have no name in QVR."""


def posterior(model: Callable[[], None], draws: int = 4000, chains: int = 4) -> dict[str, Any]:
    """{name: [mean, sd, Monte Carlo error of the mean]}, each with the shape of the value."""
    # Small steps: these shall be better than what they are compared with.
    sampler = MCMC(
        NUTS(model, target_accept_prob=0.95),
        num_warmup=1000,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    sampler.run(jax.random.PRNGKey(0))
    found = {}
    for name, value in sampler.get_samples(group_by_chain=True).items():
        if name not in AUXILIARY:
            flat = np.asarray(value).reshape(-1, *value.shape[2:])
            sd = flat.std(0)
            # A constant, such as the corner of a factor, has no effective size.
            size = np.nan_to_num(effective_sample_size(np.asarray(value)))
            error = sd / np.sqrt(np.maximum(size, 1))
            found[name] = [np.round(np.asarray(one, float), 6).tolist() for one in (flat.mean(0), sd, error)]
    return found


if __name__ == "__main__":
    path = HERE / "reference.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for model in MODELS:
        if model.__name__ in sys.argv[1:] or not sys.argv[1:]:
            known[model.__name__] = posterior(model)
            path.write_text(json.dumps(known, sort_keys=True) + "\n", encoding="utf-8")
