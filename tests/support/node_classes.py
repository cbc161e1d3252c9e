"""Classes of nodes: operators of plans, clauses of syntax trees."""

from __future__ import annotations


def leaves(base: type) -> set[type]:
    """Return the subclasses of a base in the product that have no subclasses themselves."""
    classes: set[type] = set()
    pending: list[type] = [base]
    while pending:
        below: list[type] = pending.pop().__subclasses__()
        pending += below
        classes |= {cls for cls in below if not cls.__subclasses__()}
    return {cls for cls in classes if cls.__module__.startswith("streamsparql.")}
