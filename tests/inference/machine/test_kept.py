"""Lowered densities on disk: found again by the same program on the same data, and by nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.models import SCHOOLS
from qvr_core.codegen import store
from qvr_core.dsl import loads
from qvr_core.inference.machine import density, kept
from qvr_core.inference.machine.density import MachineDensity, machine_density
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.runs.prepare.runnable import built
from tests.patience import HANG
from tests.runs.jobs import make_job

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one each time that a density is traced."""
    found: list[int] = []
    really = density.text_of

    def counted(*given: Any) -> Any:
        found.append(1)
        return really(*given)

    monkeypatch.setattr(density, "text_of", counted)
    return found


def potential(text: str = SCHOOLS.text, **data: torch.Tensor) -> ProgramPotential:
    return ProgramPotential(loads(text).morphism, None, SCHOOLS.data() | data)


def made(of: ProgramPotential) -> MachineDensity:
    return machine_density(of, of.initial(np.random.default_rng(0)).numpy(), key=of.key())


def agrees(found: MachineDensity, of: ProgramPotential) -> bool:
    q = np.linspace(-1.0, 1.0, of.width)
    value, gradient = of.value_and_grad(torch.from_numpy(q).unsqueeze(0))
    here, there = found(q)
    return abs(here - float(value)) < 1e-9 and np.allclose(there, gradient[0].numpy(), atol=1e-9)


def test_a_second_time_nothing_is_traced(traced: list[int]) -> None:
    first = made(potential())
    second = made(potential())
    assert len(traced) == 1
    q = np.ones(first.width)
    assert first(q)[0] == second(q)[0] and agrees(second, potential())


def test_other_data_other_text_and_other_kinds_of_numbers_are_traced_anew(traced: list[int]) -> None:
    others = (
        potential(),
        potential(y=SCHOOLS.data()["y"] + 1e-9),
        potential(SCHOOLS.text.replace("HalfCauchy(5.0)", "HalfCauchy(5.5)")),
        potential(y=SCHOOLS.data()["y"].float()),
    )
    assert len({one.key() for one in others}) == len(others)
    assert all(agrees(made(one), one) for one in others)
    assert len(traced) == len(others)


IMPORTING = """\
import "priors.qvr" as p
program m : p.Row -> p.Row
    sample a <- Normal(p.middle(1.0), 1.0)
    observe y : p.Row <- Normal(a, 1.0)
    return a
"""


def test_imported_texts_belong_to_the_name(tmp_path: Path) -> None:
    library = (tmp_path / "priors.qvr").as_posix()
    location = (tmp_path / "main.qvr").as_posix()

    def key(middle: float) -> str | None:
        text = f"object Row : FinSet 3\ndef middle(x) = x * {middle}\n"
        job = make_job(tmp_path, IMPORTING).model_copy(update={"location": location, "imports": {library: text}})
        return ProgramPotential(built(job), None, {"y": torch.zeros(3)}).key()

    assert key(2.0) == key(2.0) is not None and key(2.0) != key(3.0)
    Path(library).write_text("object Row : FinSet 3\ndef middle(x) = x * 2.0\n")
    beside = loads(IMPORTING, folder=tmp_path).programs["m"]
    assert ProgramPotential(beside, None, {"y": torch.zeros(3)}).key() is None


def test_weights_belong_to_the_name() -> None:
    module = torch.nn.Linear(2, 1)
    before = kept.key_of(kept.state_of(module))
    with torch.no_grad():
        module.weight[0, 0] += 1.0
    assert kept.key_of(kept.state_of(module)) != before


def test_what_has_no_name_is_not_kept(own_folder: Path) -> None:
    assert kept.key_of("text", object()) is None
    assert kept.key_of(("a", 1), [2.0]) != kept.key_of(("a",), [1, 2.0])
    of = potential()
    of.model.origin = None
    assert of.key() is None
    made(of)
    assert not list(own_folder.glob("lowered_*"))


@pytest.mark.parametrize("harm", ["cut", "changed", "foreign"])
def test_damaged_files_are_traced_anew(own_folder: Path, traced: list[int], harm: str) -> None:
    made(potential())
    (file,) = own_folder.glob("lowered_*")
    held = bytearray(file.read_bytes())
    if harm == "cut":
        held = held[: len(held) // 2]
    elif harm == "changed":
        held[-20] ^= 1
    file.write_bytes(bytes(held) if harm != "foreign" else bytes(reversed(held)))
    assert agrees(made(potential()), potential())
    assert len(traced) == 2


def test_the_density_of_another_program_under_a_name_is_not_taken(traced: list[int]) -> None:
    of, other = potential(), potential(y=SCHOOLS.data()["y"] + 3.0)
    made(other)
    key, there = of.key(), other.key()
    assert key is not None and there is not None
    found = kept.kept(there)
    assert found is not None
    kept.keep(key, found)
    assert agrees(made(of), of) and len(traced) == 2


def test_only_so_many_are_kept(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_ENTRIES", 2)
    for shift in range(4):
        made(potential(y=SCHOOLS.data()["y"] + shift))
    assert len(list(own_folder.glob("*.bin"))) == 2


def test_only_the_user_reads_what_holds_data(own_folder: Path) -> None:
    made(potential())
    (file,) = own_folder.glob("lowered_*")
    assert os.name != "posix" or file.stat().st_mode & 0o077 == 0


def test_another_process_does_without_tracing() -> None:
    code = """
import numpy
from unittest import mock
from benchmarks.models import SCHOOLS as MODEL
from qvr_core.dsl import loads
from qvr_core.inference.machine import density
from qvr_core.inference.mcmc.potential import potential_of
potential = potential_of(loads(MODEL.text).morphism, None, MODEL.data())
with mock.patch.object(density, "text_of", wraps=density.text_of) as traced:
    found = density.machine_density(potential, numpy.zeros(potential.width), key=potential.key())
print(found(numpy.ones(potential.width))[0], traced.called)
"""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed},
            timeout=HANG,
        ).stdout.split()
        for seed in ("1", "2")
    )  # fmt: skip
    assert first[0] == second[0] and (first[1], second[1]) == ("True", "False")


def test_the_sampler_wants_nothing_of_torch() -> None:
    code = "import sys; import qvr_core.inference.machine.chain; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == "False"
