"""RDFS entailment on term ids: the schema of static graphs, and matching with it."""
