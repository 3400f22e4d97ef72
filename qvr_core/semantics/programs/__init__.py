"""Programs, step by step."""
