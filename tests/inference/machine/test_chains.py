"""Compiled chains are those of the sampler in numpy, however they are cut and wherever they run."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.models import RADON, SCHOOLS, VARYING_SLOPES
from qvr_core.arrays import derivatives
from qvr_core.codegen import build, llvm, object_cache
from qvr_core.codegen.calls import Compiled
from qvr_core.codegen.kernels import nuts_and_hmc
from qvr_core.dsl import loads
from qvr_core.inference import MCMC, HMCKernel, MCMCResult, NUTSKernel
from qvr_core.inference.machine import compiled as compiled_density
from qvr_core.inference.machine import density
from qvr_core.inference.machine.chain import Chain, Settings, compile_sampler
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.density import NotCompiled, machine_density
from qvr_core.inference.mcmc.collected import Progress
from qvr_core.inference.mcmc.potential import potential_of
from qvr_core.runs.record.protocol import Finished, Message, Started, parse_event
from tests.inference.machine.functions import Function
from tests.patience import HANG

SETTINGS = Settings(60, 0, (10, 50), 40, 6, 10, 0.8, 0.1, dense=False, adapt_step=True, adapt_mass=True)

UNKNOWN = """
object D : FinSet 3
program p : D -> D
    sample mu : D <- Normal(0.0, 1.0)
    observe y : D <- Normal(sort(mu), 1.0)
    return mu
