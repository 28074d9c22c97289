"""The default answer: δ exactly, but for an error that its interval counts."""
