"""Text, numbers and SymPy expressions as a person gives them become exact ones, or are refused.

`parser.py` reads formulas and nothing else, `guarded.py` keeps SymPy from work without end, and
`intake.py` puts what is read into a mechanism's own symbols.
"""
