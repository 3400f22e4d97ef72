"""`python evaluate_numpyro.py FOLDER`: log densities of exported NumPyro models, as JSON."""

import importlib.util
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from numpyro.infer.util import log_density


def densities(path):
    case = json.loads(path.with_suffix(".json").read_text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = getattr(module, path.stem)
    data = {name: jnp.array(value) if isinstance(value, list) else value for name, value in case["data"].items()}
    density = jax.jit(lambda values: log_density(model, (data,), {}, values)[0])
    points = [{name: jnp.array(value, float) for name, value in one["values"].items()} for one in case["points"]]
    return [float(density(values)) for values in points]


print(json.dumps({path.stem: densities(path) for path in sorted(Path(sys.argv[1]).glob("*.py"))}))
