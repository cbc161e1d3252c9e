"""State: the data structures in which operators retain rows between steps."""
