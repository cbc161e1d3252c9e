"""Aggregates over change points: exact sums, minima, and their fast path for small steps."""
