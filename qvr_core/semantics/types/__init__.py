"""Spaces, the nodes of the typed model, diagnostics and their codes: what every other room speaks of."""
