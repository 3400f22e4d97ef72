"""`std/priors.qvr` against densities written out with torch's distributions."""

import torch
from torch import Tensor
from torch import distributions as d

from qvr_core.dsl import loads

SETS = "object Gene : FinSet 5\nobject School : FinSet 4\nobject Effect : FinSet 3\nobject Row : FinSet 6\n"


def density(call: str, returned: str, latents: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """log p of the latents of a draw from a template, and the value that the draw has."""
    text = f'import "std/priors.qvr" as priors\n{SETS}program p : Row -> Real 1\n'
    text += f"    sample u <- priors.{call}\n    return u\nexport p\n"
    model = loads(text).morphism
    log_joint = model.log_joint(None, {f"u.{name}": value.unsqueeze(0) for name, value in latents.items()})
    given = {f"u.{name}": value.unsqueeze(0) for name, value in latents.items()}
    return log_joint[0], model.rsample(None, observations=given)[0]


def test_horseshoe() -> None:
    tau, lam, z = torch.tensor(0.3), torch.rand(5) + 0.1, torch.randn(5)
    found, beta = density("horseshoe(Gene, 0.5)", "beta", {"tau": tau, "lam": lam, "z": z})
    wanted = (
        d.HalfCauchy(0.5).log_prob(tau) + d.HalfCauchy(1.0).log_prob(lam).sum() + d.Normal(0.0, 1.0).log_prob(z).sum()
    )
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(beta, tau * lam * z)


def test_r2d2() -> None:
    r2, phi, z = torch.tensor(0.7), d.Dirichlet(torch.ones(5)).sample(), torch.randn(5)
    found, beta = density("r2d2(Gene, mean=0.4, precision=5.0, spread=0.3)", "beta", {"r2": r2, "phi": phi, "z": z})
    wanted = d.Beta(2.0, 3.0).log_prob(r2) + d.Dirichlet(torch.full((5,), 0.3)).log_prob(phi)
    torch.testing.assert_close(found, wanted + d.Normal(0.0, 1.0).log_prob(z).sum(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(beta, (phi * 0.7 / 0.3).sqrt() * z)


def test_lkj_effects() -> None:
    tau, cholesky, z = torch.rand(3) + 0.1, d.LKJCholesky(3, 1.5).sample(), torch.randn(4, 3)
    found, u = density("lkj_effects(School, Effect, sd=0.8, eta=1.5)", "u", {"tau": tau, "L": cholesky, "z": z})
    wanted = d.HalfNormal(0.8).log_prob(tau).sum() + d.LKJCholesky(3, 1.5).log_prob(cholesky)
    torch.testing.assert_close(found, wanted + d.Normal(0.0, 1.0).log_prob(z).sum(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(u, z @ (torch.diag(tau) @ cholesky).T)
