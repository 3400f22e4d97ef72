"""Whole commands, from `qvr run nuts` to the summary: processor time, and the peak memory of the largest process.

Four chains of 500 + 500 draws of the thirty programs in `examples/statistics`, of eight schools and of radon, with
machine code at hand (warm) and, for three of them, without (cold).  `--before REVISION` measures that commit by turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DRAWS = ("--chains", "4", "--warmup", "500", "--samples", "500")
MEMORY = 180.0
"""Largest peak of a process in MB."""
GOALS = {"eight_schools": (1.0, 2.0), "radon": (1.0, 2.0), "hidden_markov": (1.6, 3.0)}
"""Largest processor seconds, warm and cold."""
BESIDE_SAMPLING = 1.0
MEASURE = """
import json, os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stderr[-400:]]))
"""


@dataclass(frozen=True)
class Side:
    """A checkout, and where it keeps its machine code."""

    root: Path
    cache: Path

    def run(self, program: str) -> tuple[float, float, float]:
        """Processor seconds of the command, MB of its largest process, and the seconds that sampling took."""
        environment = {**os.environ, "PYTHONPATH": str(self.root), "QVR_MACHINE_CACHE": str(self.cache)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "qvr_core.cli", "run", "nuts", str(self.root / program), *DRAWS]
        answer = subprocess.run(
            [sys.executable, "-c", MEASURE, *command],
            cwd=self.root / Path(program).parent, env=environment, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        status, seconds, memory, said = json.loads(answer.stdout)
        if status:
            raise SystemExit(f"{program}: {said or status}")
        return seconds, memory, _sampling(self.root, Path(program).stem)


def _sampling(root: Path, program: str) -> float:
    """The seconds of the newest run of a program, and the run away."""
    import shutil

    runs = [path for store in (root, root / "examples", root / "examples/statistics")
            for path in (store / ".qvr/runs").glob(f"*-{program}")]  # fmt: skip
    newest = max(runs, key=lambda path: path.stat().st_mtime)
    ending = json.loads((newest / "ending.json").read_text())
    shutil.rmtree(newest)
    for folder in (newest.parent, newest.parent.parent):
        if not any(folder.iterdir()):
            folder.rmdir()
    return float(ending["seconds"])


def _best(sides: list[Side], program: str, rounds: int, *, cold: bool = False) -> list[tuple[float, float, float]]:
    """The smallest of each figure for each side, measured by turns."""
    found: list[list[tuple[float, float, float]]] = [[] for _ in sides]
    for turn in range(rounds + (not cold)):
        for side, figures in zip(sides, found, strict=True):
            with tempfile.TemporaryDirectory() as empty:
                here = Side(side.root, Path(empty)) if cold else side
                measured = here.run(program)
            if cold or turn:  # the first of the warm ones compiles
                figures.append(measured)
    return [tuple(map(min, zip(*figures, strict=True))) for figures in found]  # pyright: ignore[reportReturnType]


def main(argv: list[str] | None = None) -> int:
    """Print one line per command; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", metavar="REVISION", help="a commit to measure by turns")
    parser.add_argument("--quick", action="store_true", help="the three that have goals of their own")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(argv)
    thirty = sorted(path.stem for path in (ROOT / "examples/statistics").glob("?*.qvr"))
    programs = {"eight_schools": "examples/eight_schools.qvr"}
    programs |= {name: f"examples/statistics/{name}.qvr" for name in thirty if not asked.quick or name in GOALS}
    missed = False
    with ExitStack() as held:
        sides = [Side(ROOT, Path(held.enter_context(tempfile.TemporaryDirectory())))]
        if asked.before:
            root = Path(held.enter_context(tempfile.TemporaryDirectory())) / "before"
            subprocess.run(["git", "-C", ROOT, "worktree", "add", "-q", "--detach", root, asked.before], check=True)
            held.callback(subprocess.run, ["git", "-C", ROOT, "worktree", "remove", "--force", root], check=False)
            sides.append(Side(root, Path(held.enter_context(tempfile.TemporaryDirectory()))))
        print(f"{'command':34}{'s':>7}{'goal':>7}{'MB':>7}{'goal':>7}{'before: s':>12}{'MB':>7}")
        for name, program in programs.items():
            for cold in (False, True) if name in GOALS else (False,):
                (seconds, memory, sampling), *before = _best(sides, program, asked.rounds, cold=cold)
                goal = GOALS[name][cold] if name in GOALS else BESIDE_SAMPLING + sampling
                # what a first compilation takes is no goal of its own
                most = MEMORY if not cold else float("inf")
                met = seconds <= goal and memory <= most
                missed |= not met
                was = "".join(f"{figures[0]:12.2f}{figures[1]:7.0f}" for figures in before)
                word = f"{name}, {'cold' if cold else 'warm'}"
                print(
                    f"{word:34}{seconds:7.2f}{goal:7.2f}{memory:7.0f}{most:7.0f}{was}{'' if met else '  MISSED'}",
                    flush=True,
                )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
