"""Whether draws are to be trusted: statistics of plain arrays on numpy alone, and one table of what is good enough.

`thresholds` and `verdicts` load nothing; `ranks`, `convergence`, `intervals` and `pareto` want numpy.
"""
