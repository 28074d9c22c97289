"""What a user writes, exact and checked: mechanisms, pairs of densities, sampling, files.

In comes a file (`specification.py`) or an expression, read in `reading/`; out goes a `Mechanism`,
whose pair is that of densities which dominates its sampling for the neighbours that are protected,
see `dominating.py`. Nothing here computes with doubles. Read `mechanism.py` first.
"""
