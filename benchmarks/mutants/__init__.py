"""Change one line of a room at a time and see whether quick tests notice."""
