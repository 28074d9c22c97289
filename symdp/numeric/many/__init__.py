"""Many compositions of few kinds of steps: each is a row of counts, a table's product.

In come kinds with counts by rows, out go ends of log δ of every row. Read `kinds.py` first;
`schedule.py` replaces thousands of values of a parameter by the nodes of a Gauss rule.
"""
