"""What an observed step says of values that are known in part, or not at all."""
