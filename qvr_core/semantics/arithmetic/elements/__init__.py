"""What builtins do with one element of a value that runs over sets."""
