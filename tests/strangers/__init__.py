"""Densities that nobody tuned for, each with its truth from a computation that shares no code."""
