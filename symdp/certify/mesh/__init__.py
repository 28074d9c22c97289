"""Proofs between two laws on a mesh, for few steps and for losses off any lattice."""
