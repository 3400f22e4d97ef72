"""What a check reads and writes: entries, bounds, what is inherited by composition, holes."""
