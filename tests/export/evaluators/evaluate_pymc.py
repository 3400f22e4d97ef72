"""`python evaluate_pymc.py FOLDER`: log densities of exported PyMC models, without Jacobians, as JSON.

Where a model moves standardised values, the density is that of the value itself: less the log of its derivative.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

# nothing is compiled: the points are few
pytensor.config.cxx = ""
pytensor.config.linker = "py"


def densities(path):
    case = json.loads(path.with_suffix(".json").read_text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data = {name: np.array(value) if isinstance(value, list) else value for name, value in case["data"].items()}
    model = getattr(module, path.stem)(data)
    free = {rv.name: rv for rv in model.free_RVs}
    of_value = pytensor.function(
        list(free.values()), {one.name: one for one in model.deterministics}, on_unused_input="ignore"
    )
    density = model.compile_logp(jacobian=False)
    found = []
    for point in case["points"]:
        values = {name: np.array(value, float) for name, value in point["values"].items()}
        less = 0.0
        for name in [name for name in free if name.endswith("_correlation")]:
            factor = values.pop(name.removesuffix("_correlation"))
            assert len(factor) == 2  # where the derivative of the correlations by the factor is 1
            values[name] = (factor @ factor.T)[np.triu_indices(len(factor), 1)]
            less += constant(free[name])
        standard = [name for name in free if name.endswith("_standard")]
        moved = {name.removesuffix("_standard"): values.pop(name.removesuffix("_standard")) for name in standard}
        at = [
            of_value(*(values.get(name, np.full(moved.get(name.removesuffix("_standard"), np.zeros(())).shape, one))
                       for name in free))
            for one in (0.0, 1.0)
        ]  # fmt: skip
        for name, value in moved.items():
            slope = at[1][name] - at[0][name]
            values[f"{name}_standard"] = (value - at[0][name]) / slope
            less += np.log(np.abs(slope)).sum()
        given = {}
        for rv in free.values():
            transform, value = model.rvs_to_transforms[rv], values[rv.name]
            inner = value if transform is None else transform.forward(pt.as_tensor(value), *rv.owner.inputs).eval()
            given[model.rvs_to_values[rv].name] = inner
        found.append(float(density(given)) - less)
    return found


def constant(correlation):
    """The log of the integral of PyMC's own density of the correlation of two: it is not 1 for every eta."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    value = pt.dvector()
    density = pytensor.function([value], pm.logp(correlation, value))
    return float(np.log(sum(w * np.exp(density(np.array([x]))) for x, w in zip(nodes, weights, strict=True))))


print(json.dumps({path.stem: densities(path) for path in sorted(Path(sys.argv[1]).glob("*.py"))}))
