"""One forked process per chain: nothing is sent to it, and plain arrays come back."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import fields
from multiprocessing.connection import Connection
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.container_types import is_mapping, is_tuple
from qvr_core.inference.mcmc.result import MCMCResult
from qvr_core.runtime.values.errors import RuntimeProblem

Job = Callable[[], MCMCResult]


def in_processes(jobs: Sequence[Job]) -> list[MCMCResult]:
    """The results of jobs, as many at a time as there are processors.  An error in a child is raised here."""
    context = multiprocessing.get_context("fork")
    results: list[MCMCResult] = []
    width = max(1, context.cpu_count())
    for start in range(0, len(jobs), width):
        started: list[tuple[Any, Connection]] = []
        for job in jobs[start : start + width]:
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(job, there), daemon=True)
            process.start()
            there.close()
            started.append((process, here))
        results.extend(_received(process, here) for process, here in started)
    return results


def _child(job: Job, there: Connection) -> None:
    arrays.set_num_threads(1)
    try:
        there.send(("done", _plain(job())))
    except Exception as error:
        there.send(("failed", f"{type(error).__name__}: {error}"))
    finally:
        there.close()


def _received(process: Any, here: Connection) -> MCMCResult:
    try:
        kind, value = here.recv()
    except EOFError:
        process.join()
        raise RuntimeProblem(f"the process of a chain ended without a result (exit code {process.exitcode})") from None
    process.join()
    if kind == "failed":
        raise RuntimeProblem(f"a chain failed: {value}")
    return MCMCResult(**{name: _tensors(item) for name, item in value.items()})


def _plain(result: MCMCResult) -> dict[str, Any]:
    return {field.name: _arrays(getattr(result, field.name)) for field in fields(result)}


def _arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return ("array", value.numpy())
    return {key: _arrays(item) for key, item in value.items()} if is_mapping(value) else value


def _tensors(value: Any) -> Any:
    if is_tuple(value) and len(value) == 2 and value[0] == "array":
        return arrays.from_numpy(value[1])
    return {key: _tensors(item) for key, item in value.items()} if is_mapping(value) else value
