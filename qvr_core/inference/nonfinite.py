"""Where a loss stopped being finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from qvr_core.inference.guides.base import Guide
from qvr_core.inference.objectives import weigh
from qvr_core.runtime.errors import NonFinite
from qvr_core.runtime.layout import parts
from qvr_core.runtime.program import ProgramModule


@torch.no_grad()
def first_non_finite(
    model: ProgramModule, guide: Guide, x: object, observations: Mapping[str, Any] | None
) -> NonFinite:
    """Run once more and name the first quantity that is NaN or infinite, in program order."""
    for name, parameter in (*model.named_parameters(), *guide.named_parameters()):
        if not bool(torch.isfinite(parameter).all()):
            return NonFinite(f"`{model.name}`: the parameter `{name}` is no longer finite; lower the learning rate")
    value = model.input(x)
    rows = 1 if value is None else parts(value)[0].shape[0]
    run, _ = weigh(model, guide, value, observations or {}, rows)
    for name, site in run.sites.items():
        given = "observed value" if site.observed else "value"
        for part in _tensors(site.value):
            if part.is_floating_point() and not bool(torch.isfinite(part).all()):
                return NonFinite(f"`{model.name}`: site `{name}`: the {given} has {_what(part)}", site=name)
        if site.log_prob is not None and not bool(torch.isfinite(site.log_prob).all()):
            advice = "; an observed value lies outside the support" if site.observed else ""
            return NonFinite(
                f"`{model.name}`: site `{name}`: its log density has {_what(site.log_prob)}{advice}", site=name
            )
    return NonFinite(f"`{model.name}`: the loss is not finite")


def _tensors(value: Any) -> tuple[Tensor, ...]:
    if isinstance(value, Tensor):
        return (value,)
    return tuple(part for part in value if isinstance(part, Tensor)) if isinstance(value, tuple) else ()


def _what(tensor: Tensor) -> str:
    if bool(torch.isnan(tensor).any()):
        return f"{int(torch.isnan(tensor).sum())} NaN of {tensor.numel()}"
    return f"{int(torch.isinf(tensor).sum())} infinite of {tensor.numel()}"
