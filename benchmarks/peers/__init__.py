"""symdp beside its peers: accuracy against time, ratios and intervals, measured in one run."""
