"""From a pair of densities to smooth stretches in normal form, for all values of its parameters.

What numbers need of algebra is here: kinks and zeros, normal forms of logarithms, the loss with its
variable as rarely as possible, atoms, and the table of integrals. Nothing here knows an array, and
what only a page tells (where a loss turns, its limits, its symmetry) is in `symdp.derive`.
"""
