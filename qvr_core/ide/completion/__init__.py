"""What may be written at a place: completion and signature help."""
