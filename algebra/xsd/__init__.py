"""XSD values: what literals stand for, how they are compared, computed with and written."""
