"""Arrays as a graph: what a density does to its position, recorded by running it once."""
