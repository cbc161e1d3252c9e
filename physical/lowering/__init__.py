"""Lowering: from logical plans to physical operators, over the data that a run reads."""