"""


def sampled(engine: Any, draws: int = 40, **settings: Any) -> MCMCResult:
    kernel = settings.pop("kernel", NUTSKernel)(dense_mass=settings.pop("dense", False), **settings.pop("having", {}))
    chains = MCMC(kernel, draws, draws, 3, seed=1, engine=engine, **settings)
    return chains.run(loads(SCHOOLS.text).morphism, None, SCHOOLS.data())


def compiled(model: Any = SCHOOLS) -> tuple[Any, MachineDensity]:
    potential = potential_of(loads(model.text).morphism, None, model.data())
    return potential, machine_density(potential, potential.initial(np.random.default_rng(0)).numpy())


def chain(settings: Settings = SETTINGS, model: Any = SCHOOLS) -> Chain:
    potential, made = compiled(model)
    q = potential.initial(np.random.default_rng(0)).numpy()
    return Chain(made, settings, q, *made(q), np.random.default_rng(0))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(
    ("kernel", "having"), [(NUTSKernel, {}), (HMCKernel, {"num_steps": 7}), (HMCKernel, {"trajectory_length": 1.2})]
)
@pytest.mark.sampled(2)
def test_compiled_chains_draw_what_the_sampler_in_numpy_draws(kernel: Any, having: Any, dense: bool) -> None:
    # later on, what is rounded in another way has grown
    asked: dict[str, Any] = {"kernel": kernel, "having": having, "dense": dense}
    ours, theirs = sampled("compiled", 25, **asked), sampled("plain", 25, **asked)
    assert (ours.engine, theirs.engine) == ("compiled", "plain")
    torch.testing.assert_close(ours.samples["raw"], theirs.samples["raw"], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(ours.log_density, theirs.log_density, rtol=1e-3, atol=1e-3)
    assert torch.equal(ours.leapfrog_steps, theirs.leapfrog_steps) and torch.equal(ours.tree_depths, theirs.tree_depths)
    torch.testing.assert_close(ours.step_sizes, theirs.step_sizes, rtol=1e-3, atol=0.0)
    torch.testing.assert_close(ours.acceptance, theirs.acceptance, rtol=1e-3, atol=1e-3)


def test_the_same_seed_gives_the_same_draws_wherever_chains_run_and_whoever_watches() -> None:
    seen: list[Progress] = []
    first = sampled("compiled")
    potential = potential_of(loads(SCHOOLS.text).morphism, None, SCHOOLS.data())
    asked = MCMC(NUTSKernel(), 40, 40, 3, seed=1, engine="compiled")
    asked.choose(potential)
    watched = asked.chains_of(potential, asked.seeds(), seen.append)
    torch.set_num_threads(3)
    others = [sampled("compiled", chains=schedule) for schedule in ("together", "sequential", "processes")]
    for other in (watched, *others):
        assert all(torch.equal(first.samples[name], other.samples[name]) for name in first.samples)
        assert torch.equal(first.step_sizes, other.step_sizes)
    assert [progress.draw for progress in seen] == list(range(80)) and seen[39].warmup and not seen[40].warmup


def test_slices_are_the_chain_at_once() -> None:
    whole, cut = chain(), chain()
    wanted = whole.advance(100)
    parts = [cut.advance(count) for count in (1, 9, 25, 25, 40)]
    for index in (0, 1):
        assert np.array_equal(wanted[index], np.concatenate([part[index] for part in parts]))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("at", [5, 30, 80])
def test_a_chain_goes_on_from_its_state(dense: bool, at: int) -> None:
    settings = Settings(60, 0, (10, 50), 40, 6, 10, 0.8, 0.1, dense=dense, adapt_step=True, adapt_mass=True)
    whole, first, second = chain(settings), chain(settings), chain(settings)
    wanted, _ = whole.advance(100)
    first.advance(at)
    second.restore(first.state())
    rest, _ = second.advance(100 - at)
    assert np.array_equal(wanted[at:], rest)


def test_chains_end_between_slices_with_the_draws_made_so_far() -> None:
    potential = potential_of(loads(SCHOOLS.text).morphism, None, SCHOOLS.data())
    asked = MCMC(NUTSKernel(), 20, 1000, 2, seed=1, engine="compiled")
    asked.choose(potential)
    looks = iter([False] * 40)
    result = asked.chains_of(potential, asked.seeds(), None, lambda: next(looks, True))
    whole = asked.chains_of(potential, asked.seeds(), None)
    made = result.samples["mu"].shape[1]
    assert 0 < made < 1000
    torch.testing.assert_close(result.samples["mu"], whole.samples["mu"][:, :made])


def test_chains_are_compiled_where_that_is_not_asked_not_to_be() -> None:
    model, data = loads(SCHOOLS.text).morphism, SCHOOLS.data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MCMC(NUTSKernel(), 20, 20, 1, seed=0).run(model, None, data).engine == "compiled"
        assert MCMC(HMCKernel(), 20, 20, 1, seed=0).run(model, None, data).engine == "compiled"
        assert MCMC(NUTSKernel(), 5, 5, 1, seed=0, engine="plain").run(model, None, data).engine == "plain"


def test_an_operation_without_loops_is_said_and_the_draws_are_those_of_the_program_itself() -> None:
    data = {"y": torch.tensor([0.3, -0.2, 1.0])}
    model = loads(UNKNOWN).morphism
    with pytest.warns(UserWarning, match=r"runs as torch operations, not as machine code: there are no"):
        found = MCMC(NUTSKernel(), 10, 10, 1, seed=0, engine="compiled").run(model, None, data)
    wanted = MCMC(NUTSKernel(), 10, 10, 1, seed=0, engine="plain").run(model, None, data)
    assert found.engine == "plain" and torch.equal(found.samples["mu"], wanted.samples["mu"])


def test_a_program_that_is_too_large_to_compile_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(density, "MOST_LINES", 10)
    with pytest.warns(UserWarning, match=r"there are no loops for so long a program \(\d+ lines of loops\)"):
        same_as_plain(sampled("compiled", 5))


def same_as_plain(found: MCMCResult) -> None:
    """These are the draws of the program itself."""
    assert found.engine == "plain"
    wanted = sampled("plain", 5)
    assert all(torch.equal(value, wanted.samples[name]) for name, value in found.samples.items())


def test_a_density_of_too_many_operations_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.CACHE_VARIABLE, str(tmp_path))

    def function(q: Any) -> Any:
        for _ in range(98):
            q = q.sin()
        return q

    long = Function(function, 2)
    assert machine_density(long, np.ones(2)).width == 2
    monkeypatch.setattr(density, "MOST_OPERATIONS", 50)
    with pytest.raises(NotCompiled, match=r"there are no loops for so large a graph \(\d+ operations\)"):
        machine_density(long, np.ones(2))
    monkeypatch.setattr(density, "MOST_OPERATIONS", 5)
    with pytest.warns(UserWarning, match=r"there are no loops for so large a graph \(\d+ operations\)"):
        same_as_plain(sampled("compiled", 5))


def test_a_mixture_and_its_groups_are_compiled() -> None:
    """Densities by `logsumexp` over the states that are summed out, each group's at its place."""
    text = """
object Row : FinSet 6
object Group : FinSet 2
object Kind : FinSet 3
program p : Row -> Row
    sample mu : Kind <- Normal(0.0, 2.0)
    sample w : Kind <- Normal(0.0, 1.0)
    marginalize z[i : Row] : Kind <- Categorical(logits=w)
        observe y[i : Row] <- Normal(mu[z[i]] + group[i], 1.0)
    return mu
"""
    data = {"y": torch.randn(6, dtype=torch.float64), "group": torch.tensor([0, 1, 1, 0, 1, 0])}
    potential = potential_of(loads(text).morphism, None, data)
    q = potential.initial(np.random.default_rng(0)).unsqueeze(0)
    value, gradient = machine_density(potential, q[0].numpy())(q[0].numpy())
    wanted_value, wanted = potential.value_and_grad(q)
    np.testing.assert_allclose(value, float(wanted_value), rtol=1e-11)
    np.testing.assert_allclose(gradient, wanted[0].numpy(), rtol=1e-10, atol=1e-10)


