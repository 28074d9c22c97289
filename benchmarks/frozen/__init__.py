"""Frozen answers: what symdp says of 400 compositions, and whether a change of it says the same."""
