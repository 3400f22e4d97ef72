"""Arrows as modules: kernels, deterministic roles, combinators, scans, lifting, summation."""
