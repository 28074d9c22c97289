"""Derivations of what is no pair in one variable: epochs, noise on vectors, local randomizers."""
