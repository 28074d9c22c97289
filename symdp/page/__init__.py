"""Documents: derivations, reports, cards and calculations, and the printers of their formulas.

In come derivations and answers, out goes a tree of blocks: read `document.py` first. Text, HTML,
Markdown and LaTeX are functions of that tree, in the files of these names; `node.py` and
`formula.py` are its formulas. `derivation.py`, `report.py`, `card.py`, `worked.py` build trees.
"""
