"""Programs from formulas such as `y ~ x + (1 + x | g)`, as brms, Bambi and lme4 read them, and a table.

`syntax` reads the text, `terms` its algebra, `coding` which levels of a factor are coded, `columns` what the table
holds, `families` what an outcome is drawn from, `predictor` writes a linear predictor and `program` the whole.
"""
