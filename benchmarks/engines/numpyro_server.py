"""NumPyro in a process of its own, run by the Python of the bench environment: a line of JSON asks, a line answers."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

# one thread, before jax is loaded
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import numpyro
from numpyro.infer import NUTS
from numpyro.infer.util import initialize_model
from numpyro_models import MODELS

jax.config.update("jax_enable_x64", True)


class NumPyro:
    """One model with data; its chains are one compiled loop, which every further chain uses again."""

    def __init__(self, model: str, data: str) -> None:
        self.model = MODELS[model]
        with np.load(data) as file:
            self.data = {name: jax.numpy.asarray(file[name]) for name in file.files}
        self.kernel = NUTS(self.model)
        self.loop = jax.jit(self.draws, static_argnums=1)
        self.last: Any = None

    def draws(self, state: Any, count: int) -> Any:
        """The state after so many transitions; of each its position, its gradients and whether it diverged."""

        def step(state: Any, _: None) -> Any:
            state = self.kernel.sample(state, (), self.data)
            return state, (state.z, state.num_steps, state.diverging)

        return jax.lax.scan(step, state, None, count)

    def chain(self, asked: dict[str, Any], key: Any) -> Any:
        """A chain from its start on."""
        state = self.kernel.init(key, asked["warmup"], None, (), self.data)
        self.last, found = self.loop(state, asked["warmup"] + asked["draws"])
        return found

    def sample(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Draws of all chains into the file `out`, gradients a chain in warm-up and after, divergences."""
        warmup = asked["warmup"]
        found = [self.chain(asked, key) for key in jax.random.split(jax.random.PRNGKey(asked["seed"]), asked["chains"])]
        values = [jax.vmap(self.kernel.postprocess_fn((), self.data))(z) for z, _, _ in found]
        np.savez(asked["out"], **{
            name: np.stack([np.asarray(each[name])[warmup:] for each in values]) for name in values[0]
        })  # fmt: skip
        return {
            "warmup": [int(steps[:warmup].sum()) for _, steps, _ in found],
            "sampling": [int(steps[warmup:].sum()) for _, steps, _ in found],
            "divergences": sum(int(diverging[warmup:].sum()) for _, _, diverging in found),
        }

    def seconds(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Processor time of as many draws again of a chain that is warm and compiled, and their gradients."""
        if self.last is None:
            self.chain(asked, jax.random.PRNGKey(asked["seed"]))
            self.loop(self.last, asked["draws"])
        began = time.process_time()
        self.last, (_, steps, _) = jax.block_until_ready(self.loop(self.last, asked["draws"]))
        return {"seconds": time.process_time() - began, "gradients": int(steps.sum())}

    def gradient(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Processor seconds of one evaluation of the potential with its gradient, the smallest of a few."""
        info = initialize_model(jax.random.PRNGKey(0), self.model, model_kwargs=self.data)
        evaluate = jax.jit(jax.value_and_grad(info.potential_fn))
        times: list[float] = []
        for _ in range(asked["repeats"] + 1):
            began = time.process_time()
            jax.block_until_ready(evaluate(info.param_info.z))
            times.append(time.process_time() - began)
        return {"seconds": min(times[1:])}


def main(answers: Any) -> None:
    """Answer until the input ends."""
    here: NumPyro | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            match asked["do"]:
                case "version":
                    answer: dict[str, Any] = {"numpyro": numpyro.__version__, "jax": jax.__version__}
                case "load":
                    here = NumPyro(asked["model"], asked["data"])
                    answer = {}
                case other:
                    assert here is not None
                    answer = getattr(here, other)(asked)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    # whatever else prints goes to standard error
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(own)
