"""Deductions: terms, rules, their closure and their instances."""
