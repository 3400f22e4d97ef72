"""What each guide makes of targets that no independent Normals are: `python -m benchmarks.flows`.

A funnel, two modes and a strong correlation, whose means and deviations are known, and whose evidence is 1, so the
bound is −KL(q ‖ p).  Each guide takes the same steps of Adam from the same seed; the errors are of 20,000 of its draws.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch

from qvr_core.dsl import loads
from qvr_core.inference import (
    ELBO,
    SVI,
    AutoDAISGuide,
    AutoIAFGuide,
    AutoMixtureGuide,
    AutoMultivariateNormalGuide,
    AutoNormalGuide,
    AutoPathfinderGuide,
    AutoSplineGuide,
    Predictive,
)
from qvr_core.inference.diagnostics.pareto import pareto_k
from qvr_core.inference.objectives import weigh

HEAD = "object Row : FinSet 4\nprogram target : Row -> Real 1\n"
TARGETS = {
    "funnel, v": (
        "sample v <- Normal(0.0, 1.5)\n    sample z[i : Row] <- Normal(0.0, exp(0.5 * v))\n    return v", "v", 0.0, 1.5
    ),
    "two modes": (
        "sample v <- Mixture([0.3, 0.7], Normal(-3.0, 0.7), Normal(2.0, 1.0))\n    return v",
        "v", 0.5, (0.3 * (0.49 + 12.25) + 0.7 * (1.0 + 2.25)) ** 0.5,
    ),
    "correlation 0.99": (
        "sample v <- Normal(1.0, 2.0)\n    sample z[i : Row] <- Normal(v, 0.28)\n    return v", "v", 1.0, 2.0
    ),
}  # fmt: skip
GUIDES: dict[str, Any] = {
    "normal": AutoNormalGuide,
    "multivariate_normal": AutoMultivariateNormalGuide,
    "mixture": AutoMixtureGuide,
    "pathfinder": AutoPathfinderGuide,
    "dais": AutoDAISGuide,
    "iaf": AutoIAFGuide,
    "spline": AutoSplineGuide,
}
STEPS, PARTICLES, DRAWS = 4_000, 32, 20_000


def main() -> int:
    """The table of docs/results.md, or the rows of the guides that are named."""
    asked = sys.argv[1:] or list(GUIDES)
    torch.set_num_threads(1)
    print("| target | guide | bound | Pareto k | error of the mean, in sd | sd, times the true one | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, (text, latent, mean, sd) in TARGETS.items():
        for called in asked:
            torch.manual_seed(1)
            model = loads(f"{HEAD}    {text}\nexport target\n").morphism
            guide = GUIDES[called](model)
            start = time.process_time()
            if isinstance(guide, AutoPathfinderGuide):
                guide.climb(model)
            optimizer = torch.optim.Adam(guide.parameters(), lr=0.01)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
            svi = SVI(model, guide, optimizer, ELBO(num_particles=PARTICLES))
            for _ in range(STEPS):
                svi.step(None, {})
                schedule.step()
            spent = time.process_time() - start
            with torch.no_grad():
                log_weights = weigh(model, guide, model.input(None), {}, DRAWS)[1].double()
                drawn = Predictive(model, guide, num_samples=DRAWS)(None)[latent].double().flatten()
            k, bound = pareto_k(log_weights.numpy()), float(log_weights.mean())
            off, wide = abs(float(drawn.mean()) - mean) / sd, float(drawn.std()) / sd
            print(f"| {name} | `{called}` | {bound:.3f} | {k:.2f} | {off:.3f} | {wide:.3f} | {spent:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
