"""Densities that no program has built in, as files, each with questions and proved truths."""
