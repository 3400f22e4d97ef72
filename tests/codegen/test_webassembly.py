"""WebAssembly from the same functions: its numbers are those of machine code, and its chains those of the sampler."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.codegen.build import address_of
from qvr_core.codegen.definitions import parsed
from qvr_core.codegen.expressions import LIBM
from qvr_core.codegen.kernels import elementary, functions, nuts_and_hmc, rhat_and_ess, simd_math, special
from qvr_core.codegen.kinds import REAL, WHOLE, Array, Unsupported
from qvr_core.codegen.lowering.density import lowered
from qvr_core.codegen.wasm.module import Module
from qvr_core.codegen.wasm.page_sampler import ADVANCE, MIXING
from qvr_core.dsl import loads
from qvr_core.inference.diagnostics import convergence
from qvr_core.inference.diagnostics.convergence import mcse_mean
from qvr_core.inference.machine.chain import Chain, Settings
from qvr_core.inference.machine.compiled import MachineDensity
from qvr_core.inference.machine.tracing import density_graph
from qvr_core.inference.mcmc.potential import ProgramPotential
from tests.arrays.test_densities import POSITIONS, PROGRAMS, potential
from tests.codegen import test_subset
from tests.codegen.compiling import applied
from tests.codegen.webassembly import Call, Job, needs_node, ran
from tests.generator.engines import data_of, loaded
from tests.generator.writing import written

pytestmark = needs_node

FEW = np.array([-1e3, -25.5, -7, -2.5, -1, -0.3, -1e-9, 0, 1e-12, 0.2, 0.5, 1, 1.5, 2, 9.9, 10, 40, 3e5])
NUMBERS = np.concatenate([FEW, [math.inf, -math.inf, math.nan], np.random.default_rng(0).normal(0.0, 3.0, 300)])
OTHERS = np.roll(NUMBERS, 7)
NUMPYS = {
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "atan2": np.arctan2, "acosh": np.arccosh,
    "asinh": np.arcsinh, "atanh": np.arctanh, "pow": np.float_power,
}  # fmt: skip


def looped(function: Callable[..., Any], count: int) -> Job:
    """A function for each of `NUMBERS`, and `OTHERS`."""
    names = [f"x{number}" for number in range(count)]
    given = ", ".join(f"{name}[i]" for name in names)
    text = (
        f"def apply({', '.join(names)}, out):\n    for i in range(out.shape[0]):\n        out[i] = function({given})\n"
    )
    module = Module()
    module.entry("apply", parsed(text, {"function": function}, ""), [Array(REAL, 1)] * (count + 1))
    return Job(module.encoded(), [Call("apply", [*_numbers(count), np.zeros_like(NUMBERS)])])


def _numbers(count: int) -> list[Any]:
    return [NUMBERS, OTHERS, np.full_like(NUMBERS, 20.0)][:count]


def count_of(function: Callable[..., Any]) -> int:
    return len(inspect.signature(function).parameters)


def assert_close(found: Any, wanted: Any, name: str) -> None:
    # eˣ takes over how far x is rounded, and x may be 700
    rtol = 1e-13 if name in ("pow", "power") else 1e-14
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-300, err_msg=name)


def test_functions_that_webassembly_has_not(tmp_path: Path) -> None:
    assert set(elementary.OF_C) == LIBM
    answers = ran([looped(function, count_of(function)) for function in elementary.OF_C.values()], tmp_path)
    for (name, function), answer in zip(elementary.OF_C.items(), answers, strict=True):
        with np.errstate(all="ignore"):
            wanted = (NUMPYS.get(name) or getattr(np, name))(*_numbers(count_of(function)))
        assert_close(answer[0].arrays[-1], wanted, name)


def test_large_angles_are_as_exact_as_small_ones(tmp_path: Path) -> None:
    mpmath = pytest.importorskip("mpmath")
    angles = np.concatenate([10.0 ** np.arange(2.0, 15.5, 0.5), [355.0, 103993.0 * 7, 2.0**50 + 1.0]])
    text = "def apply(x, out):\n    for i in range(out.shape[0]):\n        out[i] = function(x[i])\n"
    for name in ("sin", "cos"):
        module = Module()
        function = getattr(elementary, name)
        module.entry("apply", parsed(text, {"function": function}, ""), [Array(REAL, 1)] * 2)
        ((answer,),) = ran([Job(module.encoded(), [Call("apply", [angles, np.zeros_like(angles)])])], tmp_path)
        with mpmath.workdps(60):
            wanted = [float(getattr(mpmath, name)(mpmath.mpf(float(x)))) for x in angles]
        np.testing.assert_allclose(answer.arrays[-1], wanted, rtol=1e-15)


def test_functions_that_the_loops_call(tmp_path: Path) -> None:
    called = [
        (name, function)
        for module in (functions, special, simd_math)
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    ]
    answers = ran([looped(function, count_of(function)) for _, function in called], tmp_path)
    for (name, function), answer in zip(called, answers, strict=True):
        assert_close(answer[0].arrays[-1], applied(function, *_numbers(count_of(function))), name)


def test_the_subset_means_what_it_means_to_python(tmp_path: Path) -> None:
    wholes, jobs = [1, 2, 7, 27, 97], []
    of_wholes = (test_subset.collatz, test_subset.remainders, test_subset.downwards)
    for function in of_wholes:
        module = Module()
        assert module.take(function, [WHOLE]) == WHOLE
        jobs.append(Job(module.encoded(), [Call(function.__name__, [n]) for n in wholes]))
    module = Module()
    assert module.take(test_subset.widened, [WHOLE]) == REAL
    assert module.take(test_subset.chosen, [REAL, REAL]) == REAL
    assert module.take(test_subset.rows, [Array(REAL, 2), Array(REAL, 1)]) == REAL
    pairs = [(x, y) for x in (0.3, 1.2, 2.0, 9.0) for y in (-1.0, 0.5, 3.0)]
    here, there, b = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4), np.array([1.0, 5.0, 2.0])
    calls = [Call("widened", [30]), *(Call("chosen", pair) for pair in pairs), Call("rows", [here, b])]
    *found, last = ran([*jobs, Job(module.encoded(), calls)], tmp_path)
    for function, answers in zip(of_wholes, found, strict=True):
        assert [answer.value for answer in answers] == [function(n) for n in wholes]
    assert last[0].value == pytest.approx(test_subset.widened(30), rel=1e-15)
    assert [a.value for a in last[1:-1]] == pytest.approx([test_subset.chosen(*pair) for pair in pairs], rel=1e-14)
    assert last[-1].value == test_subset.rows(there, b)
    np.testing.assert_array_equal(last[-1].arrays[0], there)


def test_a_sampler_wants_a_density() -> None:
    with pytest.raises(Unsupported, match="a density in a module that has none"):
        Module().take(nuts_and_hmc.advance, ADVANCE)


@pytest.fixture(scope="module")
def texts() -> dict[tuple[str, str], tuple[Any, Any]]:
    found: dict[tuple[str, str], tuple[Any, Any]] = {}
    for kind, name in PROGRAMS:
        plain = potential(kind, name)
        found[kind, name] = plain, lowered(*density_graph(plain))
    return found


def constants(text: Any) -> tuple[Any, Any]:
    return np.array(text.reals or [0.0]), np.array(text.wholes or [0], dtype=np.int64)


@pytest.mark.long
def test_value_and_gradient_of_every_program_are_torchs(texts: Any, tmp_path: Path) -> None:
    jobs: list[Job] = []
    wanted: list[tuple[str, list[tuple[float, Any]]]] = []
    for (_, name), (plain, text) in texts.items():
        generator = np.random.default_rng(8)
        positions = [plain.initial(generator) for _ in range(POSITIONS)]
        values = [plain.value_and_grad(q.unsqueeze(0)) for q in positions]
        module = Module()
        module.take_loops(text)
        rest = [[np.full(max(text.room, 1), np.nan)], *([array] for array in constants(text))]
        calls = [Call("log_density", [[q.numpy()], [np.full(plain.width, np.nan)], *rest]) for q in positions]
        jobs.append(Job(module.encoded(), calls))
        wanted.append((name, [(float(value), slope[0].numpy()) for value, slope in values]))
    for (name, values), answers in zip(wanted, ran(jobs, tmp_path), strict=True):
        assert any(math.isfinite(value) for value, _ in values)
        for (value, slope), answer in zip(values, answers, strict=True):
            np.testing.assert_allclose(answer.value, value, rtol=1e-9, atol=1e-9, err_msg=name)
            if math.isfinite(value):
                atol = 1e-9 * max(1.0, np.abs(slope).max())
                np.testing.assert_allclose(answer.arrays[1], slope, rtol=1e-9, atol=atol, err_msg=name)


@pytest.mark.long
def test_programs_of_chance_have_torchs_densities(tmp_path: Path) -> None:
    jobs: list[Job] = []
    wanted: list[tuple[int, float, Any]] = []
    for seed in range(30, 60):
        case, _ = written(seed)
        plain = ProgramPotential(loaded(case), None, data_of(case))
        q = np.random.default_rng(seed).uniform(-1.0, 1.0, plain.width)
        value, slope = plain.value_and_grad(torch.tensor(q).unsqueeze(0))
        text = lowered(*density_graph(plain))
        module = Module()
        module.take_loops(text)
        rest = [[np.full(max(text.room, 1), np.nan)], *([array] for array in constants(text))]
        jobs.append(Job(module.encoded(), [Call("log_density", [[q], [np.zeros(plain.width)], *rest])]))
        wanted.append((seed, float(value), slope[0].numpy()))
    for (seed, value, slope), (answer,) in zip(wanted, ran(jobs, tmp_path), strict=True):
        np.testing.assert_allclose(answer.value, value, rtol=1e-9, atol=1e-9, err_msg=str(seed))
        if math.isfinite(value):
            atol = 1e-7 * max(1.0, np.abs(slope).max())
            np.testing.assert_allclose(answer.arrays[1], slope, rtol=1e-7, atol=atol, err_msg=str(seed))


EQUATION = """
object Time : FinSet 4
object Animal : {hare, lynx}
def rate(t, z, r) = [r * z[hare] - z[hare] * z[lynx], z[hare] * z[lynx] - r * z[lynx]]
program p : Time -> Time
    data when : Time
    sample r <- LogNormal(0.0, 0.3)
    let z[t : Time, a : Animal] = solve(rate, [1.0, 0.5], r, start=0.0, at=when)
    observe y[t : Time] <- Normal(z[t, hare], 0.2)
    return r
