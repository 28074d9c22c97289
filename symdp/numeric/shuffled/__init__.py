"""Shuffled answers: E[S₊] of a sum of independent values, as an upper bound of a privacy profile.

In comes the law of one answer's part of the sum, `law.py`; out goes log E[S₊], never below the
truth but for what a quadrature misses. Read `line.py` first, `lattice.py` takes what its line does
not reach.
"""
