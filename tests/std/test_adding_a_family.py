"""The recipe for a family, as it is written: one block of text in a copy of the package, then its commands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import scipy.stats as st

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## A family\n")[2].partition("\n## ")[0]
COPIED = (
    *("qvr_core", "scripts", "editors", "tree-sitter-qvr"),
    *("neovim/syntax", "vscode-extension/syntaxes", "docs/reference.md", "pyproject.toml"),
)
NEW = """
# The length of a vector of two independent Normals.
family Rayleigh(scale : Real 1 [low=0.0]) : Real 1 [low=0.0]
    density(x) = log(maximum(x, 1e-300)) - 2.0 * log(scale) - 0.5 * (x / scale) ^ 2
    draw = scale * sqrt(-2.0 * log(Uniform(0.0, 1.0)))
    cdf(x) = -expm1(-0.5 * (x / scale) ^ 2)
    standard(z) = scale * z
"""
PROGRAM = """object Row : FinSet 3
program p : Row -> Real 1
    sample s <- Rayleigh(2.0) [noncentred]
    observe y[i : Row] <- Rayleigh(s)
    return s
export p
"""
USE = """
import json, torch
from qvr_core.dsl import load, loads
from qvr_core.inference import MCMC, NUTSKernel, Predictive
torch.set_default_dtype(torch.float64)
model = load("p.qvr").morphism
y = torch.tensor([0.7, 1.9, 1.2])
censored = loads(open("p.qvr").read().replace("Rayleigh(s)", "Rayleigh(s) [right_censored=late]")).morphism
given = {"s": torch.tensor(1.5), "y": y, "late": torch.tensor([0.0, 0.0, 1.0])}
density = float(censored.log_joint(None, given))
torch.manual_seed(1)
draws = Predictive(model, num_samples=400)(None, {})["s"].reshape(-1).tolist()
chains = MCMC(NUTSKernel(), 20, 20, 1, seed=1, engine="compiled").run(model, None, {"y": y})
print(json.dumps({"density": density, "draws": draws, "engine": chains.engine}))
"""


def copied(folder: Path) -> Path:
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("node_modules"))  # with bytecode
        else:
            shutil.copy(source, target)
    return folder


def done(folder: Path, *command: str) -> str:
    found = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert found.returncode == 0, (command, found.stdout, found.stderr)
    return found.stdout


@pytest.mark.process
@pytest.mark.long
def test_a_family_is_one_block_and_the_commands_of_the_recipe(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    text = folder / "qvr_core" / "std" / "families.qvr"
    text.write_text(text.read_text(encoding="utf-8") + NEW, encoding="utf-8")
    commands = re.findall(r"`python -m (scripts\.\w+)`", RECIPE)
    assert commands[0] == "scripts.prelude"
    assert len(commands) == 4
    for command in commands:
        done(folder, "-m", command)
    (row,) = (row for row in json.loads((folder / "qvr_core/semantics/language/prelude.json").read_text())
              if row["name"] == "Rayleigh")  # fmt: skip
    assert row["facts"]["cdf"] and row["facts"]["noncentred"]
    for file in ("docs/reference.md", "vscode-extension/syntaxes/qvr.tmLanguage.json", "neovim/syntax/qvr.vim",
                 "editors/emacs/qvr-mode.el", "tree-sitter-qvr/queries/highlights.scm"):  # fmt: skip
        assert "Rayleigh" in (folder / file).read_text(encoding="utf-8"), file
    (folder / "p.qvr").write_text(PROGRAM)
    done(folder, "-m", "qvr_core.cli", "check", "p.qvr")
    for target in ("stan", "torch"):
        assert "rayleigh" in done(folder, "-m", "qvr_core.cli", "export", "p.qvr", "--to", target).lower()
    found = json.loads(done(folder, "-c", USE))
    prior, scale = st.rayleigh(scale=2.0), st.rayleigh(scale=1.5)
    wanted = prior.logpdf(1.5) + scale.logpdf([0.7, 1.9]).sum() + scale.logsf(1.2)
    assert found["density"] == pytest.approx(wanted, abs=1e-9)
    assert st.kstest(found["draws"], prior.cdf).pvalue > 1e-3
    assert found["engine"] == "compiled"