export p
"""


def test_a_loop_that_ends_by_itself(tmp_path: Path) -> None:
    """An adaptive solution: its steps are those of torch."""
    when, y = torch.tensor([0.5, 1.0, 1.0, 4.0]), torch.tensor([1.0, 1.1, 1.2, 0.9])
    plain = ProgramPotential(loads(EQUATION).morphism, None, {"when": when.double(), "y": y.double()})
    text = lowered(*density_graph(plain))
    assert text.adaptive
    module = Module()
    module.take_loops(text)
    rest = [[np.full(max(text.room, 1), np.nan)], *([array] for array in constants(text))]
    positions = [-0.4, 0.1, 0.7]
    (answers,) = ran(
        [Job(module.encoded(), [Call("log_density", [[np.array([q])], [np.zeros(1)], *rest]) for q in positions])],
        tmp_path,
    )
    for q, answer in zip(positions, answers, strict=True):
        value, slope = plain.value_and_grad(torch.tensor([[q]], dtype=torch.float64))
        np.testing.assert_allclose(answer.value, float(value), rtol=1e-9)
        np.testing.assert_allclose(answer.arrays[1], slope[0].numpy(), rtol=1e-7)


WARMUP, DRAWS = 500, 500
SETTINGS = Settings(
    WARMUP, 75, (100, 150, 250, 450), 0, 10, 10, 0.8, 0.1, dense=False, adapt_step=True, adapt_mass=True
)


def state_of(generator: np.random.Generator) -> Any:
    """What `pcg64` takes of numpy's generator."""
    held = generator.bit_generator.state["state"]
    return np.array([held[name] >> 32 * at & 0xFFFFFFFF for name in ("state", "inc") for at in range(4)])


