"""Families on the space that stands beside a draw: between bounds, in ascending order, without a density."""
