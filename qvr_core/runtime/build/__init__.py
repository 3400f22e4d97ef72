"""From the typed model to modules."""
