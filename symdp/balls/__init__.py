"""Proofs about a single density: its mass, its tails, its modes, in balls of Arb.

In come densities with values, out come enclosures and decisions, or the sentence that one is
wanting. `density.py` is the check that every mechanism passes on its way into a composition, once
a formula (`proper.py`): read it first. Then `mass.py`, with `cuts.py` for tails, and `modes.py` for
the worst shift.
"""
