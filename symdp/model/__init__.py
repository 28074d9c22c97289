"""What a user writes, exact and checked: mechanisms, pairs of densities, sampling, files.

In comes a file (`specification.py`, `parser.py`) or an expression, out goes a `Mechanism`; its pair
is that of densities which dominates its sampling for the neighbours that are protected, see
`dominating.py`. Nothing here computes with doubles. Read `mechanism.py` first.
"""