def test_without_the_compiler_chains_run_and_say_what_would_make_them_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(density, "available", lambda: False)
    with pytest.warns(UserWarning, match=r"llvmlite is not installed \(pip install llvmlite\)"):
        assert sampled("compiled", 5).engine == "plain"


def test_a_compiler_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: object) -> object:
        raise RuntimeError("no room on the disk")

    monkeypatch.setattr(compiled_density, "address_of", broken)
    with pytest.warns(UserWarning, match=r"the compiler failed \(RuntimeError: no room on the disk\)"):
        same_as_plain(sampled("compiled", 5))


HIDDEN = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def without(name, *rest):
    return None if name.partition(".")[0] == "llvmlite" else found(name, *rest)
PathFinder.find_spec = without
"""


@pytest.mark.long
def test_where_llvmlite_is_not_installed_a_run_goes_on_and_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDDEN)
    program = "program p : FinSet 2 -> FinSet 2\n    sample mu <- Normal(0.0, 1.0)\n    observe y <- Normal(mu, 1.0)\n"
    (tmp_path / "m.qvr").write_text(program + "    return mu\n")
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "qvr_core.cli", "run", "nuts", "m.qvr", "--json", "--chains", "2",
               "--max-tree-depth", "2", "--warmup", "60", "--samples", "60"]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'hidden'}{os.pathsep}{root}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = [parse_event(line) for line in done.stdout.splitlines()]
    assert [event.engine for event in told if isinstance(event, Started)] == ["plain"]
    assert isinstance(told[-1], Finished) and told[-1].posterior
    said = [event.text for event in told if isinstance(event, Message) and "llvmlite" in event.text]
    assert said == [
        "the density runs as torch operations, not as machine code: llvmlite is not installed (pip install llvmlite)"
    ]


class Bent(Function):
    """Its values are those of another function than the one that is compiled."""

    def __init__(self, function: Callable[[Any], Any], other: Callable[[Any], Any]) -> None:
        super().__init__(function, 3)
        self.other = other

    def log_densities(self, q: Any) -> Any:
        return Function(self.other, 3).log_densities(q)


def test_a_density_that_compiles_to_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotCompiled, match="its value differs"):
        machine_density(Bent(lambda x: x.square(), lambda x: x.square() + 1e-6), np.ones(3))
    with pytest.raises(NotCompiled, match="its value differs"):
        machine_density(Bent(lambda x: x.square(), lambda x: torch.where(x > 0.9, x.square(), torch.inf)), np.ones(3))


@pytest.mark.parametrize("wrong", [lambda x, y: x, lambda x, y: y * 1.0001, lambda x, y: y * math.nan])
def test_a_wrong_derivative_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    bent = Function(lambda x: x.exp() - x.square(), 3)
    machine_density(bent, np.ones(3))
    monkeypatch.setitem(derivatives.RULES, "exp", lambda node, d: [d * wrong(node.args[0], node)])
    with pytest.raises(NotCompiled, match="its gradient"):
        machine_density(bent, np.ones(3))


def test_infinities_are_those_of_the_plain_density() -> None:
    function = Function(lambda x: torch.where(x[0] > 0, x.sum(), -torch.inf), 2)
    made = machine_density(function, np.ones(2))
    for first in (1.0, -1.0):
        q = np.array([first, 2.0])
        assert made(q)[0] == function.log_densities(q[None])[0]


def test_one_build_serves_all_data_of_a_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.CACHE_VARIABLE, str(tmp_path))
    model = loads(SCHOOLS.text).morphism
    found: list[MachineDensity] = []
    for shift in (0.0, 1.5):
        data = SCHOOLS.data() | {"y": SCHOOLS.data()["y"] + shift}
        potential = potential_of(model, None, data)
        found.append(machine_density(potential, np.zeros(potential.width)))
    assert found[0].address == found[1].address
    q = np.ones(found[0].width)
    assert found[0](q)[0] != found[1](q)[0]


def test_the_compiler_is_told_of_once_for_a_build_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.CACHE_VARIABLE, str(tmp_path))
    potential = potential_of(loads(SCHOOLS.text).morphism, None, SCHOOLS.data())
    begun: list[str] = []
    for number in ("first", "second"):
        # as in another process
        monkeypatch.setattr(llvm, "_loaded", {})
        monkeypatch.setattr("qvr_core.inference.machine.chain.ADVANCE", Compiled(nuts_and_hmc.advance))
        with llvm.told(lambda number=number: begun.append(number)):
            machine_density(potential, np.zeros(potential.width))
            compile_sampler()
    assert begun.count("second") == 0 and begun.count("first") >= 1


@pytest.mark.long
def test_another_process_finds_the_same_build() -> None:
    code = """
