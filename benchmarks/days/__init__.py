"""The questions of ordinary days: how long people wait, and how far off the answer is."""
