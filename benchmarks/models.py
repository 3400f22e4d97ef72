"""Eight statistical models with data made under a fixed seed: what NUTS is measured on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Data = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Model:
    """A program and what makes its data."""

    text: str
    make: Callable[[torch.Generator], Data]

    def data(self) -> Data:
        """The data, the same each time, in double precision."""
        return self.make(torch.Generator().manual_seed(0))


def _normal(g: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=g, dtype=torch.float64)


def _index(g: torch.Generator, count: int, rows: int) -> Tensor:
    return torch.randint(count, (rows,), generator=g)


def _schools(_: torch.Generator) -> Data:
    effects = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
    errors = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)
    return {"y": torch.tensor(effects).double(), "sigma": torch.tensor(errors).double()}


SCHOOLS = Model(
    """
object School : FinSet 8
program eight_schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample raw : School <- Normal(0.0, 1.0)
    observe y : School <- Normal(mu + tau * raw, sigma)
    return mu
""",
    _schools,
)


def _nile(g: torch.Generator) -> Data:
    level = 11.0 + 0.4 * _normal(g, 100).cumsum(0)
    return {"flow": level + 1.2 * _normal(g, 100)}


NILE = Model(
    """
object Year : FinSet 100
program nile : Year -> Year
    sample start <- Normal(10.0, 5.0)
    sample drift <- HalfNormal(1.0)
    sample noise <- HalfNormal(2.0)
    sample z : Year <- Normal(0.0, 1.0)
    let level = start + drift * cumsum(z)
    observe flow : Year <- Normal(level, noise)
    return level
""",
    _nile,
)


def _slopes(g: torch.Generator) -> Data:
    x, group = _normal(g, 220), _index(g, 22, 220)
    raw = _normal(g, 22, 2)
    intercept, slope = 0.8 * raw[:, 0], 0.5 * (0.6 * raw[:, 0] + 0.8 * raw[:, 1])
    y = 1.0 + intercept[group] + (0.5 + slope[group]) * x + 0.7 * _normal(g, 220)
    return {"x": x, "group": group, "y": y}


VARYING_SLOPES = Model(
    """
object Row : FinSet 220
object Group : FinSet 22
object Effect : FinSet 2
program varying_slopes : Row -> Row
    sample b : Effect <- Normal(0.0, 2.0)
    sample tau : Effect <- HalfNormal(1.0)
    sample L : CholeskyFactor 2 <- LKJCholesky(2.0)
    sample z : Group * Effect <- Normal(0.0, 1.0)
    sample sigma <- HalfNormal(1.0)
    let r[g : Group, e : Effect] = tau[e] * sum(L[e, f] * z[g, f] for f : Effect)
    observe y : Row <- Normal(b[0] + r[group, 0] + (b[1] + r[group, 1]) * x, sigma)
    return b
""",
    _slopes,
)


def _radon(g: torch.Generator) -> Data:
    county = _index(g, 85, 919)
    ground = torch.bernoulli(torch.full((919,), 0.8, dtype=torch.float64), generator=g)
    level = 1.3 + 0.35 * _normal(g, 85)
    return {"county": county, "ground": ground, "y": level[county] - 0.6 * ground + 0.75 * _normal(g, 919)}


RADON = Model(
    """
object House : FinSet 919
object County : FinSet 85
program radon : House -> House
    sample overall <- Normal(1.0, 1.0)
    sample between <- HalfNormal(0.5)
    sample z : County <- Normal(0.0, 1.0)
    sample by_floor <- Normal(0.0, 1.0)
    sample within <- HalfNormal(1.0)
    let level = overall + between * z
    observe y : House <- Normal(level[county] + by_floor * ground, within)
    return overall
""",
    _radon,
)


def _logistic(g: torch.Generator) -> Data:
    x = _normal(g, 1000, 10)
    chance = (x @ torch.linspace(-1.0, 1.0, 10).double()).sigmoid()
    return {"X": x, "y": torch.bernoulli(chance, generator=g).long()}


LOGISTIC = Model(
    """
