"""Sums of probabilities in logarithms, exact where some are zero."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def logsumexp(value: Tensor, axis: int) -> Tensor:
    """log Σ exp along an axis; where every term is impossible −inf, with gradient zero."""
    most = value.detach().amax(axis, keepdim=True)
    most = torch.where(most.isfinite(), most, torch.zeros_like(most))
    total = (value - most).exp().sum(axis)
    positive = total > 0
    log = torch.where(positive, total, torch.ones_like(total)).log()
    return torch.where(positive, log, torch.full_like(log, -math.inf)) + most.squeeze(axis)
