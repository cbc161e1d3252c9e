"""RDFS entailment on term ids: the schema of static graphs, and the matching of patterns with it."""
