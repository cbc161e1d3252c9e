"""The classes of nodes: operators of plans, clauses of syntax trees."""

from __future__ import annotations


def leaves(base: type) -> set[type]:
    """Return the classes of the product below a base that have no subclasses."""
    found: set[type] = set()
    pending: list[type] = [base]
    while pending:
        below: list[type] = pending.pop().__subclasses__()
        pending += below
        found |= {cls for cls in below if not cls.__subclasses__()}
    return {cls for cls in found if cls.__module__.startswith("streamsparql.")}
