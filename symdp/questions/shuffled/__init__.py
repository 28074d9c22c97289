"""Answers of a local randomizer: seen by themselves, or by so many people without their names.

In comes a mechanism with a `Local` source; `alone.py` makes the pair of laws that answers for one
answer, `blanket.py` the bound on shuffled ones from the nodes of `outputs.py`. Read `blanket.py`
first.
"""
