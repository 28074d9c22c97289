"""Laws of a loss that no density on a line gives: tables, noise on vectors, random allocation.

In comes a step's pair with values, out goes a law that `total.py` composes like any other. Read
`table.py` first; `family.py` knows its law by K alone.
"""
