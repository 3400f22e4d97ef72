"""Compositions and transformations: what a file declares of algebras, and the laws that it claims."""
