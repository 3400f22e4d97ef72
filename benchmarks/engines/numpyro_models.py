"""The eight models of `benchmarks/models.py` as a user of NumPyro writes them; sites have the names of latents."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from numpyro import sample


def _standard(name: str, *shape: int) -> Any:
    return sample(name, dist.Normal(jnp.zeros(shape), 1.0).to_event(len(shape)))


def eight_schools(y: Any, sigma: Any) -> None:
    mu = sample("mu", dist.Normal(0.0, 5.0))
    tau = sample("tau", dist.HalfCauchy(5.0))
    sample("y", dist.Normal(mu + tau * _standard("raw", 8), sigma), obs=y)


def nile(flow: Any) -> None:
    start = sample("start", dist.Normal(10.0, 5.0))
    drift = sample("drift", dist.HalfNormal(1.0))
    noise = sample("noise", dist.HalfNormal(2.0))
    sample("flow", dist.Normal(start + drift * jnp.cumsum(_standard("z", 100)), noise), obs=flow)


def varying_slopes(x: Any, group: Any, y: Any) -> None:
    b = sample("b", dist.Normal(jnp.zeros(2), 2.0).to_event(1))
    tau = sample("tau", dist.HalfNormal(jnp.ones(2)).to_event(1))
    factor = sample("L", dist.LKJCholesky(2, 2.0))
    r = _standard("z", 22, 2) @ (tau[:, None] * factor).T
    sigma = sample("sigma", dist.HalfNormal(1.0))
    sample("y", dist.Normal(b[0] + r[group, 0] + (b[1] + r[group, 1]) * x, sigma), obs=y)


def radon(county: Any, ground: Any, y: Any) -> None:
    overall = sample("overall", dist.Normal(1.0, 1.0))
    between = sample("between", dist.HalfNormal(0.5))
    level = overall + between * _standard("z", 85)
    by_floor = sample("by_floor", dist.Normal(0.0, 1.0))
    within = sample("within", dist.HalfNormal(1.0))
    sample("y", dist.Normal(level[county] + by_floor * ground, within), obs=y)


def logistic(X: Any, y: Any) -> None:
    sample("y", dist.Bernoulli(logits=X @ _standard("w", X.shape[1])), obs=y)


def missing(x: Any, seen: Any, w: Any, y: Any) -> None:
    a, b, c = (sample(name, dist.Normal(0.0, 2.0)) for name in "abc")
    sigma = sample("sigma", dist.HalfNormal(1.0))
    chance = sample("chance", dist.Beta(2.0, 2.0))
    known = a + b * seen * x + c * w
    without = jnp.log1p(-chance) + dist.Normal(known, sigma).log_prob(y)
    with_it = jnp.log(chance) + dist.Normal(known + b * (1.0 - seen), sigma).log_prob(y)
    numpyro.factor("y", logsumexp(jnp.stack([without, with_it]), axis=0).sum())


def ordinal(X: Any, rating: Any) -> None:
    b = _standard("b", 3)
    ordered = dist.transforms.OrderedTransform()
    raw = sample("raw", dist.ImproperUniform(dist.constraints.real_vector, (), (6,)))
    cuts = numpyro.deterministic("cuts", ordered(raw))
    numpyro.factor("prior", dist.Normal(0.0, 3.0).log_prob(cuts).sum() + ordered.log_abs_det_jacobian(raw, cuts))
    sample("rating", dist.OrderedLogistic(X @ b, cuts), obs=rating)


def crossed(X: Any, person: Any, item: Any, place: Any, y: Any) -> None:
    a = sample("a", dist.Normal(0.0, 2.0))
    b = _standard("b", 3)
    scales = [sample(f"by_{name}", dist.HalfNormal(1.0)) for name in ("person", "item", "place")]
    p, i, l = _standard("p", 40), _standard("i", 25), _standard("l", 8)  # noqa: E741
    sigma = sample("sigma", dist.HalfNormal(1.0))
    eta = a + X @ b + scales[0] * p[person] + scales[1] * i[item] + scales[2] * l[place]
    sample("y", dist.Normal(eta, sigma), obs=y)


MODELS = {
    "eight schools": eight_schools,
    "nile": nile,
    "varying slopes": varying_slopes,
    "radon": radon,
    "logistic": logistic,
    "missing": missing,
    "ordinal": ordinal,
    "crossed": crossed,
}
