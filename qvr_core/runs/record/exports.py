"""Losses and posterior draws of a run, for other programs."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

from qvr_core.runs.record.atomic_files import DamagedFile, file_digest, read_json
from qvr_core.runs.record.store import RunDirectory


def losses_of(run: RunDirectory) -> list[float]:
    """The loss of every step up to the newest whole checkpoint; empty where there is none."""
    from safetensors import numpy as stored

    for folder in sorted(run.checkpoints.glob("step-*"), reverse=True):
        try:
            head = read_json(folder / "state.json")
            if head["tensors"] == file_digest(folder / "tensors.safetensors"):
                tensors = stored.load_file(folder / "tensors.safetensors")
                return tensors["losses"].tolist() if "losses" in tensors else []
        except (DamagedFile, OSError, KeyError):
            continue
    return []


def export_csv(run: RunDirectory, output: Path) -> None:
    """Posterior draws as one row per chain and draw, or the losses as one row per step."""
    with open(output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        losses = losses_of(run)
        if losses or not run.posterior.exists():
            writer.writerow(["step", "loss"])
            writer.writerows(enumerate(losses, start=1))
            return
        from qvr_core.runs.record.netcdf import read_netcdf

        run.check_posterior()
        posterior = read_netcdf(run.posterior, ("posterior",))["posterior"]
        columns: dict[str, list[float]] = {}
        for name, values in posterior.data_vars.items():
            flat = values.values.reshape(values.shape[0] * values.shape[1], -1)
            for i in range(flat.shape[1]):
                columns[str(name) if flat.shape[1] == 1 else f"{name}[{i}]"] = flat[:, i].tolist()
        chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
        writer.writerow(["chain", "draw", *columns])
        for row in range(chains * draws):
            writer.writerow([row // draws, row % draws, *(column[row] for column in columns.values())])


def export_netcdf(run: RunDirectory, output: Path) -> None:
    """The posterior as it is stored."""
    if not run.posterior.exists():
        raise FileNotFoundError(f"run {run.run_id} has no posterior draws; export to .csv instead")
    run.check_posterior()
    shutil.copyfile(run.posterior, output)
