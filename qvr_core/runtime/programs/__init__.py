"""Programs as modules: steps, sites, arithmetic, marginalisation, deductions."""
