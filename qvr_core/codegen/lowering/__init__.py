"""From a graph of arrays to loops: a rule for each operation."""
