"""The process that draws from priors while somebody types: `python -m qvr_core.runs.worker.prior`.

Loads torch once; then each line that comes in is a `PriorAsked`, and each that goes out its `PriorDrawn`.  It ends with
its stdin.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from qvr_core.runs.worker.pipes import claim_stdout, follow_parent, stdin_lines

if TYPE_CHECKING:
    from qvr_core.inference.stored import Tree
    from qvr_core.runs.record.prior import PriorAsked, PriorDrawn
    from qvr_core.runs.worker.prediction import Drawn

MOST_NUMBERS = 2_000_000
"""Numbers observed times draws: of larger data there are fewer draws."""
NICER = 5
"""Steps behind what the user waits for."""
MOST_OUTSIDE = 0.5
"""The part of the data that may lie where 99 % of the prior's draws do not."""
INNER = (0.005, 0.995)

Draw = Callable[["PriorAsked"], "PriorDrawn"]


def main() -> None:
    """Entry point."""
    answers = claim_stdout()
    follow_parent()
    with contextlib.suppress(AttributeError, OSError):
        os.nice(NICER)
    lines = stdin_lines()
    draw = _load()
    from qvr_core.runs.record.prior import PriorAsked, PriorDrawn

    def tell(answer: PriorDrawn) -> None:
        answers.write(answer.model_dump_json(exclude_none=True).encode("utf-8", "surrogatepass") + b"\n")
        answers.flush()

    tell(PriorDrawn(number=0))  # everything is loaded
    for line in lines:
        tell(draw(PriorAsked.model_validate_json(line)))


def _load() -> Draw:
    """What draws; or what says which package is missing."""
    try:
        from qvr_core.arrays.engine import arrays

        for name in ("qvr_core.runs.figures.summaries", "qvr_core.runs.worker.prediction"):
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        from qvr_core.extras import lacking, remedy

        problem = f"draws need {lacking((error.name or '').partition('.')[0])}: {remedy()}"
        return lambda asked: _refused(asked, problem)
    # one: the editor and the server have the others
    arrays.set_num_threads(1)
    return drawn


def _refused(asked: PriorAsked, problem: str) -> PriorDrawn:
    from qvr_core.runs.record.prior import PriorDrawn

    return PriorDrawn(number=asked.number, problem=problem)


def drawn(asked: PriorAsked) -> PriorDrawn:
    """The summary of draws from a prior, or why there are none."""
    from qvr_core.data.problems import DataProblem
    from qvr_core.runs.figures.summaries import summary_of
    from qvr_core.runs.prepare.failures import Refused
    from qvr_core.runs.record.prior import PriorDrawn
    from qvr_core.runs.worker.prediction import from_prior
    from qvr_core.runtime.values.errors import RuntimeProblem

    try:
        found = from_prior(asked.job, asked.draws, asked.seed, most=MOST_NUMBERS)
        outside = dict(_outside(found))
        summary = summary_of(_tree(found))
    except (Refused, DataProblem, RuntimeProblem) as problem:
        return _refused(asked, str(problem))
    except Exception as error:
        # one program must not end the process that serves them all
        traceback.print_exc(file=sys.stderr)
        return _refused(asked, f"the prior could not be drawn from: {type(error).__name__}: {error}")
    seen = (one.model_copy(update={"prior": one.posterior, "posterior": None}) for one in summary.predictive)
    summary = summary.model_copy(update={"predictive": tuple(seen)})
    return PriorDrawn(number=asked.number, summary=summary, notes=found.notes, outside=outside)


def _tree(found: Drawn) -> Tree:
    """The draws as a fit of one chain leaves its own."""
    from qvr_core.inference.dataset import dataset
    from qvr_core.inference.stored import Tree

    values = {name: value.detach().cpu().unsqueeze(0) for name, value in found.values.items()}
    again = {name: value for name, value in values.items() if name in found.steps}
    groups = {"posterior": dataset(values, found.axes), "posterior_predictive": dataset(again, found.axes)}
    observed = {name: value.detach().cpu() for name, value in found.observed.items() if name in found.steps}
    return Tree({**groups, "observed_data": dataset(observed, found.axes, ())})


def _outside(found: Drawn) -> Iterator[tuple[str, str]]:
    """Observed steps whose data mostly lie where the prior's draws hardly do, in words."""
    import numpy as np

    from qvr_core.runs.record.fitted import shown

    for name in found.steps:
        data = found.observed.get(name)
        if data is None:
            continue
        known = data.detach().cpu().double().numpy().ravel()
        known = known[np.isfinite(known)]
        draws = found.values[name].detach().cpu().double().numpy().ravel()
        draws = draws[np.isfinite(draws)]
        if not known.size or not draws.size:
            continue
        low, high = np.quantile(draws, INNER)
        share = float(((known < low) | (known > high)).mean())
        if share > MOST_OUTSIDE:
            ends = f"{shown(float(low))} to {shown(float(high))}"
            told = f"{shown(float(known.min()))} to {shown(float(known.max()))}"
            yield (
                name,
                f"`{name}`: {share:.0%} of its data ({told}) lie outside what the prior predicts, {ends} in 99 %",
            )


if __name__ == "__main__":
    main()
