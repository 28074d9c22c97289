"""Losses rounded to a mesh, each step cut to a range that needs no moments."""
