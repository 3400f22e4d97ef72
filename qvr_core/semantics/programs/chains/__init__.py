"""Steps with indices whose elements depend on earlier ones: their axes, and what the first elements are."""
