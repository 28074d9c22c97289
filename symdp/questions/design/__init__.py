"""The question turned around: which noise, which parameters are best at an ε and a δ.

In comes a cost or a budget, with how many steps at which δ; out go ordinary mechanisms,
compositions and numbers, each ε of which the package answers as it answers any other. Read
`integers.py` first, which finds the noise of least ε, then `loss_sum.py`, which has its gradient.
"""
