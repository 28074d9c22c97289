"""Proofs by the trapezoidal rule, on a line or over one period of a lattice of losses."""
