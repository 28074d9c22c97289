"""Proofs: δ or ε between two ends, floating point included.

In come pairs with counts; out come balls of Arb.  `kind` is one step in balls, `plan` what doubles
find of a question, `measure` the integrals on its panels, `falling` how |M| falls, and `line` the
theorem that puts them together; `lattice`, `mesh` and `allocation` are its sisters.
`enclosure` is the table that answers, `truth` its answers to many digits.  Read `line.py` first.
"""
