"""What lies beyond the end of a line."""
