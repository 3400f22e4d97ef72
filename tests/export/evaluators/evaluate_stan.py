"""`python evaluate_stan.py FOLDER`: log densities of exported Stan programs without their Jacobians, as JSON.

Each is compiled without optimisation, against a header that is compiled once and kept beside the environment.
"""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpstan
import numpy as np

PACKAGE = Path(httpstan.__file__).parent
HEADER = Path(sys.prefix).parent / "stan-header"
MACROS = [
    "BOOST_DISABLE_ASSERTS", "BOOST_PHOENIX_NO_VARIADIC_EXPRESSION", "STAN_THREADS", "_REENTRANT",
    "_GLIBCXX_USE_CXX11_ABI=0",
]  # fmt: skip
COMPILE = [
    "g++", "-O0", "-std=c++14", "-fPIC", "-w", *(f"-D{macro}" for macro in MACROS), f"-I{HEADER}",
    f"-I{PACKAGE / 'include'}", f"-I{sysconfig.get_paths()['include']}",
]  # fmt: skip
LINK = [
    str(PACKAGE / "stan_services.o"), f"-L{PACKAGE / 'lib'}", f"-Wl,-rpath,{PACKAGE / 'lib'}", "-lsundials_cvodes",
    "-lsundials_idas", "-lsundials_nvecserial", "-ltbb",
]  # fmt: skip


def called(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[:1]}: {done.stderr[-4000:]}")


def header():
    """The header that every program begins with."""
    compiled = HEADER / "stan" / "model" / "model_header.hpp.gch"
    if not compiled.exists():
        compiled.parent.mkdir(parents=True, exist_ok=True)
        made = compiled.with_suffix(f".{os.getpid()}")
        called(*COMPILE, "-x", "c++-header", PACKAGE / "include" / "stan" / "model" / "model_header.hpp", "-o", made)
        made.rename(compiled)


def built(path):
    """The module of a program."""
    code, library = path.with_suffix(".cpp"), path.with_suffix(".so")
    called(PACKAGE / "stanc", "--name", f"model_{path.stem}", "--o", code, path)
    called(*COMPILE, "-shared", code, *LINK, "-o", library)
    return library


def densities(path, library):
    case = json.loads(path.with_suffix(".json").read_text())
    spec = importlib.util.spec_from_file_location("stan_services", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shapes = dict(zip(module.get_param_names(case["data"]), module.get_dims(case["data"]), strict=True))
    return [density(module, case["data"], one["values"], shapes) for one in case["points"]]


def density(module, data, values, shapes):
    given = {}
    for name, value in values.items():
        own, value = called_here(name, shapes), np.asarray(value, float)
        if own == f"{name}_contrasts":
            value = contrasts(value)
        given[own] = (value[:-1] if own == f"{name}_free" else value).reshape(shapes[own]).tolist()
    at = module.transform_inits(data, given)
    return module.log_prob(data, at, False)


def contrasts(value):
    """The coordinates of vectors (…, n) that add up to 0, by the contrasts of Helmert."""
    k = np.arange(1, value.shape[-1])
    return (np.cumsum(value, -1)[..., :-1] - k * value[..., 1:]) / np.sqrt(k * (k + 1.0))


def called_here(name, shapes):
    """Names that Stan reserves have an underscore; of a vector that adds up to 0, all but the last are parameters, or
    its coordinates."""
    return next(one for one in (f"{name}_contrasts", f"{name}_free", name, f"{name}_") if one in shapes)


if __name__ == "__main__":
    paths = sorted(Path(sys.argv[1]).glob("*.stan"))
    header()
    with ThreadPoolExecutor(2) as pool:
        libraries = list(pool.map(built, paths))
    print(json.dumps({path.stem: densities(path, library) for path, library in zip(paths, libraries, strict=True)}))
