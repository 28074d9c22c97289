"""Laws of one step's loss, also where no density on a line gives it: tables, vectors, allocation.

In comes a mechanism with values, out goes a law that `total.py` composes like any other. Read
`of_mechanism.py` first, which says who has which; `family.py` knows its law by K alone.
"""
