"""SVI steps and uncompiled NUTS against Pyro and NumPyro, and particles against one another.

One process, one thread, the sides by turns, medians of CPU time.  Pyro and NumPyro are needed only here
(`pip install -e '.[bench]'`); rows that need a missing one are skipped and say so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import torch

from benchmarks.goals import Table
from benchmarks.models import SCHOOLS
from qvr_core.dsl import load, loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoPriorGuide, NUTSKernel
from qvr_core.inference.diagnostics import convergence

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

LOGISTIC = """
object Row : FinSet 1000
program logistic : Row -> Row
    sample w : Real 10 <- Normal(0.0, 1.0)
    observe y : Row <- Bernoulli(logits=mv(X, w))
    return w
"""


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def by_turns(sides: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Median CPU milliseconds of each side."""
    spent: list[list[float]] = [[] for _ in sides]
    for round_ in range(repeats + 5):
        for times, side in zip(spent, sides, strict=True):
            taken = cpu(side)
            if round_ >= 5:
                times.append(taken)
    return [statistics.median(times) * 1e3 for times in spent]


def has(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


# ---------------------------------------------------------------- SVI


def our_step(model: Any, x: torch.Tensor, y: torch.Tensor, particles: int = 1) -> Callable[[], Any]:
    """A step of SVI with the prior guide on the vanilla language model."""
    guide = AutoPriorGuide(model, observed_names={"next_token"})
    optim = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    svi = SVI(model, guide, optim, ELBO(num_particles=particles))
    return lambda: svi.step(x, {"next_token": y})


def pyro_step(model: Any, x: torch.Tensor, y: torch.Tensor) -> Callable[[], Any]:
    """The same bound as a Pyro user writes it: a site per time step, the guide draws from the model's own network."""
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI as PyroSVI
    from pyro.infer import Trace_ELBO

    pyro.clear_param_store()
    modules = torch.nn.ModuleDict({name: model.get_submodule(name) for name in ("tok_embed", "cell", "lm_head")})

    def layers(module: Any, value: torch.Tensor) -> torch.Tensor:
        return module.output(torch.tanh(module.hidden(torch.tanh(module.input(value)))))

    def states() -> torch.Tensor:
        embedded = modules["tok_embed"].weight[x]
        h = x.new_zeros(len(x), 128, dtype=torch.float32)
        for t in pyro.markov(range(x.shape[1])):
            raw = layers(modules["cell"], torch.cat([embedded[:, t], h], -1))
            scale = 0.1 * (torch.nn.functional.softplus(raw[:, 128:] + 0.541325) + 0.001)
            h = pyro.sample(f"h_{t}", dist.Normal(raw[:, :128], scale).to_event(1))
        return h

    def program() -> None:
        pyro.module("model", modules)
        with pyro.plate("rows", len(x)):
            h = states()
            pyro.sample("y", dist.Categorical(logits=layers(modules["lm_head"], h)), obs=y)

    def guide() -> None:
        with pyro.plate("rows", len(x)):
            states()

    svi = PyroSVI(program, guide, pyro.optim.Adam({"lr": 1e-3}), Trace_ELBO())
    return svi.step


def numpyro_step(x: torch.Tensor, y: torch.Tensor) -> Callable[[], Any]:
    """The same bound in NumPyro, compiled; noise as latents, drawn by the guide from their prior."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI as NumpyroSVI
    from numpyro.infer import Trace_ELBO

    tokens, targets = jnp.asarray(x.numpy()), jnp.asarray(y.numpy())
    rows, length = tokens.shape
    key = jax.random.PRNGKey(0)

    def network(name: str, width: int, out: int) -> list[tuple[Any, Any]]:
        layers = []
        for index, (outer, inner) in enumerate(((64, width), (64, 64), (out, 64))):
            start = jax.random.normal(jax.random.fold_in(key, index), (outer, inner)) * 0.1
            layers.append(
                (numpyro.param(f"{name}_{index}", start), numpyro.param(f"{name}_b{index}", jnp.zeros(outer)))
            )
        return layers

    def apply(layers: list[tuple[Any, Any]], value: Any) -> Any:
        *hidden, (weight, bias) = layers
        for inner, offset in hidden:
            value = jnp.tanh(value @ inner.T + offset)
        return value @ weight.T + bias

    def program() -> None:
        embed = numpyro.param("embed", jax.random.normal(key, (256, 64)) * 0.5)
        cell, head = network("cell", 192, 256), network("lm_head", 128, 256)
        with numpyro.plate("rows", rows):
            noise = numpyro.sample("noise", dist.Normal(0, 1).expand([length, 128]).to_event(2))

        def step(h: Any, now: Any) -> Any:
            embedded, u = now
            raw = apply(cell, jnp.concatenate([embedded, h], -1))
            scale = 0.1 * (jax.nn.softplus(raw[:, 128:] + 0.541325) + 0.001)
            return raw[:, :128] + scale * u, None

        h, _ = jax.lax.scan(step, jnp.zeros((rows, 128)), (embed[tokens].swapaxes(0, 1), noise.swapaxes(0, 1)))
        with numpyro.plate("data", rows):
            numpyro.sample("y", dist.Categorical(logits=apply(head, h)), obs=targets)

    def guide() -> None:
        with numpyro.plate("rows", rows):
            numpyro.sample("noise", dist.Normal(0, 1).expand([length, 128]).to_event(2))

    svi = NumpyroSVI(program, guide, numpyro.optim.Adam(1e-3), Trace_ELBO())
    state = svi.init(key)
    update = jax.jit(svi.update)
    holder = [state]

    def step() -> float:
        holder[0], loss = update(holder[0])
        return float(loss)

    return step


def svi(table: Table, repeats: int) -> None:
    """Rows of SVI."""
    for rows, length, faster, slower in ((4, 8, 3.0, 3.0), (64, 64, 2.0, 1.5)):
        torch.manual_seed(0)
        model = load(EXAMPLES / "vanilla_rnn_lm.qvr").morphism
        x, y = torch.randint(0, 256, (rows, length)), torch.randint(0, 256, (rows,))
        name = f"SVI step, vanilla, {rows} x {length}"
        if has("pyro"):
            ours, theirs = by_turns([our_step(model, x, y), pyro_step(model, x, y)], repeats)
            table.row(f"{name}, Pyro / ours", f"{ours:.2f} ms, Pyro {theirs:.2f} ms", theirs / ours, faster)
        else:
            table.skip(f"{name}, Pyro / ours", "Pyro")
        if has("numpyro"):
            ours, theirs = by_turns([our_step(model, x, y), numpyro_step(x, y)], repeats)
            figures = f"{ours:.2f} ms, NumPyro {theirs:.2f} ms"
            table.row(f"{name}, ours / NumPyro", figures, ours / theirs, slower, at_most=True)
        else:
            table.skip(f"{name}, ours / NumPyro", "NumPyro")
    for rows, length, goal in ((4, 8, 2.0), (16, 64, 3.2)):
        model = load(EXAMPLES / "vanilla_rnn_lm.qvr").morphism
        x, y = torch.randint(0, 256, (rows, length)), torch.randint(0, 256, (rows,))
        one, eight = by_turns([our_step(model, x, y), our_step(model, x, y, 8)], repeats)
        figures = f"{one:.2f} ms, eight {eight:.2f} ms"
        table.row(f"8 particles / 1, {rows} x {length}", figures, eight / one, goal, at_most=True)


# ---------------------------------------------------------------- NUTS


def data() -> dict[str, tuple[str, dict[str, torch.Tensor]]]:
    """The two programs and their data."""
    torch.manual_seed(0)
    x = torch.randn(1000, 10)
    y = torch.bernoulli((x @ torch.linspace(-1.0, 1.0, 10)).sigmoid()).long()
    effects = torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = torch.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    return {
        "logistic 1,000 x 10": (LOGISTIC, {"X": x, "y": y}),
        "eight schools": (SCHOOLS.text, {"y": effects, "sigma": errors}),
    }


def pyro_nuts(name: str, observed: dict[str, torch.Tensor], draws: int) -> float:
    """CPU microseconds of Pyro per evaluation of the potential."""
    import pyro
    import pyro.distributions as dist
    from pyro.infer import MCMC as PyroMCMC
    from pyro.infer import NUTS

    calls = 0

    def logistic() -> None:
        nonlocal calls
        calls += 1
        w = pyro.sample("w", dist.Normal(torch.zeros(10), 1.0).to_event(1))
        pyro.sample("y", dist.Bernoulli(logits=observed["X"] @ w).to_event(1), obs=observed["y"].float())

    def schools() -> None:
        nonlocal calls
        calls += 1
        mu = pyro.sample("mu", dist.Normal(0.0, 5.0))
        tau = pyro.sample("tau", dist.HalfCauchy(torch.tensor(5.0)))
        raw = pyro.sample("raw", dist.Normal(torch.zeros(8), 1.0).to_event(1))
        pyro.sample("y", dist.Normal(mu + tau * raw, observed["sigma"]).to_event(1), obs=observed["y"])

    torch.manual_seed(1)
    run = PyroMCMC(NUTS(logistic if "logistic" in name else schools), draws, draws, disable_progbar=True)
    return cpu(run.run) / calls * 1e6


def numpyro_nuts(name: str, observed: dict[str, torch.Tensor], draws: int) -> tuple[float, float]:
    """Smallest bulk ESS per leapfrog step of NumPyro over four chains, and CPU microseconds per step of one chain."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC as NumpyroMCMC
    from numpyro.infer import NUTS

    given = {key: jnp.asarray(value.numpy()) for key, value in observed.items()}

    def logistic() -> None:
        w = numpyro.sample("w", dist.Normal(jnp.zeros(10), 1.0).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=given["X"] @ w), obs=given["y"])

    def schools() -> None:
        mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
        tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
        raw = numpyro.sample("raw", dist.Normal(jnp.zeros(8), 1.0).to_event(1))
        numpyro.sample("y", dist.Normal(mu + tau * raw, given["sigma"]), obs=given["y"])

    def run_of(chains: int) -> Any:
        kernel = NUTS(logistic if "logistic" in name else schools)
        run = NumpyroMCMC(
            kernel,
            num_warmup=draws,
            num_samples=draws,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        run.run(jax.random.PRNGKey(0), extra_fields=("num_steps",))
        return run

    four, one = run_of(4), run_of(1)
    efficiency = smallest_ess(four.get_samples(group_by_chain=True)) / steps_of(four)
    # what is compiled already goes on from where it was: sampling alone is timed
    one.post_warmup_state = one.last_state

    def further() -> None:
        one.run(one.post_warmup_state.rng_key, extra_fields=("num_steps",))
        jax.block_until_ready(one.get_samples())

    further()
    one.post_warmup_state = one.last_state
    return efficiency, cpu(further) / steps_of(one) * 1e6


def steps_of(run: Any) -> float:
    """Leapfrog steps of a NumPyro run after warm-up."""
    return float(run.get_extra_fields()["num_steps"].sum())


def smallest_ess(samples: Any) -> float:
    """The smallest bulk ESS of any element."""
    import numpy as np

    each = [np.asarray(value, dtype=np.float64) for value in samples.values()]
    return float(min(convergence.ess_bulk(value.reshape(*value.shape[:2], -1)).min() for value in each))


def nuts(table: Table, quick: bool) -> None:
    """Rows of NUTS."""
    draws = 150 if quick else 1000
    for name, (text, observed) in data().items():
        model = loads(text).morphism
        ours = our_nuts(model, observed, draws, compiled=False)
        if has("pyro"):
            theirs = pyro_nuts(name, observed, draws)
            figures = f"{ours:.0f} µs, Pyro {theirs:.0f} µs"
            table.row(f"NUTS per leapfrog, {name}, Pyro / ours", figures, theirs / ours, 3.0)
        else:
            table.skip(f"NUTS per leapfrog, {name}, Pyro / ours", "Pyro")
        if not has("numpyro"):
            table.skip(f"ESS and time per leapfrog, {name}, NumPyro", "NumPyro")
            continue
        result = MCMC(NUTSKernel(), draws, draws, 4, seed=0).run(model, None, observed)
        mine = smallest_ess(result.samples) / float(result.leapfrog_steps.sum())
        other, theirs = numpyro_nuts(name, observed, draws)
        table.row(f"ESS per leapfrog, {name}", f"{mine:.3f}, NumPyro {other:.3f}", mine / other, 0.85)
        compiled = our_nuts(model, observed, draws, compiled=True)
        figures = f"{compiled:.0f} µs, NumPyro {theirs:.0f} µs"
        table.row(f"NUTS compiled, {name}, ours / NumPyro", figures, compiled / theirs, 2.5, at_most=True)


def our_nuts(model: Any, observed: dict[str, torch.Tensor], draws: int, *, compiled: bool) -> float:
    """CPU microseconds per leapfrog step after warm-up, a second run: the first has compiled what is to be."""
    spent: list[float] = []
    steps: list[float] = []

    def watch(progress: Any) -> None:
        spent.append(time.process_time())
        steps.append(float(progress.steps.sum()))

    MCMC(NUTSKernel(), draws, draws, 1, seed=0, engine="compiled" if compiled else "plain").run(
        model, None, observed, watch=watch
    )
    return (spent[-1] - spent[draws]) / sum(steps[draws + 1 :]) * 1e6


def main(argv: list[str]) -> int:
    """Print the table; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks inference_steps")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(argv).quick
    torch.set_num_threads(1)
    table = Table()
    svi(table, 10 if quick else 40)
    nuts(table, quick)
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
