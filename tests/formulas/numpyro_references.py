"""Posteriors of twenty formulas, of a kind each, by NumPyro.

`references.json` holds what it printed.  To make it again, in an environment with numpyro 0.22:
`python tests/formulas/numpyro_references.py > tests/formulas/references.json`, ten minutes.  The models are written by
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


def factor(spread: float, name: str = "f", base: str = "a", prefix: str = "b_"):
    """The contrasts of a factor's levels with one of them, by a name each."""
    levels = [level for level in sorted({row[name] for row in ROWS}) if level != base]
    return sum(
        numpyro.sample(f"{prefix}{name}[{level}]", dist.Normal(0.0, spread)) * is_level(name, level) for level in levels
    )


def line(intercept: tuple[float, float], slope: float, name: str = "x", at=None):
    """An intercept and the slope on a predictor, about its mean."""
    at = column(name) if at is None else at
    start = numpyro.sample("intercept", dist.Normal(*intercept))
    return start + numpyro.sample(f"b_{name}", dist.Normal(0.0, slope)) * (at - at.mean())


def left():
    """The deviation of a normal outcome from its mean."""
    return numpyro.sample("sigma", dist.HalfNormal(3.1))


def process() -> None:
    """y ~ gp(z) + f"""
    z = np.array([float(row["z"]) for row in ROWS])
    low, high = z.min(), z.max()
    # sines on an interval half as long again, twice as many as the program has
    whole = 1.5 * (high - low)
    waves = np.arange(1, 41) * np.pi / whole
    begin = low - (high - low) / 4
    mean = numpyro.sample("intercept", dist.Normal(11.0, 7.8)) + factor(7.8)
    size = numpyro.sample("size_gp_z", dist.HalfNormal(3.1))
    length = numpyro.sample("length_gp_z", dist.LogNormal(3.3, 0.5))
    # the root of the spectral density; that of a density which underflows to 0 has no gradient
    root = size * jnp.sqrt(jnp.sqrt(2 * jnp.pi) * length) * jnp.exp(-((length * waves) ** 2) / 4)
    weights = root * numpyro.sample("z_gp", dist.Normal(0.0, 1.0).expand((40,)).to_event(1))
    sines = np.sqrt(2 / whole) * np.sin((z[:, None] - begin) * waves)
    # about the mean over the range of z, by a rule of midpoints
    grid = low + (high - low) * (np.arange(2000) + 0.5) / 2000
    middle = np.sqrt(2 / whole) * np.sin((grid[:, None] - begin) * waves).mean(axis=0)
    numpyro.sample("y", dist.Normal(mean + (sines - middle) @ weights, left()), obs=column("y"))


def autoregressive() -> None:
    """y ~ x + ar(p = 1)"""
    mean, y = line((11.0, 7.8), 8.0), column("y")
    ar = numpyro.sample("ar", dist.TruncatedNormal(0.0, 0.5, low=-1.0, high=1.0))
    rest = y - mean
    numpyro.sample("y", dist.Normal(mean[1:] + ar * rest[:-1], left()), obs=y[1:])


def censored() -> None:
    """stay | cens(dead) ~ x + f"""
    eta = line((1.6, 1.5), 1.0) + factor(1.0)
    shape = numpyro.sample("shape", dist.LogNormal(0.0, 0.5))
    stay, dead = column("stay"), column("dead")
    hazard = (stay / jnp.exp(eta)) ** shape
    numpyro.factor("stay", (jnp.where(dead > 0, 0.0, jnp.log(shape / stay * hazard)) - hazard).sum())


def spreading() -> None:
    """y ~ x, sigma ~ x"""
    mean, x = line((11.0, 7.8), 8.0), column("x")
    start = numpyro.sample("sigma_intercept", dist.Normal(1.1, 1.0))
    slope = numpyro.sample("b_sigma_x", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mean, jnp.exp(start + slope * (x - x.mean()))), obs=column("y"))


def shares() -> None:
    """share ~ x + (1 | g), phi ~ sex"""
    g, groups = codes("g")
    mean = jax.nn.sigmoid(line((0.0, 2.5), 2.6) + varying("g_intercept", 1.0, (groups,))[g])
    start = numpyro.sample("phi_intercept", dist.Normal(0.77, 1.0))
    phi = jnp.exp(start + factor(1.0, "sex", "female", "b_phi_"))
    numpyro.sample("y", dist.Beta(mean * phi, (1 - mean) * phi), obs=column("share"))


def overdispersed() -> None:
    """visits ~ f + offset(log(expo))"""
    eta = numpyro.sample("intercept", dist.Normal(0.93, 1.5)) + factor(1.0) + jnp.log(column("expo"))
    dispersion = numpyro.sample("dispersion", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(eta), 1 / dispersion), obs=column("visits"))


def inflated() -> None:
    """visits ~ x"""
    rate = jnp.exp(line((1.4, 1.5), 1.0))
    zi = numpyro.sample("zi", dist.Beta(1.0, 1.0))
    numpyro.sample("y", dist.ZeroInflatedPoisson(zi, rate), obs=column("visits"))