from benchmarks.models import VARYING_SLOPES as MODEL
from qvr_core.codegen import build
from qvr_core.dsl import loads
from qvr_core.inference.machine import density
from qvr_core.inference.mcmc.potential import potential_of
potential = potential_of(loads(MODEL.text).morphism, None, MODEL.data())
print(build.llvm_text(density.text_of(potential)[0]))
"""
    here = potential_of(loads(VARYING_SLOPES.text).morphism, None, VARYING_SLOPES.data())
    root = Path(__file__).resolve().parents[3]
    sources = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, cwd=root, env=os.environ | {"PYTHONHASHSEED": seed},
            timeout=HANG,
        ).stdout
        for seed in ("1", "2")
    } | {f"{build.llvm_text(density.text_of(here)[0])}\n"}  # fmt: skip
    assert len(sources) == 1 and "fadd arcp contract nsz reassoc double" in next(iter(sources))


@pytest.mark.statistical
@pytest.mark.parametrize("model", [VARYING_SLOPES, RADON])
def test_compiled_chains_have_the_posterior_of_plain_ones(model: Any) -> None:
    program, data = loads(model.text).morphism, model.data()
    ours = MCMC(NUTSKernel(), 1000, 1000, 4, seed=0, engine="compiled").run(program, None, data)
    theirs = MCMC(NUTSKernel(), 500, 250, 4, seed=5, engine="plain").run(program, None, data)
    for name, values in ours.samples.items():
        sd = values.std((0, 1)).clamp_min(1e-12)
        apart = (values.mean((0, 1)) - theirs.samples[name].mean((0, 1))).abs() / sd
        error = theirs.ess[name].clamp_min(1.0).rsqrt() + ours.ess[name].clamp_min(1.0).rsqrt()
        assert bool((apart <= 5.0 * error + 1e-9).all()), name
