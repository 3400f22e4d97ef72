"""`std/series.qvr` against the same densities as loops over torch's distributions."""

import torch
from torch import Tensor
from torch import distributions as d

from qvr_core.dsl import loads
from qvr_core.inference import Predictive

SETS = "object Time : FinSet 12\nobject Lag : FinSet 2\nobject Free : FinSet 3\n"
HALF = d.HalfNormal(1.0)


def density(call: str, values: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """log p of the values of a draw from a template, and what the draw gives."""
    text = f'import "std/series.qvr" as series\n{SETS}program p : Time -> Real 1\n'
    text += f"    sample u <- series.{call}\n    return u\nexport p\n"
    model = loads(text).morphism
    given = {name: value.unsqueeze(0) for name, value in values.items()}
    return model.log_joint(None, given)[0], model.rsample(None, observations=given)[0]


def test_local_level() -> None:
    sd, level = torch.tensor(0.4), torch.randn(12)
    found, given = density("local_level(Time, start=3.0)", {"u.sd": sd, "u": level})
    wanted = HALF.log_prob(sd) + d.Normal(0.0, 3.0).log_prob(level[0])
    for t in range(1, 12):
        wanted = wanted + d.Normal(level[t - 1], sd).log_prob(level[t])
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(given, level)


def test_autoregression() -> None:
    sd, phi, x = torch.tensor(0.4), torch.tensor([0.5, -0.2]), torch.randn(12)
    found, given = density("autoregression(Time, Lag, coefficient=0.7)", {"u.sd": sd, "u.phi": phi, "u": x})
    wanted = HALF.log_prob(sd) + d.Normal(0.0, 0.7).log_prob(phi).sum() + d.Normal(0.0, 1.0).log_prob(x[:2]).sum()
    for t in range(2, 12):
        wanted = wanted + d.Normal(phi[0] * x[t - 1] + phi[1] * x[t - 2], sd).log_prob(x[t])
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(given, x)


def test_seasonal() -> None:
    sd, season = torch.tensor(0.05), torch.randn(12)
    found, given = density("seasonal(Time, Free, start=2.0)", {"u.sd": sd, "u": season})
    wanted = d.HalfNormal(0.1).log_prob(sd) + d.Normal(0.0, 2.0).log_prob(season[:3]).sum()
    for t in range(3, 12):
        wanted = wanted + d.Normal(-season[t - 3 : t].sum(), sd).log_prob(season[t])
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(given, season)


def test_garch() -> None:
    omega, alpha, share, y = torch.tensor(0.2), torch.tensor(0.3), torch.tensor(0.6), torch.randn(12)
    values = {"u.omega": omega, "u.alpha": alpha, "u.share": share}
    text = f'import "std/series.qvr" as series\n{SETS}program p : Time -> Real 1\n    data y : Time\n'
    text += "    sample u <- series.garch(Time, scale=2.0, y=y)\n    return u\nexport p\n"
    model = loads(text).morphism
    given = {**{name: value.unsqueeze(0) for name, value in values.items()}, "y": y}
    beta = (1.0 - alpha) * share
    variance = [omega / (1.0 - alpha - beta)]
    for t in range(1, 12):
        variance.append(omega + alpha * y[t - 1] ** 2 + beta * variance[t - 1])
    sigma = torch.stack(variance).sqrt()
    wanted = d.HalfNormal(2.0).log_prob(omega) + d.Normal(0.0, sigma).log_prob(y).sum()  # the two Betas are flat
    torch.testing.assert_close(model.log_joint(None, given)[0], wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model.rsample(None, observations=given)[0], sigma)


def test_garch_can_be_drawn_whole() -> None:
    """Without data the series and its deviations are drawn together: the deviations follow from the series."""
    text = f'import "std/series.qvr" as series\n{SETS}program p : Time -> Real 1\n    data y : Time\n'
    text += "    sample u <- series.garch(Time, y=y)\n    return u\nexport p\n"
    torch.manual_seed(0)
    model = loads(text).morphism
    drawn = {name: value[0] for name, value in Predictive(model, num_samples=1)(None).items()}
    assert drawn["y"].shape == (12,)
    beta = (1.0 - drawn["u.alpha"]) * drawn["u.share"]
    variance = [drawn["u.omega"] / (1.0 - drawn["u.alpha"] - beta)]
    for t in range(1, 12):
        variance.append(drawn["u.omega"] + drawn["u.alpha"] * drawn["y"][t - 1] ** 2 + beta * variance[t - 1])
    torch.testing.assert_close(model.rsample(None, observations=drawn)[0], torch.stack(variance).sqrt())
