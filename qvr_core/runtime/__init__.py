"""From the typed model to torch modules."""
