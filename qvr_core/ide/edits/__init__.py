"""Changes of the text: fixes, refactors, rename, formatting."""
