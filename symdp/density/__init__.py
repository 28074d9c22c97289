"""From a pair of densities to smooth stretches in normal form, for all values of its parameters.

In comes a pair, out go its pieces: kinks and zeros, normal forms of logarithms, the loss with its
variable as rarely as possible, atoms. Nothing here knows an array, and what only a page tells
(where a loss turns, its limits, its symmetry) is in `symdp.derive`. Read `pieces.py` first.
"""
