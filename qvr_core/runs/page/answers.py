"""What a page's worker is answered: plain values that JavaScript reads."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from qvr_core.codegen.kernels import nuts_and_hmc, rhat_and_ess
from qvr_core.codegen.source import Text
from qvr_core.data.problems import DataProblem
from qvr_core.dsl import CheckFailed
from qvr_core.runs.page.data import Files
from qvr_core.runs.page.sampling import sampling
from qvr_core.runtime.values.errors import RuntimeProblem

Referee = Callable[[Callable[..., Sequence[float]]], str]
"""What is wrong with a density, '' where nothing is; it takes coordinates and gives the value, then the gradient."""


def prepared(asked: str) -> tuple[str, dict[str, bytes], Referee | None]:
    """The answer to a request, both JSON; what it consists of beside that, the module and the constants of its
    functions as numbers of eight bytes; and what compares the module with the program, step by step.

    A request has `text`, `main`, `named` and `columns` (as in qvr.toml, paths), `chains`, `warmup` and `seed`.  Where
    the program cannot be sampled the answer says why: `problem`.
    """
    request: Mapping[str, Any] = json.loads(asked)
    columns = {name: one if isinstance(one, str) else tuple(one) for name, one in request.get("columns", {}).items()}
    files = Files(request.get("main"), request.get("named", {}), columns)
    try:
        made = sampling(
            request["text"], files, chains=request["chains"], warmup=request["warmup"], seed=request["seed"]
        )
    except CheckFailed as failed:
        return json.dumps({"problem": str(failed)}), {}, None
    except (DataProblem, RuntimeProblem) as problem:
        return json.dumps({"problem": str(problem)}), {}, None
    told = {
        "width": made.width,
        "rooms": [made.density.room, made.report.room],
        "reported": [asdict(one) for one in made.reported],
        "windowStart": made.window_start, "ends": made.ends, "early": made.early, "earlyDepth": made.early_depth,
        "depth": made.most_depth, "rows": made.checkpoints + 2 * (made.most_depth + 1),
        "numbers": nuts_and_hmc.NUMBERS, "told": rhat_and_ess.TOLD, "reports": nuts_and_hmc.REPORTED,
        "places": {
            "logDensity": nuts_and_hmc.LOG_DENSITY, "step": nuts_and_hmc.STEP, "diverging": nuts_and_hmc.DIVERGING,
            "steps": nuts_and_hmc.STEPS,
        },
    }  # fmt: skip
    parts = {"module": made.module, "starts": _doubles([number for start in made.starts for number in start])}
    parts |= {**_constants("density", made.density), **_constants("report", made.report)}
    return json.dumps(told), parts, lambda density: made.disagreement(density) or ""


def _constants(name: str, text: Text) -> dict[str, bytes]:
    return {f"{name}Reals": _doubles(text.reals), f"{name}Wholes": array("q", text.wholes).tobytes()}


def _doubles(numbers: Sequence[float]) -> bytes:
    return array("d", numbers).tobytes()
