"""Families of distributions at run time: plain functions of tensors, no distribution objects."""

from qvr_core.runtime.families.registry import RUNTIME_FAMILIES, RuntimeFamily, canonical, standard_noise

__all__ = ["RUNTIME_FAMILIES", "RuntimeFamily", "canonical", "standard_noise"]
