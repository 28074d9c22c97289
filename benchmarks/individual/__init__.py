"""Figures of individual accounting: speed, memory, accuracy, and the grid's over-estimate."""
