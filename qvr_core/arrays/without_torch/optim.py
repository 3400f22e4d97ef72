"""torch.optim, as far as fits use it: the same steps from the gradients that stand in `grad`, in double precision.

Settings, names of what an optimiser remembers and results are torch's, so a checkpoint reads alike on either engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.eager import array
from qvr_core.arrays.without_torch.nn import Parameter

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop"]

Numbers = NDArray[Any]


class Optimizer:
    """Moves parameters, one group of them with one set of settings."""

    defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, parameters: Iterable[Parameter], lr: float, **settings: Any) -> None:
        settings.pop("fused", None)
        if unknown := settings.keys() - self.defaults.keys():
            raise TypeError(f"{type(self).__name__} has no setting `{min(unknown)}`")
        self.param_groups: list[dict[str, Any]] = [{"params": list(parameters), "lr": lr, **self.defaults, **settings}]
        self.state: defaultdict[Parameter, dict[str, Any]] = defaultdict(dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    def step(self) -> None:
        """Move each parameter that has a gradient."""
        (group,) = self.param_groups
        for parameter in group["params"]:
            if parameter.grad is not None:
                slope = self.slope(group, parameter)
                state = self.state[parameter]
                kept = state.setdefault("step", array(np.zeros(())))
                kept.data[...] += 1.0
                parameter.data -= self.change(group, state, slope, float(kept.data))

    def slope(self, group: Mapping[str, Any], parameter: Parameter) -> Numbers:
        """The gradient, and that of half the squared weights times their decay."""
        assert parameter.grad is not None
        return parameter.grad.data + group["weight_decay"] * parameter.data

    def change(self, group: Mapping[str, Any], state: dict[str, Any], slope: Numbers, count: float) -> Numbers:
        """What a step with this gradient, the `count`-th, takes away."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """What it remembers of each parameter, by their numbers, and its settings."""
        (group,) = self.param_groups
        own = group["params"]
        state = {number: dict(self.state[each]) for number, each in enumerate(own) if each in self.state}
        return {"state": state, "param_groups": [{**group, "params": list(range(len(own)))}]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Undo `state_dict`."""
        (group,), (given,) = self.param_groups, state["param_groups"]
        group.update({name: value for name, value in given.items() if name != "params"})
        self.state.clear()
        for number, kept in state["state"].items():
            self.state[group["params"][number]] = {
                name: array(np.array(value.data, dtype=np.float64)) for name, value in kept.items()
            }


def _remembered(state: dict[str, Any], name: str, like: Numbers, start: float = 0.0) -> Numbers:
    if name not in state:
        state[name] = array(np.full_like(like, start))
    return state[name].data


class SGD(Optimizer):
    """Gradient descent."""

    defaults: ClassVar[Mapping[str, Any]] = {"weight_decay": 0.0}

    def change(self, group: Mapping[str, Any], state: dict[str, Any], slope: Numbers, count: float) -> Numbers:
        return group["lr"] * slope


class Adagrad(Optimizer):
    """Duchi, Hazan & Singer (2011)."""

    defaults: ClassVar[Mapping[str, Any]] = {"eps": 1e-10, "weight_decay": 0.0}

    def change(self, group: Mapping[str, Any], state: dict[str, Any], slope: Numbers, count: float) -> Numbers:
        total = _remembered(state, "sum", slope)
        total += np.square(slope)
        return group["lr"] * slope / (np.sqrt(total) + group["eps"])


class RMSprop(Optimizer):
    """Tieleman & Hinton (2012)."""

    defaults: ClassVar[Mapping[str, Any]] = {"alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0}

    def change(self, group: Mapping[str, Any], state: dict[str, Any], slope: Numbers, count: float) -> Numbers:
        square = _remembered(state, "square_avg", slope)
        square += (1.0 - group["alpha"]) * (np.square(slope) - square)
        return group["lr"] * slope / (np.sqrt(square) + group["eps"])


class Adam(Optimizer):
    """Kingma & Ba (2015)."""

    defaults: ClassVar[Mapping[str, Any]] = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}

    def change(self, group: Mapping[str, Any], state: dict[str, Any], slope: Numbers, count: float) -> Numbers:
        beta, beta_square = group["betas"]
        mean, square = _remembered(state, "exp_avg", slope), _remembered(state, "exp_avg_sq", slope)
        mean += (1.0 - beta) * (slope - mean)
        square += (1.0 - beta_square) * (np.square(slope) - square)
        root = np.sqrt(square / (1.0 - beta_square**count)) + group["eps"]
        return group["lr"] / (1.0 - beta**count) * mean / root


class AdamW(Adam):
    """Loshchilov & Hutter (2019): weights decay by themselves."""

    defaults: ClassVar[Mapping[str, Any]] = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}

    def slope(self, group: Mapping[str, Any], parameter: Parameter) -> Numbers:
        assert parameter.grad is not None
        parameter.data *= 1.0 - group["lr"] * group["weight_decay"]
        return parameter.grad.data