def chain(plain: Any, text: Any, number: int) -> tuple[Chain, Call]:
    """A chain of machine code, and the same in WebAssembly."""
    address, keeps = address_of(text)
    made = MachineDensity(address, plain.width, text.room, *constants(text), keeps, text.source)
    q = plain.initial(np.random.default_rng(number)).numpy()
    here = Chain(made, SETTINGS, q, *made(q), np.random.default_rng(number))
    count = WARMUP + DRAWS
    arguments = [
        0, here._room.copy(), made.reals, made.wholes, here.q.copy(), here.g.copy(), here.numbers.copy(),
        here.inverse.copy(), here.root.copy(), here.mean.copy(), here.squares.copy(), here._trees.copy(),
        state_of(here.generator), 0, 0, count, WARMUP, SETTINGS.window_start, np.array(SETTINGS.ends), SETTINGS.early,
        SETTINGS.early_depth, SETTINGS.most, 0, 0.0, SETTINGS.target, 1, 1, np.zeros((count, plain.width)),
        np.zeros((count, nuts_and_hmc.REPORTED)),
    ]  # fmt: skip
    return here, Call("advance", arguments)


@pytest.mark.parametrize("name", ["eight_schools", "radon"])
def test_chains_are_those_of_machine_code(name: str, texts: Any, tmp_path: Path) -> None:
    plain, text = texts["examples", name]
    module = Module()
    module.take_loops(text)
    module.take(nuts_and_hmc.advance, ADVANCE)
    pairs = [chain(plain, text, number) for number in range(4)]
    (answers,) = ran([Job(module.encoded(), [call for _, call in pairs])], tmp_path)
    theirs = [here.advance(WARMUP + DRAWS)[0] for here, _ in pairs]
    ours = [answer.arrays[-2] for answer in answers]
    for one, other in zip(ours, theirs, strict=True):
        # from the same bits; later on, what is rounded in another way has grown
        np.testing.assert_allclose(one[:10], other[:10], rtol=1e-7, atol=1e-7)
    one, other = (np.stack([draws[WARMUP:] for draws in chains]) for chains in (ours, theirs))
    error = np.hypot(mcse_mean(one), mcse_mean(other))
    assert (np.abs(one.mean((0, 1)) - other.mean((0, 1))) < 4.0 * error).all()


