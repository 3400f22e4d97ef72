"""Families of distributions at run time: plain functions of tensors, no distribution objects."""

from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.random_draws import standard_noise
from qvr_core.runtime.families.registry import RUNTIME_FAMILIES

__all__ = ["RUNTIME_FAMILIES", "RuntimeFamily", "standard_noise"]
