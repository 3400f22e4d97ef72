"""Posteriors of formulas with group effects, splines, ordinal and hurdle outcomes, by NumPyro.

`references.json` holds what it printed.  To make it again, in an environment with numpyro 0.22:
`python tests/formulas/numpyro_references.py > tests/formulas/references.json`, two minutes.  The models are written by
hand from the priors that the programs state; nothing is read from a program.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

sys.path.insert(0, str(Path(__file__).parent))
import table

numpyro.enable_x64()
numpyro.set_host_device_count(1)


def rows() -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        table.write(Path(folder) / "d.csv")
        with (Path(folder) / "d.csv").open(encoding="utf-8") as file:
            return list(csv.DictReader(file))


ROWS = rows()


def column(name: str):
    return jnp.array([float({"true": 1, "false": 0}.get(row[name], row[name])) for row in ROWS])


def codes(name: str):
    levels = sorted({row[name] for row in ROWS})
    return jnp.array([levels.index(row[name]) for row in ROWS]), len(levels)


def is_level(name: str, level: str):
    return jnp.array([float(row[name] == level) for row in ROWS])


def varying(name: str, spread: float, shape):
    sd = numpyro.sample(f"sd_{name}", dist.HalfNormal(spread))
    return sd * numpyro.sample(f"z_{name}", dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape)))


def nested() -> None:
    """y ~ x + (1 | g) + (1 | g:h)"""
    (g, groups), (h, others), x = codes("g"), codes("h"), column("x")
    intercept = numpyro.sample("intercept", dist.Normal(11.0, 7.8))
    b_x = numpyro.sample("b_x", dist.Normal(0.0, 8.0))
    own = varying("g_intercept", 3.1, (groups,))
    both = varying("g_h_intercept", 3.1, (groups, others))
    sigma = numpyro.sample("sigma", dist.HalfNormal(3.1))
    mean = intercept + b_x * (x - x.mean()) + own[g] + both[g, h]
    numpyro.sample("y", dist.Normal(mean, sigma), obs=column("y"))


def counts() -> None:
    """visits ~ 1 + offset(log(expo)) + (1 | g)"""
    g, groups = codes("g")
    intercept = numpyro.sample("intercept", dist.Normal(0.93, 1.5))
    eta = intercept + jnp.log(column("expo")) + varying("g_intercept", 0.5, (groups,))[g]
    numpyro.sample("y", dist.Poisson(jnp.exp(eta)), obs=column("visits"))


def ordinal() -> None:
    """rating ~ x + f"""
    x = column("x")
    b_x = numpyro.sample("b_x", dist.Normal(0.0, 2.6))
    b_f = numpyro.sample("b_f", dist.Normal(0.0, 2.5).expand((2,)).to_event(1))
    # independent Normals, known to ascend
    cuts = numpyro.sample("cuts", dist.ImproperUniform(dist.constraints.ordered_vector, (), event_shape=(4,)))
    numpyro.factor("prior", dist.Normal(0.0, 3.0).log_prob(cuts).sum())
    eta = b_x * (x - x.mean()) + b_f[0] * is_level("f", "b") + b_f[1] * is_level("f", "c")
    numpyro.sample("y", dist.OrderedLogistic(eta, cuts), obs=(column("rating") - 1).astype(int))


def spline() -> None:
    """y ~ bs(x, df = 5)"""
    x = column("x")
    low, high = x.min(), x.max()
    step = (high - low) / 3
    knots = jnp.arange(6)

    def basis(at):
        """Cubic B-splines, by Cox and de Boor's recursion."""
        u = (at[:, None] - (low - step)) / step - knots + 2.0  # from 0 to 4 on the support of each
        parts = [jnp.where((u - k >= 0) & (u - k < 1), 1.0, 0.0) for k in range(4)]
        for degree in (1, 2, 3):
            parts = [((u - k) * parts[k] + (k + degree + 1 - u) * parts[k + 1]) / degree for k in range(len(parts) - 1)]
        return parts[0]

    intercept = numpyro.sample("intercept", dist.Normal(11.0, 7.8))
    free = numpyro.sample("free", dist.Normal(0.0, 7.8).expand((6,)).to_event(1))
    numpyro.deterministic("bs_x", free - free.mean())
    sigma = numpyro.sample("sigma", dist.HalfNormal(3.1))
    numpyro.sample("y", dist.Normal(intercept + basis(x) @ (free - free.mean()), sigma), obs=column("y"))


def hurdle() -> None:
    """rain ~ x + (1 | g)"""
    g, groups = codes("g")
    x, rain = column("x"), column("rain")
    intercept = numpyro.sample("intercept", dist.Normal(0.76, 1.5))
    b_x = numpyro.sample("b_x", dist.Normal(0.0, 1.0))
    eta = intercept + b_x * (x - x.mean()) + varying("g_intercept", 0.5, (groups,))[g]
    hu = numpyro.sample("hu", dist.Beta(1.0, 1.0))
    shape = numpyro.sample("shape", dist.LogNormal(-0.59, 1.0))
    wet = rain > 0
    numpyro.sample("none", dist.Bernoulli(hu).expand(rain.shape), obs=(~wet).astype(int))
    amount = dist.Gamma(shape, shape / jnp.exp(eta)).log_prob(jnp.where(wet, rain, 1.0))
    numpyro.factor("amount", jnp.where(wet, amount, 0.0).sum())


def run(model) -> dict[str, list[float]]:
    sampler = MCMC(NUTS(model, target_accept_prob=0.98), num_warmup=1500, num_samples=5000, num_chains=4,
                   chain_method="sequential", progress_bar=False)  # fmt: skip
    sampler.run(jax.random.PRNGKey(1))
    found = {}
    for name, draws in sampler.get_samples().items():
        draws = np.asarray(draws, np.float64)
        if name.startswith("z_") or name == "free":
            continue
        flat = draws.reshape(len(draws), -1)
        for at in range(flat.shape[1]):
            found[name if draws.ndim == 1 else f"{name}[{at}]"] = [
                round(float(flat[:, at].mean()), 5), round(float(flat[:, at].std(ddof=1)), 5),
            ]  # fmt: skip
    return found


def main() -> None:
    models = {model.__doc__: model for model in (nested, counts, ordinal, spline, hurdle)}
    json.dump({formula: run(model) for formula, model in models.items()}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