def test_what_is_said_of_chains_is_what_the_command_line_says(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    steps = random.normal(size=(4, 501, 5))
    for at in range(1, 501):
        # one that wanders, one that turns at each step, one of few values
        steps[:, at, 1] += 0.95 * steps[:, at - 1, 1]
        steps[:, at, 2] -= 0.5 * steps[:, at - 1, 2]
    steps[..., 3] = np.round(steps[..., 3])
    steps[0, :, 4] += 3.0
    module = Module()
    module.take(rhat_and_ess.mixing, MIXING)
    room = [np.zeros(4 * 501) for _ in range(4)]
    calls = [
        Call("mixing", [np.ascontiguousarray(steps[..., at]), np.zeros(rhat_and_ess.TOLD), *room]) for at in range(5)
    ]
    (answers,) = ran([Job(module.encoded(), calls)], tmp_path)
    found = np.array([answer.arrays[1] for answer in answers])
    wanted = convergence.mixing(steps)
    flat = steps.reshape(-1, 5)
    for place, numbers in (
        (rhat_and_ess.MEAN, flat.mean(0)), (rhat_and_ess.SD, flat.std(0, ddof=1)),
        (rhat_and_ess.LOW, np.quantile(flat, 0.05, axis=0)),
        (rhat_and_ess.MEDIAN, np.median(flat, axis=0)), (rhat_and_ess.HIGH, np.quantile(flat, 0.95, axis=0)),
        (rhat_and_ess.R_HAT, wanted.r_hat), (rhat_and_ess.BULK, wanted.bulk), (rhat_and_ess.TAIL, wanted.tail),
        (rhat_and_ess.OF_MEAN, wanted.mean),
    ):  # fmt: skip
        np.testing.assert_allclose(found[:, place], numbers, rtol=1e-9, atol=1e-12, err_msg=str(place))
