"""Deductions and compositions: terms, rules, their closure and their instances."""
