"""Benchmarks: symdp beside its peers, and published figures computed anew."""
