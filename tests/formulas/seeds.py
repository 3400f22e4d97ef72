"""Which checks the fits of `formulas.tsv` fail, at the defaults, on three seeds: `python -m tests.formulas.seeds OUT`.

One line a fit goes to OUT as it ends; what stands there already is not fitted again.  Notes, such as a Pareto k, fail
nothing.  The hundred take about an hour.
"""

from __future__ import annotations

import contextlib
import csv
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.protocol import Finished
from qvr_core.runs.record.store import RunStore
from tests.formulas import table
from tests.formulas.test_formulas import formulas

SEEDS = (1, 2, 3)


@contextlib.contextmanager
def _study(row: dict[str, str]) -> Iterator[Path | None]:
    """Within a folder with the study of a formula; None where it gives no program."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            table.write(Path("d.csv"))
            family = ["--family", row["family"]] if row["family"] else []
            arguments = ["init", "study", "--data", "d.csv", "--formula", row["formula"], *family]
            CliRunner().invoke(app, arguments)
            yield Path("study/model.qvr") if Path("study/model.qvr").exists() else None
        finally:
            os.chdir(here)


def failed(model: Path, seed: int) -> dict[str, str]:
    """The checks that a fit of a program fails, each with what it says."""
    ran = CliRunner().invoke(app, ["run", "nuts", str(model), "--seed", str(seed)])
    ending = RunStore(Path.cwd()).open("last").ending() if ran.exit_code in (0, 1) else None
    if not isinstance(ending, Finished):
        return {"run": ran.output[-200:]}
    return {one.name: one.text for one in ending.checks if not (one.passed or one.note)}


def main(out: Path) -> None:
    done = (
        {tuple(line.split("\t")[:2]) for line in out.read_text(encoding="utf-8").splitlines()}
        if out.exists()
        else set()
    )
    with out.open("a", encoding="utf-8") as file:
        for number, row in enumerate(formulas(), 1):
            wanted = [seed for seed in SEEDS if (str(number), str(seed)) not in done]
            if not wanted:
                continue
            with _study(row) as model:
                for seed in wanted:
                    found = {"init": "no program"} if model is None else failed(model, seed)
                    said = "; ".join(f"{name}: {text}" for name, text in found.items()) or "green"
                    print(number, seed, row["formula"], " ".join(said.split()), sep="\t", file=file, flush=True)
    with out.open(encoding="utf-8") as file:
        lines = [line for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if line[3] != "green"]
    often = {line[0] for line in lines if sum(other[0] == line[0] for other in lines) > 1}
    print(f"{len(lines)} of the fits fail a check; on more than one seed: {sorted(map(int, often)) or 'none'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
