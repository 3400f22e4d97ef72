"""Targets that broadcast whole arrays from their last axis, as the typed model does: torch, JAX, PyTensor.

`expressions` prints arithmetic, `densities` families, `steps` what a program does; a `dialect` is the tables and the
few forms in which these targets differ.
"""
