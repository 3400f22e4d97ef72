"""`python sample_numpyro.py FOLDER`: posterior means and standard deviations by NumPyro's own NUTS, as JSON."""

import importlib.util
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from numpyro.infer import MCMC, NUTS


def moments(path):
    case = json.loads(path.with_suffix(".json").read_text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = getattr(module, f"{path.stem}_noncentred", getattr(module, path.stem))
    data = {name: jnp.array(value) if isinstance(value, list) else value for name, value in case["data"].items()}
    chains = MCMC(NUTS(model), num_warmup=500, num_samples=2000, progress_bar=False)
    chains.run(jax.random.PRNGKey(1), data)
    draws = chains.get_samples()
    scalars = [name for name in case["points"][0]["values"] if jnp.ndim(draws.get(name, jnp.zeros((2, 2)))) == 1]
    return {name: [float(draws[name].mean()), float(draws[name].std())] for name in scalars}


print(json.dumps({path.stem: moments(path) for path in sorted(Path(sys.argv[1]).glob("*.py"))}))
