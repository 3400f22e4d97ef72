"""Which terms of a run's log joint add up over its rows: `inference.row_terms`, refused in the words of a run."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from qvr_core.arrays.engine import arrays
from qvr_core.inference.row_terms import ROWS, NotASum, row_terms
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runtime.programs.handlers import Handler, subsample
from qvr_core.runtime.values.errors import InputProblem


def scaled_terms(prepared: Prepared) -> frozenset[str]:
    """`row_terms` on rows spread over the table of a run."""
    rows = prepared.train.rows
    count = min(rows, ROWS)
    _, observations = prepared.train.batch((arrays.arange(count) * (rows / count)).long())
    with refusing():
        return row_terms(prepared.model, observations)


def part_of_rows(prepared: Prepared) -> Handler:
    """Makes each batch of a run's rows stand for all of them."""
    return subsample(prepared.train.rows, scaled_terms(prepared), checked=True)


@contextmanager
def refusing() -> Generator[None]:
    """What cannot stand for all rows as `Refused`."""
    try:
        yield
    except NotASum as problem:
        says = f"what `{problem.site}` says of the rows and what it says of the latents alone"
        message = f"batch_size takes a part of the rows in each step, but {problem}"
        fixes = ("Leave batch_size out", f"Write {says} as steps of their own")
        raise Refused("batch", message, site=problem.site, fixes=fixes) from problem
    except InputProblem as problem:
        message = f"batch_size takes a part of the rows in each step, and {problem}"
        raise Refused("batch", message, site=problem.site, fixes=("Leave batch_size out",)) from problem