object Row : FinSet 1000
program logistic : Row -> Row
    sample w : Real 10 <- Normal(0.0, 1.0)
    observe y : Row <- Bernoulli(logits=mv(X, w))
    return w
""",
    _logistic,
)


def _missing(g: torch.Generator) -> Data:
    x = torch.bernoulli(torch.full((400,), 0.35, dtype=torch.float64), generator=g)
    seen = torch.bernoulli(torch.full((400,), 0.6, dtype=torch.float64), generator=g)
    w = _normal(g, 400)
    y = 0.5 + 1.2 * x - 0.4 * w + 0.8 * _normal(g, 400)
    return {"x": x * seen, "seen": seen, "w": w, "y": y}


MISSING = Model(
    """
object Row : FinSet 400
object Yes : FinSet 2
program missing : Row -> Row
    sample a <- Normal(0.0, 2.0)
    sample b <- Normal(0.0, 2.0)
    sample c <- Normal(0.0, 2.0)
    sample sigma <- HalfNormal(1.0)
    sample chance <- Beta(2.0, 2.0)
    marginalize u : Row <- Bernoulli(chance)
        let here = seen * x + (1.0 - seen) * u
        observe y : Row <- Normal(a + b * here + c * w, sigma)
    return b
""",
    _missing,
)


def _ordinal(g: torch.Generator) -> Data:
    x = _normal(g, 800, 3)
    cuts = torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], dtype=torch.float64)
    u = torch.rand(800, generator=g, dtype=torch.float64)
    latent = x @ torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64) + torch.log(u / (1 - u))
    return {"X": x, "rating": torch.bucketize(latent, cuts)}


ORDINAL = Model(
    """
object Row : FinSet 800
object Rating : FinSet 7
program ordinal : Row -> Rating
    sample b : Real 3 <- Normal(0.0, 1.0)
    sample cuts : Ordered 6 <- Normal(0.0, 3.0)
    observe rating : Row <- OrderedLogistic(mv(X, b), cuts)
    return b
""",
    _ordinal,
)


def _crossed(g: torch.Generator) -> Data:
    rows, x = 1200, _normal(g, 1200, 3)
    person, item, place = _index(g, 40, rows), _index(g, 25, rows), _index(g, 8, rows)
    level = 0.6 * _normal(g, 40)[person] + 0.4 * _normal(g, 25)[item] + 0.8 * _normal(g, 8)[place]
    y = 0.3 + level + x @ torch.tensor([0.8, -0.4, 0.1], dtype=torch.float64) + 0.9 * _normal(g, rows)
    return {"X": x, "person": person, "item": item, "place": place, "y": y}


CROSSED = Model(
    """
object Row : FinSet 1200
object Person : FinSet 40
object Item : FinSet 25
object Place : FinSet 8
program crossed : Row -> Row
    sample a <- Normal(0.0, 2.0)
    sample b : Real 3 <- Normal(0.0, 1.0)
    sample by_person <- HalfNormal(1.0)
    sample by_item <- HalfNormal(1.0)
    sample by_place <- HalfNormal(1.0)
    sample p : Person <- Normal(0.0, 1.0)
    sample i : Item <- Normal(0.0, 1.0)
    sample l : Place <- Normal(0.0, 1.0)
    sample sigma <- HalfNormal(1.0)
    let eta = a + mv(X, b) + by_person * p[person] + by_item * i[item] + by_place * l[place]
    observe y : Row <- Normal(eta, sigma)
    return b
""",
    _crossed,
)

MODELS = {
    "eight schools": SCHOOLS,
    "nile": NILE,
    "varying slopes": VARYING_SLOPES,
    "radon": RADON,
    "logistic": LOGISTIC,
    "missing": MISSING,
    "ordinal": ORDINAL,
    "crossed": CROSSED,
}
