"""The integral on a mesh of frequencies, cut off smoothly with a bound: for every law of a loss."""
