"""Claims that are proved: δ or ε between two ends, from plans in balls, every error bounded.

What goes in are pairs with counts; what comes out are balls of Arb.  `kind` is one step in balls,
`plan` what doubles find, `measure` its integrals, `falling` how |M| falls, `line` the theorem;
`enclosure` is the table that answers.  Begin with `line`.
"""
