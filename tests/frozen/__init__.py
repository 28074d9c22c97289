"""Questions with the answers of an earlier version: a later one may not contradict them."""
