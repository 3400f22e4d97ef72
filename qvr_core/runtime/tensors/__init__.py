"""Tensor arrows, their algebras, and the charts of deductions."""
