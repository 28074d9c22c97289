"""The law of a privacy loss on the line, atoms and density, and what becomes of it step by step."""
