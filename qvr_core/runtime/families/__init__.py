"""Families of distributions at run time: plain functions of tensors, no distribution objects.

The functions of the files here are the fields of a `RuntimeFamily`, whose names they end in, and take what it says.
`x` and parameters broadcast to (…), of a family of vectors to (…, *event); parameters are the canonical ones, `logits`
where a user may say `probs`, `scale_tril` where a covariance.

- `x_log_prob(value, *parameters)`: (…), in nats, −∞ outside the support, never NaN for parameters that may be.
- `x_transform(noise, *parameters)`: the draw of standard Normal or uniform noise (…); differentiable in parameters.
- `x_draw(shape, generator, *parameters)`: a draw of `shape`, where no noise is free of parameters.
- `x_tails(value, *parameters)`: log P(X ≤ value) and log P(X > value), float64, for values inside the support.
- `x_quantile(lower, upper, *parameters)`: the value with these tails, float64.

None raises for parameters outside their ranges: `soundness.py` names those once something has stopped being finite.
Sources of algorithms stand at the functions that follow one; densities and tails are compared with torch and scipy.
"""

from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.random_draws import standard_noise
from qvr_core.runtime.families.registry import RUNTIME_FAMILIES

__all__ = ["RUNTIME_FAMILIES", "RuntimeFamily", "standard_noise"]