def labels() -> None:
    """choice ~ x"""
    x, (choice, _) = column("x"), codes("choice")
    logits = [jnp.zeros(len(ROWS))]
    for level in ("car", "train"):
        start = numpyro.sample(f"intercept_{level}", dist.Normal(0.0, 2.5))
        logits.append(start + numpyro.sample(f"b_x_{level}", dist.Normal(0.0, 2.6)) * (x - x.mean()))
    numpyro.sample("y", dist.Categorical(logits=jnp.stack(logits, axis=1)), obs=choice)


def stepped() -> None:
    """y ~ mo(dose)"""
    shares_of = numpyro.sample("z_step", dist.Dirichlet(jnp.ones(3)))
    way = jnp.concatenate([jnp.zeros(1), jnp.cumsum(shares_of)])[column("dose").astype(int) - 1]
    intercept = numpyro.sample("intercept", dist.Normal(11.0, 7.8))
    numpyro.sample(
        "y", dist.Normal(intercept + numpyro.sample("b_dose", dist.Normal(0.0, 7.8)) * way, left()), obs=column("y")
    )


def imputed() -> None:
    """y ~ mi(bmi) + x"""
    seen = np.array([row["bmi"] != "" for row in ROWS])
    known = np.array([float(row["bmi"] or 0.0) for row in ROWS])
    centre = numpyro.sample("bmi_mean", dist.Normal(25.0, 3.0))
    spread = numpyro.sample("bmi_sd", dist.HalfNormal(3.0))
    numpyro.sample("bmi", dist.Normal(centre, spread), obs=known[seen])
    count = int((~seen).sum())
    cells = centre + spread * numpyro.sample("z_bmi", dist.Normal(0.0, 1.0).expand((count,)).to_event(1))
    bmi = jnp.array(known).at[np.flatnonzero(~seen)].set(cells)
    slope = numpyro.sample("b_bmi", dist.Normal(0.0, 2.6))
    mean = line((11.0, 7.8), 8.0) + slope * (bmi - known[seen].mean())
    numpyro.sample("y", dist.Normal(mean, left()), obs=column("y"))


def truncated() -> None:
    """y | trunc(lb = -20) ~ x + (1 | g)"""
    g, groups = codes("g")
    mean = line((11.0, 7.8), 8.0) + varying("g_intercept", 3.1, (groups,))[g]
    numpyro.sample("y", dist.TruncatedNormal(mean, left(), low=-20.0), obs=column("y"))


def heavy() -> None:
    """y ~ x + z"""
    z = column("z")
    mean = line((11.0, 7.8), 8.0) + numpyro.sample("b_z", dist.Normal(0.0, 0.93)) * (z - z.mean())
    nu = numpyro.sample("nu", dist.Gamma(2.0, 0.1))
    numpyro.sample("y", dist.StudentT(nu, mean, left()), obs=column("y"))


def skewed() -> None:
    """stay ~ log(income) + (1 | g)"""
    g, groups = codes("g")
    eta = line((1.6, 1.5), 1.9, "log_income", jnp.log(column("income")))
    eta = eta + varying("g_intercept", 0.5, (groups,))[g]
    shape = numpyro.sample("shape", dist.LogNormal(0.54, 1.0))
    numpyro.sample("y", dist.Gamma(shape, shape * jnp.exp(-eta)), obs=column("stay"))


def waiting() -> None:
    """stay ~ treated + (1 | g)"""
    g, groups = codes("g")
    eta = numpyro.sample("intercept", dist.Normal(1.6, 1.5)) + varying("g_intercept", 0.5, (groups,))[g]
    eta = eta + numpyro.sample("b_treated", dist.Normal(0.0, 1.0)) * column("treated")
    numpyro.sample("y", dist.Exponential(jnp.exp(-eta)), obs=column("stay"))


def correlated() -> None:
    """y ~ f + (f | g)"""
    g, groups = codes("g")
    mean = numpyro.sample("intercept", dist.Normal(11.0, 7.8)) + factor(7.8)
    names = ("sd_g_intercept", "sd_g_f_b", "sd_g_f_c")
    spread = jnp.stack([numpyro.sample(name, dist.HalfNormal(3.1)) for name in names])
    root = numpyro.sample("z_root", dist.LKJCholesky(3, 2.0))
    effect = numpyro.sample("z_effect", dist.Normal(0.0, 1.0).expand((groups, 3)).to_event(2)) @ root.T * spread
    by_f = effect[g, 1] * is_level("f", "b") + effect[g, 2] * is_level("f", "c")
    numpyro.sample("y", dist.Normal(mean + effect[g, 0] + by_f, left()), obs=column("y"))


def run(model) -> dict[str, list[float]]:
    sampler = MCMC(NUTS(model, target_accept_prob=0.98), num_warmup=1500, num_samples=5000, num_chains=4,
                   chain_method="sequential", progress_bar=False)  # fmt: skip
    sampler.run(jax.random.PRNGKey(1))
    diverged = int(sampler.get_extra_fields()["diverging"].sum())
    if diverged > 10:
        raise RuntimeError(f"{model.__doc__}: {diverged} of 20,000 transitions diverged")
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


MODELS = (
    nested, counts, ordinal, spline, hurdle, process, autoregressive, censored, spreading, shares, overdispersed,
    inflated, labels, stepped, imputed, truncated, heavy, skewed, waiting, correlated,
)  # fmt: skip


def main() -> None:
    models = {model.__doc__: model for model in MODELS}
    json.dump({formula: run(model) for formula, model in models.items()}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
