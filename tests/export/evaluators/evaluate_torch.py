"""`python evaluate_torch.py FOLDER`: log densities of exported torch modules, as JSON, without our packages."""

import importlib.util
import json
import sys
from pathlib import Path

import torch

# an export that needs them fails
sys.modules.update({"qvr": None, "qvr_core": None, "qvr_lsp": None})


def densities(path):
    case = json.loads(path.with_suffix(".json").read_text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (kind,) = (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == path.stem)
    model = kind(case["data"])
    found = []
    for point in case["points"]:
        values = {name: torch.tensor(value, dtype=torch.float64) for name, value in point["values"].items()}
        values = {name + "_" if name == "lambda" else name: value for name, value in values.items()}
        assert {name: tuple(shape) for name, shape in model.shapes().items()} == {
            name: tuple(value.shape) for name, value in values.items()
        }
        found.append(float(model(values)))
    return found


print(json.dumps({path.stem: densities(path) for path in sorted(Path(sys.argv[1]).glob("*.py"))}))
