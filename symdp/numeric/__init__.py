"""Numbers in doubles: nodes of any density, the law of a total loss, and the answer with its ends.

In comes a pair whose formula is compiled, out go ends of log δ. `loss.py` has the law of one step,
`total.py` the law of many, `contour.py` the line that answers nearly every question; read it first.
What doubles cannot hold is asked of balls at the same places (`single.py`, `residues.py`).
"""
