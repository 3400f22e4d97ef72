"""Arithmetic in steps: names, operators, calls, gathers, factors, and which shapes go together."""
