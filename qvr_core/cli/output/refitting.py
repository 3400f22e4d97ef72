"""What `qvr cv` and `qvr loo` have in common: refits with their progress, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from qvr_core.cli.files import stop

if TYPE_CHECKING:
    from qvr_core.runs.evaluation.refitted import Refits
    from qvr_core.runs.record.store import RunDirectory
    from qvr_core.runs.worker.refits import Watch

Found = TypeVar("Found")


def refitted(run_id: str, estimate: Callable[[RunDirectory, Watch], Found]) -> tuple[RunDirectory, Found]:
    """The estimate of a run, with a bar of its refits on stderr, or a line for each tenth of them where no terminal
    is; ends the command where it cannot be."""
    from rich.progress import Progress

    from qvr_core.cli.console import PlainConsole, say
    from qvr_core.cli.runs import drawn_from
    from qvr_core.runs.record.atomic_files import DamagedFile
    from qvr_core.runs.record.lock import Held
    from qvr_core.runs.worker.command_engine import engine_of

    run = drawn_from(run_id)
    counted = [0, 0]
    try:
        with engine_of(run.job()), Progress(console=PlainConsole(stderr=True), transient=True) as bar:
            from qvr_core.data.problems import DataProblem
            from qvr_core.runs.prepare.failures import Refused
            from qvr_core.runtime.values.errors import RuntimeProblem

            task = bar.add_task("refits", total=None, visible=False)

            told = 0

            def watch(done: int, count: int, label: str) -> None:
                nonlocal told
                counted[:] = done, count
                if not bar.console.is_terminal and (tenth := 10 * done // max(count, 1)) > told:
                    told = tenth
                    say(f"refits: {done} of {count}", err=True)
                bar.update(task, completed=done, total=count, description=f"refits {label}".strip(), visible=True)

            try:
                return run, estimate(run, watch)
            except DataProblem as problem:
                stop(str(problem), 2 if problem.usage else 1)
            except (Refused, RuntimeProblem) as problem:
                fixes = "".join(f"\n  = fix: {fix}" for fix in getattr(problem, "fixes", ()))
                stop(f"{problem}{fixes}", 1)
    except KeyboardInterrupt:
        stop(f"stopped: {counted[0]} of {counted[1]} refits are kept, and the same command goes on from there", 1)
    except Held:
        stop(f"another process refits run {run.run_id}: wait for its end", 1)
    except (DamagedFile, OSError) as problem:
        stop(str(problem), 1)


def trouble(refits: Refits) -> Iterator[str]:
    """What is wrong with the chains of refits: how many, and of the worst one what."""
    bad = {number: one for number, one in refits.done.items() if one.warnings}
    if bad:
        worst = max(bad, key=lambda number: (bad[number].divergences, len(bad[number].warnings)))
        name = refits.label(worst) if refits.plan.folds or refits.plan.by else refits.names[worst]
        each = "refit" if len(refits.done) == 1 else "refits"
        yield f"{len(bad)} of {len(refits.done)} {each} warn; without {name}: {bad[worst].warnings[0]}"


def number(value: float) -> float | None:
    """As JSON, which has neither infinity nor NaN."""
    return value if math.isfinite(value) else None
