"""Operators of physical plans learn here how a notebook shows them.

What computes plans knows nothing of pictures, and what explains them does not load what computes.
"""

from __future__ import annotations

from streamsparql.explain.html import fragment
from streamsparql.explain.physical import physical_box
from streamsparql.physical.operator import Operator


def _as_html(root: Operator) -> str:
    """An operator, with all that it reads."""
    return fragment(physical_box(root))


def learned(root: Operator) -> Operator:
    """The operator; a notebook now shows it, and any other, as a picture."""
    Operator._repr_html_ = _as_html  # type: ignore[attr-defined]
    return root
