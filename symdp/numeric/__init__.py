"""Numbers in doubles: nodes of any density, the law of a total loss, and the answer with its ends.

In comes a pair whose formula is compiled, out go ends of log delta. `loss.py` has the law of one
step, `total.py` the law of many, `contour.py` the line that answers nearly every question.
"""
