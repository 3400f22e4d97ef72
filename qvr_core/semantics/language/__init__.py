"""The closed tables of the language: families, roles, builtins, and how their names are spelt elsewhere."""
