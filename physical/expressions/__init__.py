"""Vectorised evaluation of expressions, over all rows of a batch at once."""
